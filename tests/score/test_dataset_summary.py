"""Adding up: which questions stand in which number, and what is not measured stays None."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_himga.score.record import Record
from pytest_himga.score.summary import DatasetSummary, known_names, summarise

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

LABELS = {"temporal": "2 temporal", "single_hop": "4 single_hop", "adversarial": "5 adversarial"}


def question(kind: str = "temporal", verdict: str = "correct", **fields: Any) -> Record:
    """A record of one question; ``fields`` are whatever the test is about."""
    base: dict[str, Any] = {
        "id": "himga/tiny/a::q",
        "dataset": "tiny",
        "sample": "a",
        "uid": "q",
        "type": kind,
        "expects_abstention": False,
        "verdict": verdict,
        "score": None,
        "reason": "",
        "judge": "lexical",
        "question": "Where did Ada move?",
        "gold": "Porto",
        "trap": None,
    }
    return Record(**(base | fields))


def trap(verdict: str = "n/a", **fields: Any) -> Record:
    """A record of an unanswerable question."""
    return question("adversarial", verdict, expects_abstention=True, gold=None, trap="Rome", **fields)


def excluded(verdict: str = "wrong", **fields: Any) -> Record:
    """A record of a question that an erratum excludes."""
    return question(verdict=verdict, errata={"excluded": "the answer is in no turn"}, **fields)


def corrected(verdict: str, published: str | None, **fields: Any) -> Record:
    """A record of a question with a corrected gold, and the verdict that the published one had got."""
    errata = {"gold": "Rome", "verdict": published, "score": None}
    return question(verdict=verdict, errata=errata, **fields)


def add_up(
    *records: Record, abstains: Callable[[str], bool] | None = None, errata: bool = False
) -> DatasetSummary:
    return summarise("tiny", records, type_labels=LABELS, top_k=3, abstains=abstains, errata=errata)


def test_accuracy_is_correct_among_correct_and_wrong_and_nothing_else() -> None:
    verdicts = ["correct", "correct", "wrong", "unscored", "n/a"]
    row = add_up(*(question(verdict=verdict) for verdict in verdicts)).overall
    assert (row.n, row.correct, row.wrong, row.unscored, row.na) == (5, 2, 1, 1, 1)
    assert row.accuracy == Fraction(2, 3)
    assert row.interval == pytest.approx((0.2077, 0.9385), abs=1e-4)


def test_types_and_overall_hold_answerable_questions_and_all_holds_both() -> None:
    summary = add_up(
        question("temporal", "wrong"),
        question("adversarial", "correct"),
        trap("wrong", abstention="fell"),
        trap("correct", abstention="held"),
        trap("wrong", abstention="other"),
        trap("wrong", abstention="fell"),
    )
    assert [(row.name, row.label, row.n) for row in summary.types] == [
        ("temporal", "2 temporal", 1),
        ("adversarial", "5 adversarial", 1),
    ]
    assert (summary.overall.n, summary.abstention.n, summary.all.n) == (2, 4, 6)
    assert (summary.overall.score, summary.abstention.score, summary.all.score) == (0.5, 0.25, 2 / 6)
    assert (summary.abstention.held, summary.abstention.fell, summary.abstention.other) == (1, 2, 1)


def test_rows_stand_in_the_order_of_the_labels_and_an_unlabelled_type_comes_last() -> None:
    summary = add_up(question("riddle"), question("single_hop"), question("temporal"))
    assert [row.label for row in summary.types] == ["2 temporal", "4 single_hop", "riddle"]


def test_a_verdict_outside_the_closed_set_is_unscored_and_never_a_pass() -> None:
    row = add_up(question(verdict="INCORRECT"), question(verdict="")).overall
    assert (row.correct, row.wrong, row.unscored) == (0, 0, 2)


def test_a_lost_question_is_unscored() -> None:
    row = add_up(question(verdict="unscored", outcome="missing"), question()).overall
    assert (row.n, row.unscored, row.score) == (2, 1, 1.0)


def test_nothing_measured_is_none_in_every_total() -> None:
    totals = add_up(question(verdict="n/a"), trap(), question(verdict="unscored")).totals()
    assert set(totals.values()) == {None}


def test_totals_have_the_names_that_thresholds_may_use() -> None:
    names = list(add_up(question()).totals())
    assert names == known_names(LABELS, 3)
    assert names == [
        "overall", "all", "abstention", "temporal", "single_hop", "adversarial", "mean-score", "f1",
        "recall@1", "recall@3", "hit@1", "hit@3", "mrr", "ndcg@1", "ndcg@3",
        "session-recall@1", "session-recall@3", "context-tokens", "false-refusal",
    ]  # fmt: skip


def test_metrics_are_means_over_the_answerable_questions_that_have_them() -> None:
    summary = add_up(
        question(metrics={"f1": 0.5, "recall@3": 1.0}),
        question(metrics={"f1": 1.0}),
        question(),
        trap(metrics={"f1": 0.0, "recall@3": 0.0}),
    )
    assert (summary.metrics["f1"].value, summary.metrics["f1"].n) == (0.75, 2)
    assert (summary.metrics["recall@3"].value, summary.metrics["recall@3"].n) == (1.0, 1)
    assert summary.totals()["mrr"] is None


def test_mean_score_is_over_correct_and_wrong_only() -> None:
    summary = add_up(
        question(score=1.0),
        question(verdict="wrong", score=0.5),
        question(verdict="n/a", score=0.0),
        question(verdict="unscored", score=0.0),
    )
    assert (summary.metrics["mean-score"].value, summary.metrics["mean-score"].n) == (0.75, 2)


def test_false_refusals_are_answers_that_refuse_an_answerable_question() -> None:
    records = [
        question(answer="Porto"),
        question(verdict="wrong", answer="no idea"),
        question(verdict="unscored", answer="no idea"),
        question(answer=None),
        trap("correct", answer="no idea"),
    ]
    summary = add_up(*records, abstains="no idea".__eq__)
    assert summary.false_refusals is not None
    assert (summary.false_refusals.count, summary.false_refusals.n) == (1, 2)
    assert summary.totals()["false-refusal"] == 0.5


def test_without_answers_or_without_a_rule_there_is_no_false_refusal_rate() -> None:
    assert add_up(question(answer="Porto")).false_refusals is None
    assert add_up(question(), abstains=bool).false_refusals is None


def test_contexts_are_measured_over_all_questions_and_empty_ones_are_counted() -> None:
    summary = add_up(question(context_chars=400), trap(context_chars=0), question())
    assert summary.context_chars is not None
    assert (summary.context_chars.value, summary.context_chars.n) == (200.0, 2)
    assert summary.totals()["context-tokens"] == 50.0
    assert summary.empty_contexts is not None
    assert (summary.empty_contexts.count, summary.empty_contexts.n) == (1, 2)


def test_feeding_is_timed_once_for_each_sample_and_cached_stages_not_at_all() -> None:
    summary = add_up(
        question(sample="a", ms={"ingest": 10.0, "retrieve": 1.0}),
        question(sample="a", ms={"ingest": 10.0, "retrieve": 3.0}),
        question(sample="b", ms={"ingest": 30.0, "retrieve": 900.0}, cached=["retrieve"]),
        question(sample="c"),
    )
    assert (summary.times.ingest_mean, summary.times.ingest_most) == (20.0, 30.0)
    assert (summary.times.retrieve_p50, summary.times.retrieve_p95) == (1.0, 3.0)
    assert (summary.samples, summary.samples_fed) == (3, 2)


def test_the_bound_counts_every_unscored_question_as_correct() -> None:
    summary = add_up(
        question(score=1.0, metrics={"recall@3": 0.5}),
        question(verdict="wrong", score=0.0),
        question(verdict="unscored"),
        question(verdict="unscored", metrics={"recall@3": 0.0}),
        question(verdict="n/a"),
    )
    assert summary.bound("overall") == 0.75
    assert summary.bound("temporal") == 0.75
    assert summary.bound("mean-score") == 0.75
    # one unscored question has its recall already, so only the other could still lift it
    assert summary.exact_bound("recall@3") == Fraction(1, 2)
    assert summary.bound("f1") == 1.0


@pytest.mark.parametrize("name", ["context-tokens", "false-refusal", "single_hop", "no-such-name"])
def test_what_is_no_share_of_this_run_has_no_bound(name: str) -> None:
    assert add_up(question(verdict="unscored", context_chars=4)).bound(name) is None


def test_ten_times_seven_tenths_is_exactly_seven_tenths() -> None:
    mean = add_up(*(question(metrics={"f1": 0.7}) for _ in range(10))).metrics["f1"]
    assert mean.exact == Fraction(7, 10)


# -- questions that nobody can answer -----------------------------------------------------------------


def test_what_the_dataset_calls_unrecoverable_stands_beside_overall() -> None:
    summary = add_up(
        question(verdict="correct"),
        question(verdict="wrong", recoverable=False, metrics={"f1": 0.0}, answer="no idea"),
        question(verdict="wrong", recoverable=False),
        abstains="no idea".__eq__,
    )
    assert (summary.overall.n, summary.unrecoverable.n, summary.all.n) == (1, 2, 3)
    assert [row.n for row in summary.types] == [1]
    assert summary.metrics == {}
    assert summary.false_refusals is None  # refusing such a question is right
    assert summary.totals()["unrecoverable"] == 0.0
    assert [row.label for row in summary.totals_rows] == ["overall", "unrecoverable", "all"]


def test_an_unanswerable_question_that_is_unrecoverable_too_counts_as_abstention() -> None:
    summary = add_up(trap("correct", recoverable=False, abstention="held"))
    assert (summary.abstention.n, summary.unrecoverable.n) == (1, 0)
    assert "unrecoverable" not in summary.totals()


def test_the_name_unrecoverable_exists_only_where_there_are_such_questions() -> None:
    assert "unrecoverable" in known_names(LABELS, 3, unrecoverable=True)
    assert "unrecoverable" not in known_names(LABELS, 3)


# -- errata -------------------------------------------------------------------------------------------


def test_excluded_questions_leave_every_number_but_all() -> None:
    summary = add_up(
        question(verdict="correct", score=1.0),
        excluded(score=0.0, metrics={"f1": 0.0}, context_chars=40),
        excluded(verdict="correct", expects_abstention=True, abstention="held"),
        excluded(recoverable=False),
    )
    assert (summary.overall.n, summary.abstention.n, summary.unrecoverable.n) == (1, 0, 0)
    assert (summary.excluded.n, summary.excluded.correct, summary.all.n) == (3, 1, 4)
    assert summary.metrics["mean-score"].value == 1.0
    assert "f1" not in summary.metrics
    assert [row.label for row in summary.totals_rows] == ["overall", "as published", "excluded", "all"]


def test_as_published_is_overall_without_any_erratum() -> None:
    summary = add_up(
        question(verdict="correct"),
        excluded("wrong"),
        excluded("unscored"),
        corrected("correct", "wrong"),
        corrected("wrong", "correct"),
        corrected("correct", "n/a"),
        trap("correct", abstention="held"),
        question(verdict="correct", recoverable=False),
    )
    row = summary.as_published
    assert row is not None
    assert (row.correct, row.wrong, row.unscored, row.na) == (2, 2, 1, 1)
    assert (summary.overall.correct, summary.overall.wrong, summary.corrected) == (3, 1, 3)
    assert (summary.totals()["overall"], summary.totals()["as-published"]) == (0.75, 0.5)
    assert summary.bound("as-published") == 0.6


def test_a_corrected_question_without_a_published_verdict_is_unscored_there() -> None:
    row = add_up(corrected("unscored", None)).as_published
    assert row is not None
    assert (row.unscored, row.n) == (1, 1)


def test_errata_that_concern_no_question_of_the_run_are_active_all_the_same() -> None:
    summary = add_up(question(), errata=True)
    assert summary.as_published is not None
    assert summary.totals()["as-published"] == 1.0
    assert "as-published" in known_names(LABELS, 3, errata=True)


def test_without_errata_nothing_is_as_published() -> None:
    summary = add_up(question())
    assert summary.as_published is None
    assert "as-published" not in summary.totals()
    assert "as-published" not in known_names(LABELS, 3)


# -- reasons ------------------------------------------------------------------------------------------


def test_reasons_for_n_a_are_counted_most_frequent_first_and_ties_by_name() -> None:
    reasons = ["no as_agent", "no evidence", "no as_agent", "abstention"]
    summary = add_up(
        *(question(verdict="n/a", reason=reason) for reason in reasons),
        question(verdict="unscored", reason="offline"),
    )
    assert summary.na_reasons == (("no as_agent", 2), ("abstention", 1), ("no evidence", 1))


ERRATA = st.sampled_from([None, {"excluded": "wrong"}, {"gold": "Rome", "verdict": "wrong", "score": 0.0}])


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["correct", "wrong", "unscored", "n/a", "?"]),
            st.booleans(),
            st.booleans(),
            ERRATA,
            st.integers(0, 1500),
            st.floats(0, 1),
        ),
        max_size=30,
    ),
    st.randoms(),
)
def test_counts_add_up_bounds_hold_and_order_does_not_matter(
    questions: list[tuple[str, bool, bool, dict[str, Any] | None, int, float]], shuffler: random.Random
) -> None:
    records = [
        question(
            verdict=verdict,
            expects_abstention=abstain,
            recoverable=recoverable,
            errata=errata,
            facets={"age": age, "checkpoint": age % 4 + 1, "cross_agent": age % 3 == 0},
            score=x,
            metrics={"f1": x},
        )
        for verdict, abstain, recoverable, errata, age, x in questions
    ]
    summary = add_up(*records)
    groups = (summary.overall, summary.abstention, summary.unrecoverable, summary.excluded)
    assert sum(row.n for row in groups) == summary.all.n == len(records)
    assert sum(row.n for row in summary.types) == summary.overall.n
    if summary.dimensions:
        assert sum(row.n for row in summary.dimensions.ages) == summary.overall.n
        assert sum(row.n for _, row in summary.dimensions.curve) == summary.overall.n
    for name in summary.names():
        value, bound = summary.exact(name), summary.exact_bound(name)
        if value is not None:
            assert bound is not None
            assert (-1 if name == "slope" else 0) <= value <= bound <= 1
    shuffler.shuffle(records)
    assert add_up(*records) == summary
