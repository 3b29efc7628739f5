"""One record after another out of a file of any size, in constant memory: the data room's reader.

msgspec skips over a record without making Python objects of it, and checks its grammar on the way, so a
file of gigabytes is split at the speed at which it is read. What it finds wrong is said by ``files``,
which knows the line and column, wherever the file is small enough to be read whole.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO, NoReturn, Protocol

from pytest_himga.data.files import diagnose
from pytest_himga.errors import DatasetError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pytest_himga.data.family import Skimmed

    Skim = Callable[[memoryview], Skimmed | None]

BLOCK = 1 << 22
_BOM = b"\xef\xbb\xbf"
_BLANK = b" \t\n\r"
#: A broken file up to this size is read whole, to say line and column; beyond it the byte has to do.
READ_WHOLE = 64 << 20
#: msgspec says where the first byte after a whole value stands, counted from 1.
_TRAILING = re.compile(r"trailing characters \(byte (\d+)\)", re.ASCII)
_AT_BYTE = re.compile(r"(.*) \(byte (\d+)\)", re.ASCII)
#: The escape of half a surrogate pair, and another escape of the same length.
_HALF_PAIR = re.compile(rb"\\u[dD][89a-fA-F][0-9a-fA-F]{2}")
_BLANK_ESCAPE = rb"\\u0020"
#: The first key of an object, and what stands between two objects of a list up to the key of the second.
_FIRST_KEY = re.compile(rb'\{\s*("[^"\\]*")\s*:')
_BETWEEN = re.compile(rb"\}\s*,\s*\{\s*\Z")
#: Bytes of blanks and brackets that may lie there for a guess.
_WIDEST = 64
#: A text, number or literal that the end of a block cuts in two looks broken this close to it.
_CUT = 16


@dataclass(frozen=True)
class Chunk:
    """The raw JSON of one record, and where it begins: bytes from the start of the uncompressed file."""

    offset: int
    data: memoryview
    skimmed: Skimmed | None = None


class Digest(Protocol):
    """What all bytes of a file go through on the way."""

    def update(self, data: bytes, /) -> object:
        """Take the next bytes."""


def split_records(
    file: Path, source: BinaryIO, digest: Digest | None = None, skim: Skim | None = None
) -> Iterator[Chunk]:
    """Yield each record of ``source``, an open file that holds a list of objects, or one object.

    All bytes of the file go through ``digest`` on the way. ``file`` is its name for errors. ``skim`` is
    called with each record, and a chunk carries what came of it (see ``Family``); what it accepts is whole
    JSON. A chunk's ``data`` is valid until the next one is asked for.

    Raises
    ------
    DatasetError
        Where the file is no list of objects; a sentence with the place.
    """
    return _Splitter(file, source, digest, skim).records()


class _Splitter:
    def __init__(self, file: Path, source: BinaryIO, digest: Digest | None, skim: Skim | None) -> None:
        from msgspec import DecodeError, Raw
        from msgspec.json import Decoder

        self._error: type[Exception] = DecodeError
        self._skip = Decoder(Raw).decode
        self._file = file
        self._source = source
        self._digest = digest
        self._skim_record = skim
        #: How records begin in this file, with their first key; empty until one was read.
        self._beginning = b""
        self._longest = 0
        self._data = b""
        #: where in ``_data`` the next thing begins, and where in the file ``_data`` begins
        self._at = 0
        self._base = 0
        self._ended = False
        #: Half of a surrogate pair stands alone in the record: JSON that Python's parser takes and msgspec does
        #: not. Blanking it costs a pass over all that was read, so that only such a record is worth it.
        self._half_pairs = False

    def records(self) -> Iterator[Chunk]:
        while len(self._data) < len(_BOM) and self._read_more():
            pass
        if self._data.startswith(_BOM):
            self._at = len(_BOM)
        first = self._next_byte()
        if first == b"{":
            yield self._record()
        elif first == b"[":
            self._at += 1
            yield from self._list()
        else:
            self._refuse("expected a list of records, or one record")
        if self._next_byte():
            self._refuse("there is more after the end of the records")

    def _list(self) -> Iterator[Chunk]:
        if self._next_byte() == b"]":
            self._at += 1
            return
        while True:
            if self._next_byte() != b"{":
                self._refuse("expected an object")
            yield self._record()
            separator = self._next_byte()
            self._at += 1
            if separator == b"]":
                return
            if separator != b",":
                self._refuse("expected ',' or ']'")

    def _record(self) -> Chunk:
        """The object that begins here, read to its end."""
        chunk = self._guessed() or self._exact()
        self._longest = max(self._longest, len(chunk.data))
        if not self._beginning and (match := _FIRST_KEY.match(chunk.data)):
            self._beginning = match[1]
        return chunk

    def _guessed(self) -> Chunk | None:
        """The record up to where the next one seems to begin, if ``skim`` accepts it: one pass instead of two.

        The next one begins where this file's first key comes next as the first key of an object. Inside a
        text it could not stand so, with its quotes not escaped; in an object further inside it could, and
        then ``skim``, for which that is no whole JSON, refuses.
        """
        if self._skim_record is None or not self._beginning:
            return None
        while True:
            found = self._data.find(self._beginning, self._at + len(self._beginning))
            between = (
                _BETWEEN.search(self._data, max(self._at, found - _WIDEST), found) if found > 0 else None
            )
            if between is not None:
                view = memoryview(self._data)[self._at : between.start() + 1]
                skimmed = self._skim_record(view)
                if skimmed is None:
                    return None
                return self._taken(view, skimmed)
            waited_for = len(self._data) - self._at
            if found > 0 or waited_for > 2 * self._longest + BLOCK or not self._read_more():
                return None

    def _taken(self, view: memoryview, skimmed: Skimmed | None) -> Chunk:
        chunk = Chunk(self._base + self._at, view, skimmed)
        self._at += len(view)
        return chunk

    def _exact(self) -> Chunk:
        self._half_pairs = False
        while True:
            view = memoryview(self._data)[self._at :]
            try:
                self._skip(_HALF_PAIR.sub(_BLANK_ESCAPE, view) if self._half_pairs else view)
            except self._error as error:
                length = self._length(view, str(error))
            except RecursionError:
                self._refuse("it is nested too deeply")
            else:
                length = self._data.rindex(b"}") + 1 - self._at  # blanks may follow
            if length is not None:
                whole = view[:length]
                return self._taken(whole, self._skim_record(whole) if self._skim_record else None)

    def _length(self, view: memoryview, problem: str) -> int | None:
        """How long the value at the start of ``view`` is; None if more was read and it must be tried again."""
        if match := _TRAILING.search(problem):
            return self._data.rindex(b"}", self._at, self._at + int(match[1]) - 1) + 1 - self._at
        place = _AT_BYTE.fullmatch(problem)
        cut = place is None or int(place[2]) > len(view) - _CUT
        if not (cut and self._read_more()):
            if self._half_pairs:
                self._refuse(place[1] if place else problem, self._at + int(place[2]) - 1 if place else None)
            self._half_pairs = True
        return None

    def _next_byte(self) -> bytes:
        """The first byte that is not blank; empty at the end of the file."""
        while True:
            while self._at < len(self._data) and self._data[self._at] in _BLANK:
                self._at += 1
            if self._at < len(self._data):
                return self._data[self._at : self._at + 1]
            if not self._read_more():
                return b""

    def _read_more(self) -> bool:
        """Read on, dropping what is done with; False at the end of the file."""
        if self._ended:
            return False
        kept = self._data[self._at :]
        # as much again as there is, so that a record that needs many blocks is not skipped over many times
        block = self._source.read(max(BLOCK, len(kept)))
        self._ended = not block
        if self._digest is not None:
            self._digest.update(block)
        self._base += self._at
        self._data, self._at = kept + block, 0
        return not self._ended

    def _refuse(self, problem: str, at: int | None = None) -> NoReturn:
        offset = self._base + (self._at if at is None else at)
        diagnose(self._file, READ_WHOLE)
        if self._ended and at is None:
            raise DatasetError(
                f"{self._file}: the JSON ends too early ({problem} at byte {offset}); it seems truncated, "
                "fetch it again"
            )
        raise DatasetError(
            f"{self._file}: is not JSON that can be used ({problem} at byte {offset}); fetch it again"
        )
