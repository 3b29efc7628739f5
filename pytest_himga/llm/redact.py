"""What no text may show, in the llm room: everything that a server says passes through here first."""

from __future__ import annotations

import base64
import re
import unicodedata
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_MASK = "***"
#: A secret of this many characters does not stand in a text by chance.
_LONG = 8
#: Shorter ones are placeholders (``none``, ``EMPTY``) more often than not, and words of any answer.
_SHORT = 4
#: A server that masks a key itself still shows this many of its first characters, or more.
_HEAD = 3
#: Of what it shows before and behind; not endless, for it is tried at each place that looks like a key's head.
_SHOWN = r"\S{0,200}"
#: JSON puts these before a character, JSON inside JSON more of them, and a URL has them in its own way.
_BACKSLASH = re.compile(r"\\(?:u005[Cc])?|%(?:25)*5[Cc]")
#: As many as there are: a pattern that gave some back would try for hours.
_BACKSLASHES = f"(?:{_BACKSLASH.pattern})*+"
#: Before the first character too, or what is left of JSON is none; not endless, for it is tried at each place.
_FIRST = r"\\{0,8}+"
#: What pages write by name.
_NAMED = {"&": "amp", "<": "lt", ">": "gt", '"': "quot", "'": "apos"}


class Redactor:
    """Replaces secrets by ``***``. Its own repr tells nothing."""

    __slots__ = ("_anywhere", "_words")

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        every = {form for secret in secrets for form in _forms(secret)}
        long = {form for form in every if len(form) >= _LONG}
        short = {form for form in every if _SHORT <= len(form) < _LONG}
        masked = {form[:_HEAD] for form in long}
        self._anywhere = _any_of(_written(form) for form in _longest_first(long))
        self._words = _any_of(
            [
                *(rf"(?<!\w){_written(form)}(?!\w)" for form in _longest_first(short)),
                *(
                    rf"(?<!\w){re.escape(head)}{_SHOWN}(?:\*{{2,}}|\.{{3}}|\u2026){_SHOWN}"
                    for head in sorted(masked)
                ),
            ]
        )

    def __repr__(self) -> str:
        return "Redactor()"

    def reply(self, text: str) -> str:
        """``text`` of a model's: only long secrets are replaced, because a short one may be its answer."""
        return self._anywhere.sub(_MASK, text) if self._anywhere else text

    def sentence(self, text: str) -> str:
        """``text`` that goes into an error: short secrets are replaced too, and keys that a server masked."""
        text = self.reply(text)
        return self._words.sub(_MASK, text) if self._words else text


def _forms(secret: str) -> set[str]:
    """A secret as it is, and as it looks in a header."""
    encoded = base64.b64encode(secret.encode("utf-8")).decode("ascii")
    return {secret, encoded, encoded.rstrip("=")}


def _written(secret: str) -> str:
    """A pattern of ``secret`` in whatever way its characters are written, also one way upon another.

    A server that says a header back may write it into a URL, into JSON inside JSON, or into a page. How many
    backslashes stand before a character does not matter, the secret's own ones included.
    """
    characters = _BACKSLASH.sub("", secret)
    if not characters:
        return ""
    return _FIRST + _BACKSLASHES.join(f"(?:{'|'.join(_ways(char))})" for char in characters)


def _ways(char: str) -> Iterator[str]:
    code = ord(char)
    yield "".join(f"%(?:25)*(?i:{byte:02x})" for byte in char.encode("utf-8", "surrogatepass"))
    units = char.encode("utf-16-be", "surrogatepass").hex()
    yield _BACKSLASHES.join(f"u(?i:{units[n : n + 4]})" for n in range(0, len(units), 4))
    yield f"&(?:amp;)*(?i:#0*{code}|#x0*{code:x});"
    if char in _NAMED:
        yield f"&(?:amp;)*{_NAMED[char]};"
    yield re.escape(char)
    if char == " ":
        yield re.escape("+")


def _longest_first(forms: Iterable[str]) -> list[str]:
    return sorted(forms, key=lambda form: (-len(form), form))


def _any_of(patterns: Iterable[str]) -> re.Pattern[str] | None:
    joined = "|".join(filter(None, patterns))
    return re.compile(joined) if joined else None


def one_line(text: str, most: int) -> str:
    """``text`` as one line of at most ``most`` characters, without anything that a terminal would obey."""
    cleaned = "".join(
        " " if unicodedata.category(char).startswith("C") else char for char in text[: most * 20]
    )
    line = " ".join(cleaned.split())
    return line if len(line) <= most and len(text) <= most * 20 else line[: most - 3].rstrip() + "..."
