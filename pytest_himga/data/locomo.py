"""LoCoMo: ten long chats between two people, and every defect of the file that carries them.

A defect that has one right reading is mended (a malformed reference, an integer answer), with a
warning where something is lost; anything else is a ``DatasetError`` naming file, sample, field and
value. No record is ever skipped.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pytest_himga.data.dates import parse_date
from pytest_himga.data.family import Family, RawRecord, ReadOptions
from pytest_himga.data.files import Place, shown
from pytest_himga.data.identity import uid_of
from pytest_himga.data.schema import EvidenceRef, Message, QAPair, QuestionType, Sample, Session
from pytest_himga.data.whole import load_file
from pytest_himga.errors import DatasetError, nearest

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

FAMILY = "locomo"
#: The keys that every LoCoMo record has; the catalog tells the family by them.
KEYS = frozenset({"conversation", "qa"})

#: What the category numbers mean. ``locomo`` follows the upstream scorer and what the questions are;
#: ``himga`` is the table of upstream HiMGA, wrong for 1, 3 and 4, kept because published tables use it.
LABELS: Mapping[str, Mapping[int, QuestionType]] = {
    "locomo": {
        1: QuestionType.MULTI_HOP,
        2: QuestionType.TEMPORAL,
        3: QuestionType.OPEN_DOMAIN,
        4: QuestionType.SINGLE_HOP,
        5: QuestionType.ADVERSARIAL,
    },
    "himga": {
        1: QuestionType.SINGLE_HOP,
        2: QuestionType.TEMPORAL,
        3: QuestionType.MULTI_HOP,
        4: QuestionType.OPEN_DOMAIN,
        5: QuestionType.ADVERSARIAL,
    },
}
_ADVERSARIAL = 5
_ANNOTATIONS = ("event_summary", "observation", "session_summary")

_SESSION = re.compile(r"session_(\d+)", re.ASCII)
# One rule for all malformed references of the real file: two in one string, "D:11:26", "D30:05".
_REFERENCE = re.compile(r"D:?\s*(\d+):(\d+)", re.ASCII)


def load_locomo(path: Path | str, labels: str = "locomo") -> list[Sample]:
    """Load the samples of a LoCoMo file, ``.gz`` or folder, in file order.

    ``labels`` is ``locomo`` or ``himga``, see ``LABELS``. Emits a ``DatasetWarning`` for each defect
    that loses something; raises ``DatasetError`` for what cannot be read.
    """
    _types(labels)
    return load_file(path, LOCOMO, ReadOptions(labels=labels))


def read(record: RawRecord, options: ReadOptions) -> Sample:
    """Make the sample of one record."""
    place = Place(record.file, _sample_id(record.data, record.number, record.file))
    return _Reader(place, _types(options.labels), record.warnings).sample(record.data)


def type_labels(labels: str = "locomo") -> dict[str, str]:
    """Map each question type to what reports print for it, in the order of the numbers."""
    return {name.value: f"{number} {name.value}" for number, name in _types(labels).items()}


def _types(labels: str) -> Mapping[int, QuestionType]:
    if labels not in LABELS:
        raise DatasetError(f"There are no LoCoMo labels {shown(labels)}; {nearest(labels, LABELS)}")
    return LABELS[labels]


def _sample_id(record: dict[str, Any], number: int, file: Path) -> str:
    value = record.get("sample_id")
    if value is None:
        return str(number)
    if _is_number(value):
        return str(value)
    if not isinstance(value, str) or not value.strip():
        raise Place(file, str(number)).error("sample_id", f"is {shown(value)}; expected a text, or nothing")
    return value


@dataclass
class _Reader:
    """Reads one record; holds what its parts need of each other."""

    place: Place
    types: Mapping[int, QuestionType]
    warnings: list[str]
    turns: set[str] = field(default_factory=set)
    #: (session, turn) as the ids spell them -> turn id, so that "D30:05" finds "D30:5"
    turn_at: dict[tuple[int, int], str] = field(default_factory=dict)
    uids: set[str] = field(default_factory=set)

    def sample(self, record: dict[str, Any]) -> Sample:
        conversation = self.value(record, "conversation", "", dict)
        speaker_a, speaker_b = (self.speaker(conversation, f"speaker_{letter}") for letter in "ab")
        sessions = self.sessions(conversation)
        qa_records = self.value(record, "qa", "", list)
        return Sample(
            sample_id=self.place.sample,
            dataset=FAMILY,
            sessions=sessions,
            qa_pairs=[self.question(qa, number) for number, qa in enumerate(qa_records)],
            speaker_a=speaker_a,
            speaker_b=speaker_b,
            raw={key: record[key] for key in _ANNOTATIONS if key in record},
        )

    # -- the conversation ------------------------------------------------------------------------

    def speaker(self, conversation: dict[str, Any], key: str) -> str | None:
        if conversation.get(key) is None:
            return None
        name: str = self.value(conversation, key, "conversation.", str)
        return name

    def sessions(self, conversation: dict[str, Any]) -> list[Session]:
        # By the turn lists: one conversation of the real file has dates of 16 sessions that do not exist.
        numbered: dict[int, str] = {}
        for key in conversation:
            if match := _SESSION.fullmatch(key):
                number = int(match[1])
                if number in numbered:
                    raise self.place.error(
                        f"conversation.{key}",
                        f"is session {number} again, after {numbered[number]}; rename one",
                    )
                numbered[number] = key
        return [
            session
            for number, key in sorted(numbered.items())
            if (session := self.session(conversation, number, key)) is not None
        ]

    def session(self, conversation: dict[str, Any], number: int, key: str) -> Session | None:
        turns = self.value(conversation, key, "conversation.", list)
        if not turns:
            self.warn(f"conversation.{key}", "the session has no messages; it is left out")
            return None
        date = self.date(conversation, f"{key}_date_time")
        where = f"conversation.{key}"
        messages = [self.message(turn, f"{where}[{position}]", date) for position, turn in enumerate(turns)]
        return Session(str(number), messages, date)

    def date(self, conversation: dict[str, Any], key: str) -> str | None:
        where = f"conversation.{key}"
        if conversation.get(key) is None:
            self.warn(where, "missing; the session is fed without a date")
            return None
        date: str = self.value(conversation, key, "conversation.", str)
        try:
            parse_date(date)
        except ValueError:
            raise self.place.error(
                where, f"{shown(date)} is not a date; expected one like '1:56 pm on 8 May, 2023'"
            ) from None
        return date

    def message(self, turn: Any, where: str, date: str | None) -> Message:
        if not isinstance(turn, dict):
            raise self.place.error(where, f"is {shown(turn)}; expected an object")
        role = self.filled(turn, "speaker", where)
        turn_id = self.filled(turn, "dia_id", where)
        text: str = self.value(turn, "text", f"{where}.", str)
        if turn_id in self.turns:
            raise self.place.error(
                f"{where}.dia_id", f"{shown(turn_id)} is used by an earlier turn; make it unique"
            )
        self.turns.add(turn_id)
        if match := _REFERENCE.fullmatch(turn_id):
            self.turn_at.setdefault((int(match[1]), int(match[2])), turn_id)
        # `blip_caption` is what a model saw in the picture; `query`, the annotators' search text, names
        # answers and goes no further than this line.
        if turn.get("blip_caption") is not None:
            caption = self.value(turn, "blip_caption", f"{where}.", str).strip()
            if caption:
                text = f"[Image: {caption}] {text}" if text.strip() else f"[Image: {caption}]"
        return Message(role, text, turn_id, date)

    # -- the questions ---------------------------------------------------------------------------

    def question(self, record: Any, number: int) -> QAPair:
        where = f"qa[{number}]"
        if not isinstance(record, dict):
            raise self.place.error(where, f"is {shown(record)}; expected an object")
        question = self.filled(record, "question", where)
        category = self.category(record, where)
        answer = self.answer(record, "answer", where)
        trap = self.answer(record, "adversarial_answer", where) if category == _ADVERSARIAL else None
        if answer is None and category != _ADVERSARIAL:
            self.warn(f"{where}.answer", "missing; only retrieval can be scored")
        return QAPair(
            question_id=str(number),
            question=question,
            answer=next((text for text in (trap, answer) if text is not None), ""),
            question_type=self.types[category],
            evidence=self.evidence(record, where),
            raw=record,
            # two adversarial questions of the real file have a real answer: "No", not abstention
            expects_abstention=category == _ADVERSARIAL and answer is None,
            trap=trap,
            gold=answer,
            uid=self.uid(question, category),
        )

    def category(self, record: dict[str, Any], where: str) -> int:
        value = self.value(record, "category", f"{where}.", object)
        number = int(value) if isinstance(value, str) and re.fullmatch(r"\d{1,3}", value, re.ASCII) else value
        if not _is_number(number) or number not in self.types:
            raise self.place.error(
                f"{where}.category", f"{shown(value)} is not a category of LoCoMo; expected 1 to 5"
            )
        return int(number)

    def answer(self, record: dict[str, Any], key: str, where: str) -> str | None:
        """Return the answer as text, None where there is none; six of the real file's are integers."""
        value = record.get(key)
        if value is None:
            return None
        if _is_number(value) or isinstance(value, float):
            return str(value)
        if not isinstance(value, str):
            raise self.place.error(f"{where}.{key}", f"is {shown(value)}; expected a text or a number")
        return value if value.strip() else None

    def uid(self, question: str, category: int) -> str:
        # Counting on until it is free gives twins their number, and keeps two questions apart whose
        # 6 hex digits happen to agree: likely in a sample whose questions have no latin letter.
        twin = 0
        while (uid := uid_of(question, category, twin)) in self.uids:
            twin += 1
        self.uids.add(uid)
        return uid

    def evidence(self, record: dict[str, Any], where: str) -> EvidenceRef:
        """Keep the references that name a turn, in the file's order, once each; never an error."""
        value = record.get("evidence")
        references = [] if value is None else value if isinstance(value, list) else [value]
        found: dict[str, None] = {}
        for position, reference in enumerate(references):
            for text, turn_id in self.resolve(reference):
                if turn_id is not None:
                    found[turn_id] = None
                else:
                    self.warn(f"{where}.evidence[{position}]", f"{shown(text)} names no turn; it is left out")
        return EvidenceRef(turn_ids=list(found), groups=[[turn_id] for turn_id in found])

    def resolve(self, reference: Any) -> list[tuple[Any, str | None]]:
        """Split one entry into references, each with the id of its turn (None: no such turn)."""
        if not isinstance(reference, str):
            return [(reference, None)]
        if reference in self.turns:
            return [(reference, reference)]
        parts = list(_REFERENCE.finditer(reference))
        if not parts:
            return [(reference, None)]
        return [(part[0], self.turn_at.get((int(part[1]), int(part[2])))) for part in parts]

    # -- fields ----------------------------------------------------------------------------------

    def value(self, record: dict[str, Any], key: str, prefix: str, kind: type) -> Any:
        """Return ``record[key]``, which must be there and of the ``kind``."""
        value = record.get(key)
        if value is None:
            raise self.place.error(f"{prefix}{key}", f"missing; expected {_KINDS[kind]}")
        if not isinstance(value, kind):
            raise self.place.error(f"{prefix}{key}", f"is {shown(value)}; expected {_KINDS[kind]}")
        return value

    def filled(self, record: dict[str, Any], key: str, where: str) -> str:
        text: str = self.value(record, key, f"{where}.", str)
        if not text.strip():
            raise self.place.error(f"{where}.{key}", f"is {shown(text)}; expected a text that is not blank")
        return text

    def warn(self, field_name: str, problem: str) -> None:
        self.warnings.append(self.place.sentence(field_name, problem))


_KINDS = {dict: "an object", list: "a list", str: "a text", object: "a number"}


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


LOCOMO = Family(FAMILY, KEYS, read, type_labels)
