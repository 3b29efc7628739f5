"""What the engine's tests share: a small sample, and an engine over it without pytest or files."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest
from agent_memories import Store

from pytest_himga.data.schema import Case, EvidenceRef, Message, QAPair, QuestionType, Sample, Session
from pytest_himga.engine.background import Background
from pytest_himga.engine.engine import Engine
from pytest_himga.memory.resolve import Backend, resolve_backend
from pytest_himga.models import ModelSettings
from pytest_himga.settings import Settings


def ask(number: int, text: str, turns: list[str], after: int | None = None) -> QAPair:
    """A question whose evidence are these turns, asked after so many sessions."""
    return QAPair(
        str(number),
        text,
        "an answer",
        QuestionType.SINGLE_HOP,
        EvidenceRef(turns, groups=[[turn] for turn in turns]),
        asked_after=after,
    )


def day(number: str, date: str, *turns: tuple[str, str, str]) -> Session:
    """A session of turns: speaker, id, text."""
    return Session(number, [Message(speaker, text, ref) for speaker, ref, text in turns], date)


def three_days() -> Sample:
    """Sessions "1", "2" and "5", six turns, four questions at the end of the history."""
    days = [
        day("1", "1 May", ("Ada", "D1:1", "I planted twelve tulips today."), ("Ben", "D1:2", "Where?")),
        day("2", "2 May", ("Ben", "D2:1", "My hedgehog is called Bramble."), ("Ada", "D2:2", "Ha!")),
        day("5", "9 May", ("Ada", "D5:1", "The tulips came up purple."), ("Ben", "D5:2", "Send pictures!")),
    ]
    questions = [
        ask(0, "How many tulips?", ["D1:1"]),
        ask(1, "What is the hedgehog called?", ["D2:1"]),
        ask(2, "Which colour?", ["D5:1"]),
        ask(3, "How many of which colour?", ["D1:1", "D5:1"]),
    ]
    return Sample("garden", "locomo", days, questions, "Ada", "Ben")


class Lab:
    """An engine over one sample; ``results()`` asks every question and releases the sample."""

    def __init__(self, engine: Engine, cases: list[Case]) -> None:
        self.engine = engine
        self.cases = cases

    def results(self):
        """Each question's result, in order."""
        found = [self.engine.result(case) for case in self.cases]
        self.engine.release(self.cases[0].sample_id)
        return found

    def records(self):
        """Each question's record, in order."""
        return [result.record for result in self.results()]


@pytest.fixture
def sample() -> Sample:
    """Three days in a garden, see ``three_days``."""
    return three_days()


@pytest.fixture
def lab(tmp_path, sample):
    """Make engines; each is closed at the end of the test."""
    engines = []

    def make(
        backend,
        *,
        sample=sample,
        expect=True,
        fixture=False,
        options=(),
        judge=None,
        answerer=None,
        **settings,
    ) -> Lab:
        settings["models"] = ModelSettings(judge=judge, answerer=answerer)
        asked_for = Settings(("mini",), tmp_path, tmp_path, **{"timeout": 20.0, **settings})
        if isinstance(backend, str):
            found = resolve_backend(backend, dict(options))
        else:
            found = Backend("mine", "fixture" if fixture else "attribute", backend, dict(options))
        engine = Engine(asked_for, found, None, "run", "main", {"mini": sample.dataset})
        cases = [Case.of("mini", sample.sample_id, sample, question) for question in sample.qa_pairs]
        if expect:
            engine.expect(cases)
        engines.append(engine)
        return Lab(engine, cases)

    yield make
    for engine in engines:
        engine.close()


@pytest.fixture
def at_checkpoints(sample):
    """The same sample, its questions asked after so many sessions."""

    def make(*sessions: int | None) -> Sample:
        questions = [
            replace(question, asked_after=after)
            for question, after in zip(sample.qa_pairs, sessions, strict=False)
        ]
        return replace(sample, qa_pairs=questions)

    return make


@pytest.fixture
def background():
    """A background whose loop is stopped at the end of the test."""
    made = Background()
    yield made
    made.close()


@pytest.fixture
def short_grace(monkeypatch):
    """What blocks the loop, or will not be cancelled, is left behind sooner: for tests of just that."""
    monkeypatch.setattr("pytest_himga.engine.background.GRACE", 0.2)


@pytest.fixture
def no_thread_left():
    """Fail if a thread of ours outlives the test by more than a moment."""
    before = set(threading.enumerate())
    yield
    for thread in set(threading.enumerate()) - before:
        thread.join(timeout=3)
    assert set(threading.enumerate()) - before == set()


@pytest.fixture
def store() -> Store:
    """A store for the memories of ``agent_memories``."""
    return Store()


@pytest.fixture
def pages(store) -> list:
    """Every call of a memory over ``store``: which instance, as which agent, what."""
    return store.pages
