"""A published file is fetched, verified and put in its place, in the data room; see ``transfer``."""

from __future__ import annotations

import hashlib
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_himga.data.files import shown
from pytest_himga.data.part import Part
from pytest_himga.data.published import without_login
from pytest_himga.data.transfer import Again, Transfer, client_for
from pytest_himga.errors import DatasetError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pytest_himga.data.progress import Progress

    Announce = Callable[[str], None]

#: How often in a row nothing may come before it is given up: with the pauses of 1, 2, 4 and 8 s a quarter
#: of a minute, which a router needs to come back.
ATTEMPTS = 5
#: An attempt that brought this much more was no failure: a large file may be cut a hundred times.
_PROGRESS = 1 << 20


def fetch(
    url: str,
    target: Path,
    *,
    sha256: str | None = None,
    size: int | None = None,
    allow_unverified: bool = False,
    check: Callable[[Path], None] | None = None,
    progress: Progress | None = None,
    announce: Announce | None = None,
    attempts: int = ATTEMPTS,
    sleep: Callable[[float], None] = time.sleep,
) -> str:
    """Bring the file at ``url`` to ``target`` and return its sha256, hex.

    What arrives is kept in ``<target>.part`` and goes on from there, in this run or a later one, as long as
    the server still has the same version. ``target`` is replaced at once, when the whole file is there and
    has the digest ``sha256``. With ``sha256`` None, or another digest and ``allow_unverified``, it must look
    like JSON and pass ``check`` (which raises ``DatasetError``), and ``announce`` is told that it was not
    verified. A target that has the digest already is left, without a request. Of several processes one
    downloads, under a lock ``<target>.lock``; the others wait and take its file.

    Lost connections, short bodies, 5xx, 408, 425 and 429 are tried again, ``attempts`` times in a row without
    anything new, after the time that the server asks for (at most five minutes) or 1, 2, 4, ... seconds.
    ``size`` is the published size in bytes, if known. ``announce`` takes one sentence for each wait; that
    nobody can hear it, or see the ``progress``, is no reason to stop.

    Raises
    ------
    DatasetError
        If the file cannot be had, is not the published one, or cannot be written; says how to get it by hand.
    """
    say = if_heard(announce)
    job = _Job(url, target, sha256, size, allow_unverified, check, if_heard(progress), say)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        before = _stamp(target)
        with _locked(target, say):
            there = job.already_there(changed=_stamp(target) != before)
            return there or job.run(attempts, sleep)
    except OSError as error:
        raise DatasetError(
            f"{target}: cannot be written ({error.strerror or error}); free space, or name a folder that can be "
            f"written with HIMGA_DATA_DIR. What was downloaded is kept and goes on next time; {job.by_hand}"
        ) from error


def digest_of(path: Path) -> str:
    """The sha256 of a file's bytes as they lie there, hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def if_heard(tell: Callable[..., None] | None) -> Callable[..., None]:
    """``tell``, which may write to a terminal that is gone by now."""

    def tell_if_heard(*what: object) -> None:
        if tell is not None:
            with suppress(OSError):
                tell(*what)

    return tell_if_heard


@dataclass
class _Job:
    url: str
    target: Path
    sha256: str | None
    size: int | None
    allow_unverified: bool
    check: Callable[[Path], None] | None
    progress: Progress
    say: Announce

    def __post_init__(self) -> None:
        self.shown_url = without_login(self.url)
        self.by_hand = f"or download {self.shown_url} by hand and save it as {self.target}"
        self.part = Part(self.target, self.shown_url, self.sha256)
        exact = not self.allow_unverified
        self.transfer = Transfer(
            self.url, self.shown_url, self.by_hand, self.part, self.size, exact, self.progress
        )

    def already_there(self, *, changed: bool) -> str | None:
        """The digest of the target if it is what is wanted; ``changed`` while another process had the lock."""
        if not self.target.is_file() or (self.sha256 is None and not changed):
            return None
        found = digest_of(self.target)
        return found if self.sha256 in (None, found) or (changed and self.allow_unverified) else None

    def run(self, attempts: int, sleep: Callable[[float], None]) -> str:
        self.part.load()
        with client_for(self.transfer) as client:
            failures = furthest = 0
            while True:
                try:
                    self.transfer.attempt(client)
                    return self.finish()
                except Again as again:
                    if self.part.length >= furthest + _PROGRESS:
                        failures, furthest = 0, self.part.length
                    failures += 1
                    if failures >= attempts:
                        raise self.given_up(str(again), failures) from None
                    wait = 2.0 ** (failures - 1) if again.wait is None else again.wait
                    self.say(f"{self.target.name}: {again}; trying again in {wait:g} s")
                    sleep(wait)

    # -- the end -------------------------------------------------------------------------------------

    def finish(self) -> str:
        found = self.part.digest.hexdigest()
        if found != self.sha256:
            if self.part.resumed and self.sha256 is not None:
                # what was here before may have been broken or another version
                self.part.discard()
                raise Again("put together from two downloads it is not the published file", wait=0.0)
            self.check_unverified(found)
        self.part.publish()
        return found

    def check_unverified(self, found: str) -> None:
        """Refuse another file than the published one, unless it may be any, and then what is no dataset."""
        name = self.target.name
        if self.sha256 is not None and not self.allow_unverified:
            length = self.part.length
            self.part.discard()
            raise DatasetError(
                f"{self.shown_url}: not the published file, so it was not kept: sha256 {found} ({length:,} bytes), "
                f"published {self.sha256}{'' if self.size is None else f' ({self.size:,} bytes)'}. A proxy may have "
                "answered with a page of its own: look at it in a browser, take it as it is with "
                f"--himga-allow=unverified, {self.by_hand}"
            )
        self.check_json()
        if self.check is not None:
            try:
                self.check(self.part.path)
            except DatasetError as error:
                self.part.discard()
                problem = str(error).removeprefix(f"{self.part.path}: ")
                raise DatasetError(
                    f"{self.shown_url}: not kept: {problem}; look at it in a browser, {self.by_hand}"
                ) from None
        if self.sha256 is None:
            self.say(f"{name}: not verified, as no digest is published; its sha256 is {found}")
        else:
            self.say(
                f"{name}: not the published file: its sha256 is {found}, published is {self.sha256}; accepted by "
                "--himga-allow=unverified"
            )

    def check_json(self) -> None:
        first, last = self.part.ends()
        if first.removeprefix(b"\xef\xbb\xbf")[:1] in (b"[", b"{") and last[-1:] in (b"]", b"}"):
            return
        self.part.discard()
        raise DatasetError(
            f"{self.shown_url}: no JSON file, so it was not kept; it begins with "
            f"{shown(first.decode('utf-8', 'replace'))} and ends with {shown(last.decode('utf-8', 'replace'))}; "
            f"look at it in a browser, {self.by_hand}"
        )

    def given_up(self, reason: str, failures: int) -> DatasetError:
        times = "1 attempt" if failures == 1 else f"{failures} attempts"
        kept = f" (the first {self.part.length:,} bytes are kept)" if self.part.can_go_on else ""
        return DatasetError(
            f"{self.shown_url}: cannot be downloaded ({reason}; {times}); try again later{kept}, {self.by_hand}"
        )


@contextmanager
def _locked(target: Path, say: Announce) -> Iterator[None]:
    from filelock import FileLock, Timeout

    lock = FileLock(target.with_name(f"{target.name}.lock"))
    try:
        lock.acquire(timeout=0)
    except Timeout:
        say(f"{target.name}: another process is downloading it; waiting")
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


def _stamp(path: Path) -> tuple[int, int] | None:
    try:
        state = path.stat()
    except OSError:
        return None
    return state.st_ino, state.st_mtime_ns
