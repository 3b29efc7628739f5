"""The one place of the data room that opens a socket: what is missing of a file is asked for and kept.

httpx is used as it comes: it honours the environment's proxies and certificates (``HTTPS_PROXY``,
``SSL_CERT_FILE``), and sends no token, cookie or password that himga did not find in the URL itself.
"""

from __future__ import annotations

import re
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

from pytest_himga.data import headers
from pytest_himga.data.published import megabytes
from pytest_himga.errors import DatasetError

if TYPE_CHECKING:
    from collections.abc import Iterator

    import httpx

    from pytest_himga.data.part import Part
    from pytest_himga.data.progress import Progress

#: Seconds. A server that is asked for a file answers at once or is out of order.
_CONNECT_TIMEOUT = 20.0
_READ_TIMEOUT = 60.0
#: How much more than the published size is read: another version's digest is worth showing, an endless
#: body is not worth the disk.
_TOLERANCE = 16 << 20
#: Bytes that are read of a file whose size nobody has published.
_MOST = 4 << 30
#: A server that brings less than this many bytes in this many seconds is as good as gone: a few bytes now and
#: then would keep the connection open, and the run waiting, for days.
_SLOWEST = 60_000, 60.0
_TRY_AGAIN = frozenset({408, 425, 429})


class Again(Exception):
    """An attempt failed in a way that another one may not; ``wait`` is what the server asks for, in seconds."""

    def __init__(self, reason: str, wait: float | None = None) -> None:
        super().__init__(reason)
        self.wait = wait


@dataclass
class Transfer:
    """What a request needs: ``part`` is filled from ``url``.

    ``shown_url`` and ``by_hand`` are what errors say of the address and of the way without himga; ``size`` is
    the published size in bytes, if known, and ``exact`` tells that no other will do.
    """

    url: str
    shown_url: str
    by_hand: str
    part: Part
    size: int | None
    exact: bool
    progress: Progress

    def attempt(self, client: httpx.Client) -> None:
        """Ask for what is missing and keep what comes; returns when the file is whole."""
        import httpx

        if self.part.length and self.part.length == self.size:
            return  # an earlier run was stopped between the last byte and its digest
        try:
            with client.stream("GET", self.url, headers=self._what_to_ask()) as response:
                self._take(response)
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
            raise Again(reason) from None

    def _what_to_ask(self) -> dict[str, str]:
        if not (self.part.length and self.part.can_go_on):
            return {}
        ask = {"Range": f"bytes={self.part.length}-"}
        return ask | ({"If-Range": self.part.validator} if self.part.validator else {})

    def _take(self, response: httpx.Response) -> None:
        status = response.status_code
        asked = "Range" in response.request.headers
        if status == 206 and asked:
            total = self._total_of_rest(response)
        elif status == 416 and asked:
            if headers.total_of(response) == self.part.length:
                return
            self.part.discard()
            raise Again("the server's file is shorter than what is here already", wait=0.0)
        elif status == 200:
            verbatim = not headers.compressed(response)
            self.part.start(headers.validator(response), verbatim=verbatim)
            total = headers.content_length(response)
        elif status in _TRY_AGAIN or status >= 500:
            raise Again(f"the server answers {headers.status(response)}", headers.wait_asked_for(response))
        else:
            self._refused(response)
        self._write(response, total)
        self._check_length(total)

    def _total_of_rest(self, response: httpx.Response) -> int | None:
        """The length of the whole file, if ``response`` is the rest that was asked for."""
        start = re.match(r"bytes (\d+)-", response.headers.get("content-range", ""))
        same = self.part.validator in (None, headers.validator(response))
        if start is None or int(start[1]) != self.part.length or not same:
            self.part.discard()
            raise Again("the server has another version of the file by now", wait=0.0)
        return headers.total_of(response)

    def _write(self, response: httpx.Response, total: int | None) -> None:
        self.progress(self.part.length, total or self.size)
        most = self._most_bytes()
        fewest, seconds = _SLOWEST
        since, before = time.monotonic(), self.part.length
        with self.part.open() as file:
            # Decoded, if the server compresses although it was asked not to.
            for block in response.iter_bytes():
                file.write(block)
                self.part.add(block)
                self.progress(self.part.length, total or self.size)
                if self.part.length > most:
                    self._too_long()
                if (now := time.monotonic()) - since >= seconds:
                    if self.part.length - before < fewest:
                        raise Again(f"{self.part.length - before:,} bytes came in {now - since:.0f} s")
                    since, before = now, self.part.length

    def _most_bytes(self) -> int:
        """How much is read at most: a body without an end would fill the disk."""
        if self.size is None:
            return _MOST
        return self.size + _TOLERANCE if self.exact else max(self.size, _MOST)

    def _check_length(self, total: int | None) -> None:
        """Tell a short body, which is asked for again, from a whole one that is another file."""
        whole = self.size if total is None and self.exact else total
        if whole is not None and self.part.length < whole:
            raise Again(f"the connection ended at {self.part.length:,} of {whole:,} bytes")

    def _refused(self, response: httpx.Response) -> NoReturn:
        redirected = "" if not response.history else f" (redirected to {response.url.host})"
        raise DatasetError(
            f"{self.shown_url}: the server answers {headers.status(response)}{redirected}, and asking again would not "
            "help; see in a browser whether the file is still there, name another host with HIMGA_DATA_MIRROR, "
            f"{self.by_hand}"
        )

    def _too_long(self) -> NoReturn:
        length = self.part.length
        self.part.discard()
        raise DatasetError(
            f"{self.shown_url}: not the published file, so it was not kept: {length:,} bytes came and no end, "
            f"published: {megabytes(self.size)}; {self.by_hand}"
        )


@contextmanager
def client_for(job: Transfer) -> Iterator[httpx.Client]:
    """An httpx client; settings of the environment that it cannot use are a ``DatasetError``."""
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
