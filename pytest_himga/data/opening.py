"""From a name on the command line to an opened dataset, in the data room.

A dataset is asked for by a built-in name, a published name, a name in the data folder, a path, or
``NAME=PATH``; its format is told from the records' keys, never from the name.
"""

from __future__ import annotations

import os
import sys
import warnings as python_warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_himga.data.caches import index_folder
from pytest_himga.data.dataset import Dataset, StoredSamples
from pytest_himga.data.families import FAMILIES
from pytest_himga.data.family import ReadOptions
from pytest_himga.data.files import exists, shown
from pytest_himga.data.identity import slug_of_name
from pytest_himga.data.index import open_index
from pytest_himga.errors import DatasetError, DatasetWarning, UnknownDataset, nearest

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_himga.data.progress import Reporter
    from pytest_himga.data.published import Published
    from pytest_himga.data.schema import Sample
    from pytest_himga.data.store import Store

#: Data of our own in the package: small, in each of the formats. The one name stands for all of them.
DEMO = "demo"
DEMO_PARTS = {
    "demo-locomo": "locomo.json",
    "demo-longmemeval": "longmemeval.json",
    "demo-memorystress": "memorystress.json",
}


def _say_nothing(text: str) -> None:
    del text


@dataclass(frozen=True)
class Access:
    """How datasets are found and fetched.

    ``data_dir`` is looked into first; relative paths start at ``base`` (default: the current folder).
    ``offline`` opens no socket; ``allow_unverified`` takes data whose digest is another than the published
    one; ``index_folder`` is where indexes are kept (default: the platform's cache folder). ``announce``
    gets what a person should read once, ``progress`` the downloads' progress.
    """

    data_dir: Path | None = None
    base: Path | None = None
    offline: bool = False
    allow_unverified: bool = False
    index_folder: Path | None = None
    announce: Callable[[str], None] = _say_nothing
    progress: Reporter | None = None


def split_names(text: str, *, base: Path | None = None) -> list[str]:
    """Split a ``--himga-dataset`` value at its commas, unless the whole of it is a path that exists."""
    spec = text.strip()
    if not spec:
        return []
    name, _, path = spec.partition("=")
    # A comma before the "=" parts two datasets: `a.json,b=b.json` does not call b.json "a.json,b".
    if exists(_path(spec, base)) or (path and "," not in name and exists(_path(path, base))):
        return [spec]
    parts = [part.strip() for part in text.split(",") if part.strip()]
    return [name for part in parts for name in (DEMO_PARTS if part == DEMO else (part,))]


def open_dataset(
    spec: str,
    *,
    data_dir: Path | None = None,
    base: Path | None = None,
    labels: str = "locomo",
    session_order: str = "time",
    access: Access | None = None,
) -> Dataset:
    """Open what ``spec`` asks for: a name, a path, or ``NAME=PATH``. Reads its index, not the whole file.

    A published dataset that is nowhere is downloaded, and its digest is checked before anything of it is
    used. ``data_dir`` and ``base`` are short for those of ``access``.

    Raises
    ------
    UnknownDataset
        For a name that is nowhere.
    DatasetError
        For a file that cannot be fetched or used.
    """
    access = access or Access(data_dir=data_dir, base=base)
    name, path, published = _located(spec.strip(), access)
    options = ReadOptions(labels=labels, session_order=session_order)
    folder = access.index_folder or index_folder()
    opened = open_index(path, list(FAMILIES.values()), options, folder)
    family = FAMILIES[opened.index.family]
    unverified = ""
    if published is not None:
        from pytest_himga.data.store import check_digest

        unverified = check_digest(published, opened.index.sha256, access.allow_unverified, path=path) or ""
    return Dataset(
        name=slug_of_name(name),
        family=family.name,
        path=path,
        options=options,
        opened=opened,
        stored=StoredSamples(opened, family, options),
        sample_names=_sample_names(path, [sample.sample_id for sample in opened.index.samples]),
        type_labels=family.type_labels(labels),
        ordered=family.ordered,
        unverified=unverified,
    )


def load_dataset(name: str) -> list[Sample]:
    """Return the samples of the dataset ``name``, see ``open_dataset``; emits its ``DatasetWarning``s.

    ``demo`` is all of its parts. A download is shown on stderr, with the licence. Raises
    ``UnknownDataset``, a ``ValueError``, if there is none of that name.
    """
    from pytest_himga.data.progress import announce, terminal_progress

    access = Access(announce=announce, progress=terminal_progress(sys.stderr))
    samples: list[Sample] = []
    for part in DEMO_PARTS if name == DEMO else (name,):
        dataset = open_dataset(part, access=access)
        for text in dataset.warnings:
            python_warnings.warn(DatasetWarning(text), stacklevel=2)
        samples += dataset.samples
    return samples


# -- finding -----------------------------------------------------------------------------------------


def _located(spec: str, access: Access) -> tuple[str, Path, Published | None]:
    """Find the name and the path of a dataset, and what is published under that name, if anything is."""
    from pytest_himga.data.store import Store

    if not spec:
        raise DatasetError("A dataset's name is missing; write a name, a path or NAME=PATH")
    given, equals, rest = spec.partition("=")
    if equals and not exists(_path(spec, access.base)) and not _looks_like_path(given):
        if not given.strip() or not rest.strip():
            raise DatasetError(
                f"{shown(spec)} is not a dataset; write NAME=PATH with both, or a name or path alone"
            )
        return given.strip(), *_located(rest.strip(), access)[1:]
    if spec in DEMO_PARTS:
        return spec, Path(__file__).parent / "demo" / DEMO_PARTS[spec], None
    if spec == DEMO:
        raise DatasetError(f"{DEMO} is several datasets; name one: {', '.join(DEMO_PARTS)}")
    if _looks_like_path(spec):
        path = _path(spec, access.base)
        if exists(path):
            return _stem(path), path, None
        raise DatasetError(f"{path}: there is no such file or folder; check the path")
    return _by_name(spec, Store(access.data_dir, os.environ), access)


def _by_name(name: str, store: Store, access: Access) -> tuple[str, Path, Published | None]:
    from pytest_himga.data.published import find_published

    published = find_published(name)
    path = _path(name, access.base)
    if store.find(name) is None:
        if exists(path):
            return _stem(path), path, None
        if published is None:
            raise UnknownDataset(_unknown(name, store, path))
    obtained = store.obtain(
        name,
        offline=access.offline,
        allow_unverified=access.allow_unverified,
        progress=access.progress,
        announce=access.announce,
    )
    return name, obtained, published


def _unknown(name: str, store: Store, path: Path) -> str:
    from pytest_himga.data.published import published_names

    lying_there = (found for folder in store.places for found in _names_in(folder))
    known = {DEMO, *DEMO_PARTS, *published_names(), *lying_there} - {name}
    return (
        f"There is no dataset {shown(name)}: {store.looked_at(name)}, and there is no file {path}; "
        f"{nearest(name, known)}"
    )


def _names_in(folder: Path) -> set[str]:
    try:
        entries = list(folder.iterdir())
        return {
            _stem(entry) for entry in entries if entry.name.endswith((".json", ".json.gz")) or entry.is_dir()
        }
    except OSError:
        return set()


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


def _sample_names(path: Path, sample_ids: list[str]) -> list[str]:
    taken: dict[str, str] = {}
    for sample_id in sample_ids:
        slug = slug_of_name(sample_id)
        if slug in taken:
            raise DatasetError(
                f"{path}: the samples {shown(taken[slug])} and {shown(sample_id)} would both be called {slug} "
                "in ids; rename one"
            )
        taken[slug] = sample_id
    return list(taken)
