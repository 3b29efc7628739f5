"""What is asked: plain dataclasses, the same for every dataset.

They are compared with ``==`` and can be built directly, so that a loader, a test or a user's own
dataset all make the same thing. Nothing here knows about files or about pytest.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol

from pytest_himga.data.identity import uid_of

if TYPE_CHECKING:
    from pytest_himga.data.erratum import Erratum


class QuestionType(StrEnum):
    """What a question tests, in the words of the dataset's paper."""

    # LoCoMo, by what its categories hold (see data/locomo.py for the numbers)
    MULTI_HOP = "multi_hop"
    TEMPORAL = "temporal"
    OPEN_DOMAIN = "open_domain"
    SINGLE_HOP = "single_hop"
    ADVERSARIAL = "adversarial"
    # LongMemEval
    SINGLE_SESSION_USER = "single_session_user"
    SINGLE_SESSION_ASSISTANT = "single_session_assistant"
    SINGLE_SESSION_PREFERENCE = "single_session_preference"
    TEMPORAL_REASONING = "temporal_reasoning"
    KNOWLEDGE_UPDATE = "knowledge_update"
    MULTI_SESSION = "multi_session"
    # MemoryStress
    FACT_RECALL = "fact_recall"
    PREFERENCE_RECALL = "preference_recall"
    CONTRADICTION_RESOLUTION = "contradiction_resolution"
    TEMPORAL_ORDERING = "temporal_ordering"
    CROSS_AGENT_RECALL = "cross_agent_recall"
    COLD_START_RECALL = "cold_start_recall"
    SINGLE_MENTION_RECALL = "single_mention_recall"


@dataclass
class Message:
    """One utterance. ``role`` is the speaker's real name where the dataset has one.

    ``turn_id`` is the file's own id of the turn (LoCoMo's ``dia_id``), ``date_str`` the raw date of the
    session that it stands in.
    """

    role: str
    content: str
    turn_id: str | None = None
    date_str: str | None = None


@dataclass
class Session:
    """A dated stretch of the history; ``date_str`` is kept as the file has it.

    ``agent_id`` is the agent that heard it, in a dataset with several agents over one memory.
    """

    session_id: str
    messages: list[Message]
    date_str: str | None = None
    title: str | None = None
    agent_id: str | None = None


@dataclass
class EvidenceRef:
    """Where the answer stands.

    ``groups`` is what retrieval is scored on: every group must be hit, and any member hits it. A member
    is a turn id or a session id. ``turn_ids`` and ``session_ids`` are what the file says, flat.
    """

    turn_ids: list[str] = field(default_factory=list)
    session_ids: list[str] = field(default_factory=list)
    groups: list[list[str]] = field(default_factory=list)


@dataclass
class QAPair:
    """One question.

    ``answer`` is literal to the file and always text; for an unanswerable question it may be the trap.
    Judges, metrics and reports read ``gold`` (None if abstaining is right) and ``trap`` only.
    ``raw`` is the whole original record.

    ``asked_after`` is its checkpoint: how many sessions of the sample come before it (None: all).
    ``as_agent`` is the agent that asks; ``cross_agent`` says that another one was told the answer, and
    ``cold_start`` that a fresh instance over the same store must answer. ``recoverable`` is False where
    the dataset itself says that nobody can know the answer. ``facets`` are what summaries of the family
    slice by: plain values by name, e.g. ``{"age": 120, "checkpoint": 2}``.
    """

    question_id: str
    question: str
    answer: str
    question_type: QuestionType
    evidence: EvidenceRef = field(default_factory=EvidenceRef)
    raw: dict[str, Any] = field(default_factory=dict)
    expects_abstention: bool = False
    trap: str | None = None
    gold: str | None = None
    uid: str = ""
    asked_after: int | None = None
    as_agent: str | None = None
    cross_agent: bool = False
    cold_start: bool = False
    recoverable: bool = True
    facets: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.gold is None and not self.expects_abstention:
            self.gold = self.answer
        if not self.uid:
            self.uid = uid_of(self.question, self.question_type.value, 0)


@dataclass
class Sample:
    """One conversation history and the questions about it: the unit of ingestion and isolation.

    ``dataset`` is the family (``locomo``, ``longmemeval``, ``memorystress``).
    """

    sample_id: str
    dataset: str
    sessions: list[Session]
    qa_pairs: list[QAPair]
    speaker_a: str | None = None
    speaker_b: str | None = None
    raw: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class Brief:
    """What is known of a question without decoding its sample; a dataset's index keeps these.

    ``type`` is the value of its ``QuestionType``; ``refs`` are the first members of its evidence groups,
    empty where only decoding tells them. The rest is as in ``QAPair``.
    """

    uid: str
    question_id: str
    question: str
    type: str
    gold: str | None = None
    trap: str | None = None
    expects_abstention: bool = False
    recoverable: bool = True
    refs: list[str] = field(default_factory=list)
    facets: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, question: QAPair) -> Brief:
        """What an index keeps of ``question``."""
        return cls(
            uid=question.uid,
            question_id=question.question_id,
            question=question.question,
            type=question.question_type.value,
            gold=question.gold,
            trap=question.trap,
            expects_abstention=question.expects_abstention,
            recoverable=question.recoverable,
            refs=[group[0] for group in question.evidence.groups],
            facets=question.facets,
        )


class SampleSource(Protocol):
    """Where a sample comes from when it is needed."""

    def sample(self) -> Sample:
        """The sample, decoded now if it is not in memory.

        Raises
        ------
        DatasetError
            If the file is broken there, or has changed since it was indexed.
        """


@dataclass(frozen=True)
class InMemory:
    """The source of a sample that is there already."""

    whole: Sample

    def sample(self) -> Sample:
        """The sample."""
        return self.whole


@dataclass(frozen=True, eq=False)
class Case:
    """One question of one sample of one dataset, as judges and fixtures get it.

    ``dataset`` is the name asked for on the command line; ``sample_name`` and ``id`` are the slugs that
    stand in node ids. ``brief`` is there at once; ``sample`` and ``question`` decode the sample, which is
    kept only as long as somebody works with it.
    """

    dataset: str
    sample_name: str
    brief: Brief
    #: Which of the sample's questions it is, counted from 0.
    position: int
    source: SampleSource
    #: What is known to be wrong with it, where errata were asked for.
    erratum: Erratum | None = None

    @classmethod
    def of(cls, dataset: str, sample_name: str, sample: Sample, question: QAPair) -> Case:
        """A case of a sample that is in memory."""
        uids = [other.uid for other in sample.qa_pairs]
        return cls(dataset, sample_name, Brief.of(question), uids.index(question.uid), InMemory(sample))

    @property
    def sample(self) -> Sample:
        """The conversation history and its questions."""
        return self.source.sample()

    @property
    def question(self) -> QAPair:
        """The question itself, with its evidence and its original record."""
        question = self.sample.qa_pairs[self.position]
        if self.erratum is not None and self.erratum.gold is not None:
            return replace(question, gold=self.erratum.gold)
        return question

    def as_published(self) -> Case:
        """The same question without its erratum."""
        return replace(self, erratum=None)

    @property
    def uid(self) -> str:
        """The question's stable identity inside its sample."""
        return self.brief.uid

    @property
    def sample_id(self) -> str:
        """The node id of the sample, ``himga/<dataset>/<sample>``."""
        return f"himga/{self.dataset}/{self.sample_name}"

    @property
    def date_str(self) -> str | None:
        """When it is asked: the question's own date, else that of the last session before it."""
        own = self.sample.raw.get("question_date")
        if isinstance(own, str):
            return own
        dated = [session.date_str for session in self.history if session.date_str]
        return dated[-1] if dated else None

    @property
    def history(self) -> list[Session]:
        """The sessions up to the question's checkpoint."""
        return self.sample.sessions[: self.question.asked_after]

    @property
    def id(self) -> str:
        """The node id of the question, ``himga/<dataset>/<sample>::<uid>``."""
        return f"{self.sample_id}::{self.uid}"
