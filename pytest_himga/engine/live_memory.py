"""One live, isolated instance of the memory under test, holding one sample up to a checkpoint."""

from __future__ import annotations

import time
import weakref
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from pytest_himga.engine.background import Background, Caller
from pytest_himga.engine.view import View, wants_loop
from pytest_himga.errors import BackendError, BackendTimeout, SettingsError
from pytest_himga.lane import Lane
from pytest_himga.memory.resolve import missing_methods
from pytest_himga.options import LONG_CALL_FACTOR

if TYPE_CHECKING:
    from pytest_himga.memory.boundary import History
    from pytest_himga.memory.resolve import Backend


#: ``answer`` makes a memory answer by itself; the other two are for other agents and for restarts.
OPTIONAL = ("answer", "as_agent", "reopen")


class LiveMemory:
    """Makes, feeds, reopens and closes one instance; it is asked through its views.

    All that comes out of one instance, its agents' views and the fresh ones over its store, is called in
    the same thread: what a client made there belongs there. Every method raises ``BackendError``, naming
    the call and its stage.
    """

    def __init__(
        self, backend: Backend, history: History, scope: str, timeout: float, background: Background
    ) -> None:
        self.history = history
        self.scope = scope
        self.fed = 0
        #: Whether what was fed is known to be found: at first not even nothing is.
        self.settled = False
        self.ingest_ms = 0.0
        #: What the backend says its version is.
        self.version: str | None = None
        self._backend = backend
        self._timeout = timeout
        self._lane = Lane(scope)
        self._call = Caller(self._lane, background)
        #: The instance itself, as long as no agent is meant.
        self.whole = self._view(None)
        self._last_fresh: weakref.ref[Any] | None = None

    @property
    def instance(self) -> Any:
        """The backend's own object."""
        return self.whole.target

    @property
    def offers(self) -> frozenset[str]:
        """The optional methods that decide which questions it can be asked, and who answers."""
        return frozenset(name for name in OPTIONAL if self.whole.has(name))

    async def start(self) -> None:
        """Make the instance and reset it."""
        try:
            self._backend.check()
        except SettingsError as error:  # a fixture's value is only known now
            raise BackendError(str(error)) from None
        self.whole = self._view(await self._make())
        problem = missing_methods(self.instance)
        if problem:
            raise BackendError(f"the backend is no memory: {problem}")
        await self.whole.method("reset")
        self.version = await self._read_version()

    async def feed(self, until: int) -> None:
        """Feed the sessions up to ``until`` (a count), then wait until they can be found."""
        started = time.perf_counter()
        for session in self.history.sessions(self.fed, until):
            agent_id = self.history.sample.sessions[self.fed].agent_id
            view = await self.whole.as_agent(agent_id, "ingest")
            await view.feed(session)
            self.fed += 1
        if self.whole.has("settle"):
            await self.whole.method("settle", times=LONG_CALL_FACTOR)
        self.settled = True
        self.ingest_ms += (time.perf_counter() - started) * 1000

    async def reopen(self) -> View:
        """A fresh instance over the same store, for one question; the caller closes it."""
        target = await self.whole.make("reopen", stage="retrieve", times=LONG_CALL_FACTOR)
        problem = self._problem_of_fresh(target)
        if problem:
            raise BackendError(f"reopen() returned {problem}", stage="retrieve")
        with suppress(TypeError):  # an object with slots may have no room for it
            self._last_fresh = weakref.ref(target)
        return self._view(target)

    async def close(self) -> None:
        """Let the instance clean up, if it is ours; a fixture cleans up after itself."""
        try:
            if self._backend.is_factory:
                await self.whole.close("ingest")
        finally:
            self._lane.close()

    @property
    def may_hang(self) -> bool:
        """Whether a call of it was broken off: the next one might wait behind it for ever."""
        return self._call.given_up

    def abandon(self) -> None:
        """Leave the instance behind: a call of it hangs, so no further call would come back."""
        self._lane.close()

    def _view(self, target: Any) -> View:
        return View(target, self._call, self._timeout)

    def _problem_of_fresh(self, target: Any) -> str:
        """Why this is no fresh instance, as the end of a sentence; empty if it is one."""
        wanted = "return a new one over the same store, as a restart of the process would make it"
        if target is None:
            return f"None; {wanted}"
        if target is self.instance:
            return f"the same instance; {wanted}"
        if self._last_fresh is not None and self._last_fresh() is target:
            return f"the instance that it had returned before; {wanted}"
        problem = missing_methods(target)
        if problem:
            return f"no memory: {problem}"
        fresh = self._view(target)
        lost = [name for name in ("answer", "as_agent") if name in self.offers and not fresh.has(name)]
        if lost:
            return f"an object of type {type(target).__name__}, which has no {lost[0]}(); {wanted}"
        return ""

    async def _make(self) -> Any:
        target = self._backend.target
        if not self._backend.is_factory:
            return target
        arguments = self._backend.arguments(self.scope)
        name = getattr(target, "__name__", type(target).__name__)
        return await self._call.one(
            f"{name}()",
            partial(target, **arguments),
            limit=self._timeout,
            stage="ingest",
            on_loop=wants_loop(target, target),
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
