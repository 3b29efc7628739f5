"""Several agents over one memory, and restarts: who hears and asks what, and which questions cannot be asked."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
import time
from dataclasses import replace

import pytest

from pytest_himga.data.schema import EvidenceRef
from pytest_himga.errors import BackendError, NotApplicable
from pytest_himga.memory.protocol import Recalled, Usage

NO_AGENTS = "the backend has no as_agent(agent_id), so it cannot be asked as another agent"
NO_REOPEN = "the backend has no reopen(), so no fresh instance over the same store can be asked"
FRESH = "return a new one over the same store, as a restart of the process would make it"
QUESTIONS = ["How many tulips?", "What is the hedgehog called?", "Which colour?", "How many of which colour?"]


class Store(list):
    """All turns that were heard, with the agent that heard each, and a diary of every call."""

    def __init__(self):
        super().__init__()
        self.pages = []


class Shared:
    """A memory over a store that outlives it; it has neither agents nor restarts."""

    name = "main"

    def __init__(self, store, agent_id=None):
        self.store = store
        self.agent_id = agent_id

    def write(self, *entry):
        self.store.pages.append((self.name, self.agent_id, *entry))

    def ingest(self, message, session):
        self.write("ingest", message.turn_id)
        self.store.append(message)

    def retrieve(self, query):
        self.write("retrieve", query)
        return [Recalled(message.content, [message.turn_id]) for message in self.store]

    def reset(self):
        self.write("reset")
        self.store.clear()


class WithAgents(Shared):
    """Its views share the store; each is of a class that is no whole memory."""

    def as_agent(self, agent_id):
        self.write("as_agent", agent_id)
        return View(self, agent_id)


class View:
    def __init__(self, memory, agent_id):
        self.write = type(memory)(memory.store, agent_id).write
        self.store = memory.store

    ingest, retrieve = Shared.ingest, Shared.retrieve


class Restarting(WithAgents):
    """``reopen`` makes another one over the same store, called ``fresh``."""

    def reopen(self):
        self.write("reopen")
        return Fresh(self.store)

    def close(self):
        self.write("close")


class Fresh(Restarting):
    name = "fresh"


@pytest.fixture
def store():
    return Store()


@pytest.fixture
def pages(store):
    return store.pages


def told(sample, *, agents=(None, None, None), **by_question):
    """The sample with these agents for its sessions, and its questions changed: ``q0={...}``."""
    return replace(
        sample,
        sessions=[
            replace(session, agent_id=agent) for session, agent in zip(sample.sessions, agents, strict=True)
        ],
        qa_pairs=[
            replace(question, **by_question.get(f"q{n}", {})) for n, question in enumerate(sample.qa_pairs)
        ],
    )


A_AND_B = ("a", "b", "a")


# -- agents -------------------------------------------------------------------------------------------


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


# -- cold starts --------------------------------------------------------------------------------------


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


# -- what cannot be asked -----------------------------------------------------------------------------


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


# -- the controls -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("backend", "verdict"),
    [("null", "wrong"), ("full-context", "correct"), ("bm25", None), ("oracle", "correct")],
)
def test_the_controls_can_be_asked_everything(lab, sample, backend, verdict):
    asks = {"cold_start": True, "as_agent": "b", "cross_agent": True, "asked_after": 2}
    sample = told(sample, agents=A_AND_B, q0=asks, q1=asks, q2={"as_agent": "c"})
    records = lab(backend, sample=sample).records()
    assert {record.verdict for record in records} <= ({verdict} if verdict else {"correct", "wrong"})
    assert len([record for record in records if record.verdict == "correct"]) >= (backend != "null")


def by_sessions(sample, *groups):
    """The sample, the evidence of each question being these groups of session ids."""
    return replace(
        sample,
        qa_pairs=[
            replace(question, evidence=EvidenceRef(groups=groups[n]))
            for n, question in enumerate(sample.qa_pairs)
        ],
    )


def test_the_oracle_finds_whole_sessions_and_only_those_that_were_heard(lab, sample):
    sample = by_sessions(sample, [["1"]], [["5", "2"], ["1"]], [["2"], ["D5:1"]], [["5"]])
    sample.qa_pairs[3].asked_after = 2
    bench = lab("oracle", sample=sample, expect=False, top_k=1)
    bench.cases = bench.cases[::-1]
    bench.engine.expect(bench.cases)
    records = bench.records()[::-1]
    assert [record.verdict for record in records] == ["correct", "correct", "correct", "wrong"]
    assert [record.reason for record in records] == [
        "1 of 1 evidence session in the context",
        "2 of 2 evidence sessions in the context",
        "2 of 2 evidence turns in the context",
        "0 of 1 evidence session in the context",
    ]
    assert [record.metrics["recall@1"] for record in records] == [1.0, 1.0, 1.0, 0.0]
    assert [record.metrics["session-recall@1"] for record in records] == [1.0, 1.0, 1.0, 0.0]


def test_the_oracle_does_not_mix_up_questions_of_one_text(lab, sample):
    for question in sample.qa_pairs:
        question.question = "And then?"
    records = lab("oracle", sample=sample).records()
    assert [record.verdict for record in records] == ["correct"] * 4
    assert [record.recalled[0]["turns"] for record in records] == [
        ["D1:1"],
        ["D2:1"],
        ["D5:1"],
        ["D1:1", "D5:1"],
    ]


def test_the_oracle_finds_turns_that_have_no_id_of_their_own(lab, sample):
    for session in sample.sessions:
        for turn in session.messages:
            turn.turn_id = None
    sample = by_sessions(sample, [["D1:1"]], [["D2:1", "D2:2"]], [["D3:1"]], [["D1:1"], ["D3:2"]])
    assert [record.verdict for record in lab("oracle", sample=sample).records()] == ["correct"] * 4


def test_a_session_is_hit_by_its_turns_as_well_as_by_its_id(lab, sample):
    """A memory that returns turns, as bm25 does, is measured on a dataset that names sessions."""
    sample = by_sessions(sample, [["1"]], [["2"]], [["5"]], [["2"], ["5"]])
    records = lab("bm25", sample=sample).records()
    assert [record.verdict for record in records] == ["correct", "correct", "wrong", "wrong"]
    assert records[0].metrics["recall@1"] == records[0].metrics["session-recall@1"] == 1.0


def test_session_recall_counts_sessions_where_two_have_one_id(lab, sample):
    sample.sessions[1].session_id = sample.sessions[0].session_id = "twin"
    for session in sample.sessions:
        for turn in session.messages:
            turn.turn_id = None
    sample = by_sessions(sample, [["D1:1"]], [["D2:1"]], [["D1:1"], ["D1:2"], ["D3:1"]], [["twin"]])

    class First(Shared):
        def retrieve(self, query):
            return [Recalled("x", session_ids=["s1"]), Recalled("y", ["D3:2"])]

    records = lab(lambda: First(Store()), sample=sample, top_k=2).records()
    assert [(r.metrics["session-recall@1"], r.metrics["session-recall@2"]) for r in records] == [
        (1.0, 1.0),
        (0.0, 0.0),
        (0.5, 1.0),
        (0.5, 0.5),
    ]


def test_an_error_names_the_agent_call_in_the_users_own_tests_too(lab, sample, store):
    class Raising(Shared):
        def as_agent(self, agent_id):
            raise KeyError(agent_id)

    bench = lab(lambda: Raising(store), sample=told(sample, q0={"as_agent": "b"}))
    with pytest.raises(BackendError, match=r"^as_agent\(\) raised KeyError: 'b'$"):
        bench.engine.retrieve(bench.cases[0], "anything")
