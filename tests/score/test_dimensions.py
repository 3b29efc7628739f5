"""Recall by age, the curve over checkpoints and its slope, agents, cold starts, and what an answer cost."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_himga.data.schema import Case, EvidenceRef, QAPair, QuestionType, Sample
from pytest_himga.score.dimensions import COST, Dimensions, dimension_names, slope_of
from pytest_himga.score.record import Record, record_of
from pytest_himga.score.summary import DatasetSummary, known_names, summarise

if TYPE_CHECKING:
    from pytest_himga.score.counts import Row

#: Every number of a dataset of this kind with two checkpoints, in the order of reports.
LONGITUDINAL = [
    *("age-0-100", "age-100-500", "age-500-1000", "checkpoint-1", "checkpoint-2"),
    *("slope", "contradiction", "cross-agent", "cold-start", COST),
]
FACETS = {"age": 0, "checkpoint": 1, "cross_agent": False, "cold_start": False}


def question(verdict: str = "correct", *, kind: str = "fact_recall", **fields: Any) -> Record:
    """A record with the facets that ``fields`` name, else ``FACETS``; its other fields as they come."""
    facets = {name: fields.pop(name, default) for name, default in FACETS.items()}
    base: dict[str, Any] = {
        **dict.fromkeys(["id", "dataset", "uid", "reason", "judge", "question"], "x"),
        **dict.fromkeys(["score", "gold", "trap"]),
        "sample": "main",
        "expects_abstention": False,
        "facets": facets,
    }
    return Record(**(base | {"type": kind, "verdict": verdict} | fields))


def add_up(*records: Record) -> DatasetSummary:
    return summarise("stress", records, type_labels={"fact_recall": "fact_recall"}, top_k=5)


def dimensions(*records: Record) -> Dimensions:
    found = add_up(*records).dimensions
    assert found is not None
    return found


def counts(rows: tuple[Row, ...]) -> dict[str, int]:
    return {row.name: row.n for row in rows}


# -- recall by age ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("age", "row"),
    [
        (0, "age-0-100"),
        (99, "age-0-100"),
        (100, "age-100-500"),
        (499, "age-100-500"),
        (500, "age-500-1000"),
        (999, "age-500-1000"),
        # the last bucket is closed: the oldest question of a history of 1,000 sessions must not fall out
        (1000, "age-500-1000"),
        (1001, "age-1000+"),
        (-1, "age unknown"),
        (None, "age unknown"),
        ("7", "age unknown"),
        (True, "age unknown"),
    ],
)
def test_every_age_has_its_row(age: object, row: str) -> None:
    assert counts(dimensions(question(age=age)).ages) == {row: 1}


def test_a_row_by_age_is_a_row_like_any_other() -> None:
    records = [question(verdict, age=700) for verdict in ("correct", "wrong", "unscored", "n/a", "?")]
    [row] = dimensions(*records).ages
    assert (row.correct, row.wrong, row.unscored, row.na) == (1, 1, 2, 1)
    assert (row.score, row.bound) == (0.5, Fraction(3, 4))


def test_rows_stand_from_young_to_old_however_the_questions_come() -> None:
    found = dimensions(*(question(age=age) for age in (5000, None, 600, 7, 200)))
    assert list(counts(found.ages)) == [
        "age-0-100",
        "age-100-500",
        "age-500-1000",
        "age-1000+",
        "age unknown",
    ]


def test_what_has_no_bucket_can_have_no_threshold() -> None:
    unplaced = [{"age": 5000, "checkpoint": 1}, {"age": None, "checkpoint": None}]
    assert dimension_names(unplaced, ["fact_recall"]) == ["checkpoint-1", "cost-per-correct"]


# -- the curve ----------------------------------------------------------------------------------------


def curve(**verdicts: str) -> Dimensions:
    """One question for each letter (c, w, u, n) of each checkpoint: ``p1="ccw", p2="u"``."""
    words = {"c": "correct", "w": "wrong", "u": "unscored", "n": "n/a"}
    return dimensions(
        *(
            question(words[letter], checkpoint=int(place[1:]))
            for place, letters in verdicts.items()
            for letter in letters
        )
    )


@pytest.mark.parametrize(
    ("verdicts", "slope"),
    [
        ({"p1": "cc", "p2": "cw"}, Fraction(-1, 2)),
        # 1, 3/4, 1/2, 1/4: a quarter is lost at each checkpoint
        ({"p1": "cccc", "p2": "cccw", "p3": "ccww", "p4": "cwww"}, Fraction(-1, 4)),
        ({"p1": "cw", "p4": "cw"}, Fraction(0)),
        ({"p4": "c", "p1": "w"}, Fraction(1, 3)),
        # each checkpoint weighs the same: ten wrong answers at 2 are one point of the curve
        ({"p1": "c", "p2": "w" * 10, "p3": "c"}, Fraction(0)),
        # a checkpoint without a verdict is no point of it
        ({"p1": "c", "p2": "un", "p3": "w"}, Fraction(-1, 2)),
    ],
)
def test_the_slope_is_that_of_the_line_through_the_measured_checkpoints(
    verdicts: dict[str, str], slope: Fraction
) -> None:
    assert curve(**verdicts).slope == slope


@pytest.mark.parametrize("verdicts", [{"p1": "ccw"}, {"p1": "ccw", "p2": "u"}, {"p1": "n", "p2": "n"}])
def test_one_measured_checkpoint_has_no_slope(verdicts: dict[str, str]) -> None:
    assert curve(**verdicts).slope is None


def test_a_question_without_a_checkpoint_is_counted_and_no_point_of_the_curve() -> None:
    found = dimensions(question(checkpoint=1), question(checkpoint=2), question("wrong", checkpoint=None))
    assert found.slope == 0
    assert counts(found.unplaced) == {"checkpoint unknown": 1}
    assert sum(row.n for row in found.rows if row.name.startswith("checkpoint")) == 3


def test_the_bound_lifts_the_late_checkpoints_and_lowers_the_early_ones() -> None:
    found = curve(p1="cu", p2="cw", p3="wu")
    assert found.slope == Fraction(-1, 2)
    # at best 1/2, 1/2, 1/2
    assert found.slope_bound == 0
    assert found.unscored == 2


def test_a_checkpoint_of_which_nothing_is_known_might_have_been_anything() -> None:
    assert curve(p1="c", p2="u").slope_bound == 0
    assert curve(p1="u", p2="w").slope_bound == 0
    assert curve(p1="u", p2="u").slope_bound == 1
    assert curve(p1="c", p2="n").slope_bound is None


@settings(deadline=None)  # some examples have 256 outcomes; a busy machine is no failure
@given(st.lists(st.text("cwu", min_size=1, max_size=2), min_size=2, max_size=4))
def test_no_outcome_of_the_unscored_questions_beats_the_bound(checkpoints: list[str]) -> None:
    bound = curve(**{f"p{n}": letters for n, letters in enumerate(checkpoints, start=1)}).slope_bound
    unscored = sum(letters.count("u") for letters in checkpoints)
    best = Fraction(-1)
    for outcome in product("cw", repeat=unscored):
        told = iter(outcome)
        filled = ["".join(next(told) if x == "u" else x for x in letters) for letters in checkpoints]
        shares = [Fraction(letters.count("c"), len(letters)) for letters in filled]
        slope = slope_of(list(enumerate(shares, start=1)))
        assert slope is not None
        best = max(best, slope)
    assert bound is not None
    assert best <= bound
    if all("c" in letters or "w" in letters for letters in checkpoints):
        # every point of the curve is there already, so the bound is no more than what can be
        assert bound == best


@given(st.dictionaries(st.integers(-50, 50), st.fractions(0, 1, max_denominator=50), min_size=2))
def test_a_slope_of_shares_lies_between_minus_1_and_1(points: dict[int, Fraction]) -> None:
    slope = slope_of(list(points.items()))
    assert slope is not None
    assert -1 <= slope <= 1


# -- contradictions, agents, cold starts --------------------------------------------------------------


def test_contradictions_agents_and_cold_starts_have_a_row_each() -> None:
    found = dimensions(
        question(kind="contradiction_resolution"),
        question("wrong", kind="contradiction_resolution", cross_agent=True),
        question("n/a", kind="cross_agent_recall", cross_agent=True),
        question(kind="cold_start_recall", cold_start=True),
        question(),
    )
    assert counts(found.kinds) == {"contradiction": 2, "cross-agent": 2, "cold-start": 1}


def test_questions_that_nobody_can_answer_and_excluded_ones_are_in_no_slice() -> None:
    summary = add_up(
        question(cold_start=True),
        question("wrong", cold_start=True, recoverable=False),
        question("wrong", cold_start=True, expects_abstention=True),
        question("wrong", cold_start=True, errata={"excluded": "no such fact"}),
    )
    assert summary.dimensions is not None
    assert {row.name: row.n for row in summary.dimensions.rows} == {
        "age-0-100": 1,
        "checkpoint-1": 1,
        "cold-start": 1,
    }


def test_a_dataset_without_such_facets_has_no_dimensions() -> None:
    summary = add_up(question(facets={}), question(facets={"speaker": "Ada"}))
    assert summary.dimensions is None
    assert not {*LONGITUDINAL} & {*summary.totals()}


# -- names and totals ---------------------------------------------------------------------------------


def test_totals_hold_every_dimension_and_none_where_nothing_was_measured() -> None:
    summary = add_up(
        question(age=7), question("wrong", age=200, checkpoint=2), question("n/a", cross_agent=True)
    )
    totals = summary.totals()
    assert {name: totals[name] for name in LONGITUDINAL} == {
        "age-0-100": 1.0,
        "age-100-500": 0.0,
        "age-500-1000": None,
        "checkpoint-1": 1.0,
        "checkpoint-2": 0.0,
        "slope": -1.0,
        "contradiction": None,
        "cross-agent": None,
        "cold-start": None,
        "cost-per-correct": None,
    }
    assert [name for name in totals if name in LONGITUDINAL] == LONGITUDINAL
    assert (summary.exact("slope"), summary.bound("slope")) == (-1, -1.0)


@pytest.mark.parametrize(
    ("facets", "types", "names"),
    [
        ([], ["fact_recall", "contradiction_resolution"], []),
        ([{}], ["contradiction_resolution"], []),
        ([FACETS], ["fact_recall"], ["age-0-100", "checkpoint-1", COST]),
        ([FACETS], ["contradiction_resolution"], ["age-0-100", "checkpoint-1", "contradiction", COST]),
        (
            [FACETS | {"age": 1000, "checkpoint": 2}, FACETS],
            [],
            ["age-0-100", "age-500-1000", "checkpoint-1", "checkpoint-2", "slope", COST],
        ),
        ([FACETS | {"age": 1001}], [], ["checkpoint-1", COST]),
        ([FACETS | {"cold_start": True}], [], ["age-0-100", "checkpoint-1", "cold-start", COST]),
        ([{"cross_agent": True}], [], ["cross-agent", COST]),
    ],
)
def test_a_run_has_the_numbers_that_the_selected_questions_can_measure(
    facets: list[dict[str, Any]], types: list[str], names: list[str]
) -> None:
    assert dimension_names(facets, types) == names
    assert [name for name in known_names(types, 5, facets=facets) if name in LONGITUDINAL] == names


def test_each_checkpoint_of_the_curve_is_a_number_that_a_threshold_can_hold() -> None:
    summary = add_up(question(), question("wrong"), question(checkpoint=10), question(checkpoint=2))
    assert [name for name in summary.totals() if name.startswith("checkpoint")] == [
        "checkpoint-1",
        "checkpoint-2",
        "checkpoint-10",
    ]
    assert summary.exact("checkpoint-1") == Fraction(1, 2)


def test_what_a_correct_answer_cost_is_kept_with_the_other_totals() -> None:
    paid = question(usage=spent(retrieve=0.5)), question("wrong", usage=spent(retrieve=0.25))
    assert add_up(*paid).totals()[COST] == 0.75
    assert add_up(*paid[1:]).totals()[COST] is None


# -- what a correct answer cost -----------------------------------------------------------------------


def spent(**stages: float) -> dict[str, dict[str, float]]:
    return {
        stage: {"calls": 1, "tokens_in": 0, "tokens_out": 0, "cost": cost} for stage, cost in stages.items()
    }


def test_feeding_stands_in_each_record_of_a_sample_and_is_paid_once() -> None:
    cost = dimensions(
        question(usage=spent(ingest=1.0, retrieve=0.125)),
        question("wrong", usage=spent(ingest=1.5, retrieve=0.25, judge=0.5)),
        question("n/a", sample="other", usage=spent(ingest=2.0)),
    ).cost
    assert cost is not None
    # what is fed up to the next checkpoint adds to what the sample's records say
    assert (cost.total, cost.correct, cost.per_correct) == (4.375, 1, 4.375)


def test_a_sample_that_two_workers_fed_was_paid_twice() -> None:
    cost = dimensions(
        question(worker="gw0", usage=spent(ingest=1.0)),
        question(worker="gw1", usage=spent(ingest=1.0)),
        question(worker="gw1", usage=spent(ingest=1.0)),
    ).cost
    assert cost is not None
    assert (cost.total, cost.correct) == (2.0, 3)


def test_without_a_correct_answer_there_is_a_cost_and_no_share_of_it() -> None:
    cost = dimensions(question("wrong", usage=spent(retrieve=0.5))).cost
    assert cost is not None
    assert (cost.total, cost.per_correct) == (0.5, None)


@pytest.mark.parametrize("cost", [0.0, None, "dear", float("nan"), float("inf")])
def test_what_costs_nothing_or_is_no_number_is_no_cost(cost: Any) -> None:
    assert dimensions(question(usage=spent(judge=cost))).cost is None


# -- the record ---------------------------------------------------------------------------------------


def test_a_record_carries_what_its_question_is_sliced_by_and_does_not_write_it() -> None:
    asked = QAPair(
        "Q001",
        "Where does Ada live?",
        "Porto",
        QuestionType.FACT_RECALL,
        EvidenceRef(groups=[["S0001"]]),
        recoverable=False,
        facets=dict(FACETS),
    )
    case = Case.of("stress", "main", Sample("main", "memorystress", [], [asked]), asked)
    record = record_of(case, verdict="unscored", reason="not run", k=10)
    assert (record.recoverable, record.facets, record.errata) == (False, FACETS, None)
    record.facets["age"] = 7
    assert case.brief.facets == FACETS
    written = record.to_json()
    assert {"recoverable", "facets", "metrics"}.isdisjoint(written)
    assert list(written)[-2:] == ["worker", "errata"]


def test_facets_and_errata_of_strangers_can_be_sent_between_workers() -> None:
    record = question(facets={"age": 3, "topic\ud800": "\udfff"}, errata={"excluded": "half \ud83d"})
    record.make_sendable()
    assert record.facets == {"age": 3, "topic\\ud800": "\\udfff"}
    assert record.errata == {"excluded": "half \\ud83d"}
