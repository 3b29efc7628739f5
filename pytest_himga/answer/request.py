"""What an answerer gets, in the answer room: the question, its date and what was recalled.

A request is made from these alone. There is no gold, type, evidence, id or score in it that an answer
could be made from, and no way to one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_himga.answer.dates import PlainDate, plain_date

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_himga.memory.protocol import Context


@dataclass(frozen=True)
class RecalledMemory:
    """One thing that the memory found. ``date`` is what the memory gave as its date, as plain data."""

    text: str
    date: PlainDate = None


@dataclass(frozen=True)
class AnswerRequest:
    """One question to an answerer.

    ``date`` is when it is asked, as the dataset writes it: the question's own date, else that of the last
    session that was fed. ``memories`` are the first ``k`` as the memory ranked them, None where it returned
    plain text; ``text`` is the same as plain text. ``profile`` is what the memory's optional ``profile()``
    returned.
    """

    question: str
    date: str | None
    memories: tuple[RecalledMemory, ...] | None
    text: str
    profile: Mapping[str, Any] | None = None
    k: int = 10

    @classmethod
    def of(
        cls, question: str, date: str | None, context: Context, profile: Mapping[str, Any] | None, k: int
    ) -> AnswerRequest:
        """The request for ``question`` asked at ``date``; of a ranked context its first ``k`` only."""
        if context.recalled is None:
            return cls(question, date, None, context.text, profile, k)
        memories = tuple(RecalledMemory(one.text, plain_date(one.date_str)) for one in context.recalled[:k])
        return cls(question, date, memories, "\n".join(one.text for one in memories), profile, k)
