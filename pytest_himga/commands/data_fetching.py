"""``himga data fetch``: a dataset is brought to this machine, or what is here already is verified."""

from __future__ import annotations

import hashlib
import os
import sys
from typing import TYPE_CHECKING

from pytest_himga.commands.data_finding import demo_path
from pytest_himga.commands.output import tell
from pytest_himga.data.download import digest_of
from pytest_himga.data.files import files_of, is_gzip, unpacked_blocks, unreadable
from pytest_himga.data.indexing import joined
from pytest_himga.data.opening import DEMO_PARTS
from pytest_himga.data.progress import terminal_progress
from pytest_himga.data.published import Published, find_published
from pytest_himga.data.store import DATA_DIR_VARIABLE, Store, check_digest
from pytest_himga.errors import DatasetError

if TYPE_CHECKING:
    from pathlib import Path


class Fetching:
    """``data_dir``, if given, is looked into first, and what is downloaded goes there."""

    def __init__(self, data_dir: Path | None, *, offline: bool, allow_unverified: bool) -> None:
        self._data_dir = data_dir
        self._offline = offline
        self._allow_unverified = allow_unverified
        self._store = Store(data_dir)

    def path_of(self, name: str) -> Path:
        """Where it lies by now; says on stderr what was done for that.

        Raises
        ------
        DatasetError
            If it cannot be had, or is not the published file.
        """
        if name in DEMO_PARTS:
            tell(f"{name}: part of this package")
            return demo_path(name)
        found = self._store.find(name)
        published = find_published(name)
        if found is None:
            if published is None or self._offline:
                return self._store.obtain(name, offline=True)  # says what is wrong
            return self._download(published)
        if published is None:
            tell(
                f"{name}: already here; nothing is published under that name, so there is no digest to verify"
            )
        else:
            self._verify(name, published, found)
        return found

    def _verify(self, name: str, published: Published, path: Path) -> None:
        note = check_digest(published, digest_of_data(path), self._allow_unverified, path=path)
        tell(note or f"{name}: already here, and verified: its sha256 is {published.sha256}")

    def _download(self, published: Published) -> Path:
        store = self._store
        if self._data_dir is not None:
            store = Store(None, {**os.environ, DATA_DIR_VARIABLE: str(self._data_dir)})
            if store.place_for(published).parent != self._data_dir:
                raise DatasetError(
                    f"{published.name}: {self._data_dir} cannot be written; name another folder with --data-dir, "
                    "or none to use the cache folder"
                )
        path, found = store.download(
            published,
            allow_unverified=self._allow_unverified,
            progress=terminal_progress(sys.stderr),
            announce=tell,
        )
        if published.sha256 == found:
            tell(f"{published.name}: verified: its sha256 is {published.sha256}")
        return path


def digest_of_data(path: Path) -> str:
    """The sha256 of a dataset's uncompressed bytes, hex, by reading all of them; see ``index.Index``."""
    files, is_folder = files_of(path)
    digests = [(file.name, _digest(file)) for file in files]
    return joined(digests) if is_folder else digests[0][1]


def _digest(file: Path) -> str:
    if is_gzip(file):
        digest = hashlib.sha256()
        for block in unpacked_blocks(file):
            digest.update(block)
        return digest.hexdigest()
    try:
        return digest_of(file)
    except OSError as error:
        unreadable(file, error)
