"""Dates of every dataset, read without a locale, a clock or a guess.

Month names are English whatever the process' locale, weekdays are never looked at, and a text that is
no date is an error: a date that falls back to "now" turns every temporal question into noise.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime

# fmt: off
_MONTHS = (
    "january", "february", "march", "april", "may", "june",
    "july", "august", "september", "october", "november", "december",
)
# fmt: on
_LOCOMO = re.compile(
    r"(?P<hour>\d{1,2}):(?P<minute>\d{2})\s*(?P<half>[ap])m\s+on\s+"
    r"(?P<day>\d{1,2})\s+(?P<month>[a-z]+),?\s+(?P<year>\d{4})",
    re.ASCII | re.IGNORECASE,
)
_LONGMEMEVAL = re.compile(
    r"(?P<year>\d{4})/(?P<month>\d{1,2})/(?P<day>\d{1,2})\s*(?:\([^()]*\))?\s+(?P<hour>\d{1,2}):(?P<minute>\d{2})",
    re.ASCII,
)
# The extended format only, and hours to 23: what else `fromisoformat` takes differs between Pythons.
_ISO = re.compile(
    r"\d{4}-\d{2}-\d{2}"
    r"(?:[T ](?:[01]\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:[.,]\d+)?)?(?:Z|[+-]\d{2}(?::?\d{2})?)?)?",
    re.ASCII,
)


def parse_date(text: str) -> datetime:
    """Return the moment that ``text`` names, as an aware ``datetime`` in UTC.

    Read are LoCoMo's ``1:56 pm on 8 May, 2023`` (``12:09 am`` is just after midnight), LongMemEval's
    ``2023/05/20 (Sat) 02:21`` (the weekday is ignored) and ISO 8601's extended format; a text without
    a zone is taken as UTC, one with a zone is converted. Anything else is a ``ValueError`` that shows it.

    >>> parse_date("12:09 am on 13 September, 2023").isoformat()
    '2023-09-13T00:09:00+00:00'
    """
    stripped = text.strip()
    try:
        if match := _LOCOMO.fullmatch(stripped):
            return _locomo(match)
        if match := _LONGMEMEVAL.fullmatch(stripped):
            year, month, day, hour, minute = (int(part) for part in match.groups())
            return datetime(year, month, day, hour, minute, tzinfo=UTC)
        if _ISO.fullmatch(stripped):
            moment = datetime.fromisoformat(stripped)
            return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):
        pass  # the shape is right and the day does not exist: 31 June, 13:05 pm
    raise ValueError(
        f"not a date: {text!r}; known are '1:56 pm on 8 May, 2023', '2023/05/20 (Sat) 02:21' and ISO 8601"
    )


def _locomo(match: re.Match[str]) -> datetime:
    hour = int(match["hour"])
    if not 1 <= hour <= 12:
        raise ValueError
    month = 1 + _MONTHS.index(match["month"].lower())  # a ValueError if it is no month
    hour = hour % 12 + (12 if match["half"].lower() == "p" else 0)
    return datetime(int(match["year"]), month, int(match["day"]), hour, int(match["minute"]), tzinfo=UTC)
