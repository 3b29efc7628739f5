"""MemoryStress as the runner reads it: one long history, and questions asked at checkpoints within it.

The sessions come by phase and index, and a question is asked after those of the phases up to its own. The
file knows more than a memory may be told: of a session only its turns, its date and its agent go on, and
what planted it, what it is about and how noisy it is stay behind.

A defect that has one right reading is mended, with a warning where something is lost; anything else is
a ``DatasetError`` naming file, object, field and value. No question is ever skipped.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pytest_himga.data.dates import parse_date
from pytest_himga.data.family import Family, RawRecord, ReadOptions
from pytest_himga.data.files import Place, shown
from pytest_himga.data.identity import uid_of
from pytest_himga.data.memorystress.integrity import gathered, problems, type_name
from pytest_himga.data.memorystress.model import BenchmarkData, benchmark_of
from pytest_himga.data.memorystress.planting import Planting
from pytest_himga.data.schema import EvidenceRef, Message, QAPair, QuestionType, Sample, Session
from pytest_himga.data.whole import load_file

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_himga.data.memorystress import model

FAMILY = "memorystress"
#: A benchmark without chains is one without contradictions; without these it is none.
KEYS = frozenset({"facts", "sessions", "questions"})
#: The id of a benchmark that has none of its own: a file holds one, and its format gives it no name.
SAMPLE_ID = "main"

#: In printing order.
TYPES = {
    type_.value: type_
    for type_ in (
        QuestionType.FACT_RECALL,
        QuestionType.PREFERENCE_RECALL,
        QuestionType.CONTRADICTION_RESOLUTION,
        QuestionType.TEMPORAL_ORDERING,
        QuestionType.CROSS_AGENT_RECALL,
        QuestionType.COLD_START_RECALL,
        QuestionType.SINGLE_MENTION_RECALL,
    )
}
_FALLBACK = QuestionType.FACT_RECALL


def load_memorystress(path: Path | str) -> list[Sample]:
    """Load a MemoryStress file, ``.gz``, or folder of such files; one file is one sample, ``main``.

    Emits a ``DatasetWarning`` for each kind of defect, see ``integrity.problems``; raises ``DatasetError``
    for what cannot be read.
    """
    return load_file(path, MEMORYSTRESS, ReadOptions())


def read(record: RawRecord, options: ReadOptions) -> Sample:  # noqa: ARG001 - nothing of it is optional
    """Make the sample of one benchmark.

    The sample is called ``main``. In a folder of several files the later ones are called like their file,
    and a ``sample_id`` in the file goes before both; samples are never merged.

    - ``QAPair.asked_after`` counts the sessions of the phases up to ``phase_asked``; checkpoint 4 comes
      after all of them. A session without turns is left out and not counted.
    - ``cross_agent`` follows the question's type. The published generator does not see to it that the asker
      was not told the answer; a warning names such questions.
    - ``cold_start`` is the flag alone. In the generated files it is set on exactly the questions of type
      ``cold_start_recall``; one of that type without the flag is asked of the running instance, and a
      warning names it.
    - ``recoverable`` is False where all known target facts say so.
    - The evidence is that of ``Planting.groups``.
    """
    place = Place(record.file, _sample_id(record))
    return _Reader(place, record, benchmark_of(record.data, record.file)).sample()


def type_labels(labels: str = "locomo") -> dict[str, str]:  # noqa: ARG001 - only LoCoMo's types have two tables
    """Map each question type to what reports print for it, in printing order: its own name."""
    return {name: name for name in TYPES}


MEMORYSTRESS = Family(FAMILY, KEYS, read, type_labels)


def _sample_id(record: RawRecord) -> str:
    own = record.data.get("sample_id")
    if own is None:
        return SAMPLE_ID if record.number == 0 else record.file.name.removesuffix(".gz").removesuffix(".json")
    if not isinstance(own, str) or not own.strip():
        raise Place(record.file, SAMPLE_ID).error(
            "sample_id", f"is {shown(own)}; expected a text, or nothing"
        )
    return own


@dataclass
class _Reader:
    """Reads one benchmark; holds what its parts need of each other."""

    place: Place
    record: RawRecord
    data: BenchmarkData
    planting: Planting = field(init=False)
    uids: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.planting = Planting(self.data)

    def sample(self) -> Sample:
        self.warn_of_defects()
        raw = self.record.data
        asked = zip(self.data.questions, raw.get("questions", []), strict=True)
        return Sample(
            sample_id=self.place.sample,
            dataset=FAMILY,
            sessions=[self.session(session) for session in self.planting.sessions],
            qa_pairs=[self.question(question, record) for question, record in asked],
            raw={key: value for key, value in raw.items() if key not in ("sessions", "questions")},
        )

    # -- the history ---------------------------------------------------------------------------------

    def session(self, session: model.Session) -> Session:
        date = self.date(session)
        return Session(
            session_id=session.session_id,
            messages=[self.message(turn, session, n, date) for n, turn in enumerate(session.turns)],
            date_str=date,
            title=session.topic,
            agent_id=session.agent_id or None,
        )

    def date(self, session: model.Session) -> str | None:
        date = session.simulated_date
        if not date.strip():
            return None
        try:
            parse_date(date)
        except ValueError:
            raise self.place.error(
                f"simulated_date of session {session.session_id}",
                f"{shown(date)} is not a date; expected one like '2024-03-01T09:30:00'",
            ) from None
        return date

    def message(self, turn: dict[str, Any], session: model.Session, number: int, date: str | None) -> Message:
        where = f"turns[{number}] of session {session.session_id}"
        role, content = turn.get("role"), turn.get("content", "")
        if not isinstance(role, str) or not role.strip():
            problem = f"is {shown(role)}" if "role" in turn else "missing"
            raise self.place.error(f"{where}, role", f"{problem}; expected 'user' or 'assistant'")
        if not isinstance(content, str):
            raise self.place.error(f"{where}, content", f"is {shown(content)}; expected a text")
        return Message(role, content, date_str=date)

    # -- the questions -------------------------------------------------------------------------------

    def question(self, question: model.Question, record: dict[str, Any]) -> QAPair:
        if not question.question.strip():
            raise self.place.error(
                f"question of {question.question_id}",
                f"is {shown(question.question)}; expected a text that is not blank",
            )
        answer = str(question.answer)
        type_ = TYPES.get(type_name(question.question_type), _FALLBACK)
        cross_agent = type_ is QuestionType.CROSS_AGENT_RECALL
        groups = self.planting.groups(question)
        sessions = (member for group in groups for member in group if member in self.planting.places)
        return QAPair(
            question_id=question.question_id,
            question=question.question,
            answer=answer,
            question_type=type_,
            evidence=EvidenceRef(session_ids=list(dict.fromkeys(sessions)), groups=groups),
            raw=record,
            gold=answer,
            uid=self.uid(question),
            asked_after=self.planting.asked_after(question),
            as_agent=question.agent_scope or None,
            cross_agent=cross_agent,
            cold_start=question.cold_start,
            recoverable=self.is_recoverable(question),
            facets={
                "age": question.age_sessions,
                "checkpoint": question.phase_asked,
                "cross_agent": cross_agent,
                "cold_start": question.cold_start,
            },
        )

    def uid(self, question: model.Question) -> str:
        # Counting on until it is free gives twins their number, and keeps two questions apart whose
        # 6 hex digits happen to agree.
        twin = 0
        while (uid := uid_of(question.question, question.question_type, twin)) in self.uids:
            twin += 1
        self.uids.add(uid)
        return uid

    def is_recoverable(self, question: model.Question) -> bool:
        facts = [self.planting.facts[one] for one in question.target_fact_ids if one in self.planting.facts]
        return not facts or any(fact.recoverable for fact in facts)

    # -- what is said about it -----------------------------------------------------------------------

    def warn_of_defects(self) -> None:
        sessions, questions = self.data.sessions, self.data.questions
        said = [
            *gathered(
                (one.session_id for one in sessions if not one.turns), "session", "without turns", "left out"
            ),
            *gathered(
                (one.session_id for one in self.planting.sessions if not one.simulated_date.strip()),
                "session",
                "without a simulated_date",
                "fed without a date",
            ),
            *gathered(
                (
                    one.session_id
                    for one in self.planting.sessions
                    if any("content" not in turn for turn in one.turns)
                ),
                "session",
                "with a turn that has no content",
                "such a turn counts as blank",
            ),
            *gathered(
                (one.question_id for one in questions if type_name(one.question_type) not in TYPES),
                "question",
                "of an unknown question_type",
                f"read as {_FALLBACK.value}",
            ),
            *gathered(
                (one.question_id for one in questions if not str(one.answer).strip()),
                "question",
                "without an answer",
                "only retrieval can be scored",
            ),
            *problems(self.data, self.planting),
        ]
        self.record.warnings.extend(
            f"{self.place.file}: sample {shown(self.place.sample)}: {text}" for text in said
        )
