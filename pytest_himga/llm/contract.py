"""What the answer and judge rooms know of a model, in the llm room: they ask, and read what comes back."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from pytest_himga.memory.protocol import Usage

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_himga.llm.prompt import ChatRequest, ModelSpec

T = TypeVar("T")


class Unreadable(Exception):
    """Raised by a reader: this text is no answer, or not exactly one verdict; its text says why."""


@dataclass(frozen=True)
class Reply(Generic[T]):
    """What was read from a model's reply, and what it took: a cached one no call."""

    value: T
    usage: Usage = field(default_factory=Usage)


class Chat(Protocol):
    """One model on one server."""

    @property
    def spec(self) -> ModelSpec:
        """The model as it was asked for."""

    async def ask(self, request: ChatRequest, read: Callable[[str], T]) -> Reply[T]:
        """What ``read`` makes of the model's reply, or of the cache's.

        ``read`` gets the reply's text (never empty, never cut off) and raises ``Unreadable`` if it is not
        what was asked for; only what it can read is ever kept in the cache.

        Raises
        ------
        LLMError
            If no readable reply came, as a sentence free of keys, with what the attempts have used.
        """
