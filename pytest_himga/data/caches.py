"""Folders for what can be made or fetched again, in the data room: datasets and their indexes."""

from __future__ import annotations

import os
import time
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

_SCRATCH = "check-"
#: Seconds. No check of a dataset takes as long.
_DAY = 86_400


def cache_root() -> Path | None:
    """The user's cache folder for himga; None where the machine has none (no home, as in some CI)."""
    from platformdirs import user_cache_path

    try:
        folder = user_cache_path("pytest-himga", appauthor=False)
    except (OSError, RuntimeError):
        return None
    return folder if folder.is_absolute() else None  # "~" that stands for nothing stays in it


def index_folder() -> Path:
    """Where indexes are kept: the user's cache folder; a temporary one where that cannot be written."""
    root = cache_root()
    if root is None:
        return _temporary_folder()
    folder = root / "index"
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        if os.access(folder, os.W_OK | os.X_OK):
            return folder
    return _temporary_folder()


@cache
def _temporary_folder() -> Path:
    import atexit
    import shutil
    import tempfile

    folder = Path(tempfile.mkdtemp(prefix="himga-index-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """A folder beside the indexes for what may be large and is not kept."""
    import shutil
    import tempfile

    scratch = Path(tempfile.mkdtemp(prefix=_SCRATCH, dir=index_folder()))
    try:
        yield scratch
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def tidy(folder: Path, kept: Path) -> None:
    """Remove the indexes in ``folder`` whose dataset is gone, with what belongs to them; ``kept`` stays.

    What a killed process left in a ``scratch_folder`` goes as well, once it is a day old.

    Safe beside other runs: one that builds or is about to build holds the index's lock, and one that reads
    a dataset that is gone stops anyhow. Lock files stay, since somebody may be waiting for one; they are
    empty. What cannot be looked at or removed stays too: it is only in the way.
    """
    import shutil

    from filelock import FileLock, Timeout

    with suppress(OSError):
        for scratch in folder.glob(f"{_SCRATCH}*"):
            if scratch.is_dir() and abs(time.time() - scratch.stat().st_mtime) > _DAY:
                shutil.rmtree(scratch, ignore_errors=True)
        for place in sorted(folder.glob("*.json")):
            if place != kept and _is_orphan(place):
                with suppress(OSError, Timeout), FileLock(place.with_suffix(".lock"), timeout=0):
                    if _is_orphan(place):
                        remove_copies(place)
                        place.unlink()


def remove_copies(place: Path, *but: str) -> None:
    """Remove the unpacked copies that belong to the index at ``place``, whole and half, all ``but`` these."""
    for copy in [*place.parent.glob(f"{place.stem}-*.unpacked"), *place.parent.glob(f"{place.stem}-*.part")]:
        if copy.name not in but:
            with suppress(OSError):  # in use, where that keeps a file from being removed
                copy.unlink(missing_ok=True)


def _is_orphan(place: Path) -> bool:
    """Whether it is an index that names its dataset, and there is nothing there any more."""
    try:
        source: str = _decoder().decode(place.read_bytes()).source
        return bool(source) and not os.path.lexists(source)
    except (OSError, ValueError, RecursionError):  # of another version, or no index at all
        return False


@cache
def _decoder() -> Any:
    """Steps over most of an index; refuses what is none, since it may be somebody's data."""
    import msgspec

    texts = ("code", "family", "sha256", "source")
    return msgspec.json.Decoder(msgspec.defstruct("Head", [(name, str) for name in texts]))
