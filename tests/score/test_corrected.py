"""The accuracy that is left when a judge's own errors are taken out of it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_himga.score.corrected import Corrected, corrected_accuracy
from pytest_himga.score.statistics import wilson

Counts = tuple[int, int, int, int, int, int]


def corrected(counts: Counts) -> Corrected | None:
    """For (correct, n, accepted right, right, accepted wrong, wrong)."""
    correct, n, accepted_right, right, accepted_wrong, wrong = counts
    return corrected_accuracy(
        correct, n, accepted_right=accepted_right, right=right, accepted_wrong=accepted_wrong, wrong=wrong
    )


@pytest.mark.parametrize(
    ("counts", "value", "low", "high"),
    [
        # a = (p + Sp - 1) / (Se + Sp - 1) by hand; the ends from the published formulas with 50 digits.
        # (0.7 + 0.9 - 1) / (0.9 + 0.9 - 1)
        ((70, 100, 45, 50, 5, 50), 0.75, 0.6120568727187631, 0.9038103625111311),
        # (0.727705 - 2/35) / (1 - 2/35)
        ((612, 841, 25, 25, 2, 35), 0.7112023925341404, 0.6620483929445908, 0.8086356442672045),
        # (0.153333 - 0.11) / (0.96 - 0.11)
        ((23, 150, 96, 100, 11, 100), 0.0509803921568627, 0.0, 0.1456684576154858),
        # nothing to correct, but the 20 probes could all have been luck
        ((10, 10, 20, 20, 0, 20), 1.0, 0.6911976012127917, 1.0),
        ((0, 10, 20, 20, 0, 20), 0.0, 0.0, 0.3088023987872082),
    ],
)
def test_the_corrected_accuracy_of_known_counts(
    counts: Counts, value: float, low: float, high: float
) -> None:
    found = corrected(counts)
    assert found is not None
    assert (found.value, found.low, found.high) == pytest.approx((value, low, high), abs=1e-12)


def test_a_generous_judge_makes_a_memory_look_better_than_it_is() -> None:
    found = corrected((80, 100, 50, 50, 25, 50))  # accepts every other wrong answer
    assert found is not None
    assert found.value == pytest.approx(0.6)


def test_a_harsh_judge_makes_it_look_worse() -> None:
    found = corrected((40, 100, 25, 50, 0, 50))  # accepts only every other right answer
    assert found is not None
    assert found.value == pytest.approx(0.8)


@pytest.mark.parametrize(
    ("counts", "value"),
    [((5, 100, 45, 50, 5, 50), 0.0), ((99, 100, 45, 50, 5, 50), 1.0)],
)
def test_an_accuracy_that_the_rates_cannot_give_is_cut_off_at_0_and_1(counts: Counts, value: float) -> None:
    found = corrected(counts)
    assert found is not None
    assert found.value == value
    assert found.low < found.high


@pytest.mark.parametrize(
    "counts",
    [
        (0, 0, 45, 50, 5, 50),
        (70, 100, 0, 0, 5, 50),
        (70, 100, 45, 50, 0, 0),
        (70, 100, 25, 50, 25, 50),  # a coin
        (70, 100, 50, 50, 50, 50),  # accepts everything
        (70, 100, 0, 50, 0, 50),  # accepts nothing
        (70, 100, 5, 50, 45, 50),  # the wrong way round
        (70, 100, 1, 10, 3, 30),  # a coin whose rates are no round numbers of a computer's
    ],
)
def test_what_was_not_measured_or_tells_nothing_is_none(counts: Counts) -> None:
    assert corrected(counts) is None


@pytest.mark.parametrize(
    ("counts", "says"),
    [
        ((101, 100, 45, 50, 5, 50), "verdicts: 101 of 100 is no count"),
        ((-1, 100, 45, 50, 5, 50), "verdicts: -1 of 100 is no count"),
        ((70, 100, 51, 50, 5, 50), "right: 51 of 50 is no count"),
        ((70, 100, 45, 50, 5, -1), "wrong: 5 of -1 is no count"),
    ],
)
def test_impossible_counts_are_an_error_and_not_a_number(counts: Counts, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        corrected(counts)


def test_probes_that_hardly_tell_the_judge_from_a_coin_leave_everything_open() -> None:
    found = corrected((70, 100, 1, 1, 999, 1000))
    assert found is not None
    assert (found.low, found.high) == (0.0, 1.0)


@pytest.mark.parametrize(
    ("counts", "value"), [((0, 10, 18, 18, 9, 17), 0.0), ((100, 100, 30, 50, 0, 50), 1.0)]
)
def test_verdicts_that_the_rates_hardly_allow_do_not_look_certain(counts: Counts, value: float) -> None:
    found = corrected(counts)
    assert found is not None
    assert found.value == value
    assert found.high - found.low > 0.05


def shares(most: int) -> st.SearchStrategy[tuple[int, int]]:
    """(part, whole) with a whole of at least 1."""
    return st.tuples(st.integers(0, most), st.integers(1, most)).map(lambda two: (min(two), max(two)))


@given(shares(3000), shares(200), shares(200))
def test_the_interval_holds_its_value_inside_0_and_1(
    observed: tuple[int, int], right: tuple[int, int], wrong: tuple[int, int]
) -> None:
    found = corrected((*observed, *right, *wrong))
    if found is None:
        assert right[0] / right[1] <= wrong[0] / wrong[1]
    else:
        assert 0.0 <= found.low <= found.value <= found.high <= 1.0
        assert found.low < found.high


@given(shares(3000))
def test_a_judge_that_passed_a_million_probes_changes_nothing(observed: tuple[int, int]) -> None:
    correct, n = observed
    found = corrected((correct, n, 10**6, 10**6, 0, 10**6))
    assert found is not None
    assert found.value == pytest.approx(correct / n)
    # what is left is the observed share's own uncertainty, by another formula of the same kind
    low, high = wilson(correct, n)
    assert found.low <= low + 1e-9
    assert found.high >= high - 1e-9
    assert found.high - found.low <= (high - low) * 1.2 + 0.001


@given(
    shares(1500),
    st.tuples(st.integers(9, 12), st.just(12)),
    st.tuples(st.integers(0, 4), st.just(15)),
    st.integers(2, 20),
)
def test_more_probes_with_the_same_outcome_make_the_interval_tighter(
    observed: tuple[int, int], right: tuple[int, int], wrong: tuple[int, int], times: int
) -> None:
    few = corrected((*observed, *right, *wrong))
    many = corrected((*observed, right[0] * times, right[1] * times, wrong[0] * times, wrong[1] * times))
    assert few is not None
    assert many is not None
    if few.low > 0.0 and few.high < 1.0:  # one that is cut off at an end may lose more than it has
        assert many.high - many.low < few.high - few.low
