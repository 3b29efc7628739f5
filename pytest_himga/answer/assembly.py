"""From a request to the fields of a prompt, in the answer room.

Memories stand in the order of time, oldest first, each headed by its day; ranks and scores are not shown.
They were cut to the first k before: sorting first would cut the newest.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from pytest_himga.answer.dates import day_in_words, human_date, moment_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_himga.answer.request import AnswerRequest, RecalledMemory

HEADING = "Oldest to newest; those without an exact date stand last:"
NOTHING_FOUND = "(the memory found nothing)"
#: Characters of a date that cannot be read which are shown: enough for "some time in the spring of 2023".
_LONGEST_DATE = 40
_NEVER = datetime.max.replace(tzinfo=UTC)


def fields_of(request: AnswerRequest) -> dict[str, str | None]:
    """The fields of an answer profile; None for those that this request does not have."""
    return {
        "question": request.question,
        "date": human_date(request.date),
        "memories": memories_block(request),
        "profile": profile_block(request.profile),
        "k": str(request.k),
    }


def memories_block(request: AnswerRequest) -> str:
    """The memories under a heading, by time; a plain text as it is; a placeholder where nothing was found."""
    if request.memories is None:
        return request.text if request.text.strip() else NOTHING_FOUND
    told = [one for one in request.memories if one.text.strip()]
    return "\n".join([HEADING, *_by_time(told)]) if told else NOTHING_FOUND


def _by_time(memories: Sequence[RecalledMemory]) -> list[str]:
    dated = [(moment_of(one.date), one) for one in memories]
    dated.sort(key=lambda pair: (pair[0] is None, pair[0] or _NEVER))  # stable: else as ranked
    return [_entry(one, moment) for moment, one in dated]


def _entry(memory: RecalledMemory, moment: datetime | None) -> str:
    """One memory. Its further lines are indented, so that none of them can pass for another's first."""
    lines = memory.text.strip().splitlines()
    return "\n    ".join([f"- [{_day(memory, moment)}] {lines[0]}", *lines[1:]])


def _day(memory: RecalledMemory, moment: datetime | None) -> str:
    if moment is not None:
        return day_in_words(moment)
    given = _one_line(memory.date)[:_LONGEST_DATE].strip()
    return f"date as given: {given}" if given else "date unknown"


def profile_block(profile: Mapping[str, Any] | None) -> str | None:
    """What a memory knows of its user, a line for each key that holds something; None if none does.

    ``{"home_town": "Leiden", "pets": ["a cat", "a hen"]}`` gives ``Home Town: Leiden`` and
    ``Pets: a cat, a hen``. None, blank texts and empty collections are left out; 0 and False are not.
    """
    lines = [
        f"{_title(_one_line(key))}: {text}"
        for key, value in (profile or {}).items()
        if (text := _value(value))
    ]
    return "\n".join(lines) or None


def _title(key: str) -> str:
    # Not str.title(), which makes "User'S" and "Tv".
    return " ".join(word[:1].upper() + word[1:] for word in key.replace("_", " ").split())


def _value(value: object) -> str:
    if isinstance(value, set | frozenset):
        value = sorted(map(_one_line, value))  # their own order is that of the process' hash seed
    if isinstance(value, list | tuple):
        return ", ".join(text for one in value if (text := _one_line(one)))
    return "" if isinstance(value, Mapping) and not value else _one_line(value)


def _one_line(value: object) -> str:
    if value is None:
        return ""
    try:
        return " ".join(str(value).split())
    except Exception:  # noqa: BLE001 - an object of the memory's own, which may raise anything
        return f"({type(value).__name__})"
