"""What the tests of the LLM judge share: cases, shipped profiles, and a model that says what it is told to."""

from __future__ import annotations

import asyncio
import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from pytest_himga.data.schema import Case, EvidenceRef, Message, QAPair, QuestionType, Sample, Session
from pytest_himga.errors import LLMError
from pytest_himga.judge.llm import LLMJudge
from pytest_himga.judge.llm_profile import JudgeProfile, load_judge_profile
from pytest_himga.llm.contract import Reply, Unreadable
from pytest_himga.llm.prompt import ChatRequest, ModelSpec
from pytest_himga.memory.protocol import Context, Usage

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_himga.judge.verdict import Verdict

T = TypeVar("T")
NAMES = ("strict", "lenient", "lenient-evidence", "longmemeval", "memorystress")
CORRECT = '{"reason": "it says so", "verdict": "CORRECT"}'
WRONG = '{"reason": "it says something else", "verdict": "WRONG"}'
ONE_CALL = Usage(calls=1, tokens_in=100, tokens_out=10)


class ToldModel:
    """A model whose replies are given: texts, or errors to raise; it records what it is asked."""

    spec = ModelSpec("told", "http://127.0.0.1:9/v1")

    def __init__(self, *replies: str | LLMError) -> None:
        self.replies = replies or (CORRECT,)
        self.asked: list[ChatRequest] = []

    async def ask(self, request: ChatRequest, read: Callable[[str], T]) -> Reply[T]:
        self.asked.append(request)
        reply = self.replies[(request.vote - 1) % len(self.replies)]
        await asyncio.sleep(0)
        if isinstance(reply, LLMError):
            raise reply
        try:
            return Reply(read(reply), ONE_CALL)
        except Unreadable as error:
            raise LLMError(str(error), usage=ONE_CALL) from None


@cache
def shipped(name: str) -> JudgeProfile:
    """A profile of ours."""
    return load_judge_profile(name, base=Path(), option=f"--himga-judge-profile={name}")


def case(
    gold: str | None = "a kiln",
    *,
    trap: str | None = None,
    family: str = "locomo",
    type_: QuestionType = QuestionType.SINGLE_HOP,
    category: object = 4,
    question: str = "What did Priya buy?",
    answer: str | None = None,
    evidence: list[list[str]] | None = None,
    sessions: list[Session] | None = None,
    raw: dict | None = None,
    **fields: object,
) -> Case:
    """One case; no gold means that abstaining is right."""
    asked = QAPair(
        "0",
        question,
        answer or gold or trap or "",
        type_,
        evidence=EvidenceRef(groups=evidence or []),
        raw={"category": category} | (raw or {}),
        expects_abstention=gold is None,
        trap=trap,
        gold=gold,
        **fields,
    )
    sample = Sample("one", family, history() if sessions is None else sessions, [asked])
    return Case.of(family, "one", sample, asked)


def history() -> list[Session]:
    """Two short sessions."""
    return [
        Session(
            "1", [Message("Priya", "I bought a kiln.", "D1:1"), Message("Tom", "Oh!", "D1:2")], "8 May 2023"
        ),
        Session(
            "2",
            [Message("Priya", "It is {hot} in there.", "D2:1"), Message("Tom", " ", "D2:2")],
            "9 June 2023",
        ),
    ]


def judged(
    replies: tuple[str | LLMError, ...] | ToldModel,
    case_: Case,
    answer: str | None = "a kiln",
    *,
    profile: str = "strict",
    votes: int = 1,
) -> Verdict:
    """What the judge says when the model replies so."""
    chat = replies if isinstance(replies, ToldModel) else ToldModel(*replies)
    return asyncio.run(LLMJudge(chat, shipped(profile), votes).judge(case_, answer, Context("")))


def prompt(profile: str | JudgeProfile, case_: Case, answer: str = "a kiln") -> str:
    """The whole prompt with FENCE for the fence: both messages, a line with the role above each."""
    loaded = shipped(profile) if isinstance(profile, str) else profile
    request = LLMJudge(ToldModel(), loaded).request_for(case_, answer)
    assert request is not None
    messages = request.rendered()
    (fence,) = set(re.findall(r"<answer_([0-9a-f]{16})>", messages[1]["content"]))
    return "\n\n".join(f"=== {one['role']}\n{one['content'].replace(fence, 'FENCE')}" for one in messages)


def rules_in(profile: JudgeProfile, text: str) -> str:
    """Under which name the profile has the rules that stand in this prompt."""
    found = [key for key in profile.rules if f"\n{profile.rules_text(key, {})}\n" in text]
    assert len(found) == 1
    return found[0]
