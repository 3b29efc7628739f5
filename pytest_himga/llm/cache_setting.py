"""What ``--himga-cache`` may say, in the llm room: ``off``, ``read``, ``refresh``, a path, a mode and a path."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

from pytest_himga.errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import Sequence

Mode = Literal["on", "off", "read", "refresh"]
#: The file in a folder of the cache's.
FILE_NAME = "replies.sqlite3"
_FILE_SUFFIXES = (".sqlite3", ".sqlite", ".db", ".db3")
_MODES: tuple[Mode, ...] = get_args(Mode)
#: What people write for them elsewhere; as a folder's name it needs a ``./``.
_MEANT: dict[str, Mode] = {
    **dict.fromkeys(("yes", "true", "1", "write", "readwrite", "rw", "enable", "enabled"), "on"),
    **dict.fromkeys(("no", "none", "false", "0", "never", "disable", "disabled"), "off"),
    **dict.fromkeys(("readonly", "ro", "only"), "read"),
    **dict.fromkeys(("renew", "update", "rewrite", "overwrite", "reset", "clear"), "refresh"),
}


@dataclass(frozen=True)
class CacheSetting:
    """``on``: found replies are used, new ones kept; ``read``: used; ``refresh``: asked again and kept.

    ``path`` is the file, absolute; None: the default one.
    """

    mode: Mode = "on"
    path: Path | None = None

    @property
    def reads(self) -> bool:
        """Whether replies that are there are used."""
        return self.mode in ("on", "read")

    @property
    def writes(self) -> bool:
        """Whether new ones are kept."""
        return self.mode in ("on", "refresh")


def parse_cache(words: Sequence[str], *, base: Path, option: str) -> CacheSetting:
    """The setting that ``words`` ask for: at most one mode and at most one path, relative to ``base``.

    A path that ends like a database (``.sqlite3``, ``.sqlite``, ``.db``, ``.db3``) is the file, any other the
    folder that it lies in. ``option`` is the option as it was written, for the error.

    Raises
    ------
    SettingsError
        For two modes or two paths, for a word that looks like a mode misspelt, for a path that cannot be.
    """
    modes = [word for word in _MODES if word in words]
    paths = [word for word in words if word not in _MODES]
    for word in paths:
        if meant := _misspelt(word):
            raise SettingsError(
                f"{option}: {word} is unknown; did you mean {meant}? A folder of that name is ./{word}"
            )
    for kind, given in (("mode", modes), ("path", paths)):
        if len(given) > 1:
            raise SettingsError(f"{option}: {' and '.join(given)} cannot stand together; name one {kind}")
    return CacheSetting(modes[0] if modes else "on", _file(paths[0], base, option) if paths else None)


def _file(word: str, base: Path, option: str) -> Path:
    try:
        path = base / Path(word).expanduser()
        if not word.strip() or "\0" in word:
            raise SettingsError(f"{option}: {word!r} is no path; known: {', '.join(_MODES)}, or a path")
        if path.suffix.lower() in _FILE_SUFFIXES and not path.is_dir():
            return path
        if path.is_file():
            raise SettingsError(
                f"{option}: {word} is a file; name a folder, or a file that ends in {' or '.join(_FILE_SUFFIXES)}"
            )
    except (OSError, RuntimeError) as error:  # a name that is too long; ~nobody
        raise SettingsError(
            f"{option}: {word} cannot be a path: {getattr(error, 'strerror', error)}"
        ) from None
    return path / FILE_NAME


def _misspelt(word: str) -> str | None:
    """The mode that a bare word (no path, no suffix) comes near to."""
    bare = word.strip().lower().replace("-", "").replace("_", "")
    if Path(word).name != word or "/" in word or "\\" in word or "." in word or word.startswith("~"):
        return None
    close = difflib.get_close_matches(bare, _MODES, n=1)
    return _MEANT.get(bare) or (close[0] if close else None)
