"""What is measured beside the verdicts, over many records: means, shares, times. None where nothing was."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from pytest_himga.score.counts import Measured, Share, Times
from pytest_himga.score.retrieval import retrieval_names, session_recall_names
from pytest_himga.score.statistics import percentile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from pytest_himga.score.record import Record

MEAN_SCORE = "mean-score"


def metric_names(top_k: int) -> tuple[str, ...]:
    """The means over questions that a dataset may have, in the order of reports."""
    return (MEAN_SCORE, "f1", *retrieval_names(top_k), *session_recall_names(top_k))


def metrics_of(scored: Sequence[Record]) -> dict[str, Measured]:
    """Means by name; ``mean-score`` over verdicts that count, the others wherever they were measured."""
    values: dict[str, list[float]] = {}
    lacking: dict[str, int] = {}
    unscored = sum(r.verdict not in ("correct", "wrong", "n/a") for r in scored)
    for record in scored:
        numbers = dict(record.metrics)
        if record.score is not None and record.verdict in ("correct", "wrong"):
            numbers[MEAN_SCORE] = record.score
        for name, value in numbers.items():
            values.setdefault(name, []).append(value)
            if record.verdict not in ("correct", "wrong", "n/a"):
                lacking[name] = lacking.get(name, unscored) - 1
    return {
        name: Measured(mean_of(found), len(found), lacking.get(name, unscored))
        for name, found in values.items()
    }


def false_refusals_of(scored: Sequence[Record], abstains: Callable[[str], bool] | None) -> Share | None:
    """The share of answers that refuse a question which can be answered; ``abstains`` tells a refusal."""
    if abstains is None:
        return None
    answers = [r.answer for r in scored if r.answer is not None and r.verdict in ("correct", "wrong")]
    return Share(sum(map(abstains, answers)), len(answers)) if answers else None


def times_of(records: Sequence[Record]) -> Times:
    """Time the stages; one that came out of a cache took no time of its own and is not counted."""
    retrieve = [r.ms["retrieve"] for r in records if "retrieve" in r.ms and "retrieve" not in r.cached]
    ingest: dict[str, float] = {}
    for record in records:
        if "ingest" in record.ms and "ingest" not in record.cached:
            ingest[record.sample] = max(record.ms["ingest"], ingest.get(record.sample, 0.0))
    return Times(
        retrieve_p50=percentile(retrieve, 50) if retrieve else None,
        retrieve_p95=percentile(retrieve, 95) if retrieve else None,
        ingest_mean=mean_of(ingest.values()) if ingest else None,
        ingest_most=max(ingest.values()) if ingest else None,
    )


def mean_of(values: Iterable[float]) -> float:
    """The mean, exactly summed: it does not depend on the order in which workers finished."""
    numbers = list(values)
    return math.fsum(numbers) / len(numbers)
