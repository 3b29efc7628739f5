"""The dates of memories, in the answer room: a moment to sort by, and a day in English words to read.

A memory may give a date in any of the datasets' forms, in ISO 8601, as a ``datetime`` or ``date``, or as
an epoch. Days are those of UTC, because the datasets' dates are read as UTC: a memory that was told
"2 am on 8 May" and stamps it ``2023-05-07T19:00-07:00`` means the 8th of May, and days that are shown in
one zone never run backwards in a list that is sorted by time.
"""

from __future__ import annotations

import math
import re
from datetime import UTC, date, datetime
from numbers import Integral, Real
from typing import TypeAlias

from pytest_himga.data.dates import parse_date

#: What is left of a memory's date: plain data. A ``datetime`` is a ``date``.
PlainDate: TypeAlias = str | int | float | date | None

# Not by strftime or calendar, which speak the language of the process.
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
# fmt: off
_MONTHS = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)
# fmt: on
_DIGITS = re.compile(r"\d{9,14}(?:\.\d+)?", re.ASCII)
#: Seconds before this (March 1973) are no memory of a chat: a year, a day as 20230508, a running number.
_FIRST_SECOND = 1e8
#: From here on (in seconds: the year 5138) an epoch counts milliseconds; 1e11 of them end in March 1973.
_FIRST_MILLISECOND = 1e11
_LAST_MILLISECOND = 1e14


def plain_date(value: object) -> PlainDate:
    """The date that a memory gave as plain data; None for what is none at all (NaN, pandas' NaT, a bool).

    Numbers of any numeric type become int or float, any other object its text.
    """
    try:
        if value is None or isinstance(value, bool):
            return None
        if isinstance(value, date):
            return _plain_day(value)
        if isinstance(value, Integral):
            return int(value)
        if isinstance(value, Real):
            number = float(value)
            return number if math.isfinite(number) else None
        return str(value)
    except Exception:  # noqa: BLE001 - an object of the memory's own, which may do anything when it is looked at
        return None


def _plain_day(value: date) -> date:
    if not isinstance(value, datetime):
        return date(value.year, value.month, value.day)
    return datetime.combine(date(value.year, value.month, value.day), value.timetz())


def moment_of(value: PlainDate) -> datetime | None:
    """The moment in UTC that a memory's date names; None where it names none for certain.

    Without a zone it is taken as UTC, without a time as the day's beginning. Numbers and texts of 9 to 14
    digits are epochs, in seconds or milliseconds.
    """
    if isinstance(value, datetime):
        return _in_utc(value)
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day, tzinfo=UTC)
    if isinstance(value, str):
        text = value.strip()
        if _DIGITS.fullmatch(text):
            return _of_epoch(float(text))
        try:
            return parse_date(text)
        except ValueError:
            return None
    return None if value is None else _of_epoch(value)


def _in_utc(moment: datetime) -> datetime | None:
    try:
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):  # the first or the last hours that there are
        return None


def _of_epoch(number: float) -> datetime | None:
    if _FIRST_SECOND <= number < _FIRST_MILLISECOND:
        return datetime.fromtimestamp(number, UTC)
    if _FIRST_MILLISECOND <= number < _LAST_MILLISECOND:
        return datetime.fromtimestamp(number / 1000, UTC)
    return None


def day_in_words(moment: datetime) -> str:
    """``Monday, 8 May 2023``, whatever the process' language."""
    return f"{_WEEKDAYS[moment.weekday()]}, {moment.day} {_MONTHS[moment.month - 1]} {moment.year}"


def human_date(text: str | None) -> str | None:
    """A dataset's date in words; a text that is no date as it is, None where there is none."""
    if text is None or not text.strip():
        return None
    moment = moment_of(text)
    return text.strip() if moment is None else day_in_words(moment)
