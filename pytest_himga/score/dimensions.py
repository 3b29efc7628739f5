"""The numbers of a longitudinal dataset, in the score room: how recall fares with age, time and agents.

They are sliced by the facets of its questions, which hold answerable and recoverable ones only:

- ``age``: how many sessions lie between the fact and the question;
- ``checkpoint``: in which round of questions it is asked, 1, 2, ...;
- ``cross_agent``: another agent was told the answer;
- ``cold_start``: a fresh instance over the same store has to answer.

A question never falls out of a slicing silently: an age beyond the last bucket, and an age or a checkpoint
that is missing, have rows of their own, which no threshold can name.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from pytest_himga.score.counts import Row, row_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pytest_himga.score.record import Record

#: Buckets of ages in sessions, half open but for the last, which is closed: a fact of the first session
#: asked about after 1,000 belongs to it.
AGES = (("age-0-100", 0, 100), ("age-100-500", 100, 500), ("age-500-1000", 500, 1000))
SLOPE, CONTRADICTION, CROSS_AGENT, COLD_START = "slope", "contradiction", "cross-agent", "cold-start"
#: Better the lower it is, so that no threshold can name it.
COST = "cost-per-correct"

Key = TypeVar("Key")

_OLDER, _NO_AGE, _NO_CHECKPOINT = "age-1000+", "age unknown", "checkpoint unknown"
_AGENTS = ((CROSS_AGENT, "cross_agent"), (COLD_START, "cold_start"))
_FACETS = ("age", "checkpoint", *(facet for _, facet in _AGENTS))
#: The question type whose accuracy is called ``contradiction``.
_CONTRADICTIONS = "contradiction_resolution"


@dataclass(frozen=True)
class Cost:
    """What a dataset's questions cost in all, in the price list's currency, and how many came out correct."""

    total: float
    correct: int

    @property
    def per_correct(self) -> float | None:
        """The cost of a correct answer; None if there is none."""
        return self.total / self.correct if self.correct else None


@dataclass(frozen=True)
class Dimensions:
    """The rows that have questions, and what follows from them; ``cost`` is None where nothing was paid.

    ``curve`` holds the checkpoints in their order, each with its row.
    """

    ages: tuple[Row, ...]
    curve: tuple[tuple[int, Row], ...]
    unplaced: tuple[Row, ...]
    kinds: tuple[Row, ...]
    cost: Cost | None

    @property
    def rows(self) -> tuple[Row, ...]:
        """All rows, in the order of reports."""
        return (*self.ages, *(row for _, row in self.curve), *self.unplaced, *self.kinds)

    @property
    def names(self) -> list[str]:
        """Every number of such a dataset by its name, measured here or not; see ``dimension_names``."""
        return _names(number for number, _ in self.curve)

    @property
    def measured(self) -> list[tuple[int, Row]]:
        """The checkpoints that have a verdict."""
        return [(checkpoint, row) for checkpoint, row in self.curve if row.measured]

    @property
    def unscored(self) -> int:
        """The unscored questions of the curve."""
        return sum(row.unscored for _, row in self.curve)

    @cached_property
    def slope(self) -> Fraction | None:
        """The least squares slope of the accuracy over the checkpoint's number, exact, in -1..1.

        Every measured checkpoint weighs the same, however many questions it has: it is the slope of the
        curve as a reader sees it. None with fewer than two of them.
        """
        points = [(checkpoint, row.accuracy) for checkpoint, row in self.measured]
        return slope_of([(x, y) for x, y in points if y is not None])

    @cached_property
    def slope_bound(self) -> Fraction | None:
        """The steepest rise that the slope could have been, had no question been left unscored.

        The slope is linear in each accuracy, so its most lies where those that raise it are at their best
        and those that lower it at their worst. A checkpoint with unscored questions alone may be anything.
        """
        held = [(checkpoint, row) for checkpoint, row in self.curve if row.bound is not None]
        if len(held) < 2:
            return None
        middle = Fraction(sum(x for x, _ in held), len(held))
        ends = [(x, row.bound if x > middle else row.worst) for x, row in held]
        best = slope_of([(x, y) for x, y in ends if y is not None])
        found = [slope for slope in (best, self.slope) if slope is not None]
        return max(found, default=None)


def has_dimensions(facets: Mapping[str, Any]) -> bool:
    """Whether a question with these facets belongs to a dataset of this kind."""
    return any(name in facets for name in _FACETS)


def dimension_names(facets: Iterable[Mapping[str, Any]], types: Iterable[str]) -> list[str]:
    """Name the numbers of a run of questions with these facets and types, in the order of reports.

    The questions are the answerable, recoverable ones that are selected. A name is there only if one of
    them can bring it a verdict, the slope only with two checkpoints.
    """
    asked = [one for one in facets if has_dimensions(one)]
    if not asked:
        return []
    found = {_bucket(one.get("age")) for one in asked} | {COST}
    numbers = {_checkpoint(one.get("checkpoint")) for one in asked}
    checkpoints = sorted(number for number in numbers if number is not None)
    found |= {_checkpoint_name(number) for number in checkpoints}
    if len(checkpoints) > 1:
        found.add(SLOPE)
    found |= {name for name, facet in _AGENTS if any(one.get(facet) is True for one in asked)}
    if _CONTRADICTIONS in types:
        found.add(CONTRADICTION)
    return [name for name in _names(checkpoints) if name in found]


def _names(checkpoints: Iterable[int]) -> list[str]:
    curve = map(_checkpoint_name, checkpoints)
    return [*(name for name, _, _ in AGES), *curve, SLOPE, CONTRADICTION, CROSS_AGENT, COLD_START, COST]


def _checkpoint_name(number: int) -> str:
    return f"checkpoint-{number}"


def dimensions_of(scored: Sequence[Record], everything: Sequence[Record]) -> Dimensions | None:
    """Slice the ``scored`` records (answerable, recoverable); None for a dataset without such facets.

    ``everything`` are all records of the dataset: what they cost is shared by all that is correct.
    """
    if not any(has_dimensions(record.facets) for record in everything):
        return None
    ages = _by(scored, "age", _bucket)
    places = _by(scored, "checkpoint", _checkpoint)
    curve = {number: found for number, found in places.items() if number is not None}
    nowhere = places.get(None, [])
    kinds = {CONTRADICTION: [record for record in scored if record.type == _CONTRADICTIONS]}
    kinds |= {
        name: [record for record in scored if record.facets.get(facet) is True] for name, facet in _AGENTS
    }
    buckets = (*(name for name, _, _ in AGES), _OLDER, _NO_AGE)
    return Dimensions(
        ages=tuple(_row(name, ages[name]) for name in buckets if name in ages),
        curve=tuple(
            (number, _row(_checkpoint_name(number), curve[number], f"checkpoint {number}"))
            for number in sorted(curve)
        ),
        unplaced=(_row(_NO_CHECKPOINT, nowhere),) if nowhere else (),
        kinds=tuple(_row(name, found) for name, found in kinds.items() if found),
        cost=_cost(everything),
    )


def slope_of(points: Sequence[tuple[int, Fraction]]) -> Fraction | None:
    """The least squares slope through ``points`` of different x, exact; None for fewer than two.

    >>> slope_of([(1, Fraction(1)), (2, Fraction(1, 2)), (3, Fraction(1, 2))])
    Fraction(-1, 4)
    """
    if len(points) < 2:
        return None
    middle = Fraction(sum(x for x, _ in points), len(points))
    return sum(((x - middle) * y for x, y in points), Fraction()) / sum((x - middle) ** 2 for x, _ in points)


def _by(records: Sequence[Record], facet: str, key: Callable[[Any], Key]) -> dict[Key, list[Record]]:
    """The records by the ``key`` of their facet; {} for a dataset that has no such facet at all."""
    found: dict[Key, list[Record]] = {}
    if any(facet in record.facets for record in records):
        for record in records:
            found.setdefault(key(record.facets.get(facet)), []).append(record)
    return found


def _bucket(age: Any) -> str:
    if isinstance(age, bool) or not isinstance(age, int | float) or not age >= 0:
        return _NO_AGE
    last, _, end = AGES[-1]
    if age == end:
        return last
    return next((name for name, start, stop in AGES if start <= age < stop), _OLDER)


def _checkpoint(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _row(name: str, records: Sequence[Record], label: str = "") -> Row:
    return row_of(name, label or name, (record.verdict for record in records))


def _cost(records: Sequence[Record]) -> Cost | None:
    """Add up what was used; feeding a sample stands in each of its records and was paid once a worker."""
    feeding: dict[tuple[str, str], float] = {}
    asking: list[float] = []
    for record in records:
        for stage, used in record.usage.items():
            cost: Any = used.get("cost", 0.0)
            if not isinstance(cost, int | float) or not math.isfinite(cost):
                return None  # a judge's own idea of a number: the sum would be none either
            if stage == "ingest":
                fed = (record.sample, record.worker)
                feeding[fed] = max(cost, feeding.get(fed, 0.0))
            else:
                asking.append(cost)
    total = math.fsum([*feeding.values(), *asking])
    correct = sum(record.verdict == "correct" for record in records)
    return Cost(total, correct) if total > 0 else None
