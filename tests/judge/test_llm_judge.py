"""The LLM judge: which answers it asks about, how votes are counted, and what an outage costs."""

from __future__ import annotations

import asyncio

import pytest
from judged_cases import CORRECT, ONE_CALL, WRONG, ToldModel, case, judged, shipped

from pytest_himga.errors import LLMError
from pytest_himga.judge.llm import LLMJudge
from pytest_himga.judge.reading import VERDICT_FORMAT
from pytest_himga.judge.verdict import problem_of
from pytest_himga.llm.contract import Reply
from pytest_himga.memory.protocol import Context, Usage

DOWN = LLMError("the judge's server is down", usage=Usage(calls=3, retries=2, untold=3))
LOST = LLMError("the judge's server hung up")
C, W, GARBLED = CORRECT, WRONG, "CORRECT"


# -- one vote ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reply", "value", "score", "reason"),
    [
        (C, "correct", 1.0, "it says so"),
        (W, "wrong", 0.0, "it says something else"),
        ('{"verdict": "WRONG"}', "wrong", 0.0, ""),
        (DOWN, "unscored", None, "the judge's server is down"),
    ],
)
def test_one_vote(reply, value, score, reason):
    verdict = judged((reply,), case())
    assert (verdict.value, verdict.score, verdict.reason) == (value, score, reason)
    assert verdict.votes == (value,)
    assert verdict.abstention is None
    assert problem_of(verdict) == ""


@pytest.mark.parametrize(
    ("asked", "answer", "value", "reason", "abstention"),
    [
        (case(), None, "unscored", "nothing produced an answer: the memory has no", None),
        (case(gold=None), None, "unscored", "nothing produced an answer: the memory has no", None),
        (case(), "", "wrong", "the answer is empty", None),
        (case(), " \n\t", "wrong", "the answer is empty", None),
        (case(gold=None), "", "wrong", "the answer is empty, which does not say that it abstains", "other"),
        (case(gold=None), "  ", "wrong", "the answer is empty, which does not say that it abstains", "other"),
        (case(gold=""), "a kiln", "n/a", "the dataset has no gold for this question", None),
        (case(gold=" "), "", "n/a", "the dataset has no gold for this question", None),
    ],
)
def test_where_there_is_nothing_to_compare_no_model_is_asked(asked, answer, value, reason, abstention):
    model = ToldModel()
    verdict = judged(model, asked, answer)
    assert verdict.value == value
    assert verdict.reason.startswith(reason)
    assert verdict.abstention == abstention
    assert verdict.score == (0.0 if value == "wrong" else None)
    assert verdict.usage is None
    assert model.asked == []
    assert LLMJudge(model, shipped("strict")).request_for(asked, answer) is None


def test_the_prompt_is_known_beforehand():
    model = ToldModel()
    judge = LLMJudge(model, shipped("lenient"), votes=3)
    before = [judge.request_for(case(), "a kiln", vote) for vote in (1, 2, 3)]
    asyncio.run(judge.judge(case(), "a kiln", Context("a context that no judge reads")))
    assert model.asked == before
    assert before[0].response_format == VERDICT_FORMAT
    assert len({request.fingerprint(model.spec) for request in before}) == 3
    assert judge.name == "llm:lenient"


@pytest.mark.parametrize(
    ("reply", "answer", "trap", "value", "abstention"),
    [
        (C, "That was never mentioned.", "a kiln", "correct", "held"),
        (C, "Das wurde nie gesagt.", "a kiln", "correct", "held"),
        (W, "She bought a kiln.", "a kiln", "wrong", "fell"),
        (W, "She bought a canoe.", "a kiln", "wrong", "other"),
        (W, "She bought a canoe.", None, "wrong", "other"),
        (W, "That was never mentioned.", "a kiln", "wrong", "other"),
        (DOWN, "She bought a kiln.", "a kiln", "unscored", None),
    ],
)
def test_how_an_unanswerable_question_was_met(reply, answer, trap, value, abstention):
    verdict = judged((reply,), case(gold=None, trap=trap, category=5), answer)
    assert (verdict.value, verdict.abstention) == (value, abstention)


# -- several -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("replies", "value", "reason"),
    [
        ((C, C, C), "correct", "3 of 3 votes: it says so"),
        ((C, C, W), "correct", "2 of 3 votes: it says so"),
        ((W, C, C), "correct", "2 of 3 votes: it says so"),
        ((W, C, W), "wrong", "2 of 3 votes: it says something else"),
        ((W, W, W), "wrong", "3 of 3 votes: it says something else"),
        ((DOWN, C, C), "correct", "2 of 3 votes, 1 unscored: it says so"),
        ((W, W, DOWN), "wrong", "2 of 3 votes, 1 unscored: it says something else"),
        (
            (C, W, DOWN),
            "unscored",
            "no majority of 3 votes (1 correct, 1 wrong, 1 unscored): the judge's server is down",
        ),
        (
            (C, DOWN, LOST),
            "unscored",
            "no majority of 3 votes (1 correct, 2 unscored): the judge's server is down",
        ),
        (
            (LOST, W, DOWN),
            "unscored",
            "no majority of 3 votes (1 wrong, 2 unscored): the judge's server hung up",
        ),
        ((DOWN, DOWN, DOWN), "unscored", "no majority of 3 votes (3 unscored): the judge's server is down"),
        ((GARBLED, C, C), "correct", "2 of 3 votes, 1 unscored: it says so"),
        (
            (GARBLED, C, W),
            "unscored",
            "no majority of 3 votes (1 correct, 1 wrong, 1 unscored): there is no verdict object in the judge's reply",
        ),
        ((C, W, C, W, C), "correct", "3 of 5 votes: it says so"),
        (
            (C, DOWN, C, W, W),
            "unscored",
            "no majority of 5 votes (2 correct, 2 wrong, 1 unscored): the judge's server is down",
        ),
        (('{"verdict": "CORRECT"}', C, C), "correct", "3 of 3 votes"),
    ],
)
def test_more_than_half_of_the_votes_decide(replies, value, reason):
    verdict = judged(replies, case(), votes=len(replies))
    assert (verdict.value, verdict.reason) == (value, reason)
    assert verdict.score == {"correct": 1.0, "wrong": 0.0, "unscored": None}[value]
    said = {C: "correct", W: "wrong", '{"verdict": "CORRECT"}': "correct"}
    assert verdict.votes == tuple(said.get(reply, "unscored") for reply in replies)
    assert problem_of(verdict) == ""


def test_usage_is_that_of_all_votes_failed_ones_too():
    verdict = judged((C, DOWN, LOST), case(), votes=3)
    assert verdict.usage == Usage(calls=4, tokens_in=100, tokens_out=10, retries=2, untold=3)


def test_a_cached_vote_is_no_call():
    class HalfCached(ToldModel):
        async def ask(self, request, read):
            fresh = await super().ask(request, read)
            return fresh if request.vote == 1 else Reply(fresh.value, Usage(cached=1))

    assert judged(HalfCached(C), case(), votes=3).usage == ONE_CALL + Usage(cached=2)


def test_votes_are_asked_for_at_the_same_time():
    class Patient(ToldModel):
        def __init__(self):
            super().__init__()
            self.all_there = asyncio.Barrier(3)

        async def ask(self, request, read):
            self.asked.append(request)
            await self.all_there.wait()
            return Reply(read(C))

    model = Patient()
    assert judged(model, case(), votes=3).value == "correct"
    assert [request.vote for request in model.asked] == [1, 2, 3]


@pytest.mark.parametrize("votes", [0, -1, 2, 4])
def test_votes_are_odd(votes):
    with pytest.raises(ValueError, match=f"votes is {votes}; expected an odd number"):
        LLMJudge(ToldModel(), shipped("strict"), votes)


def test_a_cancelled_verdict_ends_its_votes():
    class Hanging(ToldModel):
        def __init__(self):
            super().__init__()
            self.all_there = asyncio.Barrier(4)
            self.ended = 0

        async def ask(self, request, read):
            try:
                await self.all_there.wait()
                await asyncio.Event().wait()
            finally:
                self.ended += 1

    async def give_up(model):
        work = asyncio.create_task(LLMJudge(model, shipped("strict"), 3).judge(case(), "x", Context("")))
        await model.all_there.wait()
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work

    model = Hanging()
    asyncio.run(give_up(model))
    assert model.ended == 3
