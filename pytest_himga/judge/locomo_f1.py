"""LoCoMo's F1, to the last digit as its authors compute it (snap-research/locomo, task_eval).

Every published LoCoMo F1 rests on that scorer's habits, so they are kept, odd ones included: commas vanish
(``tuba,cello`` is one word), all other ASCII punctuation vanishes too (``moth-eaten`` is one word),
"and" counts as an article, Unicode dashes, curly quotes and zero-width spaces stay. The reference numbers in
the tests were made by running the authors' code.
"""

from __future__ import annotations

import string
from collections import Counter
from functools import cache, lru_cache
from typing import Any

#: The category whose rule is the plain F1, for questions that have no LoCoMo category.
PLAIN = 4
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)
_REFUSALS = ("no information available", "not mentioned")


def locomo_f1(prediction: str, gold: str, category: int) -> float:
    """Score one prediction as the official code does, 0..1.

    Category 1 averages over the gold's comma-separated parts the best F1 that any comma-separated part of
    the prediction has with it; 2 and 4 are the plain F1; 3 compares only with what stands before the gold's
    first ``;``. Category 5 looks for one of two phrases in the prediction and never at the gold, not even
    for the two questions of the file that have one: `LexicalJudge` therefore scores those as category 4.

    Raises
    ------
    ValueError
        If ``category`` is none of 1 to 5, as upstream does.
    """
    if category == 1:
        predictions = [tokens_of(part) for part in prediction.split(",")]
        golds = [tokens_of(part) for part in gold.split(",")]
        return sum(max(_overlap(p, g) for p in predictions) for g in golds) / len(golds)
    if category == 3:
        gold = before_semicolon(gold)
    if category in (2, 3, 4):
        return _overlap(tokens_of(prediction), tokens_of(gold))
    if category == 5:
        lowered = prediction.lower()
        return 1.0 if any(phrase in lowered for phrase in _REFUSALS) else 0.0
    raise ValueError(f"LoCoMo has no category {category!r}: it must be 1, 2, 3, 4 or 5")


def before_semicolon(gold: str) -> str:
    """Cut a category 3 gold down to what counts: what follows the ``;`` is the annotator's reason."""
    return gold.partition(";")[0].strip()


def tokens_of(text: str) -> list[str]:
    """List the stemmed words that the F1 counts, in order: no punctuation, no case, no articles."""
    bare = text.lower().translate(_NO_PUNCTUATION)
    return [_stem(word) for word in _articles().sub(" ", bare).split()]


def _overlap(prediction: list[str], gold: list[str]) -> float:
    same = (Counter(prediction) & Counter(gold)).total()
    if not same:
        return 0.0
    precision, recall = same / len(prediction), same / len(gold)
    return 2 * precision * recall / (precision + recall)


@cache
def _articles() -> Any:
    # Not re: for regex a combining mark and a zero-width joiner belong to the word, a superscript does not.
    import regex

    return regex.compile(r"\b(?:a|an|the|and)\b")


@lru_cache(maxsize=1 << 16)
def _stem(word: str) -> str:
    """Remembered: stemming is most of the cost, and the words of one benchmark recur."""
    try:
        stemmed: str = _stemmer().stem(word)
    except RecursionError:  # nltk before 3.10 walks a run of "yyyy" by recursion
        return word
    return stemmed


@cache
def _stemmer() -> Any:
    from nltk.stem.porter import PorterStemmer

    return PorterStemmer()
