"""Reference backends without a dependency: null, full-context and oracle.

They are the controls of every run: nothing remembered must score 0, the whole history must hold all
evidence, and exactly the evidence must score 1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_himga.memory.protocol import Recalled

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_himga.data.schema import Message, Session


class NullMemory:
    """Remembers nothing: the floor of every score."""

    deterministic = True

    def ingest(self, message: Message) -> None:
        """Forget it at once."""

    def retrieve(self, query: str) -> list[Recalled]:  # noqa: ARG002 - the protocol's signature
        """Nothing."""
        return []

    def reset(self) -> None:
        """Nothing to forget."""


class FullContextMemory:
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


class OracleMemory:
    """Returns exactly the evidence of a question: the ceiling of retrieval.

    What it must find is told to it through ``reveal``, which the engine calls on this very class alone;
    no protocol offers that door to anyone else.
    """

    deterministic = True

    def __init__(self) -> None:
        self._turns: dict[str, Message] = {}
        self._evidence: dict[str, Sequence[str]] = {}

    def reveal(self, query: str, turn_ids: Sequence[str]) -> None:
        """Learn that the neutral ``turn_ids`` are the evidence for ``query``."""
        self._evidence[query] = turn_ids

    def ingest(self, message: Message) -> None:
        """Keep the turn under its id."""
        if message.turn_id is not None:
            self._turns[message.turn_id] = message

    def retrieve(self, query: str) -> list[Recalled]:
        """One thing that holds all evidence turns, so that any top-k is enough."""
        turns = [self._turns[turn_id] for turn_id in self._evidence.get(query, ()) if turn_id in self._turns]
        if not turns:
            return []
        text = "\n".join(f"{turn.role}: {turn.content}" for turn in turns)
        return [Recalled(text, turn_ids=[turn.turn_id or "" for turn in turns])]

    def reset(self) -> None:
        """Forget turns and evidence."""
        self._turns.clear()
        self._evidence.clear()
