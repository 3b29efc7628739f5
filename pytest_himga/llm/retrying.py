"""When to try again, in the llm room: how long to wait, and when a server is given up for all calls."""

from __future__ import annotations

import asyncio
import math
import random
import time
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from pytest_himga.llm.fault import Fault

#: Attempts of one request; all of them, with the waits between, may take so many times ``timeout``.
ATTEMPTS = 5
TOTAL = 5
#: The longest wait before the second attempt, in seconds; it doubles, so that five attempts outlast the
#: restart of a small server and most of a minute's rate limit.
_FIRST_WAIT = 2.0
#: A wait that the server asks for is stretched by up to this share, so that calls do not come back at once.
_SPREAD = 0.1
#: After so many calls in a row that no attempt saved, a call makes one attempt; after so many, none.
_DOUBTFUL = 3
_GIVEN_UP = 10


@dataclass(frozen=True)
class Pace:
    """Time and chance, for tests to stand in for. ``clock`` is monotonic, ``now`` is seconds since 1970."""

    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep
    chance: Callable[[], float] = random.random
    clock: Callable[[], float] = time.monotonic
    now: Callable[[], float] = time.time

    def wait(self, failed: int, asked: float | None, left: float) -> float:
        """Seconds before the next attempt, after ``failed`` of them: as the server asked, else at random.

        At random between none and a limit that doubles ("full jitter"): calls that failed together do not
        come back together. A random wait takes no more than a quarter of the seconds ``left``.
        """
        if asked is not None:
            return asked * (1 + _SPREAD * self.chance())
        return min(_FIRST_WAIT * 2.0 ** (failed - 1), left / 4) * self.chance()


def retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """The seconds that ``retry-after-ms`` or ``Retry-After`` (seconds, or a date) ask for; None if neither."""
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    text = headers.get("retry-after")
    seconds = _number(text)
    if seconds is not None or not text:
        return seconds
    try:
        then = parsedate_to_datetime(text).timestamp()
    except (ValueError, OverflowError):
        return None
    return max(0.0, then - now)


def _number(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    return number if math.isfinite(number) and number >= 0 else None


class Breaker:
    """What the calls to one server have met so far; it spares the later ones."""

    def __init__(self) -> None:
        self.given_up: str | None = None
        self._failed = 0

    @property
    def attempts(self) -> int:
        """How many attempts a new call may make."""
        return ATTEMPTS if self._failed < _DOUBTFUL else 1

    def answered(self) -> None:
        """The server did its work."""
        self._failed = 0

    def failed(self, fault: Fault) -> str:
        """A call was given up; the sentence to say."""
        if fault.for_all:
            self.given_up = self.given_up or fault.sentence
        elif fault.outage:
            self._failed += 1
            if self._failed >= _GIVEN_UP:
                self.given_up = self.given_up or (
                    f"{fault.sentence}; after {_GIVEN_UP} failed calls in a row no more are made"
                )
        else:
            self.answered()
        return self.given_up or fault.sentence
