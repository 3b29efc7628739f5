"""Where a backend's code runs: one event loop in a thread of ours, and one thread per sync memory.

Sync methods of one memory are always called from the same thread, in order (sqlite3 and many clients
insist on that); async methods all run on the one loop, so that a client may keep connections between
calls. Every call has a limit: what hangs is left behind in its daemon thread and named, never waited
for.

The pipeline itself is written as coroutines that await nothing but such calls (``Handoff``). One of them
at a time is driven by ``Background.run`` in the calling thread, because two changes of threads cost a
tenth of four and a turn of an event loop; the same coroutines can run as tasks of a loop.
Nothing here imports pytest.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import inspect
import threading
import time
from collections.abc import Callable, Coroutine, Generator, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from pytest_himga.engine.faults import failed
from pytest_himga.engine.pool import DaemonPool
from pytest_himga.errors import BackendError, BackendTimeout, LLMError

if TYPE_CHECKING:
    from pytest_himga.lane import Lane

T = TypeVar("T")
Call = Callable[[], Any]

#: Seconds beyond its limit after which a call that should have been cancelled has blocked the loop.
GRACE = 1.0
#: Seconds. A lock cannot wait for much longer than centuries, which somebody may ask for as "no limit".
LONGEST_WAIT = 3600.0


class Progress:
    """Which call of the backend is being waited for, and until when; read by the waiting thread."""

    def __init__(self, name: str, limit: float, stage: str, times: float = 1.0) -> None:
        self.name = name
        self.limit = limit * times
        self.stage = stage
        self.given_up = False
        self._option = "--himga-timeout" if times == 1 else f"{times:g} times --himga-timeout"
        self.restart()

    def restart(self) -> None:
        """The next call begins."""
        self.deadline = time.monotonic() + self.limit

    def timeout(self) -> BackendTimeout:
        """The error that names the call."""
        return BackendTimeout(
            f"{self.name} did not come back within {self.limit:g} s ({self._option})", stage=self.stage
        )


class Handoff:
    """One piece of work in another thread, awaited by the pipeline.

    ``background`` is whose loop it runs on, None for a lane. ``grace`` is how many seconds past the call's
    limit it may still come back: 0 for a lane, whose calls nothing else stops; a moment for a loop, which
    stops them itself unless they block it.
    """

    def __init__(
        self,
        future: concurrent.futures.Future[Any],
        progress: Progress,
        background: Background | None = None,
    ) -> None:
        self.future = future
        self.progress = progress
        self.grace = GRACE if background else 0.0
        self._background = background

    def __await__(self) -> Generator[Handoff, None, Any]:
        # Only the yield may be interrupted: whatever the future holds is the backend's own, GeneratorExit too.
        yield self
        try:
            error = self.future.exception()
        except concurrent.futures.CancelledError as cancelled:
            error = cancelled
        if error is None:
            return self.future.result()
        if isinstance(error, BackendError | LLMError):
            raise error
        raise failed(self.progress.name, error, self.progress.stage) from None

    def give_up(self) -> None:
        """It is overdue: leave it behind, and the loop too that it must have blocked."""
        self.progress.given_up = True
        if self._background is not None:
            self._background.leave_loop()

    def wait(self) -> None:
        """Block until the work is done; raise ``BackendTimeout`` when its current call is overdue."""
        while not self.future.done():
            remaining = self.progress.deadline + self.grace - time.monotonic()
            if remaining <= 0:
                raise self.progress.timeout()
            try:
                self.future.exception(timeout=min(remaining, LONGEST_WAIT))
            except TimeoutError:
                continue  # the work may have gone on to its next call, with a new deadline
            except concurrent.futures.CancelledError:
                return


class Background:
    """The loop's thread, started by the first async call, and the driver of the pipeline."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def run(self, work: Coroutine[Handoff, None, T]) -> T:
        """Drive ``work`` to its end in this thread.

        A call that is overdue raises ``BackendTimeout`` inside ``work``. If it blocks the loop itself (an
        ``async def`` that does not await), that loop is left behind too and the next call gets a new one.
        """
        try:
            handoff = work.send(None)
            while True:
                try:
                    handoff.wait()
                except BackendTimeout as error:
                    handoff.give_up()
                    handoff = work.throw(error)
                except BaseException:
                    handoff.progress.given_up = True
                    handoff.future.cancel()
                    raise
                else:
                    handoff = work.send(None)
        except StopIteration as end:
            result: T = end.value
            return result
        finally:
            work.close()

    def submit(self, work: Coroutine[Any, Any, T]) -> concurrent.futures.Future[T]:
        """Run ``work`` on the loop, a new one if a backend has ended the last (sys.exit() in a task of its own)."""
        if self._loop is None or self._loop.is_closed():
            self._loop = asyncio.new_event_loop()
            self._loop.set_default_executor(DaemonPool())
            self._thread = threading.Thread(target=_serve, args=[self._loop], name="himga-loop", daemon=True)
            self._thread.start()
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def close(self) -> None:
        """Cancel what runs, and end the loop and its thread (two seconds at most)."""
        thread = self._thread
        if self.leave_loop() and thread is not None:
            thread.join(timeout=2 * GRACE)

    def leave_loop(self) -> bool:
        """Let the loop end by itself, at once or when it is no longer blocked; False if there is none."""
        loop, self._loop = self._loop, None
        if loop is None or loop.is_closed():  # a task of the backend's may have ended it
            return False
        asyncio.run_coroutine_threadsafe(_wind_up(), loop)
        return True


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    try:
        loop.run_forever()
    finally:
        loop.close()


async def _wind_up() -> None:
    """On the loop: cancel what a backend left running, give it a moment to clean up, and stop."""
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks, timeout=GRACE)
    loop = asyncio.get_running_loop()
    await loop.shutdown_asyncgens()
    loop.stop()


class Caller:
    """Calls one memory's methods, sync or async, with a limit and errors that name the call."""

    def __init__(self, lane: Lane, background: Background) -> None:
        self._lane = lane
        self._background = background
        self._last: Progress | None = None

    @property
    def given_up(self) -> bool:
        """Whether its last call was not waited for to the end: it was overdue, or Ctrl-C came."""
        return self._last is not None and self._last.given_up

    async def one(
        self,
        name: str,
        call: Call,
        *,
        limit: float,
        stage: str,
        on_loop: bool = False,
        times: float = 1.0,
    ) -> Any:
        """The result of ``call``, awaited if it is awaitable."""
        results = await self.many(name, [call], limit=limit, stage=stage, on_loop=on_loop, times=times)
        return results[0]

    async def many(
        self,
        name: str,
        calls: Iterable[Call],
        *,
        limit: float,
        stage: str,
        on_loop: bool = False,
        times: float = 1.0,
    ) -> list[Any]:
        """The results of ``calls``, one after another, ``limit`` times ``times`` seconds for each.

        They are handed over in one go, because a change of threads costs more than feeding a turn.
        ``on_loop`` is for functions that are known to be async.
        """
        progress = self._last = Progress(name, limit, stage, times)
        if on_loop:
            return await self._on_loop([partial(_call_and_await, call) for call in calls], progress)
        results: list[Any] = await Handoff(
            self._lane.submit(partial(_in_turn, list(calls), progress)), progress
        )
        if not any(inspect.isawaitable(result) for result in results):
            return results
        try:
            return await self._on_loop([partial(_maybe_await, result) for result in results], progress)
        finally:
            for result in results:  # Python warns of a coroutine that was never begun
                if inspect.iscoroutine(result) and inspect.getcoroutinestate(result) == inspect.CORO_CREATED:
                    result.close()

    async def _on_loop(
        self, works: list[Callable[[], Coroutine[Any, Any, Any]]], progress: Progress
    ) -> list[Any]:
        future = self._background.submit(_each_with_limit(works, progress))
        results: list[Any] = await Handoff(future, progress, self._background)
        return results


def _in_turn(calls: list[Call], progress: Progress) -> list[Any]:
    """In the lane: each call with its own deadline."""
    results: list[Any] = []
    for call in calls:
        if progress.given_up:
            break  # nobody waits any more: what a slow memory is not fed costs nothing
        progress.restart()
        results.append(call())
    return results


async def _each_with_limit(
    works: list[Callable[[], Coroutine[Any, Any, Any]]], progress: Progress
) -> list[Any]:
    """On the loop: each call with its own deadline; whatever it raises comes out as an ``Exception``."""
    results: list[Any] = []
    for work in works:
        if progress.given_up:
            break
        progress.restart()
        try:
            async with asyncio.timeout(progress.limit) as scope:
                results.append(await work())
        except Exception:
            if scope.expired():  # whatever the backend made of its cancellation
                raise progress.timeout() from None
            raise
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            raise failed(progress.name, error, progress.stage) from None
        except (SystemExit, KeyboardInterrupt) as error:
            # asyncio would end the loop with these.
            raise failed(progress.name, error, progress.stage) from None
    return results


async def _call_and_await(call: Call) -> Any:
    return await _maybe_await(call())


async def _maybe_await(result: Any) -> Any:
    return await result if inspect.isawaitable(result) else result
