"""The fixtures for a user's own tests.

This module is imported by every pytest run of every project that has himga installed: it stays light.
"""

from __future__ import annotations

import traceback
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

from pytest_himga.errors import BackendError, NotApplicable
from pytest_himga.stash import ASKED, RESULT, RUN

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_himga.data.schema import Case
    from pytest_himga.engine.recording import Result
    from pytest_himga.judge.verdict import Verdict
    from pytest_himga.memory.protocol import Context
    from pytest_himga.run import Run


class MemoryHandle:
    """The memory under test, fed exactly up to the question's checkpoint.

    ``retrieve`` waits for an async memory too, and goes through the agent that asks the question, where
    the memory has agents; ``instance`` is the backend's own object.
    """

    def __init__(self, run: Run, case: Case) -> None:
        self._run = run
        self._case = case

    @property
    def instance(self) -> Any:
        """The object that the backend's factory or fixture made."""
        return self._run.engine.instance(self._case)

    def retrieve(self, query: str) -> Any:
        """What the memory returns for ``query``, as it returns it (with neutral ids)."""
        return self._run.engine.retrieve(self._case, query)


class JudgeHandle:
    """The judge of the run, which a test may ask about any answer; waits for an async one too."""

    def __init__(self, run: Run, name: str) -> None:
        self._run = run
        self.name = name

    def judge(self, case: Case, answer: str | None, context: Context) -> Verdict:
        """The verdict; raises ``BackendError`` if the judge fails."""
        return self._run.engine.ask_judge(case, answer, context)


@pytest.fixture
def himga_case(request: pytest.FixtureRequest) -> Case:
    """The question (`.question`) and its sample (`.sample`); the test runs once for each question."""
    __tracebackhide__ = True
    run = request.config.stash.get(RUN, None)
    if run is None:
        pytest.skip("no --himga-dataset: there are no questions to ask")
    case = run.by_id[request.param]
    if ASKED in request.node.stash:  # pytest runs the test once more
        run.engine.forget(case)
    request.node.stash[ASKED] = True
    request.addfinalizer(partial(_release, request.node, run))  # noqa: PT021 - also where the lines below fail
    if run.backend_is_fixture:
        run.engine.use_fixture(case, _backend_from_fixture(request, case, run))
    return case


def _release(item: pytest.Item, run: Run) -> None:
    from pytest_himga.items import release_sample

    release_sample(item, run)


def _backend_from_fixture(request: pytest.FixtureRequest, case: Case, run: Run) -> Any:
    """What the fixture that is the backend made; where it makes nothing, the question is unscored."""
    __tracebackhide__ = True
    try:
        return request.getfixturevalue(run.backend.name)
    except (Exception, pytest.fail.Exception) as error:
        reason = f"its setup failed: {traceback.format_exception_only(error)[-1].strip()}"
        request.node.stash[RESULT] = run.engine.unasked(case, reason)
        raise
    except pytest.skip.Exception as error:
        request.node.stash[RESULT] = run.engine.unasked(case, f"its setup was skipped: {error}")
        raise


@contextmanager
def _unscored_if_broken(request: pytest.FixtureRequest, case: Case) -> Iterator[None]:
    """A backend that fails makes the question unscored in the user's own test too.

    One that cannot be asked it by its own design skips the test, as it skips the built-in item.
    """
    try:
        yield
    except (BackendError, NotApplicable):
        result = request.config.stash[RUN].engine.result(case)
        if result.record.verdict != "n/a":
            _give_up(request, case, result)
        _skip(request, result)


def _give_up(request: pytest.FixtureRequest, case: Case, result: Result) -> None:
    from pytest_himga.describe import describe

    run = request.config.stash[RUN]
    request.node.stash[RESULT] = result
    text = describe(case, result)
    if run.settings.tolerates_unscored:
        pytest.skip(text.split("\n", 1)[0])
    pytest.fail(text, pytrace=False)


def _skip(request: pytest.FixtureRequest, result: Result) -> NoReturn:
    from pytest_himga.describe import not_applicable

    request.node.stash[RESULT] = result
    pytest.skip(not_applicable(result))


@pytest.fixture
def himga_memory(request: pytest.FixtureRequest, himga_case: Case) -> MemoryHandle:
    """The live memory, fed up to the question's checkpoint: `.retrieve(query)`, `.instance`."""
    memory = MemoryHandle(request.config.stash[RUN], himga_case)
    with _unscored_if_broken(request, himga_case):
        _ = memory.instance
    return memory


@pytest.fixture
def himga_context(request: pytest.FixtureRequest, himga_case: Case) -> Context:
    """What the memory returned for the question: `.text`, and `.recalled` where it gave a list.

    The test is skipped where the memory cannot be asked the question (another agent, a cold start).
    """
    with _unscored_if_broken(request, himga_case):
        return request.config.stash[RUN].engine.context(himga_case)


@pytest.fixture
def himga_answer(request: pytest.FixtureRequest, himga_case: Case) -> str | None:
    """The answer to the question; None where nothing produces one. Skipped like `himga_context`."""
    with _unscored_if_broken(request, himga_case):
        return request.config.stash[RUN].engine.answer(himga_case)


@pytest.fixture
def himga_judge(request: pytest.FixtureRequest, himga_case: Case) -> JudgeHandle:
    """The judge of this run: `.judge(himga_case, answer, himga_context)` returns a Verdict."""
    with _unscored_if_broken(request, himga_case):
        run = request.config.stash[RUN]
        return JudgeHandle(run, run.engine.judge(himga_case).name)


@pytest.fixture
def himga_verdict(request: pytest.FixtureRequest, himga_case: Case) -> Verdict:
    """The verdict, correct or wrong; the test is skipped where it is n/a, an error where unscored."""
    result = request.config.stash[RUN].engine.result(himga_case)
    if result.record.verdict == "unscored":
        _give_up(request, himga_case, result)
    if result.record.verdict == "n/a":
        _skip(request, result)
    request.node.stash[RESULT] = result
    return result.verdict
