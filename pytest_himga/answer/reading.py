"""From a model's reply to its final answer, in the answer room."""

from __future__ import annotations

import re
import unicodedata
from functools import cache

from pytest_himga.llm.contract import Unreadable

# Counts are limited because a run of a thousand asterisks would take a second to look through.
_OPENED, _BETWEEN = r"(?P<open>[*_`\"]{0,3})", r"(?P<between>[*_`\" \t]{0,8})"
#: The end of what was opened somewhere before the marker: "** Paris".
_LEFT_OVER = re.compile(r"[*_`\"]{1,3}(?=\s|\Z)")
_EMPHASIS = ("***", "**", "*", "___", "__", "_", "`", "~~")
_QUOTES = ('""', "''", "\u201c\u201d", "\u2018\u2019", "\u201e\u201c", "\u00ab\u00bb")
_FENCE = "```"
_LANGUAGE = re.compile(r"\s*[\w+.-]*\s*")
_APOSTROPHE = re.compile(r"(?<=\w)['\u2019](?=\w)")
_MARKS = frozenset("*_`~#>\"'\u201c\u201d\u2018\u2019\u201e\u00ab\u00bb")


def final_answer(text: str, marker: str) -> str:
    """What follows the last ``marker`` (case counts; markdown around it does not), else the whole text.

    White space, a code fence or emphasis around all of it and one pair of quotes are taken off.

    Raises
    ------
    Unreadable
        If nothing is left: an empty answer is no answer, and must not be judged as one.
    """
    found = list(_marker(marker).finditer(text))
    answer = _bare(_unquoted(_bare(_behind(found[-1], text) if found else text)))
    if all(_is_nothing(character) for character in answer):
        raise Unreadable(f"nothing follows its last {marker!r}" if found else "there is no word in it")
    return answer


@cache
def _marker(marker: str) -> re.Pattern[str]:
    """``ANSWER:`` also as ``**ANSWER:**``, ``**ANSWER**:`` and ``ANSWER :``, but not in ``REANSWER:``."""
    word = marker.rstrip(":").rstrip()
    if not word or word == marker:
        return re.compile(f"{_OPENED}{re.escape(marker)}(?P<between>)")
    start = r"(?<![^\W_])" if word[0].isalnum() else ""
    return re.compile(f"{start}{_OPENED}{re.escape(word)}{_BETWEEN}:")


def _behind(last: re.Match[str], text: str) -> str:
    """The text behind the marker, without the end of emphasis, quotes or a fence that began before it."""
    rest = text[last.end() :]
    opened = last["open"]
    if opened and not last["between"].strip():
        rest = rest.replace(opened[::-1], "", 1)
    rest = _LEFT_OVER.sub("", rest, count=1) if _LEFT_OVER.match(rest) else rest
    rest = rest.strip()
    if rest.count(_FENCE) == 1:
        rest = rest.removesuffix(_FENCE).rstrip()
    return rest[:-2] if rest.endswith("**") and rest.count("**") == 1 else rest


def _bare(text: str) -> str:
    """Without white space, code fences and emphasis around all of it."""
    before = None
    while text != before:
        before, text = text, text.strip()
        if text.startswith(_FENCE) and text.endswith(_FENCE) and text.count(_FENCE) == 2:
            first, newline, rest = text[3:-3].partition("\n")
            text = rest if newline and _LANGUAGE.fullmatch(first) else text[3:-3]
        for mark in _EMPHASIS:
            inner = text[len(mark) : -len(mark)]
            if text == f"{mark}{inner}{mark}" and mark[0] not in inner:
                text = inner
    return text


def _unquoted(text: str) -> str:
    inner = text[1:-1]
    quotes = text[:1] + text[-1:]
    if len(text) > 1 and quotes in _QUOTES and not set(quotes) & set(_APOSTROPHE.sub("", inner)):
        return inner
    return text


def _is_nothing(character: str) -> bool:
    return character in _MARKS or unicodedata.category(character)[0] in "ZC"
