"""What is called of a memory, in the engine room: one instance, or what ``as_agent`` made of it."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from pytest_himga.engine.faults import failed
from pytest_himga.errors import BackendError
from pytest_himga.memory.protocol import Usage
from pytest_himga.memory.reference import OracleMemory
from pytest_himga.options import LONG_CALL_FACTOR

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pytest_himga.data.schema import Session
    from pytest_himga.engine.background import Caller


class View:
    """Feeds and asks one object of the backend's; every call has a limit and raises ``BackendError``.

    ``target`` is the instance, a fresh one over its store, or an agent's view of either.
    """

    def __init__(self, target: Any, call: Caller, timeout: float) -> None:
        self.target = target
        self._call = call
        self._timeout = timeout
        self._accepted: list[str] | None = None
        self._agents: dict[str, View] = {}

    def has(self, name: str) -> bool:
        """Whether the object has this method."""
        return callable(getattr(self.target, name, None))

    async def as_agent(self, agent_id: str | None, stage: str) -> View:
        """What this agent hears and asks through: made once, this view itself where there are no agents."""
        if agent_id is None or not self.has("as_agent"):
            return self
        if agent_id not in self._agents:
            made = View(await self.make("as_agent", agent_id, stage=stage), self._call, self._timeout)
            wanted = ["retrieve", *(["answer"] if self.has("answer") else [])]
            lacking = [name for name in wanted if not made.has(name)]
            if not made.has("ingest") and not made.has("ingest_session"):
                lacking.insert(0, "ingest")
            if lacking:
                raise BackendError(
                    f"as_agent() returned {_described(made.target, lacking)}; "
                    "return a view with the memory's own methods",
                    stage=stage,
                )
            self._agents[agent_id] = made
        return self._agents[agent_id]

    async def feed(self, session: Session) -> None:
        """Hand over one session, whole or turn by turn."""
        if self.has("ingest_session"):
            await self.method("ingest_session", session, times=LONG_CALL_FACTOR)
            return
        method = self.target.ingest
        rest = (session,) if _takes_two(method) else ()
        calls = [partial(method, message, *rest) for message in session.messages]
        await self._call.many(
            "ingest()",
            calls,
            limit=self._timeout,
            stage="ingest",
            on_loop=inspect.iscoroutinefunction(method),
        )

    async def retrieve(self, query: str, *, date: str | None, k: int) -> Any:
        """What the memory returned, as it is."""
        if self._accepted is None:
            method = self.target.retrieve
            self._accepted = [name for name in ("date", "k") if _takes(method, name)]
        offered: dict[str, Any] = {"date": date, "k": k}
        accepted = {name: offered[name] for name in self._accepted}
        return await self.method("retrieve", query, stage="retrieve", **accepted)

    def reveal(self, query: str, evidence_ids: Callable[[], Sequence[str]]) -> None:
        """The oracle's private door: no other class gets the evidence, not even one derived from it."""
        if type(self.target) is OracleMemory:
            self.target.reveal(query, evidence_ids())

    async def answer(self, question: str) -> str:
        """What the backend answers."""
        answer = await self.method("answer", question, stage="answer")
        if not isinstance(answer, str):
            raise BackendError(f"answer() returned {_kind_of(answer)}; return a str", stage="answer")
        return answer

    async def profile(self) -> dict[Any, Any] | None:
        """What the object says of its user at this moment, where it does."""
        if not self.has("profile"):
            return None
        profile = await self.method("profile", stage="answer")
        if profile is None:
            return None
        if not isinstance(profile, Mapping):
            raise BackendError(f"profile() returned {_kind_of(profile)}; return a dict", stage="answer")
        try:
            return dict(profile)  # the memory may go on changing its own
        except Exception as error:  # noqa: BLE001 - one that loads as it is read is the backend's code too
            raise failed("reading what profile() returned", error, "answer") from None

    async def usage(self, stage: str) -> Usage | None:
        """The object's own totals so far, where it counts them."""
        if not self.has("usage"):
            return None
        usage = await self.method("usage", stage=stage)
        if not isinstance(usage, Usage):
            raise BackendError(f"usage() returned {_kind_of(usage)}; return a Usage", stage=stage)
        for name, value in vars(usage).items():
            if not isinstance(value, int | float):
                raise BackendError(
                    f"usage() returned a Usage whose {name} is {value!r}; give a number", stage=stage
                )
        return usage

    async def close(self, stage: str) -> None:
        """Let the object clean up, where it can."""
        if self.has("close"):
            await self.method("close", stage=stage)

    async def method(
        self, name: str, *args: Any, times: float = 1.0, stage: str = "ingest", **kwargs: Any
    ) -> Any:
        """The result of a method; it has ``times`` the usual limit."""
        method = getattr(self.target, name)
        return await self._call.one(
            f"{name}()",
            partial(method, *args, **kwargs),
            limit=self._timeout,
            stage=stage,
            on_loop=inspect.iscoroutinefunction(method),
            times=times,
        )

    async def make(self, name: str, *args: Any, stage: str, times: float = 1.0) -> Any:
        """The result of a method that makes something a client of its own may be in."""
        method = getattr(self.target, name)
        return await self._call.one(
            f"{name}()",
            partial(method, *args),
            limit=self._timeout,
            stage=stage,
            on_loop=wants_loop(method, self.target),
            times=times,
        )


def wants_loop(make: Any, memory: object) -> bool:
    """Whether ``make`` is best called on the loop: an async client often wants a running one when it is made."""
    return inspect.iscoroutinefunction(make) or inspect.iscoroutinefunction(getattr(memory, "retrieve", None))


def _described(target: object, lacking: Sequence[str]) -> str:
    if target is None:
        return "None"
    methods = " and no ".join(f"{name}()" for name in lacking)
    return f"an object of type {type(target).__name__}, which has no {methods}"


def _kind_of(value: object) -> str:
    return "None" if value is None else type(value).__name__


def _parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    try:
        return list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # an extension type without a signature
        return []


def _takes(function: Callable[..., Any], name: str) -> bool:
    return any(
        (p.name == name and p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)) or p.kind is p.VAR_KEYWORD
        for p in _parameters(function)
    )


def _takes_two(function: Callable[..., Any]) -> bool:
    parameters = _parameters(function)
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return len(positional) >= 2 or any(p.kind is p.VAR_POSITIONAL for p in parameters)
