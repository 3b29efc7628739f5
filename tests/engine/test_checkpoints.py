"""A history is fed once, exactly up to each question's checkpoint, and a sample lives as long as it is needed."""

from __future__ import annotations

import gc
import threading
import weakref
from dataclasses import replace
from itertools import count

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_himga.data.schema import Case
from pytest_himga.errors import BackendError, DatasetError
from pytest_himga.judge.verdict import Verdict
from pytest_himga.memory.protocol import Recalled, Usage

BROKEN = "mini.json, sample garden: sessions is 7, expected a list; mend the file"


def noting(kind):
    """Give a class of memories pages of its own."""
    kind.pages = []
    return kind


class Diary:
    """A memory that notes in ``pages`` how many sessions it had heard when it was asked; shared by all instances."""

    pages: list

    def __init__(self):
        self.heard = []

    def ingest_session(self, session):
        self.heard.append(session)

    def settle(self):
        self.pages.append(("settle", len(self.heard)))

    def retrieve(self, query):
        self.pages.append(("retrieve", query, len(self.heard)))
        return [Recalled("a day", [turn.turn_id for turn in day.messages]) for day in self.heard]

    def reset(self):
        self.heard.clear()
        self.pages.append(("reset",))


class AnsweringDiary(Diary):
    def answer(self, question):
        self.pages.append(("answer", question, len(self.heard)))
        return "an answer"


@pytest.fixture
def diary():
    """A fresh class, so that tests do not share pages."""
    return noting(type("Mine", (Diary,), {}))


def asked(pages, kind="retrieve"):
    """How many sessions were known when each question was asked."""
    return {page[1]: page[2] for page in pages if page[0] == kind}


def times(pages, word):
    return sum(page[0] == word for page in pages)


def run_in_order(bench, order):
    """The results of the questions, whose items come in this order, by their place in the sample."""
    cases = [bench.cases[n] for n in order]
    bench.engine.expect(cases)
    found = {n: bench.engine.result(bench.cases[n]) for n in order}
    bench.engine.release(bench.cases[0].sample_id)
    return found


# -- any order of the items ---------------------------------------------------------------------------


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.integers(0, 3) | st.none(), min_size=4, max_size=4),
    st.lists(st.integers(0, 3), min_size=1, unique=True),
    st.booleans(),
)
def test_in_any_order_each_history_is_fed_once_and_each_question_hears_its_own_part(
    lab, at_checkpoints, checkpoints, order, answers
):
    mine = noting(type("Mine", (AnsweringDiary if answers else Diary,), {}))
    sample = at_checkpoints(*checkpoints)
    run_in_order(lab(mine, sample=sample, expect=False), order)

    due = {sample.qa_pairs[n].question: 3 if checkpoints[n] is None else checkpoints[n] for n in order}
    assert asked(mine.pages) == due
    assert asked(mine.pages, "answer") == (due if answers else {})
    assert times(mine.pages, "reset") == 1
    assert times(mine.pages, "retrieve") == len(order)
    assert times(mine.pages, "settle") == len({page[1] for page in mine.pages if page[0] == "settle"})


@pytest.mark.parametrize("order", [[3, 2, 1, 0], [3, 0, 2, 1], [1, 3, 0, 2]])
def test_the_results_are_those_of_the_natural_order(lab, diary, at_checkpoints, order):
    sample = at_checkpoints(1, 2, 3, None)
    plain = run_in_order(lab(diary, sample=sample, expect=False), [0, 1, 2, 3])
    mixed = run_in_order(lab(diary, sample=sample, expect=False), order)
    for n, result in mixed.items():
        ours, theirs = (vars(found.record) | {"ms": None} for found in (result, plain[n]))
        assert ours == theirs


def test_each_scope_is_told_so_that_feeding_twice_would_show(lab, diary, at_checkpoints):
    found = run_in_order(lab(diary, sample=at_checkpoints(1, 2, 3, None), expect=False), [3, 1, 0, 2])
    assert len({result.aside["scope"] for result in found.values()}) == 1


def test_an_instance_that_is_the_backend_is_reset_once_in_any_order(lab, diary, at_checkpoints):
    bench = lab(diary(), fixture=True, sample=at_checkpoints(1, 2, 3, None), expect=False)
    run_in_order(bench, [3, 1, 0, 2])
    assert times(diary.pages, "reset") == 1
    assert sorted(asked(diary.pages).values()) == [1, 2, 3, 3]


def test_only_selected_questions_are_asked_on_the_way(lab, diary, at_checkpoints, sample):
    bench = lab(diary, sample=at_checkpoints(1, 2, 3, None), expect=False)
    run_in_order(bench, [3, 1])
    assert asked(diary.pages) == {sample.qa_pairs[1].question: 2, sample.qa_pairs[3].question: 3}


def test_what_a_question_cost_is_booked_to_itself_however_it_came_to_be_asked(lab, at_checkpoints):
    @noting
    class Paid(Diary):
        total = Usage()

        def ingest_session(self, session):
            super().ingest_session(session)
            self.total += Usage(calls=1)

        def retrieve(self, query):
            self.total += Usage(calls=len(query))
            return super().retrieve(query)

        def usage(self):
            return self.total

    found = run_in_order(lab(Paid, sample=at_checkpoints(1, 2, 3, None), expect=False), [3, 0, 2, 1])
    for result in found.values():
        assert result.record.usage["retrieve"]["calls"] == len(result.record.question)
        assert result.record.usage["ingest"]["calls"] == 3
        assert set(result.record.ms) == {"ingest", "retrieve", "judge"}


# -- what goes wrong on the way -----------------------------------------------------------------------


def fails_for(word, error):
    def retrieve(self, query):
        if word in query:
            raise error
        return Diary.retrieve(self, query)

    return retrieve


def test_an_error_on_the_way_is_that_of_the_question_that_met_it(lab, diary, at_checkpoints):
    diary.retrieve = fails_for("hedgehog", ValueError("no"))
    found = run_in_order(lab(diary, sample=at_checkpoints(1, 2, 3, None), expect=False), [3, 2, 1, 0])
    verdicts = {n: result.record.verdict for n, result in found.items()}
    assert verdicts == {0: "correct", 1: "unscored", 2: "correct", 3: "correct"}
    assert found[1].record.reason == "retrieve() raised ValueError: no"
    assert found[1].record.stage == "retrieve"
    assert times(diary.pages, "reset") == 1


def test_a_broken_answer_on_the_way_is_that_questions_too(lab, at_checkpoints):
    @noting
    class Mine(AnsweringDiary):
        def answer(self, question):
            return None if "hedgehog" in question else "an answer"

    found = run_in_order(lab(Mine, sample=at_checkpoints(1, 2, 3, None), expect=False), [3, 2, 1, 0])
    assert [found[n].record.verdict for n in range(4)] == ["correct", "unscored", "correct", "correct"]
    assert found[1].record.reason == "answer() returned None; return a str"


def test_a_memory_that_hangs_on_the_way_is_gone_for_all_that_come_later(lab, diary, at_checkpoints):
    wake = threading.Event()
    diary.retrieve = lambda self, query: wake.wait(30) if "hedgehog" in query else Diary.retrieve(self, query)
    bench = lab(diary, sample=at_checkpoints(1, 2, 3, None), expect=False, timeout=0.2)
    found = run_in_order(bench, [3, 2, 1, 0])
    wake.set()
    assert [found[n].record.verdict for n in range(4)] == ["correct", "unscored", "unscored", "unscored"]
    for n in (1, 2, 3):
        assert found[n].record.reason == "retrieve() did not come back within 0.2 s (--himga-timeout)"


def test_feeding_that_fails_half_way_leaves_what_was_asked_before(lab, diary, at_checkpoints):
    def ingest_session(self, session):
        if session.session_id == "s3":
            raise ConnectionError("the disk is full")
        Diary.ingest_session(self, session)

    diary.ingest_session = ingest_session
    found = run_in_order(lab(diary, sample=at_checkpoints(1, 2, 3, None), expect=False), [2, 0, 3, 1])
    assert [found[n].record.verdict for n in range(4)] == ["correct", "correct", "unscored", "unscored"]
    assert found[3].record.reason == "ingest_session() raised ConnectionError: the disk is full"


def test_a_question_whose_turn_is_over_is_not_asked_on_the_way(lab, diary, at_checkpoints, sample):
    """It may have been skipped, or have killed the worker that this one stands in for."""
    bench = lab(diary, sample=at_checkpoints(1, 2, 3, None))
    bench.engine.result(bench.cases[2])
    assert asked(diary.pages) == {sample.qa_pairs[2].question: 3}
    assert times(diary.pages, "settle") == 1


@pytest.mark.parametrize("restarted_at", [1, 2, 3])
def test_a_memory_that_rewrites_does_not_make_a_new_worker_ask_what_its_forerunner_asked(
    lab, diary, restarted_at
):
    queries = []
    diary.retrieve = lambda self, query: queries.append(query) or "rewritten"
    bench = lab(diary)
    bench.engine.result(bench.cases[restarted_at])
    assert queries == [case.question.question for case in bench.cases[restarted_at:]]


# -- asking again -------------------------------------------------------------------------------------


def test_a_rerun_is_asked_of_a_memory_that_heard_no_more_than_it_may(lab, diary, at_checkpoints, sample):
    bench = lab(diary, sample=at_checkpoints(1, 2, 3, None))
    for case in bench.cases:
        bench.engine.result(case)
    diary.pages.clear()
    bench.engine.forget(bench.cases[1])
    assert bench.engine.result(bench.cases[1]).record.verdict == "correct"
    assert asked(diary.pages) == {sample.qa_pairs[1].question: 2}
    assert times(diary.pages, "reset") == 1


def test_a_rerun_at_the_checkpoint_feeds_nothing(lab, diary, at_checkpoints):
    bench = lab(diary, sample=at_checkpoints(1, 2, 3, None))
    for _ in range(3):
        bench.engine.forget(bench.cases[0])
        bench.engine.result(bench.cases[0])
    assert times(diary.pages, "reset") == 1
    assert times(diary.pages, "retrieve") == 3


def test_what_was_forgotten_is_not_asked_of_a_memory_that_heard_more(lab, diary, at_checkpoints, sample):
    bench = lab(diary, sample=at_checkpoints(2, None, 1, None))
    bench.engine.result(bench.cases[0])
    bench.engine.forget(bench.cases[2])
    diary.pages.clear()
    bench.engine.result(bench.cases[1])
    bench.engine.result(bench.cases[2])
    assert asked(diary.pages) == {sample.qa_pairs[1].question: 3, sample.qa_pairs[2].question: 1}


def test_the_live_memory_of_an_earlier_checkpoint_is_a_fresh_one(lab, diary, at_checkpoints):
    bench = lab(diary, sample=at_checkpoints(1, 2, 3, None), expect=False)
    late = bench.engine.instance(bench.cases[3])
    early = bench.engine.instance(bench.cases[0])
    assert (len(late.heard), len(early.heard)) == (3, 1)
    assert len(bench.engine.retrieve(bench.cases[1], "anything")) == 2
    assert times(diary.pages, "reset") == 2


def test_a_look_for_quotations_goes_by_checkpoints_and_leaves_no_answer_behind(lab, at_checkpoints, sample):
    """Contexts alone are looked at, but a memory that is past a question can no longer answer it."""

    @noting
    class Mine(AnsweringDiary):
        def retrieve(self, query):
            super().retrieve(query)
            return "The tulips came up purple." if len(self.heard) == 3 else "It rewrites what it heard."

    bench = lab(Mine, sample=at_checkpoints(1, 2, 2, None), judge="evidence")
    records = bench.records()
    assert [record.verdict for record in records] == ["wrong"] * 4
    assert [record.answer for record in records] == ["an answer"] * 4
    assert asked(Mine.pages, "answer") == asked(Mine.pages)
    assert times(Mine.pages, "reset") == 1


# -- a sample is decoded when it is needed ------------------------------------------------------------


class Shelf:
    """A source that decodes its sample whenever nobody holds it any more; ``decoded`` counts."""

    def __init__(self, make):
        self._make = make
        self._alive = lambda: None
        self.decoded = 0

    def sample(self):
        sample = self._alive()
        if sample is None:
            self.decoded += 1
            sample = self._make()
            self._alive = weakref.ref(sample)
        return sample

    @property
    def is_held(self):
        gc.collect()
        return self._alive() is not None


def from_shelf(bench, make, step=1):
    """The bench, with its questions' sample on a shelf, in their order or (``step`` -1) from the last on."""
    shelf = Shelf(make)
    bench.cases = [replace(case, source=shelf) for case in bench.cases][::step]
    bench.engine.expect(bench.cases)
    return bench, shelf


@pytest.fixture
def fresh_sample(at_checkpoints, sample):
    """Makes equal samples, each its own object."""

    def make():
        return replace(at_checkpoints(1, 2, 3, None), raw={"n": object()})

    return make


def test_a_sample_is_decoded_once_and_let_go_of_with_its_last_question(lab, diary, fresh_sample):
    bench, shelf = from_shelf(lab(diary, sample=fresh_sample(), expect=False), fresh_sample)
    assert shelf.decoded == 0
    found = [bench.engine.result(case) for case in bench.cases]
    assert (shelf.decoded, shelf.is_held) == (1, True)
    bench.engine.release(bench.cases[0].sample_id)
    assert not shelf.is_held
    assert [result.record.verdict for result in found] == ["correct"] * 4


@pytest.fixture
def agents_sample(fresh_sample):
    """Makes equal samples whose sessions and questions have agents."""

    def make():
        made = fresh_sample()
        made.sessions = [replace(session, agent_id="a") for session in made.sessions]
        made.qa_pairs = [replace(question, as_agent="b") for question in made.qa_pairs]
        return made

    return make


class Lazy(list):
    """A list that is loaded as it is read, and cannot be."""

    def __iter__(self):
        raise ValueError("no")


@noting
class Troubled(AnsweringDiary):
    """Fails for two questions in two ways, misses another, and cannot be closed."""

    def retrieve(self, query):
        if "hedgehog" in query:
            raise ValueError("no")
        if "tulips" in query:
            return Lazy()
        return "nothing of that" if "colour" in query else super().retrieve(query)

    def as_agent(self, agent_id):
        return self

    def close(self):
        raise OSError("the disk is gone")


class Keeper:
    """A judge that keeps all it is given."""

    name = "keeper"

    def __init__(self):
        self.kept = []

    def judge(self, case, answer, context):
        self.kept.append((case, answer, context))
        return Verdict("correct", 1.0)


@pytest.mark.parametrize("judge", [None, Keeper()], ids=["lexical", "the user's"])
def test_neither_errors_nor_judges_nor_results_hold_a_sample(lab, agents_sample, judge):
    bench, shelf = from_shelf(lab(Troubled, sample=agents_sample(), expect=False), agents_sample, step=-1)
    bench.engine._judging._one = judge
    kept = [bench.engine.result(case) for case in bench.cases]
    for call, about in (
        (bench.engine.context, bench.cases[2]),
        (bench.engine.context, bench.cases[3]),
        (bench.engine.release, bench.cases[0].sample_id),
    ):
        assert shelf.is_held
        with pytest.raises(BackendError) as caught:
            call(about)
        kept.append(caught)
    assert not shelf.is_held
    assert [str(error.value) for error in kept[4:]] == [
        "retrieve() raised ValueError: no",
        "reading what retrieve() returned raised ValueError: no",
        "close() raised OSError: the disk is gone",
    ]


def test_a_hang_does_not_hold_a_sample(lab, diary, fresh_sample):
    wake = threading.Event()
    diary.retrieve = lambda self, query: wake.wait(30)
    bench, shelf = from_shelf(lab(diary, sample=fresh_sample(), expect=False, timeout=0.2), fresh_sample)
    for case in bench.cases:
        bench.engine.result(case)
    bench.engine.release(bench.cases[0].sample_id)
    assert not shelf.is_held
    wake.set()


def test_a_new_value_of_the_backends_fixture_lets_go_of_the_old_run(lab, diary, fresh_sample):
    bench, shelf = from_shelf(lab(diary(), fixture=True, sample=fresh_sample(), expect=False), fresh_sample)
    bench.engine.result(bench.cases[0])
    bench.engine.use_fixture(bench.cases[0], diary())
    assert not shelf.is_held


@pytest.mark.parametrize("first", ["result", "judge", "context", "answer", "retrieve", "instance"])
@pytest.mark.parametrize("kind", ["class", "function"])
def test_a_sample_that_cannot_be_read_makes_its_questions_unscored_with_its_own_sentence(
    lab, diary, sample, first, kind
):
    def broken():
        raise DatasetError(BROKEN)

    made = []
    backend = type("Counted", (diary,), {"__init__": lambda self: made.append(self)})
    bench, shelf = from_shelf(lab(backend if kind == "class" else lambda: backend(), expect=False), broken)
    more = ["anything"] if first == "retrieve" else []
    if first == "result" or (first, kind) == ("judge", "class"):  # a class tells by itself if it answers
        getattr(bench.engine, first)(bench.cases[0])
    else:
        with pytest.raises(BackendError) as caught:
            getattr(bench.engine, first)(bench.cases[0], *more)
        assert str(caught.value) == BROKEN
    results = bench.results()
    assert [result.record.verdict for result in results] == ["unscored"] * 4
    assert {result.record.reason for result in results} == {BROKEN}
    assert {(r.record.stage, r.record.judge, r.details) for r in results} == {(None, "", "")}
    assert [result.record.evidence for result in results] == [case.brief.refs for case in bench.cases]
    assert made == []
    assert shelf.decoded == 1


def test_of_a_sample_that_cannot_be_read_what_needs_no_sample_works_all_the_same(lab, diary):
    def broken():
        raise DatasetError(BROKEN)

    bench, shelf = from_shelf(lab(diary, expect=False), broken)
    bench.engine.forget(bench.cases[0])
    result = bench.engine.unasked(bench.cases[0], "its setup failed: boom")
    assert (result.record.verdict, result.record.reason) == ("unscored", "its setup failed: boom")
    assert result.aside["blank"] == 0
    bench.engine.release(bench.cases[0].sample_id)
    assert shelf.decoded == 0


def test_a_file_that_breaks_during_the_run_costs_nothing_that_is_in_memory(lab, diary, fresh_sample):
    """Not even where a source gives no second look at what somebody holds."""
    looks = count()

    class Once:
        def sample(self):
            if next(looks):
                raise DatasetError(BROKEN)
            return fresh_sample()

    bench = lab(diary, sample=fresh_sample(), expect=False)
    once = Once()
    bench.cases = [replace(case, source=once) for case in bench.cases]
    bench.engine.expect(bench.cases)
    first = [bench.engine.result(case).record.verdict for case in bench.cases]
    bench.engine.release(bench.cases[0].sample_id)
    bench.engine.forget(bench.cases[0])
    again = bench.engine.result(bench.cases[0])
    assert first == ["correct"] * 4
    assert (again.record.verdict, again.record.reason) == ("unscored", BROKEN)


def test_a_question_that_is_not_where_the_index_says_is_unscored_alone(lab, diary, fresh_sample):
    def moved():
        made = fresh_sample()
        made.qa_pairs[1] = replace(made.qa_pairs[1], uid="another-123456")
        del made.qa_pairs[3]
        return made

    bench, _ = from_shelf(lab(diary, sample=fresh_sample(), expect=False), moved)
    results = run_in_order(bench, [2, 1, 0, 3])
    assert [results[n].record.verdict for n in range(4)] == ["correct", "unscored", "correct", "unscored"]
    assert results[1].record.reason == (
        f"{bench.cases[1].id}: the file has another question in its place than when it was indexed; run it again"
    )


def test_the_record_names_the_evidence_that_only_decoding_tells(lab, diary, sample):
    bench = lab(diary, expect=False)
    bench.cases = [
        Case(case.dataset, case.sample_name, replace(case.brief, refs=[]), case.position, case.source)
        for case in bench.cases
    ]
    bench.engine.expect(bench.cases)
    early = bench.engine.unasked(bench.cases[3], "skipped")
    records = bench.records()
    assert early.record.evidence == []
    assert [record.evidence for record in records] == [["D1:1"], ["D2:1"], ["D5:1"], ["D1:1", "D5:1"]]
