"""The options of one command line: as they were written, else from ``HIMGA_NAME`` in the environment.

They have the names of pytest's without ``himga-``; there is no ini file. The words of ``models.Source``.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_himga.errors import SettingsError, nearest

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

#: What a shell may set for runs of pytest and no command has a use for.
_OF_RUNS = frozenset(("answerer", "answer-profile", "judge-probe"))
_YES, _NO = ("yes", "true", "on", "1"), ("no", "false", "off", "0")


class CommandSource:
    """``arguments`` hold what stands on the command line, None where an option does not."""

    def __init__(self, arguments: argparse.Namespace, environ: Mapping[str, str]) -> None:
        self._arguments = vars(arguments)
        self._environ = environ

    def one(self, name: str) -> str | None:
        """The value of an option; None where it is nowhere, or blank."""
        texts = self._texts(name)
        return texts[-1].strip() or None if texts else None

    def words(self, name: str) -> tuple[str, ...]:
        """The values of a list, parted by commas and lines, each once."""
        parts = (part.strip() for line in self._lines(name) for part in line.split(","))
        return tuple(dict.fromkeys(part for part in parts if part))

    def pairs(self, name: str) -> dict[str, str]:
        """The values of a KEY=VALUE list, one a line: a value may hold a comma."""
        pairs = {}
        for text in self._lines(name):
            key, equals, value = text.partition("=")
            if not equals or not key.strip():
                raise SettingsError(f"{self.written(name, text)} is not KEY=VALUE")
            pairs[key.strip()] = value.strip()
        return pairs

    def choice(self, name: str, known: tuple[str, ...]) -> str | None:
        """The value as one of ``known``; None where there is none."""
        value = self.one(name)
        if value is not None and value not in known:
            raise SettingsError(f"{self.written(name, value)} is unknown; {nearest(value, known)}")
        return value

    def number(self, name: str, default: Any, *, whole: bool = False) -> Any:
        """The value as a number above 0."""
        text = self.one(name)
        if text is None:
            return default
        try:
            value = int(text) if whole else float(text)
        except ValueError:
            value = 0
        if not 0 < value < math.inf:
            kind = "a whole number from 1" if whole else "a number of seconds above 0"
            raise SettingsError(f"{self.written(name, text)} is not {kind}")
        return value

    def switch(self, name: str) -> bool:
        """Whether it is on."""
        value = (self.one(name) or "no").lower()
        if value not in _YES + _NO:
            raise SettingsError(f"{self.written(name, value)} is neither yes nor no")
        return value in _YES

    def base(self, name: str) -> Path:  # noqa: ARG002 - the same for every option: there is no file of them
        """The folder that a relative path is relative to."""
        return Path.cwd()

    def written(self, name: str, text: str) -> str:
        """``text`` as it stands where it was written, so that an error sends nobody to the wrong place."""
        given = self._arguments.get(name.replace("-", "_"))
        return f"--himga-{name}={text}" if given is not None else f"{_variable(name)}={text}"

    def _texts(self, name: str) -> list[str]:
        value = self._arguments.get(name.replace("-", "_"))
        if value is None and name not in _OF_RUNS:
            value = self._environ.get(_variable(name))
        return [] if value is None else [value] if isinstance(value, str) else list(value)

    def _lines(self, name: str) -> list[str]:
        return [line.strip() for text in self._texts(name) for line in text.splitlines() if line.strip()]


def _variable(name: str) -> str:
    return f"HIMGA_{name.replace('-', '_').upper()}"
