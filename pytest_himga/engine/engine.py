"""The engine of one process: asks each question at most once and says what came of it as a record.

The sync face of the pipeline: items and fixtures call it from the main thread and wait.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, TypeVar

from pytest_himga.engine.answering import Answering
from pytest_himga.engine.background import Background
from pytest_himga.engine.calibrating import AT_ONCE, calibrate
from pytest_himga.engine.judging import Judging, is_llm
from pytest_himga.engine.llms import Llms
from pytest_himga.engine.recording import Recorder, Result
from pytest_himga.engine.sample_run import SampleRun
from pytest_himga.errors import BackendError, BackendTimeout, NotApplicable
from pytest_himga.judge.verdict import Verdict
from pytest_himga.memory.protocol import Context
from pytest_himga.score.record import sendable

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterable, Mapping, Sequence

    from pytest_himga.data.schema import Case
    from pytest_himga.engine.asked import Asked
    from pytest_himga.engine.live_memory import LiveMemory
    from pytest_himga.judge.probes import Probe
    from pytest_himga.judge.verdict import Judge
    from pytest_himga.memory.protocol import Usage
    from pytest_himga.memory.resolve import Backend
    from pytest_himga.report.run_folder import RunFolder
    from pytest_himga.score.calibration import Calibration
    from pytest_himga.settings import Settings

T = TypeVar("T")


class Engine:
    """Runs the samples of this process, one memory at a time.

    A sample that cannot be read is a ``BackendError`` with the dataset's own sentence, for whichever method
    comes first; ``result`` and ``unasked`` never raise one.
    """

    def __init__(
        self,
        settings: Settings,
        backend: Backend,
        folder: RunFolder | None,
        run_id: str,
        worker: str,
        families: Mapping[str, str],
    ) -> None:
        self.settings = settings
        self.backend = backend
        self._recorder = Recorder(settings.top_k, folder, worker)
        self._run_id = run_id
        self._worker = worker
        self._background = Background()
        models, timeout = settings.models, settings.timeout
        self._llms = Llms(
            models,
            timeout=timeout,
            offline=settings.offline,
            cache_folder=settings.root / ".himga" / "cache",
        )
        self._answering = Answering(models, self._llms, self._background, timeout)
        self._judging = Judging(models, families, self._llms, self._background, timeout)
        self._runs: dict[str, SampleRun] = {}
        self._cases: dict[str, list[Case]] = {}
        self._paid: dict[str, dict[str, Usage]] = {}
        self._scopes = 0

    def expect(self, cases: Sequence[Case]) -> None:
        """The questions that are selected to run, in their order; a sample looks ahead among these only."""
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
            try:
                self._background.run(run.close())
            finally:
                run.data.let_go()

    def judge(self, case: Case) -> Judge:
        """The judge of the question; by default it depends on whether anything answers."""
        judge = self._judging.of(case.dataset)
        if judge is None:
            self._judging.default(answers=self._answering.from_context or self._backend_answers(case))
            return self.judge(case)
        return judge

    def _backend_answers(self, case: Case) -> bool:
        if not self._answering.by_backend or self.backend.answers is not None:
            return self._answering.by_backend and bool(self.backend.answers)
        run = self._run(case)
        return "answer" in self._wait(run, run.started(case, self.backend)).offers

    def ask_judge(self, case: Case, answer: str | None, context: Context) -> Verdict:
        """What the judge says of any answer, an async one too; raises ``BackendError``."""
        run = self._run(case)
        return self._wait(run, self._judging.ask(self.judge(case), case, answer, context))

    def try_judge(self, dataset: str, probes: Iterable[Probe]) -> Calibration:
        """How the dataset's judge does on answers that are known to be right or wrong."""
        judge = self._judging.of(dataset)
        assert judge is not None  # noqa: S101 - for the type checker: a probe takes a judge that is named

        async def ask(probe: Probe) -> Verdict:
            return await self._judging.ask(judge, probe.case, probe.answer, Context(""))

        return calibrate(ask, probes, at_once=AT_ONCE if is_llm(judge) else 1)

    def context(self, case: Case) -> Context:
        """What the memory returned for the question; raises ``BackendError``, or ``NotApplicable``."""
        run = self._run(case)
        return self._wait(run, run.context(case, self.backend))

    def answer(self, case: Case) -> str | None:
        """The answer, None where nothing gives one; raises as ``context`` does."""
        run = self._run(case)
        return self._wait(run, run.answer(case, self.backend))

    def retrieve(self, case: Case, query: str) -> Any:
        """What the live memory, fed up to the question's checkpoint, returns for any query.

        The agent of the question asks, where the memory has agents; a cold start is not made.
        """
        run = self._run(case)

        async def ask() -> Any:
            memory = await run.ready(case, self.backend)
            opened = run.data.opened(case)
            view = await memory.whole.as_agent(opened.question.as_agent, "retrieve")
            return await view.retrieve(query, date=opened.date_str, k=self.settings.top_k)

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
            published = self._wait(run, run.published_verdict(case, judge))
        except NotApplicable as declined:
            return self._unjudged(case, run, Verdict("n/a", reason=declined.reason), None)
        except BackendError as raised:
            unscored = Verdict("unscored", reason=raised.message)
            if not raised.stage:  # the sample could not be read
                return self._unjudged(case, run, unscored, raised)
            return self._result(case, run, unscored, raised)
        result = self._result(case, run, verdict, None)
        if published is not None:
            correct_or_wrong = published.value in ("correct", "wrong")
            result.record.errata = {
                "gold": sendable(case.as_published().question.gold),
                "verdict": published.value,
                "score": published.score if correct_or_wrong else None,
            }
        return result

    def unasked(self, case: Case, reason: str, error: BackendError | None = None) -> Result:
        """The unscored result of a question that could not even be asked."""
        return self._unjudged(case, self._run(case), Verdict("unscored", reason=reason), error)

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
            try:
                self._wait(run, run.close())
            finally:
                run.data.let_go()

    def close(self) -> None:
        """Close what is left (after -x or Ctrl-C) and end the background loop."""
        for sample_id in self.open_samples:
            try:
                self.release(sample_id)
            except BackendError:
                # The run is over and its report is written; there is nobody left to tell.
                continue
        self._llms.close()
        self._background.close()

    def _run(self, case: Case) -> SampleRun:
        run = self._runs.get(case.sample_id)
        if run is None:
            cases = self._cases.get(case.sample_id, [])
            run = SampleRun(
                cases,
                self.settings,
                self._new_scope,
                self._background,
                self._answering,
                self._judging,
                self._paid,
            )
            self._runs[case.sample_id] = run
        return run.turn_of(case)

    def _wait(self, run: SampleRun, work: Coroutine[Any, Any, T]) -> T:
        try:
            return self._background.run(work)
        except (BackendError, NotApplicable) as error:
            if isinstance(error, BackendTimeout) and error.stage != "judge":
                run.fail(error)  # a judge that hangs says nothing about the memory
            # pytest keeps the last error of a run, and the frames below here would keep a whole sample.
            error.__context__ = None
            raise error.with_traceback(None) from None
        except BaseException:
            # Ctrl-C, or a plugin's time limit: a call may hang, and nothing more may be asked of it then.
            run.interrupted()
            raise

    def _new_scope(self) -> str:
        """Unique to run, sample and attempt, and opaque: a sample's id may give its answer away."""
        self._scopes += 1
        unique = f"{self._run_id}/{self._worker}/{self._scopes}"
        return f"himga-{self._run_id}-{hashlib.sha256(unique.encode()).hexdigest()[:8]}"

    def _unjudged(self, case: Case, run: SampleRun, verdict: Verdict, error: BackendError | None) -> Result:
        result = self._result(case, run, verdict, error)
        result.record.judge = ""  # no judge has seen it
        return result

    def _result(self, case: Case, run: SampleRun, verdict: Verdict, error: BackendError | None) -> Result:
        aside, judge = self._aside(run.asked(case), run), self._judging.of(case.dataset)
        return self._recorder.result(case, run, verdict, error, judge=judge, aside=aside)

    def _answers(self, memory: LiveMemory | None) -> bool | None:
        """Whether anything answers in this run; None where it is not known."""
        if not self._answering.by_backend:
            return self._answering.from_context
        return "answer" in memory.offers if memory else None

    def _aside(self, asked: Asked, run: SampleRun) -> dict[str, Any]:
        memory = run.memory
        return {
            "returned": asked.returned,
            "scope": run.scope,
            "blank": run.data.history.blank_turns if run.data.history else 0,
            "version": sendable(memory.version) if memory else None,
            "answers": self._answers(memory),
            "notes": self._llms.notes,
        }
