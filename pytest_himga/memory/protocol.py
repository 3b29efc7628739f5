"""What a memory must offer to be tested, and what himga makes of what it returns."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_himga.data.schema import Message, Session


@dataclass(frozen=True)
class Recalled:
    """One thing that a memory found, best first in the list that ``retrieve`` returns.

    ``turn_ids`` and ``session_ids`` are the ids that ``ingest`` was given (``message.turn_id``,
    ``session.session_id``); with them retrieval is scored exactly, without them by the text.
    """

    text: str
    turn_ids: Sequence[str] = ()
    session_ids: Sequence[str] = ()
    date_str: str | None = None
    score: float | None = None


@dataclass(frozen=True)
class Usage:
    """What was spent: number of calls, tokens in and out, cost in the price list's currency.

    The rest is filled by himga's own models: of the ``calls``, failed attempts included, ``retries`` were
    not the first of their request, and ``untold`` brought no token counts; ``cached`` requests cost no call.
    """

    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    cost: float = 0.0
    retries: int = 0
    untold: int = 0
    cached: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(*(mine + its for mine, its in zip(self._values, other._values, strict=True)))

    def __sub__(self, other: Usage) -> Usage:
        return Usage(*(mine - its for mine, its in zip(self._values, other._values, strict=True)))

    @property
    def _values(self) -> tuple[Any, ...]:
        return tuple(vars(self).values())

    def as_json(self) -> dict[str, float]:
        """What ``results.jsonl`` keeps: of the last three only what happened."""
        return {name: value for name, value in vars(self).items() if value or name in _ALWAYS}


#: The keys of a usage in ``results.jsonl`` that are there even if they are 0.
_ALWAYS = ("calls", "tokens_in", "tokens_out", "cost")


class Memory(Protocol):
    """The memory under test; each method may be sync or async.

    Found by presence, all optional: ``ingest_session(session)`` (instead of ``ingest``), ``settle()``
    (return when what was ingested can be found), ``answer(question) -> str``, ``usage() -> Usage``
    (totals so far), ``profile() -> dict`` (what it knows of its user, shown to an LLM that answers),
    ``close()``, and the attributes ``version`` (text), ``deterministic`` and
    ``concurrent`` (bool; nothing reads these two yet).

    Two more are for datasets with several agents and restarts. ``as_agent(agent_id)`` returns a view: it
    has ``ingest`` or ``ingest_session``, ``retrieve``, and ``answer`` if the memory answers; what that
    agent hears and asks goes through it, while ``settle``, ``reset``, ``usage`` and ``close`` stay with
    the memory itself. ``reopen()`` returns another memory over the same store, as a restart of the
    process would make it; it is asked one question and closed, never fed or reset. Questions that need
    one of them are n/a for a memory without it.
    """

    def ingest(self, message: Message, session: Session) -> object:
        """Take in one turn, in the order of the history. ``ingest(message)`` is accepted too."""

    def retrieve(self, query: str) -> str | Sequence[Recalled]:
        """What the memory knows about ``query``. ``date=`` and ``k=`` are passed if accepted."""

    def reset(self) -> object:
        """Forget everything; called once before a sample is fed, also on a new instance."""


@dataclass(frozen=True)
class Context:
    """What a memory returned for one question, ids mapped back to the dataset's own.

    ``recalled`` is None where the memory returned plain text. ``verbatim`` is whether this memory is
    known to quote turns word for word (None: not known yet); see ``judge/evidence.py``. ``sessions`` is
    parallel to ``recalled``: the neutral ids (``s3`` is the third of the history) of the sessions that
    each thing stands in, as its ids tell. Positions, because a dataset may use one session id twice.
    """

    text: str
    recalled: tuple[Recalled, ...] | None = None
    verbatim: bool | None = field(default=None, compare=False)
    sessions: tuple[frozenset[str], ...] = field(default=(), compare=False)

    @property
    def has_ids(self) -> bool:
        """Whether retrieval can be scored by ids: a list came back, and it is empty or has ids."""
        if self.recalled is None:
            return False
        return not self.recalled or any(r.turn_ids or r.session_ids for r in self.recalled)
