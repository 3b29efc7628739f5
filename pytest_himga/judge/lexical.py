"""The lexical judge: the answer against the gold, by rule. Deterministic and free.

A question with a gold is answered correctly iff

1. each number and each date of the gold is in the answer (`facts.py`), and
2. a gold that leads with yes or no is met by the same one, and
3. all its other words are in the answer, or LoCoMo's official F1 is at least 0.5.

An answer that abstains refuses to answer, which is wrong. A question without a gold is met correctly iff the
answer abstains (`abstention.py`). The score is the official F1, so that its mean is what others publish.

It knows no synonyms, and a rambling answer that contains the gold passes: a floor and a regression alarm, not
a reader. Where that matters, take an LLM as judge.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pytest_himga.data.schema import QuestionType
from pytest_himga.judge.abstention import abstains, holds_trap, read_abstention
from pytest_himga.judge.facts import Date, find_facts, fold, missing_fact
from pytest_himga.judge.locomo_f1 import PLAIN, before_semicolon, locomo_f1, tokens_of
from pytest_himga.judge.verdict import Verdict

if TYPE_CHECKING:
    from pytest_himga.data.schema import Case
    from pytest_himga.memory.protocol import Context

#: The F1 from which an answer that lacks some of the gold's words still says the same.
CORRECT_FROM = 0.5
#: Letters of a gold that may be found without their spaces; shorter ones turn up inside other words.
FEWEST_LETTERS = 12
_ABSTENTION_REASONS = {
    "held": "abstained, as it should",
    "fell": "fell for the trap",
    "other": "neither abstained nor fell for the trap: it says something else",
}


class LexicalJudge:
    """Correct iff the gold's facts and words are in the answer, or the answer abstains where it should."""

    name = "lexical"

    def judge(self, case: Case, answer: str | None, context: Context) -> Verdict:  # noqa: ARG002 - reads no context
        """Score an answer; ``metrics`` has the official ``f1`` of an answerable question.

        ``unscored`` where nothing produced an answer; ``n/a`` for preference rubrics and empty golds.
        """
        question = case.question
        if question.question_type is QuestionType.SINGLE_SESSION_PREFERENCE:
            return Verdict(
                "n/a", reason="the gold is a rubric of preferences, which words cannot be held against"
            )
        if answer is None:
            return Verdict(
                "unscored",
                reason="nothing produced an answer: the memory has no answer() and no answerer is set",
            )
        if question.expects_abstention:
            return _judge_abstention(answer, question.trap)
        gold = question.gold or ""
        if not gold.strip():
            return Verdict("n/a", reason="the dataset has no gold for this question")
        return _judge_answer(answer, gold, _category(case), question.trap)


def _judge_abstention(answer: str, trap: str | None) -> Verdict:
    how = read_abstention(answer, trap)
    reason = _ABSTENTION_REASONS[how]
    if not answer.strip():
        reason = "the answer is empty, which does not say that it abstains"
    elif how == "other" and not trap:
        reason = "did not abstain"
    held = how == "held"
    return Verdict("correct" if held else "wrong", 1.0 if held else 0.0, reason, abstention=how)


def _judge_answer(answer: str, gold: str, category: int, trap: str | None) -> Verdict:
    f1 = locomo_f1(answer, gold, category)
    said = f"F1 {f1:.2f}"
    objection = _objection(answer, gold, category, f1)
    if objection:
        caught = "; fell for the trap" if trap and holds_trap(answer, trap) else ""
        return Verdict("wrong", f1, f"{said}; {objection}{caught}", metrics=(("f1", f1),))
    return Verdict("correct", f1, said, metrics=(("f1", f1),))


def _objection(answer: str, gold: str, category: int, f1: float) -> str:
    """Say what is wrong with the answer; "" if nothing is."""
    if not answer.strip():
        return "the answer is empty"
    if _plain(answer) == _plain(gold):
        return ""
    # A reason behind the semicolon is no part of the gold; one that stands alone is all there is.
    gold = (before_semicolon(gold) if category == 3 else "") or gold
    wanted = _polarity(gold, lead_only=True)
    given = _polarity(answer) if wanted else ""
    if wanted and given and wanted != given:
        return f"it says {given} where the gold says {wanted}"
    if given and set(re.findall(r"\w+", gold.lower())) <= _HEDGES:
        return ""
    if abstains(answer):
        return "" if abstains(gold) else "refused to answer"
    if wanted and not given:
        return f"it does not say {wanted}, which the gold leads with"
    return _lacking(answer, gold, f1)


def _lacking(answer: str, gold: str, f1: float) -> str:
    """Name the gold's fact or words that the answer lacks; "" if it lacks none that counts."""
    gold, answer = fold(gold), fold(answer)
    facts = find_facts(gold)
    has_facts = any(facts.demanded)
    if has_facts and (missing := missing_fact(facts, find_facts(answer))):
        return (
            f"the gold's {'date' if isinstance(missing, Date) else 'number'} {missing} is not in the answer"
        )
    if f1 >= CORRECT_FROM or _all_words_in(
        _GLUE.sub(" ", facts.rest) if has_facts else gold, answer, has_facts
    ):
        return ""
    letters = _letters(gold)
    if len(letters) >= FEWEST_LETTERS and letters in _letters(answer):
        return ""
    return f"under {CORRECT_FROM}, and not all words of the gold are in the answer"


def _all_words_in(gold: str, answer: str, if_none: bool) -> bool:
    """Whether the answer has each word of ``gold``; a hyphen may be there, be missing or be a blank."""
    said = {*_words(answer), *_words(answer.replace("-", " "))} if "-" in answer else set(_words(answer))
    if said & {"1", "one"}:
        said |= {"1", "one"}
    if "-" not in gold:
        wanted = _words(gold)
        return said.issuperset(wanted) if wanted else if_none
    ways = [(_words(word), _words(word.replace("-", " "))) for word in gold.split()]
    if not any(joined for joined, _ in ways):
        return if_none
    return all(said.issuperset(joined) or said.issuperset(split) for joined, split in ways)


def _words(text: str) -> list[str]:
    return tokens_of(_SEPARATORS.sub(" ", text))


def _letters(text: str) -> str:
    return re.sub(r"[\W_]+", "", text.casefold())


def _plain(text: str) -> str:
    words = fold(text).casefold()
    return " ".join(re.sub(r"[^\w\s]+", "", words).split()) or words.strip()


def _polarity(text: str, *, lead_only: bool = False) -> str:
    """``yes`` or ``no`` if a clause of the text (or only the first one) answers so, else ""."""
    clauses = [clause for part in _CLAUSES.split(fold(text).lower()) if (clause := part.strip(" *_'\""))]
    for clause in clauses[:1] if lead_only else clauses:
        if _YES.match(clause):
            return "yes"
        if _NO.match(clause):
            return "no"
    return ""


def _category(case: Case) -> int:
    """Which F1 rule applies: LoCoMo's category, plain for its answerable fifth and for other families."""
    category = case.question.raw.get("category") if case.sample.dataset == "locomo" else None
    return category if category in (1, 2, 3) else PLAIN


#: Words around a date or a number that say nothing of their own.
_GLUE = re.compile(
    r"\b(?:in|on|at|of|the|by|for|to|from|since|during|around|about|approximately|circa|nearly|almost|roughly|between|"
    r"and|before|after|until)\b"
)
_SEPARATORS = re.compile(r"(?<!\d)[,;:/|]|[,;:/|](?!\d)")
_HEDGES = frozenset(("yes", "no", "likely", "most", "very", "probably", "possibly", "definitely"))
_CLAUSES = re.compile(r"[.,;:!?\n()]+|\s-+\s")
_LEAD = (
    r"(?:(?:well|so|most|very|highly|quite|more|likely|probably|possibly|definitely|certainly|absolutely|i|think|"
    r"believe|would|say|the|answer|it|that|is)\s+)*"
)
_YES = re.compile(rf"{_LEAD}(?:yes|yeah|yep|yup)\b|(?:of course|definitely|certainly|absolutely)$")
#: "no" only where it answers: not in "no more than 12", "no longer" or "no one".
_NO = re.compile(
    rf"{_LEAD}(?:no|nope|nah)(?:$|\s+(?:he|she|it|they|i|we|you|that|this|because|since|as|but|and|although)\b)"
    rf"|{_LEAD}not(?:$|\s+really$)|unlikely$"
)
