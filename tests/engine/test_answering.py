"""Who answers from the context: what an answerer of one's own is told, and what is booked for it."""

from __future__ import annotations

import sys
import types
from collections.abc import Mapping

import pytest

from pytest_himga.engine.background import Handoff
from pytest_himga.memory.protocol import Recalled, Usage


class Remembers:
    """Finds everything it heard; ``profile()`` tells what a test puts into ``knows``."""

    knows: object = None

    def __init__(self):
        self.turns = []

    def reset(self):
        self.turns = []

    def ingest(self, message):
        self.turns.append(message)

    def retrieve(self, query):
        return [Recalled(turn.content, [turn.turn_id]) for turn in self.turns]

    def profile(self):
        return self.knows


@pytest.fixture
def told(monkeypatch):
    """The requests that an answerer of one's own was given, ``answerers:note``."""
    requests = []

    def note(request):
        requests.append(request)
        return "an answer"

    monkeypatch.setitem(sys.modules, "answerers", types.SimpleNamespace(note=note))
    return requests


def test_what_the_memory_knows_of_its_user_is_told_as_it_was_then(lab, told):
    class Learns(Remembers):
        def retrieve(self, query):
            self.knows = self.knows or {}
            self.knows[query] = True
            return super().retrieve(query)

    lab(Learns, answerer="answerers:note", judge="lexical").records()

    assert [len(request.profile) for request in told] == [1, 2, 3, 4]


class Loaded(Mapping):
    """Asks its server as it is read, and the server is down."""

    def __getitem__(self, key):
        raise ConnectionError(f"the store is offline ({key})")

    def __iter__(self):
        return iter(["pets"])

    def __len__(self):
        return 1


@pytest.mark.parametrize(
    ("knows", "reason"),
    [
        (Loaded(), "reading what profile() returned raised ConnectionError: the store is offline (pets)"),
        (["tulips"], "profile() returned list; return a dict"),
        (7, "profile() returned int; return a dict"),
    ],
)
def test_a_profile_that_cannot_be_read_is_an_outage_of_the_backend(lab, told, knows, reason):
    class Odd(Remembers):
        pass

    Odd.knows = knows
    records = lab(Odd, answerer="answerers:note", judge="lexical").records()

    assert {(record.verdict, record.stage, record.reason) for record in records} == {
        ("unscored", "answer", reason)
    }
    assert told == []


@pytest.mark.parametrize("knows", [None, {}, types.MappingProxyType({"pets": None})])
def test_a_memory_may_know_nothing(lab, told, knows):
    class Knows(Remembers):
        pass

    Knows.knows = knows
    lab(Knows, answerer="answerers:note", judge="lexical").records()

    assert [request.profile for request in told] == [None if knows is None else dict(knows)] * 4


class Costly(Remembers):
    """Each retrieve is a call."""

    def __init__(self):
        super().__init__()
        self.total = Usage()

    def retrieve(self, query):
        self.total += Usage(1, 10)
        return super().retrieve(query)

    def usage(self):
        return self.total


@pytest.mark.parametrize("released", [False, True])
def test_what_a_question_cost_before_it_is_asked_again_stays_booked(lab, released):
    bench = lab(Costly)
    bench.results()
    for _ in range(2):
        bench.engine.forget(bench.cases[0])
        again = bench.engine.result(bench.cases[0]).record
        if released:
            bench.engine.release(bench.cases[0].sample_id)

    assert again.usage["retrieve"] == Usage(3, 30).as_json()


@pytest.mark.parametrize(
    ("call", "closed"), [("the answerer answerers:note", True), ("retrieve()", False), ("ingest()", False)]
)
def test_after_ctrl_c_a_memory_is_closed_unless_it_was_the_one_to_be_waited_for(
    lab, told, monkeypatch, call, closed
):
    happened = []

    class Closing(Remembers):
        def close(self):
            happened.append("closed")

    def wait(handoff):
        if handoff.progress.name == call:
            raise KeyboardInterrupt
        until_done(handoff)

    until_done = Handoff.wait
    bench = lab(Closing, answerer="answerers:note", judge="lexical")
    monkeypatch.setattr(Handoff, "wait", wait)
    with pytest.raises(KeyboardInterrupt):
        bench.engine.result(bench.cases[0])
    bench.engine.close()

    assert happened == (["closed"] if closed else [])
