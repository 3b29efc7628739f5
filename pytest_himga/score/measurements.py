"""What is measured beside the verdicts, over many records: means, shares, times. None where nothing was."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from pytest_himga.score.counts import Measured, Share, Spent, Times, Votes
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


def spent_of(records: Sequence[Record], stage: str) -> Spent | None:
    """What the models of a stage were asked; None where nothing was."""
    used = [record.usage[stage] for record in records if stage in record.usage]
    names = ("calls", "retries", "untold", "cached", "tokens_in", "tokens_out")
    sums = {name: int(sum(one.get(name, 0) for one in used)) for name in names}
    if not sums["calls"] and not sums["cached"]:
        return None
    took = [r.ms[stage] for r in records if stage in r.ms and r.usage.get(stage, {}).get("calls")]
    return Spent(
        **sums,
        p50=percentile(took, 50) if took else None,
        p95=percentile(took, 95) if took else None,
    )


def votes_of(records: Sequence[Record]) -> Votes | None:
    """How the votes went; None where no question had several."""
    voted = [record.votes for record in records if len(record.votes) > 1]
    return Votes(sum(len(set(votes)) > 1 for votes in voted), len(voted)) if voted else None


def mean_of(values: Iterable[float]) -> float:
    """The mean, exactly summed: it does not depend on the order in which workers finished."""
    numbers = list(values)
    return math.fsum(numbers) / len(numbers)
