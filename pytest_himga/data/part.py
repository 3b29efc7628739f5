"""The part of a download that is there already, in the data room; it outlives the process.

``locomo10.json.part`` holds the bytes, ``locomo10.json.part.meta`` what they are the beginning of. Whoever
uses them holds the lock of the target, see ``download.fetch``.
"""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path
    from typing import BinaryIO

_BLOCK = 1 << 20


class Part:
    """The beginning of the file that ``url`` had when ``validator`` was its version.

    ``length`` bytes are on disk and ``digest`` is over them. ``validator`` is what the server calls this
    version of the file (a strong ETag, or a Last-Modified date); None if it gave it no name. ``resumed``
    tells that bytes of more than one answer are in it, and ``can_go_on`` that a rest may be asked for:
    something tells, at once or at the end, that it is of the same file. Methods raise ``OSError`` for what the
    disk refuses.
    """

    def __init__(self, target: Path, url: str, sha256: str | None) -> None:
        self.target = target
        self.path = target.with_name(f"{target.name}.part")
        self.notes = target.with_name(f"{target.name}.part.meta")
        self.url = url
        self.sha256 = sha256
        self.length = 0
        self.digest = hashlib.sha256()
        self.validator: str | None = None
        self.can_go_on = False
        self.resumed = False

    def load(self) -> None:
        """Take up what an earlier run left, unless it belongs to another address or version: then drop it."""
        notes = self._read_notes()
        if notes.get("url") != self.url or notes.get("sha256") != self.sha256 or not self.path.is_file():
            self.discard()
            return
        validator = notes.get("validator")
        self.validator = validator if isinstance(validator, str) else None
        self.can_go_on = True
        with self.path.open("rb") as file:
            while block := file.read(_BLOCK):
                self.add(block)
        self.resumed = self.length > 0

    def start(self, validator: str | None, *, verbatim: bool) -> None:
        """Start from nothing with the version of the file that is called ``validator``.

        ``verbatim`` says that the bytes come as they lie on the server: only then do offsets mean anything
        to it.
        """
        self.discard()
        self.validator = validator
        self.can_go_on = verbatim and (validator is not None or self.sha256 is not None)
        if self.can_go_on:
            notes = {"url": self.url, "sha256": self.sha256, "validator": validator}
            self.notes.write_text(json.dumps(notes), encoding="utf-8")

    def open(self) -> BinaryIO:
        """Open for more bytes at the end; tell ``add`` of each block that was written."""
        self.resumed = self.resumed or self.length > 0
        return self.path.open("ab")

    def add(self, block: bytes) -> None:
        """Count ``block``, which was written."""
        self.digest.update(block)
        self.length += len(block)

    def ends(self, most: int = 64) -> tuple[bytes, bytes]:
        """The first and the last bytes, without the white space around them."""
        with self.path.open("rb") as file:
            first = file.read(most)
            file.seek(max(0, self.length - most))
            return first.lstrip(), file.read(most).rstrip()

    def publish(self) -> None:
        """Put the whole file in its place, at once: nobody ever sees half of it there."""
        with self.path.open("rb+") as file:
            os.fsync(file.fileno())  # else a power cut could leave a name without its bytes
        self.path.replace(self.target)
        self.notes.unlink(missing_ok=True)

    def discard(self) -> None:
        """Drop what is there."""
        self.path.unlink(missing_ok=True)
        self.notes.unlink(missing_ok=True)
        self.length = 0
        self.digest = hashlib.sha256()
        self.validator = None
        self.can_go_on = self.resumed = False

    def _read_notes(self) -> dict[str, Any]:
        with suppress(OSError, ValueError):
            notes = json.loads(self.notes.read_text(encoding="utf-8"))
            if isinstance(notes, dict):
                return notes
        return {}
