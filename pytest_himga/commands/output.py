"""What the ``himga`` command writes: results to stdout, all else to stderr, in ASCII and line by line.

Names, paths and sentences come out of files and may hold anything; what a terminal gets of them is the
escape of whatever is not a plain letter.
"""

from __future__ import annotations

import os
import re
import sys
from typing import TYPE_CHECKING, TextIO

from pytest_himga.report.text import plain

if TYPE_CHECKING:
    from pathlib import Path

#: The rooms below speak of pytest's options; those that a command has too are called so here.
_PYTEST_OPTION = re.compile(
    r"--himga-(?=(?:data-dir|offline|allow|locomo-labels|session-order|subset|timeout|cache|judge)\b)"
)
#: A command has one model, and one option for its server.
_BASE_URL = re.compile(r"--himga-base-url\b")


def flat(text: str) -> str:
    r"""``text`` on one line, in ASCII.

    >>> flat("caf\u00e9\n")
    'caf\\xe9\\n'
    """
    return plain(text).replace("\n", "\\n").replace("\t", "\\t")


def say(text: str = "") -> None:
    """One line of the result."""
    _write(sys.stdout, text)


def tell(text: str) -> None:
    """One line beside the result: what is going on."""
    _write(sys.stderr, text)


def complain(text: str) -> None:
    """The sentence of an error."""
    tell(f"himga: {text}")


def say_path(path: Path) -> None:
    """``path`` alone on a line: byte for byte for a script, escaped on a terminal."""
    raw = getattr(sys.stdout, "buffer", None)
    if raw is None or sys.stdout.isatty():
        say(str(path))
    else:
        sys.stdout.flush()
        raw.write(os.fsencode(path) + b"\n")


def _write(stream: TextIO | None, text: str) -> None:
    if stream is not None:  # closed by whoever started us
        text = _PYTEST_OPTION.sub("--", _BASE_URL.sub("--judge-base-url", text))
        stream.write(f"{flat(text)}\n")
