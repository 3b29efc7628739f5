"""From verdicts to pytest's outcomes: passed, failed, missed, unscored, skipped; and the record that travels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pytest_himga.describe import describe, failure_repr
from pytest_himga.errors import BackendError, DatasetError
from pytest_himga.items import NotCorrect, QuestionItem, case_of
from pytest_himga.stash import RESULT, RUN

if TYPE_CHECKING:
    from pytest_himga.data.schema import Case
    from pytest_himga.engine.recording import Result
    from pytest_himga.run import Run


def finish_report(item: pytest.Item, call: pytest.CallInfo[None], report: pytest.TestReport) -> None:
    """Give the report its outcome and, once, the record that the controller adds up."""
    run = item.config.stash[RUN]
    if isinstance(item, QuestionItem):
        if call.when == "call":
            _set_outcome(item, call, report, run)
        if call.when != "teardown" and not report.passed and RESULT not in item.stash:
            result = item.stash[RESULT] = unasked(item, call.when, report)
            if call.when == "call" and call.excinfo and call.excinfo.errisinstance(pytest.fail.Exception):
                # A time limit fired in the middle of our waiting, and our stack says nothing to anybody.
                report.longrepr = failure_repr(describe(item.case, result), item.case.sample_id)
    elif call.when == "setup" and report.passed:
        return  # a user's own test: its outcome is still to come
    elif call.excinfo and call.when != "teardown" and _is_outage(call.excinfo.value):
        _book_outage(item, call.excinfo.value, report, run)
    brought = item.stash.get(RESULT, None)
    if brought is None:
        return
    del item.stash[RESULT]
    brought.record.outcome = _outcome_of(report, brought)
    # An extra attribute travels with the report from worker to controller.
    report.himga = {"record": vars(brought.record), "aside": brought.aside}  # type: ignore[attr-defined] # see above


def _set_outcome(
    item: QuestionItem, call: pytest.CallInfo[None], report: pytest.TestReport, run: Run
) -> None:
    error = call.excinfo.value if call.excinfo else None
    if isinstance(error, pytest.skip.Exception):
        report.longrepr = _skipped(item.case, str(error))
    if not isinstance(error, NotCorrect) or hasattr(report, "wasxfail"):
        return  # correct, n/a, an error of ours, or a question that the user marked as an expected failure
    headline = str(error).split("\n", 1)[0]
    record = error.result.record
    if record.verdict == "wrong" and run.settings.tolerates_wrong(record):
        report.outcome = "skipped"
        report.wasxfail = f"missed: {headline}"
        record.outcome = "missed"
    elif record.verdict == "unscored" and run.settings.tolerates_unscored:
        report.outcome = "skipped"
        report.longrepr = _skipped(item.case, headline)


def _is_outage(error: BaseException) -> bool:
    return isinstance(error, BackendError | DatasetError)


def _book_outage(item: pytest.Item, error: BaseException, report: pytest.TestReport, run: Run) -> None:
    """A backend that fails inside a user's own test proves nothing, nor does a sample that cannot be read."""
    case = case_of(item, run)
    if case is None:
        return
    backend_error = error if isinstance(error, BackendError) else None
    result = item.stash[RESULT] = run.engine.unasked(case, str(error), backend_error)
    text = describe(case, result)
    report.longrepr = failure_repr(text, item.nodeid.split("::", 1)[0])
    if run.settings.tolerates_unscored:
        report.outcome = "skipped"
        report.longrepr = _skipped(case, text.split("\n", 1)[0])


def _skipped(case: Case, reason: str) -> Any:
    """Where and why, so that ``-rs`` folds the reasons of one dataset; there is no line to name."""
    return (f"himga/{case.dataset}", None, f"Skipped: {reason}")


def _outcome_of(report: pytest.TestReport, result: Result) -> str:
    if result.record.verdict == "unscored":
        return "unscored"
    return result.record.outcome or report.outcome


def unasked(item: QuestionItem, when: str, report: pytest.TestReport) -> Result:
    """The unscored result of an item that brought none: its setup failed, or something else stopped it."""
    what = "was skipped" if report.skipped else "failed" if when == "setup" else "was stopped"
    return item.config.stash[RUN].engine.unasked(item.case, f"its {when} {what}: {_reason_of(report)}")


def _reason_of(report: pytest.TestReport) -> str:
    if isinstance(report.longrepr, tuple):
        return report.longrepr[2].removeprefix("Skipped: ")
    if missing := getattr(report.longrepr, "errorstring", ""):  # a fixture that is not there
        return str(missing).splitlines()[0]
    crash = getattr(report.longrepr, "reprcrash", None)
    text = crash.message if crash is not None else str(report.longrepr or "")
    lines = text.strip().splitlines() or [""]
    return str(lines[0] if crash is not None else lines[-1])


def status_of(
    report: pytest.CollectReport | pytest.TestReport,
) -> tuple[str, str, tuple[str, dict[str, bool]]] | None:
    """Category, letter and word of a question's report; None for every other report."""
    data = getattr(report, "himga", None)
    if (
        data is None
        or report.outcome not in ("failed", "skipped")
        or getattr(report, "when", None) == "setup"
    ):
        return None
    outcome = data["record"]["outcome"] if data.get("record") else data["outcome"]
    if outcome == "missed":
        return "missed", "m", ("MISSED", {"yellow": True})
    if outcome == "unscored":
        if report.outcome == "failed":
            return "error", "E", ("UNSCORED", {"red": True})
        return "unscored", "u", ("UNSCORED", {"yellow": True})
    return None
