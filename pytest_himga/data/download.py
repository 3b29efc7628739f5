"""The one place of the data room that opens a socket: a file is fetched, verified and put in its place.

httpx is used as it comes: it honours the environment's proxies and certificates (``HTTPS_PROXY``,
``SSL_CERT_FILE``), and sends no token, cookie or password that himga did not find in the URL itself.
"""

from __future__ import annotations

import hashlib
import re
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

from pytest_himga.data import headers
from pytest_himga.data.files import shown
from pytest_himga.data.part import Part
from pytest_himga.data.published import megabytes, without_login
from pytest_himga.errors import DatasetError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    import httpx

    from pytest_himga.data.progress import Progress

    Announce = Callable[[str], None]

#: How often in a row nothing may come before it is given up: with the pauses of 1, 2, 4 and 8 s a quarter
#: of a minute, which a router needs to come back.
ATTEMPTS = 5
#: Seconds. A server that is asked for a file answers at once or is out of order.
_CONNECT_TIMEOUT = 20.0
_READ_TIMEOUT = 60.0
#: An attempt that brought this much more was no failure: a large file may be cut a hundred times.
_PROGRESS = 1 << 20
#: How much more than the published size is read: another version's digest is worth showing, an endless
#: body is not worth the disk.
_TOLERANCE = 16 << 20
_TRY_AGAIN = frozenset({408, 425, 429})


def fetch(
    url: str,
    target: Path,
    *,
    sha256: str | None = None,
    size: int | None = None,
    progress: Progress | None = None,
    announce: Announce | None = None,
    attempts: int = ATTEMPTS,
    sleep: Callable[[float], None] = time.sleep,
) -> str:
    """Bring the file at ``url`` to ``target`` and return its sha256, hex.

    What arrives is kept in ``<target>.part`` and goes on from there, in this run or a later one, as long as
    the server still has the same version. ``target`` is replaced at once, when the whole file is there and
    has the digest ``sha256``; with ``sha256`` None it must look like JSON, and ``announce`` is told that
    nothing was verified. A target that has the digest already is left, without a request. Of several
    processes one downloads, under a lock ``<target>.lock``; the others wait and take its file.

    Lost connections, short bodies, 5xx, 408, 425 and 429 are tried again, ``attempts`` times in a row without
    anything new, after the time that the server asks for (at most five minutes) or 1, 2, 4, ... seconds.
    ``size`` is the published size in bytes, if known. ``announce`` takes one sentence for each wait.

    Raises
    ------
    DatasetError
        If the file cannot be had, is not the published one, or cannot be written; says how to get it by hand.
    """
    say = announce or (lambda _text: None)
    job = _Job(url, target, sha256, size, progress or (lambda _done, _total: None), say)
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


class _Again(Exception):
    """An attempt failed in a way that another one may not; ``wait`` is what the server asks for, in seconds."""

    def __init__(self, reason: str, wait: float | None = None) -> None:
        super().__init__(reason)
        self.wait = wait


@dataclass
class _Job:
    url: str
    target: Path
    sha256: str | None
    size: int | None
    progress: Progress
    say: Announce

    def __post_init__(self) -> None:
        self.shown_url = without_login(self.url)
        self.by_hand = f"or download {self.shown_url} by hand and save it as {self.target}"
        self.part = Part(self.target, self.shown_url, self.sha256)

    def already_there(self, *, changed: bool) -> str | None:
        """The digest of the target if it is what is wanted; ``changed`` while another process had the lock."""
        if not self.target.is_file() or (self.sha256 is None and not changed):
            return None
        found = digest_of(self.target)
        return found if self.sha256 in (None, found) else None

    def run(self, attempts: int, sleep: Callable[[float], None]) -> str:
        self.part.load()
        with _client(self) as client:
            failures = furthest = 0
            while True:
                try:
                    self.attempt(client)
                    return self.finish()
                except _Again as again:
                    if self.part.length >= furthest + _PROGRESS:
                        failures, furthest = 0, self.part.length
                    failures += 1
                    if failures >= attempts:
                        raise self.given_up(str(again), failures) from None
                    wait = 2.0 ** (failures - 1) if again.wait is None else again.wait
                    self.say(f"{self.target.name}: {again}; trying again in {wait:g} s")
                    sleep(wait)

    # -- one request ---------------------------------------------------------------------------------

    def attempt(self, client: httpx.Client) -> None:
        """Ask for what is missing and keep what comes; returns when the file is whole."""
        import httpx

        if self.part.length and self.part.length == self.size:
            return  # an earlier run was stopped between the last byte and its digest
        try:
            with client.stream("GET", self.url, headers=self.what_to_ask()) as response:
                self.take(response)
        except (httpx.UnsupportedProtocol, httpx.TooManyRedirects, httpx.InvalidURL) as error:
            raise DatasetError(
                f"{self.shown_url}: the address, or one that it redirects to, cannot be used ({error}); "
                f"check HIMGA_DATA_MIRROR, {self.by_hand}"
            ) from None
        except (httpx.TransportError, httpx.DecodingError) as error:
            reason = " ".join(str(error).split()) or type(error).__name__
            if "CERTIFICATE_VERIFY_FAILED" in reason:
                raise DatasetError(
                    f"{self.shown_url}: the server's certificate is not trusted ({reason}); behind a proxy of "
                    f"your own set SSL_CERT_FILE to its certificates, {self.by_hand}"
                ) from None
            raise _Again(reason) from None

    def what_to_ask(self) -> dict[str, str]:
        if not (self.part.length and self.part.can_go_on):
            return {}
        ask = {"Range": f"bytes={self.part.length}-"}
        return ask | ({"If-Range": self.part.validator} if self.part.validator else {})

    def take(self, response: httpx.Response) -> None:
        status = response.status_code
        asked = "Range" in response.request.headers
        if status == 206 and asked:
            total = self.total_of_rest(response)
        elif status == 416 and asked:
            if headers.total_of(response) == self.part.length:
                return
            self.part.discard()
            raise _Again("the server's file is shorter than what is here already", wait=0.0)
        elif status == 200:
            verbatim = not headers.compressed(response)
            self.part.start(headers.validator(response), verbatim=verbatim)
            total = headers.content_length(response)
        elif status in _TRY_AGAIN or status >= 500:
            raise _Again(f"the server answers {headers.status(response)}", headers.wait_asked_for(response))
        else:
            self.refused(response)
        self.write(response, total)
        self.check_length(total)

    def total_of_rest(self, response: httpx.Response) -> int | None:
        """The length of the whole file, if ``response`` is the rest that was asked for."""
        start = re.match(r"bytes (\d+)-", response.headers.get("content-range", ""))
        same = self.part.validator in (None, headers.validator(response))
        if start is None or int(start[1]) != self.part.length or not same:
            self.part.discard()
            raise _Again("the server has another version of the file by now", wait=0.0)
        return headers.total_of(response)

    def write(self, response: httpx.Response, total: int | None) -> None:
        self.progress(self.part.length, total or self.size)
        with self.part.open() as file:
            # Decoded, if the server compresses although it was asked not to.
            for block in response.iter_bytes():
                file.write(block)
                self.part.add(block)
                self.progress(self.part.length, total or self.size)
                if self.size is not None and self.part.length > self.size + _TOLERANCE:
                    self.too_long()

    def check_length(self, total: int | None) -> None:
        """Tell a short body, which is asked for again, from a whole one that is another file."""
        whole = self.size if total is None else total
        if whole is not None and self.part.length < whole:
            raise _Again(f"the connection ended at {self.part.length:,} of {whole:,} bytes")

    # -- the end -------------------------------------------------------------------------------------

    def finish(self) -> str:
        found = self.part.digest.hexdigest()
        if self.sha256 is None:
            self.check_json()
            self.say(f"{self.target.name}: not verified, as no digest is published; its sha256 is {found}")
        elif found != self.sha256:
            length, resumed = self.part.length, self.part.resumed
            self.part.discard()
            if resumed:  # what was here before may have been broken or another version
                raise _Again("put together from two downloads it is not the published file", wait=0.0)
            raise DatasetError(
                f"{self.shown_url}: not the published file, so it was not kept: sha256 {found} ({length:,} bytes), "
                f"published {self.sha256}{'' if self.size is None else f' ({self.size:,} bytes)'}. A proxy may have "
                f"answered with a page of its own: look at it in a browser; {self.by_hand}"
            )
        self.part.publish()
        return found

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

    def refused(self, response: httpx.Response) -> NoReturn:
        redirected = "" if not response.history else f" (redirected to {response.url.host})"
        raise DatasetError(
            f"{self.shown_url}: the server answers {headers.status(response)}{redirected}, and asking again would not "
            "help; see in a browser whether the file is still there, name another host with HIMGA_DATA_MIRROR, "
            f"{self.by_hand}"
        )

    def too_long(self) -> NoReturn:
        length = self.part.length
        self.part.discard()
        raise DatasetError(
            f"{self.shown_url}: not the published file, so it was not kept: {length:,} bytes came and no end, "
            f"published are {megabytes(self.size)}; {self.by_hand}"
        )


@contextmanager
def _client(job: _Job) -> Iterator[httpx.Client]:
    import httpx

    from pytest_himga import __version__

    try:
        client = httpx.Client(
            follow_redirects=True,
            timeout=httpx.Timeout(_READ_TIMEOUT, connect=_CONNECT_TIMEOUT),
            # identity: offsets and lengths are those of the file, not of a compressed copy of it
            headers={"Accept-Encoding": "identity", "User-Agent": f"pytest-himga/{__version__}"},
        )
    except (ImportError, OSError, ValueError, httpx.InvalidURL) as error:
        raise DatasetError(
            f"{job.shown_url}: the proxy or certificate settings of the environment cannot be used ({error}); "
            f"check HTTPS_PROXY, ALL_PROXY and SSL_CERT_FILE, {job.by_hand}"
        ) from error
    with client:
        yield client


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
