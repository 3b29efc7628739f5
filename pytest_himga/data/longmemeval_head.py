"""The head of a LongMemEval record, in the data room: all but the turns, which stay undecoded.

Half a megabyte of history hangs on each question; msgspec steps over it at the speed of memory. What it
does not step through as expected is left to the reader, which has a sentence for everything.
"""

from __future__ import annotations

import re

import msgspec

from pytest_himga.data.dates import parse_date

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
    asked = parse_date(head.question_date).date()
    return all(parse_date(date).date() <= asked for date in head.haystack_dates)
