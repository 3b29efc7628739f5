"""Cold starts: a fresh instance over the same store is asked one question, and closed."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
import time

import pytest
from agent_memories import (
    A_AND_B,
    QUESTIONS,
    Fresh,
    Restarting,
    Shared,
    Store,
    told,
)

from pytest_himga.memory.protocol import Recalled, Usage

FRESH = "return a new one over the same store, as a restart of the process would make it"


def test_a_cold_start_is_asked_of_a_fresh_instance_that_is_closed_and_nothing_else(lab, sample, store, pages):
    cold = {"cold_start": True}
    records = lab(lambda: Restarting(store), sample=told(sample, q1=cold, q2=cold)).records()
    assert [record.verdict for record in records] == ["correct"] * 4
    assert pages[7:] == [
        ("main", None, "retrieve", QUESTIONS[0]),
        ("main", None, "reopen"),
        ("fresh", None, "retrieve", QUESTIONS[1]),
        ("fresh", None, "close"),
        ("main", None, "reopen"),
        ("fresh", None, "retrieve", QUESTIONS[2]),
        ("fresh", None, "close"),
        ("main", None, "retrieve", QUESTIONS[3]),
        ("main", None, "close"),
    ]


def test_a_fresh_instance_is_asked_as_the_agent_of_the_question(lab, sample, store, pages):
    asks = {"cold_start": True, "as_agent": "b", "cross_agent": True}
    records = lab(lambda: Restarting(store), sample=told(sample, agents=A_AND_B, q0=asks)).records()
    assert records[0].verdict == "correct"
    fresh = [page for page in pages if page[0] == "fresh"]
    assert fresh == [
        ("fresh", None, "as_agent", "b"),
        ("fresh", "b", "retrieve", QUESTIONS[0]),
        ("fresh", None, "close"),
    ]


def test_a_memory_that_never_stored_anything_fails_a_cold_start(lab, sample):
    class Forgetful(Restarting):
        def reopen(self):
            return Forgetful(Store())

    records = lab(lambda: Forgetful(Store()), sample=told(sample, q1={"cold_start": True})).records()
    assert [record.verdict for record in records] == ["correct", "wrong", "correct", "correct"]


def test_an_instance_that_is_the_backend_is_never_closed_but_its_fresh_ones_are(lab, sample, store, pages):
    lab(Restarting(store), fixture=True, sample=told(sample, q1={"cold_start": True})).results()
    assert [page for page in pages if page[2] == "close"] == [("fresh", None, "close")]


def test_a_fresh_instance_answers_what_it_retrieved_and_pays_for_it(lab, sample, store):
    class Paid(Restarting):
        def __init__(self, store):
            super().__init__(store)
            self.total = Usage(calls=1000)

        def retrieve(self, query):
            self.total += Usage(calls=2)
            return super().retrieve(query)

        def answer(self, question):
            self.total += Usage(calls=5)
            self.write("answer", question)
            return "an answer"

        def usage(self):
            return self.total

        def reopen(self):
            self.total += Usage(calls=100)
            made = Paid(self.store)
            made.name = "fresh"
            return made

    bench = lab(lambda: Paid(store), sample=told(sample, q1={"cold_start": True}))
    bench.engine.context(bench.cases[1])
    records = bench.records()
    assert [record.usage["retrieve"]["calls"] for record in records] == [2] * 4
    assert [record.usage["answer"]["calls"] for record in records] == [5] * 4
    assert [record.answer for record in records] == ["an answer"] * 4
    fresh = [page[2] for page in store.pages if page[0] == "fresh"]
    assert fresh == ["retrieve", "answer", "close"]


def test_making_a_fresh_instance_is_no_time_of_retrieving(lab, sample, store):
    class Slow(Restarting):
        def reopen(self):
            time.sleep(0.1)
            return super().reopen()

    record = lab(lambda: Slow(store), sample=told(sample, q0={"cold_start": True})).records()[0]
    assert record.ms["retrieve"] < 100


def test_a_connection_that_knows_its_thread_may_be_reopened(lab, sample, tmp_path):
    class OnDisk:
        def __init__(self, path=tmp_path / "memory.db"):
            self.path = path
            self.db = sqlite3.connect(path)
            self.db.execute("create table if not exists turns (id, text)")

        def ingest(self, message):
            self.db.execute("insert into turns values (?, ?)", (message.turn_id, message.content))

        def settle(self):
            self.db.commit()

        def retrieve(self, query):
            return [Recalled(text, [ref]) for ref, text in self.db.execute("select id, text from turns")]

        def reset(self):
            self.db.execute("delete from turns")

        def reopen(self):
            return OnDisk(self.path)

        def close(self):
            self.db.close()

    cold = {"cold_start": True}
    assert [r.verdict for r in lab(OnDisk, sample=told(sample, q0=cold, q3=cold)).records()] == [
        "correct"
    ] * 4


def test_an_async_reopen_is_awaited(lab, sample, store, pages):
    class Async(Restarting):
        async def reopen(self):
            await asyncio.sleep(0)
            return AsyncFresh(self.store)

    class AsyncFresh(Fresh):
        async def retrieve(self, query):
            return Shared.retrieve(self, query)

        async def close(self):
            self.write("close")

    records = lab(lambda: Async(store), sample=told(sample, q1={"cold_start": True})).records()
    assert records[1].verdict == "correct"
    assert ("fresh", None, "close") in pages


@pytest.mark.parametrize("name", ["as_agent", "reopen"])
def test_what_an_async_memory_makes_is_made_where_its_loop_runs(lab, sample, store, name):
    """A client of an async library often wants a running loop when it is made, as the memory itself does."""

    class Client(Shared):
        def __init__(self, store):
            super().__init__(store)
            self.loop = asyncio.get_running_loop()

        async def retrieve(self, query):
            assert asyncio.get_running_loop() is self.loop
            return Shared.retrieve(self, query)

    setattr(Client, name, lambda self, *agent: Client(self.store))
    question = {"as_agent": "b"} if name == "as_agent" else {"cold_start": True}
    bench = lab(
        type("Mine", (Client,), {"__init__": lambda self: Client.__init__(self, store)}),
        sample=told(sample, q1=question),
    )
    assert [record.verdict for record in bench.records()] == ["correct"] * 4


def reopening(store, how):
    """A memory whose ``reopen`` does this."""
    return lambda: type("Mine", (Restarting,), {"reopen": how})(store)


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        (lambda self: None, f"reopen() returned None; {FRESH}"),
        (lambda self: self, f"reopen() returned the same instance; {FRESH}"),
        (
            lambda self: self.__dict__.setdefault("other", Fresh(self.store)),
            f"reopen() returned the instance that it had returned before; {FRESH}",
        ),
        (
            lambda self: object(),
            (
                "reopen() returned no memory: object has no ingest() and no retrieve() and no reset(); "
                "a memory has ingest, retrieve and reset"
            ),
        ),
        (
            lambda self: Shared(self.store),
            f"reopen() returned an object of type Shared, which has no as_agent(); {FRESH}",
        ),
        (lambda self: 1 / 0, "reopen() raised ZeroDivisionError: division by zero"),
    ],
    ids=["None", "itself", "the same twice", "no memory", "half a memory", "raises"],
)
def test_what_is_no_fresh_instance_makes_only_that_question_unscored(lab, sample, store, pages, how, reason):
    cold = {"cold_start": True}
    records = lab(reopening(store, how), sample=told(sample, q1=cold, q2=cold)).records()
    assert [record.verdict for record in records][::3] == ["correct", "correct"]
    assert (records[2].verdict, records[2].reason, records[2].stage) == ("unscored", reason, "retrieve")
    assert ("main", None, "retrieve", QUESTIONS[2]) not in pages
    assert records[1].verdict == ("correct" if "before" in reason else "unscored")


def test_a_fresh_instance_that_does_not_close_is_that_questions_error(lab, sample, store):
    class Stuck(Fresh):
        def close(self):
            raise OSError("still locked")

    memory = reopening(store, lambda self: Stuck(self.store))
    records = lab(memory, sample=told(sample, q1={"cold_start": True})).records()
    assert [record.verdict for record in records] == ["correct", "unscored", "correct", "correct"]
    assert (records[1].reason, records[1].stage) == ("close() raised OSError: still locked", "retrieve")


def test_a_fresh_instance_that_fails_is_closed_all_the_same_and_its_first_error_is_told(
    lab, sample, store, pages
):
    class Failing(Fresh):
        def retrieve(self, query):
            raise LookupError("the index is gone")

        def close(self):
            super().close()
            raise OSError("still locked")

    memory = reopening(store, lambda self: Failing(self.store))
    records = lab(memory, sample=told(sample, q1={"cold_start": True})).records()
    assert records[1].reason == "retrieve() raised LookupError: the index is gone"
    assert ("fresh", None, "close") in pages
    assert [record.verdict for record in records] == ["correct", "unscored", "correct", "correct"]


@pytest.mark.parametrize("hanging", ["reopen", "retrieve", "close"])
def test_a_hang_of_a_restart_is_named_and_the_rest_is_unscored(lab, sample, store, hanging):
    wake = threading.Event()
    stuck = type("Stuck", (Fresh,), {hanging: lambda self, *args: wake.wait(30)})
    memory = {"reopen": lambda self: wake.wait(30)}.get(hanging, lambda self: stuck(self.store))
    records = lab(
        reopening(store, memory), sample=told(sample, q1={"cold_start": True}), timeout=0.1
    ).records()
    wake.set()
    assert [record.verdict for record in records] == ["correct", "unscored", "unscored", "unscored"]
    limit = "0.5 s (5 times --himga-timeout)" if hanging == "reopen" else "0.1 s (--himga-timeout)"
    assert {record.reason for record in records[1:]} == {f"{hanging}() did not come back within {limit}"}


def test_a_cold_start_at_an_earlier_checkpoint_is_asked_on_the_way(lab, sample, store, pages):
    early = {"cold_start": True, "asked_after": 1}
    bench = lab(lambda: Restarting(store), sample=told(sample, q0=early), expect=False)
    bench.engine.expect(bench.cases[::-1])
    results = [bench.engine.result(case).record for case in bench.cases[::-1]]
    heard = [page[2] for page in pages]
    assert heard.index("reopen") == 3, "after the two turns of the first session"
    assert results[-1].verdict == "correct"
    assert results[-1].recalled == [{"turns": [f"D1:{n}"], "sessions": [], "score": None} for n in (1, 2)]
