"""What ``--himga-min-score`` and ``--himga-max-unscored`` accept, and what they say to the rest."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_himga.errors import SettingsError
from pytest_himga.score.summary import known_names
from pytest_himga.score.thresholds import (
    Threshold,
    allowed_unscored,
    check_thresholds,
    decimal,
    parse_allowance,
    parse_threshold,
)

STRESS = known_names(
    ["fact_recall", "contradiction_resolution"],
    10,
    facets=[
        {"age": 7, "checkpoint": 1, "cross_agent": True, "cold_start": False},
        {"age": 800, "checkpoint": 2, "cross_agent": False, "cold_start": False},
    ],
    unrecoverable=True,
)
LOCOMO = known_names(["multi_hop", "temporal", "single_hop"], 10)
LONGMEM = known_names(["multi_session", "temporal_reasoning"], 10)


@pytest.mark.parametrize(
    ("text", "dataset", "name", "value"),
    [
        ("0.7", None, "overall", "7/10"),
        ("1", None, "overall", "1"),
        ("0", None, "overall", "0"),
        (".5", None, "overall", "1/2"),
        ("1.", None, "overall", "1"),
        ("70%", None, "overall", "7/10"),
        ("72.5 %", None, "overall", "29/40"),
        (" temporal = 0.6 ", None, "temporal", "3/5"),
        ("locomo:0.7", "locomo", "overall", "7/10"),
        ("locomo:recall@5=0.4", "locomo", "recall@5", "2/5"),
        ("locomo:multi-hop=40%", "locomo", "multi-hop", "2/5"),
        # a fall that is put up with; no other number can be below 0
        ("slope=-0.05", None, "slope", "-1/20"),
        ("Slope = -5 %", None, "Slope", "-1/20"),
        ("stress:slope=-1", "stress", "slope", "-1"),
        ("slope=+0.01", None, "slope", "1/100"),
    ],
)
def test_the_grammar(text: str, dataset: str | None, name: str, value: str) -> None:
    assert parse_threshold(text) == Threshold(dataset, name, Fraction(value), text.strip())


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("70", "a minimum lies between 0 and 1, and 70 does not; did you mean 0.7?"),
        ("temporal=65.5", "and 65.5 does not; did you mean temporal=0.655?"),
        ("locomo:7", "and 7 does not; did you mean locomo:0.07?"),
        ("140", "a minimum lies between 0 and 1, and 140 does not"),
        ("140%", "a minimum lies between 0% and 100%, and 140% does not"),
        ("-0.1", "a minimum lies between 0 and 1, and -0.1 does not"),
        ("cold-start=-0.1", "a minimum lies between 0 and 1, and -0.1 does not"),
        ("slope=-5", "a minimum of slope lies between -1 and 1, and -5 does not; did you mean slope=-0.05?"),
        ("slope=2", "a minimum of slope lies between -1 and 1, and 2 does not; did you mean slope=0.02?"),
        ("slope=-101", "a minimum of slope lies between -1 and 1, and -101 does not"),
        ("slope=-101%", "a minimum of slope lies between -100% and 100%, and -101% does not"),
        ("slope=down", "down is not a number; write a value from -1 to 1, such as -0.05, or -5%"),
        ("slope=", "a part is empty"),
        ("", "a part is empty; write [DATASET:][NAME=]VALUE"),
        ("temporal=", "a part is empty"),
        ("=0.7", "a part is empty"),
        (":0.7", "a part is empty"),
        ("locomo:=0.7", "a part is empty"),
        ("high", "high is not a number; write a value from 0 to 1, such as 0.7, or 70%"),
        ("nan", "nan is not a number"),
        ("inf", "inf is not a number"),
        ("1e-1", "1e-1 is not a number"),
        ("1/2", "1/2 is not a number"),
        ("0,7", "0,7 is not a number"),
        ("9" * 5000, "is not a number"),
        ("context-tokens=900", "context-tokens is better the lower it is, so it cannot have a minimum"),
        ("locomo:false_refusal=0.1", "false-refusal is better the lower it is"),
        ("cost-per-correct=0.1", "cost-per-correct is better the lower it is"),
    ],
)
def test_a_bad_threshold_is_one_sentence_that_names_it(text: str, sentence: str) -> None:
    with pytest.raises(SettingsError) as failure:
        parse_threshold(text)
    assert str(failure.value).startswith(f"--himga-min-score={text}: ")
    assert sentence in str(failure.value)


@given(st.text(max_size=20))
def test_any_text_is_a_threshold_or_a_settings_error(text: str) -> None:
    try:
        threshold = parse_threshold(text)
    except SettingsError:
        return
    assert (-1 if threshold.name.casefold() == "slope" else 0) <= threshold.value <= 1


def check(*texts: str) -> dict[str, list[tuple[str, str]]]:
    """The thresholds by dataset, as pairs of name and value."""
    names = {"locomo": LOCOMO, "lme": LONGMEM, "stress": STRESS}
    found = check_thresholds([parse_threshold(text) for text in texts], names)
    assert all(t.dataset == dataset for dataset, ts in found.items() for t in ts)
    return {dataset: [(t.name, decimal(t.value)) for t in ts] for dataset, ts in found.items()}


def test_a_bare_minimum_holds_for_every_dataset() -> None:
    whole = [("overall", "0.7")]
    assert check("0.7") == {"locomo": whole, "lme": whole, "stress": whole}


def test_a_name_that_one_dataset_has_applies_to_that_one() -> None:
    assert check("single_hop=0.5", "lme:0.3") == {
        "locomo": [("single_hop", "0.5")],
        "lme": [("overall", "0.3")],
        "stress": [],
    }


def test_the_dimensions_of_one_dataset_are_no_business_of_the_others() -> None:
    minimums = ["age-0-100=0.5", "Slope=-5%", "cross_agent=0.4", "unrecoverable=0.1", "contradiction=0.2"]
    assert check(*minimums, "session-recall@5=0.3") == {
        "locomo": [("session-recall@5", "0.3")],
        "lme": [("session-recall@5", "0.3")],
        "stress": [
            ("age-0-100", "0.5"),
            ("slope", "-0.05"),
            ("cross-agent", "0.4"),
            ("unrecoverable", "0.1"),
            ("contradiction", "0.2"),
            ("session-recall@5", "0.3"),
        ],
    }


@pytest.mark.parametrize("spelling", ["multi_hop", "multi-hop", "Multi-Hop"])
def test_types_are_read_with_hyphens_and_underscores(spelling: str) -> None:
    assert check(f"{spelling}=0.5")["locomo"] == [("multi_hop", "0.5")]


@pytest.mark.parametrize("spelling", ["mean-score", "mean_score", "MRR", "nDCG@5"])
def test_other_names_are_read_as_people_write_them(spelling: str) -> None:
    name = spelling.lower().replace("_", "-")
    assert check(f"locomo:{spelling}=0.5")["locomo"] == [(name, "0.5")]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("locmo:0.7", "dataset locmo is not selected; did you mean locomo?"),
        ("temporl=0.7", "no selected dataset has a number called temporl; did you mean temporal"),
        ("lme:single_hop=0.7", "lme has no number called single_hop; "),
        ("locomo:slope=-0.1", "locomo has no number called slope; "),
        ("cold-start=0.7", "no selected dataset has a number called cold-start; "),
        ("age-100-500=0.7", "did you mean age-0-100 or age-500-1000?"),
        ("as-published=0.7", "no selected dataset has a number called as-published; "),
        ("excluded=0.7", "no selected dataset has a number called excluded; "),
        ("session-recall@7=0.7", "it is measured as session-recall@1, session-recall@3"),
        ("locomo:recall@7=0.7", "it is measured as recall@1, recall@3, recall@5, recall@10"),
    ],
)
def test_a_name_that_nobody_has_is_an_error_and_never_a_pass(text: str, sentence: str) -> None:
    with pytest.raises(SettingsError) as failure:
        check(text)
    assert str(failure.value).startswith(f"--himga-min-score={text}: ")
    assert sentence in str(failure.value)


@pytest.mark.parametrize(
    ("text", "total", "allowed"),
    [("0", 1986, 0), ("12", 1986, 12), ("2%", 1986, 39), ("2%", 49, 0), ("0.5 %", 1986, 9), ("100%", 7, 7)],
)
def test_how_many_questions_may_stay_unscored(text: str, total: int, allowed: int) -> None:
    assert allowed_unscored(text, total) == allowed


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "write a count of questions, such as 12, or a share of them, such as 2%"),
        ("few", "write a count"),
        ("-1", "write a count"),
        ("%", "write a count"),
        ("0.02", "0.02 is no whole number of questions; for a share of the questions write 2%"),
        ("2.5", "2.5 is no whole number of questions"),
        ("101%", "more than all questions cannot be unscored; the most is 100%"),
    ],
)
def test_a_bad_allowance_is_one_sentence(text: str, sentence: str) -> None:
    with pytest.raises(SettingsError) as failure:
        parse_allowance(text)
    assert str(failure.value).startswith(f"--himga-max-unscored={text}: ")
    assert sentence in str(failure.value)


@given(st.decimals(min_value=-1000, max_value=1000, places=6))
def test_a_decimal_is_printed_in_full(value: object) -> None:
    assert Fraction(decimal(Fraction(str(value)))) == Fraction(str(value))
