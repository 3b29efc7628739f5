"""The engine of one process: asks each question at most once and says what came of it as a record.

The sync face of the pipeline: items and fixtures call it from the main thread and wait.
"""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from pytest_himga.engine.background import Background
from pytest_himga.engine.sample_run import Asked, SampleRun, default_judge
from pytest_himga.errors import BackendError, BackendTimeout
from pytest_himga.judge.evidence import Coverage, coverage
from pytest_himga.judge.resolve import resolve_judge
from pytest_himga.judge.verdict import Judge, Verdict
from pytest_himga.score.record import Record, record_of, sendable
from pytest_himga.score.retrieval import retrieval_metrics
from pytest_himga.score.summary import CHARACTERS_A_TOKEN

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping, Sequence

    from pytest_himga.data.schema import Case
    from pytest_himga.memory.protocol import Context
    from pytest_himga.memory.resolve import Backend
    from pytest_himga.report.run_folder import RunFolder
    from pytest_himga.settings import Settings

T = TypeVar("T")


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


class Engine:
    """Runs the samples of this process, one memory at a time."""

    def __init__(
        self, settings: Settings, backend: Backend, folder: RunFolder | None, run_id: str, worker: str
    ) -> None:
        self.settings = settings
        self.backend = backend
        self._judge: Judge | None = resolve_judge(settings.judge) if settings.judge else None
        self._folder = folder
        self._run_id = run_id
        self._worker = worker
        self._background = Background()
        self._runs: dict[str, SampleRun] = {}
        self._cases: dict[str, list[Case]] = {}
        self._scopes = 0

    def expect(self, cases: Sequence[Case]) -> None:
        """The questions that are selected to run; a sample looks ahead among these only."""
        for case in cases:
            self._cases.setdefault(case.sample_id, []).append(case)

    def use_fixture(self, case: Case, value: object) -> None:
        """The backend comes from a fixture, and this is its value for the item that runs now.

        A new value in the middle of a sample is a new memory, so the sample is fed to it again.
        """
        if self.backend.target is value:
            return
        self.backend = self.backend.with_target(value)
        run = self._runs.pop(case.sample_id, None)
        if run is not None:
            self._background.run(run.close())

    def judge(self, case: Case) -> Judge:
        """The judge of this run; by default it depends on whether the backend answers by itself."""
        if self._judge is None:
            answers = self.backend.answers
            if answers is None:
                run = self._run(case)
                answers = self._wait(run, run.ready(case, self.backend)).answers
            self._judge = default_judge(answers)
        return self._judge

    def context(self, case: Case) -> Context:
        """What the memory returned for the question; raises ``BackendError``."""
        run = self._run(case)
        return self._wait(run, run.context(case, self.backend))

    def answer(self, case: Case) -> str | None:
        """The backend's own answer, None where it gives none; raises ``BackendError``."""
        run = self._run(case)
        return self._wait(run, run.answer(case, self.backend))

    def retrieve(self, case: Case, query: str) -> Any:
        """What the live memory, fed up to the question's checkpoint, returns for any query."""
        run = self._run(case)

        async def ask() -> Any:
            memory = await run.ready(case, self.backend)
            return await memory.retrieve(query, date=case.date_str, k=self.settings.top_k)

        return self._wait(run, ask())

    def instance(self, case: Case) -> Any:
        """The backend's own object, fed up to the question's checkpoint."""
        run = self._run(case)
        return self._wait(run, run.ready(case, self.backend)).instance

    def result(self, case: Case) -> Result:
        """The question's result; an error of backend or judge is an unscored record, never raised."""
        run = self._run(case)
        try:
            judge = self.judge(case)
            verdict = self._wait(run, run.verdict(case, self.backend, judge))
            error = None
        except BackendError as raised:
            verdict, error = Verdict("unscored", reason=raised.message), raised
        return self._result(case, run, verdict, error)

    def unasked(self, case: Case, reason: str, error: BackendError | None = None) -> Result:
        """The unscored result of a question that could not even be asked."""
        result = self._result(case, self._run(case), Verdict("unscored", reason=reason), error)
        result.record.judge = ""  # no judge has seen it
        return result

    def forget(self, case: Case) -> None:
        """Ask the question again next time: pytest runs its item once more."""
        if case.sample_id in self._runs:
            self._runs[case.sample_id].forget(case)

    @property
    def open_samples(self) -> list[str]:
        """The samples that may have a memory now."""
        return list(self._runs)

    def release(self, sample_id: str) -> None:
        """The last item of the sample is done: close its memory; raises ``BackendError``."""
        run = self._runs.pop(sample_id, None)
        if run is not None:
            self._wait(run, run.close())

    def close(self) -> None:
        """Close what is left (after -x or Ctrl-C) and end the background loop."""
        for sample_id in self.open_samples:
            try:
                self.release(sample_id)
            except BackendError:
                # The run is over and its report is written; there is nobody left to tell.
                continue
        self._background.close()

    def _run(self, case: Case) -> SampleRun:
        run = self._runs.get(case.sample_id)
        if run is None:
            cases = self._cases.get(case.sample_id) or [case]
            run = SampleRun(cases, self.settings, self._new_scope, self._background)
            self._runs[case.sample_id] = run
        return run

    def _wait(self, run: SampleRun, work: Coroutine[Any, Any, T]) -> T:
        try:
            return self._background.run(work)
        except BackendTimeout as error:
            if error.stage != "judge":  # a judge that hangs says nothing about the memory
                run.fail(error)
            raise
        except BackendError:
            raise
        except BaseException:
            # Ctrl-C, or a plugin's time limit: the call may hang, and nothing more may be asked of it.
            run.abandon()
            raise

    def _new_scope(self) -> str:
        """Unique to run, sample and attempt, and opaque: a sample's id may give its answer away."""
        self._scopes += 1
        unique = f"{self._run_id}/{self._worker}/{self._scopes}"
        return f"himga-{self._run_id}-{hashlib.sha256(unique.encode()).hexdigest()[:8]}"

    def _result(self, case: Case, run: SampleRun, verdict: Verdict, error: BackendError | None) -> Result:
        asked = run.asked(case)
        context = asked.context
        record = record_of(
            case,
            verdict=verdict.value,
            reason=verdict.reason,
            k=self.settings.top_k,
            judge=self._judge.name if self._judge else "",
            worker=self._worker,
        )
        record.score = verdict.score if verdict.value in ("correct", "wrong") else None
        record.votes = list(verdict.votes)
        record.answer = asked.answer
        record.abstention = verdict.abstention
        record.stage = error.stage if error else None
        self._book(record, asked, run)
        covered = None
        if context is not None:
            covered = coverage(case, context)
            self._describe_context(record, case, context, covered, verdict)
        record.make_sendable()
        details = error.details if error else ""
        return Result(record, verdict, context, covered, details, self._aside(asked, run))

    def _book(self, record: Record, asked: Asked, run: SampleRun) -> None:
        spent = {"ingest": run.ingest_ms, **(asked.ms or {})}
        record.ms = {stage: round(ms, 3) for stage, ms in spent.items() if ms is not None}
        usage = {"ingest": run.ingest_usage, **(asked.usage or {})}
        record.usage = {stage: asdict(used) for stage, used in usage.items() if used is not None}

    def _describe_context(
        self, record: Record, case: Case, context: Context, covered: Coverage, verdict: Verdict
    ) -> None:
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
        if verdict.value in ("correct", "wrong"):
            record.metrics = dict(verdict.metrics)
        groups = case.question.evidence.groups
        if groups and context.has_ids and not case.question.expects_abstention:
            ranked = [{*r.turn_ids, *r.session_ids} for r in context.recalled or ()]
            record.metrics |= retrieval_metrics(ranked, groups, self.settings.top_k)

    def _aside(self, asked: Asked, run: SampleRun) -> dict[str, Any]:
        memory = run.memory
        return {
            "returned": asked.returned,
            "scope": run.scope,
            "blank": run.history.blank_turns,
            "version": sendable(memory.version) if memory else None,
            "answers": memory.answers if memory else None,
        }
