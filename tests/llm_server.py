"""An OpenAI-compatible server on loopback that does as it is told, for every test with a model in it.

::

    with LLMServer() as server:
        server.reply = lambda body: "yes" if "tulips" in prompt(body) else refused("no")
        server.script = [status(429, Retry_After="0"), hang_up]
        ...  # use server.url, then look at server.asked

The acts in ``script`` are done first, each for one request; after them ``reply`` answers. Requests may
come in parallel, from several processes.
"""

from __future__ import annotations

import json
import socket
import socketserver
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any, Self

Act = Callable[["Handler"], None]

#: The usage that a completion tells unless a test says otherwise.
TOKENS_IN, TOKENS_OUT = 11, 7
USAGE = {
    "prompt_tokens": TOKENS_IN,
    "completion_tokens": TOKENS_OUT,
    "total_tokens": TOKENS_IN + TOKENS_OUT,
}


@dataclass
class Asked:
    """One request: its headers by their lower-case names, its body as JSON says it."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]

    @property
    def prompt(self) -> str:
        return prompt(self.body)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Headers and body are small and go out at once.
    disable_nagle_algorithm = True
    web: LLMServer
    asked: Asked

    def setup(self) -> None:
        super().setup()
        self.web.connections.append(self.connection)

    def do_POST(self) -> None:
        content = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.asked = Asked(self.path, headers, json.loads(content))
        with self.web.lock:
            self.web.asked.append(self.asked)
            act = self.web.script.pop(0) if self.web.script else as_usual
        act(self)

    def answer(self, number: int, content: bytes, **headers: str) -> None:
        """Answer, with ``Retry_After="3"`` for ``Retry-After: 3``; an empty value leaves a header out."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        all_headers = {"Content-Type": "application/json", "Content-Length": str(len(content))} | named
        lines = [f"HTTP/1.1 {number} Told\r\n", *(f"{k}: {v}\r\n" for k, v in all_headers.items() if v)]
        self.wfile.write("".join([*lines, "\r\n"]).encode("latin-1") + content)

    def hang_up(self) -> None:
        self.close_connection = True

    def log_message(self, *_args: object) -> None:
        pass


@dataclass
class LLMServer:
    """``reply(body)`` gives the answer to a request that no act of ``script`` takes: a text or an act."""

    reply: Callable[[dict[str, Any]], str | Act] = lambda _body: "ok"
    script: list[Act] = field(default_factory=list)
    asked: list[Asked] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)
    #: Set when the server goes down: nothing stalls any longer.
    closing: threading.Event = field(default_factory=threading.Event)
    connections: list[socket.socket] = field(default_factory=list)

    def __enter__(self) -> Self:
        handler = type("BoundHandler", (Handler,), {"web": self})
        # Not HTTPServer, which looks up the machine's name.
        self.server = _Server(("127.0.0.1", 0), handler)
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.closing.set()
        self.server.shutdown()
        self.server.server_close()
        for connection in self.connections:
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue  # the client was faster

    @property
    def root(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def port(self) -> int:
        return self.server.server_address[1]

    @property
    def url(self) -> str:
        """The base URL that a client is given."""
        return f"{self.root}/v1"

    @property
    def bodies(self) -> list[dict[str, Any]]:
        return [asked.body for asked in self.asked]


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    request_queue_size = 256

    def handle_error(self, *_: object) -> None:
        """A client that hangs up is what these tests are about; nobody reads a traceback of it."""


def prompt(body: dict[str, Any]) -> str:
    """What a request's messages say, one after the other."""
    return "\n".join(message["content"] for message in body["messages"])


def as_usual(handler: Handler) -> None:
    """What ``reply`` says."""
    told = handler.web.reply(handler.asked.body)
    act = text(told) if isinstance(told, str) else told
    act(handler)


def completion(
    content: Any, *, finish: str | None = "stop", usage: Any = USAGE, model: str = "scripted", **message: Any
) -> dict[str, Any]:
    """A chat completion as the API documents it; more keywords become fields of its message."""
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": model,
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": content} | message,
                "finish_reason": finish,
            }
        ],
    } | ({"usage": usage} if usage is not None else {})


def body(content: Any, **headers: str) -> Act:
    """Status 200 with any JSON, or with the bytes or the text as they are."""
    return status(200, content, **headers)


def status(number: int, content: Any = None, **headers: str) -> Act:
    """Any status with any JSON, bytes or text; ``status(429, {...}, Retry_After="0")``."""
    if content is None:
        content = error(f"scripted {number}")
    elif isinstance(content, str):
        content = content.encode("utf-8")
    raw = content if isinstance(content, bytes) else json.dumps(content).encode("utf-8")
    return lambda handler: handler.answer(number, raw, **headers)


def error(message: str, **fields: Any) -> dict[str, Any]:
    """An error body: ``error("no such thing", param="top_k", code="unsupported_parameter")``."""
    return {"error": {"message": message, "type": "invalid_request_error"} | fields}


def text(content: Any, **fields: Any) -> Act:
    """A completion: ``text("no", usage=None)``; fields as of ``completion``."""
    return body(completion(content, **fields))


def cut(content: Any, **fields: Any) -> Act:
    """A completion that its token limit ended."""
    return text(content, finish="length", **fields)


def refused(why: str) -> Act:
    """The model's own refusal."""
    return text(None, refusal=why)


def hang_up(handler: Handler) -> None:
    """Close the connection without a word."""
    handler.hang_up()


def torn(count: int) -> Act:
    """Promise a whole completion, send ``count`` bytes of it and hang up."""

    def act(handler: Handler) -> None:
        raw = json.dumps(completion("a whole answer")).encode("utf-8")
        handler.answer(200, raw[:count], Content_Length=str(len(raw)))
        handler.hang_up()

    return act


def stall(seconds: float, then: Act = as_usual) -> Act:
    """Wait, or until the server goes down, then go on."""

    def act(handler: Handler) -> None:
        handler.web.closing.wait(seconds)
        then(handler)

    return act
