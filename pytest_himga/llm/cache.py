"""Replies that were paid for once, in the llm room: kept by the fingerprint of the whole request.

A cache that cannot be used is no reason to end a run: ``problem`` says what is wrong, and the run goes on
without it.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from pytest_himga.lane import Lane
from pytest_himga.llm.cache_file import CacheFile, CacheTrouble, Entry
from pytest_himga.llm.cache_setting import FILE_NAME
from pytest_himga.llm.prompt import sound

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pytest_himga.llm.cache_setting import CacheSetting

T = TypeVar("T")

#: Seconds that ``close`` waits for what is still to be written. The thread is a daemon: no exit waits for it.
_LAST_WAIT = 10.0


class ReplyCache:
    """The replies in the file ``path``, for any number of loops, threads and processes at once.

    The file is opened by the first call that needs it. Without ``reads`` everything is a miss; without
    ``writes`` nothing is kept, and nothing is made or changed on the disk. ``hidden`` from git is the folder
    that nobody has named.
    """

    def __init__(self, path: Path, *, reads: bool, writes: bool, hidden: bool = False) -> None:
        self.path = path
        #: The first thing that went wrong, as a sentence without its full stop.
        self.problem: str | None = None
        self._reads = reads
        self._writes = writes
        self._hidden = hidden
        self._waiting: deque[Entry] = deque()
        self._file: CacheFile | None = None
        self._lane: Lane | None = None
        self._closed = False
        self._lock = threading.Lock()

    async def get(self, fingerprint: str) -> str | None:
        """The reply kept under ``fingerprint``, None if there is none or it cannot be read."""
        return await self._run(partial(self._get, fingerprint)) if self._reads else None

    async def put(self, fingerprint: str, text: str, *, model: str = "", server: str = "") -> None:
        r"""Keep ``text``, in place of what is there. Lone surrogates are kept as ``\udXXX``.

        When this returns, the text is on the disk or ``problem`` is set. A call that is cancelled meanwhile
        loses nothing. ``model`` and ``server`` are for people who look into the file: no credentials.
        """
        if self._writes:
            self._waiting.append(Entry(fingerprint, sound(text), model, server))
            await self._run(self._write)

    def close(self) -> None:
        """Write what waits to be written, and close the file; later calls find and keep nothing."""
        with self._lock:
            self._closed, lane, self._lane = True, self._lane, None
        if lane is None:
            return
        lane.submit(self._leave)
        if not lane.close(_LAST_WAIT):
            still = (
                f"the cache {self.path} was still busy at the end of the run; its last replies may be missing"
            )
            self.problem = self.problem or still

    async def _run(self, call: Callable[[], T]) -> T | None:
        with self._lock:
            if self._closed:
                return None
            if self._lane is None:
                self._lane = Lane("cache")
            future = self._lane.submit(call)
        return await asyncio.wrap_future(future)

    # What follows runs in the lane.

    def _get(self, fingerprint: str) -> str | None:
        if self._reads:
            try:
                return self._opened().get(fingerprint)
            except CacheTrouble as trouble:
                self._give_up(str(trouble))
        return None

    def _write(self) -> None:
        """Write all that waits in one transaction: ten texts cost the disk no more than one."""
        entries = []
        while self._waiting:
            entries.append(self._waiting.popleft())
        if entries and self._writes:
            try:
                self._opened().put(entries)
            except CacheTrouble as trouble:
                self._give_up(str(trouble), reads=self._file is not None and self._reads)

    def _opened(self) -> CacheFile:
        if self._file is None:
            self._file = CacheFile(self.path, writes=self._writes)
            if self._hidden and self._writes:
                with suppress(OSError), (self.path.parent / ".gitignore").open("x", encoding="utf-8") as file:
                    file.write("*\n")
        return self._file

    def _give_up(self, trouble: str, *, reads: bool = False) -> None:
        """Go on without the cache; with ``reads`` what is in it can still be used."""
        if reads or not self._reads:
            effect = "new replies are not kept"
        else:
            effect = "replies are neither found nor kept" if self._writes else "no reply is found"
        self._writes, self._reads = False, reads
        self.problem = self.problem or f"{trouble}; {effect}"

    def _leave(self) -> None:
        self._write()
        if self._file is not None:
            self._file.close()


def open_cache(setting: CacheSetting, default_folder: Path) -> ReplyCache | None:
    """The cache that ``setting`` asks for, None if it is off; nothing is opened or made yet."""
    if setting.mode == "off":
        return None
    path = setting.path or default_folder / FILE_NAME
    return ReplyCache(path, reads=setting.reads, writes=setting.writes, hidden=setting.path is None)
