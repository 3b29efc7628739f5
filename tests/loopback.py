"""A web server on loopback for the tests of downloads: it keeps one file, and misbehaves on demand."""

from __future__ import annotations

import re
import socketserver
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Self

Act = Callable[["Handler"], None]


@dataclass
class Asked:
    """One request."""

    path: str
    headers: dict[str, str]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    web: Web

    def do_GET(self) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        with self.web.lock:
            self.web.asked.append(Asked(self.path, headers))
            act = self.web.script.pop(0) if self.web.script else serve
        act(self)

    def answer(self, status: int, body: bytes = b"", **headers: str) -> None:
        """Answer, with ``Retry_After="3"`` for ``Retry-After: 3``."""
        self.send_response(status)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        for name, value in ({"Content-Length": str(len(body))} | named).items():
            if value:
                self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def hang_up(self) -> None:
        self.close_connection = True

    def log_message(self, *_args: object) -> None:
        pass


@dataclass
class Web:
    """``script`` holds what is done with the next requests; after them the file is served as it should be."""

    body: bytes = b"[]"
    etag: str = '"one"'
    modified: str = ""
    script: list[Act] = field(default_factory=list)
    asked: list[Asked] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __enter__(self) -> Self:
        handler = type("BoundHandler", (Handler,), {"web": self})
        # Not HTTPServer, which looks up the machine's name.
        self.server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), handler)
        self.server.daemon_threads = True
        # A client that hangs up is what these tests are about; nobody reads a traceback of it.
        self.server.handle_error = lambda *_: None
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.server.server_close()

    @property
    def root(self) -> str:
        return f"http://127.0.0.1:{self.server.server_address[1]}"

    @property
    def url(self) -> str:
        return f"{self.root}/chats.json"

    @property
    def ranges(self) -> list[str]:
        """What was asked for, "" for the whole file."""
        return [asked.headers.get("range", "") for asked in self.asked]


def serve(handler: Handler) -> None:
    """The file, or the part of it that is asked for."""
    web = handler.web
    names = {"ETag": web.etag, "Last_Modified": web.modified}
    start = re.fullmatch(r"bytes=(\d+)-", handler.headers.get("Range", ""))
    condition = handler.headers.get("If-Range")
    if start is None or condition not in (None, web.etag, web.modified):
        handler.answer(200, web.body, **names)
    elif int(start[1]) >= len(web.body):
        handler.answer(416, Content_Range=f"bytes */{len(web.body)}")
    else:
        last = len(web.body) - 1
        content_range = f"bytes {start[1]}-{last}/{len(web.body)}"
        handler.answer(206, web.body[int(start[1]) :], Content_Range=content_range, **names)


def status(number: int, body: bytes = b"", **headers: str) -> Act:
    return lambda handler: handler.answer(number, body, **headers)


def cut_after(count: int) -> Act:
    """Promise the whole (rest of the) file, send ``count`` bytes of it and hang up."""

    def act(handler: Handler) -> None:
        whole = handler.wfile.write
        left = [count]

        def write(data: bytes) -> int:
            if not data.startswith(b"HTTP/"):
                data, left[0] = data[: left[0]], max(0, left[0] - len(data))
            return whole(data)

        handler.wfile.write = write
        serve(handler)
        handler.hang_up()

    return act


def ignoring_ranges(handler: Handler) -> None:
    handler.answer(200, handler.web.body, ETag=handler.web.etag)


def closing_at(count: int) -> Act:
    """Send ``count`` bytes without saying how many there are, as HTTP/1.0 did."""

    def act(handler: Handler) -> None:
        handler.answer(200, handler.web.body[:count], Content_Length="", Connection="close")
        handler.hang_up()

    return act


def redirect(url: str) -> Act:
    return status(302, Location=url)
