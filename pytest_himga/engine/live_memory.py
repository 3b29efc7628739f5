"""One live, isolated instance of the memory under test, holding one sample up to a checkpoint."""

from __future__ import annotations

import inspect
import time
from functools import partial
from typing import TYPE_CHECKING, Any

from pytest_himga.engine.background import Background, Caller, Lane
from pytest_himga.errors import BackendError, BackendTimeout, SettingsError
from pytest_himga.memory.protocol import Usage
from pytest_himga.memory.reference import OracleMemory
from pytest_himga.memory.resolve import missing_methods
from pytest_himga.settings import LONG_CALL_FACTOR

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_himga.data.schema import QAPair, Session
    from pytest_himga.memory.boundary import History
    from pytest_himga.memory.resolve import Backend


class LiveMemory:
    """Makes, feeds, asks and closes one instance; every call goes through the boundary with a limit.

    Raises ``BackendError`` from every method, naming the call and its stage.
    """

    def __init__(
        self, backend: Backend, history: History, scope: str, timeout: float, background: Background
    ) -> None:
        self.history = history
        self.scope = scope
        self.fed = 0
        self.ingest_ms = 0.0
        self.instance: Any = None
        #: What the backend says its version is.
        self.version: str | None = None
        self._accepted: list[str] | None = None
        self._backend = backend
        self._timeout = timeout
        self._lane = Lane(scope)
        self._call = Caller(self._lane, background)

    @property
    def answers(self) -> bool:
        """Whether the instance answers questions by itself."""
        return callable(getattr(self.instance, "answer", None))

    async def start(self) -> None:
        """Make the instance and reset it."""
        try:
            self._backend.check()
        except SettingsError as error:  # a fixture's value is only known now
            raise BackendError(str(error)) from None
        self.instance = await self._make()
        problem = missing_methods(self.instance)
        if problem:
            raise BackendError(f"the backend is no memory: {problem}")
        await self._method("reset")
        self.version = await self._read_version()

    async def feed(self, until: int) -> None:
        """Feed the sessions up to ``until`` (a count), then wait until they can be found."""
        started = time.perf_counter()
        for session in self.history.sessions(self.fed, until):
            await self._feed(session)
            self.fed += 1
        if callable(getattr(self.instance, "settle", None)):
            await self._method("settle", times=LONG_CALL_FACTOR)
        self.ingest_ms += (time.perf_counter() - started) * 1000

    async def retrieve(self, query: str, *, date: str | None, k: int) -> Any:
        """What the memory returned, as it is."""
        if self._accepted is None:
            method = self.instance.retrieve
            self._accepted = [name for name in ("date", "k") if _takes(method, name)]
        offered: dict[str, Any] = {"date": date, "k": k}
        accepted = {name: offered[name] for name in self._accepted}
        return await self._method("retrieve", query, stage="retrieve", **accepted)

    async def answer(self, question: str) -> str:
        """What the backend answers."""
        answer = await self._method("answer", question, stage="answer")
        if not isinstance(answer, str):
            kind = "None" if answer is None else type(answer).__name__
            raise BackendError(f"answer() returned {kind}; return a str", stage="answer")
        return answer

    async def usage(self, stage: str) -> Usage | None:
        """The backend's own totals so far, where it counts them."""
        if not callable(getattr(self.instance, "usage", None)):
            return None
        usage = await self._method("usage", stage=stage)
        if not isinstance(usage, Usage):
            kind = "None" if usage is None else type(usage).__name__
            raise BackendError(f"usage() returned {kind}; return a Usage", stage=stage)
        for name, value in vars(usage).items():
            if not isinstance(value, int | float):
                raise BackendError(
                    f"usage() returned a Usage whose {name} is {value!r}; give a number", stage=stage
                )
        return usage

    async def close(self) -> None:
        """Let the instance clean up, if it is ours; a fixture cleans up after itself."""
        try:
            if self._backend.is_factory and callable(getattr(self.instance, "close", None)):
                await self._method("close")
        finally:
            self._lane.close()

    def abandon(self) -> None:
        """Leave the instance behind: a call of it hangs, so no further call would come back."""
        self._lane.close()

    def reveal(self, question: QAPair) -> None:
        """The oracle's private door: no other class gets the evidence, not even one derived from it."""
        if type(self.instance) is OracleMemory:
            wanted = set(question.evidence.turn_ids)
            self.instance.reveal(
                question.question,
                [neutral for neutral, own in self.history.turn_ids.items() if own in wanted],
            )

    async def _make(self) -> Any:
        target = self._backend.target
        if not self._backend.is_factory:
            return target
        arguments = self._backend.arguments(self.scope)
        # An async client often wants a running loop when it is made.
        on_loop = inspect.iscoroutinefunction(target) or inspect.iscoroutinefunction(
            getattr(target, "retrieve", None)
        )
        name = getattr(target, "__name__", type(target).__name__)
        return await self._call.one(
            f"{name}()",
            partial(target, **arguments),
            limit=self._timeout,
            stage="ingest",
            on_loop=on_loop,
            times=LONG_CALL_FACTOR,
        )

    async def _read_version(self) -> str | None:
        """Like a call, because a property may ask a server; one that fails costs no question its verdict."""

        def read() -> str | None:
            version = getattr(self.instance, "version", None)
            return None if version is None else str(version)

        try:
            version: str | None = await self._call.one("version", read, limit=self._timeout, stage="ingest")
        except BackendTimeout:
            raise  # whatever is called next would wait behind it
        except BackendError:
            return None
        return version

    async def _feed(self, session: Session) -> None:
        whole = getattr(self.instance, "ingest_session", None)
        if callable(whole):
            await self._method("ingest_session", session, times=LONG_CALL_FACTOR)
            return
        method = self.instance.ingest
        rest = (session,) if _takes_two(method) else ()
        calls = [partial(method, message, *rest) for message in session.messages]
        await self._call.many(
            "ingest()",
            calls,
            limit=self._timeout,
            stage="ingest",
            on_loop=inspect.iscoroutinefunction(method),
        )

    async def _method(
        self, name: str, *args: Any, times: float = 1.0, stage: str = "ingest", **kwargs: Any
    ) -> Any:
        method = getattr(self.instance, name)
        return await self._call.one(
            f"{name}()",
            partial(method, *args, **kwargs),
            limit=self._timeout,
            stage=stage,
            on_loop=inspect.iscoroutinefunction(method),
            times=times,
        )


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
