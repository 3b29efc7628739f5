"""Whether a dataset's numbers are good enough, and what the run's exit status is.

Accuracies are compared as fractions, so that 612 of 841 is exactly that; see ``Measured.exact`` for means.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Literal

from pytest_himga.score.dimensions import SLOPE
from pytest_himga.score.summary import OVERALL, DatasetSummary
from pytest_himga.score.thresholds import Threshold, decimal

if TYPE_CHECKING:
    from collections.abc import Sequence

GateStatus = Literal["passed", "failed", "proven", "unmeasured"]

#: Exit status of a run that did not measure what it was asked to; pytest itself uses 0 to 5.
NOT_MEASURED = 6
#: Digits that a score is printed with, unless more are needed to tell it from its threshold.
DIGITS = 4


@dataclass(frozen=True)
class GateResult:
    """How one threshold came out on one dataset.

    ``passed`` and ``failed`` go by what was measured; ``proven`` is a failure that stands even with every
    unscored question counted correct; ``unmeasured`` means that the number does not exist. ``n`` is how
    many questions it was measured on, ``text`` the sentence for people.
    """

    dataset: str
    name: str
    threshold: Threshold
    value: float | None
    n: int
    status: GateStatus
    text: str


@dataclass(frozen=True)
class _Basis:
    """What a number rests on, in the words of its sentence; ``needed`` is what it lacks, "" if untold."""

    n: int
    counted: str
    unscored: int
    as_if: str
    needed: str = ""


def evaluate(threshold: Threshold, summary: DatasetSummary) -> GateResult:
    """Compare one number of ``summary`` with its minimum; ``threshold.name`` as the summary spells it."""
    value, bound = summary.exact(threshold.name), summary.exact_bound(threshold.name)
    basis = _basis(threshold, summary)

    def result(status: GateStatus, text: str) -> GateResult:
        shown = None if value is None else float(value)
        return GateResult(summary.dataset, threshold.name, threshold, shown, basis.n, status, text)

    if value is None:
        why = _why_unmeasured(threshold.name, summary)
        return result("unmeasured", f"{threshold.name} was not measured: {why}")
    least = decimal(threshold.value)
    figure = f"{threshold.name} {digits(value, threshold.value)}"
    if value >= threshold.value:
        return result("passed", f"{figure} is at least {least} ({basis.counted})")
    parts = [basis.counted, *([basis.needed] if basis.needed else [])]
    proven = bound is not None and bound < threshold.value
    if basis.unscored and bound is not None:
        best = f"{'still ' if proven else ''}{digits(bound, threshold.value)}"
        them = (
            "the 1 unscored question" if basis.unscored == 1 else f"all {basis.unscored} unscored questions"
        )
        parts.append(f"{best} with {them} counted as {basis.as_if}")
    return result("proven" if proven else "failed", f"{figure} is below {least} ({'; '.join(parts)})")


def _basis(threshold: Threshold, summary: DatasetSummary) -> _Basis:
    if threshold.name == SLOPE and summary.dimensions:
        found = summary.dimensions
        n = sum(row.measured for _, row in found.measured)
        over = f"least squares over {len(found.measured)} checkpoints, {_questions(n)}"
        return _Basis(n, over, found.unscored, "whatever lifts it most")
    if row := summary.row(threshold.name):
        more = math.ceil(threshold.value * row.measured) - row.correct
        counted = f"{row.correct} of {row.measured}"
        return _Basis(row.measured, counted, row.unscored, "correct", f"{_more(more)} needed")
    metric = summary.metrics.get(threshold.name)
    n = metric.n if metric else 0
    return _Basis(n, f"mean over {_questions(n)}", metric.missing if metric else 0, "1")


def undecided(result: GateResult) -> GateResult:
    """``result`` where more questions are unscored than the user allows: only a proof still stands."""
    if result.status not in ("passed", "failed"):
        return result
    return replace(result, status="unmeasured", text=f"not decided while too much is unscored: {result.text}")


def suggested_threshold(summary: DatasetSummary) -> str | None:
    """Round the measured ``overall`` down to two decimals: a minimum that this run would have passed.

    None if it was not measured, or if it would be 0.00, which nothing can fail.
    """
    value = summary.exact(OVERALL)
    hundredths = 0 if value is None else math.floor(value * 100)
    return f"{hundredths / 100:.2f}" if hundredths else None


def decide_exit(pytest_status: int, *, proven: bool, unmeasured: Sequence[str]) -> tuple[int, str]:
    """Decide the run's exit status, and the last line that explains a 6 ("" otherwise).

    ``pytest_status`` is pytest's own; ``proven`` says that something failed which the missing data cannot
    mend; ``unmeasured`` holds a phrase for each thing that should have been measured and was not.
    pytest's 2 to 5, and whatever another plugin chose, stand. A 1 that nothing here explains stands too:
    this function never turns a failure into success.
    """
    if pytest_status not in (0, 1):
        return pytest_status, ""
    if proven:
        return 1, ""
    if unmeasured:
        return NOT_MEASURED, f"himga: not measured (exit status {NOT_MEASURED}): {'; '.join(unmeasured)}"
    return pytest_status, ""


def digits(value: Fraction, threshold: Fraction) -> str:
    """``value`` with four decimals, or as many more as keep it on its own side of ``threshold``.

    >>> digits(Fraction(2, 3), Fraction(7, 10)), digits(Fraction(2, 3), Fraction("0.6667"))
    ('0.6667', '0.66667')
    """
    places = DIGITS
    while True:
        scaled = round(value * 10**places)
        if (Fraction(scaled, 10**places) < threshold) == (value < threshold):
            whole, rest = divmod(abs(scaled), 10**places)
            return f"{'-' if scaled < 0 else ''}{whole}.{rest:0{places}d}"
        places += 1


def _why_unmeasured(name: str, summary: DatasetSummary) -> str:
    if name == SLOPE and (dimensions := summary.dimensions):
        found = len(dimensions.measured)
        return (
            f"it takes two checkpoints with a verdict, and {found or 'none'} ha{'s' if found else 've'} one"
        )
    row = summary.row(name)
    if row is None:
        return f"no question of this run has a value for {name}"
    if not row.n:
        return "this run has no such question"
    counts = [f"{row.unscored} unscored"] if row.unscored else []
    counts += [f"{row.na} n/a"] if row.na else []
    return f"none of {_questions(row.n)} has a verdict ({', '.join(counts)})"


def _questions(n: int) -> str:
    return f"{n} question" if n == 1 else f"{n} questions"


def _more(n: int) -> str:
    return f"{n} more correct answer{'' if n == 1 else 's'}"
