"""What came of one question as a record, in the engine room: verdict, times, costs, and what was found."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pytest_himga.engine.judging import is_llm
from pytest_himga.judge.evidence import Coverage, coverage, matchable
from pytest_himga.score.record import Record, record_of
from pytest_himga.score.retrieval import retrieval_metrics, session_recall
from pytest_himga.score.summary import CHARACTERS_A_TOKEN

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_himga.data.schema import Case
    from pytest_himga.engine.asked import Asked
    from pytest_himga.engine.sample_run import SampleRun
    from pytest_himga.errors import BackendError
    from pytest_himga.judge.verdict import Judge, Verdict
    from pytest_himga.memory.boundary import History
    from pytest_himga.memory.protocol import Context
    from pytest_himga.report.run_folder import RunFolder


@dataclass(frozen=True)
class Result:
    """A question's record, with what only its failure text needs."""

    record: Record
    verdict: Verdict
    context: Context | None = None
    covered: Coverage | None = None
    details: str = ""
    #: What the controller wants to know beside the record; plain data.
    aside: Mapping[str, Any] = field(default_factory=dict)


class Recorder:
    """Writes records, and what was retrieved into ``folder``."""

    def __init__(self, top_k: int, folder: RunFolder | None, worker: str) -> None:
        self._top_k = top_k
        self._folder = folder
        self._worker = worker

    def result(
        self,
        case: Case,
        run: SampleRun,
        verdict: Verdict,
        error: BackendError | None,
        *,
        judge: Judge | None,
        aside: Mapping[str, Any],
    ) -> Result:
        """The result of a question with this verdict, or unscored because of ``error``."""
        asked = run.asked(case)
        context, opened = asked.context, run.data.peek(case)
        record = record_of(
            case,
            verdict=verdict.value,
            reason=verdict.reason,
            k=self._top_k,
            judge=judge.name if judge else "",
            worker=self._worker,
        )
        record.score = verdict.score if verdict.value in ("correct", "wrong") else None
        record.votes = list(verdict.votes)
        record.answer = asked.answer
        record.abstention = verdict.abstention
        record.stage = (error.stage or None) if error else None
        if error is None and verdict.value == "unscored" and is_llm(judge):
            record.stage = "judge"
        self._book(record, asked, run)
        covered = None
        if opened is not None:
            record.evidence = [group[0] for group in opened.question.evidence.groups]
            if context is not None:
                covered = coverage(opened, context)
                self._describe_context(record, context, covered)
                self._measure(record, opened, context, run.data.history, verdict)
        record.make_sendable()
        details = error.details if error else ""
        return Result(record, verdict, context, covered, details, aside)

    def _book(self, record: Record, asked: Asked, run: SampleRun) -> None:
        spent = {"ingest": run.ingest_ms, **(asked.ms or {})}
        record.ms = {stage: round(ms, 3) for stage, ms in spent.items() if ms is not None}
        usage = {"ingest": run.ingest_usage, **asked.usage}
        record.usage = {stage: used.as_json() for stage, used in usage.items() if used is not None}
        record.cached = [s for s, used in record.usage.items() if used.get("cached") and not used["calls"]]

    def _describe_context(self, record: Record, context: Context, covered: Coverage) -> None:
        record.found = covered.found_refs
        record.context_chars = len(context.text)
        record.context_tokens = len(context.text) // CHARACTERS_A_TOKEN
        if self._folder is not None:
            record.context = self._folder.put_context(context.text)
        if context.recalled is not None and context.has_ids:
            record.recalled = [
                {"turns": list(r.turn_ids), "sessions": list(r.session_ids), "score": r.score}
                for r in context.recalled
            ]

    def _measure(
        self, record: Record, opened: Case, context: Context, history: History | None, verdict: Verdict
    ) -> None:
        """The numbers beside the verdict; how well it was retrieved is known by ids only."""
        question, top_k = opened.question, self._top_k
        if verdict.value in ("correct", "wrong"):
            record.metrics = dict(verdict.metrics)
        groups = question.evidence.groups
        if history is not None and groups and context.has_ids and not question.expects_abstention:
            ranked, members = matchable(opened.sample, groups, context)
            record.metrics |= retrieval_metrics(ranked, members, top_k)
            wanted = history.evidence_sessions(question.evidence, len(opened.history))
            record.metrics |= session_recall(context.sessions, wanted, top_k)
