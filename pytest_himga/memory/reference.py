"""Reference backends without a dependency: null, full-context and oracle.

They are the controls of every run: nothing remembered must score 0, the whole history must hold all
evidence, and exactly the evidence must score 1. Where a dataset has several agents, they share one store:
what one was told, every other recalls. A reopened one lies over the same store, as files would outlive a
restart.
"""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Self

from pytest_himga.memory.protocol import Recalled

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_himga.data.schema import Message, Session


class SharedStore:
    """One store for all agents and restarts: all that a memory of ours holds is its store."""

    def as_agent(self, agent_id: str) -> Self:  # noqa: ARG002 - the protocol's signature
        """The memory itself: agents share everything."""
        return self

    def reopen(self) -> Self:
        """Another instance over the same store."""
        return copy(self)


class NullMemory(SharedStore):
    """Remembers nothing: the floor of every score."""

    deterministic = True

    def ingest(self, message: Message) -> None:
        """Forget it at once."""

    def retrieve(self, query: str) -> list[Recalled]:  # noqa: ARG002 - the protocol's signature
        """Nothing."""
        return []

    def reset(self) -> None:
        """Nothing to forget."""


class FullContextMemory(SharedStore):
    """Returns the whole history as text, whatever is asked: what a long-context model would get."""

    deterministic = True

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._text: str | None = None

    def ingest_session(self, session: Session) -> None:
        """Keep the session, headed by its date."""
        lines = [f"{message.role}: {message.content}" for message in session.messages]
        self._parts.append("\n".join([f"[{session.date_str or 'no date'}]", *lines]))
        self._text = None

    def retrieve(self, query: str) -> str:  # noqa: ARG002 - the protocol's signature
        """Everything, in the order of the history."""
        if self._text is None:
            self._text = "\n\n".join(self._parts)
        return self._text

    def reset(self) -> None:
        """Start with an empty history."""
        self._parts = []
        self._text = None


class OracleMemory(SharedStore):
    """Returns exactly the evidence of a question: the ceiling of retrieval.

    What it must find is told to it through ``reveal``, which the engine calls on this very class alone,
    right before each ``retrieve``; no protocol offers that door to anyone else.
    """

    deterministic = True

    def __init__(self) -> None:
        self._turns: dict[str, Message] = {}
        self._sessions: dict[str, list[Message]] = {}
        self._evidence: dict[str, Sequence[str]] = {}

    def reveal(self, query: str, ids: Sequence[str]) -> None:
        """Learn that the turns and sessions of these neutral ids are the evidence for ``query``."""
        self._evidence[query] = ids

    def ingest(self, message: Message, session: Session | None = None) -> None:
        """Keep the turn under its id, and as one of its session."""
        if message.turn_id is not None:
            self._turns[message.turn_id] = message
        if session is not None:
            self._sessions.setdefault(session.session_id, []).append(message)

    def retrieve(self, query: str) -> list[Recalled]:
        """One thing that holds all evidence that was heard, so that any top-k is enough."""
        wanted = self._evidence.get(query, ())
        turns = [one for one in wanted if one in self._turns]
        sessions = tuple(one for one in wanted if one in self._sessions)
        found = [self._turns[one] for one in turns]
        found += [message for one in sessions for message in self._sessions[one]]
        if not found:
            return []
        # With its dates, for what answers from it has nothing else to tell when.
        lines, date = [], None
        for message in found:
            if message.date_str and message.date_str != date:
                lines.append(f"[{message.date_str}]")
                date = message.date_str
            lines.append(f"{message.role}: {message.content}")
        text = "\n".join(lines)
        return [Recalled(text, turn_ids=turns, session_ids=sessions)]

    def reset(self) -> None:
        """Forget turns, sessions and evidence."""
        self._turns.clear()
        self._sessions.clear()
        self._evidence.clear()
