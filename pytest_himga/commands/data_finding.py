"""``himga data``: which dataset a name or path means on this machine, and what it claims to be.

Nothing here downloads: a published dataset that is nowhere is an error that names the command which does.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_himga.data import opening
from pytest_himga.data.files import exists, files_of
from pytest_himga.data.opening import DEMO, DEMO_PARTS, Access, open_dataset
from pytest_himga.data.published import PUBLISHED, Published, find_published, megabytes
from pytest_himga.data.store import Store, check_digest
from pytest_himga.errors import DatasetError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pytest_himga.data.dataset import Dataset

NOT_HERE = "not here"
OWN_LICENCE = "MIT"
#: Bytes; below it a size in MB would say nothing.
_SMALL = 100_000


@dataclass(frozen=True)
class Here:
    """A dataset that lies on this machine.

    ``claim`` is the published dataset whose name or file name it has; ``by_name`` says that it was asked for
    by a published name, so that a run would insist on the published bytes.
    """

    dataset: Dataset
    claim: Published | None = None
    by_name: bool = False

    @property
    def is_own(self) -> bool:
        """Whether it is part of this package."""
        return self.dataset.path in {demo_path(part) for part in DEMO_PARTS}

    def check(self, sha256: str, allow_unverified: bool) -> str | None:
        """Compare ``sha256`` with what it should be; see ``store.check_digest``."""
        if self.claim is None:
            return None
        return check_digest(self.claim, sha256, allow_unverified, path=self.dataset.path)


def parts_of(names: Iterable[str]) -> list[str]:
    """``names`` with the parts of the demo in place of ``demo``."""
    return [part for name in names for part in (DEMO_PARTS if name == DEMO else (name,))]


def demo_path(part: str) -> Path:
    """Where a part of the demo lies."""
    return Path(opening.__file__).parent / "demo" / DEMO_PARTS[part]


def whereabouts(name: str, store: Store) -> Path:
    """Where the dataset ``name`` lies.

    Raises
    ------
    DatasetError
        If it is published and not here; ``UnknownDataset`` if it is neither.
    """
    if name in DEMO_PARTS:
        return demo_path(name)
    if store.find(name) is None:
        _refuse_if_published(name)
    return store.obtain(name, offline=True)


def open_here(
    spec: str, data_dir: Path | None, *, labels: str | None = None, order: str | None = None
) -> Here:
    """Open what ``spec`` (a name, a path or ``NAME=PATH``) means; raises ``DatasetError``."""
    store = Store(data_dir)
    renamed = "=" in spec and not exists(Path(spec))
    target = spec.partition("=")[2].strip() if renamed else spec
    found = store.find(target)
    if found is None and not exists(Path(target)):
        _refuse_if_published(target)
    dataset = open_dataset(
        spec,
        labels=labels or "locomo",
        session_order=order or "time",
        access=Access(data_dir=data_dir, offline=True, allow_unverified=True),
    )
    if renamed:  # ... which is how one says that it is another version
        return Here(dataset)
    published = find_published(target)
    if published is not None and found == dataset.path:
        return Here(dataset, published, by_name=True)
    return Here(dataset, _by_file_name(dataset.path))


def published_with(sha256: str) -> Published | None:
    """The published dataset whose file has this digest."""
    return next((one for one in PUBLISHED.values() if one.sha256 == sha256), None)


def _by_file_name(path: Path) -> Published | None:
    name = path.name.removesuffix(".gz")
    return next((one for one in PUBLISHED.values() if name in (one.file, one.upstream_file)), None)


def _refuse_if_published(name: str) -> None:
    published = find_published(name)
    if published is not None:
        raise DatasetError(
            f"{name}: not on this machine; `himga data fetch {name}` downloads it ({megabytes(published.size)})"
        )


# -- what there is -----------------------------------------------------------------------------------


def listed(store: Store) -> Iterator[tuple[str, ...]]:
    """A row (name, size, licence, sha256, where) for each dataset: our own, the published, and others here."""
    for part in DEMO_PARTS:
        yield part, _size(demo_path(part)), OWN_LICENCE, "-", str(demo_path(part))
    taken = set()
    for published in PUBLISHED.values():
        path = store.find(published.name)
        taken.add(path)
        size = megabytes(published.size) if path is None else _size(path)
        digest = published.sha256[:12] if published.sha256 else "no digest is published"
        also = f" ({', '.join(published.aliases)})" if published.aliases else ""
        yield published.name + also, size, published.licence, digest, str(path or NOT_HERE)
    for path in _lying_around(store):
        if path not in taken:
            name = path.name.removesuffix(".gz").removesuffix(".json")
            # A name that means another file is no name of this one.
            yield name if store.find(name) == path else str(path), _size(path), "-", "-", str(path)


def _lying_around(store: Store) -> Iterator[Path]:
    for folder in store.places:
        try:
            entries = sorted(folder.iterdir(), key=lambda entry: entry.name)
        except OSError:
            continue
        yield from (entry for entry in entries if _may_be_dataset(entry))


def _may_be_dataset(entry: Path) -> bool:
    """Whether it has the look of one; what is in it is not looked at."""
    if entry.name.startswith("."):
        return False
    try:
        if entry.is_dir():
            return bool(files_of(entry))
    except (OSError, DatasetError):
        return False
    return entry.name.endswith((".json", ".json.gz"))


def _size(path: Path) -> str:
    try:
        size = sum(file.stat().st_size for file in files_of(path)[0])
    except (OSError, DatasetError):
        return "not readable"
    return megabytes(size) if size >= _SMALL else f"{size:,} bytes"
