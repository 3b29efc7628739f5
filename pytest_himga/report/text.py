"""Text of strangers, made fit for a terminal, a report and the wire between workers.

What a memory, a model or a dataset says may hold anything: escape codes that repaint the terminal, marks
that turn a line around, half of a surrogate pair (which ends a run under xdist).
"""

from __future__ import annotations

import re
import textwrap
from typing import Literal, NamedTuple

#: Control characters but newline and tab; the two separators that split lines as they do; surrogates;
#: and the marks that set the direction of what follows.
_UNFIT = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]"
)
_CUT = "..."
#: Least room for text beside a label; below it a wrapped column is one word a line.
_LEAST = 10

Style = Literal["", "bold", "red", "green", "yellow"]


class Line(NamedTuple):
    """One line of a report and how a terminal marks it; ``text`` holds no colour codes."""

    text: str
    style: Style = ""


def clean(text: str) -> str:
    r"""``text`` with every unfit character shown as its escape; never raises.

    Newline and tab stay, and so does every letter of every script. A carriage return before a newline is
    dropped. Afterwards the only line break is ``\n`` and the text can be encoded as UTF-8.

    >>> clean("\x1b[31mred\x1b[0m")
    '\\x1b[31mred\\x1b[0m'
    """
    return _UNFIT.sub(_escape, text.replace("\r\n", "\n"))


def plain(text: str) -> str:
    """``clean(text)`` with everything beyond ASCII shown as its escape."""
    return clean(text).encode("ascii", "backslashreplace").decode("ascii")


def one_line(text: str, width: int) -> str:
    r"""``clean(text)`` on one line of at most ``width`` characters: white space collapsed, "..." if cut.

    >>> one_line("We  moved to\n Lisbon", 14)
    'We moved to...'
    """
    flat = " ".join(clean(text).split())
    if len(flat) <= width:
        return flat
    return (flat[: max(width - len(_CUT), 0)].rstrip() + _CUT)[: max(width, 0)]


def wrapped(text: str, width: int) -> list[str]:
    """``clean(text)`` in lines of at most ``width`` characters; its own line breaks stay; [] if blank."""
    lines: list[str] = []
    for paragraph in clean(text).strip().split("\n"):
        found = textwrap.wrap(paragraph, max(width, 1), break_on_hyphens=False)
        lines += [line.rstrip() for line in found] or [""]
    return lines if any(lines) else []


def labelled(label: str, text: str, *, width: int, column: int, most: int | None = None) -> list[str]:
    """``text`` wrapped beside ``label``, in lines of at most ``width`` characters without trailing blanks.

    The text starts at ``column``, in every line. With ``most``, no more lines than that, the last ending
    in "...". Where ``width`` leaves too little room beside the label, the text goes below it, indented
    by two.

    >>> labelled("gold", "a red kite over Lisbon", width=20, column=6)
    ['gold  a red kite', '      over Lisbon']
    """
    label = one_line(label, width)
    beside = width - column >= _LEAST and (len(label) < column or not label)
    indent = column if beside else min(2, max(width - 1, 0))
    lines = wrapped(text, width - indent)
    if most is not None and len(lines) > most:
        lines = lines[:most]
        if lines:
            room = max(width - indent - len(_CUT), 0)
            lines[-1] = (lines[-1][:room].rstrip() + _CUT)[: max(width - indent, 1)]
    if beside:
        first, *rest = lines or [""]
        lines = [label.ljust(column) + first, *(" " * indent + line for line in rest)]
    else:
        lines = ([label] if label else []) + [" " * indent + line for line in lines]
    return [line.rstrip() for line in lines]


def counted(n: int, word: str, plural: str = "") -> str:
    """``1 question``, ``2 questions``; ``plural`` where it takes more than an s."""
    return f"{n} {word if n == 1 else plural or f'{word}s'}"


def _escape(found: re.Match[str]) -> str:
    return found.group().encode("unicode_escape").decode("ascii")
