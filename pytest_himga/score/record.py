"""One question's result, as it travels from worker to controller and into ``results.jsonl``.

The field names are the file format of version 1: they do not change.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

RECORD_VERSION = 1


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
    question: str
    gold: str | None
    trap: str | None
    votes: list[str] = field(default_factory=list)
    outcome: str = ""
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
    #: Named numbers in 0..1 that a judge measured beside its verdict, and the retrieval metrics.
    #: Not part of results.jsonl version 1: they can be computed again from what is.
    metrics: dict[str, float] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """The line of ``results.jsonl``."""
        data = asdict(self)
        del data["metrics"]
        return {"v": RECORD_VERSION, **data}
