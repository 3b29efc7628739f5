"""What an index keeps, in the data room; ``index`` finds it, ``indexing`` makes it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pytest_himga.data.files import unreadable
from pytest_himga.data.schema import Brief  # noqa: TC001 - msgspec reads the annotations of what it decodes
from pytest_himga.errors import DatasetError

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True)
class FileState:
    """What tells that a file is still the one that was read; ``unpacked`` names the copy of a ``.gz``."""

    name: str
    size: int
    mtime_ns: int
    inode: int
    unpacked: str = ""


@dataclass
class IndexedSample:
    """One sample: its record is the ``length`` bytes from ``offset`` of the uncompressed file ``file``."""

    sample_id: str
    file: int
    offset: int
    length: int
    briefs: list[Brief]


@dataclass
class Index:
    """What is kept.

    ``sha256`` is hex over the uncompressed bytes, so that a file and its ``.gz`` are one version of the
    data; for a folder over the sorted (name, sha256) pairs of its files. ``source`` is the dataset's own
    path, "" where that is no text; ``code`` is a digest of the code that made it; ``young`` says that a file
    had only just been written.
    """

    code: str
    family: str
    sha256: str
    young: bool
    files: list[FileState]
    samples: list[IndexedSample] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    source: str = ""


@dataclass(frozen=True)
class OpenedIndex:
    """An index that fits. ``paths`` are the dataset's files as asked for, ``data`` the same uncompressed."""

    index: Index
    paths: list[Path]
    data: list[Path]

    def check_unchanged(self, file: int) -> None:
        """Refuse to read on in a file that is no longer the one that was indexed."""
        kept = self.index.files[file]
        if state_of(self.paths[file], kept.unpacked) != kept:
            raise DatasetError(f"{self.paths[file]}: the file changed while the run went on; run it again")


def state_of(path: Path, unpacked: str = "") -> FileState:
    """What tells this version of the file from any other; raises ``DatasetError``."""
    try:
        found = path.stat()
    except OSError as error:
        unreadable(path, error)
    return FileState(path.name, found.st_size, found.st_mtime_ns, found.st_ino, unpacked)
