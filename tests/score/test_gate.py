"""Gates: good enough or not, by how much, and what the exit status makes of it."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from pytest_himga.score.gate import (
    NOT_MEASURED,
    GateResult,
    decide_exit,
    digits,
    evaluate,
    suggested_threshold,
)
from pytest_himga.score.record import Record
from pytest_himga.score.summary import DatasetSummary, summarise
from pytest_himga.score.thresholds import check_thresholds, parse_threshold


def records(kind: str = "temporal", metrics: dict[str, float] | None = None, **counts: int) -> list[Record]:
    """So many questions of each verdict: ``correct=3, wrong=1, unscored=1, na=2``."""
    base: dict[str, Any] = dict.fromkeys(
        ["id", "dataset", "sample", "uid", "reason", "judge", "question"], "x"
    )
    return [
        Record(
            **base,
            type=kind,
            expects_abstention=kind == "adversarial",
            verdict="n/a" if verdict == "na" else verdict,
            score=None,
            gold=None,
            trap=None,
            metrics={} if verdict == "unscored" else dict(metrics or {}),
        )
        for verdict, n in counts.items()
        for _ in range(n)
    ]


def tiny(*groups: list[Record]) -> DatasetSummary:
    everything = [record for group in groups for record in group]
    labels = {"temporal": "2 temporal", "multi_hop": "1 multi_hop", "adversarial": "5 adversarial"}
    return summarise("tiny", everything, type_labels=labels, top_k=5)


def gate(text: str, summary: DatasetSummary) -> GateResult:
    [threshold] = check_thresholds([parse_threshold(text)], {"tiny": summary.names()})["tiny"]
    return evaluate(threshold, summary)


@pytest.mark.parametrize(
    ("text", "status", "sentence"),
    [
        ("0.72", "passed", "overall 0.7277 is at least 0.72 (612 of 841)"),
        ("0.7277", "passed", "overall 0.7277 is at least 0.7277 (612 of 841)"),
        # 612 / 841 = 0.727705...: the printed value must not round up to the threshold
        (
            "0.72771",
            "proven",
            "overall 0.7277 is below 0.72771 (612 of 841; 1 more correct answer needed)",
        ),
        ("73%", "proven", "overall 0.7277 is below 0.73 (612 of 841; 2 more correct answers needed)"),
        ("1", "proven", "overall 0.7277 is below 1 (612 of 841; 229 more correct answers needed)"),
    ],
)
def test_a_score_just_above_and_just_below_its_threshold(text: str, status: str, sentence: str) -> None:
    result = gate(text, tiny(records(correct=612, wrong=229)))
    assert (result.status, result.text, result.n) == (status, sentence, 841)


def test_exactly_the_threshold_passes() -> None:
    assert gate("0.7", tiny(records(correct=7, wrong=3))).status == "passed"
    assert gate("recall@5=0.7", tiny(records(correct=10, metrics={"recall@5": 0.7}))).status == "passed"


def test_a_category_that_halves_fails_its_gate_although_overall_is_flat() -> None:
    before = tiny(records("temporal", correct=6, wrong=4), records("multi_hop", correct=4, wrong=6))
    after = tiny(records("temporal", correct=8, wrong=2), records("multi_hop", correct=2, wrong=8))
    assert [gate("0.5", run).status for run in (before, after)] == ["passed", "passed"]
    assert [gate("multi-hop=0.4", run).status for run in (before, after)] == ["passed", "proven"]


def test_a_failure_that_the_unscored_questions_could_still_mend_is_no_proof() -> None:
    result = gate("0.7", tiny(records(correct=6, wrong=3, unscored=1)))
    assert result.status == "failed"
    assert result.text == (
        "overall 0.6667 is below 0.7 (6 of 9; 1 more correct answer needed; "
        "0.7000 with the 1 unscored question counted as correct)"
    )


def test_a_failure_that_stands_whatever_the_unscored_questions_were_is_proven() -> None:
    result = gate("0.9", tiny(records(correct=6, wrong=3, unscored=3)))
    assert result.status == "proven"
    assert result.text.endswith("still 0.7500 with all 3 unscored questions counted as correct)")


def test_a_mean_is_compared_as_a_mean() -> None:
    summary = tiny(records(correct=3, unscored=1, metrics={"recall@5": 0.4}))
    result = gate("recall@5=0.6", summary)
    assert (result.status, result.value, result.n) == ("proven", 0.4, 3)
    assert result.text == (
        "recall@5 0.4000 is below 0.6 (mean over 3 questions; "
        "still 0.5500 with the 1 unscored question counted as 1)"
    )


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("0.1", "overall was not measured: none of 3 questions has a verdict (1 unscored, 2 n/a)"),
        ("abstention=0.1", "abstention was not measured: none of 1 question has a verdict (1 n/a)"),
        ("multi_hop=0", "multi_hop was not measured: no question of this run has a value for multi_hop"),
        ("f1=0", "f1 was not measured: no question of this run has a value for f1"),
    ],
)
def test_what_was_not_measured_is_never_a_pass_not_even_for_a_minimum_of_0(text: str, sentence: str) -> None:
    result = gate(text, tiny(records(unscored=1, na=2), records("adversarial", na=1)))
    assert (result.status, result.value, result.n, result.text) == ("unmeasured", None, 0, sentence)


def test_no_unanswerable_question_means_no_abstention() -> None:
    result = gate("abstention=0.5", tiny(records(correct=1)))
    assert result.text == "abstention was not measured: this run has no such question"


# -- the slope, which is neither an accuracy nor a mean ------------------------------------------------


def curve(**verdicts: str) -> DatasetSummary:
    """One question for each letter (c, w, u, n) of each checkpoint: ``p1="ccw", p2="u"``."""
    words = {"c": "correct", "w": "wrong", "u": "unscored", "n": "na"}
    asked = []
    for place, letters in verdicts.items():
        for record in records(**{word: letters.count(letter) for letter, word in words.items()}):
            record.facets = {"checkpoint": int(place[1:]), "age": 7, "cross_agent": False}
            asked.append(record)
    return tiny(asked)


@pytest.mark.parametrize(
    ("text", "verdicts", "status", "sentence"),
    [
        (
            "slope=-0.25",
            {"p1": "cccc", "p2": "cccw", "p3": "ccww"},
            "passed",
            "slope -0.2500 is at least -0.25 (least squares over 3 checkpoints, 12 questions)",
        ),
        (
            "slope=0",
            {"p1": "cc", "p2": "cw"},
            "proven",
            "slope -0.5000 is below 0 (least squares over 2 checkpoints, 4 questions)",
        ),
        (
            "slope=-0.4",
            {"p1": "cc", "p2": "cwu"},
            "failed",
            (
                "slope -0.5000 is below -0.4 (least squares over 2 checkpoints, 4 questions; "
                "-0.3333 with the 1 unscored question counted as whatever lifts it most)"
            ),
        ),
        (
            "slope=0.1",
            {"p1": "cw", "p2": "cwww", "p3": "wu", "p4": "wwwu"},
            "proven",
            (
                "slope -0.1750 is below 0.1 (least squares over 4 checkpoints, 10 questions; "
                "still -0.0500 with all 2 unscored questions counted as whatever lifts it most)"
            ),
        ),
        (
            "slope=-1",
            {"p1": "ccc", "p2": "un"},
            "unmeasured",
            "slope was not measured: it takes two checkpoints with a verdict, and 1 has one",
        ),
        (
            "slope=-1",
            {"p1": "n", "p2": "n"},
            "unmeasured",
            "slope was not measured: it takes two checkpoints with a verdict, and none have one",
        ),
        (
            "cross-agent=0",
            {"p1": "c", "p2": "c"},
            "unmeasured",
            "cross-agent was not measured: no question of this run has a value for cross-agent",
        ),
    ],
)
def test_a_slope_and_its_minimum(text: str, verdicts: dict[str, str], status: str, sentence: str) -> None:
    result = gate(text, curve(**verdicts))
    assert (result.status, result.text) == (status, sentence)


def test_cross_agent_questions_that_are_all_n_a_are_no_pass() -> None:
    asked = records(na=32)
    for record in asked:
        record.facets = {"cross_agent": True}
    result = gate("cross-agent=0", tiny(asked, records(correct=1)))
    assert (result.status, result.text) == (
        "unmeasured",
        "cross-agent was not measured: none of 32 questions has a verdict (32 n/a)",
    )


def test_a_minimum_for_the_published_golds_and_for_what_is_unrecoverable() -> None:
    asked = records(correct=3, wrong=1)
    asked[0].errata = {"gold": "Rome", "verdict": "wrong", "score": 0.0}
    lost = records(correct=1, wrong=1)
    for record in lost:
        record.recoverable = False
    summary = tiny(asked, lost)
    assert [gate(text, summary).text for text in ("0.7", "as-published=0.5", "unrecoverable=0.5")] == [
        "overall 0.7500 is at least 0.7 (3 of 4)",
        "as-published 0.5000 is at least 0.5 (2 of 4)",
        "unrecoverable 0.5000 is at least 0.5 (1 of 2)",
    ]


@settings(deadline=None)  # each example adds up hundreds of records; a busy machine is no failure
@given(st.integers(0, 300), st.integers(1, 300), st.integers(0, 20), st.integers(0, 10_000))
def test_the_sentence_never_contradicts_the_verdict(
    correct: int, wrong: int, unscored: int, least: int
) -> None:
    summary = tiny(records(correct=correct, wrong=wrong, unscored=unscored))
    result = gate(f"{least / 100}%", summary)
    threshold = Fraction(least, 10_000)
    printed = re.match(r"overall ([0-9.]+) is", result.text)
    assert printed
    passed = Fraction(correct, correct + wrong) >= threshold
    assert (result.status == "passed") == passed == (Fraction(printed[1]) >= threshold)
    could_pass = Fraction(correct + unscored, correct + wrong + unscored) >= threshold
    assert (result.status == "proven") == (not passed and not could_pass)


@given(st.fractions(-1, 1, max_denominator=2000), st.decimals(-1, 1, places=5))
def test_a_printed_value_stays_on_its_side_of_the_threshold(value: Fraction, least: object) -> None:
    threshold = Fraction(str(least))
    printed = Fraction(digits(value, threshold))
    assert (printed < threshold) == (value < threshold)
    assert abs(printed - value) <= Fraction(1, 20_000)


@pytest.mark.parametrize(
    ("correct", "wrong", "suggested"),
    [(612, 229, "0.72"), (7, 3, "0.70"), (29, 71, "0.29"), (1, 0, "1.00"), (0, 9, None), (1, 200, None)],
)
def test_the_suggested_minimum_is_one_that_this_run_passes(
    correct: int, wrong: int, suggested: str | None
) -> None:
    assert suggested_threshold(tiny(records(correct=correct, wrong=wrong))) == suggested


@settings(deadline=None)
@given(st.integers(0, 150), st.integers(0, 150))
def test_a_run_always_passes_what_it_suggests(correct: int, wrong: int) -> None:
    summary = tiny(records(correct=correct, wrong=wrong))
    suggested = suggested_threshold(summary)
    assume(suggested is not None)
    assert gate(str(suggested), summary).status == "passed"


@pytest.mark.parametrize(
    ("pytest_status", "proven", "unmeasured", "status"),
    [
        (0, False, [], 0),
        (0, True, [], 1),
        (1, True, ["3 unscored"], 1),
        (1, False, ["3 unscored"], 6),
        (0, False, ["no baseline"], 6),
        (2, True, ["3 unscored"], 2),
        (3, False, ["3 unscored"], 3),
        (4, False, [], 4),
        (5, False, ["nothing ran"], 5),
        (99, True, ["3 unscored"], 99),
        # something failed that himga knows nothing of
        (1, False, [], 1),
    ],
)
def test_the_exit_status(pytest_status: int, proven: bool, unmeasured: list[str], status: int) -> None:
    found, sentence = decide_exit(pytest_status, proven=proven, unmeasured=unmeasured)
    assert found == status
    assert bool(sentence) == (status == NOT_MEASURED)


def test_the_last_line_says_why_it_is_6() -> None:
    unmeasured = ["3 of 60 questions are unscored", "the gate tiny was not evaluated"]
    assert decide_exit(1, proven=False, unmeasured=unmeasured)[1] == (
        "himga: not measured (exit status 6): 3 of 60 questions are unscored; the gate tiny was not evaluated"
    )


@given(st.integers(0, 6), st.booleans(), st.lists(st.just("lost"), max_size=2))
def test_a_run_is_green_only_if_nothing_failed_and_nothing_is_missing(
    pytest_status: int, proven: bool, unmeasured: list[str]
) -> None:
    status, _ = decide_exit(pytest_status, proven=proven, unmeasured=unmeasured)
    assert (status == 0) == (pytest_status == 0 and not proven and not unmeasured)
