"""The options of one command line: as they were written, else from ``HIMGA_NAME`` in the environment.

They have the names of pytest's without ``himga-``; there is no ini file.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pytest_himga.option_source import OptionSource
from pytest_himga.options import ALLOWANCES, DATA_ALLOWANCES

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

#: What a shell may set for runs of pytest and no command has a use for: options, and values of options.
_OF_RUNS = frozenset(("answerer", "answer-profile", "judge-probe"))
_VALUES_OF_RUNS = {"allow": frozenset(ALLOWANCES).difference(DATA_ALLOWANCES)}


class CommandSource(OptionSource):
    """``arguments`` hold what stands on the command line, None where an option does not."""

    def __init__(self, arguments: argparse.Namespace, environ: Mapping[str, str]) -> None:
        self._arguments = vars(arguments)
        self._environ = environ

    def texts(self, name: str) -> list[str]:
        """What the command line has, else the environment."""
        value = self._arguments.get(name.replace("-", "_"))
        if value is None and name not in _OF_RUNS:
            value = self._environ.get(_variable(name))
            if value is not None and name in _VALUES_OF_RUNS:
                words = value.split(",")
                value = ",".join(word for word in words if word.strip() not in _VALUES_OF_RUNS[name])
        return [] if value is None else [value] if isinstance(value, str) else list(value)

    def base(self, name: str) -> Path:  # noqa: ARG002 - the same for every option: there is no file of them
        """The folder that a relative path is relative to."""
        return Path.cwd()

    def written(self, name: str, text: str) -> str:
        """``text`` as it stands where it was written, so that an error sends nobody to the wrong place."""
        given = self._arguments.get(name.replace("-", "_"))
        return f"--himga-{name}={text}" if given is not None else f"{_variable(name)}={text}"


def _variable(name: str) -> str:
    return f"HIMGA_{name.replace('-', '_').upper()}"
