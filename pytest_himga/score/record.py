"""One question's result, as it travels from worker to controller and into ``results.jsonl``.

The field names are the file format of version 1: they do not change.
"""

from __future__ import annotations

import numbers
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytest_himga.data.schema import Case

RECORD_VERSION = 1
#: Fields that travel from worker to controller and are not written.
IN_PROCESS = ("recoverable", "facets", "metrics")


@dataclass
class Record:
    """What was measured for one question; plain data only, so that any worker can send it.

    ``ms`` holds milliseconds by stage (``ingest`` is the whole sample's feeding, the same in each of
    its records); ``usage`` maps a stage to calls, tokens_in, tokens_out and cost; ``found`` is the part
    of ``evidence`` that the context holds. ``recalled`` is None where no ids came back.
    ``outcome`` is what pytest showed: passed, failed, missed, unscored, skipped or missing.
    """

    id: str
    dataset: str
    sample: str
    uid: str
    type: str
    expects_abstention: bool
    verdict: str
    score: float | None
    reason: str
    judge: str
    votes: list[str] = field(default_factory=list)
    outcome: str = ""
    question: str = ""
    gold: str | None = None
    trap: str | None = None
    answer: str | None = None
    abstention: str | None = None
    evidence: list[str] = field(default_factory=list)
    found: list[str] = field(default_factory=list)
    recalled: list[dict[str, Any]] | None = None
    context: str | None = None
    context_chars: int | None = None
    context_tokens: int | None = None
    k: int = 0
    stage: str | None = None
    ms: dict[str, float] = field(default_factory=dict)
    usage: dict[str, dict[str, float]] = field(default_factory=dict)
    cached: list[str] = field(default_factory=list)
    worker: str = "main"
    #: What an erratum makes of the question, None if it has none: ``{"excluded": reason}``, or, where it
    #: was judged by a corrected gold, ``{"gold", "verdict", "score"}`` as they are under the published one.
    errata: dict[str, Any] | None = None
    #: False where the dataset itself says that nobody can know the answer. In-process, like the next two:
    #: not part of results.jsonl version 1.
    recoverable: bool = True
    #: What summaries of the family slice by, see ``QAPair.facets``.
    facets: dict[str, Any] = field(default_factory=dict)
    #: Named numbers in 0..1 that a judge measured beside its verdict, and the retrieval metrics.
    #: They can be computed again from what is in results.jsonl.
    metrics: dict[str, float] = field(default_factory=dict)

    @property
    def excluded(self) -> bool:
        """Whether an erratum leaves the question out."""
        return self.errata is not None and "excluded" in self.errata

    @property
    def why_apart(self) -> str:
        """Why a wrong answer says nothing of the memory, as the end of a sentence; empty where it does."""
        if self.excluded and self.errata is not None:
            return f"left out by errata ({self.errata['excluded']})"
        return "" if self.recoverable else "left out because the dataset says that nobody can know the answer"

    def make_sendable(self) -> None:
        """Clean what strangers wrote: texts of the dataset, and what a backend or judge handed over.

        The rest is made here, of plain data; cleaning all of it would cost as much as asking.
        """
        for name in ("reason", "judge", "question", "gold", "trap", "answer"):
            setattr(self, name, sendable(getattr(self, name)))
        for name in (
            "votes",
            "evidence",
            "found",
            "usage",
            "metrics",
            "score",
            "abstention",
            "errata",
            "facets",
        ):
            if value := getattr(self, name):
                setattr(self, name, sendable(value))

    def to_json(self) -> dict[str, Any]:
        """The line of ``results.jsonl``."""
        data = dict(vars(self))  # asdict would copy every list, which is most of the time of writing
        for name in IN_PROCESS:
            del data[name]
        return {"v": RECORD_VERSION, **data}


def record_of(
    case: Case, *, verdict: str, reason: str, k: int, judge: str = "", worker: str = "main"
) -> Record:
    """The record of a question with what is known before anything was measured."""
    question = case.brief
    return Record(
        id=case.id,
        dataset=case.dataset,
        sample=case.sample_name,
        uid=question.uid,
        type=question.type,
        expects_abstention=question.expects_abstention,
        verdict=verdict,
        score=None,
        reason=reason,
        judge=judge,
        question=question.question,
        gold=question.gold,
        trap=question.trap,
        evidence=list(question.refs),
        k=k,
        worker=worker,
        errata=exclusion_of(case, judge),
        recoverable=question.recoverable,
        facets=dict(question.facets),
    )


def exclusion_of(case: Case, judge: str) -> dict[str, Any] | None:
    """What a record keeps of an erratum that leaves the question out; None where none does.

    A wrong citation leaves it out where the evidence is judged, and nowhere else.
    """
    erratum = case.erratum
    if erratum is None or not erratum.exclude or (erratum.only_evidence and judge != "evidence"):
        return None
    return {"excluded": erratum.reason}


def sendable(value: Any) -> Any:
    """``value`` as plain data that every serializer takes: no lone surrogates, no foreign number types.

    execnet ends the whole session on a lone surrogate or an unknown type, and a user's judge or memory
    may hand over either.
    """
    kind = type(value)
    if kind is str:
        return value if value.isascii() else value.encode("utf-8", "backslashreplace").decode("utf-8")
    if value is None or kind in (bool, int, float):
        return value
    if isinstance(value, dict):
        return {sendable(key): sendable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [sendable(item) for item in value]
    if isinstance(value, set | frozenset):
        # The order of a set is that of the hash seed.
        return sorted((sendable(item) for item in value), key=str)
    return _plain(value)


def _plain(value: object) -> Any:
    """A text or number of somebody's own type (numpy's, an enum's) as Python's; anything else as text."""
    if isinstance(value, str):
        return sendable(str.__str__(value))
    try:
        if isinstance(value, numbers.Integral):
            return int(value)
        if isinstance(value, numbers.Real | Decimal):
            return float(value)
        return sendable(str(value))
    except Exception:  # noqa: BLE001 - a __str__ that raises must not end the session
        return f"<{type(value).__name__}>"
