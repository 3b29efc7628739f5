"""The item: asks one question, and turns its verdict into an outcome and a text that reads well."""

from __future__ import annotations

from copy import copy
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest

from pytest_himga.errors import BackendError, HimgaError
from pytest_himga.fixtures import RESULT, RUN
from pytest_himga.report.failure import EvidenceTurn, failure_text, headline
from pytest_himga.report.text import clean, one_line

if TYPE_CHECKING:
    from pytest_himga.data.schema import Case
    from pytest_himga.engine.engine import Result
    from pytest_himga.run import Run


#: Characters of a reason that pytest shows on a line of its own (-rs).
LONGEST_REASON = 200


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
        self.extra_keyword_matches.update((case.question.question_type.value, case.sample_name, case.dataset))

    @property
    def location(self) -> tuple[str, int | None, str]:
        """What ``-v`` prints must be an id that can be given back, so it is the node id as it stands."""
        return (self.case.sample_id, None, self.nodeid)

    def reportinfo(self) -> tuple[str, int | None, str]:
        """The node id stands for file and line, of which there are none; a skip mark needs a number, though."""
        return (self.case.sample_id, 0, self.nodeid)

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
        if (
            result.record.verdict == "wrong"
            and run.settings.tolerates_wrong
            and self.config.option.verbose < 2
        ):
            return headline(result.record)
        return describe(self.case, result)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:  # noqa: ARG002 - pytest's own signature
        """Our own text for a verdict; pytest's for anything else."""
        if isinstance(excinfo.value, NotCorrect):
            return failure_repr(str(excinfo.value), self.case.sample_id)
        return super().repr_failure(excinfo)


def not_applicable(result: Result) -> str:
    """Why a judge does not apply to a question, in one line."""
    return one_line(f"n/a: {result.record.reason}", LONGEST_REASON)


def failure_repr(text: str, where: str) -> Any:
    """``text`` as pytest's representation of an exception; its first line is the short summary's message.

    Only pytest's own classes survive the way from an xdist worker as more than a string, and a plain
    string would be repeated whole in the short summary.
    """
    representation = copy(_representation())
    representation.reprtraceback = copy(representation.reprtraceback)
    entry = copy(representation.reprtraceback.reprentries[0])
    entry.lines = [f"{text}\n"]
    representation.reprtraceback.reprentries = [entry]
    representation.reprcrash = copy(representation.reprcrash)
    representation.reprcrash.path, representation.reprcrash.lineno = where, 0
    representation.reprcrash.message = text.split("\n", 1)[0]
    return representation


@cache
def _representation() -> Any:
    """Made once: working out the place of a crash takes longer than asking a question."""
    try:
        raise HimgaError("template")
    except HimgaError as error:
        return pytest.ExceptionInfo.from_exception(error).getrepr(style="native")


def describe(case: Case, result: Result) -> str:
    """The failure text of a question."""
    covered, context = result.covered, result.context
    found = set(covered.found_refs) if covered else set()
    wanted = dict.fromkeys(case.question.evidence.turn_ids)
    turns = [
        EvidenceTurn(
            message.turn_id, message.role, message.content, session.date_str, message.turn_id in found
        )
        for session in case.sample.sessions
        for message in session.messages
        if message.turn_id is not None and message.turn_id in wanted
    ]
    order = list(wanted)
    turns.sort(key=lambda turn: order.index(turn.ref))
    return failure_text(
        result.record,
        question_date=case.date_str,
        evidence_turns=turns,
        excerpt=context.text if context else "",
        details=result.details,
    )


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
    elif call.when == "call" and call.excinfo and isinstance(call.excinfo.value, BackendError):
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
    if error.result.record.verdict == "wrong" and run.settings.tolerates_wrong:
        report.outcome = "skipped"
        report.wasxfail = f"missed: {headline}"
    elif error.result.record.verdict == "unscored" and run.settings.tolerates_unscored:
        report.outcome = "skipped"
        report.longrepr = _skipped(item.case, headline)


def _book_outage(item: pytest.Item, error: BackendError, report: pytest.TestReport, run: Run) -> None:
    """A backend that fails inside a user's own test proves nothing: its question is unscored."""
    from pytest_himga.collect import case_of

    case = case_of(item, run)
    if case is None:
        return
    result = item.stash[RESULT] = run.engine.unasked(case, error.message, error)
    text = describe(case, result)
    report.longrepr = failure_repr(text, item.nodeid.split("::", 1)[0])
    if run.settings.tolerates_unscored:
        report.outcome = "skipped"
        report.longrepr = _skipped(case, text.split("\n", 1)[0])


def _skipped(case: Case, reason: str) -> Any:
    """Where and why, so that ``-rs`` folds the reasons of one dataset; there is no line to name."""
    return (f"himga/{case.dataset}", None, f"Skipped: {reason}")


def _outcome_of(report: pytest.TestReport, result: Result) -> str:
    verdict = result.record.verdict
    if verdict == "unscored":
        return "unscored"
    if verdict == "wrong" and str(getattr(report, "wasxfail", "")).startswith("missed"):
        return "missed"
    return report.outcome


def unasked(item: QuestionItem, when: str, report: pytest.TestReport) -> Result:
    """The unscored result of an item that brought none: its setup failed, or something else stopped it."""
    what = "was skipped" if report.skipped else "failed" if when == "setup" else "was stopped"
    return item.config.stash[RUN].engine.unasked(item.case, f"its {when} {what}: {_reason_of(report)}")


def _reason_of(report: pytest.TestReport) -> str:
    if isinstance(report.longrepr, tuple):
        return report.longrepr[2].removeprefix("Skipped: ")
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


def release_sample(item: pytest.Item, nextitem: pytest.Item | None, run: Run) -> None:
    """Close the memory of the item's sample if the next item is not about the same one."""
    from pytest_himga.collect import case_of

    case = case_of(item, run)
    if case is None:
        return
    following = case_of(nextitem, run) if nextitem is not None else None
    if following is None or following.sample_id != case.sample_id:
        try:
            run.engine.release(case.sample_id)
        except BackendError as error:
            text = f"{case.sample_id}: {error.message}\n{error.details}".rstrip()
            raise pytest.fail.Exception(clean(text), pytrace=False) from None
