"""Profiles, in the llm room: prompts as TOML files, shipped or the user's own, cut into paragraphs.

A paragraph is a text, or ``{ text = "...", with = "field" }``. It is left out of a prompt if it names a
field that this question does not have (a date, say), or if ``with`` does. A field is written ``{name}``;
a name that a profile of its kind does not know is an error, so that a slip of the pen is none of the prompt.
All other braces are text, and what is put in is never looked at again. ``{fence}`` is the ending of this call's tags.
"""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_himga.errors import SettingsError, nearest
from pytest_himga.llm.prompt import Fenced, Mark, Part

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

_FIELD = re.compile(r"\{\s*([A-Za-z_]\w*)\s*\}", re.ASCII)
_FENCE = "fence"


@dataclass(frozen=True)
class Paragraph:
    """Text and names of fields by turns, text first: ``("Asked on ", "date", ".")``."""

    pieces: tuple[str, ...]
    only_with: str | None = None

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields that it names."""
        return self.pieces[1::2]


@dataclass(frozen=True)
class ProfileFile:
    """A profile as it was read. ``sha256`` is that of what it tells a model; ``where`` names it in sentences."""

    name: str
    sha256: str
    data: Mapping[str, Any]
    where: str


def read_profile(spec: str, *, package: str, base: Path, option: str) -> ProfileFile:
    """A shipped profile (``strict``) or a file (``judges/ours.toml``, relative to ``base``).

    ``package`` is the Python package whose folder ``profiles`` holds the shipped ones; ``option`` is the
    option as it was written, for the error.

    Raises
    ------
    SettingsError
        If there is none of that name, or it cannot be read as TOML.
    """
    shipped = {
        entry.name.removesuffix(".toml"): entry
        for entry in (resources.files(package) / "profiles").iterdir()
        if entry.name.endswith(".toml")
    }
    if spec in shipped:
        return _parse(spec, shipped[spec].read_bytes(), option)
    try:
        path = base / Path(spec).expanduser()
        found = path.is_file()
        content = path.read_bytes() if found else b""
    except (OSError, RuntimeError) as error:  # a prompt instead of a path is too long a name; ~nobody
        raise SettingsError(f"{option}: cannot be read: {getattr(error, 'strerror', error)}") from None
    if not found:
        hint = nearest(spec, shipped)
        raise SettingsError(
            f"{option}: no profile and no file of that name; {hint}, or a path to a .toml file"
        )
    return _parse(path.stem, content, f"{option} ({path})")


def _parse(name: str, content: bytes, where: str) -> ProfileFile:
    try:
        text = content.decode("utf-8-sig").replace("\r\n", "\n")
        data = tomllib.loads(text)
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise SettingsError(f"{where}: this is no TOML: {error}") from None
    # What is for people (comments, the description) is no part of it: it changes nothing that is sent.
    told = json.dumps({key: data[key] for key in data if key != "description"}, default=str)
    return ProfileFile(name, hashlib.sha256(told.encode("ascii")).hexdigest(), data, where)


def paragraphs_of(value: object, *, known: Collection[str], where: str) -> tuple[Paragraph, ...]:
    """The paragraphs of a list in a profile; ``known`` are the fields that it may name.

    Raises
    ------
    SettingsError
        For anything that is no paragraph, and for a field that is not known.
    """
    if not isinstance(value, list) or not value:
        raise SettingsError(f"{where}: write a list of paragraphs, each a text")
    return tuple(_paragraph(one, known, f"{where}, paragraph {n}") for n, one in enumerate(value, start=1))


def _paragraph(value: object, known: Collection[str], where: str) -> Paragraph:
    text, only_with = value, None
    if isinstance(value, dict):
        for key in sorted(value.keys() - {"text", "with"}):
            raise SettingsError(f"{where}: {key} is unknown; {nearest(key, ['text', 'with'])}")
        text, only_with = value.get("text"), value.get("with")
        # A list is no key that a set could be asked for.
        if only_with is not None and not (isinstance(only_with, str) and only_with in known):
            raise SettingsError(
                f"{where}: with = {only_with!r} is no field; {nearest(str(only_with), known)}"
            )
    if not isinstance(text, str) or not text.strip():
        raise SettingsError(f'{where}: write a text, or {{ text = "...", with = "a field" }}')
    pieces = tuple(_FIELD.split(text.strip()))
    for name in pieces[1::2]:
        if name not in known and name != _FENCE:
            raise SettingsError(f"{where}: {{{name}}} is no field; {nearest(name, [*known, _FENCE])}")
    return Paragraph(pieces, only_with)


def fill(
    paragraphs: Sequence[Paragraph], fields: Mapping[str, str | None], *, trusted: Collection[str] = ()
) -> tuple[Part, ...]:
    """The parts of a message. A field that is None drops its paragraph; all but ``trusted`` ones are fenced.

    Paragraphs are parted by a blank line.
    """
    parts: list[Part] = []
    for paragraph in paragraphs:
        needed = [*paragraph.fields, *([paragraph.only_with] if paragraph.only_with else [])]
        if any(name != _FENCE and fields.get(name) is None for name in needed):
            continue
        if parts:
            parts.append("\n\n")
        for n, piece in enumerate(paragraph.pieces):
            parts += [_part(piece, fields, trusted)] if n % 2 else [piece] if piece else []
    return tuple(parts)


def _part(name: str, fields: Mapping[str, str | None], trusted: Collection[str]) -> Part:
    if name == _FENCE:
        return Mark.FENCE
    text = fields[name] or ""
    return text if name in trusted else Fenced(name, text)
