"""The summary as people read it: whole texts, as they stand at the end of a run."""

from __future__ import annotations

from dataclasses import replace
from textwrap import dedent
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_himga.report.terminal import DatasetReport, Line, Provenance, summary_lines
from pytest_himga.score.gate import evaluate
from pytest_himga.score.record import Record
from pytest_himga.score.retrieval import retrieval_metrics
from pytest_himga.score.summary import summarise
from pytest_himga.score.thresholds import check_thresholds, parse_threshold

LABELS = {"multi_hop": "1 multi_hop", "temporal": "2 temporal", "adversarial": "5 adversarial"}
PROVENANCE = Provenance(
    sha256="79fa87e90f0412ab" * 4,
    items=28,
    backend="bm25",
    backend_version="0.2.14",
    judge="evidence",
    top_k=10,
    plugin_version="0.1.0",
)
UNANSWERABLE = "unanswerable: there is no evidence to find"
NO_EVIDENCE = "the dataset names no evidence for this question"
FOUND_FIRST = retrieval_metrics([["D1:1"], ["D1:2"]], [["D1:1"]], top_k=10)
FOUND_THIRD = retrieval_metrics([["D1:2"], ["D1:3"], ["D1:1"]], [["D1:1"]], top_k=10)
NOT_FOUND = retrieval_metrics([["D1:2"]], [["D1:1"]], top_k=10)
NOTHING_BACK = retrieval_metrics([], [["D1:1"]], top_k=10)


def questions(kind: str, n: int, verdict: str, **fields: Any) -> list[Record]:
    """``n`` questions that came out alike; ``fields`` are whatever the scenario is about."""
    base: dict[str, Any] = {
        "type": kind,
        "verdict": verdict,
        "expects_abstention": False,
        "score": {"correct": 1.0, "wrong": 0.0}.get(verdict),
        "context_chars": 1200,
        "ms": {"ingest": 38.0, "retrieve": 1.25},
        **dict.fromkeys(["id", "dataset", "uid", "reason", "judge", "question"], "x"),
        **dict.fromkeys(["gold", "trap"]),
    }
    return [Record(**(base | {"sample": f"conv-{i % 2}"} | fields)) for i in range(n)]


def traps(n: int, verdict: str, **fields: Any) -> list[Record]:
    known = {"expects_abstention": True} | ({"reason": UNANSWERABLE} if verdict == "n/a" else {})
    return questions("adversarial", n, verdict, **(known | fields))


NORMAL = [
    *questions("multi_hop", 5, "correct", metrics=FOUND_FIRST),
    *questions("multi_hop", 3, "wrong", metrics=NOT_FOUND),
    *questions("temporal", 9, "correct", metrics=FOUND_THIRD, ms={"ingest": 41.0, "retrieve": 12.5}),
    *questions("temporal", 3, "wrong", metrics=NOT_FOUND),
    *traps(8, "n/a"),
]
UNSCORED = [
    *questions("multi_hop", 4, "correct", answer="Porto", metrics={"f1": 1.0}),
    *questions("multi_hop", 1, "unscored", outcome="missing", context_chars=None, ms={}),
    *questions("temporal", 2, "wrong", answer="I do not know", metrics={"f1": 0.25}),
    *questions("temporal", 2, "unscored", context_chars=None, ms={}),
    *traps(3, "correct", abstention="held"),
    *traps(2, "wrong", abstention="fell"),
    *traps(1, "wrong", abstention="other"),
]


def shown(
    records: list[Record],
    *minimums: str,
    width: int = 80,
    notes: tuple[str, ...] = (),
    source: Provenance = PROVENANCE,
) -> list[Line]:
    """The summary of one dataset called ``tiny`` under these minimums."""
    summary = summarise(
        "tiny", records, type_labels=LABELS, top_k=10, abstains=lambda answer: "not know" in answer
    )
    asked = check_thresholds([parse_threshold(text) for text in minimums], {"tiny": summary.names()})["tiny"]
    report = DatasetReport(
        summary, replace(source, items=len(records)), [evaluate(t, summary) for t in asked]
    )
    return summary_lines(
        [report],
        gate="score" if minimums else "verdict",
        gate_reason="a minimum is set" if minimums else "neither a baseline nor a minimum is set",
        gate_set=bool(minimums),
        notes=notes,
        width=width,
    )


def text_of(lines: list[Line]) -> str:
    return "\n".join(line.text for line in lines) + "\n"


def test_a_normal_run_on_the_free_judge() -> None:
    lines = shown(NORMAL)
    assert text_of(lines) == dedent(
        """\
        tiny          n  correct   score  95% interval  unscored  missed  n/a
        ---------------------------------------------------------------------
        1 multi_hop   8        5  0.6250   0.306-0.863         0       3    0
        2 temporal   12        9  0.7500   0.468-0.911         0       3    0
        ---------------------------------------------------------------------
        overall      20       14  0.7000   0.481-0.855         0       6    0
        abstention    8        -       -             -         0       -    8
        all          28       14  0.7000   0.481-0.855         0       6    8

        n/a         8: unanswerable: there is no evidence to find
        retrieval       @1      @3      @5     @10
          recall    0.2500  0.7000  0.7000  0.7000
          hit       0.2500  0.7000  0.7000  0.7000
          nDCG      0.2500  0.4750  0.4750  0.4750
          MRR       0.4000
          questions     20
        scores      mean score 0.7000 (20 questions)
        context     1,200 characters, ~300 tokens (characters / 4); empty 0 of 28
        retrieve    p50 1.25 ms, p95 12 ms
        ingest      41 ms a sample, at most 41 ms
        provenance  tiny sha256 79fa87e90f04, 28 items, 2 samples, backend bm25 0.2.14,
                    judge evidence, k 10, pytest-himga 0.1.0

        gate        verdict (neither a baseline nor a minimum is set)
        hint        to fail a run that scores below this one, add --himga-min-score=0.70
        """
    )


def test_a_run_with_unscored_questions_traps_and_gates() -> None:
    lines = shown(
        UNSCORED,
        "0.9",
        "temporal=0.6",
        "multi-hop=0.5",
        "recall@5=0.3",
        notes=("sample conv-1 was fed again",),
        source=replace(PROVENANCE, backend="mymem", backend_version=None, judge="lexical"),
    )
    assert text_of(lines) == dedent(
        """\
        tiny          n  correct   score  95% interval  unscored  missed  n/a
        ---------------------------------------------------------------------
        1 multi_hop   5        4  1.0000   0.510-1.000         1       0    0
        2 temporal    4        0  0.0000   0.000-0.658         2       2    0
        ---------------------------------------------------------------------
        overall       9        4  0.6667   0.300-0.903         3       2    0
        abstention    6        3  0.5000   0.188-0.812         0       3    0
        all          15        7  0.5833   0.320-0.807         3       5    0

        abstention  held 3, fell for the trap 2, other 1
        refused     0.3333 of the answerable questions (2 of 6)
        retrieval   - (no ids came back for a question with evidence)
        scores      F1 0.7500 (6 questions), mean score 0.6667 (6 questions)
        context     1,200 characters, ~300 tokens (characters / 4); empty 0 of 12
        retrieve    p50 1.25 ms, p95 1.25 ms
        ingest      38 ms a sample, at most 38 ms
        provenance  tiny sha256 79fa87e90f04, 15 items, 2 samples, backend mymem, judge
                    lexical, k 10, pytest-himga 0.1.0

        gate        score (a minimum is set)
        FAILED      tiny: overall 0.6667 is below 0.9 (4 of 6; 2 more correct answers
                    needed; still 0.7778 with all 3 unscored questions counted as
                    correct)
        FAILED      tiny: temporal 0.0000 is below 0.6 (0 of 2; 2 more correct answers
                    needed; still 0.5000 with all 2 unscored questions counted as
                    correct)
        passed      tiny: multi_hop 1.0000 is at least 0.5 (4 of 4)
        UNMEASURED  tiny: recall@5 was not measured: no question of this run has a value
                    for recall@5
        note        sample conv-1 was fed again
        """
    )


def test_a_run_in_which_nothing_applies_prints_no_number() -> None:
    lines = shown(
        [
            *questions("temporal", 4, "n/a", reason=NO_EVIDENCE, context_chars=None, ms={}),
            *traps(2, "n/a", context_chars=None, ms={}),
        ]
    )
    assert text_of(lines) == dedent(
        """\
        tiny        n  correct  score  95% interval  unscored  missed  n/a
        ------------------------------------------------------------------
        2 temporal  4        -      -             -         0       -    4
        ------------------------------------------------------------------
        overall     4        -      -             -         0       -    4
        abstention  2        -      -             -         0       -    2
        all         6        -      -             -         0       -    6

        n/a         4: the dataset names no evidence for this question; 2: unanswerable:
                    there is no evidence to find
        retrieval   - (no ids came back for a question with evidence)
        context     -
        provenance  tiny sha256 79fa87e90f04, 6 items, 2 samples (0 fed), backend bm25
                    0.2.14, judge evidence, k 10, pytest-himga 0.1.0

        gate        verdict (neither a baseline nor a minimum is set)
        hint        nothing above 0 was measured that a gate could hold; one is set
                    with, say, --himga-min-score=0.70
        """
    )


def test_a_memory_that_knows_nothing_scores_0_and_is_seen_to_return_nothing() -> None:
    lines = shown(
        [
            *questions("temporal", 12, "wrong", context_chars=0, metrics=NOTHING_BACK),
            *traps(3, "n/a", context_chars=0),
        ],
        source=replace(PROVENANCE, backend="null"),
    )
    assert text_of(lines) == dedent(
        """\
        tiny         n  correct   score  95% interval  unscored  missed  n/a
        --------------------------------------------------------------------
        2 temporal  12        0  0.0000   0.000-0.242         0      12    0
        --------------------------------------------------------------------
        overall     12        0  0.0000   0.000-0.242         0      12    0
        abstention   3        -       -             -         0       -    3
        all         15        0  0.0000   0.000-0.242         0      12    3

        n/a         3: unanswerable: there is no evidence to find
        retrieval       @1      @3      @5     @10
          recall    0.0000  0.0000  0.0000  0.0000
          hit       0.0000  0.0000  0.0000  0.0000
          nDCG      0.0000  0.0000  0.0000  0.0000
          MRR       0.0000
          questions     12
        scores      mean score 0.0000 (12 questions)
        context     0 characters, ~0 tokens (characters / 4); empty 15 of 15
        retrieve    p50 1.25 ms, p95 1.25 ms
        ingest      38 ms a sample, at most 38 ms
        provenance  tiny sha256 79fa87e90f04, 15 items, 2 samples, backend null 0.2.14,
                    judge evidence, k 10, pytest-himga 0.1.0

        gate        verdict (neither a baseline nor a minimum is set)
        hint        nothing above 0 was measured that a gate could hold; one is set
                    with, say, --himga-min-score=0.70
        """
    )


def test_a_narrow_terminal_gets_the_same_numbers_without_the_interval() -> None:
    lines = shown(NORMAL, "0.7", width=40)
    assert text_of(lines) == dedent(
        """\
        tiny
         n correct  score unscored missed n/a
        -------------------------------------
        1 multi_hop
         8       5 0.6250        0      3   0
        2 temporal
        12       9 0.7500        0      3   0
        -------------------------------------
        overall
        20      14 0.7000        0      6   0
        abstention
         8       -      -        0      -   8
        all
        28      14 0.7000        0      6   8

        n/a         8: unanswerable: there is no
                    evidence to find
        retrieval       @1     @3     @5    @10
          recall    0.2500 0.7000 0.7000 0.7000
          hit       0.2500 0.7000 0.7000 0.7000
          nDCG      0.2500 0.4750 0.4750 0.4750
          MRR       0.4000
          questions     20
        scores      mean score 0.7000 (20
                    questions)
        context     1,200 characters, ~300
                    tokens (characters / 4);
                    empty 0 of 28
        retrieve    p50 1.25 ms, p95 12 ms
        ingest      41 ms, most 41 ms
        provenance  tiny sha256 79fa87e90f04, 28
                    items, 2 samples, backend
                    bm25 0.2.14, judge evidence,
                    k 10, pytest-himga 0.1.0

        gate        score (a minimum is set)
        passed      tiny: overall 0.7000 is at
                    least 0.7 (14 of 20)
        """
    )


def test_what_needs_a_look_is_coloured_and_nothing_else() -> None:
    styles = {
        line.text.split("  ")[0]: line.style for line in shown(UNSCORED, "0.9", "multi-hop=0.5", "f1=0.1")
    }
    assert styles["tiny"] == "bold"
    assert styles["1 multi_hop"] == styles["overall"] == "yellow"
    assert styles["abstention"] == styles["provenance"] == ""
    assert (styles["FAILED"], styles["passed"]) == ("red", "green")


def test_a_memory_that_always_returns_nothing_is_marked() -> None:
    [line] = [
        line
        for line in shown(questions("temporal", 2, "wrong", context_chars=0))
        if "empty 2 of 2" in line.text
    ]
    assert line.style == "yellow"


def test_without_unanswerable_questions_the_table_ends_with_overall() -> None:
    text = text_of(shown(questions("temporal", 3, "correct")))
    assert "overall" in text
    assert "abstention" not in text
    assert "\nall " not in text


def test_two_datasets_are_told_apart_down_to_the_hint() -> None:
    reports = [
        DatasetReport(
            summarise(name, questions("temporal", n, "correct") + NORMAL, type_labels=LABELS, top_k=10),
            PROVENANCE,
        )
        for name, n in (("locomo", 5), ("other", 0))
    ]
    lines = summary_lines(reports, gate="verdict", gate_reason="no baseline", gate_set=False)
    assert [line.text.split()[0] for line in lines if line.style == "bold"] == [
        "locomo",
        "overall",
        "other",
        "overall",
    ]
    assert lines[-1].text.strip() == "--himga-min-score=locomo:0.76,other:0.70"


@pytest.mark.parametrize("width", [40, 64, 80, 100])
def test_only_the_lines_of_times_differ_between_two_runs(width: int) -> None:
    slow = [replace(record, ms={"ingest": 754_321.0, "retrieve": 2_345.6}) for record in reversed(NORMAL)]
    one, other = shown(NORMAL, "0.7", width=width), shown(slow, "0.7", width=width)
    different = [a.text.split()[0] for a, b in zip(one, other, strict=True) if a != b]
    assert different == ["retrieve", "ingest"]


@settings(deadline=None)
@given(st.integers(0, 130), st.sampled_from([NORMAL, UNSCORED]), st.integers(1, 50))
def test_every_line_fits_is_ascii_and_has_no_trailing_blank(
    width: int, records: list[Record], top_k: int
) -> None:
    labels = {"multi_hop": "single_session_assistant", "temporal": "caf\u00e9 \x1b[31m"}
    summary = summarise("a-dataset-with-a-long-name" * 2, records, type_labels=labels, top_k=top_k)
    lines = summary_lines(
        [DatasetReport(summary, PROVENANCE)],
        gate="verdict",
        gate_reason="no baseline",
        gate_set=False,
        notes=["a note with \ud800 and\ttabs\nand lines"],
        width=width,
    )
    for line in lines:
        assert len(line.text) <= min(max(width, 40), 100)
        assert line.text.isascii()
        assert line.text.isprintable()
        assert line.text == line.text.rstrip()
