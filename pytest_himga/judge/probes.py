"""Probes, in the judge room: answers of which it is known whether they are right, to try a judge on.

Shipped ones are invented (``probes.toml``, which tells how they are labelled); those of a dataset are made
of its own golds, without a model.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_himga.data.schema import (
    Case,
    EvidenceRef,
    Message,
    QAPair,
    QuestionType,
    Sample,
    Session,
)
from pytest_himga.judge.abstention import abstains
from pytest_himga.judge.facts import find_facts, fold
from pytest_himga.judge.locomo_f1 import tokens_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

#: What shipped probes are of: right answers, then wrong ones, in the order of tables.
KINDS = (
    "right", "paraphrase", "extra detail", "another language", "a refusal",
    "partial list", "off-by-one date", "wrong date", "wrong person", "vague but on topic", "the trap",
    "a refusal of an answerable question", "injected", "empty",
)  # fmt: skip
#: The dataset that shipped probes say they are of, and the format that they have.
SHIPPED = "himga-probes"
SHIPPED_FAMILY = "locomo"
#: What a dataset's unanswerable questions are rightly answered with.
REFUSAL = "The conversation does not say."
_FILE = Path(__file__).with_name("probes.toml")
_CATEGORIES = {
    QuestionType.MULTI_HOP: 1,
    QuestionType.TEMPORAL: 2,
    QuestionType.OPEN_DOMAIN: 3,
    QuestionType.SINGLE_HOP: 4,
    QuestionType.ADVERSARIAL: 5,
}


@dataclass(frozen=True)
class Probe:
    """An answer to a question, and whether it is right. ``id`` is unique among those of one source."""

    id: str
    kind: str
    case: Case
    answer: str
    right: bool


# -- shipped -----------------------------------------------------------------------------------------


def shipped_probes() -> list[Probe]:
    """The probes that are part of this package, in the order of ``KINDS``."""
    import tomllib

    content = tomllib.loads(_FILE.read_text(encoding="utf-8"))
    probes = [
        probe for number, record in enumerate(content["question"]) for probe in _shipped(number, record)
    ]
    return sorted(probes, key=lambda probe: KINDS.index(probe.kind))


def _shipped(number: int, record: dict[str, Any]) -> Iterator[Probe]:
    question = _question(record)
    speaker, _, words = record["said"].partition(": ")
    session = Session("1", [Message(speaker, words, "D1:1", record["date"])], record["date"])
    sample = Sample(str(number), SHIPPED_FAMILY, [session], [question])
    case = Case.of(SHIPPED, sample.sample_id, sample, question)
    for probe in record["probe"]:
        yield Probe(probe["id"], probe["kind"], case, probe["answer"], probe["right"])


def _question(record: dict[str, Any]) -> QAPair:
    """The question as the LoCoMo loader makes it, record and all: judges look at the category."""
    kind, trap = QuestionType(record["type"]), record.get("trap")
    key = "answer" if trap is None else "adversarial_answer"
    text = record["gold"] if trap is None else trap
    return QAPair(
        question_id="0",
        question=record["question"],
        answer=text,
        question_type=kind,
        evidence=EvidenceRef(turn_ids=["D1:1"], groups=[["D1:1"]]),
        raw={
            "question": record["question"],
            key: text,
            "evidence": ["D1:1"],
            "category": _CATEGORIES[kind],
        },
        expects_abstention=record.get("unanswerable", False),
        trap=trap,
        gold=record.get("gold"),
    )


# -- made of a dataset -------------------------------------------------------------------------------


def dataset_probes(cases: Sequence[Case]) -> Iterator[Probe]:
    """Two probes of each question, in the order of ``cases``; decodes nothing.

    Of an answerable one: its gold (right), and the gold of another question that says something else
    (wrong) - of the same sample and type if there is one, else of the same sample, else of the same type,
    the next one behind it. Of an unanswerable one: a refusal (right) and, where the dataset has one, the
    trap (wrong).

    Left out are preference rubrics, questions without a gold, those that the dataset itself says nobody
    can answer, and those that errata exclude.
    """
    usable = [case for case in cases if _is_usable(case)]
    golds = _Golds([case for case in usable if not case.brief.expects_abstention])
    for case in usable:
        if case.brief.expects_abstention:
            yield _made(case, "refusal", REFUSAL, right=True)
            trap = case.brief.trap or ""
            if trap.strip() and not abstains(trap):  # two traps of the real file are refusals themselves
                yield _made(case, "trap", trap, right=False)
            continue
        yield _made(case, "gold", _gold(case), right=True)
        other = golds.another(case)
        if other is not None:
            yield _made(case, "another's gold", _gold(other), right=False)


def _is_usable(case: Case) -> bool:
    erratum, brief = case.erratum, case.brief
    if erratum is not None and erratum.exclude and not erratum.only_evidence:
        return False
    if brief.expects_abstention:
        return True
    rubric = brief.type == QuestionType.SINGLE_SESSION_PREFERENCE
    return brief.recoverable and not rubric and bool((brief.gold or "").strip())


def _made(case: Case, kind: str, answer: str, *, right: bool) -> Probe:
    word = "another" if kind == "another's gold" else kind
    return Probe(f"{case.sample_name}/{case.uid}/{word}", kind, case, answer, right)


def _gold(case: Case) -> str:
    return case.brief.gold or ""


class _Golds:
    """The answerable questions of a dataset, to find for each one whose gold says something else."""

    def __init__(self, cases: list[Case]) -> None:
        self._by_sample: dict[str, list[Case]] = {}
        self._by_type: dict[str, list[Case]] = {}
        self._places: dict[str, tuple[int, int]] = {}
        for case in cases:
            sample = self._by_sample.setdefault(case.sample_id, [])
            kind = self._by_type.setdefault(case.brief.type, [])
            self._places[case.id] = (len(sample), len(kind))
            sample.append(case)
            kind.append(case)

    def another(self, case: Case) -> Case | None:
        """The first that will do; None if there is none."""
        in_sample, of_type = self._places[case.id]
        sample, kind = self._by_sample[case.sample_id], self._by_type[case.brief.type]
        candidates = chain(
            (other for other in _behind(sample, in_sample) if other.brief.type == case.brief.type),
            _behind(sample, in_sample),
            _behind(kind, of_type),
        )
        return next((other for other in candidates if _says_something_else(case, other)), None)


def _behind(cases: list[Case], place: int) -> Iterator[Case]:
    """All others, beginning with the next one, and after the last with the first."""
    return chain(islice(cases, place + 1, None), islice(cases, place))


def _says_something_else(case: Case, other: Case) -> bool:
    """Whether hardly anybody could take the other question's gold for this one's.

    That is: the questions differ; neither gold has all words of the other ("7 May" and "May 7th, 2031"), nor
    have they more than half of their words in common; they do not both say yes, or no; and they do not both
    say that the answer is not known.
    """
    mine, its = _gold(case), _gold(other)
    my_words, its_words = _words(mine), _words(its)
    shared = my_words & its_words
    if len(shared) in (len(my_words), len(its_words)) or 2 * len(shared) > len(my_words | its_words):
        return False
    if _polarity(mine) & _polarity(its) or _words(case.brief.question) == _words(other.brief.question):
        return False
    return not (abstains(mine) and abstains(its))


def _polarity(text: str) -> set[str]:
    return {"yes", "no"}.intersection(re.findall(r"\w+", text.lower()))


@lru_cache(maxsize=1 << 12)
def _words(text: str) -> frozenset[str]:
    """The stems of what a text says, its numbers in digits and its dates in words."""
    facts = find_facts(fold(text))
    said = " ".join([facts.rest, *map(str, facts.dates), *map(str, facts.numbers)])
    words = (word for word in re.findall(r"\w+", said.lower()) if word not in _GLUE)
    return frozenset(tokens_of(" ".join(words)))


#: Words that two ways to say the same may differ in; "a", "an", "the" and "and" are no tokens at all.
_GLUE = frozenset(
    (
        *("in", "on", "at", "of", "to", "for", "from", "by", "with", "as", "it", "is", "was", "were", "be"),
        *("he", "she", "they", "his", "her", "hers", "their", "this", "that"),
    )
)
