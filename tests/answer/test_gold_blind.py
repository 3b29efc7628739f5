"""An answerer cannot cheat: what it is given is the same whatever the gold, type, ids and evidence are."""

from __future__ import annotations

import re
from dataclasses import fields, replace
from pathlib import Path

import pytest

from pytest_himga.answer.answer_profile import SHIPPED, load_answer_profile
from pytest_himga.answer.llm import LLMAnswerer
from pytest_himga.answer.request import AnswerRequest, RecalledMemory
from pytest_himga.data.opening import open_dataset
from pytest_himga.memory.bm25 import BM25Memory
from pytest_himga.memory.boundary import History, read_context
from pytest_himga.memory.protocol import Context, Recalled

DEMOS = ("demo-locomo", "demo-longmemeval", "demo-memorystress")
ANSWERERS = {
    name: LLMAnswerer(None, load_answer_profile(name, base=Path(), option="--himga-answer-profile"))
    for name in SHIPPED
}


def parts_of(request: AnswerRequest, profile: str = "strict") -> dict[str, str]:
    """What is sent, cut up: the fenced texts by their tags, and all the rest as ``ours``."""
    messages = ANSWERERS[profile].request_for(request).rendered()
    text = re.sub("_[0-9a-f]{16}>", ">", "\n".join(message["content"] for message in messages))
    ours = re.sub("[0-9a-f]{16}", "FENCE", text)
    parts = {}
    for tag in ("profile", "memories", "date", "question"):
        found = re.search(rf"<{tag}>\n(.*)\n</{tag}>", ours, re.DOTALL)
        if found:
            parts[tag] = found[1]
            ours = ours.replace(found[0], f"<{tag}/>")
    return parts | {"ours": ours}


def golds_of(case) -> set[str]:
    """What is right and what is the trap.

    A bare number is left out, because steps have numbers; that all prompts are alike covers it.
    """
    question = case.question
    texts = {text for text in (question.gold, question.trap, question.answer) if text and text.strip()}
    return {text for text in texts if not text.isdigit()}


def ids_of(case) -> set[str]:
    """What a question is called, and where its answer stands.

    A bare number is left out: it is the id of a LoCoMo question, and stands in many a memory.
    """
    question = case.question
    groups = [one for group in question.evidence.groups for one in group]
    names = {question.question_type.value, question.question_id, case.uid, case.sample_id, case.dataset}
    found = names | {*groups, *question.evidence.turn_ids, *question.evidence.session_ids}
    return {one for one in found if not one.isdigit()}


def holds(text: str, secret: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(secret)}(?!\w)", text) is not None


def test_a_request_has_nowhere_to_put_a_gold() -> None:
    assert [field.name for field in fields(AnswerRequest)] == [
        "question", "date", "memories", "text", "profile", "k",
    ]  # fmt: skip
    assert [field.name for field in fields(RecalledMemory)] == ["text", "date"]


@pytest.mark.parametrize("profile", SHIPPED)
@pytest.mark.parametrize("demo", DEMOS)
def test_a_memory_that_knows_nothing_leaves_nothing_but_the_question(demo: str, profile: str) -> None:
    prompts = set()
    for case in open_dataset(demo).cases():
        request = AnswerRequest.of(case.question.question, case.date_str, Context("", ()), None, 10)
        parts = parts_of(request, profile)
        assert parts.pop("question") == case.question.question
        assert re.fullmatch(r"[A-Z][a-z]+day, \d{1,2} [A-Z][a-z]+ 20\d\d", parts.pop("date"))
        assert parts.pop("memories") == "(the memory found nothing)"
        ours = parts.pop("ours")
        assert not parts
        assert not [one for one in golds_of(case) | ids_of(case) if holds(ours, one)]
        prompts.add(ours)
    assert len(prompts) == 1


@pytest.mark.parametrize("demo", DEMOS)
def test_a_real_memory_adds_what_it_found_and_nothing_else(demo: str) -> None:
    dataset = open_dataset(demo)
    memories: dict[str, tuple[History, BM25Memory]] = {}
    prompts, told = set(), 0
    for case in dataset.cases()[:40]:
        if case.sample_id not in memories:
            memories[case.sample_id] = fed(case.sample)
        history, memory = memories[case.sample_id]
        context, _ = read_context(memory.retrieve(case.question.question, k=10), history, 10)
        request = AnswerRequest.of(case.question.question, case.date_str, context, None, 10)
        parts = parts_of(request)
        assert not [one for one in ids_of(case) if holds(parts["memories"] + parts["ours"], one)]
        assert not [one for one in golds_of(case) if holds(parts["ours"], one)]
        told += parts["memories"].count("\n- [")
        prompts.add(parts["ours"])
        # The same context with the ids of other evidence and other scores: the same request.
        other = replace(
            context, recalled=tuple(replace(one, turn_ids=("D9:9",), score=0.5) for one in context.recalled)
        )
        assert AnswerRequest.of(case.question.question, case.date_str, other, None, 10) == request
    assert len(prompts) == 1
    assert told > 100


def fed(sample) -> tuple[History, BM25Memory]:
    history, memory = History.of(sample), BM25Memory()
    for session in history.sessions():
        for message in session.messages:
            memory.ingest(message)
    return history, memory


def test_what_lies_behind_the_first_k_is_not_in_the_request() -> None:
    recalled = tuple(Recalled(f"memory {n}", date_str=f"2024-01-0{n}") for n in range(1, 6))
    whole = Context("\n".join(one.text for one in recalled), recalled)
    request = AnswerRequest.of("Q?", None, whole, None, 2)
    assert request.memories == (
        RecalledMemory("memory 1", "2024-01-01"),
        RecalledMemory("memory 2", "2024-01-02"),
    )
    assert request.text == "memory 1\nmemory 2"
