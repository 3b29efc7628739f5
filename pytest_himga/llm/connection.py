"""One attempt, in the llm room: a request through the openai package, and the bytes or the fault it brings."""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING, Any

from pytest_himga.llm.fault import Fault, Whom, connection_fault, error_body, silence, status_fault
from pytest_himga.llm.retrying import retry_after

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from openai import AsyncOpenAI

    from pytest_himga.llm.endpoint import Endpoint
    from pytest_himga.llm.redact import Redactor

#: The openai package wants a key; what opens the server is put on each request by ``Endpoint.authorize``.
_NO_KEY = "none"
#: Making a connection takes no longer than this, in seconds, whatever a reply may take.
_CONNECT = 20.0
#: Bytes. aiohttp warns of a body that is larger than 16 of these, unless it comes in pieces; and a warning is
#: an error where the user's pytest says so (``filterwarnings = error``).
_PIECE = 2**16
#: Who may log what a server said: a header, or the words beside a status. Which ones do depends on versions.
_LOGGERS = (
    "aiohttp.client",
    "httpx",
    "httpx2",
    "openai._base_client",
    "openai._legacy_response",
    "openai._response",
)


class _NoSecrets(logging.Filter):
    """Takes out of a library's log line what its server echoed."""

    def __init__(self, redact: Redactor) -> None:
        super().__init__()
        self._redact = redact

    def filter(self, record: logging.LogRecord) -> bool:
        said = record.getMessage()
        clean = self._redact.sentence(said)
        if clean != said:
            record.msg, record.args = clean, ()
        if record.exc_info:
            # As text: older versions log the exception of a status, which quotes headers and holds the request.
            record.exc_text = logging.Formatter().formatException(record.exc_info)
            record.exc_info = None
        if record.exc_text:
            record.exc_text = self._redact.sentence(record.exc_text)
        return True


class Connection:
    """The openai package's client for one server. It belongs to the event loop that uses it.

    The package allows a thousand connections: how many are open is for the callers to limit.
    """

    def __init__(self, endpoint: Endpoint, whom: Whom, *, now: Callable[[], float]) -> None:
        self._endpoint = endpoint
        self._whom = whom
        self._now = now
        self._no_secrets = _NoSecrets(endpoint.redact)
        self._client: AsyncOpenAI | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def send(self, body: dict[str, Any], seconds: float, within: str) -> bytes | Fault:
        """The body of an answer with a good status, within ``seconds``, which are ``within`` in words."""
        create = self._of_this_loop().chat.completions.with_raw_response.create
        limit = asyncio.timeout(seconds)
        try:
            async with limit:
                # All of it as extra_body: the user's parameters need not be known to this package, and it
                # looks so closely at messages of its own that this costs more than sending them.
                raw = await create(model=body["model"], messages=(), extra_body=body)
                return raw.http_response.content
        except asyncio.CancelledError as stopped:
            # The frames that it went through hold the request's headers.
            stopped.__context__ = None
            raise stopped.with_traceback(None) from None
        except Exception as error:  # noqa: BLE001  # whatever it is, it holds the request, and that the key
            return silence(self._whom, within) if limit.expired() else self._fault_of(error)

    def _fault_of(self, error: Exception) -> Fault:
        response = getattr(error, "response", None)
        if response is None:
            return connection_fault(self._whom, error)
        headers = response.headers
        return status_fault(
            self._whom,
            response.status_code,
            error_body(response.content, self._whom.redact),
            wait=retry_after(headers, self._now()),
            location=headers.get("location", ""),
        )

    def get_ready(self) -> None:
        """Load the openai package and make the client: it can take a second, which is no time of a call."""
        self._of_this_loop().chat.completions  # noqa: B018 - the package loads this part when it is named

    def _of_this_loop(self) -> AsyncOpenAI:
        loop = asyncio.get_running_loop()
        if self._client is None or self._loop is not loop:
            self._client, self._loop = self._connect(), loop
        return self._client

    def _connect(self) -> AsyncOpenAI:
        import openai

        for name in _LOGGERS:
            logging.getLogger(name).addFilter(self._no_secrets)
        return openai.AsyncOpenAI(
            api_key=_NO_KEY,
            base_url=self._endpoint.server,
            max_retries=0,
            timeout=openai.Timeout(None, connect=_CONNECT),
            http_client=openai.DefaultAioHttpClient(
                auth=partial(_prepared, self._endpoint),
                # A POST that is redirected arrives as a GET, or with its key at another server.
                follow_redirects=False,
            ),
        )

    async def close(self) -> None:
        """Close what this loop has open; to be called before the loop ends."""
        client, self._client = self._client, None
        for name in _LOGGERS:
            logging.getLogger(name).removeFilter(self._no_secrets)
        if client is not None and self._loop is asyncio.get_running_loop():
            await client.close()


def _prepared(endpoint: Endpoint, request: Any) -> Any:
    """A request of httpx's as it is sent: authorized, and a large body in pieces."""
    request = endpoint.authorize(request)
    if len(request.content) <= _PIECE:
        return request
    # Of the same class: from which of httpx' two packages it comes depends on openai's version.
    return type(request)(
        request.method,
        request.url,
        headers=request.headers,
        content=_pieces(request.content),
        extensions=request.extensions,
    )


async def _pieces(body: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(body), _PIECE):
        yield body[start : start + _PIECE]
