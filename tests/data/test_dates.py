"""Dates mean the same moment on every machine, or are refused."""

from __future__ import annotations

import locale
import time
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_himga.data.dates import parse_date

MONTHS = [
    "January", "February", "March", "April", "May", "June", "July",
    "August", "September", "October", "November", "December",
]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("1:56 pm on 8 May, 2023", "2023-05-08T13:56"),
        ("12:09 am on 13 September, 2023", "2023-09-13T00:09"),
        ("12:00 pm on 1 January, 2024", "2024-01-01T12:00"),
        ("11:59 AM on 29 february, 2024", "2024-02-29T11:59"),
        (" 9:05 pm on 31 December 2022\n", "2022-12-31T21:05"),
        ("2023/05/20 (Sat) 02:21", "2023-05-20T02:21"),
        ("2023/05/20 (Mon) 02:21", "2023-05-20T02:21"),  # the weekday is wrong, and ignored
        ("2023/05/20 (土) 02:21", "2023-05-20T02:21"),
        ("2023/05/20 02:21", "2023-05-20T02:21"),
        ("2024-01-01", "2024-01-01T00:00"),
        ("2024-01-01T07:12:00", "2024-01-01T07:12"),
        ("2024-01-01 07:12", "2024-01-01T07:12"),
        ("2024-01-01T07:12:00Z", "2024-01-01T07:12"),
        ("2024-01-01T07:12:00+09:00", "2023-12-31T22:12"),
        ("2024-01-01T07:12-0530", "2024-01-01T12:42"),
        ("2024-01-01T07:12:00.500000+01", "2024-01-01T06:12:00.500000"),
    ],
)
def test_a_date_is_a_moment_in_utc(text: str, moment: str) -> None:
    assert parse_date(text) == datetime.fromisoformat(moment).replace(tzinfo=UTC)
    assert parse_date(text).utcoffset() == timedelta(0)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "yesterday",
        "1:56 pm on 8 Mai, 2023",
        "1:56 on 8 May, 2023",
        "13:56 pm on 8 May, 2023",
        "0:30 am on 8 May, 2023",
        "1:60 pm on 8 May, 2023",
        "1:56 pm on 31 June, 2023",
        "\u0661:56 pm on 8 May, 2023",
        "2023/02/30 (Thu) 02:21",
        "2023/05/20 (Sat) 24:00",
        "2023-13-01",
        "2024-01-01T24:00",
        "2024-01-01T07:12+25:00",
        "0001-01-01T00:00+14:00",
        "20240101",
        "2024-W01-1",
        "1704093120",
    ],
)
def test_what_is_no_date_is_an_error_that_shows_it(text: str) -> None:
    with pytest.raises(ValueError, match="not a date") as caught:
        parse_date(text)
    assert str(caught.value) == (
        f"not a date: {text!r}; known are '1:56 pm on 8 May, 2023', '2023/05/20 (Sat) 02:21' and ISO 8601"
    )


@given(st.datetimes(datetime(1900, 1, 1), datetime(2999, 12, 31)))  # noqa: DTZ001 - a zone is added below
def test_every_minute_survives_all_three_forms(moment: datetime) -> None:
    moment = moment.replace(second=0, microsecond=0, tzinfo=UTC)
    half = "am" if moment.hour < 12 else "pm"
    locomo = (
        f"{moment.hour % 12 or 12}:{moment.minute:02} {half} on {moment.day} "
        f"{MONTHS[moment.month - 1]}, {moment.year}"
    )
    longmemeval = f"{moment.year}/{moment.month:02}/{moment.day:02} (Xyz) {moment.hour:02}:{moment.minute:02}"
    assert parse_date(locomo) == parse_date(longmemeval) == parse_date(moment.isoformat()) == moment


@given(st.datetimes(datetime(1900, 1, 1), datetime(2999, 12, 31)), st.integers(-14 * 60, 14 * 60))  # noqa: DTZ001 - a zone is added below
def test_an_offset_is_converted(moment: datetime, minutes: int) -> None:
    there = moment.replace(tzinfo=timezone(timedelta(minutes=minutes)))
    assert parse_date(there.isoformat()) == there


@given(st.text(max_size=40))
def test_any_text_is_a_moment_in_utc_or_a_value_error(text: str) -> None:
    try:
        moment: datetime | str = parse_date(text)
    except ValueError as error:
        moment = str(error)
    assert repr(text) in moment if isinstance(moment, str) else moment.tzinfo is UTC


@pytest.mark.parametrize("zone", ["Asia/Tokyo", "America/New_York", "UTC"])
def test_the_machine_s_zone_does_not_matter(zone: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        assert parse_date("1:56 pm on 8 May, 2023").isoformat() == "2023-05-08T13:56:00+00:00"
    finally:
        monkeypatch.undo()
        time.tzset()


def test_the_machine_s_language_does_not_matter() -> None:
    before = locale.setlocale(locale.LC_TIME)
    try:
        for name in ("de_DE.UTF-8", "fr_FR.UTF-8", "C.UTF-8", "C"):
            try:
                locale.setlocale(locale.LC_TIME, name)
            except locale.Error:
                continue
            assert parse_date("1:56 pm on 8 May, 2023").month == 5
    finally:
        locale.setlocale(locale.LC_TIME, before)
