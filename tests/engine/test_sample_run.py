"""One sample on its way through the pipeline: checkpoints, outages, hangs, and judges of the user's."""

from __future__ import annotations

import asyncio
import signal
import threading
import time
from dataclasses import replace

import pytest

from pytest_himga.errors import BackendError
from pytest_himga.judge.evidence import REWRITES
from pytest_himga.judge.verdict import Verdict
from pytest_himga.memory.protocol import Recalled

AT_ONCE = 3.0


class Verbatim:
    """Remembers turns and returns them all; ``heard`` has one list for each instance."""

    heard: list

    def __init__(self):
        self.turns = []
        self.heard.append(self.turns)

    def ingest(self, message):
        self.turns.append(message)

    def retrieve(self, query):
        return [Recalled(turn.content, [turn.turn_id]) for turn in self.turns]

    def reset(self):
        self.turns.clear()


@pytest.fixture
def verbatim():
    return type("Mine", (Verbatim,), {"heard": []})


def column(records, name):
    return [getattr(record, name) for record in records]


# -- feeding --------------------------------------------------------------------------------------


def test_it_is_fed_once_for_many_questions_and_looks(lab, verbatim):
    bench = lab(verbatim)
    case = bench.cases[0]
    bench.engine.context(case)
    bench.engine.answer(case)
    bench.engine.instance(case)
    assert bench.engine.retrieve(case, "anything")[0].text == "I planted twelve tulips today."
    bench.results()
    assert [len(turns) for turns in verbatim.heard] == [6]


def test_a_question_is_retrieved_once_however_often_it_is_looked_at(lab, verbatim):
    asked = []
    verbatim.retrieve = lambda self, query: asked.append(query) or "nothing"
    bench = lab(verbatim)
    for _ in range(3):
        bench.engine.context(bench.cases[0])
        bench.engine.result(bench.cases[0])
    assert asked.count("How many tulips?") == 1


def test_a_rerun_asks_again_but_does_not_feed_again(lab, verbatim):
    asked = []
    verbatim.retrieve = lambda self, query: asked.append(query) or []
    bench = lab(verbatim)
    bench.engine.result(bench.cases[0])
    bench.engine.forget(bench.cases[0])
    bench.engine.result(bench.cases[0])
    assert asked == ["How many tulips?"] * 2
    assert len(verbatim.heard) == 1


def test_blank_turns_are_counted_in_the_result(lab, verbatim, sample):
    sample.sessions[0].messages[1].content = "\t"
    assert [result.aside["blank"] for result in lab(verbatim).results()] == [1] * 4


# -- checkpoints ------------------------------------------------------------------------------------


def seen_by(lab, verbatim, sample, **more):
    """How many turns the memory knew when each question was asked, and how many memories there were."""
    seen = []

    def retrieve(self, query):
        seen.append((query, len(self.turns)))
        return [Recalled(turn.content, [turn.turn_id]) for turn in self.turns]

    verbatim.retrieve = retrieve
    records = lab(verbatim, sample=sample, **more).records()
    return records, [count for _, count in seen], len(verbatim.heard)


def test_each_question_is_asked_at_its_checkpoint_of_one_memory(lab, verbatim, at_checkpoints):
    records, seen, memories = seen_by(lab, verbatim, at_checkpoints(1, 2, 3, None))
    assert (seen, memories) == ([2, 4, 6, 6], 1)
    assert column(records, "verdict") == ["correct"] * 4


def test_a_question_of_an_earlier_checkpoint_never_meets_a_memory_that_heard_more(
    lab, verbatim, at_checkpoints
):
    records, seen, memories = seen_by(lab, verbatim, at_checkpoints(None, 1, 1, None), expect=False)
    assert (seen, memories) == ([6, 2, 2, 6], 2)
    assert column(records, "verdict") == ["correct", "wrong", "wrong", "correct"]
    assert [len(turns) for turns in verbatim.heard] == [6, 6]


def test_an_instance_is_reset_for_an_earlier_checkpoint(lab, verbatim, at_checkpoints):
    instance = verbatim()
    seen = []
    verbatim.retrieve = lambda self, query: seen.append(len(self.turns)) or []
    lab(instance, fixture=True, sample=at_checkpoints(None, 1, 2, None), expect=False).results()
    assert seen == [6, 2, 4, 6]


def test_looking_ahead_over_checkpoints_does_not_feed_again_for_what_is_known(lab, verbatim, at_checkpoints):
    verbatim.retrieve = lambda self, query: "It rewrites everything."
    records = lab(verbatim, sample=at_checkpoints(1, 2, 3, None)).records()
    assert column(records, "reason") == [REWRITES] * 4
    assert len(verbatim.heard) == 1


def test_settle_is_waited_for_at_every_checkpoint(lab, verbatim, at_checkpoints):
    settled = []
    verbatim.settle = lambda self: settled.append(len(self.turns))
    lab(verbatim, sample=at_checkpoints(1, 2, 3, None)).results()
    assert settled == [2, 4, 6]


# -- outages ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_ingest_that_raises_half_way_makes_every_question_unscored(lab, verbatim, kind):
    asked = []

    def ingest(self, message):
        if "hedgehog" in message.content:
            raise ConnectionError("database is locked")
        self.turns.append(message)

    async def async_ingest(self, message):
        ingest(self, message)

    verbatim.ingest = ingest if kind == "sync" else async_ingest
    verbatim.retrieve = lambda self, query: asked.append(query)
    results = lab(verbatim).results()
    records = [result.record for result in results]
    assert column(records, "verdict") == ["unscored"] * 4
    assert column(records, "stage") == ["ingest"] * 4
    assert column(records, "score") == [None] * 4
    assert set(column(records, "reason")) == {"ingest() raised ConnectionError: database is locked"}
    assert asked == []
    assert 'raise ConnectionError("database is locked")' in results[3].details
    assert "pytest_himga" not in results[3].details


def test_the_other_sample_goes_on(lab, verbatim, sample):
    verbatim.ingest = lambda self, message: (
        1 / 0 if "hedgehog" in message.content else self.turns.append(message)
    )
    bench = lab(verbatim)
    other = lab(
        verbatim,
        sample=replace(
            sample, sample_id="harbour", sessions=sample.sessions[::2], qa_pairs=sample.qa_pairs[::2]
        ),
    )
    both = bench.engine
    both.expect(other.cases)
    verdicts = [both.result(case).record.verdict for case in (*bench.cases, *other.cases)]
    assert verdicts == ["unscored"] * 4 + ["correct"] * 2


@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        ("__init__", "Mine() raised RuntimeError: no server"),
        ("reset", "reset() raised RuntimeError: no server"),
        ("settle", "settle() raised RuntimeError: no server"),
        ("ingest_session", "ingest_session() raised RuntimeError: no server"),
        ("usage", "usage() raised RuntimeError: no server"),
    ],
)
def test_whatever_breaks_before_the_first_question_is_named(lab, verbatim, broken, reason):
    def boom(self, *args):
        raise RuntimeError("no server")

    setattr(verbatim, broken, boom)
    records = lab(verbatim).records()
    assert set(column(records, "verdict")) == {"unscored"}
    assert set(column(records, "reason")) == {reason}
    assert set(column(records, "stage")) == {"ingest"}


def test_a_factory_that_makes_no_memory_is_told_what_is_missing(lab):
    record = lab(lambda: object()).records()[0]
    assert record.verdict == "unscored"
    assert record.reason == (
        "the backend is no memory: object has no ingest() and no retrieve() and no reset(); "
        "a memory has ingest, retrieve and reset"
    )


def test_retrieve_that_raises_costs_only_that_question(lab, verbatim):
    def retrieve(self, query):
        if "hedgehog" in query:
            raise TimeoutError("upstream is slow")
        return Verbatim.retrieve(self, query)

    verbatim.retrieve = retrieve
    results = lab(verbatim).results()
    records = [result.record for result in results]
    assert column(records, "verdict") == ["correct", "unscored", "correct", "correct"]
    assert (records[1].stage, records[1].reason) == (
        "retrieve",
        "retrieve() raised TimeoutError: upstream is slow",
    )
    assert "in retrieve" in results[1].details
    assert len(verbatim.heard) == 1


def test_retrieve_that_returns_nonsense_costs_only_that_question(lab, verbatim):
    verbatim.retrieve = lambda self, query: None if "hedgehog" in query else Verbatim.retrieve(self, query)
    records = lab(verbatim).records()
    assert column(records, "verdict") == ["correct", "unscored", "correct", "correct"]
    assert records[1].reason == "retrieve() returned None; return a str or a list of Recalled"


def test_an_error_is_remembered_and_not_tried_again(lab, verbatim):
    tries = []

    def retrieve(self, query):
        tries.append(query)
        raise ValueError("no")

    verbatim.retrieve = retrieve
    bench = lab(verbatim)
    bench.engine.result(bench.cases[0])
    with pytest.raises(BackendError, match=r"^retrieve\(\) raised ValueError: no$"):
        bench.engine.context(bench.cases[0])
    assert len(tries) == 1


def test_everything_that_a_backend_may_raise_stays_with_its_question(lab, verbatim):
    errors = iter([SystemExit(1), KeyboardInterrupt(), GeneratorExit(), asyncio.CancelledError()])

    def retrieve(self, query):
        raise next(errors)

    verbatim.retrieve = retrieve
    records = lab(verbatim).records()
    assert column(records, "verdict") == ["unscored"] * 4
    assert [record.reason.split()[-1] for record in records] == [
        "1", "KeyboardInterrupt", "GeneratorExit", "asyncio.exceptions.CancelledError"
    ]  # fmt: skip


# -- hangs ------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("short_grace")
@pytest.mark.parametrize("kind", ["sync", "async", "blocking async"])
def test_a_hang_makes_the_remaining_questions_unscored_and_names_the_call(lab, verbatim, kind):
    wake, closed = threading.Event(), []

    def sync(self, query):
        if "hedgehog" in query:
            wake.wait(30)
        return Verbatim.retrieve(self, query)

    async def sleeping(self, query):
        if "hedgehog" in query:
            await asyncio.sleep(30)
        return Verbatim.retrieve(self, query)

    async def blocking(self, query):
        return sync(self, query)

    verbatim.retrieve = {"sync": sync, "async": sleeping}.get(kind, blocking)
    verbatim.close = lambda self: closed.append(True)
    bench = lab(verbatim, timeout=0.2)
    started = time.monotonic()
    records = bench.records()
    assert column(records, "verdict") == ["correct", "unscored", "unscored", "unscored"]
    assert set(column(records[1:], "reason")) == {
        "retrieve() did not come back within 0.2 s (--himga-timeout)"
    }
    assert set(column(records[1:], "stage")) == {"retrieve"}
    assert time.monotonic() - started < AT_ONCE
    assert closed == [], "a memory that hangs is asked nothing more"

    # the next sample has a memory of its own, and works
    verbatim.retrieve = Verbatim.retrieve
    assert column(bench.records(), "verdict") == ["correct"] * 4
    wake.set()


def test_feeding_may_take_longer_than_one_call_may(lab, verbatim):
    def ingest(self, message):
        time.sleep(0.06)
        self.turns.append(message)

    verbatim.ingest = ingest
    verbatim.settle = lambda self: time.sleep(0.3)
    assert column(lab(verbatim, timeout=0.2).records(), "verdict") == ["correct"] * 4


def test_ingest_that_hangs_is_named(lab, verbatim):
    wake = threading.Event()
    verbatim.ingest = lambda self, message: wake.wait(30) if "hedgehog" in message.content else None
    records = lab(verbatim, timeout=0.2).records()
    wake.set()
    assert set(column(records, "reason")) == {"ingest() did not come back within 0.2 s (--himga-timeout)"}
    assert set(column(records, "stage")) == {"ingest"}


def test_ctrl_c_in_a_hanging_call_is_at_once_and_closing_does_not_wait_for_it(lab, verbatim):
    wake = threading.Event()
    verbatim.retrieve = lambda self, query: wake.wait(60) or "x"
    verbatim.close = lambda self: None
    bench = lab(verbatim, timeout=60)
    bench.engine.instance(bench.cases[0])
    main = threading.main_thread().ident
    threading.Timer(0.3, lambda: signal.pthread_kill(main, signal.SIGINT)).start()
    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        bench.engine.result(bench.cases[0])
    bench.engine.close()
    wake.set()
    assert time.monotonic() - started < AT_ONCE


# -- judges of the user's -----------------------------------------------------------------------------


@pytest.fixture
def judged_by(lab, verbatim):
    """Results of a sample judged by this function; ``name`` is its judge's name."""

    def make(judge, **settings):
        class Mine:
            name = "mine"

        Mine.judge = judge
        bench = lab(verbatim, **settings)
        bench.engine._judging._one = Mine()
        return bench.results()

    return make


def test_a_judge_gets_case_answer_and_context(judged_by):
    seen = []

    def judge(self, case, answer, context):
        seen.append((case.question.question, answer, context.recalled[0].turn_ids))
        return Verdict("correct", 1.0, "fine", votes=("a", "b"), metrics=(("f1", 0.5),))

    records = [result.record for result in judged_by(judge)]
    assert seen[0] == ("How many tulips?", None, ("D1:1",))
    assert column(records, "judge") == ["mine"] * 4
    assert records[0].votes == ["a", "b"]
    assert records[0].metrics["f1"] == 0.5


def test_an_async_judge_is_awaited(judged_by):
    async def judge(self, case, answer, context):
        await asyncio.sleep(0)
        return Verdict("wrong", 0.25)

    assert [(r.record.verdict, r.record.score) for r in judged_by(judge)] == [("wrong", 0.25)] * 4


@pytest.mark.parametrize(
    ("verdict", "hint"),
    [
        (None, "None"),
        ("correct", "str"),
        (True, "bool"),
        (("correct", 1.0), "tuple"),
        (Verdict("CORRECT", 1.0), "'CORRECT'"),
        (Verdict("yes", 1.0), "'yes'"),
        (Verdict("correct"), "None"),
        (Verdict("correct", float("nan")), "nan"),
        (Verdict("wrong", -0.1), "-0.1"),
        (Verdict("wrong", 1.1), "1.1"),
        (Verdict("correct", "1.0"), "1.0"),
        (Verdict("correct", 1.0, reason=None), "reason"),
        (Verdict("correct", 1.0, votes=None), "votes"),
        (Verdict("correct", 1.0, usage={"calls": 1}), "usage"),
        (Verdict("correct", 1.0, metrics=3), "metrics"),
        (Verdict("correct", 1.0, abstention="maybe"), "abstention"),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_anything_that_is_no_verdict_is_unscored_at_the_judge(judged_by, verdict, hint):
    results = judged_by(lambda self, case, answer, context: verdict)
    for result in results:
        assert (result.record.verdict, result.record.stage, result.record.score) == (
            "unscored",
            "judge",
            None,
        )
        assert result.record.reason.startswith("the judge mine ")
        assert hint in result.record.reason


def test_a_judge_that_raises_is_unscored_with_its_traceback_and_costs_one_question(judged_by):
    def judge(self, case, answer, context):
        if "hedgehog" in case.question.question:
            raise LookupError("no rubric")
        return Verdict("correct", 1.0)

    results = judged_by(judge)
    assert [result.record.verdict for result in results] == ["correct", "unscored", "correct", "correct"]
    assert results[1].record.reason == "judge() raised LookupError: no rubric"
    assert results[1].record.stage == "judge"
    assert "in judge" in results[1].details
    assert results[1].context is not None


def test_a_judge_that_hangs_costs_one_question_and_not_the_memory(judged_by, verbatim):
    wake = threading.Event()

    def judge(self, case, answer, context):
        if "hedgehog" in case.question.question:
            wake.wait(30)
        return Verdict("correct", 1.0)

    results = judged_by(judge, timeout=0.2)
    wake.set()
    assert [result.record.verdict for result in results] == ["correct", "unscored", "correct", "correct"]
    assert results[1].record.reason == "judge() did not come back within 0.2 s (--himga-timeout)"
    assert results[1].record.stage == "judge"
    assert len(verbatim.heard) == 1


@pytest.mark.parametrize("value", ["unscored", "n/a"])
def test_a_judge_may_decline_with_a_reason(judged_by, value):
    results = judged_by(lambda self, case, answer, context: Verdict(value, 0.5, "no rubric for this type"))
    assert [(r.record.verdict, r.record.score, r.record.reason) for r in results] == [
        (value, None, "no rubric for this type")
    ] * 4


# -- memories that rewrite ----------------------------------------------------------------------------


def test_a_memory_that_rewrites_everything_is_unscored_and_told_what_to_do(lab, verbatim):
    asked = []
    verbatim.retrieve = lambda self, query: asked.append(query) or f"The user likes gardens ({query})"
    records = lab(verbatim).records()
    assert column(records, "verdict") == ["unscored"] * 4
    assert set(column(records, "reason")) == {
        "the memory rewrites text: return Recalled with turn_ids, or judge answers"
    }
    assert sorted(asked) == sorted(set(asked)), "looking ahead asks nothing twice"


def test_an_outage_while_looking_ahead_leaves_open_whether_the_memory_rewrites(lab, verbatim):
    """It may be that the one context which is not there is the one that quotes."""

    def retrieve(self, query):
        if query == "Which colour?":
            raise ConnectionError("the store is offline")
        return f"The user likes gardens ({query})"

    verbatim.retrieve = retrieve
    records = lab(verbatim).records()
    assert column(records, "verdict") == ["unscored"] * 4
    offline = "retrieve() raised ConnectionError: the store is offline"
    untold = (
        "this text quotes no turn of the history, and another question, which might have told why, failed: "
        f"{offline}"
    )
    assert column(records, "reason") == [untold, untold, offline, untold]


def test_the_time_of_looking_ahead_is_not_the_judges(lab, verbatim):
    def retrieve(self, query):
        time.sleep(0.1)
        return f"The user likes gardens ({query})"

    verbatim.retrieve = retrieve
    first, *others = lab(verbatim).records()
    assert first.ms["judge"] < sum(record.ms["retrieve"] for record in others)


def test_one_context_that_quotes_proves_that_the_others_are_misses(lab, verbatim):
    verbatim.retrieve = lambda self, query: (
        "Ada: The tulips came up purple." if query == "How many of which colour?" else "Nothing about that."
    )
    records = lab(verbatim).records()
    assert column(records, "verdict") == ["wrong"] * 4
    assert column(records, "score") == [0.0, 0.0, 0.0, 0.5]


def test_empty_contexts_are_misses_and_not_rewriting(lab, verbatim):
    verbatim.retrieve = lambda self, query: " \n"
    assert column(lab(verbatim).records(), "verdict") == ["wrong"] * 4


def test_looking_ahead_stops_at_the_first_quotation(lab, verbatim):
    asked = []

    def retrieve(self, query):
        asked.append(query)
        return "My hedgehog is called Bramble." if "hedgehog" in query else "No idea."

    verbatim.retrieve = retrieve
    bench = lab(verbatim)
    assert bench.engine.result(bench.cases[0]).record.verdict == "wrong"
    assert asked == ["How many tulips?", "What is the hedgehog called?"]


def test_looking_ahead_stays_among_the_selected_questions(lab, verbatim):
    asked = []
    verbatim.retrieve = lambda self, query: asked.append(query) or "No idea."
    bench = lab(verbatim, expect=False)
    bench.engine.expect(bench.cases[:2])
    assert bench.engine.result(bench.cases[0]).record.verdict == "unscored"
    assert asked == ["How many tulips?", "What is the hedgehog called?"]


def test_looking_ahead_over_a_question_that_raises_is_no_harm(lab, verbatim):
    def retrieve(self, query):
        if "hedgehog" in query:
            raise ValueError("no")
        return "The tulips came up purple." if "colour" in query else "No idea."

    verbatim.retrieve = retrieve
    assert column(lab(verbatim).records(), "verdict") == ["wrong", "unscored", "correct", "wrong"]


# -- what goes into the record --------------------------------------------------------------------------


def test_a_list_longer_than_k_is_cut_and_the_number_returned_is_kept(lab, verbatim):
    results = lab(verbatim, top_k=2).results()
    assert [result.aside["returned"] for result in results] == [6] * 4
    assert [len(result.record.recalled) for result in results] == [2] * 4
    assert results[0].record.verdict == "correct"
    assert results[2].record.verdict == "wrong"


def test_surrogates_and_foreign_numbers_of_a_backend_become_plain_data(lab, verbatim):
    import numpy as np

    verbatim.version = "\ud800"
    verbatim.retrieve = lambda self, query: [Recalled("a \udfff", ["D1:1"], score=np.float32(0.5))]
    verbatim.answer = lambda self, question: "\ud83d"
    result = lab(verbatim).results()[0]
    assert result.record.answer == "\\ud83d"
    assert result.record.recalled == [{"turns": ["D1:1"], "sessions": [], "score": 0.5}]
    assert type(result.record.recalled[0]["score"]) is float
    assert result.aside["version"] == "\\ud800"


def test_times_are_booked_by_stage(lab, verbatim):
    verbatim.settle = lambda self: time.sleep(0.02)
    record = lab(verbatim).records()[0]
    assert record.ms["ingest"] >= 20
    assert record.ms["retrieve"] >= 0
    assert set(record.ms) == {"ingest", "retrieve", "judge"}
