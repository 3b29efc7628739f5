"""The numbers of one dataset: verdicts and measurements of many questions, added up.

Accuracy is correct / (correct + wrong). Type rows and ``overall`` hold answerable questions only, the
unanswerable ones stand in ``abstention``, and ``all`` holds both. What was not measured is None, never 0.
Sums of floats are exact (``math.fsum``), so that no number depends on the order in which workers finished.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from pytest_himga.score.counts import AbstentionRow, Measured, Row, Share, Times
from pytest_himga.score.retrieval import retrieval_names
from pytest_himga.score.statistics import percentile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pytest_himga.score.record import Record

OVERALL, ALL, ABSTENTION = "overall", "all", "abstention"
MEAN_SCORE, CONTEXT_TOKENS, FALSE_REFUSAL = "mean-score", "context-tokens", "false-refusal"
#: What a token is reckoned at, in characters: no tokenizer is at hand that would suit every model.
CHARACTERS_A_TOKEN = 4


def known_names(types: Iterable[str], top_k: int) -> list[str]:
    """Every name that a number of a dataset with these types can have, in the order of reports."""
    names = [OVERALL, ALL, ABSTENTION, *types, MEAN_SCORE, "f1", *retrieval_names(top_k)]
    return list(dict.fromkeys([*names, CONTEXT_TOKENS, FALSE_REFUSAL]))


@dataclass(frozen=True)
class DatasetSummary:
    """All numbers of one dataset.

    ``types`` are rows of answerable questions, in the order of the labels. ``metrics`` (``f1``,
    ``recall@5``, ``mean-score``, ...) are means over answerable questions. ``context_chars`` and
    ``empty_contexts`` are over every question for which the memory returned something, if only "".
    ``type_names`` holds all types of the dataset, with or without questions here.
    """

    dataset: str
    top_k: int
    type_names: tuple[str, ...]
    types: tuple[Row, ...]
    overall: Row
    abstention: AbstentionRow
    all: Row
    metrics: Mapping[str, Measured]
    false_refusals: Share | None
    context_chars: Measured | None
    empty_contexts: Share | None
    times: Times
    samples: int
    samples_fed: int

    def row(self, name: str) -> Row | None:
        """Find the row of counts called ``name``; None if ``name`` is no accuracy, or has no question."""
        rows = (self.overall, self.all, self.abstention, *self.types)
        return next((row for row in rows if row.name == name), None)

    @property
    def context_tokens(self) -> float | None:
        """Mean tokens of a context, reckoned as characters / 4."""
        return None if self.context_chars is None else self.context_chars.value / CHARACTERS_A_TOKEN

    def names(self) -> list[str]:
        """Every name that ``totals`` has."""
        return list(dict.fromkeys([*known_names(self.type_names, self.top_k), *self.metrics]))

    def totals(self) -> dict[str, float | None]:
        """Every number by its name; None where it was not measured."""
        return {name: self._total(name) for name in self.names()}

    def exact(self, name: str) -> Fraction | None:
        """Give the share called ``name`` as a gate compares it: accuracies exact, means at 9 decimals.

        None if nothing was measured for it, or if it is not a share where more is better.
        """
        if row := self.row(name):
            return row.accuracy
        return self.metrics[name].exact if name in self.metrics else None

    def exact_bound(self, name: str) -> Fraction | None:
        """Give the best that ``exact(name)`` could have been, had no question been left unscored.

        Every unscored question counts as correct, or as 1.0. None if there is nothing to count, or if
        ``name`` is not a share where more is better.
        """
        if row := self.row(name):
            return row.bound
        if name in self.metrics:
            return self.metrics[name].bound
        if name in self.type_names or name in (CONTEXT_TOKENS, FALSE_REFUSAL) or not self.overall.unscored:
            return None
        return Fraction(1) if name in self.names() else None

    def bound(self, name: str) -> float | None:
        """``exact_bound(name)`` as a float."""
        best = self.exact_bound(name)
        return None if best is None else float(best)

    def _total(self, name: str) -> float | None:
        if name == CONTEXT_TOKENS:
            return self.context_tokens
        if name == FALSE_REFUSAL:
            return None if self.false_refusals is None else self.false_refusals.value
        if name in self.metrics:
            return self.metrics[name].value
        row = self.row(name)
        return None if row is None else row.score


def summarise(
    dataset: str,
    records: Sequence[Record],
    *,
    type_labels: Mapping[str, str],
    top_k: int,
    abstains: Callable[[str], bool] | None = None,
) -> DatasetSummary:
    """Add up the ``records`` of one dataset, one for each question (lost ones are ``unscored``).

    ``type_labels`` maps each type to what tables call it, in their order; a type that it lacks is called
    by its own name and comes last. ``abstains`` tells whether an answer is a refusal; without it there is
    no false-refusal rate.
    """
    answerable = [r for r in records if not r.expects_abstention]
    unanswerable = [r for r in records if r.expects_abstention]
    labels = dict(type_labels) | {r.type: r.type for r in records if r.type not in type_labels}
    by_type: dict[str, list[Record]] = {name: [] for name in labels}
    for record in answerable:
        by_type[record.type].append(record)
    chars = [r.context_chars for r in records if r.context_chars is not None]
    return DatasetSummary(
        dataset=dataset,
        top_k=top_k,
        type_names=tuple(labels),
        types=tuple(_row(name, labels[name], found) for name, found in by_type.items() if found),
        overall=_row(OVERALL, OVERALL, answerable),
        abstention=_abstention(unanswerable),
        all=_row(ALL, ALL, records),
        metrics=_metrics(answerable),
        false_refusals=_false_refusals(answerable, abstains),
        context_chars=Measured(_mean(chars), len(chars)) if chars else None,
        empty_contexts=Share(chars.count(0), len(chars)) if chars else None,
        times=_times(records),
        samples=len({r.sample for r in records}),
        samples_fed=len({r.sample for r in records if "ingest" in r.ms}),
    )


def _counts(records: Sequence[Record]) -> dict[str, int]:
    verdicts = [r.verdict for r in records]
    known = {
        "correct": verdicts.count("correct"),
        "wrong": verdicts.count("wrong"),
        "na": verdicts.count("n/a"),
    }
    # whatever is no verdict was not measured: it must show, and never count as one
    return known | {"unscored": len(verdicts) - sum(known.values())}


def _row(name: str, label: str, records: Sequence[Record]) -> Row:
    return Row(name, label, **_counts(records))


def _abstention(records: Sequence[Record]) -> AbstentionRow:
    met = [r.abstention for r in records if r.verdict in ("correct", "wrong")]
    how = {value: met.count(value) for value in ("held", "fell", "other")}
    return AbstentionRow(ABSTENTION, ABSTENTION, **_counts(records), **how)


def _metrics(answerable: Sequence[Record]) -> dict[str, Measured]:
    """Means by name; ``mean-score`` over verdicts that count, the others wherever they were measured."""
    values: dict[str, list[float]] = {}
    lacking: dict[str, int] = {}
    unscored = sum(r.verdict not in ("correct", "wrong", "n/a") for r in answerable)
    for record in answerable:
        numbers = dict(record.metrics)
        if record.score is not None and record.verdict in ("correct", "wrong"):
            numbers[MEAN_SCORE] = record.score
        for name, value in numbers.items():
            values.setdefault(name, []).append(value)
            if record.verdict not in ("correct", "wrong", "n/a"):
                lacking[name] = lacking.get(name, unscored) - 1
    return {
        name: Measured(_mean(found), len(found), lacking.get(name, unscored))
        for name, found in values.items()
    }


def _false_refusals(answerable: Sequence[Record], abstains: Callable[[str], bool] | None) -> Share | None:
    if abstains is None:
        return None
    answers = [r.answer for r in answerable if r.answer is not None and r.verdict in ("correct", "wrong")]
    return Share(sum(map(abstains, answers)), len(answers)) if answers else None


def _times(records: Sequence[Record]) -> Times:
    """Time the stages; one that came out of a cache took no time of its own and is not counted."""
    retrieve = [r.ms["retrieve"] for r in records if "retrieve" in r.ms and "retrieve" not in r.cached]
    ingest: dict[str, float] = {}
    for record in records:
        if "ingest" in record.ms and "ingest" not in record.cached:
            ingest[record.sample] = max(record.ms["ingest"], ingest.get(record.sample, 0.0))
    return Times(
        retrieve_p50=percentile(retrieve, 50) if retrieve else None,
        retrieve_p95=percentile(retrieve, 95) if retrieve else None,
        ingest_mean=_mean(ingest.values()) if ingest else None,
        ingest_most=max(ingest.values()) if ingest else None,
    )


def _mean(values: Iterable[float]) -> float:
    numbers = list(values)
    return math.fsum(numbers) / len(numbers)
