"""The loop's own threads, in the engine room: where ``asyncio.to_thread`` of an async backend runs."""

from __future__ import annotations

import concurrent.futures
import os
import threading
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from pytest_himga.lane import fulfil

if TYPE_CHECKING:
    from collections.abc import Callable

P = ParamSpec("P")
T = TypeVar("T")

#: As many as the standard pool of a loop has.
MOST_THREADS = min(32, (os.cpu_count() or 1) + 4)


class DaemonPool(concurrent.futures.ThreadPoolExecutor):
    """A pool whose threads are daemons: Python waits at its exit for those of the standard pool.

    So a backend whose ``await asyncio.to_thread(...)`` hangs would hold a run that is over, for ever. A
    loop takes no other class for its pool than this base.
    """

    def __init__(self) -> None:
        super().__init__(MOST_THREADS)
        self._room = threading.Semaphore(MOST_THREADS)

    def submit(
        self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs
    ) -> concurrent.futures.Future[T]:
        """Run ``fn`` in a thread of its own, when there is room."""
        future: concurrent.futures.Future[T] = concurrent.futures.Future()

        def run() -> None:
            with self._room:
                if future.set_running_or_notify_cancel():
                    fulfil(future, lambda: fn(*args, **kwargs))

        threading.Thread(target=run, name="himga-to-thread", daemon=True).start()
        return future
