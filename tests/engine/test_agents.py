"""Several agents over one memory: who hears and asks what, and which questions cannot be asked."""

from __future__ import annotations

import asyncio

import pytest
from agent_memories import (
    A_AND_B,
    NO_AGENTS,
    NO_REOPEN,
    QUESTIONS,
    Shared,
    Store,
    View,
    WithAgents,
    told,
)

from pytest_himga.errors import BackendError, NotApplicable
from pytest_himga.memory.protocol import Recalled, Usage

# -- who hears and asks ------------------------------------------------------------


def test_each_session_is_heard_and_each_question_asked_through_its_agents_view(lab, sample, store, pages):
    sample = told(sample, agents=A_AND_B, q0={"as_agent": "b"}, q1={"as_agent": "a"}, q2={"as_agent": "c"})
    records = lab(lambda: WithAgents(store), sample=sample).records()
    assert pages == [
        ("main", None, "reset"),
        ("main", None, "as_agent", "a"),
        ("main", "a", "ingest", "D1:1"),
        ("main", "a", "ingest", "D1:2"),
        ("main", None, "as_agent", "b"),
        ("main", "b", "ingest", "D2:1"),
        ("main", "b", "ingest", "D2:2"),
        ("main", "a", "ingest", "D3:1"),
        ("main", "a", "ingest", "D3:2"),
        ("main", "b", "retrieve", QUESTIONS[0]),
        ("main", "a", "retrieve", QUESTIONS[1]),
        ("main", None, "as_agent", "c"),
        ("main", "c", "retrieve", QUESTIONS[2]),
        ("main", None, "retrieve", QUESTIONS[3]),
    ]
    assert [record.verdict for record in records] == ["correct"] * 4


def test_a_memory_that_keeps_its_agents_apart_gets_cross_agent_questions_wrong(lab, sample):
    class Apart(Shared):
        def as_agent(self, agent_id):
            self.views = getattr(self, "views", {})
            return self.views.setdefault(agent_id, Shared(Store()))

    cross = {"as_agent": "b", "cross_agent": True}
    sample = told(sample, agents=("a", "a", "a"), q0={"as_agent": "a"}, q1=cross, q2={"as_agent": "a"})
    records = lab(lambda: Apart(Store()), sample=sample).records()
    assert [record.verdict for record in records] == ["correct", "wrong", "correct", "wrong"]


def test_each_new_instance_makes_views_of_its_own(lab, sample, store, pages):
    sample = told(sample, agents=A_AND_B)
    bench = lab(lambda: WithAgents(store), sample=sample)
    bench.results()
    bench.results()
    assert pages.count(("main", None, "as_agent", "a")) == 2


def test_a_session_of_nobody_goes_to_the_memory_itself(lab, sample, store, pages):
    lab(lambda: WithAgents(store), sample=told(sample, agents=("a", None, None))).results()
    assert [page[1] for page in pages if page[2] == "ingest"] == ["a", "a", None, None, None, None]


def test_what_is_of_the_whole_memory_is_called_on_the_memory_itself(lab, sample, store, pages):
    class Whole(WithAgents):
        def settle(self):
            self.write("settle")

        def usage(self):
            self.write("usage")
            return Usage()

        def close(self):
            self.write("close")

    sample = told(sample, agents=A_AND_B, q0={"as_agent": "b"})
    lab(lambda: Whole(store), sample=sample).results()
    called = {page[2]: page[1] for page in pages if page[2] in ("settle", "usage", "close", "reset")}
    assert called == {"settle": None, "usage": None, "close": None, "reset": None}


def test_signatures_are_those_of_the_view(lab, sample, store):
    seen = []

    class Particular(Shared):
        def as_agent(self, agent_id):
            return Other() if agent_id == "b" else Shared(store)

    class Other:
        async def ingest_session(self, session):
            seen.append(session.session_id)

        async def retrieve(self, query, k, date):
            seen.append((k, date))
            return [Recalled("x", ["D2:1"])]

    sample = told(sample, agents=A_AND_B, q1={"as_agent": "b"})
    records = lab(lambda: Particular(store), sample=sample, top_k=7).records()
    assert seen == ["s2", (7, "9 May")]
    assert [record.verdict for record in records] == ["correct", "correct", "correct", "correct"]


def test_an_async_as_agent_is_awaited_and_its_views_share_the_loop(lab, sample, store):
    loops = []

    class Async(Shared):
        async def reset(self):
            loops.append(asyncio.get_running_loop())

        async def as_agent(self, agent_id):
            loops.append(asyncio.get_running_loop())
            return AsyncView(self)

        def retrieve(self, query):
            return []

    class AsyncView:
        def __init__(self, memory):
            loops.append(asyncio.get_running_loop())
            self.memory = memory

        async def ingest(self, message, session):
            self.memory.ingest(message, session)

        async def retrieve(self, query):
            loops.append(asyncio.get_running_loop())
            return Shared.retrieve(self.memory, query)

    sample = told(sample, agents=A_AND_B, q0={"as_agent": "b"})
    assert lab(lambda: Async(store), sample=sample).records()[0].verdict == "correct"
    assert len({id(loop) for loop in loops}) == 1


def test_the_view_answers_where_the_memory_answers(lab, sample, store, pages):
    class Answering(WithAgents):
        def as_agent(self, agent_id):
            view = View(self, agent_id)
            view.answer = lambda question: view.write("answer", question) or "an answer"
            return view

        def answer(self, question):
            return "not this one"

    sample = told(sample, q0={"as_agent": "b"})
    records = lab(lambda: Answering(store), sample=sample).records()
    assert [record.answer for record in records] == ["an answer", *["not this one"] * 3]
    assert ("main", "b", "answer", QUESTIONS[0]) in pages


def view_that(**methods):
    return type("Half", (), {name: (lambda self, *args: None) for name in methods})()


@pytest.mark.parametrize(
    ("made", "reason"),
    [
        (None, "None"),
        (7, "an object of type int, which has no ingest() and no retrieve()"),
        (view_that(retrieve=1), "an object of type Half, which has no ingest()"),
        (view_that(ingest_session=1), "an object of type Half, which has no retrieve()"),
    ],
    ids=["None", "number", "no ingest", "no retrieve"],
)
def test_what_is_no_view_is_told_so_where_it_was_asked_for(lab, sample, store, made, reason):
    class Bad(Shared):
        def as_agent(self, agent_id):
            return made if agent_id == "b" else Shared(store)

    told_so = f"as_agent() returned {reason}; return a view with the memory's own methods"
    asking = lab(lambda: Bad(store), sample=told(sample, agents=("a", "a", "a"), q1={"as_agent": "b"}))
    records = asking.records()
    assert [record.verdict for record in records] == ["correct", "unscored", "correct", "correct"]
    assert (records[1].reason, records[1].stage) == (told_so, "retrieve")

    feeding = lab(lambda: Bad(store), sample=told(sample, agents=A_AND_B))
    assert {(r.verdict, r.reason, r.stage) for r in feeding.records()} == {("unscored", told_so, "ingest")}


def test_a_view_that_cannot_answer_is_told_so_too(lab, sample, store):
    class Mute(WithAgents):
        def answer(self, question):
            return "an answer"

    record = lab(lambda: Mute(store), sample=told(sample, q0={"as_agent": "b"})).records()[0]
    assert record.reason == (
        "as_agent() returned an object of type View, which has no answer(); "
        "return a view with the memory's own methods"
    )


def test_as_agent_that_raises_costs_its_own_question(lab, sample, store):
    class Raising(Shared):
        def as_agent(self, agent_id):
            raise KeyError(agent_id)

    records = lab(lambda: Raising(store), sample=told(sample, q1={"as_agent": "b"})).records()
    assert [record.verdict for record in records] == ["correct", "unscored", "correct", "correct"]
    assert records[1].reason == "as_agent() raised KeyError: 'b'"


def test_without_agents_only_cross_agent_questions_are_not_applicable(lab, sample, store, pages):
    cross = {"as_agent": "b", "cross_agent": True}
    sample = told(sample, agents=A_AND_B, q0={"as_agent": "b"}, q1=cross)
    records = lab(lambda: Shared(store), sample=sample).records()
    assert [record.verdict for record in records] == ["correct", "n/a", "correct", "correct"]
    assert (records[1].reason, records[1].judge, records[1].stage) == (NO_AGENTS, "", None)
    assert [page[3] for page in pages if page[2] == "retrieve"] == [QUESTIONS[n] for n in (0, 2, 3)]


def test_the_live_memory_of_a_question_is_asked_as_its_agent(lab, sample, store, pages):
    bench = lab(lambda: WithAgents(store), sample=told(sample, q0={"as_agent": "b"}))
    bench.engine.retrieve(bench.cases[0], "anything")
    assert pages[-1] == ("main", "b", "retrieve", "anything")


def test_an_error_names_the_agent_call_in_the_users_own_tests_too(lab, sample, store):
    class Raising(Shared):
        def as_agent(self, agent_id):
            raise KeyError(agent_id)

    bench = lab(lambda: Raising(store), sample=told(sample, q0={"as_agent": "b"}))
    with pytest.raises(BackendError, match=r"^as_agent\(\) raised KeyError: 'b'$"):
        bench.engine.retrieve(bench.cases[0], "anything")


# -- what cannot be asked ------------------------------------------------------------


@pytest.mark.parametrize(
    ("memory", "question", "reason"),
    [
        (Shared, {"cross_agent": True, "as_agent": "b"}, NO_AGENTS),
        (Shared, {"cold_start": True}, NO_REOPEN),
        (Shared, {"cold_start": True, "cross_agent": True}, NO_AGENTS),
        (WithAgents, {"cold_start": True, "cross_agent": True}, NO_REOPEN),
    ],
)
def test_what_a_memory_cannot_be_asked_is_known_before_anything_is_fed(
    lab, sample, store, pages, memory, question, reason
):
    bench = lab(lambda: memory(store), sample=told(sample, q0=question))
    record = bench.engine.result(bench.cases[0]).record
    assert pages == [("main", None, "reset")]
    assert (record.verdict, record.reason, record.score) == ("n/a", reason, None)
    assert (record.context, record.context_chars, record.recalled) == (None, None, None)
    assert (record.metrics, record.usage, record.ms, record.found) == ({}, {}, {}, [])
    for look in (bench.engine.context, bench.engine.answer):
        with pytest.raises(NotApplicable) as caught:
            look(bench.cases[0])
        assert caught.value.reason == reason
    assert len(bench.engine.instance(bench.cases[0]).store) == 6, "the live memory is there all the same"


def test_what_a_memory_cannot_be_asked_does_not_depend_on_an_outage(lab, sample, store):
    class Broken(Shared):
        def retrieve(self, query):
            raise ConnectionError("gone")

        def ingest(self, message, session):
            if message.turn_id == "D2:1":
                raise ConnectionError("gone")
            super().ingest(message, session)

    cold = {"cold_start": True}
    for order in (1, -1):
        bench = lab(lambda: Broken(store), sample=told(sample, q0=cold, q3=cold), expect=False)
        bench.cases = bench.cases[::order]
        bench.engine.expect(bench.cases)
        assert [record.verdict for record in bench.records()] == ["n/a", "unscored", "unscored", "n/a"]


def test_where_no_memory_could_be_made_nobody_knows_what_it_could_be_asked(lab, sample):
    def make():
        raise ConnectionError("no server")

    records = lab(make, sample=told(sample, q0={"cold_start": True})).records()
    assert {(record.verdict, record.reason) for record in records} == {
        ("unscored", "make() raised ConnectionError: no server")
    }


def test_questions_that_cannot_be_asked_are_passed_by_in_silence(lab, sample, store, pages):
    cold = {"cold_start": True, "asked_after": 1}
    bench = lab(lambda: Shared(store), sample=told(sample, q1=cold, q2=cold), expect=False)
    bench.engine.expect(bench.cases[::-1])
    bench.engine.result(bench.cases[3])
    assert [page[2] for page in pages] == ["reset", *["ingest"] * 6, "retrieve"]


def test_a_look_for_quotations_passes_by_what_cannot_be_asked(lab, sample, store):
    class Text(Shared):
        def retrieve(self, query):
            return "The tulips came up purple." if "of which" in query else "It rewrites."

    records = lab(lambda: Text(store), sample=told(sample, q1={"cold_start": True})).records()
    assert [record.verdict for record in records] == ["wrong", "n/a", "wrong", "wrong"]
