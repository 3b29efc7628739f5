"""The cache's file, in the llm room: one SQLite database, and one connection to it.

::

    replies     fingerprint (64 hex, key) | reply (the model's own text) | model | server

With a rollback journal, not a write-ahead log: between two writes the one file is all there is, so that
it can be copied or committed. Nothing in it tells when it was made, and nothing is secret.
"""

from __future__ import annotations

import sqlite3
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

#: Seconds. A write takes milliseconds; a hundred workers in a queue take less than this.
PATIENCE = 60.0
#: "himg": whose database it is, for ``file`` and for us.
APPLICATION_ID = 0x68696D67
#: Of the table below; a file that says more was written by a version that is not born yet.
SCHEMA = 1
_TABLE = """
    CREATE TABLE replies (
        fingerprint TEXT NOT NULL PRIMARY KEY,
        reply TEXT NOT NULL,
        model TEXT NOT NULL,
        server TEXT NOT NULL
    )
"""
_ELSE = "delete it, or name another with --himga-cache"
_REASONS = {
    sqlite3.SQLITE_NOTADB: f"it is no SQLite database ({_ELSE})",
    sqlite3.SQLITE_CORRUPT: f"it is damaged ({_ELSE})",
    sqlite3.SQLITE_FULL: "the disk is full",
    sqlite3.SQLITE_BUSY: f"another program has held it for {PATIENCE:g} s",
    sqlite3.SQLITE_READONLY: "it is write-protected",
    sqlite3.SQLITE_READONLY_ROLLBACK: "the last program that wrote to it was killed; "
    "a run that may write to it (without read) mends it",
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened, or its folder takes no new file",
}


class CacheTrouble(Exception):
    """What keeps the file from being used, as a sentence without its end."""


class Entry(NamedTuple):
    """A row of the table. ``server`` is a base URL that is free of credentials."""

    fingerprint: str
    reply: str
    model: str
    server: str


class CacheFile:
    """A connection, which belongs to the thread that made it; each method raises ``CacheTrouble``.

    Without ``writes`` the file must be there, and nothing is made or changed beside it or in it.
    """

    def __init__(self, path: Path, *, writes: bool) -> None:
        self._path = path
        with self._explained("opened"):
            if writes:
                path.parent.mkdir(parents=True, exist_ok=True)
            self._db = sqlite3.connect(_uri(path, writes), uri=True, timeout=PATIENCE, isolation_level=None)
        try:
            with self._explained("opened"):
                self._begin(writes)
        except BaseException:
            self._db.close()
            raise

    def get(self, fingerprint: str) -> str | None:
        """The reply that is kept under ``fingerprint``."""
        with self._explained("read"):
            rows = self._db.execute(
                "SELECT reply FROM replies WHERE fingerprint = ?", [fingerprint]
            ).fetchall()
        reply = rows[0][0] if rows else None
        return reply if isinstance(reply, str) else None  # any type fits into any column of SQLite's

    def put(self, entries: Sequence[Entry]) -> None:
        """Keep all ``entries`` or none; the last of one fingerprint wins."""
        with self._explained("written"), self._transaction("IMMEDIATE"):
            self._db.executemany("INSERT OR REPLACE INTO replies VALUES (?, ?, ?, ?)", entries)

    def close(self) -> None:
        """Give the file back."""
        self._db.close()

    def _begin(self, writes: bool) -> None:
        found = self._marks()
        if found == (0, 0) and writes:
            self._create()
            found = self._marks()
        application, schema = found
        if application != APPLICATION_ID:
            raise CacheTrouble(f"the cache {self._path} is no cache of pytest-himga ({_ELSE})")
        if schema != SCHEMA:
            raise CacheTrouble(
                f"the cache {self._path} is of another version of pytest-himga (its format is {schema}, this "
                f"version knows {SCHEMA}; update pytest-himga, or name another with --himga-cache)"
            )
        if writes and _has_write_ahead_log(self._path):  # a person's tool has seen to that
            self._db.execute("PRAGMA journal_mode = DELETE")

    def _marks(self) -> tuple[int, int]:
        # In one transaction: somebody may be making the file, and sets both at once.
        with self._transaction("DEFERRED"):
            application, schema = (
                self._db.execute(f"PRAGMA {name}").fetchall()[0][0]
                for name in ("application_id", "user_version")
            )
        return application, schema

    def _create(self) -> None:
        """Make the table, unless another process was faster or the file is somebody else's."""
        self._db.execute("PRAGMA journal_mode = DELETE")
        with self._transaction("IMMEDIATE"):
            if not self._db.execute("SELECT 1 FROM sqlite_master").fetchall():
                self._db.execute(_TABLE)
                self._db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                self._db.execute(f"PRAGMA user_version = {SCHEMA}")

    @contextmanager
    def _transaction(self, kind: Literal["DEFERRED", "IMMEDIATE"]) -> Iterator[None]:
        """IMMEDIATE for a write: of two that both began by reading, neither could go on to write."""
        self._db.execute(f"BEGIN {kind}")
        with self._db:
            yield

    @contextmanager
    def _explained(self, doing: str) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            reason = _reason(error, self._path)
            raise CacheTrouble(f"the cache {self._path} cannot be {doing}: {reason}") from None


def _uri(path: Path, writes: bool) -> str:
    uri = path.absolute().as_uri()
    if writes:
        return f"{uri}?mode=rwc"
    # SQLite makes two files beside one with a write-ahead log, even to read it, unless it never changes.
    return f"{uri}?mode=ro&immutable=1" if _has_write_ahead_log(path) else f"{uri}?mode=ro"


def _has_write_ahead_log(path: Path) -> bool:
    """Whether the header says so: bytes 18 and 19, the file format's read and write versions, are 2."""
    try:
        with path.open("rb") as file:
            return file.read(20)[18:] == b"\2\2"
    except OSError:
        return False  # SQLite will say what is wrong


def _reason(error: sqlite3.Error | OSError, path: Path) -> str:
    if isinstance(error, OSError):
        return error.strerror or str(error)
    if path.is_dir():
        return "it is a folder"
    # Without a code it is Python's own error: a text that is no UTF-8.
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT)
    if code & 0xFF == sqlite3.SQLITE_CANTOPEN and not path.exists():
        return "it is not there, or its folder may not be looked into"
    return _REASONS.get(code) or _REASONS.get(code & 0xFF) or str(error)
