"""From a name on the command line to an opened dataset.

A dataset is asked for by a built-in name, a name in the data folder, a path, or ``NAME=PATH``; its
format is told from the records' keys, never from the name.
"""

from __future__ import annotations

import os
import warnings as python_warnings
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_himga.data import locomo
from pytest_himga.data.dataset import Dataset
from pytest_himga.data.files import RecordFile, exists, read_records, shown
from pytest_himga.data.identity import slug_of_name
from pytest_himga.errors import DatasetError, DatasetWarning, UnknownDataset, nearest

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_himga.data.schema import Sample

DEMO = "demo"
DATA_DIR_VARIABLE = "HIMGA_DATA_DIR"
#: Where a dataset's published file is not called like the dataset.
_PUBLISHED_AS = {"locomo": "locomo10"}


@dataclass(frozen=True)
class Family:
    """A format: the keys that each of its records has, and how it is read.

    ``read(source, warnings, labels)`` returns the samples and appends to ``warnings``;
    ``type_labels(labels)`` maps each question type to its printed label, in printing order.
    """

    keys: frozenset[str]
    read: Callable[[RecordFile, list[str], str], list[Sample]]
    type_labels: Callable[[str], dict[str, str]]


FAMILIES: dict[str, Family] = {
    locomo.FAMILY: Family(locomo.KEYS, locomo.read_locomo, locomo.type_labels),
}


def split_names(text: str, *, base: Path | None = None) -> list[str]:
    """Split a ``--himga-dataset`` value at its commas, unless the whole of it is a path that exists."""
    spec = text.strip()
    if not spec:
        return []
    name, _, path = spec.partition("=")
    # A comma before the "=" parts two datasets: `a.json,b=b.json` does not call b.json "a.json,b".
    if exists(_path(spec, base)) or (path and "," not in name and exists(_path(path, base))):
        return [spec]
    return [part.strip() for part in text.split(",") if part.strip()]


def open_dataset(
    spec: str, *, data_dir: Path | None = None, base: Path | None = None, labels: str = "locomo"
) -> Dataset:
    """Open what ``spec`` asks for: ``demo``, a name in the data folder, a path, or ``NAME=PATH``.

    ``data_dir`` defaults to ``$HIMGA_DATA_DIR``; relative paths start at ``base`` (default: the current
    folder). Raises ``UnknownDataset`` for a name that is nowhere, ``DatasetError`` for a file that
    cannot be used.
    """
    name, path = _located(spec.strip(), data_dir, base)
    with ExitStack() as stack:
        if path is None:
            from importlib.resources import as_file, files

            path = stack.enter_context(as_file(files("pytest_himga.data") / "demo" / "demo.json"))
        source = read_records(path)
    family_name = _family_of(source)
    family = FAMILIES[family_name]
    warnings: list[str] = []
    samples = family.read(source, warnings, labels)
    return Dataset(
        name=slug_of_name(name),
        family=family_name,
        path=path,
        sha256=source.sha256,
        labels=labels,
        samples=samples,
        sample_names=_sample_names(path, samples),
        warnings=warnings,
        type_labels=family.type_labels(labels),
    )


def load_dataset(name: str) -> list[Sample]:
    """Return the samples of the dataset ``name``, see ``open_dataset``; emits its ``DatasetWarning``s.

    Raises ``UnknownDataset``, a ``ValueError``, if there is none of that name.
    """
    dataset = open_dataset(name)
    for text in dataset.warnings:
        python_warnings.warn(DatasetWarning(text), stacklevel=2)
    return dataset.samples


# -- finding -----------------------------------------------------------------------------------------


def _located(spec: str, data_dir: Path | None, base: Path | None) -> tuple[str, Path | None]:
    """Find the name and the path of a dataset; no path stands for the demo in the package."""
    if not spec:
        raise DatasetError("A dataset's name is missing; write a name, a path or NAME=PATH")
    given, equals, rest = spec.partition("=")
    if equals and not exists(_path(spec, base)) and not _looks_like_path(given):
        if not given.strip() or not rest.strip():
            raise DatasetError(
                f"{shown(spec)} is not a dataset; write NAME=PATH with both, or a name or path alone"
            )
        return given.strip(), _located(rest.strip(), data_dir, base)[1]
    if spec == DEMO:
        return spec, None
    data_dir = _data_dir(data_dir)
    if data_dir is not None and not _looks_like_path(spec):
        for candidate in _candidates(spec):
            if exists(data_dir / candidate):
                return spec, data_dir / candidate
    path = _path(spec, base)
    if exists(path):
        return _stem(path), path
    if _looks_like_path(spec):
        raise DatasetError(f"{path}: there is no such file or folder; check the path")
    raise UnknownDataset(_unknown(spec, data_dir, path))


def _candidates(name: str) -> list[str]:
    """List what a dataset of that name may be called in the data folder, the preferred first."""
    file = _PUBLISHED_AS.get(name, name)
    return [f"{file}.json", f"{file}.json.gz", name]


def _unknown(name: str, data_dir: Path | None, path: Path) -> str:
    if data_dir is None:
        folder = f"no data folder is set (--himga-data-dir or {DATA_DIR_VARIABLE})"
    else:
        file, compressed, subfolder = _candidates(name)
        folder = f"the data folder {data_dir} has no {file}, {compressed} or {subfolder}/"
    known = {DEMO, *_PUBLISHED_AS, *_names_in(data_dir)} - {name}
    return f"There is no dataset {shown(name)}: {folder}, and there is no file {path}; {nearest(name, known)}"


def _names_in(data_dir: Path | None) -> set[str]:
    if data_dir is None:
        return set()
    try:
        entries = list(data_dir.iterdir())
        return {
            _stem(entry) for entry in entries if entry.name.endswith((".json", ".json.gz")) or entry.is_dir()
        }
    except OSError:
        return set()


def _data_dir(given: Path | None) -> Path | None:
    if given is not None:
        return given
    value = os.environ.get(DATA_DIR_VARIABLE, "").strip()
    return Path(value).expanduser() if value else None


def _path(text: str, base: Path | None) -> Path:
    path = Path(text)
    if text.startswith("~"):
        try:
            path = path.expanduser()
        except RuntimeError:  # ~somebody, who has no home here
            return path
    return path if base is None else base / path


def _looks_like_path(text: str) -> bool:
    return "/" in text or os.sep in text or text in (".", "..", "~") or text.endswith((".json", ".gz"))


def _stem(path: Path) -> str:
    """Return ``locomo10`` for ``locomo10.json.gz``, and a folder's own name."""
    name = path.name if path.name not in ("", "..") else path.resolve().name
    return name.removesuffix(".gz").removesuffix(".json") or name


# -- telling what it is ------------------------------------------------------------------------------


def _family_of(source: RecordFile) -> str:
    for name, family in FAMILIES.items():
        # any record: a loader says better than this function which field a broken first one lacks
        if any(family.keys <= record.keys() for record in source.records):
            return name
    found = ", ".join(shown(key) for key in list(source.records[0])[:12]) or "none"
    known = "; ".join(f"{name} has {', '.join(sorted(family.keys))}" for name, family in FAMILIES.items())
    raise DatasetError(
        f"{source.origins[0]}: no known format; the first record's keys are {found}; known: {known}"
    )


def _sample_names(path: Path, samples: list[Sample]) -> list[str]:
    taken: dict[str, str] = {}
    for sample in samples:
        slug = slug_of_name(sample.sample_id)
        if slug in taken:
            raise DatasetError(
                f"{path}: the samples {shown(taken[slug])} and {shown(sample.sample_id)} would both "
                f"be called {slug} in ids; rename one"
            )
        taken[slug] = sample.sample_id
    return list(taken)
