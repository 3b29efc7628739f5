"""A thread that runs calls in order, for what must not change threads: a memory's client, SQLite's connection."""

from __future__ import annotations

import concurrent.futures
import queue
import threading
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


class Lane:
    """One daemon thread that runs calls in order. A daemon, because a hung call must not hold the exit."""

    def __init__(self, name: str) -> None:
        self._calls: queue.SimpleQueue[tuple[Callable[[], Any], concurrent.futures.Future[Any]] | None]
        self._calls = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=f"himga-{name}", daemon=True)
        self._thread.start()

    def submit(self, call: Callable[[], T]) -> concurrent.futures.Future[T]:
        """Run ``call`` after those before it."""
        future: concurrent.futures.Future[T] = concurrent.futures.Future()
        self._calls.put((call, future))
        return future

    def close(self, wait: float = 0.0) -> bool:
        """End the thread after the calls that are queued; whether it has ended within ``wait`` seconds."""
        self._calls.put(None)
        if wait:
            self._thread.join(wait)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while (entry := self._calls.get()) is not None:
            call, future = entry
            if future.set_running_or_notify_cancel():
                fulfil(future, call)
            # The frame would keep the last memory alive until the next call.
            del entry, call, future


def fulfil(future: concurrent.futures.Future[T], call: Callable[[], T]) -> None:
    """Run ``call`` and give ``future`` its result, or whatever it raised."""
    try:
        result = call()
    except BaseException as error:  # noqa: BLE001 - whatever it raises must reach who waits for it
        future.set_exception(error)
    else:
        future.set_result(result)
