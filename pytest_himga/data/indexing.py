"""One pass over a dataset's files, in the data room: digest, family, questions and where samples lie."""

from __future__ import annotations

import hashlib
import json
import time
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

from pytest_himga.data.family import RawRecord, ReadOptions, Skimmed
from pytest_himga.data.files import decode_record, diagnose, shown, unreadable
from pytest_himga.data.indexed import IndexedSample
from pytest_himga.data.schema import Brief
from pytest_himga.data.stream import READ_WHOLE, split_records
from pytest_himga.data.whole import check_new
from pytest_himga.errors import DatasetError

if TYPE_CHECKING:
    from collections.abc import Iterator, KeysView, Sequence
    from pathlib import Path

    from pytest_himga.data.family import Family
    from pytest_himga.data.stream import Chunk, Digest, Skim


@dataclass
class Found:
    """What a pass over the files brought."""

    family: str
    sha256: str = ""
    samples: list[IndexedSample] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


class Indexing:
    """``paths`` are the files as asked for (errors name these), ``data`` the same uncompressed."""

    def __init__(
        self, paths: list[Path], data: list[Path], families: Sequence[Family], options: ReadOptions
    ) -> None:
        self._paths = paths
        self._data = data
        self._families = families
        self._options = options

    def run(self, path: Path, is_folder: bool) -> Found:
        """Read everything once; raises ``DatasetError`` for what is wrong with it."""
        family = self.family(path)
        found = Found(family.name)
        digests: list[tuple[str, str]] = []
        taken: dict[str, Path] = {}
        for number, (file, data) in enumerate(zip(self._paths, self._data, strict=True)):
            with _Sha256() as digest:
                for chunk in chunks_of(file, data, digest, family.skim):
                    raw = RawRecord({}, len(found.samples), file, found.warnings)
                    skimmed = self._skimmed(family, chunk, raw)
                    check_new(skimmed.sample_id, file, taken, family)
                    found.samples.append(
                        IndexedSample(
                            skimmed.sample_id, number, chunk.offset, len(chunk.data), skimmed.briefs
                        )
                    )
                digests.append((file.name, digest.hexdigest()))
        found.sha256 = joined(digests) if is_folder else digests[0][1]
        return found

    def _skimmed(self, family: Family, chunk: Chunk, raw: RawRecord) -> Skimmed:
        skimmed = chunk.skimmed
        if skimmed is None:
            data = decode_record(raw.file, bytes(chunk.data), chunk.offset)
            self._check_family(family, raw.file, data.keys())
            sample = family.read(RawRecord(data, raw.number, raw.file, raw.warnings), self._options)
            skimmed = Skimmed(sample.sample_id, [Brief.of(question) for question in sample.qa_pairs])
        if family.ordered:
            for brief in skimmed.briefs:
                brief.refs = []  # an index serves both orders
        return skimmed

    def _check_family(self, family: Family, file: Path, keys: KeysView[str]) -> None:
        """Tell a record of another format from one that lacks a field."""
        if not family.keys <= keys:
            for other in self._families:
                if other.keys <= keys:
                    raise DatasetError(
                        f"{file}: holds a record in the format {other.name}, and the first is in {family.name}; a "
                        "dataset has one format, so name these files one by one"
                    )

    def family(self, path: Path) -> Family:
        """The family, by the keys of the first record that has all keys of one."""
        from msgspec import DecodeError, Raw
        from msgspec.json import Decoder

        decode = Decoder(dict[str, Raw]).decode
        first: list[str] | None = None
        for file, data in zip(self._paths, self._data, strict=True):
            for chunk in chunks_of(file, data):
                try:
                    keys = list(decode(chunk.data))
                except DecodeError:  # half a surrogate pair, which Python's own parser takes
                    keys = list(decode_record(file, bytes(chunk.data), chunk.offset))
                first = keys if first is None else first
                # any record: a loader says better than this which field a broken first one lacks
                for family in self._families:
                    if family.keys <= set(keys):
                        return family
        for file in self._paths:
            diagnose(file, READ_WHOLE)  # the letters, which splitting does not look at
        if first is None:
            raise DatasetError(f"{path}: holds no record; a dataset has at least one sample")
        found = ", ".join(shown(key) for key in first[:12]) or "none"
        known = "; ".join(f"{f.name} has {', '.join(sorted(f.keys))}" for f in self._families)
        raise DatasetError(
            f"{self._paths[0]}: no known format; the first record's keys are {found}; known: {known}"
        )


class _Sha256:
    """Sha256 beside the reading, in a thread: hashing leaves the interpreter to others meanwhile."""

    def __init__(self) -> None:
        self._sha256 = hashlib.sha256()
        self._thread = ThreadPoolExecutor(1, "himga-sha256")
        self._going_on: Future[None] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.shutdown()

    def update(self, data: bytes, /) -> None:
        """Take the next bytes; the ones before are done then, so that no more than these are kept for it."""
        self._wait()
        self._going_on = self._thread.submit(self._sha256.update, data)
        time.sleep(0)

    def hexdigest(self) -> str:
        """The digest of all bytes."""
        self._wait()
        return self._sha256.hexdigest()

    def _wait(self) -> None:
        if self._going_on is not None:
            self._going_on.result()


def chunks_of(
    file: Path, data: Path, digest: Digest | None = None, skim: Skim | None = None
) -> Iterator[Chunk]:
    """The records of one file, see ``stream.split_records``."""
    try:
        with data.open("rb", buffering=0) as source:
            yield from split_records(file, source, digest, skim)
    except OSError as error:
        unreadable(file, error)


def joined(digests: list[tuple[str, str]]) -> str:
    """The digest of a folder, of the (name, sha256) pairs of its files."""
    return hashlib.sha256(json.dumps(digests).encode()).hexdigest()
