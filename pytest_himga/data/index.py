"""The index of a dataset's files, in the data room: what collecting a run needs, and where the rest lies.

Built once per version of a file, by streaming it, and kept as JSON in the cache folder: sha256, family,
warnings, and for each sample its questions and the bytes where its record stands. A start with an index
that fits reads nothing else, whatever the size of the file. An index fits as long as size, time stamp and
inode of each file, and this package's own code, are what they were.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from contextlib import contextmanager
from dataclasses import fields, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_himga.data.caches import remove_copies, tidy
from pytest_himga.data.files import files_of, is_gzip
from pytest_himga.data.identity import slug_of_name
from pytest_himga.data.indexed import FileState, Index, IndexedSample, OpenedIndex, state_of
from pytest_himga.data.schema import Brief
from pytest_himga.errors import DatasetError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pytest_himga.data.family import Family, ReadOptions

#: What was written less than this before it had been read may be written again within the same tick of
#: its time stamp; the next start reads it once more. Reading a large file takes longer than that.
_TICK_NS = 100_000_000
#: A file server's clock may be ahead of ours by this much; a stamp beyond it is no recent write, and would
#: have the file read again at every start until its time has come.
_SKEW_NS = 600_000_000_000


def open_index(path: Path, families: Sequence[Family], options: ReadOptions, folder: Path) -> OpenedIndex:
    """The index of the dataset at ``path``, as it lies in ``folder``, or built and put there.

    Several processes may ask at once: one builds, the others wait for it.

    Raises
    ------
    DatasetError
        For whatever is wrong with the dataset, and if ``folder`` cannot be written.
    """
    paths, is_folder = files_of(path)
    place = folder / _name(path, options)
    index = _stored(place, paths)
    if index is None:
        from filelock import FileLock

        try:
            folder.mkdir(parents=True, exist_ok=True)
            with FileLock(place.with_suffix(".lock")):
                index = _stored(place, paths)
                if index is None:
                    index = _build(path, paths, is_folder, families, options, place)
                    _write(place, index)
                    remove_copies(place, *(state.unpacked for state in index.files))
                    tidy(folder, place)
        except OSError as error:
            raise DatasetError(
                f"{folder}: the index of {path} cannot be kept here ({error.strerror or error}); make the "
                "folder writable, or free space there"
            ) from error
    data = [
        folder / state.unpacked if state.unpacked else file
        for state, file in zip(index.files, paths, strict=True)
    ]
    index.warnings = [_with_paths(text, paths) for text in index.warnings]
    return OpenedIndex(index, paths, data)


def _build(
    path: Path,
    paths: list[Path],
    is_folder: bool,
    families: Sequence[Family],
    options: ReadOptions,
    place: Path,
) -> Index:
    from pytest_himga.data.indexing import Indexing

    states = [
        state_of(file, f"{place.stem}-{n}.unpacked" if is_gzip(file) else "") for n, file in enumerate(paths)
    ]
    data = [
        _unpacked(file, place.with_name(state.unpacked)) if state.unpacked else file
        for file, state in zip(paths, states, strict=True)
    ]
    found = Indexing(paths, data, families, options).run(path, is_folder)
    now = time.time_ns()
    for file, state in zip(paths, states, strict=True):
        if state_of(file, state.unpacked) != state:
            raise DatasetError(f"{file}: the file changed while it was read; run it again")
    return Index(
        code=_code(),
        family=found.family,
        sha256=found.sha256,
        young=any(-_TICK_NS < state.mtime_ns - now < _SKEW_NS for state in states),
        files=states,
        samples=found.samples,
        warnings=[_without_paths(text, paths) for text in found.warnings],
        source=_as_text(os.path.realpath(path)),
    )


def _unpacked(file: Path, target: Path) -> Path:
    from pytest_himga.data.files import unpack

    with _whole(target) as partial, partial.open("wb") as opened:
        unpack(file, opened)
        opened.flush()
        os.fsync(opened.fileno())  # else a power cut could leave a name without its bytes
    return target


@contextmanager
def _whole(target: Path) -> Iterator[Path]:
    """Where to write ``target``, which is there when all of it is; nothing stays of what was broken off."""
    partial = target.with_suffix(".part")
    try:
        yield partial
        partial.replace(target)
    except BaseException:  # Ctrl-C as well: what is there of it may be gigabytes
        partial.unlink(missing_ok=True)
        raise


# -- keeping -----------------------------------------------------------------------------------------


def _name(path: Path, options: ReadOptions) -> str:
    resolved = os.path.realpath(path)
    key = hashlib.sha256(f"{resolved}\0{options.labels}".encode("utf-8", "surrogateescape")).hexdigest()[:12]
    return f"{slug_of_name(path.name)}-{key}.json"


@cache
def _code() -> str:
    """A digest of this room's code: what another version of it made is made anew."""
    digest = hashlib.sha256()
    for file in sorted(Path(__file__).parent.rglob("*.py")):
        digest.update(file.read_bytes())
    return digest.hexdigest()


def _stored(place: Path, paths: list[Path]) -> Index | None:
    """The index at ``place`` if it is there, whole, and about these files as they are now."""
    try:
        index = _decoded(place.read_bytes())
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):  # no index at all
        return None
    states = [state_of(file) for file in paths]
    if (
        index.young
        or index.code != _code()
        or [replace(state, unpacked="") for state in index.files] != states
    ):
        return None
    if any(s.unpacked and not place.with_name(s.unpacked).exists() for s in index.files):
        return None
    return index


def _write(place: Path, index: Index) -> None:
    # the standard library's JSON: it lets lone surrogates through, which questions may hold
    text = json.dumps(index, default=_fields, separators=(",", ":"))
    with _whole(place) as partial:
        partial.write_text(text, encoding="utf-8")


def _as_text(path: str) -> str:
    try:
        path.encode()
    except UnicodeEncodeError:  # a name that is no UTF-8
        return ""
    return path


def _fields(value: Any) -> dict[str, Any]:
    return {one.name: getattr(value, one.name) for one in fields(value)}


def _decoded(data: bytes) -> Index:
    import msgspec

    try:
        return msgspec.json.decode(data, type=Index)
    except msgspec.DecodeError:  # half a surrogate pair in a question, or no index
        return _index_of(json.loads(data))


def _index_of(content: dict[str, Any]) -> Index:
    states = [FileState(**state) for state in content.pop("files")]
    samples = [
        IndexedSample(**{**sample, "briefs": [Brief(**brief) for brief in sample["briefs"]]})
        for sample in content.pop("samples")
    ]
    return Index(**content, files=states, samples=samples)


def _without_paths(text: str, paths: list[Path]) -> str:
    """A warning that names its file by number: the next start may have another way to say the same path."""
    for number, path in enumerate(paths):
        if text.startswith(f"{path}:"):
            return f"\0{number}{text[len(str(path)) :]}"
    return text


def _with_paths(text: str, paths: list[Path]) -> str:
    number, colon, rest = text.partition(":")
    return f"{paths[int(number[1:])]}{colon}{rest}" if number.startswith("\0") else text
