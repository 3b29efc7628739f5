"""The item: asks one question and raises what its verdict means."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from pytest_himga.describe import describe, failure_repr, not_applicable
from pytest_himga.errors import BackendError
from pytest_himga.report.failure import headline
from pytest_himga.report.text import clean
from pytest_himga.stash import CASE_FIXTURE, NEXT, RESULT, RUN

if TYPE_CHECKING:
    from pytest_himga.data.schema import Case
    from pytest_himga.engine.recording import Result
    from pytest_himga.run import Run


#: The fixtures that ask the question of the test they are in.
ASKING = frozenset({"himga_context", "himga_answer", "himga_verdict"})


class NotCorrect(Exception):
    """A wrong or unscored question; carries the result, and its text is what a person reads."""

    def __init__(self, result: Result, text: str) -> None:
        super().__init__(text)
        self.result = result


class QuestionItem(pytest.Function):
    """One question as a pytest item. It asks the engine and turns the verdict into an outcome."""

    def __init__(self, *, case: Case, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.case = case
        self._runs = 0
        self.extra_keyword_matches.update((case.brief.type, case.sample_name, case.dataset))

    @property
    def location(self) -> tuple[str, int | None, str]:
        """What ``-v`` prints must be an id that can be given back, so it is the node id as it stands."""
        return (self.case.sample_id, None, self.nodeid)

    def reportinfo(self) -> tuple[str, int | None, str]:
        """The node id stands for file and line, of which there are none; a skip mark needs a number, though."""
        return (self.case.sample_id, 0, self.nodeid)

    def setup(self) -> None:
        """Set up the fixtures; the memory will be closed after the item's own and before those it shares."""
        __tracebackhide__ = True
        self.addfinalizer(partial(release_sample, self, self.config.stash[RUN]))
        super().setup()

    def runtest(self) -> None:
        """Ask the question."""
        run = self.config.stash[RUN]
        if run.backend_is_fixture:
            run.engine.use_fixture(self.case, self.funcargs[run.backend.name])
        if self._runs:
            run.engine.forget(self.case)
        self._runs += 1
        result = run.engine.result(self.case)
        self.stash[RESULT] = result
        if result.record.verdict == "n/a":
            raise pytest.skip.Exception(not_applicable(result))
        if result.record.verdict != "correct":
            raise NotCorrect(result, self._text(result, run))

    def _text(self, result: Result, run: Run) -> str:
        """The whole failure text, or its first line for a miss that nobody will see in full."""
        record = result.record
        if record.verdict == "wrong" and run.settings.tolerates_wrong(record):
            if self.config.getoption("verbose", 0) < 2:  # there is none with -p no:terminal
                return headline(record)
            record.outcome = "missed"  # the text says that it is tolerated
        return describe(self.case, result)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:  # noqa: ARG002 - pytest's own signature
        """Our own text for a verdict; pytest's for anything else."""
        if isinstance(excinfo.value, NotCorrect):
            line_only = self.config.getoption("tbstyle", "auto") == "line"
            return failure_repr(str(excinfo.value), self.nodeid, line_only=line_only)
        return super().repr_failure(excinfo)


def case_of(item: pytest.Item, run: Run) -> Case | None:
    """The question that an item is about; None for every other test."""
    if isinstance(item, QuestionItem):
        return item.case
    parameters = getattr(getattr(item, "callspec", None), "params", {})
    return run.by_id.get(parameters.get(CASE_FIXTURE, ""))


def asks(item: pytest.Item) -> bool:
    """Whether the item asks its question of the memory, and does not only look at it or at the live memory."""
    return isinstance(item, QuestionItem) or not ASKING.isdisjoint(getattr(item, "fixturenames", ()))


def release_sample(item: pytest.Item, run: Run) -> None:
    """Close the memory of the item's sample if the next item is not about the same one.

    Called while the item is torn down: a memory may hang on a fixture of module or session scope (a
    database, a client) that goes right after.
    """
    case, nextitem = case_of(item, run), item.stash.get(NEXT, None)
    if case is None:
        return
    following = case_of(nextitem, run) if nextitem is not None else None
    if following is None or following.sample_id != case.sample_id:
        _release(case.sample_id, run)


def release_all(run: Run) -> None:
    """Close every memory: the fixture that they came out of is about to be torn down."""
    for sample_id in run.engine.open_samples:
        _release(sample_id, run)


def _release(sample_id: str, run: Run) -> None:
    try:
        run.engine.release(sample_id)
    except BackendError as error:
        text = f"{sample_id}: {error.message}\n{error.details}".rstrip()
        raise pytest.fail.Exception(clean(text), pytrace=False) from None
