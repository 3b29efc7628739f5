"""How well the evidence was found, by ids: recall, hit, MRR, nDCG and session recall of one question.

Everything counts evidence *groups*: a group is covered by the first returned thing that carries one of
its members (a turn id or a session id).
"""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

#: The depths that papers on retrieval report; the run's own top-k joins them.
USUAL_KS = (1, 3, 5, 10)


@cache
def metric_ks(top_k: int) -> tuple[int, ...]:
    """List the depths K that are measured with ``top_k``: 1, 3, 5, 10 and itself, none beyond it.

    >>> metric_ks(7)
    (1, 3, 5, 7)
    """
    if top_k < 1:
        raise ValueError(f"top-k is at least 1, and {top_k} is not")
    return tuple(sorted({k for k in (*USUAL_KS, top_k) if k <= top_k}))


@cache
def retrieval_names(top_k: int) -> tuple[str, ...]:
    """List the names that ``retrieval_metrics`` gives, in the order of reports."""
    ks = metric_ks(top_k)
    return (
        *(f"recall@{k}" for k in ks),
        *(f"hit@{k}" for k in ks),
        "mrr",
        *(f"ndcg@{k}" for k in ks),
    )


def retrieval_metrics(
    ranked: Sequence[Collection[str]], groups: Sequence[Collection[str]], top_k: int
) -> dict[str, float]:
    """Measure the retrieval of one question: numbers in 0..1, by name; {} where there is no evidence.

    ``ranked`` holds the ids of each returned thing, best first; what lies beyond ``top_k`` is ignored.

    - ``recall@K``: share of the groups that the first K cover.
    - ``hit@K``: 1.0 if they cover any.
    - ``mrr``: 1 / rank of the first that covers any, 0.0 if none does.
    - ``ndcg@K``: a group gains 1 / log2(rank + 1), once, at the first rank that covers it. The ideal is
      one group a rank from rank 1 on. A returned chunk may cover several groups at once and so beat that
      ideal, hence the cap at 1.0.

    >>> retrieval_metrics([["D1:2"], ["D1:1", "1"]], [["D1:1"]], top_k=1)
    {'recall@1': 0.0, 'hit@1': 0.0, 'mrr': 0.0, 'ndcg@1': 0.0}
    """
    ks = metric_ks(top_k)
    if not groups:
        return {}
    first = first_ranks(ranked[:top_k], groups)
    covered = {k: sum(rank <= k for rank in first) for k in ks}
    values = [covered[k] / len(groups) for k in ks]
    values += [float(covered[k] > 0) for k in ks]
    values += [1 / min(first) if first else 0.0]
    values += [_ndcg(first, len(groups), k) for k in ks]
    return dict(zip(retrieval_names(top_k), values, strict=True))


@cache
def session_recall_names(top_k: int) -> tuple[str, ...]:
    """List the names that ``session_recall`` gives."""
    return tuple(f"session-recall@{k}" for k in metric_ks(top_k))


def session_recall(
    ranked: Sequence[Collection[str]], wanted: Collection[str], top_k: int
) -> dict[str, float]:
    """``session-recall@K``: share of the evidence sessions that the first K returned things touch.

    ``ranked`` holds the sessions of each returned thing, best first, and ``wanted`` those in which
    evidence stands, each counted once. {} if none is wanted: there is nothing to measure.

    >>> session_recall([["2"], ["7", "2"], ["1"]], ["1", "2"], top_k=3)
    {'session-recall@1': 0.5, 'session-recall@3': 1.0}
    """
    sessions = dict.fromkeys(wanted)
    if not sessions:
        return {}
    first = first_ranks(ranked[:top_k], [[session] for session in sessions])
    shares = [sum(rank <= k for rank in first) / len(sessions) for k in metric_ks(top_k)]
    return dict(zip(session_recall_names(top_k), shares, strict=True))


def first_ranks(ranked: Sequence[Collection[str]], groups: Sequence[Collection[str]]) -> list[int]:
    """Find the rank, from 1, at which each group is first covered; uncovered groups are left out."""
    first_seen: dict[str, int] = {}
    for rank, ids in enumerate(ranked, start=1):
        for name in ids:
            first_seen.setdefault(name, rank)
    hits = [[first_seen[member] for member in group if member in first_seen] for group in groups]
    return [min(ranks) for ranks in hits if ranks]


def _ndcg(first: Sequence[int], n_groups: int, k: int) -> float:
    gained = math.fsum(1 / math.log2(rank + 1) for rank in first if rank <= k)
    ideal = math.fsum(1 / math.log2(rank + 1) for rank in range(1, min(n_groups, k) + 1))
    return min(1.0, gained / ideal)
