"""From a case and an answer to the messages for a judge, in the judge room.

Everything that comes from a dataset or a model is a field and gets fenced; the rules alone are ours.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_himga.answer.dates import human_date
from pytest_himga.data import locomo, longmemeval
from pytest_himga.data.memorystress.reader import FAMILY as MEMORYSTRESS
from pytest_himga.judge.llm_profile import ABSTENTION_RULES, CUT_CATEGORY_3, DEFAULT_RULES
from pytest_himga.judge.locomo_f1 import before_semicolon
from pytest_himga.llm.profile import fill
from pytest_himga.llm.prompt import ChatMessage

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pytest_himga.data.schema import Case, QAPair, Session
    from pytest_himga.judge.llm_profile import JudgeProfile

_OPEN_DOMAIN = 3
_ADVERSARIAL = 5


def messages_for(profile: JudgeProfile, case: Case, answer: str) -> tuple[ChatMessage, ...]:
    """What the judge is sent."""
    fields = fields_of(profile, case, answer)
    return (
        ChatMessage("system", fill(profile.system, fields, trusted={"rules"})),
        ChatMessage("user", fill(profile.user, fields, trusted={"rules"})),
    )


def fields_of(profile: JudgeProfile, case: Case, answer: str) -> Mapping[str, str | None]:
    """The fields of a prompt by their names; None for what this question does not have."""
    question, family = case.question, case.sample.dataset
    fields: dict[str, str | None] = {
        "question": question.question,
        "date": human_date(case.date_str),
        "gold": gold_of(profile, question, family),
        "trap": _text(question.trap),
        "answer": answer,
        "evidence": _evidence(case) if "evidence" in profile.fields else None,
        "detail": _text(question.raw.get("answer_detail")) if family == MEMORYSTRESS else None,
        "explanation": _explanation(question, family),
    }
    fields["rules"] = profile.rules_text(rules_key(question, family), fields)
    return fields


def rules_key(question: QAPair, family: str) -> str:
    """Under which name a profile has the rules for this question; without such rules the default holds.

    Whether a question can be answered goes before its type. LoCoMo's type is told by the category, because
    ``--himga-locomo-labels`` gives the types of the same questions other names.
    """
    if question.expects_abstention:
        return ABSTENTION_RULES
    category = _category(question, family)
    if category == _ADVERSARIAL:
        return DEFAULT_RULES
    if category in locomo.LABELS["locomo"]:
        return locomo.LABELS["locomo"][category].value
    return question.question_type.value


def gold_of(profile: JudgeProfile, question: QAPair, family: str) -> str | None:
    """The gold as this profile shows it; None where abstaining is right or there is none."""
    if question.expects_abstention:
        return None
    gold = _text(question.gold)
    if gold and profile.preprocess == CUT_CATEGORY_3 and _category(question, family) == _OPEN_DOMAIN:
        # A reason that stands alone is all there is.
        return before_semicolon(gold) or gold
    return gold


def _explanation(question: QAPair, family: str) -> str | None:
    # Of an unanswerable question, LoCoMo's `answer` is the trap.
    if question.expects_abstention and family == longmemeval.FAMILY:
        return _text(question.answer)
    return None


def _category(question: QAPair, family: str) -> int:
    """LoCoMo's category, which a file may have as text; 0 in other families."""
    raw = question.raw.get("category") if family == locomo.FAMILY else None
    return int(raw) if isinstance(raw, int | str) and str(raw).isdecimal() else 0


def _text(value: Any) -> str | None:
    """``value`` as text, None if it is blank: a question that somebody built may have a number as gold."""
    text = "" if value is None else str(value)
    return text if text.strip() else None


# -- evidence ----------------------------------------------------------------------------------------


def _evidence(case: Case) -> str | None:
    """The turns of the evidence groups as they were heard, a line each; None if there are none.

    None for unanswerable questions as well: what LoCoMo names there is where the trap comes from.
    """
    question = case.question
    if question.expects_abstention:
        return None
    wanted = {member for group in question.evidence.groups for member in group}
    return "\n".join(_turns(case.history, wanted)) or None


def _turns(history: list[Session], wanted: set[str]) -> Iterator[str]:
    for s, session in enumerate(history, start=1):
        whole = session.session_id in wanted
        for t, turn in enumerate(session.messages, start=1):
            if (whole or (turn.turn_id or f"D{s}:{t}") in wanted) and turn.content.strip():
                date = human_date(turn.date_str or session.date_str)
                yield f"{f'({date}) ' if date else ''}{turn.role}: {turn.content}"
