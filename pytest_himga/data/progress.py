"""How far a download is, in the data room: one line on a terminal, two lines in a log."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import TYPE_CHECKING, TextIO

from pytest_himga.data.published import megabytes

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Called with the bytes that are there and the bytes of the whole file (None: not known).
Progress = Callable[[int, int | None], None]
#: Called with a dataset's name; what the ``with`` yields is told how far it is.
Reporter = Callable[[str], AbstractContextManager[Progress]]

#: Seconds between two drawings: ten a second look smooth, more only cost time.
_INTERVAL = 0.1


def announce(text: str) -> None:
    """Print what a person should read once: a licence, a citation, where a download goes."""
    print(text, file=sys.stderr)  # noqa: T201 - pytest's own terminal is not there yet, and a script has none


def terminal_progress(stream: TextIO | None, clock: Callable[[], float] = time.monotonic) -> Reporter:
    """Report downloads on ``stream``.

    A terminal gets one line that is drawn over, at most ten times a second; anything else (a file, a CI log)
    one line at the start and one at the end. Nothing is written if nothing is downloaded, nor on a stream
    that is closed.
    """
    isatty = getattr(stream, "isatty", None)
    kind = _Drawn if isatty is not None and isatty() else _Logged

    @contextmanager
    def report(name: str) -> Iterator[Progress]:
        line = kind(stream, name, clock)
        try:
            yield line.update
        finally:
            line.end()

    return report


class _Line:
    def __init__(self, stream: TextIO | None, name: str, clock: Callable[[], float]) -> None:
        self.stream, self.name, self.clock = stream, name, clock
        self.started: float | None = None
        self.base = self.done = 0
        self.total: int | None = None

    def update(self, done: int, total: int | None) -> None:
        first = self.started is None
        if first or done < self.done:  # ... or started over: the speed is that of what comes now
            self.started, self.base = self.clock(), done
        self.done, self.total = done, total
        self.draw(first=first)

    def draw(self, *, first: bool) -> None:
        raise NotImplementedError

    def end(self) -> None:
        raise NotImplementedError

    @property
    def seconds(self) -> float:
        return 0.0 if self.started is None else self.clock() - self.started

    @property
    def amount(self) -> str:
        if self.total is None:
            return megabytes(self.done)
        return f"{self.done / 1e6:,.1f} of {megabytes(self.total)}"

    def write(self, text: str) -> None:
        if self.stream is not None:
            with suppress(OSError):  # the terminal is gone, which is no reason to stop
                self.stream.write(text)
                self.stream.flush()


class _Drawn(_Line):
    drawn_at = 0.0
    width = 0

    def draw(self, *, first: bool) -> None:
        now = self.clock()
        if not first and now - self.drawn_at < _INTERVAL:
            return
        self.drawn_at = now
        share = f" ({self.done * 100 // self.total} %)" if self.total else ""
        seconds = self.seconds
        speed = f", {(self.done - self.base) / 1e6 / seconds:.1f} MB/s" if seconds > 0 else ""
        text = f"{self.name}: {self.amount}{share}{speed}"
        # Blanks rather than an escape sequence: not every terminal knows how to clear a line.
        self.write("\r" + text.ljust(self.width))
        self.width = len(text)

    def end(self) -> None:
        if self.started is not None:
            self.draw(first=True)
            self.write("\n")


class _Logged(_Line):
    def draw(self, *, first: bool) -> None:
        if first:
            rest = f", {megabytes(self.done)} of it are there" if self.done else ""
            self.write(f"{self.name}: downloading ({megabytes(self.total)}{rest})\n")

    def end(self) -> None:
        if self.started is not None:
            self.write(f"{self.name}: {self.amount} after {self.seconds:.0f} s\n")
