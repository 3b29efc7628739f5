"""What the summary shows of datasets other than LoCoMo: their dimensions, errata, and several at once."""

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
from pytest_himga.score.retrieval import retrieval_metrics, session_recall
from pytest_himga.score.summary import summarise
from pytest_himga.score.thresholds import check_thresholds, parse_threshold

PROVENANCE = Provenance(
    sha256="79fa87e90f0412ab" * 4,
    items=0,
    backend="mymem",
    judge="evidence",
    top_k=10,
    plugin_version="0.1.0",
)
NO_AGENT = "the backend has no as_agent(agent_id), and another agent asks"
NO_EVIDENCE = "the dataset names no evidence for this question"


def questions(kind: str, n: int, verdict: str, **fields: Any) -> list[Record]:
    """``n`` questions that came out alike; ``fields`` are whatever the scenario is about."""
    base: dict[str, Any] = {
        "type": kind,
        "verdict": verdict,
        "expects_abstention": False,
        "score": {"correct": 1.0, "wrong": 0.0}.get(verdict),
        "sample": "main",
        "context_chars": 1200,
        **dict.fromkeys(["id", "dataset", "uid", "reason", "judge", "question"], "x"),
        **dict.fromkeys(["gold", "trap"]),
    }
    return [Record(**(base | fields)) for _ in range(n)]


def asked(kind: str, n: int, verdict: str, checkpoint: int, age: int, **fields: Any) -> list[Record]:
    """Questions of a longitudinal dataset."""
    cross, cold = kind == "cross_agent_recall", kind == "cold_start_recall"
    facets = {"age": age, "checkpoint": checkpoint, "cross_agent": cross, "cold_start": cold}
    return questions(kind, n, verdict, facets=facets, **fields)


STRESS = [
    *asked("fact_recall", 9, "correct", 1, 20, usage={"ingest": {"cost": 2.0}, "retrieve": {"cost": 0.01}}),
    *asked("fact_recall", 1, "wrong", 1, 20),
    *asked("fact_recall", 6, "correct", 2, 300),
    *asked("fact_recall", 4, "wrong", 2, 300),
    *asked("contradiction_resolution", 3, "correct", 3, 1000),
    *asked("contradiction_resolution", 3, "wrong", 3, 1200),
    *asked("cross_agent_recall", 4, "n/a", 2, 200, reason=NO_AGENT),
    *asked("cold_start_recall", 1, "unscored", 3, 600, reason="offline"),
    *asked("fact_recall", 2, "wrong", 3, 200, recoverable=False),
]


def report(
    name: str, records: list[Record], *minimums: str, source: Provenance = PROVENANCE, top_k: int = 10
) -> DatasetReport:
    """One dataset with its gates, as far as it has such names."""
    summary = summarise(name, records, type_labels={}, top_k=top_k)
    held = check_thresholds([parse_threshold(text) for text in minimums], {name: summary.names()})[name]
    source = replace(source, items=len(records), top_k=top_k)
    return DatasetReport(summary, source, [evaluate(threshold, summary) for threshold in held])


def shown(*reports: DatasetReport, width: int = 80) -> list[Line]:
    gated = any(one.gates for one in reports)
    reason = "a minimum is set" if gated else "no threshold is set"
    gate = "score" if gated else "verdict"
    return summary_lines(reports, gate=gate, gate_reason=reason, gate_set=gated, width=width)


def text_of(lines: list[Line]) -> str:
    return "\n".join(line.text for line in lines) + "\n"


def fact(lines: list[Line], label: str) -> str:
    """The text beside a label, on one line."""
    found: list[str] = []
    for line in lines:
        if line.text.startswith(label.ljust(12)):
            found.append(line.text[12:])
        elif found and line.text.startswith(" " * 12):
            found.append(line.text.strip())
        elif found:
            break
    return " ".join(found)


# -- dimensions ---------------------------------------------------------------------------------------


def test_a_longitudinal_dataset_shows_how_recall_fares() -> None:
    assert text_of(shown(report("stress", STRESS, "slope=-0.3", "cross-agent=0.1"))) == dedent(
        """\
        stress                    n correct  score 95% interval unscored missed n/a
        ---------------------------------------------------------------------------
        fact_recall              20      15 0.7500  0.531-0.888        0      5   0
        contradiction_resolution  6       3 0.5000  0.188-0.812        0      3   0
        cross_agent_recall        4       -      -            -        0      -   4
        cold_start_recall         1       -      -            -        1      -   0
        ---------------------------------------------------------------------------
        overall                  31      18 0.6923  0.500-0.835        1      8   4
        unrecoverable             2       0 0.0000  0.000-0.658        0      2   0
        all                      33      18 0.6429  0.458-0.793        1     10   4
        ---------------------------------------------------------------------------
        age-0-100                10       9 0.9000  0.596-0.982        0      1   0
        age-100-500              14       6 0.6000  0.313-0.832        0      4   4
        age-500-1000              4       3 1.0000  0.439-1.000        1      0   0
        age-1000+                 3       0 0.0000  0.000-0.561        0      3   0
        checkpoint 1             10       9 0.9000  0.596-0.982        0      1   0
        checkpoint 2             14       6 0.6000  0.313-0.832        0      4   4
        checkpoint 3              7       3 0.5000  0.188-0.812        1      3   0
        contradiction             6       3 0.5000  0.188-0.812        0      3   0
        cross-agent               4       -      -            -        0      -   4
        cold-start                1       -      -            -        1      -   0

        n/a         4: the backend has no as_agent(agent_id), and another agent asks
        slope       -0.2000 a checkpoint (least squares over 3 checkpoints)
        cost        0.1161 a correct answer (2.0900 in all, 18 correct)
        retrieval   - (no ids came back for a question with evidence)
        scores      mean score 0.6923 (26 questions)
        context     1,200 characters, ~300 tokens (characters / 4); empty 0 of 33
        provenance  stress sha256 79fa87e90f04, 33 items, 1 sample (0 fed), backend
                    mymem, judge evidence, k 10, pytest-himga 0.1.0

        gate        score (a minimum is set)
        passed      stress: slope -0.2000 is at least -0.3 (least squares over 3
                    checkpoints, 26 questions)
        UNMEASURED  stress: cross-agent was not measured: none of 4 questions has a
                    verdict (4 n/a)
        """
    )


def test_the_same_in_a_narrow_terminal() -> None:
    few = [*asked("fact_recall", 3, "correct", 1, 20), *asked("fact_recall", 1, "wrong", 2, 1000)]
    text = text_of(shown(report("stress", few), width=40))
    assert text[: text.index("retrieval")] == dedent(
        """\
        stress
        n correct  score unscored missed n/a
        ------------------------------------
        fact_recall
        4       3 0.7500        0      1   0
        ------------------------------------
        overall
        4       3 0.7500        0      1   0
        ------------------------------------
        age-0-100
        3       3 1.0000        0      0   0
        age-500-1000
        1       0 0.0000        0      1   0
        checkpoint 1
        3       3 1.0000        0      0   0
        checkpoint 2
        1       0 0.0000        0      1   0

        slope       -1.0000 a checkpoint (least
                    squares over 2 checkpoints)
        """
    )


def test_what_was_not_measured_has_no_slope_and_no_cost_of_an_answer() -> None:
    once = asked("fact_recall", 2, "wrong", 1, 20, usage={"judge": {"cost": 0.25}})
    lines = shown(report("stress", once))
    assert fact(lines, "slope") == "- (it takes two checkpoints with a verdict)"
    assert fact(lines, "cost") == "- a correct answer (0.5000 in all, 0 correct)"


@pytest.mark.parametrize(
    ("each", "text"),
    [
        (0.0000216, "0.00002160 a correct answer (0.00006480 in all, 3 correct)"),
        (0.5, "0.5000 a correct answer (1.5000 in all, 3 correct)"),
        (1234.0, "1234.0000 a correct answer (3702.0000 in all, 3 correct)"),
    ],
)
def test_a_cost_shows_four_digits_however_small(each: float, text: str) -> None:
    paid = asked("fact_recall", 3, "correct", 1, 20, usage={"answer": {"cost": each}})
    assert fact(shown(report("stress", paid)), "cost") == text


def test_a_dataset_that_costs_nothing_or_has_no_facets_shows_neither() -> None:
    free = shown(report("stress", asked("fact_recall", 3, "correct", 1, 20)))
    plain = shown(report("locomo", questions("temporal", 3, "correct", usage={"answer": {"cost": 1.0}})))
    assert fact(free, "cost") == fact(plain, "cost") == fact(plain, "slope") == ""


# -- errata -------------------------------------------------------------------------------------------


def test_scores_with_and_without_errata_are_both_shown() -> None:
    published = {"gold": "Porto", "verdict": "wrong", "score": 0.0}
    records = [
        *questions("temporal", 5, "correct"),
        *questions("temporal", 1, "correct", errata=published),
        *questions("temporal", 2, "wrong", errata={"excluded": "the answer is in no turn"}),
        *questions("adversarial", 2, "n/a", expects_abstention=True, reason=NO_EVIDENCE),
    ]
    source = replace(PROVENANCE, errata="locomo-audit", session_order="file", unverified=True)
    text = text_of(shown(report("locomo", records, "as-published=0.7", source=source)))
    assert text == dedent(
        """\
        locomo         n  correct   score  95% interval  unscored  missed  n/a
        ----------------------------------------------------------------------
        temporal       6        6  1.0000   0.610-1.000         0       0    0
        ----------------------------------------------------------------------
        overall        6        6  1.0000   0.610-1.000         0       0    0
        as published   8        5  0.6250   0.306-0.863         0       3    0
        abstention     2        -       -             -         0       -    2
        excluded       2        0  0.0000   0.000-0.658         0       2    0
        all           10        6  0.7500   0.409-0.929         0       2    2

        n/a         2: the dataset names no evidence for this question
        errata      2 questions excluded, 1 question judged by a corrected gold; as
                    published counts them as the dataset has them
        retrieval   - (no ids came back for a question with evidence)
        scores      mean score 1.0000 (6 questions)
        context     1,200 characters, ~300 tokens (characters / 4); empty 0 of 10
        provenance  locomo sha256 79fa87e90f04 (UNVERIFIED), errata locomo-audit,
                    session order file, 10 items, 1 sample (0 fed), backend mymem, judge
                    evidence, k 10, pytest-himga 0.1.0

        gate        score (a minimum is set)
        FAILED      locomo: as-published 0.6250 is below 0.7 (5 of 8; 1 more correct
                    answer needed)
        """
    )


@pytest.mark.parametrize("order", [None, "time"])
def test_the_usual_order_of_sessions_goes_without_saying(order: str | None) -> None:
    source = replace(PROVENANCE, session_order=order)
    lines = shown(report("lme", questions("temporal", 1, "correct"), source=source))
    assert fact(lines, "provenance").startswith("lme sha256 79fa87e90f04, 1 item, ")


# -- why questions are n/a ----------------------------------------------------------------------------


def test_three_reasons_are_told_and_the_rest_is_counted() -> None:
    reasons = {"no reopen()": 16, NO_AGENT: 32, "": 3, "a\nrubric": 2, "\u00fcber": 1}
    records = [one for reason, n in reasons.items() for one in questions("recall", n, "n/a", reason=reason)]
    assert fact(shown(report("stress", records)), "n/a") == (
        f"32: {NO_AGENT}; 16: no reopen(); 3: no reason given; and 3 more for other reasons"
    )


def test_a_reason_of_many_words_is_cut() -> None:
    told = fact(shown(report("stress", questions("recall", 1, "n/a", reason="very " * 100))), "n/a")
    assert told.startswith("1: very very ")
    assert told.endswith("...")
    assert len(told) < 210


# -- retrieval of sessions ----------------------------------------------------------------------------


SESSIONS = [["1", "D1:2"], ["4", "D4:1"], ["1", "D1:1"]]
FOUND = retrieval_metrics(SESSIONS, [["D1:1"]], 10) | session_recall(SESSIONS, ["1", "4"], 10)


def test_session_recall_has_a_row_of_its_own() -> None:
    records = [
        *questions("multi_session", 1, "correct", metrics=FOUND),
        # without evidence in a turn, but with sessions that hold some
        *questions("multi_session", 1, "n/a", metrics=session_recall(SESSIONS, ["4"], 10)),
    ]
    text = text_of(shown(report("lme", records)))
    assert text[text.index("retrieval") : text.index("scores")] == dedent(
        """\
        retrieval       @1      @3      @5     @10
          recall    0.0000  1.0000  1.0000  1.0000
          hit       0.0000  1.0000  1.0000  1.0000
          nDCG      0.0000  0.5000  0.5000  0.5000
          session   0.2500  1.0000  1.0000  1.0000
          MRR       0.3333
          questions    1-2
        """
    )


def test_session_recall_is_told_in_words_where_the_table_does_not_fit() -> None:
    found = retrieval_metrics(SESSIONS, [["D1:1"]], 20) | session_recall(SESSIONS, ["1", "4"], 20)
    records = questions("multi_session", 1, "correct", metrics=found)
    told = fact(shown(report("lme", records, top_k=20), width=40), "retrieval")
    assert "session@1 0.5000, session@3 1.0000, " in told
    assert told.endswith("MRR 0.3333; questions 1")


def test_a_memory_without_sessions_has_no_such_row() -> None:
    records = questions("multi_session", 1, "correct", metrics=retrieval_metrics(SESSIONS, [["D1:1"]], 10))
    labels = [line.text.split()[0] for line in shown(report("lme", records)) if line.text.startswith("  ")]
    assert labels[:5] == ["recall", "hit", "nDCG", "MRR", "questions"]


# -- several datasets ---------------------------------------------------------------------------------


def three(*minimums: str) -> list[DatasetReport]:
    """A dataset of each family; each minimum goes to those that have its name."""
    data = {
        "locomo": questions("temporal", 7, "correct") + questions("temporal", 3, "wrong"),
        "longmemeval-oracle": questions("multi_session", 1, "correct")
        + questions("multi_session", 1, "wrong"),
        "stress": STRESS,
    }
    names = {
        name: summarise(name, records, type_labels={}, top_k=10).names() for name, records in data.items()
    }
    held = check_thresholds([parse_threshold(text) for text in minimums], names)
    return [report(name, records, *(t.text for t in held[name])) for name, records in data.items()]


def test_three_families_have_a_table_and_a_provenance_each_and_their_own_gates() -> None:
    lines = shown(*three("0.6", "temporal=0.5", "slope=-0.1", "longmemeval-oracle:all=0.5"))
    assert [line.text.split()[0] for line in lines if "95% interval" in line.text] == [
        "locomo",
        "longmemeval-oracle",
        "stress",
    ]
    said = [line.text[12:].split()[0] for line in lines if line.text.startswith("provenance")]
    assert said == ["locomo", "longmemeval-oracle", "stress"]
    gates = [line.text for line in lines if line.text.startswith(("passed", "FAILED", "UNMEASURED"))]
    assert [" ".join(text.split()[:4]) for text in gates] == [
        "passed locomo: overall 0.7000",
        "passed locomo: temporal 0.7000",
        "FAILED longmemeval-oracle: overall 0.5000",
        "passed longmemeval-oracle: all 0.5000",
        "passed stress: overall 0.6923",
        "FAILED stress: slope -0.2000",
    ]


def test_the_hint_for_three_datasets_is_an_option_that_can_be_copied() -> None:
    names = ("locomo:0.70", "longmemeval-oracle:0.50", "stress:0.69")
    wide = fact(shown(*three(), width=100), "hint")
    assert wide.endswith(f"add --himga-min-score={','.join(names)}")
    words = fact(shown(*three(), width=70), "hint").split()
    assert words[-3:] == [f"--himga-min-score={name}" for name in names]


@settings(deadline=None)
@given(st.integers(0, 130), st.integers(1, 30))
def test_every_line_fits_is_ascii_and_has_no_trailing_blank(width: int, top_k: int) -> None:
    errata = questions("temporal", 2, "wrong", errata={"excluded": "w\u00e4re"}, facets={"age": -1})
    records = [*STRESS, *errata, *questions("temporal", 1, "n/a", reason="\x1b[2J \u00fcber\nall")]
    source = replace(PROVENANCE, errata="l\u00fccke-" * 9, session_order="file", unverified=True)
    for line in shown(report("a-long-name" * 3, records, source=source, top_k=top_k), width=width):
        assert len(line.text) <= min(max(width, 40), 100)
        assert line.text.isascii()
        assert line.text.isprintable()
        assert line.text == line.text.rstrip()
