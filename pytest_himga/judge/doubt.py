"""What speaks against a verdict beside it, in the judge room: words, marks and tags around the object.

Only what is said outright is looked for, in the languages that models fall into; a word too many here costs
a verdict (unscored), one too few a pass that nobody gave.
"""

from __future__ import annotations

import re
import unicodedata
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_himga.judge.verdict import OpinionValue

# -- the prose ---------------------------------------------------------------------------------------

_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)*")
_FOR = frozenset(("correct", "correctly", "right", "rightly", "true", "yes", "accurate"))
_AGAINST = frozenset(
    ("wrong", "wrongly", "incorrect", "incorrectly", "false", "falsely", "untrue", "inaccurate")
)
#: Verdicts that are not in the set.
_THIRD = frozenset(("partial", "partially", "partly", "half", "unsure", "uncertain", "undecided", "unscored"))
_NEGATORS = frozenset(
    (
        *("not", "no", "never", "nor", "neither", "none", "non", "nope", "nothing"),
        *("hardly", "barely", "almost", "nearly"),
        *("cannot", "cant", "dont", "doesnt", "isnt", "wasnt", "arent", "wont"),
        *("nein", "nicht", "pas", "niet", "geen", "n\u00e3o", "\u043d\u0435", "\u043d\u0435\u0442"),
    )
)
#: What words begin with, or hold anywhere, that nobody says who means a pass: failures, refusals, doubts,
#: what is there for show only; then the same in other languages, and marks.
_UNFIT = re.compile(
    r"(?:wrong|incorrect|inkorrekt|inexact)\w{0,12}"
    r"|\b(?:fals|faux|fausse|untrue|inaccura|invalid|unacceptab|insufficient|inconsisten|mistak|erron|error|fail"
    r"|reject|contradict|mismatch|miss(?:es|ed|ing)\b|lack|omit|incomplete"
    r"|refus|declin|unable|sorry|unclear|ambigu|unlikely|doubt|maybe\b|perhaps\b|possibly\b"
    r"|mostly\b|largely\b|somewhat\b|example|placeholder|template"
    r"|kein|equivocad|errad|errat|sbagliat|onjuist|fout|\u043d\u0435\u0432\u0435\u0440|\u043d\u0435\u043f\u0440\u0430\u0432|\u043e\u0448\u0438\u0431)\w{0,12}"
    r"|[\u4e0d\u9519\u932f\u8bef\u8aa4\u9055]|\ud2c0\ub838|\uc624\ub2f5"
    r"|[\u274c\u274e\u2715-\u2718\U0001f44e\U0001f6ab\u26d4]|~~"
)
#: So many words before "wrong" are searched for what turns it around ("not really wrong").
_REACH = 2


def other_word(prose: str, value: OpinionValue) -> str:
    """A word of the prose that says something else than the verdict; "" if there is none.

    Beside a pass nothing may be negated at all. Beside a failure negations are how it is explained, so
    only one right before the label counts.
    """
    plain = _plain(prose)
    words = _WORD.findall(plain)
    said = [*words, *(first + second for first, second in pairwise(words))]  # "in-correct"
    if value == "correct":
        unfit = _UNFIT.search(f"{plain} {' '.join(said)}")
        doubted = (word for word in said if word in _THIRD or _negates(word))
        return unfit[0] if unfit else next(doubted, "")
    for place, word in enumerate(words):
        if word in _AGAINST and (before := [*filter(_negates, words[max(place - _REACH, 0) : place])]):
            return f"{before[0]} ... {word}"
    return next((word for word in said if word in _FOR or word in _THIRD), "")


def _plain(text: str) -> str:
    return unicodedata.normalize("NFKC", text).replace("\u2019", "'").casefold()


def _negates(word: str) -> bool:
    return word in _NEGATORS or word.endswith("n't")


# -- tags --------------------------------------------------------------------------------------------

_TAG = re.compile(r"<\s*/?\s*([A-Za-z][\w:.-]*)[^<>]*>")
#: What a verdict may stand in: names for the result, leftovers of chat templates, markup.
_HARMLESS = frozenset(
    (
        *("answer", "final", "final_answer", "judgement", "judgment", "json", "output", "response", "result"),
        *("verdict", "bos", "end_of_turn", "eos", "s", "start_of_turn"),
        *("b", "br", "code", "div", "em", "i", "p", "pre", "strong"),
    )
)


def strange_tag(prose: str) -> str:
    """The name of a tag around or beside the verdict that may well say that it is none; "" if there is none.

    Models think in tags of ever new names, and say back the tags that they were sent.
    """
    return next((name for name in _TAG.findall(prose) if name.casefold() not in _HARMLESS), "")


# -- the reason --------------------------------------------------------------------------------------

_BAD = r"(?:wrong|incorrect|false|inaccurate|not (?:correct|right)|(?:only )?(?:partially|partly) (?:correct|right))"
#: The label at the start, alone or before its grounds; or said of the answer. "Wrong spelling, but the same
#: name" is no label.
_LABEL_FIRST = re.compile(
    rf"\W*(?:the answer is )?({_BAD})\s*(?:$|[.,:;!]|[-\u2013\u2014] |because\b|since\b)"
)
_OF_THE_ANSWER = re.compile(rf"\b(?:answer|verdict) is (?:therefore |thus |clearly |simply )?({_BAD})\b")
_ONLY_A_PASS = re.compile(r"\W*(?:the answer is )?(correct|right|true)\W*")
#: So many characters before it are searched for what turns it around ("no part of the answer is wrong").
_REACH_BACK = 30


def other_label(reason: str, value: OpinionValue) -> str:
    """What a reason says outright against its own verdict; "" if it does not."""
    plain = " ".join(_plain(reason).split())
    if value == "wrong":
        found = _ONLY_A_PASS.fullmatch(plain)
        return found[1] if found else ""
    if found := _LABEL_FIRST.match(plain):
        return found[1]
    for said in _OF_THE_ANSWER.finditer(plain):
        before = _WORD.findall(plain[max(said.start() - _REACH_BACK, 0) : said.start()])
        if not any(map(_negates, before)):
            return said[1]
    return ""
