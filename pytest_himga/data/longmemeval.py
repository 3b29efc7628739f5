"""LongMemEval: five hundred long histories with one question each, and what their file gives away.

The file marks its evidence three times over: ``has_answer`` on turns, session ids that begin with
``answer_``, and ``_abs`` in ids. All of it is read here and none of it becomes part of a message. Three
parallel lists make the sessions; they are not always in the order of time, two of a history may share an
id, and some lie after the question's minute although never after its day.

A defect that has one right reading is mended, with a warning where something is lost; anything else is
a ``DatasetError`` naming file, sample, field and value. No record is ever skipped.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from pytest_himga.data.dates import parse_date
from pytest_himga.data.family import Family, RawRecord, ReadOptions, Skimmed
from pytest_himga.data.files import Place, shown
from pytest_himga.data.identity import uid_of
from pytest_himga.data.schema import Brief, EvidenceRef, Message, QAPair, QuestionType, Sample, Session
from pytest_himga.data.whole import load_file
from pytest_himga.errors import DatasetError, nearest

if TYPE_CHECKING:
    from pathlib import Path

FAMILY = "longmemeval"
#: What nobody can make up for. Without dates, ids, a type or an answer there is still a question to ask.
KEYS = frozenset({"question_id", "question", "haystack_sessions"})

#: The order of the sessions: a stable sort by time stamp, or as the file has them.
ORDERS = ("time", "file")

#: In printing order; the file spells them with hyphens.
_TYPES = {
    type_.value: type_
    for type_ in (
        QuestionType.SINGLE_SESSION_USER,
        QuestionType.SINGLE_SESSION_ASSISTANT,
        QuestionType.SINGLE_SESSION_PREFERENCE,
        QuestionType.TEMPORAL_REASONING,
        QuestionType.KNOWLEDGE_UPDATE,
        QuestionType.MULTI_SESSION,
    )
}
_FALLBACK = QuestionType.SINGLE_SESSION_USER
#: The end of a question's id that says: this cannot be answered from the history.
_ABSTENTION = "_abs"


def load_longmemeval(path: Path | str, order: str = "time") -> list[Sample]:
    """Load the samples of a LongMemEval file, ``.gz`` or folder, in file order, one per question.

    ``order`` is that of a sample's sessions, see ``ORDERS``. Emits a ``DatasetWarning`` for each defect
    that loses something; raises ``DatasetError`` for what cannot be read.
    """
    return load_file(path, LONGMEMEVAL, ReadOptions(session_order=order))


def read(record: RawRecord, options: ReadOptions) -> Sample:
    """Make the sample of one record; ``options.session_order`` is one of ``ORDERS``.

    One evidence group per turn that is marked as holding the answer. Turns have no ids in the file, so
    a group's member is the place, ``D<session>:<turn>``, both counted from 1 in ``Sample.sessions``
    (blank turns too): the id that the boundary gives the turn.
    """
    order = options.session_order
    if order not in ORDERS:
        raise DatasetError(f"There is no session order {shown(order)}; {nearest(order, ORDERS)}")
    return _Reader(Place(record.file, _sample_id(record)), record.warnings, order).sample(record.data)


def type_labels(labels: str = "locomo") -> dict[str, str]:  # noqa: ARG001 - only LoCoMo's types have two tables
    """Map each question type to what reports print for it, in printing order: its own name."""
    return {name: name for name in _TYPES}


def skim(raw: bytes | memoryview) -> Skimmed | None:
    """What an index keeps of one record, without decoding a turn; None where it must be read whole.

    The briefs are those of the sample that ``read`` makes, except that ``refs`` stay empty: only the
    turns know them. Whatever ``read`` would mend or refuse outside of the turns gives None, so that it
    gets to say so.
    """
    from pytest_himga.data.longmemeval_head import usual_head  # needs msgspec, which reading does not

    head = usual_head(raw)
    if head is None or _type_of(head.question_type) is None:
        return None
    answer = str(head.answer)
    pair = _question(head.question_id, head.question, head.question_type, answer, EvidenceRef(), {})
    return Skimmed(head.question_id, [Brief.of(pair)])


LONGMEMEVAL = Family(FAMILY, KEYS, read, type_labels, id_field="question_id", ordered=True, skim=skim)


def _question(
    question_id: str, text: str, raw_type: object, answer: str, evidence: EvidenceRef, raw: dict[str, Any]
) -> QAPair:
    # The answer to an unanswerable question explains what was never said: neither a gold nor a trap.
    abstain = question_id.endswith(_ABSTENTION)
    return QAPair(
        question_id=question_id,
        question=text,
        answer=answer,
        question_type=_type_of(raw_type) or _FALLBACK,
        evidence=evidence,
        raw=raw,
        expects_abstention=abstain,
        gold=None if abstain else answer,
        uid=uid_of(text, raw_type, 0),
    )


def _type_of(raw: object) -> QuestionType | None:
    return _TYPES.get(raw.replace("-", "_")) if isinstance(raw, str) else None


# -- reading -----------------------------------------------------------------------------------------


def _sample_id(record: RawRecord) -> str:
    value = record.data.get("question_id")
    if _is_number(value):
        return str(value)
    if not isinstance(value, str) or not value.strip():
        problem = "missing" if value is None else f"is {shown(value)}"
        raise Place(record.file, str(record.number)).error("question_id", f"{problem}; expected a text")
    return value


@dataclass
class _Slot:
    """A session on its way into the sample."""

    #: Where the file has it, counted from 0.
    number: int
    session: Session
    when: datetime | None
    #: The turns that hold the answer, counted from 1.
    evidence: list[int]


@dataclass
class _Reader:
    """Reads one record."""

    place: Place
    warnings: list[str]
    order: str
    #: The ids that only sessions without turns have.
    left_out: set[str] = field(default_factory=set)

    def sample(self, record: dict[str, Any]) -> Sample:
        question: str = self.value(record.get("question"), "question", str)
        if not question.strip():
            raise self.place.error("question", f"is {shown(question)}; expected a text that is not blank")
        raw_type = record.get("question_type")
        if _type_of(raw_type) is None:
            problem = "missing" if raw_type is None else f"{shown(raw_type)} is no type of LongMemEval"
            self.warn("question_type", f"{problem}; counted as {_FALLBACK.value}")
        answer = self.answer(record.get("answer"))
        slots = self.slots(record)
        raw = self.asked(record.get("question_date"), slots)
        if self.order == "time":
            slots = _by_time(slots)
        evidence = self.evidence(record.get("answer_session_ids"), slots)
        return Sample(
            sample_id=self.place.sample,
            dataset=FAMILY,
            sessions=[slot.session for slot in slots],
            qa_pairs=[_question(self.place.sample, question, raw_type, answer, evidence, record)],
            raw=raw,
        )

    def answer(self, value: Any) -> str:
        """Return the answer as text, "" where there is none; 32 of the real file's are integers."""
        if _is_number(value) or isinstance(value, float):
            return str(value)
        if value is not None and not isinstance(value, str):
            raise self.place.error("answer", f"is {shown(value)}; expected a text or a number")
        if value is not None and value.strip():
            return str(value)
        if not self.place.sample.endswith(_ABSTENTION):
            self.warn("answer", "missing; only retrieval can be scored")
        return ""

    def asked(self, value: Any, slots: list[_Slot]) -> dict[str, Any]:
        """What the sample keeps of the question's date; says which sessions lie after its day."""
        if value is None:
            self.warn("question_date", "missing; the date of the last session stands in for it")
            return {}
        day = self.date(value, "question_date").date()
        # By days: in the real files many sessions, and evidence, lie after the question's minute.
        late = [f"[{slot.number}]" for slot in slots if slot.when is not None and slot.when.date() > day]
        if late:
            self.warn("haystack_dates", f"{', '.join(late)} after the day of the question, {day}; kept")
        return {"question_date": value}

    # -- the sessions ----------------------------------------------------------------------------

    def slots(self, record: dict[str, Any]) -> list[_Slot]:
        """The sessions that have turns, in the file's order."""
        sessions = self.value(record.get("haystack_sessions"), "haystack_sessions", list)
        undated = "is fed without a date, right behind the one before it"
        dates = self.parallel(record, "haystack_dates", len(sessions), undated)
        ids = self.parallel(record, "haystack_session_ids", len(sessions), "is called by its number")
        if not len(dates) == len(ids) == len(sessions):
            raise self.place.error(
                "haystack_sessions",
                f"there are {len(sessions)} sessions, {len(dates)} haystack_dates and {len(ids)} "
                "haystack_session_ids; expected as many of each",
            )
        slots: list[_Slot] = []
        for number, (turns, date, session_id) in enumerate(zip(sessions, dates, ids, strict=True)):
            where = f"haystack_sessions[{number}]"
            when = None if date is None else self.date(date, f"haystack_dates[{number}]")
            name = str(number + 1) if session_id is None else self.session_id(session_id, number)
            if not self.value(turns, where, list):
                self.warn(where, "the session has no messages; it is left out")
                self.left_out.add(name)
                continue
            messages = [self.message(turn, f"{where}[{t}]", date) for t, turn in enumerate(turns)]
            marked = [t for t, turn in enumerate(turns, start=1) if turn.get("has_answer") is True]
            slots.append(_Slot(number, Session(name, messages, date), when, marked))
        self.left_out -= {slot.session.session_id for slot in slots}  # two may share an id
        return slots

    def parallel(self, record: dict[str, Any], key: str, size: int, consequence: str) -> list[Any]:
        """One of the lists that stand beside the sessions; None where an entry or the list is missing."""
        value = record.get(key)
        if value is None:
            self.warn(key, f"missing; each session {consequence}")
            return [None] * size
        entries: list[Any] = self.value(value, key, list)
        for number, entry in enumerate(entries):
            if entry is None:
                self.warn(f"{key}[{number}]", f"missing; its session {consequence}")
        return entries

    def date(self, value: Any, where: str) -> datetime:
        text = self.value(value, where, str)
        try:
            return parse_date(text)
        except ValueError:
            raise self.place.error(
                where, f"{shown(value)} is not a date; expected one like '2023/05/20 (Sat) 02:21'"
            ) from None

    def session_id(self, value: Any, number: int) -> str:
        if _is_number(value):
            return str(value)
        return str(self.value(value, f"haystack_session_ids[{number}]", str))

    def message(self, turn: Any, where: str, date: str | None) -> Message:
        if not isinstance(turn, dict):
            raise self.place.error(where, f"is {shown(turn)}; expected an object")
        role = self.value(turn.get("role"), f"{where}.role", str)
        return Message(role, self.value(turn.get("content"), f"{where}.content", str), date_str=date)

    # -- the evidence ----------------------------------------------------------------------------

    def evidence(self, value: Any, slots: list[_Slot]) -> EvidenceRef:
        """Where the answer stands, by turns and by the file's own list of sessions; never an error."""
        turn_ids: list[str] = []
        for s, slot in enumerate(slots, start=1):
            for t in slot.evidence:
                if slot.session.messages[t - 1].content.strip():
                    turn_ids.append(f"D{s}:{t}")
                else:
                    self.warn(
                        f"haystack_sessions[{slot.number}][{t - 1}]",
                        "holds the answer and is blank, so it is not fed; it is no evidence",
                    )
        session_ids: list[str] = []
        entries = [] if value is None else value if isinstance(value, list) else [value]
        for number, entry in enumerate(entries):
            if not isinstance(entry, str) and not _is_number(entry):
                self.warn(
                    f"answer_session_ids[{number}]", f"{shown(entry)} is no session's id; it is left out"
                )
            elif str(entry) not in self.left_out:
                session_ids.append(str(entry))
        return EvidenceRef(turn_ids, session_ids, [[turn_id] for turn_id in turn_ids])

    # -- fields ----------------------------------------------------------------------------------

    def value(self, value: Any, where: str, kind: type) -> Any:
        """Return ``value``, which must be there and of the ``kind``."""
        if value is None:
            raise self.place.error(where, f"missing; expected {_KINDS[kind]}")
        if not isinstance(value, kind):
            raise self.place.error(where, f"is {shown(value)}; expected {_KINDS[kind]}")
        return value

    def warn(self, where: str, problem: str) -> None:
        self.warnings.append(self.place.sentence(where, problem))


def _by_time(slots: list[_Slot]) -> list[_Slot]:
    """Sort by time stamp, stably; a session without one stays right behind the one before it."""
    stamps: list[datetime] = []
    for slot in slots:
        before = stamps[-1] if stamps else datetime.min.replace(tzinfo=UTC)
        stamps.append(slot.when or before)
    return [slot for _, slot in sorted(zip(stamps, slots, strict=True), key=lambda pair: pair[0])]


_KINDS: dict[type, str] = {list: "a list", str: "a text"}


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
