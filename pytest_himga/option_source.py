"""What option values mean, wherever they were written: pytest's options and those of ``himga``'s commands."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from pytest_himga.errors import SettingsError, nearest

if TYPE_CHECKING:
    from pathlib import Path

_YES, _NO = {"yes", "true", "on", "1"}, {"no", "false", "off", "0"}


class OptionSource(ABC):
    """Reads options by their names without ``himga-``; a value that cannot be read is a ``SettingsError``."""

    @abstractmethod
    def texts(self, name: str) -> list[str]:
        """What was written for an option, in order; empty where it is nowhere."""

    @abstractmethod
    def base(self, name: str) -> Path:
        """The folder that a relative path in this option is relative to."""

    @abstractmethod
    def written(self, name: str, text: str) -> str:
        """``text`` as it stands where it was written, so that an error sends nobody to the wrong place."""

    def typed(self, name: str) -> bool:
        """Whether it stands on the command line."""
        return bool(self.texts(name)) and self.written(name, "").startswith("--")

    def one(self, name: str) -> str | None:
        """The value; None where it is nowhere, or blank."""
        texts = self.texts(name)
        return texts[-1].strip() or None if texts else None

    def words(self, name: str) -> tuple[str, ...]:
        """The values of a list, parted by commas and lines, each once."""
        parts = (part.strip() for line in self.lines(name) for part in line.split(","))
        return tuple(dict.fromkeys(part for part in parts if part))

    def lines(self, name: str) -> list[str]:
        """Like ``words`` but a comma stays: option values of a backend may hold one."""
        return [line.strip() for text in self.texts(name) for line in text.splitlines() if line.strip()]

    def pairs(self, name: str) -> dict[str, str]:
        """The values of a KEY=VALUE list."""
        pairs = {}
        for text in self.lines(name):
            key, equals, value = text.partition("=")
            if not equals or not key.strip():
                raise SettingsError(f"{self.written(name, text)} is not KEY=VALUE")
            pairs[key.strip()] = value.strip()
        return pairs

    def choice(self, name: str, known: tuple[str, ...]) -> str:
        """One of ``known``, of which the first is the default."""
        return self._known(name, self.one(name) or known[0], known)

    def choices(self, name: str, known: tuple[str, ...]) -> tuple[str, ...]:
        """Any of ``known``."""
        return tuple(self._known(name, value, known) for value in self.words(name))

    def switch(self, name: str) -> bool:
        """Whether it is on."""
        value = (self.one(name) or "no").lower()
        if value not in _YES | _NO:
            raise SettingsError(f"{self.written(name, value)} is neither yes nor no")
        return value in _YES

    def number(self, name: str, default: Any, *, whole: bool = False) -> Any:
        """A number above 0: seconds, or a count where it is ``whole``."""
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

    def _known(self, name: str, value: str, known: tuple[str, ...]) -> str:
        if value not in known:
            raise SettingsError(f"{self.written(name, value)} is unknown; {nearest(value, known)}")
        return value
