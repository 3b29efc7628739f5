"""One sample on its way through the pipeline: fed once, then its questions one by one.

Everything is remembered per question, so that an item, a user's own test and a look ahead share one
retrieve. An error of the backend is remembered too: it makes questions unscored, never wrong.
"""

from __future__ import annotations

import inspect
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from pytest_himga.engine.background import Background, Caller, Lane
from pytest_himga.engine.faults import failed
from pytest_himga.engine.live_memory import LiveMemory
from pytest_himga.errors import BackendError, BackendTimeout
from pytest_himga.judge.evidence import REWRITES, EvidenceJudge, is_in_doubt, quotes
from pytest_himga.judge.resolve import resolve_judge
from pytest_himga.judge.verdict import Judge, Verdict, problem_of
from pytest_himga.memory.boundary import History, read_context
from pytest_himga.memory.protocol import Usage

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence

    from pytest_himga.data.schema import Case
    from pytest_himga.memory.protocol import Context
    from pytest_himga.memory.resolve import Backend
    from pytest_himga.settings import Settings

T = TypeVar("T")

#: Nothing quotes a turn, but not every context is there, so it is not known that the memory rewrites text.
UNTOLD = "this text quotes no turn of the history, and another question, which might have told why, failed"


@dataclass
class Asked:
    """What one question has brought so far; ``ms`` and ``usage`` are by stage."""

    context: Context | None = None
    returned: int = 0
    answer: str | None = None
    verdict: Verdict | None = None
    error: BackendError | None = None
    judge_error: BackendError | None = None
    ms: dict[str, float] | None = None
    usage: dict[str, Usage] | None = None

    def spend(self, stage: str, started: float, usage: Usage | None = None) -> None:
        """Book the time since ``started`` (``perf_counter``), and what was used."""
        self.ms = {**(self.ms or {}), stage: (time.perf_counter() - started) * 1000}
        if usage is not None:
            self.usage = {**(self.usage or {}), stage: usage}


class SampleRun:
    """The pipeline of one sample. Its coroutines are driven by the engine, one at a time."""

    def __init__(
        self,
        cases: Sequence[Case],
        settings: Settings,
        new_scope: Callable[[], str],
        background: Background,
    ) -> None:
        self.cases = cases
        self.sample = cases[0].sample
        self.history = History.of(self.sample)
        self.memory: LiveMemory | None = None
        self.error: BackendError | None = None
        self.ingest_usage: Usage | None = None
        self.ingest_ms: float | None = None
        self._settings = settings
        #: Of the newest memory, also when that had to be left behind: the sample was fed to it all the same.
        self.scope: str | None = None
        self._new_scope = new_scope
        self._background = background
        self._asked: dict[str, Asked] = {}
        self._quotes: bool | None = None
        self._look_ahead_error: BackendError | None = None
        self._answers = False

    def asked(self, case: Case) -> Asked:
        """What is known of a question; made at the first look."""
        return self._asked.setdefault(case.uid, Asked())

    def forget(self, case: Case) -> None:
        """Ask this question again next time (a rerun)."""
        self._asked.pop(case.uid, None)

    async def ready(self, case: Case, backend: Backend) -> LiveMemory:
        """The memory, fed exactly up to the question's checkpoint."""
        if self.error is not None:
            raise self.error
        until = len(case.history)
        try:
            if self.memory is not None and until < self.memory.fed:
                # It has heard too much for this question, and a memory cannot unhear.
                await self.close()
            if self.memory is None:
                self.scope = self._new_scope()
                self.memory = LiveMemory(
                    backend, self.history, self.scope, self._settings.timeout, self._background
                )
                await self.memory.start()
                self._answers = self.memory.answers
                await self._feed(self.memory, until)
            elif until > self.memory.fed:
                await self._feed(self.memory, until)
        except BackendError as error:
            self.fail(error)
            raise
        return self.memory

    async def _feed(self, memory: LiveMemory, until: int) -> None:
        before = await memory.usage("ingest")
        await memory.feed(until)
        self.ingest_ms = memory.ingest_ms
        if before is not None and (after := await memory.usage("ingest")) is not None:
            self.ingest_usage = (self.ingest_usage or Usage()) + (after - before)

    def fail(self, error: BackendError) -> None:
        """The sample's remaining questions cannot be asked, and why."""
        self.error = error
        if isinstance(error, BackendTimeout):
            self.abandon()

    def abandon(self) -> None:
        """Leave the memory behind without another call; the sample is fed again if it goes on."""
        memory, self.memory = self.memory, None
        if memory is not None:
            memory.abandon()

    async def context(self, case: Case, backend: Backend) -> Context:
        """What the memory returned for the question."""
        asked = self.asked(case)
        if asked.error is not None:
            raise asked.error
        if asked.context is not None:
            return asked.context
        top_k = self._settings.top_k
        try:
            memory = await self.ready(case, backend)
            memory.reveal(case.question)
            retrieving = memory.retrieve(case.question.question, date=case.date_str, k=top_k)
            returned = await _booked(asked, "retrieve", memory, retrieving)
            asked.context, asked.returned = _read(returned, self.history, top_k)
        except BackendError as error:
            self._note(asked, error)
            raise
        return asked.context

    async def answer(self, case: Case, backend: Backend) -> str | None:
        """The backend's own answer; None where it gives none."""
        asked = self.asked(case)
        await self.context(case, backend)
        if asked.answer is None and self._answers:
            memory = await self.ready(case, backend)
            try:
                answering = memory.answer(case.question.question)
                asked.answer = await _booked(asked, "answer", memory, answering)
            except BackendError as error:
                self._note(asked, error)
                raise
        return asked.answer

    async def verdict(self, case: Case, backend: Backend, judge: Judge) -> Verdict:
        """The judge's verdict; ``unscored`` with the judge's own failure as its reason."""
        asked = self.asked(case)
        if asked.judge_error is not None:
            raise asked.judge_error
        if asked.verdict is None:
            context = await self.context(case, backend)
            answer = await self.answer(case, backend)
            started, limit = time.perf_counter(), self._settings.timeout
            try:
                verdict = await _ask_judge(judge, case, answer, context, limit, self._background)
            except BackendError as error:
                asked.judge_error = error
                raise
            asked.spend("judge", started, verdict.usage)
            if isinstance(judge, EvidenceJudge) and verdict.reason == REWRITES:
                if await self._quotes_turns(backend):
                    verdict = judge.judge(case, answer, replace(context, verbatim=True))
                elif self._look_ahead_error is not None:
                    verdict = replace(verdict, reason=f"{UNTOLD}: {self._look_ahead_error.message}")
            asked.verdict = verdict
        return asked.verdict

    async def close(self) -> None:
        """Close the memory; what its questions have brought is kept."""
        memory, self.memory = self.memory, None
        if memory is not None:
            await memory.close()

    async def _quotes_turns(self, backend: Backend) -> bool:
        """Whether any selected question's context quotes a turn of the sample word for word.

        One context without a quotation says nothing (it may be a real miss), so the sample's other
        questions are asked ahead until one is found; their contexts are kept for their own turn.
        """
        if self._quotes is None:
            self._quotes = False
            for case in self.cases:
                try:
                    context = await self.context(case, backend)
                except BackendError as error:
                    self._look_ahead_error = error
                    continue
                if is_in_doubt(context) and quotes(self.sample, context):
                    self._quotes = True
                    break
        return self._quotes

    def _note(self, asked: Asked, error: BackendError) -> None:
        asked.error = error
        if isinstance(error, BackendTimeout):
            self.fail(error)


def _read(returned: object, history: History, top_k: int) -> tuple[Context, int]:
    try:
        return read_context(returned, history, top_k)
    except BackendError:
        raise
    except Exception as error:  # noqa: BLE001 - a list that loads as it is read is the backend's code too
        raise failed("reading what retrieve() returned", error, "retrieve") from None


async def _booked(asked: Asked, stage: str, memory: LiveMemory, work: Coroutine[Any, None, T]) -> T:
    """The result of ``work``, with its time and what the memory used for it."""
    try:
        before = await memory.usage(stage)
        started = time.perf_counter()
        result = await work
        asked.spend(stage, started)
    finally:
        work.close()
    if before is not None and (after := await memory.usage(stage)) is not None:
        asked.usage = {**(asked.usage or {}), stage: after - before}
    return result


async def _ask_judge(
    judge: Judge, case: Case, answer: str | None, context: Context, limit: float, background: Background
) -> Verdict:
    """The verdict of any judge; a user's own runs in a thread of its own and has a limit."""
    if type(judge).__module__.startswith("pytest_himga."):
        return judge.judge(case, answer, context)
    lane = Lane("judge")
    try:
        verdict: Any = await Caller(lane, background).one(
            "judge()",
            lambda: judge.judge(case, answer, context),
            limit=limit,
            stage="judge",
            on_loop=inspect.iscoroutinefunction(judge.judge),
        )
    finally:
        lane.close()
    problem = problem_of(verdict)
    if problem:
        raise BackendError(f"the judge {judge.name} {problem}", stage="judge")
    checked: Verdict = verdict
    return checked


def default_judge(answers: bool) -> Judge:
    """``lexical`` where the backend answers by itself, else ``evidence``."""
    return resolve_judge("lexical" if answers else "evidence")
