"""How one memory is made, fed, asked and closed: which methods are called, with what, in which thread."""

from __future__ import annotations

import asyncio
import sqlite3
import threading

import pytest

from pytest_himga.memory.protocol import Recalled, Usage
from pytest_himga.memory.reference import OracleMemory


class Diary:
    """A memory that writes down each call in ``Diary.pages``, shared by all instances of a test."""

    pages: list

    def __init__(self):
        self.write("made")

    def write(self, *entry):
        type(self).pages.append(entry)

    def ingest(self, message, session):
        self.write("ingest", session.session_id, message.turn_id)

    def retrieve(self, query):
        self.write("retrieve", query)
        return "nothing"

    def reset(self):
        self.write("reset")


@pytest.fixture
def diary():
    """A fresh class, so that tests do not share pages."""
    return type("Mine", (Diary,), {"pages": []})


INGESTED = [("ingest", f"s{s}", f"D{s}:{t}") for s in (1, 2, 3) for t in (1, 2)]
QUESTIONS = ["How many tulips?", "What is the hedgehog called?", "Which colour?", "How many of which colour?"]


# -- the life of a memory -------------------------------------------------------------------------


def test_it_is_made_reset_fed_in_order_once_and_asked_each_question(lab, diary):
    lab(diary).results()
    assert diary.pages == [("made",), ("reset",), *INGESTED, *(("retrieve", q) for q in QUESTIONS)]


def test_settle_comes_after_the_last_turn_and_close_after_the_last_question(lab, diary):
    diary.settle = lambda self: self.write("settle")
    diary.close = lambda self: self.write("close")
    lab(diary).results()
    assert diary.pages[8:] == [("settle",), *(("retrieve", q) for q in QUESTIONS), ("close",)]


def test_an_instance_is_reset_before_each_sample_and_never_closed(lab, diary):
    diary.close = lambda self: self.write("close")
    instance = diary()
    for _ in range(2):
        lab(instance, fixture=True).results()
    once = [("reset",), *INGESTED, *(("retrieve", q) for q in QUESTIONS)]
    assert diary.pages == [("made",), *once, *once]


def test_a_fixture_that_yields_a_factory_is_used_as_one(lab, diary):
    diary.close = lambda self: self.write("close")
    bench = lab(diary, fixture=True)
    bench.results()
    bench.results()
    assert [page for page in diary.pages if page in {("made",), ("close",)}] == [("made",), ("close",)] * 2


def test_closing_the_engine_closes_what_was_not_released(lab, diary):
    diary.close = lambda self: self.write("close")
    bench = lab(diary)
    bench.engine.result(bench.cases[0])
    assert ("close",) not in diary.pages
    bench.engine.close()
    assert diary.pages[-1] == ("close",)


def test_a_memory_whose_close_raises_does_not_keep_the_engine_from_closing(lab, diary):
    def close(self):
        raise OSError("the disk is gone")

    diary.close = close
    bench = lab(diary)
    bench.engine.result(bench.cases[0])
    before = threading.active_count()
    bench.engine.close()
    assert threading.active_count() <= before


def test_a_factory_function_gets_scope_and_options(lab, diary):
    made = []

    def make(scope, user: int = 0, *, region="eu"):
        made.append((scope, user, region))
        return diary()

    lab(make, options={"user": "7"}).results()
    ((scope, user, region),) = made
    assert (user, region) == (7, "eu")
    assert scope.startswith("himga-run-")


@pytest.mark.parametrize("how", ["async factory", "async class method", "sync factory of an awaitable"])
def test_a_memory_may_be_made_asynchronously(lab, diary, how):
    loops = []

    async def make():
        loops.append(asyncio.get_running_loop())
        return diary()

    factory = {"async factory": make, "sync factory of an awaitable": lambda: make()}.get(how)
    if factory is None:
        diary.make = staticmethod(make)
        factory = diary.make
    records = lab(factory).records()
    assert [record.verdict for record in records] == ["unscored"] * 4  # "nothing" quotes no turn
    assert diary.pages[:2] == [("made",), ("reset",)]
    assert len(loops) == 1


def test_the_blank_turn_and_its_number_are_left_out(lab, diary, sample):
    sample.sessions[1].messages[0].content = "  "
    lab(diary).results()
    assert [page[2] for page in diary.pages if page[0] == "ingest"] == [
        "D1:1",
        "D1:2",
        "D2:2",
        "D3:1",
        "D3:2",
    ]


# -- how ingest is called -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ingest", "got"),
    [
        (lambda self, message: self.write(message.turn_id), [("D1:1",), ("D1:2",)]),
        (lambda self, message, session: self.write(session.session_id), [("s1",), ("s1",)]),
        (lambda self, *args: self.write(*(type(a).__name__ for a in args)), [("Message", "Session")] * 2),
        (lambda self, turn, /, day, *, x=0: self.write(turn.role, day.date_str), [("Ada", "1 May"), ("Ben", "1 May")]),
    ],
    ids=["message", "message and session", "*args", "other names"],
)  # fmt: skip
def test_ingest_takes_the_session_if_it_has_room_for_it(lab, diary, ingest, got):
    diary.ingest = ingest
    lab(diary).results()
    assert diary.pages[2:4] == got


def test_ingest_session_is_used_instead_of_ingest(lab, diary):
    diary.ingest_session = lambda self, session: self.write(
        session.session_id, len(session.messages), session.date_str
    )
    lab(diary).results()
    assert diary.pages[2:5] == [("s1", 2, "1 May"), ("s2", 2, "2 May"), ("s3", 2, "9 May")]
    assert not [page for page in diary.pages if page[0] == "ingest"]


def test_messages_carry_speaker_text_neutral_id_and_date(lab, diary):
    diary.ingest = lambda self, message, session: self.write(
        message.role, message.content, message.turn_id, message.date_str, session.date_str, session.title
    )
    lab(diary).results()
    assert diary.pages[4] == ("Ben", "My hedgehog is called Bramble.", "D2:1", "2 May", "2 May", None)


# -- how retrieve is called -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("retrieve", "got"),
    [
        (lambda self, query: self.write({}) or "x", {}),
        (lambda self, query, k: self.write({"k": k}) or "x", {"k": 7}),
        (lambda self, query, *, date: self.write({"date": date}) or "x", {"date": "9 May"}),
        (
            lambda self, query, k=3, date=None: self.write({"k": k, "date": date}) or "x",
            {"k": 7, "date": "9 May"},
        ),
        (lambda self, query, **more: self.write(more) or "x", {"k": 7, "date": "9 May"}),
        (lambda self, query, limit=3: self.write({"limit": limit}) or "x", {"limit": 3}),
        (lambda self, *queries: self.write({}) or "x", {}),
    ],
    ids=["query", "k", "date", "both", "**kwargs", "other", "*args"],
)
def test_retrieve_gets_date_and_k_where_it_takes_them(lab, diary, retrieve, got):
    diary.retrieve = retrieve
    lab(diary, top_k=7).results()
    assert diary.pages[-1] == (got,)


def test_the_date_is_the_questions_own_or_that_of_the_last_session_before_it(lab, diary, at_checkpoints):
    diary.retrieve = lambda self, query, date: self.write("asked on", date) or "x"
    lab(diary, sample=at_checkpoints(1, 2, None, None)).results()
    assert [page[1] for page in diary.pages if page[0] == "asked on"][:3] == ["1 May", "2 May", "9 May"]

    diary.pages.clear()
    dated = at_checkpoints(None, None, None, None)
    dated.raw["question_date"] = "2023/05/30 (Tue) 21:56"
    lab(diary, sample=dated).results()
    assert {page[1] for page in diary.pages if page[0] == "asked on"} == {"2023/05/30 (Tue) 21:56"}


def test_an_async_retrieve_is_inspected_just_the_same(lab, diary):
    async def retrieve(self, query, k):
        self.write("async", k)
        return [Recalled("My hedgehog is called Bramble.", ["D2:1"])]

    diary.retrieve = retrieve
    records = lab(diary, top_k=3).records()
    assert [record.verdict for record in records] == ["wrong", "correct", "wrong", "wrong"]
    assert diary.pages[-1] == ("async", 3)


# -- threads --------------------------------------------------------------------------------------


class SqliteMemory:
    """What a home-made memory looks like: a connection made in ``__init__``, which knows its thread."""

    def __init__(self):
        self.db = sqlite3.connect(":memory:")
        self.db.execute("create table turns (id, text)")

    def ingest(self, message):
        self.db.execute("insert into turns values (?, ?)", (message.turn_id, message.content))

    def settle(self):
        self.db.commit()

    def retrieve(self, query):
        rows = self.db.execute("select id, text from turns order by rowid")
        return [Recalled(text, [turn_id]) for turn_id, text in rows]

    def reset(self):
        self.db.execute("delete from turns")

    def close(self):
        self.db.close()


def test_a_sqlite_connection_made_in_init_works_to_the_end(lab):
    bench = lab(SqliteMemory)
    assert [record.verdict for record in bench.records()] == ["correct"] * 4


def test_every_method_of_a_sync_memory_runs_in_one_thread(lab):
    threads = set()

    class Where:
        def __init__(self):
            threads.add(threading.get_ident())

        def note(self, *args):
            threads.add(threading.get_ident())

        ingest = reset = settle = close = note

        def retrieve(self, query):
            return str(threads.add(threading.get_ident()))

        def usage(self):
            self.note()
            return Usage()

    lab(Where).results()
    assert len(threads) == 1
    assert threading.get_ident() not in threads


def test_two_samples_have_two_threads_that_end(lab, no_thread_left):
    threads = []

    class Where(SqliteMemory):
        def __init__(self):
            threads.append(threading.current_thread())
            super().__init__()

    bench = lab(Where)
    bench.results()
    bench.results()
    bench.engine.close()
    assert len(set(threads)) == 2


def test_every_method_of_an_async_memory_runs_on_one_loop_also_over_samples(lab):
    loops = []

    class Where:
        def __init__(self):
            loops.append(asyncio.get_running_loop())  # an async client is often made like this

        async def note(self, *args):
            loops.append(asyncio.get_running_loop())

        ingest = settle = close = reset = note

        async def retrieve(self, query):
            await self.note()
            return []

    bench = lab(Where)
    bench.results()
    bench.results()
    assert len({id(loop) for loop in loops}) == 1
    assert len(loops) == 2 * (1 + 1 + 6 + 1 + 4 + 1)


# -- answers and usage ------------------------------------------------------------------------------


def test_a_memory_that_answers_is_asked_after_it_retrieved_and_judged_by_its_answer(lab, diary):
    def answer(self, question):
        self.write("answer", question)
        return "an answer"

    diary.answer = answer
    records = lab(diary).records()
    assert diary.pages[8:10] == [("retrieve", QUESTIONS[0]), ("answer", QUESTIONS[0])]
    assert [(record.verdict, record.judge, record.answer) for record in records] == [
        ("correct", "lexical", "an answer")
    ] * 4


@pytest.mark.parametrize(("value", "kind"), [(None, "None"), (7, "int"), (b"x", "bytes")])
def test_an_answer_that_is_no_text_makes_that_question_unscored(lab, diary, value, kind):
    diary.answer = lambda self, question: value if question == QUESTIONS[1] else "an answer"
    records = lab(diary).records()
    assert [record.verdict for record in records] == ["correct", "unscored", "correct", "correct"]
    assert records[1].reason == f"answer() returned {kind}; return a str"
    assert records[1].stage == "answer"


class Counting:
    """Counts what it spends, in totals since it was made: one call a turn, two a retrieve, five an answer."""

    def __init__(self):
        self.total = Usage(calls=100, tokens_in=1000)  # making it cost something too

    def spend(self, calls):
        self.total += Usage(calls, 10 * calls, calls, 0.5 * calls)

    def ingest(self, message):
        self.spend(1)

    def retrieve(self, query):
        self.spend(2)
        return "nothing"

    def answer(self, question):
        self.spend(5)
        return "an answer"

    def usage(self):
        return self.total

    def reset(self):
        pass


def spent(record, stage):
    return record.usage[stage]["calls"], record.usage[stage]["tokens_in"], record.usage[stage]["cost"]


def test_usage_is_booked_by_stage_as_the_difference_of_totals(lab):
    for record in lab(Counting).records():
        assert spent(record, "ingest") == (6, 60, 3.0)
        assert spent(record, "retrieve") == (2, 20, 1.0)
        assert spent(record, "answer") == (5, 50, 2.5)
        assert set(record.usage) == {"ingest", "retrieve", "answer"}


def test_a_shared_instance_does_not_book_one_sample_on_the_next(lab):
    instance = Counting()
    for _ in range(2):
        assert {spent(record, "ingest") for record in lab(instance, fixture=True).records()} == {(6, 60, 3.0)}


def test_feeding_on_to_a_later_checkpoint_is_booked_too(lab, at_checkpoints):
    records = lab(Counting, sample=at_checkpoints(1, 2, None, None)).records()
    assert [spent(record, "ingest")[0] for record in records] == [2, 4, 6, 6]


@pytest.mark.parametrize("value", [None, {"calls": 3}, 7])
def test_usage_that_is_no_usage_makes_questions_unscored(lab, diary, value):
    diary.usage = lambda self: value
    record = lab(diary).records()[0]
    assert record.verdict == "unscored"
    assert (
        record.reason
        == f"usage() returned {'None' if value is None else type(value).__name__}; return a Usage"
    )


# -- what it says of itself -------------------------------------------------------------------------


def test_its_version_goes_with_the_results(lab, diary):
    diary.version = 3
    assert [result.aside["version"] for result in lab(diary).results()] == ["3"] * 4


def test_a_version_that_raises_costs_nothing(lab):
    class Moody(SqliteMemory):
        @property
        def version(self):
            raise ConnectionError("no server")

    results = lab(Moody).results()
    assert [result.record.verdict for result in results] == ["correct"] * 4
    assert results[0].aside["version"] is None


def test_a_version_is_asked_for_once_a_memory_and_where_its_other_calls_run(lab):
    asked = []

    class Served(SqliteMemory):
        @property
        def version(self):
            asked.append(threading.current_thread().name)
            return "2"

    results = lab(Served).results()

    assert [result.aside["version"] for result in results] == ["2"] * 4
    (thread,) = asked
    assert thread != threading.main_thread().name


def test_a_version_that_hangs_is_named(lab):
    class Hangs(SqliteMemory):
        @property
        def version(self):
            threading.Event().wait(30)

    record = lab(Hangs, timeout=0.2).records()[0]

    assert record.verdict == "unscored"
    assert record.reason == "version did not come back within 0.2 s (--himga-timeout)"


# -- the oracle's door ----------------------------------------------------------------------------


def test_the_oracle_finds_all_evidence_of_every_question(lab):
    records = lab("oracle").records()
    assert [(record.verdict, record.score, record.found) for record in records] == [
        ("correct", 1.0, ["D1:1"]),
        ("correct", 1.0, ["D2:1"]),
        ("correct", 1.0, ["D5:1"]),
        ("correct", 1.0, ["D1:1", "D5:1"]),
    ]


def test_nobody_else_is_told_not_even_a_subclass_or_a_look_alike(lab):
    told = []

    class Thief(OracleMemory):
        def reveal(self, query, turn_ids):
            told.append(turn_ids)
            super().reveal(query, turn_ids)

    class LookAlike(SqliteMemory):
        def reveal(self, *args):
            told.append(args)

        def retrieve(self, query):
            return []

    for kind in (Thief, LookAlike):
        assert [record.verdict for record in lab(kind).records()] == ["wrong"] * 4
    assert told == []
