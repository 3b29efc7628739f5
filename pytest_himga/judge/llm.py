"""The LLM judge: a model that compares the answer with the gold by the rules of a profile.

``profiles/`` has the rules, ``llm_prompt.py`` makes the prompt, ``reading.py`` says what counts as a verdict.
Here the votes are asked for and counted. A vote that failed, for whatever cause, is no vote for anything.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from pytest_himga.errors import LLMError
from pytest_himga.judge.abstention import holds_trap
from pytest_himga.judge.llm_prompt import messages_for
from pytest_himga.judge.reading import VERDICT_FORMAT, read_verdict
from pytest_himga.judge.verdict import AbstentionValue, OpinionValue, Verdict
from pytest_himga.llm.prompt import ChatRequest, Fenced
from pytest_himga.memory.protocol import Usage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_himga.data.schema import Case, QAPair
    from pytest_himga.judge.llm_profile import JudgeProfile
    from pytest_himga.llm.contract import Chat
    from pytest_himga.memory.protocol import Context

_VALUES: tuple[OpinionValue, ...] = ("correct", "wrong")


@dataclass(frozen=True)
class _Vote:
    """One reply, or why there is none (``text``) and then no ``value``."""

    value: OpinionValue | None
    text: str
    usage: Usage


class LLMJudge:
    """Correct iff most of ``votes`` replies of a model say so; ``votes`` is odd.

    ``profile.sha256`` is the fingerprint of what the model is told.
    """

    def __init__(self, chat: Chat, profile: JudgeProfile, votes: int = 1) -> None:
        if votes < 1 or votes % 2 == 0:
            raise ValueError(f"votes is {votes}; expected an odd number, so that there is a majority")
        self.chat = chat
        self.profile = profile
        self.votes = votes
        self.name = f"llm:{profile.name}"

    def request_for(self, case: Case, answer: str | None, vote: int = 1) -> ChatRequest | None:
        """What the model would be asked; None where the verdict needs no model."""
        checked = _checked(case.question, answer)
        return None if isinstance(checked, Verdict) else self._request(case, checked, vote)

    def _request(self, case: Case, answer: str, vote: int) -> ChatRequest:
        return ChatRequest(messages_for(self.profile, case, answer), VERDICT_FORMAT, vote)

    async def judge(self, case: Case, answer: str | None, context: Context) -> Verdict:  # noqa: ARG002 - reads no context
        """The majority's verdict, its score 1 or 0, its reason that of the first vote for it.

        ``unscored`` where nothing produced an answer and where no value has more than half of the votes;
        ``n/a`` without a gold. Never raises an ``LLMError``. ``votes`` are the values in order; ``usage`` is
        that of all votes, failed and cached ones too.
        """
        question = case.question
        checked = _checked(question, answer)
        if isinstance(checked, Verdict):
            return checked
        request = self._request(case, checked, vote=1)
        asked = [self._vote(replace(request, vote=number)) for number in range(1, self.votes + 1)]
        verdict = _counted(await asyncio.gather(*asked))
        if verdict.value == "unscored" or not question.expects_abstention:
            return verdict
        return replace(verdict, abstention=_abstention(verdict, checked, question.trap))

    async def _vote(self, request: ChatRequest) -> _Vote:
        strangers = [part.text for one in request.messages for part in one.parts if isinstance(part, Fenced)]
        try:
            reply = await self.chat.ask(request, partial(read_verdict, strangers=strangers))
        except LLMError as error:
            return _Vote(None, error.message, error.usage or Usage())
        return _Vote(reply.value.value, reply.value.reason, reply.usage)


def _checked(question: QAPair, answer: str | None) -> Verdict | str:
    """The answer, or the verdict where there is nothing that a model could compare."""
    if answer is None:
        return Verdict(
            "unscored", reason="nothing produced an answer: the memory has no answer() and no answerer is set"
        )
    if question.expects_abstention:
        if answer.strip():
            return answer
        return Verdict(
            "wrong", 0.0, "the answer is empty, which does not say that it abstains", abstention="other"
        )
    if not str(question.gold or "").strip():
        return Verdict("n/a", reason="the dataset has no gold for this question")
    return answer if answer.strip() else Verdict("wrong", 0.0, "the answer is empty")


def _counted(votes: Sequence[_Vote]) -> Verdict:
    values = tuple(vote.value or "unscored" for vote in votes)
    usage = sum((vote.usage for vote in votes), Usage())
    for value in _VALUES:
        number = values.count(value)
        if 2 * number > len(votes):
            score = 1.0 if value == "correct" else 0.0
            reason = _reason(votes[values.index(value)].text, number, values)
            return Verdict(value, score, reason, values, usage)
    return Verdict("unscored", None, _cause(votes, values), values, usage)


def _reason(text: str, number: int, values: Sequence[str]) -> str:
    if len(values) == 1:
        return text
    lost = values.count("unscored")
    spread = f"{number} of {len(values)} votes{f', {lost} unscored' if lost else ''}"
    return f"{spread}: {text}" if text else spread


def _cause(votes: Sequence[_Vote], values: Sequence[str]) -> str:
    first = next(vote.text for vote in votes if vote.value is None)
    if len(values) == 1:
        return first
    counts = [f"{n} {value}" for value in (*_VALUES, "unscored") if (n := values.count(value))]
    return f"no majority of {len(values)} votes ({', '.join(counts)}): {first}"


def _abstention(verdict: Verdict, answer: str, trap: str | None) -> AbstentionValue:
    if verdict.value == "correct":
        return "held"
    return "fell" if trap and holds_trap(answer, trap) else "other"
