"""Profiles of LLM judges, in the judge room: what a judge is told, and which rules for which question.

A profile is a TOML file::

    kind = "judge"
    description = "one line for people"      # optional
    preprocess = "locomo-category-3"         # optional: cut what stands behind a gold's first ";"
    system = ["...", "{rules}", "..."]       # paragraphs, see llm/profile.py; all fields are in FIELDS
    user = ["Question: {question}", "Gold: {gold}", "Answer: {answer}"]
    [rules]
    default = ["...", { text = "...", with = "evidence" }]
    abstention = ["..."]                     # for all questions that nobody can answer
    temporal_reasoning = ["..."]             # in place of default, for questions of that type

A rule is a text without fields. ``with`` leaves it out where the question does not have that field.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_himga.data.files import shown
from pytest_himga.data.schema import QuestionType
from pytest_himga.errors import SettingsError, nearest
from pytest_himga.llm.profile import Paragraph, ProfileFile, paragraphs_of, read_profile

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

KIND = "judge"
#: What a prompt can name. ``evidence`` are the turns that the dataset points at, ``detail`` is what
#: MemoryStress says beside its gold, ``explanation`` why LongMemEval's question cannot be answered.
FIELDS = ("question", "date", "gold", "trap", "answer", "evidence", "detail", "explanation", "rules")
#: What every question has.
_ALWAYS = frozenset({"question", "answer", "rules"})
#: The profile that a judge takes for a family unless told otherwise.
DEFAULT_PROFILES = {"locomo": "strict", "longmemeval": "longmemeval", "memorystress": "memorystress"}

DEFAULT_RULES = "default"
ABSTENTION_RULES = "abstention"
#: LoCoMo's category 3 only: behind the first ";" of its gold stands the annotator's reason.
CUT_CATEGORY_3 = "locomo-category-3"

_KEYS = ("kind", "description", "preprocess", "system", "user", "rules")
_TYPES = tuple(type_.value for type_ in QuestionType if type_ is not QuestionType.ADVERSARIAL)


@dataclass(frozen=True)
class JudgeProfile:
    """A judge's prompt. ``rules`` are by ``default``, ``abstention`` and question types.

    ``sha256`` is that of what it tells a model.
    """

    name: str
    sha256: str
    system: tuple[Paragraph, ...]
    user: tuple[Paragraph, ...]
    rules: Mapping[str, tuple[Paragraph, ...]]
    description: str = ""
    preprocess: str | None = None

    @property
    def fields(self) -> frozenset[str]:
        """The fields that its prompt shows or asks for."""
        every = (*self.system, *self.user, *(rule for rules in self.rules.values() for rule in rules))
        return frozenset(name for one in every for name in _needed(one))

    def rules_text(self, key: str, fields: Mapping[str, str | None]) -> str:
        """The rules under ``key`` (else the default ones) as a list, one line each."""
        rules = self.rules.get(key, self.rules[DEFAULT_RULES])
        there = (rule for rule in rules if not rule.only_with or fields.get(rule.only_with) is not None)
        return "\n".join(f"- {rule.pieces[0]}" for rule in there)


def load_judge_profile(spec: str, *, base: Path, option: str) -> JudgeProfile:
    """A shipped profile (``strict``) or a file (``judges/ours.toml``, relative to ``base``).

    ``option`` is the option as it was written, for the error.

    Raises
    ------
    SettingsError
        If there is none, or it is no profile of a judge that is sure to see what it needs.
    """
    file = read_profile(spec, package="pytest_himga.judge", base=base, option=option)
    _check_kind(file)
    _check_keys(file.data, _KEYS, file.where)
    profile = JudgeProfile(
        name=file.name,
        sha256=file.sha256,
        system=_paragraphs(file, "system"),
        user=_paragraphs(file, "user"),
        rules=_rules(file),
        description=_description(file),
        preprocess=_preprocess(file),
    )
    _check_shown(profile, file.where)
    return profile


def _check_kind(file: ProfileFile) -> None:
    kind = file.data.get("kind")
    if kind == KIND:
        return
    if kind is None:
        raise SettingsError(f'{file.where}: kind is missing; write kind = "{KIND}" if this is for a judge')
    hint = (
        "this one is for an answerer, take it for --himga-answer-profile"
        if kind == "answer"
        else nearest(str(kind), [KIND, "answer"])
    )
    raise SettingsError(f"{file.where}: kind is {shown(kind)}, and a judge needs {KIND!r}; {hint}")


def _check_keys(given: Mapping[str, Any], known: tuple[str, ...], where: str) -> None:
    for key in given:
        if key not in known:
            raise SettingsError(f"{where}: {key} is unknown; {nearest(key, known)}")


def _paragraphs(file: ProfileFile, key: str) -> tuple[Paragraph, ...]:
    return paragraphs_of(file.data.get(key), known=FIELDS, where=f"{file.where}: {key}")


def _description(file: ProfileFile) -> str:
    value = file.data.get("description", "")
    if not isinstance(value, str):
        raise SettingsError(f"{file.where}: description is {shown(value)}; write a text")
    return value


def _preprocess(file: ProfileFile) -> str | None:
    value = file.data.get("preprocess")
    if value not in (None, CUT_CATEGORY_3):
        raise SettingsError(
            f"{file.where}: preprocess is {shown(value)}; {nearest(str(value), [CUT_CATEGORY_3])}"
        )
    return CUT_CATEGORY_3 if value else None


# -- rules -------------------------------------------------------------------------------------------


def _rules(file: ProfileFile) -> dict[str, tuple[Paragraph, ...]]:
    where = f"{file.where}: [rules]"
    given = file.data.get("rules")
    if not isinstance(given, dict):
        raise SettingsError(f"{where} is missing; write a table with default and abstention")
    if QuestionType.ADVERSARIAL.value in given:
        raise SettingsError(
            f"{where}: adversarial has no rules of its own: where nobody can answer, abstention's hold, "
            "and default's for the rest"
        )
    _check_keys(given, (DEFAULT_RULES, ABSTENTION_RULES, *_TYPES), where)
    for key, use in (
        (DEFAULT_RULES, "questions of a type without rules of its own"),
        (ABSTENTION_RULES, "questions that nobody can answer"),
    ):
        if key not in given:
            raise SettingsError(f"{where}: {key} is missing; write the list of rules for {use}")
    return {key: _rule_list(value, f"{where}: {key}") for key, value in given.items()}


def _rule_list(value: object, where: str) -> tuple[Paragraph, ...]:
    rules = paragraphs_of(value, known=FIELDS, where=where)
    for number, rule in enumerate(rules, start=1):
        if rule.fields:
            raise SettingsError(
                f"{where}, paragraph {number}: a rule shows no fields; "
                f"name {{{rule.fields[0]}}} under system or user"
            )
    if all(rule.only_with for rule in rules):
        raise SettingsError(f"{where}: each rule has a condition; write one that always holds")
    return rules


# -- does the judge see what it needs? ---------------------------------------------------------------


def _check_shown(profile: JudgeProfile, where: str) -> None:
    """A paragraph with a missing field is left out: none may take with it what every verdict needs."""
    paragraphs = (*profile.system, *profile.user)
    for name in ("question", "answer", "rules", "gold"):
        if not any(name in one.fields and _needed(one) <= _ALWAYS | {name} for one in paragraphs):
            raise SettingsError(
                f"{where}: the judge may not see {{{name}}}; name it in a paragraph of its own, under user or system"
            )
    if not any("fence" in one.fields for one in profile.system if _needed(one) <= _ALWAYS):
        raise SettingsError(
            f"{where}: system does not say what the tags are; explain in a paragraph of its own that what stands "
            "between tags ending in {fence} is text to be judged and no instruction"
        )


def _needed(paragraph: Paragraph) -> set[str]:
    """The fields without which a paragraph is left out."""
    return {*paragraph.fields, *([paragraph.only_with] if paragraph.only_with else [])} - {"fence"}
