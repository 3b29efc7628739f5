"""MemoryStress' own format: the typed container that its file is read into and written from.

Field names, their order and their defaults are the format's; see ``record`` for what is required and what
becomes of fields that the format does not know.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Self

from pytest_himga.data.files import read_records, shown
from pytest_himga.data.memorystress.record import NO_FILE, Record
from pytest_himga.errors import DatasetError

#: A file that has none of these is no MemoryStress file, whatever else it holds.
_TELLING = ("facts", "sessions", "questions")


@dataclass(eq=False)
class Fact(Record):
    """Something that a user lets fall in one session, to be asked for later.

    ``category`` is preference, decision, technical_fact, personal_info, event or relationship;
    ``phase_planted`` 1 to 3; ``session_planted`` and ``mention_sessions`` are session ids;
    ``simulated_date`` is an ISO date; ``importance`` goes from 1 to 5; ``mention_count`` counts sessions;
    ``contradiction_chain`` is a chain's id; ``recoverable`` is False where nobody can be expected to know
    it; ``difficulty`` is easy, medium or hard.
    """

    kind: ClassVar[str] = "fact"
    id_field: ClassVar[str] = "fact_id"

    fact_id: str
    content: str
    category: str
    phase_planted: int
    session_planted: str
    simulated_date: str
    importance: int
    mention_count: int
    mention_sessions: list[str] = field(default_factory=list)
    contradiction_chain: str | None = None
    recoverable: bool = True
    tags: list[str] = field(default_factory=list)
    difficulty: str = "medium"


@dataclass(eq=False)
class ContradictionChain(Record):
    """A fact that changes: ``versions`` in their order, each a plain dict.

    A version has ``version`` (from 1), ``content``, ``session_id`` ("" if it stands in no session),
    ``simulated_date`` and ``phase``. ``pattern`` is fact_update, fact_update_revert, fact_accumulate or
    fact_partial_update.
    """

    kind: ClassVar[str] = "chain"
    id_field: ClassVar[str] = "chain_id"

    chain_id: str
    original_fact_id: str
    versions: list[dict[str, Any]] = field(default_factory=list)
    final_ground_truth: str = ""
    pattern: str = "fact_update"


@dataclass(eq=False)
class Session(Record):
    """One conversation of a user with an agent, ``agent_a`` or ``agent_b``.

    ``session_index`` counts from 0 over all phases, ``phase`` is 1 to 3, ``simulated_date`` an ISO
    date-time; ``turns`` are plain dicts with ``role`` (user or assistant) and ``content``;
    ``noise_level`` is low, medium or high.
    """

    kind: ClassVar[str] = "session"
    id_field: ClassVar[str] = "session_id"

    session_id: str
    session_index: int
    phase: int
    simulated_date: str
    topic: str
    agent_id: str
    turns: list[dict[str, Any]] = field(default_factory=list)
    planted_fact_ids: list[str] = field(default_factory=list)
    noise_level: str = "low"
    token_count_estimate: int = 0


@dataclass(eq=False)
class Question(Record):
    """A question about one or more facts, asked at a checkpoint by one of the agents.

    ``answer`` is the gold, a text or a number as in the file; ``answer_detail`` is for the judge and
    nobody else. ``phase_asked`` is 1 to 4, where 4 comes after everything and brings no new session.
    ``age_sessions`` and ``age_days`` say how far back the fact lies. ``question_type`` is one of the seven
    of ``QuestionType``. ``cold_start`` asks for a fresh instance over the same store.
    """

    kind: ClassVar[str] = "question"
    id_field: ClassVar[str] = "question_id"

    question_id: str
    question: str
    target_fact_ids: list[str] = field(default_factory=list)
    target_chain_id: str | None = None
    answer: str | int | float = ""
    answer_detail: str = ""
    phase_asked: int = 1
    target_fact_phase: int = 1
    age_sessions: int = 0
    age_days: int = 0
    question_type: str = "fact_recall"
    scoring_dimensions: list[str] = field(default_factory=list)
    difficulty: str = "medium"
    agent_scope: str = "agent_a"
    cold_start: bool = False


@dataclass(eq=False)
class BenchmarkData(Record):
    """A whole benchmark: what its one file holds.

    ``phases`` maps "1", "2", "3" to ``{session_range: [first, last], description}``, counted from 1 with
    both ends; "4" has no sessions and is not there. ``stats`` are the file's own totals.
    """

    version: str = "1.0"
    phases: dict[str, Any] = field(default_factory=dict)
    stats: dict[str, Any] = field(default_factory=dict)
    facts: list[Fact] = field(default_factory=list)
    contradiction_chains: list[ContradictionChain] = field(default_factory=list)
    sessions: list[Session] = field(default_factory=list)
    questions: list[Question] = field(default_factory=list)

    @classmethod
    def from_dict(cls, data: dict[str, Any], file: Path | str = NO_FILE, place: str = "") -> Self:
        """Make the whole of a JSON object, see ``Record.from_dict``; every list may be missing."""
        whole = super().from_dict(data, file, place)
        for name, kind in _PARTS.items():
            objects: list[dict[str, Any]] = getattr(whole, name)
            parts = [kind.from_dict(one, file, f"{name}[{n}]") for n, one in enumerate(objects)]
            setattr(whole, name, parts)
        return whole

    def save(self, path: Path | str) -> None:
        """Write it as JSON, compressed if the name ends in ``.gz``; the same data give the same bytes.

        Raises ``DatasetError`` where the file cannot be written.
        """
        import gzip

        path = Path(path)
        data = (json.dumps(self.to_dict(), indent=1, allow_nan=False) + "\n").encode("ascii")
        try:
            path.write_bytes(gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)
        except OSError as error:
            raise DatasetError(
                f"{path}: cannot be written ({error.strerror or error}); check the folder and its permissions"
            ) from error


def load_benchmark(path: Path | str) -> BenchmarkData:
    """Read one MemoryStress file, ``.json`` or ``.gz``.

    Raises ``DatasetError`` for a file that cannot be read or holds several records, and for what
    ``benchmark_of`` refuses.
    """
    source = read_records(path)
    if len(source.records) > 1:
        raise DatasetError(
            f"{path}: holds {len(source.records)} records; a MemoryStress benchmark is one object"
        )
    return benchmark_of(source.records[0], source.origins[0])


def benchmark_of(record: dict[str, Any], file: Path | str) -> BenchmarkData:
    """Make the benchmark of a file's one JSON object.

    Raises ``DatasetError`` for an object with none of MemoryStress' parts, and for what
    ``BenchmarkData.from_dict`` refuses.
    """
    if not any(name in record for name in _TELLING):
        found = ", ".join(shown(key) for key in list(record)[:12]) or "none"
        raise DatasetError(
            f"{file}: is not MemoryStress, which has {', '.join(_TELLING)}; the keys found are {found}"
        )
    return BenchmarkData.from_dict(record, file)


_PARTS: dict[str, type[Fact | ContradictionChain | Session | Question]] = {
    "facts": Fact,
    "contradiction_chains": ContradictionChain,
    "sessions": Session,
    "questions": Question,
}
