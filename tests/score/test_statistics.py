"""The interval of a share and the percentile of times."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_himga.score.statistics import percentile, wilson


@pytest.mark.parametrize(
    ("successes", "n", "low", "high"),
    [
        # the roots of (p - s/n)^2 = z^2 p (1 - p) / n, solved with 50 digits
        (0, 10, 0.0, 0.2775327998628892),
        (10, 10, 0.7224672001371108, 1.0),
        (5, 10, 0.2365930905, 0.7634069095),
        (1, 1, 0.2065493143772375, 1.0),
        (612, 841, 0.6966355420, 0.7567039526),
    ],
)
def test_wilson_gives_the_known_intervals(successes: int, n: int, low: float, high: float) -> None:
    assert wilson(successes, n) == pytest.approx((low, high), abs=1e-9)


@given(st.integers(1, 5000), st.data())
def test_an_interval_holds_its_share_and_stays_inside_0_and_1(n: int, data: st.DataObject) -> None:
    successes = data.draw(st.integers(0, n))
    low, high = wilson(successes, n)
    assert 0.0 <= low <= successes / n <= high <= 1.0
    assert high > low


@given(st.integers(1, 500))
def test_ten_times_the_questions_make_a_tighter_interval(n: int) -> None:
    few, many = wilson(n // 2, n), wilson(n // 2 * 10, n * 10)
    assert many[1] - many[0] < few[1] - few[0]


@pytest.mark.parametrize(("successes", "n"), [(0, 0), (3, 2), (-1, 4), (0, -1)])
def test_what_has_no_interval_is_an_error_and_not_a_number(successes: int, n: int) -> None:
    with pytest.raises(ValueError, match=f"no interval for {successes} of {n}"):
        wilson(successes, n)


@pytest.mark.parametrize(
    ("q", "expected"), [(0, 1.0), (25, 1.0), (50, 2.0), (51, 3.0), (95, 4.0), (100, 4.0)]
)
def test_a_percentile_is_the_nearest_rank(q: float, expected: float) -> None:
    assert percentile([3.0, 1.0, 4.0, 2.0], q) == expected


@given(st.lists(st.floats(0, 1e6), min_size=1), st.floats(0, 100))
def test_a_percentile_is_always_a_value_that_was_measured(values: list[float], q: float) -> None:
    assert percentile(values, q) in values


def test_there_is_no_percentile_of_nothing_nor_beyond_100() -> None:
    with pytest.raises(ValueError, match="no values"):
        percentile([], 50)
    with pytest.raises(ValueError, match="between 0 and 100"):
        percentile([1.0], 101)
