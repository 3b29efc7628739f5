"""``himga data``: hundreds of warnings made readable, one line for each kind and where the first of it are."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

#: How many places of a kind are shown.
MOST_SHOWN = 5
_QUOTED = r"""(?:'(?:[^'\\]|\\.)*(?:'|\.\.\.)|"(?:[^"\\]|\\.)*(?:"|\.\.\.))"""
#: A loader's sentence, see ``files.Place``; the field is missing where it is about the whole sample.
_SENTENCE = re.compile(
    rf"(?P<sample>sample {_QUOTED})(?:, field (?P<field>.+?))?: (?P<problem>.*)", re.DOTALL
)
#: What differs between two warnings of a kind: a quoted value (perhaps cut), a number, a list of ids.
_VALUE = re.compile(rf"(?<!\w){_QUOTED}(?!\w)|\([^()]*\)|\d+", re.DOTALL)


@dataclass
class Kind:
    """Warnings of one shape: the first as it is, the shape, and where the first of them are."""

    first: str
    shape: str
    places: list[str] = field(default_factory=list)
    count: int = 0


def kinds_of(warnings: Iterable[str], files: Sequence[Path]) -> list[Kind]:
    """Gather the warnings by what they say, in the order in which each kind comes up first.

    ``files`` are the dataset's: if it is one, its name is left out.
    """
    kinds: dict[str, Kind] = {}
    for warning in warnings:
        text = _without_folder(warning, files)
        shape, place = _taken_apart(text)
        kind = kinds.setdefault(shape, Kind(text, shape))
        kind.count += 1
        if len(kind.places) < MOST_SHOWN:
            kind.places.append(place)
    return list(kinds.values())


def warning_lines(warnings: Iterable[str], files: Sequence[Path]) -> Iterator[str]:
    """The kinds as lines; those that come up more than once with their count and places."""
    for kind in kinds_of(warnings, files):
        if kind.count == 1:
            yield kind.first
            continue
        yield f"{kind.count} x {kind.shape}"
        yield from (f"    {place}" for place in kind.places)
        if kind.count > len(kind.places):
            yield f"    and {kind.count - len(kind.places)} more"


def _without_folder(warning: str, files: Sequence[Path]) -> str:
    for file in files:
        if warning.startswith(f"{file}: "):
            rest = warning[len(f"{file}: ") :]
            return rest if len(files) == 1 else f"{file.name}: {rest}"
    return warning


def _taken_apart(text: str) -> tuple[str, str]:
    """The shape of a warning and what is its own: where it is, and the values that it shows."""
    match = _SENTENCE.search(text)
    if match is None:
        return _VALUE.sub("...", text), text
    place, shape = f"{text[: match.start()]}{match['sample']}", _VALUE.sub("...", match["problem"])
    if match["field"]:
        place = f"{place}, {match['field']}"
        shape = f"{re.sub(r'[0-9]+', 'N', match['field'])}: {shape}"
    values = [value for value in _VALUE.findall(match["problem"]) if not value.isdigit()]
    return shape, f"{place}: {', '.join(values)}" if values else place
