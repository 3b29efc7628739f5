"""What can go wrong with one attempt, in the llm room: each as a sentence, and whether another one helps."""

from __future__ import annotations

import json
import re
import socket
import ssl
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from pytest_himga.llm.redact import one_line
from pytest_himga.memory.protocol import Usage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pytest_himga.llm.redact import Redactor

#: Statuses that another attempt may not meet, besides 5xx.
_PASSING = frozenset({408, 409, 425, 429})
#: Statuses that every other request would meet too: no key, no right, no such model or path, moved.
_FOR_ALL = frozenset({301, 302, 303, 307, 308, 401, 403, 404})
#: No money or no quota left: trying again soon is no use.
_UNPAID = frozenset({"insufficient_quota", "billing_hard_limit_reached"})
#: What an error object behind status 200 may say instead of a status.
_STATUS_OF = {
    "rate_limit_exceeded": 429,
    "rate_limit_error": 429,
    "insufficient_quota": 429,
    "server_error": 500,
    "internal_server_error": 500,
    "overloaded_error": 503,
    "timeout": 504,
    "context_length_exceeded": 400,
    "content_filter": 400,
    "invalid_request_error": 400,
}
_CONTEXT_CODES = frozenset(
    {"context_length_exceeded", "exceed_context_size_error", "string_above_max_length"}
)
_CONTEXT = re.compile(
    r"context[ _](?:length|window|size)|maximum context|(?:prompt|input|request) (?:is )?too (?:long|large)"
    r"|too many (?:input |prompt )?tokens|exceeds? (?:the )?(?:available |model'?s? )*context"
    r"|exceeds? the maximum number of (?:input )?tokens",
    re.IGNORECASE,
)
#: What servers say that answer a request which they do not take with 500, as if they had failed:
#: llama-cpp-python's (pydantic's words), older llama.cpp servers.
_REJECTED = re.compile(
    r"validation error|must be one of|(?:not |un)supported|does not support", re.IGNORECASE
)
#: A path as pydantic writes it in words.
_LOC = re.compile(r"'loc': \(([^()]*)\)")
_FILTERED = re.compile(r"content[ _](?:filter|policy|management)|moderation|flagged", re.IGNORECASE)
#: How much of a server's own words a sentence quotes.
_QUOTED = 200
_ONE_CALL = Usage(calls=1)


@dataclass(frozen=True)
class ErrorBody:
    """What a server's error says: its own words, a code, the parameter, and paths to what it did not like."""

    message: str = ""
    code: str = ""
    param: str = ""
    paths: tuple[tuple[str, ...], ...] = ()

    @property
    def about_context(self) -> bool:
        """Whether the request was longer than the model's context. Such an error names max_tokens too."""
        return self.code in _CONTEXT_CODES or bool(_CONTEXT.search(self.message))

    @property
    def about_request(self) -> bool:
        """Whether a 500 is about the request, which the server would meet with the same 500 again."""
        return bool(self.paths or _REJECTED.search(self.message))

    @property
    def about_content(self) -> bool:
        """Whether a filter kept the request from the model."""
        return bool(_FILTERED.search(f"{self.code} {self.message}"))


@dataclass(frozen=True)
class Fault:
    """One attempt that brought no completion.

    ``passing``: another attempt may do better. ``wait``: the seconds that the server asked for. ``outage``:
    the server cannot be used at the moment. ``for_all``: no other request can do better. ``rejected`` is
    what the server said about a request that it did not take as it was (400, 422, some 500s). ``spent``:
    this attempt.
    """

    sentence: str
    passing: bool = False
    outage: bool = False
    for_all: bool = False
    wait: float | None = None
    rejected: ErrorBody | None = None
    spent: Usage = _ONE_CALL


@dataclass(frozen=True)
class Whom:
    """Who is talked to, for the sentences."""

    model: str
    server: str
    redact: Redactor = field(repr=False)
    advice: str = ""


def error_body(content: bytes, redact: Redactor) -> ErrorBody:
    """What the body of an error says, whoever wrote it: JSON of several customs, a page, plain text."""
    text = content.decode("utf-8", "replace")
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return ErrorBody(redact.sentence(_page_title(text)))
    return error_of(value, redact)


def error_of(value: Any, redact: Redactor) -> ErrorBody:
    """The same for JSON that was read already; OpenAI's custom, FastAPI's, and bare texts."""
    inner = value.get("error", value) if isinstance(value, dict) else value
    if not isinstance(inner, dict):
        return ErrorBody(redact.sentence(inner if isinstance(inner, str) else json.dumps(inner)))
    said = next((inner[name] for name in ("message", "detail", "error", "msg") if inner.get(name)), inner)
    code = inner.get("code")
    return ErrorBody(
        message=redact.sentence(said if isinstance(said, str) else json.dumps(said)),
        code=redact.sentence(str(inner.get("type") if code is None or code == "" else code)),
        param=redact.sentence(str(inner.get("param") or "")),
        paths=tuple(_paths(said, redact)),
    )


def _paths(said: Any, redact: Redactor) -> Iterator[tuple[str, ...]]:
    if isinstance(said, str):
        for loc in _LOC.findall(said):
            yield tuple(redact.sentence(step.strip(" '")) for step in loc.split(",") if step.strip())
    for one in said if isinstance(said, list) else ():
        if isinstance(one, dict) and isinstance(one.get("loc"), list):
            yield tuple(redact.sentence(str(step)) for step in one["loc"])


def _page_title(text: str) -> str:
    title = re.search(r"<title[^>]*>(.*?)</title", text, re.IGNORECASE | re.DOTALL)
    return title[1] if title else text


def status_fault(
    whom: Whom, status: int, said: ErrorBody, *, wait: float | None = None, location: str = ""
) -> Fault:
    """An answer with a status that is no 2xx. ``location`` is where a redirect points."""
    sentence = f"{whom.server} answered {_named(status)}"
    if said.message:
        sentence += f": {one_line(said.message, _QUOTED)}"
    if status in (400, 413, 422) and said.about_context:
        return Fault(f"the request is longer than the context of {whom.model}: {sentence}")
    if status in (400, 403) and said.about_content:
        return Fault(f"a content filter kept the request from {whom.model}: {sentence}")
    if status in (400, 422):
        no_model = said.code == "model_not_found" or said.param == "model"
        return Fault(sentence, for_all=no_model, rejected=said)
    if status in _FOR_ALL:
        ending = whom.redact.sentence(_what_to_do(whom, status, location))
        return Fault(sentence + (f"; {ending}" if ending else ""), outage=True, for_all=True)
    unpaid = status == 402 or said.code in _UNPAID
    passing = not unpaid and (status in _PASSING or status >= 500)
    rejected = said if status == 500 and said.about_request else None
    return Fault(sentence, passing=passing, outage=passing or unpaid, wait=wait, rejected=rejected)


def _named(status: int) -> str:
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return str(status)


def _what_to_do(whom: Whom, status: int, location: str) -> str:
    if status == 404:
        return f"is there a model {whom.model!r}, and does the base URL end as it should (.../v1)?"
    if status in (401, 403):
        return whom.advice
    return f"it points to {one_line(location, _QUOTED)}: give the base URL that is meant"


def body_fault(whom: Whom, error: Any) -> Fault:
    """An error object behind status 200; a code that stands for a status is taken as that status."""
    said = error_of(error, whom.redact)
    code = _STATUS_OF.get(said.code, int(said.code) if re.fullmatch(r"[45]\d\d", said.code) else None)
    if code is not None:
        fault = status_fault(whom, code, said)
        behind = fault.sentence.replace(" answered ", " answered 200 with an error inside, ", 1)
        return Fault(behind, fault.passing, fault.outage, fault.for_all, rejected=fault.rejected)
    return Fault(f"{whom.server} answered 200 with an error inside: {one_line(said.message, _QUOTED)}")


def silence(whom: Whom, within: str) -> Fault:
    """An attempt that took too long; ``within`` is its limit in words."""
    return Fault(f"{whom.server} did not answer within {within}", passing=True, outage=True)


def connection_fault(whom: Whom, error: BaseException) -> Fault:
    """An attempt that the network ended; the libraries' own texts are not quoted."""
    chain = list(_chain(error))
    said = next((say(one) for is_it, say in _KINDS for one in chain if is_it(one)), None)
    if said is None:
        said = f"cannot be talked to ({type(chain[-1]).__name__})"
    stays = any(isinstance(one, ssl.SSLCertVerificationError | Warning) for one in chain)
    return Fault(f"{whom.server} {whom.redact.sentence(said)}", passing=not stays, outage=True)


def _chain(error: BaseException) -> Iterator[BaseException]:
    """An exception and what led to it, the last one first."""
    seen: set[int] = set()
    one: BaseException | None = error
    while one is not None and id(one) not in seen:
        seen.add(id(one))
        yield one
        one = one.__cause__ or one.__context__


def _is(*kinds: type[BaseException] | str) -> Callable[[BaseException], bool]:
    """A test for types, those of libraries by their names: which library it is depends on openai's version."""
    types = tuple(kind for kind in kinds if isinstance(kind, type))
    names = {kind for kind in kinds if isinstance(kind, str)}
    return lambda error: isinstance(error, types) or type(error).__name__ in names


def _warned(error: BaseException) -> str:
    """A warning of a library's where warnings are errors: no other attempt would meet another end."""
    words = one_line(f"{type(error).__name__}: {error}", _QUOTED)
    return f"was not asked, because a warning is an error in this run (filterwarnings, -W): {words}"


def _tls(error: BaseException) -> str:
    why = getattr(error, "verify_message", "") or getattr(error, "reason", "") or "handshake failed"
    return f"cannot be talked to safely (TLS): {one_line(str(why), _QUOTED)}"


#: In this order, because aiohttp's transport calls a server that hangs up a timeout.
_KINDS: tuple[tuple[Callable[[BaseException], bool], Callable[[BaseException], str]], ...] = (
    (_is(Warning), _warned),
    (_is(ssl.SSLError), _tls),
    (
        _is(socket.gaierror, "ClientConnectorDNSError"),
        lambda _: "has a host name that cannot be resolved (DNS)",
    ),
    (_is(ConnectionRefusedError), lambda _: "refused the connection: is the server running there?"),
    (
        _is("ClientPayloadError", "IncompleteRead", "ReadError", "DecodingError"),
        lambda _: "broke off in the middle of its answer",
    ),
    (
        _is(ConnectionResetError, BrokenPipeError, "ServerDisconnectedError", "RemoteProtocolError"),
        lambda _: "closed the connection without an answer",
    ),
    (_is("ProxyError"), lambda _: "cannot be reached through the proxy of the environment"),
    (_is(TimeoutError, "APITimeoutError"), lambda _: "did not take the connection in time"),
)
