"""Where datasets lie on this machine, in the data room: found, or fetched into their place.

Looked at are, in this order, the folder of ``--himga-data-dir``, that of ``HIMGA_DATA_DIR``, and the
platform's cache folder. Nothing is imported that could open a socket until something is downloaded.
"""

from __future__ import annotations

import os
import re
from contextlib import nullcontext
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_himga.data.caches import cache_root
from pytest_himga.data.files import exists, shown
from pytest_himga.data.published import (
    MIRROR_VARIABLE,
    PUBLISHED,
    Published,
    find_published,
    megabytes,
    published_names,
    url_of,
    without_login,
)
from pytest_himga.errors import DatasetError, UnknownDataset, nearest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pytest_himga.data.progress import Reporter

DATA_DIR_VARIABLE = "HIMGA_DATA_DIR"
#: One part of a path on every platform, and no device of Windows: nothing that leads out of a folder.
_PLAIN = re.compile(r"[^/\\:\x00-\x1f\x7f]+")
_DEVICE = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.ASCII | re.IGNORECASE)


def is_plain_name(name: str) -> bool:
    """Whether ``name`` may be looked up in a folder: one visible part of a path, on any platform."""
    if not _PLAIN.fullmatch(name) or _DEVICE.fullmatch(name):
        return False
    # Windows drops dots and blanks at the end: ".. " would be the folder above.
    return name.strip() == name and not name.startswith(".") and not name.endswith(".")


def cache_folder() -> Path | None:
    """Where datasets go that have no other place; None where the machine has no cache folder."""
    root = cache_root()
    return None if root is None else root / "datasets"


class Store:
    """The places of this run: ``data_dir`` is what ``--himga-data-dir`` names, ``environ`` the environment."""

    def __init__(self, data_dir: Path | None = None, environ: Mapping[str, str] | None = None) -> None:
        environ = os.environ if environ is None else environ
        self._data_dir = None if data_dir is None else data_dir.absolute()
        self._mirror = environ.get(MIRROR_VARIABLE)
        self._env_dir = _folder(environ.get(DATA_DIR_VARIABLE, ""))

    @cached_property
    def places(self) -> dict[Path, str]:
        """The folders that are looked at, in order, each with what names it."""
        places: dict[Path, str] = {}
        if self._data_dir is not None:
            places[self._data_dir] = "--himga-data-dir"
        if self._env_dir is not None:  # the option's value may come from this variable
            places[self._env_dir] = DATA_DIR_VARIABLE
        cache = cache_folder()
        if cache is not None:
            places.setdefault(cache, "the cache folder")
        return places

    def find(self, name: str) -> Path | None:
        """The file or folder of the dataset ``name`` in the first place that has one; None if none has.

        Looked for are the published file, then ``<name>.json``, each also with ``.gz``, then a folder; an
        alias and what it stands for are looked for by either name. A name that is not plain (``../x``, ``/x``,
        ``c:x``) is never looked up.
        """
        if not is_plain_name(name):
            return None
        files, folders = _candidates(name)
        for place in self.places:
            for file in files:
                if exists(place / file):
                    return place / file
            for folder in folders:
                if _is_folder(place / folder):
                    return place / folder
        return None

    def place_for(self, published: Published) -> Path:
        """Where a download of it goes: into ``HIMGA_DATA_DIR`` if it can be written, else the cache folder.

        Raises
        ------
        DatasetError
            If there is neither.
        """
        if self._env_dir is not None and _can_be_written(self._env_dir):
            return self._env_dir / published.file
        cache = cache_folder()
        if cache is None:
            problem = "is not set" if self._env_dir is None else f"={self._env_dir} cannot be written"
            raise DatasetError(
                f"{published.name}: there is nowhere to download it to: {DATA_DIR_VARIABLE} {problem}, and this "
                f"user has no cache folder; set {DATA_DIR_VARIABLE} to a folder that can be written"
            )
        return cache / published.file

    def obtain(
        self,
        name: str,
        *,
        offline: bool = False,
        allow_unverified: bool = False,
        progress: Reporter | None = None,
        announce: Callable[[str], None] | None = None,
    ) -> Path:
        """Where the dataset ``name`` lies; it is downloaded if it is published and lies nowhere.

        ``announce`` takes sentences: the licence and the citation when it is downloaded, and what a download
        had to wait for. ``progress`` is e.g. ``terminal_progress(sys.stderr)``. ``offline`` opens no socket;
        ``allow_unverified`` takes what a server has under that name, if it is of the format.

        Raises
        ------
        UnknownDataset
            If nothing of that name lies here or is published.
        DatasetError
            If it cannot be downloaded; says how to get it by hand.
        SettingsError
            If ``HIMGA_DATA_MIRROR`` is no address.
        """
        found = self.find(name)
        if found is not None:
            return found
        published = find_published(name)
        if published is None:
            raise UnknownDataset(
                f"There is no dataset {shown(name)}: {self.looked_at(name)}, and none of that name is published; "
                f"{nearest(name, published_names())}"
            )
        if offline:
            raise DatasetError(
                f"{name}: not on this machine, and --himga-offline forbids to download it; {self.by_hand(published)}"
            )
        path, _ = self.download(
            published, allow_unverified=allow_unverified, progress=progress, announce=announce
        )
        return path

    def download(
        self,
        published: Published,
        *,
        allow_unverified: bool = False,
        progress: Reporter | None = None,
        announce: Callable[[str], None] | None = None,
    ) -> tuple[Path, str]:
        """Download it to its place, whatever lies elsewhere; returns path and sha256, see ``obtain``."""
        from pytest_himga.data.download import fetch, if_heard
        from pytest_himga.data.families import check_format

        say = if_heard(announce)
        url = url_of(published, self._mirror)
        target = self.place_for(published)
        say(f"{published.name}: downloading {without_login(url)} to {target}")
        say(f"{published.name}: {_terms(published)}")
        with progress(published.name) if progress else nullcontext() as line:
            found = fetch(
                url,
                target,
                sha256=published.sha256,
                size=published.size,
                allow_unverified=allow_unverified,
                check=lambda path: check_format(path, published.family),
                progress=line,
                announce=announce,
            )
        return target, found

    def by_hand(self, published: Published) -> str:
        """How to get it without himga, and where it would be found: the end of a sentence."""
        url = without_login(url_of(published, self._mirror))
        digest = f"sha256 {published.sha256}" if published.sha256 else "no digest is published"
        places = self._named_places or f"a folder that {DATA_DIR_VARIABLE} names"
        return (
            f"download {url} ({megabytes(published.size)}, {digest}) and save it as {published.file} "
            f"(or {published.file}.gz) in {places}"
        )

    def looked_at(self, name: str) -> str:
        """Where the dataset ``name`` is not, by which names: part of a sentence."""
        if not is_plain_name(name):
            return "it is no name that a file in a folder could have"
        files, folders = _candidates(name)
        names = ", ".join([*files, *(f"{folder}/" for folder in folders)])
        if not self.places:
            return f"no folder is set ({DATA_DIR_VARIABLE})"
        return f"{self._named_places} has no {names}"

    @property
    def _named_places(self) -> str:
        return " or ".join(f"{folder} ({label})" for folder, label in self.places.items())


def check_digest(
    published: Published, sha256: str, allow_unverified: bool = False, *, path: Path
) -> str | None:
    """Compare the digest of the file at ``path`` (of its uncompressed bytes, hex) with the published one.

    None if it is the published file; a warning's text if it is not and ``allow_unverified``, or if no digest
    is published.

    Raises
    ------
    DatasetError
        If it is another file; shows both digests and the ways out.
    """
    found = sha256.lower()
    where = f"{published.name}: {path}"
    if published.sha256 is None:
        return f"{where} is not verified: no digest of it is published; its sha256 is {found}"
    if found == published.sha256:
        return None
    others = [other.name for other in PUBLISHED.values() if other.sha256 == found]
    differs = f"{where} is not the published file{f' but that of {others[0]}' if others else ''}"
    digests = f"its sha256 is {found}, published is {published.sha256}"
    if allow_unverified:
        return f"{differs}: {digests}; accepted by --himga-allow=unverified, which marks runs on it as unverified"
    raise DatasetError(
        f"{differs}: {digests}. Remove it to have the published one downloaded, give your own version a name "
        f"of its own (--himga-dataset=NAME={path}), or accept it with --himga-allow=unverified"
    )


def _terms(published: Published) -> str:
    limit = ", for non-commercial use only" if published.non_commercial else ""
    pinned = "" if published.pinned else f" Unpinned: upstream can change it ({published.revision})."
    return f"licence {published.licence}{limit}. Please cite {published.citation}.{pinned}"


def _candidates(name: str) -> tuple[list[str], list[str]]:
    """What a dataset of that name may be called: files and folders, the preferred first."""
    names, files = [name], []
    published = find_published(name)
    if published is not None:
        names += [published.name, *published.aliases]
        files += [published.file, published.upstream_file]
    files += [f"{other}.json" for other in names]
    return list(dict.fromkeys(f for file in files for f in (file, f"{file}.gz"))), list(dict.fromkeys(names))


def _folder(text: str) -> Path | None:
    if not text.strip():
        return None
    try:
        return Path(text.strip()).expanduser().absolute()
    except RuntimeError:  # ~somebody, who has no home here
        return Path(text.strip()).absolute()


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False


def _can_be_written(folder: Path) -> bool:
    """Whether files can be put into it, or it can be made."""
    try:
        nearest_there = next(place for place in (folder, *folder.parents) if place.exists())
        return nearest_there.is_dir() and os.access(nearest_there, os.W_OK | os.X_OK)
    except (OSError, ValueError, StopIteration):
        return False
