"""Verdict and the judge's contract."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol, get_args

from pytest_himga.data.files import shown
from pytest_himga.memory.protocol import Usage

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from pytest_himga.data.schema import Case
    from pytest_himga.memory.protocol import Context

VerdictValue = Literal["correct", "wrong", "unscored", "n/a"]
VERDICT_VALUES: tuple[VerdictValue, ...] = get_args(VerdictValue)
#: What one reading of an answer, or one vote, can say.
OpinionValue = Literal["correct", "wrong"]
#: How an unanswerable question was met: abstained, repeated the trap, or said something else.
AbstentionValue = Literal["held", "fell", "other"]
ABSTENTION_VALUES: tuple[AbstentionValue, ...] = get_args(AbstentionValue)


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

    def judge(
        self, case: Case, answer: str | None, context: Context
    ) -> Verdict | Coroutine[Any, Any, Verdict]:
        """The verdict; raising makes the question unscored, with the error as its reason."""


def problem_of(verdict: object) -> str:
    """Why what a judge of the user's returned is no verdict, as the end of a sentence; empty if it is one."""
    if not isinstance(verdict, Verdict):
        kind = "None" if verdict is None else f"a value of type {type(verdict).__name__}"
        return f"returned {kind}; return a Verdict"
    given: Any = verdict  # a user's code may put anything into the fields
    scored = given.value in ("correct", "wrong")
    rules = (
        ("value", given.value in VERDICT_VALUES, f"one of {', '.join(VERDICT_VALUES)}"),
        ("score", not scored or _is_share(given.score), "a number from 0 to 1"),
        ("reason", isinstance(given.reason, str), "a text"),
        ("votes", _all(given.votes, lambda vote: isinstance(vote, str)), "a tuple of texts"),
        ("metrics", _all(given.metrics, _is_metric), "a tuple of pairs: a name, a number from 0 to 1"),
        ("usage", given.usage is None or isinstance(given.usage, Usage), "a Usage, or None"),
        (
            "abstention",
            given.abstention is None or given.abstention in ABSTENTION_VALUES,
            f"one of {', '.join(ABSTENTION_VALUES)}, or None",
        ),
    )
    for field, right, expected in rules:
        if not right:
            return f"gave a Verdict whose {field} is {shown(getattr(given, field))}; expected {expected}"
    return ""


def _is_share(value: object) -> bool:
    return isinstance(value, int | float) and 0 <= value <= 1


def _is_metric(pair: object) -> bool:
    return isinstance(pair, tuple) and len(pair) == 2 and isinstance(pair[0], str) and _is_share(pair[1])


def _all(values: object, right: Callable[[object], bool]) -> bool:
    return isinstance(values, tuple | list) and all(right(value) for value in values)
