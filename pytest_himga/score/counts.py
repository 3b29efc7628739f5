"""What a summary is made of: a row of counts, a mean, a share, times. Nothing here reads a record."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from pytest_himga.score.statistics import wilson

if TYPE_CHECKING:
    from collections.abc import Iterable

#: Means of floats are compared at this many decimals: far finer than one question of any dataset can
#: move them, far coarser than what adding floats can.
DECIMALS = 9


@dataclass(frozen=True)
class Row:
    """Verdicts of one group of questions, counted; ``n`` is the sum of the four counts.

    ``name`` is what thresholds call it, ``label`` what tables print.
    """

    name: str
    label: str
    correct: int
    wrong: int
    unscored: int
    na: int

    @property
    def n(self) -> int:
        """All questions of the group, measured or not."""
        return self.measured + self.unscored + self.na

    @property
    def measured(self) -> int:
        """Questions with a verdict that counts: correct or wrong."""
        return self.correct + self.wrong

    @property
    def accuracy(self) -> Fraction | None:
        """The share of correct ones among those measured, exact."""
        return Fraction(self.correct, self.measured) if self.measured else None

    @property
    def score(self) -> float | None:
        """``accuracy`` as a float."""
        return None if self.accuracy is None else float(self.accuracy)

    @property
    def interval(self) -> tuple[float, float] | None:
        """Wilson's 95 % interval of the accuracy."""
        return wilson(self.correct, self.measured) if self.measured else None

    @property
    def bound(self) -> Fraction | None:
        """The accuracy if every unscored question had been correct."""
        possible = self.measured + self.unscored
        return Fraction(self.correct + self.unscored, possible) if possible else None

    @property
    def worst(self) -> Fraction | None:
        """The accuracy if every unscored question had been wrong."""
        possible = self.measured + self.unscored
        return Fraction(self.correct, possible) if possible else None


def row_of(name: str, label: str, verdicts: Iterable[str]) -> Row:
    """The row of a group with these verdicts."""
    return Row(name, label, **counts_of(verdicts))


def counts_of(verdicts: Iterable[str]) -> dict[str, int]:
    """The four counts of a row.

    Whatever is none of the four verdicts was not measured: it must show, and never count as one.
    """
    found = list(verdicts)
    known = {"correct": found.count("correct"), "wrong": found.count("wrong"), "na": found.count("n/a")}
    return known | {"unscored": len(found) - sum(known.values())}


@dataclass(frozen=True)
class AbstentionRow(Row):
    """Unanswerable questions, and how they were met where a judge could tell."""

    held: int
    fell: int
    other: int

    @property
    def told(self) -> int:
        """Questions of which it is known how they were met."""
        return self.held + self.fell + self.other


@dataclass(frozen=True)
class Measured:
    """A mean over the ``n`` questions where it was measured.

    ``missing`` counts unscored questions that lack it, so that it might have been better.
    """

    value: float
    n: int
    missing: int = 0

    @property
    def exact(self) -> Fraction:
        """The mean at 9 decimals, to be compared without float surprises (0.7 ten times is 0.7)."""
        return Fraction(f"{self.value:.{DECIMALS}f}")

    @property
    def bound(self) -> Fraction:
        """The mean if every missing question had had 1.0."""
        return (self.exact * self.n + self.missing) / (self.n + self.missing)


@dataclass(frozen=True)
class Share:
    """``count`` of ``n``; ``n`` is at least 1."""

    count: int
    n: int

    @property
    def value(self) -> float:
        """The share, 0..1."""
        return self.count / self.n


@dataclass(frozen=True)
class Spent:
    """What the models of one stage were asked, over all questions.

    Of the ``calls``, failed attempts included, ``retries`` were not the first of their request, and
    ``untold`` came back without token counts; ``cached`` requests cost no call. ``p50`` and ``p95`` are
    milliseconds a question, of those that were asked anything; None where none was.
    """

    calls: int
    retries: int
    untold: int
    cached: int
    tokens_in: int
    tokens_out: int
    p50: float | None = None
    p95: float | None = None


@dataclass(frozen=True)
class Votes:
    """How the votes of a judge went: ``split`` of the ``n`` questions with several were not unanimous."""

    split: int
    n: int


@dataclass(frozen=True)
class Times:
    """Milliseconds: of a retrieval at the 50th and 95th percentile; of feeding a sample, mean and most."""

    retrieve_p50: float | None = None
    retrieve_p95: float | None = None
    ingest_mean: float | None = None
    ingest_most: float | None = None
