"""The dates of memories: a moment to sort by and a day in English words, whatever a memory gives."""

from __future__ import annotations

import locale
import math
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_himga.answer.dates import day_in_words, human_date, moment_of, plain_date

WEST = timezone(timedelta(hours=-7))


class Moody:
    """An object that does not want to be looked at."""

    def __str__(self) -> str:
        raise RuntimeError("go away")


class NotATime(datetime):
    """Like pandas' NaT: a datetime by type, and none by its fields."""

    year = property(lambda self: math.nan)


@pytest.mark.parametrize(
    ("given_date", "moment"),
    [
        ("1:56 pm on 8 May, 2023", "2023-05-08T13:56"),
        ("2023/05/20 (Sat) 02:21", "2023-05-20T02:21"),
        ("2023-05-08", "2023-05-08T00:00"),
        ("2023-05-08T13:56:07", "2023-05-08T13:56:07"),
        ("2023-05-08T13:56:07.25Z", "2023-05-08T13:56:07.25"),
        ("2023-05-07T19:00:00-07:00", "2023-05-08T02:00"),
        ("2023-05-07 19:00:00.123456-07:00", "2023-05-08T02:00:00.123456"),
        (" 2023-05-08T00:30+09:00\n", "2023-05-07T15:30"),
        (datetime(2023, 5, 8, 13, 56), "2023-05-08T13:56"),  # noqa: DTZ001 - a memory may give one without a zone
        (datetime(2023, 5, 7, 19, tzinfo=WEST), "2023-05-08T02:00"),
        (date(2023, 5, 8), "2023-05-08T00:00"),
        (1683554160, "2023-05-08T13:56"),
        (1683554160.5, "2023-05-08T13:56:00.5"),
        (1683554160500, "2023-05-08T13:56:00.5"),
        ("1683554160", "2023-05-08T13:56"),
        ("1683554160.5", "2023-05-08T13:56:00.5"),
        (" 1683554160500 ", "2023-05-08T13:56:00.5"),
        (Decimal(1683554160), "2023-05-08T13:56"),
        (Fraction(1683554160), "2023-05-08T13:56"),
    ],
)
def test_a_memory_s_date_is_a_moment_in_utc(given_date: object, moment: str) -> None:
    expected = datetime.fromisoformat(moment).replace(tzinfo=UTC)
    assert moment_of(plain_date(given_date)) == expected


@pytest.mark.parametrize(
    "given_date",
    [
        None,
        "",
        "last spring",
        "2023",  # a year; as seconds it would be in January 1970
        "20230508",
        "\u0661683554160",
        2023,
        20230508,
        0,
        -1683554160,
        True,
        False,
        math.nan,
        math.inf,
        -math.inf,
        10**30,
        10**5000,
        "9" * 5000,
        Moody(),
        NotATime(2023, 5, 8),
        datetime.min.replace(tzinfo=timezone(timedelta(hours=14))),
        "0001-01-01T00:00+14:00",
        [1683554160],
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_names_no_moment_for_certain_is_unknown(given_date: object) -> None:
    assert moment_of(plain_date(given_date)) is None


@pytest.mark.parametrize("nothing", [None, True, False, math.nan, math.inf, Moody(), NotATime(2023, 5, 8)])
def test_what_is_no_date_at_all_leaves_nothing(nothing: object) -> None:
    assert plain_date(nothing) is None


@given(st.datetimes(datetime(1974, 1, 1), datetime(2999, 1, 1)))  # noqa: DTZ001 - a zone is added below
def test_seconds_and_milliseconds_are_told_apart(moment: datetime) -> None:
    moment = moment.replace(microsecond=0, tzinfo=UTC)
    seconds = int(moment.timestamp())
    forms = [
        seconds,
        float(seconds),
        str(seconds),
        seconds * 1000,
        float(seconds * 1000),
        str(seconds * 1000),
    ]
    assert {moment_of(form) for form in forms} == {moment}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("1:56 pm on 8 May, 2023", "Monday, 8 May 2023"),
        ("2023/05/30 (Tue) 21:56", "Tuesday, 30 May 2023"),
        ("2024-02-29T07:12:00", "Thursday, 29 February 2024"),
        ("2023-05-07T19:00:00-07:00", "Monday, 8 May 2023"),  # the day in UTC, as the datasets' own are
        (" in the third year of the war ", "in the third year of the war"),
        ("2023", "2023"),
        ("  ", None),
        ("", None),
        (None, None),
    ],
)
def test_a_reference_date_is_put_into_words_or_left_as_it_is(text: str | None, words: str | None) -> None:
    assert human_date(text) == words


@given(st.dates(date(1, 1, 1)))
def test_the_words_of_a_day_are_those_of_the_c_locale(day: date) -> None:
    moment = datetime(day.year, day.month, day.day, 23, 59, tzinfo=UTC)
    assert day_in_words(moment) == f"{moment:%A}, {day.day} {moment:%B} {day.year}"


def test_the_machine_s_language_does_not_matter() -> None:
    before = locale.setlocale(locale.LC_TIME)
    try:
        for name in ("de_DE.UTF-8", "fr_FR.UTF-8", "C.UTF-8", "C"):
            try:
                locale.setlocale(locale.LC_TIME, name)
            except locale.Error:
                continue
            assert human_date("1:56 pm on 8 May, 2023") == "Monday, 8 May 2023"
    finally:
        locale.setlocale(locale.LC_TIME, before)
