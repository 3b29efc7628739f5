"""Recall, hit, MRR, nDCG and session recall of one question, by the ids that came back."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_himga.score.retrieval import (
    first_ranks,
    metric_ks,
    retrieval_metrics,
    retrieval_names,
    session_recall,
    session_recall_names,
)

ids = st.sampled_from([f"D1:{n}" for n in range(8)])
rankings = st.lists(st.lists(ids, max_size=3), max_size=12)
evidence = st.lists(st.lists(ids, min_size=1, max_size=3), min_size=1, max_size=5)


@pytest.mark.parametrize(
    ("top_k", "ks"),
    [(1, [1]), (2, [1, 2]), (3, [1, 3]), (7, [1, 3, 5, 7]), (10, [1, 3, 5, 10]), (20, [1, 3, 5, 10, 20])],
)
def test_depths_never_go_beyond_top_k(top_k: int, ks: list[int]) -> None:
    assert metric_ks(top_k) == tuple(ks)


def test_a_top_k_of_nothing_is_an_error() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        metric_ks(0)


def test_one_of_two_turns_at_rank_two() -> None:
    ranked = [["D1:9", "1"], ["D1:2", "1"], ["D2:5", "2"]]
    assert retrieval_metrics(ranked, [["D1:2"], ["D3:1"]], top_k=3) == pytest.approx(
        {
            "recall@1": 0.0,
            "recall@3": 0.5,
            "hit@1": 0.0,
            "hit@3": 1.0,
            "mrr": 0.5,
            "ndcg@1": 0.0,
            # 1 / log2(3) gained of the ideal 1 + 1 / log2(3)
            "ndcg@3": (1 / math.log2(3)) / (1 + 1 / math.log2(3)),
        }
    )


def test_any_member_hits_its_group_be_it_a_turn_or_a_session() -> None:
    assert retrieval_metrics([["D4:2", "4"]], [["D9:1", "4"]], top_k=1)["recall@1"] == 1.0


def test_a_group_gains_once_however_often_it_comes_back() -> None:
    once = retrieval_metrics([["a"], ["x"], ["y"]], [["a"], ["b"]], top_k=3)
    again = retrieval_metrics([["a"], ["a"], ["a"]], [["a"], ["b"]], top_k=3)
    assert once == again


def test_a_chunk_that_covers_two_groups_beats_the_ideal_and_is_capped_at_1() -> None:
    metrics = retrieval_metrics([["a", "b"]], [["a"], ["b"]], top_k=5)
    assert metrics["ndcg@5"] == 1.0
    assert metrics["recall@1"] == 1.0


def test_what_lies_beyond_top_k_counts_nowhere() -> None:
    metrics = retrieval_metrics([["x"], ["y"], ["a"]], [["a"]], top_k=2)
    assert set(metrics.values()) == {0.0}


def test_a_question_without_evidence_is_not_measured() -> None:
    assert retrieval_metrics([["a"]], [], top_k=5) == {}


def test_first_ranks_leave_out_what_was_never_found() -> None:
    assert first_ranks([["x"], ["b"], ["a", "b"]], [["a"], ["z"], ["b", "q"]]) == [3, 2]


@given(rankings, evidence, st.integers(1, 15))
def test_every_number_is_in_0_to_1_and_has_its_name(
    ranked: list[list[str]], groups: list[list[str]], top_k: int
) -> None:
    metrics = retrieval_metrics(ranked, groups, top_k)
    assert tuple(metrics) == retrieval_names(top_k)
    assert all(0.0 <= value <= 1.0 for value in metrics.values())


@given(rankings, evidence, st.integers(1, 15))
def test_looking_deeper_never_loses_a_hit(
    ranked: list[list[str]], groups: list[list[str]], top_k: int
) -> None:
    metrics = retrieval_metrics(ranked, groups, top_k)
    for kind in ("recall", "hit"):
        by_depth = [metrics[f"{kind}@{k}"] for k in metric_ks(top_k)]
        assert by_depth == sorted(by_depth)


@given(rankings, evidence, st.integers(1, 15))
def test_hit_recall_and_mrr_agree_on_whether_anything_was_found(
    ranked: list[list[str]], groups: list[list[str]], top_k: int
) -> None:
    metrics = retrieval_metrics(ranked, groups, top_k)
    found = {metrics[f"{kind}@{top_k}"] > 0 for kind in ("recall", "hit", "ndcg")} | {metrics["mrr"] > 0}
    assert len(found) == 1


@given(st.integers(1, 12), st.integers(1, 15))
def test_a_perfect_ranking_scores_1_as_soon_as_it_can(n: int, top_k: int) -> None:
    turns = [[f"D1:{i}"] for i in range(n)]
    metrics = retrieval_metrics(turns, turns, top_k)
    assert metrics["mrr"] == 1.0
    for k in metric_ks(top_k):
        assert metrics[f"hit@{k}"] == 1.0
        assert metrics[f"ndcg@{k}"] == pytest.approx(1.0)
        assert metrics[f"recall@{k}"] == min(k, n) / n


@given(evidence, st.integers(1, 15))
def test_nothing_returned_scores_0_everywhere(groups: list[list[str]], top_k: int) -> None:
    assert set(retrieval_metrics([], groups, top_k).values()) == {0.0}


def test_session_recall_is_the_share_of_the_evidence_sessions_that_are_touched() -> None:
    ranked = [["4"], ["9", "2"], ["4"], [], ["7"]]
    assert session_recall(ranked, ["2", "4", "5", "7"], top_k=5) == {
        "session-recall@1": 0.25,
        "session-recall@3": 0.5,
        "session-recall@5": 0.75,
    }


def test_a_session_with_two_pieces_of_evidence_is_wanted_once() -> None:
    assert session_recall([["4"]], ["4", "4", "5"], top_k=1) == {"session-recall@1": 0.5}


def test_a_question_without_evidence_sessions_has_no_session_recall() -> None:
    assert session_recall([["4"]], [], top_k=5) == {}


def test_a_session_beyond_top_k_counts_nowhere() -> None:
    assert session_recall([["1"], ["2"], ["4"]], {"4"}, top_k=2) == {
        "session-recall@1": 0.0,
        "session-recall@2": 0.0,
    }


@given(rankings, st.lists(ids, min_size=1, max_size=6), st.integers(1, 15))
def test_session_recall_is_recall_with_a_group_a_session(
    ranked: list[list[str]], wanted: list[str], top_k: int
) -> None:
    recall = retrieval_metrics(ranked, [[one] for one in sorted(set(wanted))], top_k)
    sessions = session_recall(ranked, wanted, top_k)
    assert tuple(sessions) == session_recall_names(top_k)
    assert sessions == {f"session-{name}": value for name, value in recall.items() if "recall" in name}
