"""Verdict and the judge's contract."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol, get_args

if TYPE_CHECKING:
    from pytest_himga.data.schema import Case
    from pytest_himga.memory.protocol import Context, Usage

VerdictValue = Literal["correct", "wrong", "unscored", "n/a"]
VERDICT_VALUES: tuple[VerdictValue, ...] = get_args(VerdictValue)
#: How an unanswerable question was met: abstained, repeated the trap, or said something else.
AbstentionValue = Literal["held", "fell", "other"]


@dataclass(frozen=True)
class Verdict:
    """What a judge says of one answer.

    ``value`` is ``correct``, ``wrong``, ``unscored`` (it should have been measured and was not: the
    ``reason``) or ``n/a`` (this judge does not apply to this question: the ``reason``). ``score`` is in
    0..1 and None where nothing was measured. ``metrics`` holds named numbers in 0..1 beside the verdict
    (``lexical``: ``{"f1": ...}``).
    """

    value: VerdictValue
    score: float | None = None
    reason: str = ""
    votes: tuple[str, ...] = ()
    usage: Usage | None = None
    abstention: AbstentionValue | None = None
    metrics: tuple[tuple[str, float], ...] = ()


class Judge(Protocol):
    """Turns an answer, or the context itself, into a verdict. ``name`` goes into every report.

    ``judge`` may be sync or async. ``answer`` is None where nothing produced one.
    """

    name: str

    def judge(self, case: Case, answer: str | None, context: Context) -> Verdict:
        """The verdict; raising makes the question unscored, with the error as its reason."""
