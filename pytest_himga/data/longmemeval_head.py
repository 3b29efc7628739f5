"""The head of a LongMemEval record, in the data room: all but the turns, which stay undecoded.

Half a megabyte of history hangs on each question; msgspec steps over it at the speed of memory. What it
does not step through as expected is left to the reader, which has a sentence for everything.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

import msgspec

from pytest_himga.data.dates import parse_date

if TYPE_CHECKING:
    from datetime import date

#: The beginning of a session with at least one turn.
_SOME_TURN = re.compile(rb"\[[ \t\r\n]*\{")


class Head(msgspec.Struct, gc=False):
    """A record's fields, of the kinds that they have in every real file."""

    question_id: str
    question_type: str
    question: str
    answer: str | int
    question_date: str
    haystack_dates: list[str]
    haystack_session_ids: list[str]
    haystack_sessions: list[msgspec.Raw]
    answer_session_ids: list[str] = []


_TIME_STAMP = re.compile(r"(\d{4}/\d{2}/\d{2}) \([^()]*\) (?:[01]\d|2[0-3]):[0-5]\d", re.ASCII)
_DECODER = msgspec.json.Decoder(Head)


def usual_head(raw: bytes | memoryview) -> Head | None:
    """The head of a record; None where a reader would find anything in it to mend or to refuse.

    The type is not looked at. ``haystack_sessions`` are views of ``raw``.
    """
    try:
        head = _DECODER.decode(raw)
        return head if _is_usual(head) else None
    except (ValueError, RecursionError):  # no date, or what msgspec raises: ValueErrors all
        return None


def _is_usual(head: Head) -> bool:
    sessions = head.haystack_sessions
    if not len(sessions) == len(head.haystack_dates) == len(head.haystack_session_ids):
        return False
    if not all(text.strip() for text in (head.question_id, head.question, str(head.answer))):
        return False
    if not all(map(_SOME_TURN.match, sessions)):
        return False
    asked = _day_of(head.question_date)
    return all(_day_of(text) <= asked for text in head.haystack_dates)


def _day_of(text: str) -> date:
    """The day of a time stamp; raises ``ValueError`` where there is none.

    Histories of a file share their days, so each is worked out once: there are 250,000 time stamps in the
    largest file.
    """
    match = _TIME_STAMP.fullmatch(text)
    return _day(match[1]) if match else parse_date(text).date()


@lru_cache(maxsize=4096)
def _day(text: str) -> date:
    return parse_date(f"{text} 00:00").date()
