"""What the memory returned, kept by the hash of its text, in the report room.

::

    contexts/<process id>-<8 hex>.jsonl     one line a text: {"sha256": ..., "text": ...}

Each process of a run appends to a file of its own, one write a text, before the question is reported. A
file for each text would be nicer to open, and took longer than a BM25 search (0.15 to 0.4 ms on ext4
against 0.3). A line that a killed process left half written is passed over by the reader.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import threading
from typing import TYPE_CHECKING

from pytest_himga.errors import HimgaError

if TYPE_CHECKING:
    from pathlib import Path

_SHA = re.compile(r"[0-9a-f]{64}", re.ASCII)
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | getattr(os, "O_BINARY", 0)


class Contexts:
    """The texts under ``folder``; ``put`` needs the folder to be there, and raises OSError like any file."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        # Two machines on one shared disk may share a process id.
        self._path = folder / f"{os.getpid()}-{secrets.token_hex(4)}.jsonl"
        self._handle: int | None = None
        self._written: set[str] = set()
        self._found: dict[str, tuple[Path, int]] = {}
        self._lock = threading.Lock()

    def put(self, text: str) -> str:
        r"""Keep a text; its sha256 (hex, of the UTF-8). Lone surrogates count, and stand, as ``\udXXX``."""
        text = text.encode("utf-8", "backslashreplace").decode("utf-8")
        sha = hashlib.sha256(text.encode("utf-8")).hexdigest()
        with self._lock:
            if sha not in self._written:
                self._append(json.dumps({"sha256": sha, "text": text}, ensure_ascii=False) + "\n")
                self._written.add(sha)
        return sha

    def read(self, sha: str) -> str:
        """The text kept under ``sha`` by any process of the run.

        Raises ``HimgaError`` if there is none, or if what stands there is not what was written.
        """
        if not _SHA.fullmatch(sha):
            raise HimgaError(
                f"context {sha!r}: expected 64 hex digits, as in the field context of results.jsonl"
            )
        if sha not in self._found:
            self._look()
        if sha not in self._found:
            raise HimgaError(
                f"context {sha[:12]} is not in {self.folder}: it was not kept, or was deleted since"
            )
        path, start = self._found[sha]
        try:
            with path.open("rb") as file:
                file.seek(start)
                text = _text_of(file.readline(), sha)
        except OSError as error:
            raise HimgaError(f"context {sha[:12]} cannot be read from {path}: {error.strerror}") from error
        if text is None:
            raise HimgaError(f"context {sha[:12]}: {path} was changed or damaged after the run; run it again")
        return text

    def close(self) -> None:
        """Close this process's file; a later ``put`` is an error."""
        handle, self._handle = self._handle, None
        if handle is not None:
            os.close(handle)

    def _append(self, line: str) -> None:
        if self._handle is None:
            self._handle = os.open(self._path, _CREATE, 0o666)
        rest = memoryview(line.encode("utf-8"))
        while rest:
            rest = rest[os.write(self._handle, rest) :]

    def _look(self) -> None:
        """Note where each text stands; only the hash is looked at, and whether the line is whole."""
        for path in sorted(self.folder.glob("*.jsonl")):
            start = 0
            with path.open("rb") as file:
                for line in file:
                    sha = line[len('{"sha256": "') :][:64].decode("ascii", "replace")
                    if line.endswith(b"}\n") and _SHA.fullmatch(sha):
                        self._found.setdefault(sha, (path, start))
                    start += len(line)


def _text_of(line: bytes, sha: str) -> str | None:
    """The text in a line, None if it is not the one that has this hash."""
    try:
        text = json.loads(line)["text"]
        return text if hashlib.sha256(text.encode("utf-8")).hexdigest() == sha else None
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
