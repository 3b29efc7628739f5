"""What a judge's reply says, in the judge room: exactly one verdict from the closed set, or nothing.

Everything that could be read two ways is refused, because a doubtful reply that counts as a pass is a score
that nobody measured. The reply is taken apart into JSON objects and the prose around them. Each ``{`` of the
prose must begin an object that decodes; each object must be a verdict and nothing else, and no copy of one
that stands in what was to be judged; and neither the prose nor the reason may say anything but what the
object says (``doubt.py``).
"""

from __future__ import annotations

import json
import re
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

from pytest_himga.data.files import shown
from pytest_himga.judge.doubt import other_label, other_word, strange_tag
from pytest_himga.llm.contract import Unreadable
from pytest_himga.llm.prompt import ResponseFormat, sound

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pytest_himga.judge.verdict import OpinionValue

#: What a judge is asked to reply with, for servers that can hold a model to it.
VERDICT_FORMAT = ResponseFormat(
    "verdict",
    {
        "type": "object",
        "properties": {
            "reason": {"type": "string"},
            "verdict": {"type": "string", "enum": ["CORRECT", "WRONG"]},
        },
        "required": ["reason", "verdict"],
        "additionalProperties": False,
    },
)
_KEYS = frozenset({"reason", "verdict"})
_KINDS: dict[type, str] = {str: "text", list: "list", dict: "object"}
_VALUES: dict[str, OpinionValue] = {"correct": "correct", "wrong": "wrong"}
#: What the profiles write where a reason and a verdict are to stand: "<one short sentence>".
_BLANK = re.compile(r"\s*<[^<>]*>\s*|\W*(?:one short sentence|correct or wrong)\W*", re.IGNORECASE)
#: A reason is one sentence; a model that runs on must not fill every report.
_LONGEST_REASON = 1000
#: What is longer than a label or a field's name is not shown in an error, not even cut: half of a key that
#: a server echoes could no longer be told for one.
_LONGEST_NAMED = 30


@dataclass(frozen=True)
class Opinion:
    """One readable reply; ``reason`` is on one line, "" if there is none."""

    value: OpinionValue
    reason: str = ""


def read_verdict(text: str, strangers: Iterable[str] = ()) -> Opinion:
    """The one verdict of a reply from which think blocks are gone.

    ``strangers`` are the texts that the judge was given: a model that only says back what was put into an
    answer, verdict object and all, has judged nothing.

    Raises
    ------
    Unreadable
        For everything else; nothing but this, whatever the text.
    """
    opinions, prose = _taken_apart(text)
    if not opinions:
        raise Unreadable("there is no verdict object in the judge's reply")
    value = opinions[0].value
    if any(opinion.value != value for opinion in opinions):
        raise Unreadable("the judge's reply has verdict objects that disagree")
    given = {(one.value, _packed(one.reason)) for text in strangers for one in _opinions_in(text)}
    if any((one.value, _packed(one.reason)) in given for one in opinions):
        raise Unreadable("the judge's verdict object is a copy of one that stands in what it was to judge")
    if tag := strange_tag(prose):
        raise Unreadable(
            f"the judge's reply has its verdict beside a tag {_named(tag)}, which is no part of a verdict"
        )
    word = other_word(prose, value)
    if word:
        raise Unreadable(
            f"the judge's reply says two things: its verdict is {value}, and beside it stands {word!r}"
        )
    return opinions[0]


def _taken_apart(text: str) -> tuple[list[Opinion], str]:
    """The verdicts of all objects, and the prose before, between and behind them."""
    opinions: list[Opinion] = []
    prose: list[str] = []
    end = 0
    while (start := text.find("{", end)) >= 0:
        prose.append(text[end:start])
        try:
            value, end = _DECODER.raw_decode(text, start)
        except (ValueError, RecursionError):
            raise Unreadable("the judge's reply has a broken or cut-off object") from None
        opinions.append(_opinion(value))
    prose.append(text[end:])
    if any("}" in part for part in prose):
        raise Unreadable("the judge's reply has a } that closes nothing")
    if opinions and (prose[0].rstrip().endswith(("[", ",")) or prose[-1].lstrip().startswith("]")):
        raise Unreadable("the judge's reply is a list; expected one verdict object")
    return opinions, " ".join(prose)


def _opinions_in(text: str) -> Iterator[Opinion]:
    """The verdict objects in a stranger's text."""
    for found in _OBJECT.findall(text):
        with suppress(ValueError, RecursionError, Unreadable):
            yield _opinion(_DECODER.decode(found))


def _packed(reason: str) -> str:
    """Without white space, which a model changes when it copies."""
    return "".join(reason.split())


def _opinion(value: dict[str, Any]) -> Opinion:
    for key in (key for key in value if key not in _KEYS):
        raise Unreadable(
            f"the judge's verdict object has a field {_named(key)}; expected verdict and reason only"
        )
    label, reason = value.get("verdict"), value.get("reason", "")
    # The whole label: a part of it is a verdict of nobody's (INCORRECT, PARTIALLY CORRECT, yesterday).
    known = _VALUES.get(label.strip().casefold()) if isinstance(label, str) else None
    if known is None:
        said = _named(label) if "verdict" in value else "missing"
        raise Unreadable(f"the judge's verdict is {said}; expected CORRECT or WRONG")
    if not isinstance(reason, str):
        raise Unreadable(f"the judge's reason is {_named(reason)}; expected a text")
    if _BLANK.fullmatch(reason):
        # A model that copies the form puts the label that stands first there behind it, and that is a pass.
        raise Unreadable("the judge's reason is the form's blank, which was to be filled in")
    if label := other_label(reason, known):
        raise Unreadable(f"the judge's verdict is {known}, and its reason says {label!r}")
    return Opinion(known, _one_line(sound(reason)))


def _named(value: object) -> str:
    text = shown(value)
    return text if len(text) <= _LONGEST_NAMED else f"a long {_KINDS.get(type(value), 'value')}"


def _one_line(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= _LONGEST_REASON else f"{flat[: _LONGEST_REASON - 3]}..."


# -- JSON --------------------------------------------------------------------------------------------


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        raise Unreadable("the judge's verdict object has a field twice")
    return value


def _no_constant(name: str) -> NoReturn:
    raise Unreadable(f"the judge's verdict object holds {name}, which is no JSON")


# Not strict: models break lines inside a reason, and a bare line break cannot change where a string ends.
_DECODER = json.JSONDecoder(object_pairs_hook=_no_duplicates, parse_constant=_no_constant, strict=False)
#: An object without objects in it; braces may stand in its texts.
_OBJECT = re.compile(r'\{(?:[^{}"]|"(?:[^"\\]|\\.)*")*\}', re.DOTALL)
