"""One sample on its way through the pipeline: fed once, then its questions one by one.

Everything is remembered per question, so that an item, a user's own test and a look ahead share one
retrieve. An error of the backend is remembered too: it makes questions unscored, never wrong.

A history is fed up to a question's checkpoint and no further. Where items come in another order than
checkpoints, the questions that feeding goes past are asked on the way: a memory cannot unhear, and to
feed a fresh one for each of them would take the longest part of a run again and again.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_himga.engine import asking
from pytest_himga.engine.asked import Asked
from pytest_himga.engine.judging import is_ours
from pytest_himga.engine.live_memory import LiveMemory
from pytest_himga.engine.open_sample import OpenSample
from pytest_himga.errors import BackendError, BackendTimeout, NotApplicable
from pytest_himga.judge.evidence import REWRITES, EvidenceJudge, is_in_doubt, quotes
from pytest_himga.judge.verdict import Verdict
from pytest_himga.memory.protocol import Usage

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pytest_himga.data.schema import Case
    from pytest_himga.engine.answering import Answering
    from pytest_himga.engine.background import Background
    from pytest_himga.engine.judging import Judging
    from pytest_himga.judge.verdict import Judge
    from pytest_himga.memory.protocol import Context
    from pytest_himga.memory.resolve import Backend
    from pytest_himga.settings import Settings

#: Nothing quotes a turn, but not every context is there, so it is not known that the memory rewrites text.
UNTOLD = "this text quotes no turn of the history, and another question, which might have told why, failed"


class SampleRun:
    """The pipeline of one sample. Its coroutines are driven by the engine, one at a time.

    ``cases`` are the questions that are selected to run, in the order of their items; ``data`` holds the
    sample; ``paid`` is what was spent on each question, by its id and by stage, and outlives the sample.
    """

    def __init__(
        self,
        cases: Sequence[Case],
        settings: Settings,
        new_scope: Callable[[], str],
        background: Background,
        answering: Answering,
        judging: Judging,
        paid: dict[str, dict[str, Usage]],
    ) -> None:
        self.cases = cases
        self.data = OpenSample()
        self.memory: LiveMemory | None = None
        self.error: BackendError | None = None
        self.ingest_usage: Usage | None = None
        self.ingest_ms: float | None = None
        self._settings = settings
        #: Of the newest memory, also when that had to be left behind: the sample was fed to it all the same.
        self.scope: str | None = None
        self._new_scope = new_scope
        self._background = background
        self._answering = answering
        self._judging = judging
        self._paid = paid
        self._wanted = asking.Wanted(answer=answering.by_backend, profile=answering.from_context)
        self._asked: dict[str, Asked] = {}
        self._places = {case.uid: place for place, case in enumerate(cases)}
        self._turn = -1
        self._quotes: bool | None = None
        self._look_ahead_error: BackendError | None = None
        #: The optional methods of this backend's memories; None until there was one.
        self._offers: frozenset[str] | None = None

    def turn_of(self, case: Case) -> SampleRun:
        """It is the turn of this question: those before it in the order have had theirs."""
        self._turn = self._places.get(case.uid, -1)
        return self

    def asked(self, case: Case) -> Asked:
        """What is known of a question; made at the first look."""
        asked = self._asked.get(case.uid)
        if asked is None:
            asked = self._asked[case.uid] = Asked(usage=self._paid.setdefault(case.id, {}))
        return asked

    def forget(self, case: Case) -> None:
        """Ask this question again next time (a rerun)."""
        self._asked.pop(case.uid, None)

    # -- the memory -----------------------------------------------------------------------------

    async def started(self, case: Case, backend: Backend, until: int | None = None) -> LiveMemory:
        """The memory; a new one if it has heard more than ``until`` sessions, for it cannot unhear."""
        history = self.data.history_of(case)
        if self.error is not None:
            raise self.error
        try:
            if self.memory is not None and until is not None and until < self.memory.fed:
                await self.close()
            if self.memory is None:
                self.scope = self._new_scope()
                self.memory = LiveMemory(
                    backend, history, self.scope, self._settings.timeout, self._background
                )
                await self.memory.start()
                self._offers = self.memory.offers
        except BackendError as error:
            self.fail(error)
            raise
        return self.memory

    async def ready(self, case: Case, backend: Backend) -> LiveMemory:
        """The memory, fed exactly up to the question's checkpoint."""
        until = len(self.data.opened(case).history)
        memory = await self.started(case, backend, until)
        if memory.settled and memory.fed == until:
            return memory
        for checkpoint, other in self._on_the_way(case, memory, until):
            await self._feed(memory, checkpoint)
            try:
                await self._retrieve(other, memory)
                await self._answer(other, memory)
            except BackendError:
                # It is remembered for that question; only a memory that is gone is gone for this one too.
                if self.error is not None:
                    raise self.error from None
        await self._feed(memory, until)
        return memory

    def _on_the_way(self, case: Case, memory: LiveMemory, until: int) -> list[tuple[int, Case]]:
        """The questions that feeding up to ``until`` goes past, with their checkpoints, in that order.

        Only those whose turn is still to come: one that came before may have been skipped, or may have
        ended the process that ran it.
        """
        found: list[tuple[int, Case]] = []
        for other in self.cases[self._turn + 1 :]:
            if other.uid == case.uid or not self.asked(other).is_open(answers=self._answers):
                continue
            try:
                opened = self.data.opened(other)
            except BackendError:
                continue  # it will say so itself
            checkpoint = len(opened.history)
            if memory.fed <= checkpoint < until and not asking.why_not(opened.question, memory.offers):
                found.append((checkpoint, opened))
        return sorted(found, key=lambda pair: pair[0])

    async def _feed(self, memory: LiveMemory, until: int) -> None:
        if memory.settled and memory.fed == until:
            return
        try:
            before = await memory.whole.usage("ingest")
            await memory.feed(until)
            self.ingest_ms = memory.ingest_ms
            if before is not None and (after := await memory.whole.usage("ingest")) is not None:
                self.ingest_usage = (self.ingest_usage or Usage()) + (after - before)
        except BackendError as error:
            self.fail(error)
            raise

    def fail(self, error: BackendError) -> None:
        """The sample's remaining questions cannot be asked, and why."""
        self.error = error
        if isinstance(error, BackendTimeout):
            self.abandon()

    def interrupted(self) -> None:
        """Ctrl-C, or a plugin's time limit, came in the middle; who answers or judges may have been at work."""
        if self.memory is not None and self.memory.may_hang:
            self.abandon()

    def abandon(self) -> None:
        """Leave the memory behind without another call; the sample is fed again if it goes on."""
        memory, self.memory = self.memory, None
        if memory is not None:
            memory.abandon()

    async def close(self) -> None:
        """Close the memory; what its questions have brought is kept."""
        memory, self.memory = self.memory, None
        if memory is not None:
            await memory.close()

    @property
    def _answers(self) -> bool:
        """Whether the memory is asked for answers, and gives them."""
        return self._wanted.answer and self._offers is not None and "answer" in self._offers

    # -- asking ---------------------------------------------------------------------------------

    async def context(self, case: Case, backend: Backend) -> Context:
        """What the memory returned for the question; raises ``NotApplicable`` where it cannot be asked it."""
        asked = self.asked(case)
        if asked.error is None and asked.context is None:
            try:
                opened = self.data.opened(case)
                await self._check_applies(opened, backend)
                memory = await self.ready(case, backend)
            except BackendError as error:
                self._note(asked, error)
                raise
            await self._retrieve(opened, memory)
        if asked.error is not None:
            raise asked.error
        assert asked.context is not None  # noqa: S101 - for the type checker: else there is an error
        return asked.context

    async def answer(self, case: Case, backend: Backend) -> str | None:
        """The answer; None where nobody gives one."""
        await self.context(case, backend)
        asked = self.asked(case)
        if self._answering.from_context:
            return await self._answer_from_context(asked, case)
        if asked.is_open(answers=self._answers):
            memory = await self.ready(case, backend)
            await self._answer(self.data.opened(case), memory)
        return asked.answer

    async def _answer_from_context(self, asked: Asked, case: Case) -> str:
        if asked.answer_error is not None:
            raise asked.answer_error
        if asked.answer is None:
            try:
                asked.answer = await self._answering.answer(
                    asked, self.data.opened(case), self._settings.top_k
                )
            except BackendError as error:
                # A plain one also where time ran out: what hangs here is not the memory.
                asked.answer_error = BackendError(error.message, stage="answer", details=error.details)
                raise asked.answer_error from None
        return asked.answer

    async def verdict(self, case: Case, backend: Backend, judge: Judge) -> Verdict:
        """The judge's verdict; ``unscored`` with the judge's own failure as its reason."""
        asked = self.asked(case)
        if asked.judge_error is not None:
            raise asked.judge_error
        if asked.verdict is None:
            context = await self.context(case, backend)
            answer = await self.answer(case, backend)
            # What was fed is what is judged, whatever has become of the file; but a judge of the user's may
            # keep what it gets, and must not keep the sample in memory.
            judged = self.data.opened(case) if is_ours(judge) else case
            started = self._judging.clock()
            try:
                verdict = await self._judging.ask(judge, judged, answer, context)
            except BackendError as error:
                asked.judge_error = error
                raise
            asked.spend("judge", self._judging.clock() - started, verdict.usage)
            if isinstance(judge, EvidenceJudge) and verdict.reason == REWRITES:
                if await self._quotes_turns(backend):
                    verdict = judge.judge(judged, answer, replace(context, verbatim=True))
                elif self._look_ahead_error is not None:
                    verdict = replace(verdict, reason=f"{UNTOLD}: {self._look_ahead_error.message}")
            asked.verdict = verdict
        return asked.verdict

    async def published_verdict(self, case: Case, judge: Judge) -> Verdict | None:
        """What the verdict would be under the file's own gold, where an erratum corrects it; else None.

        Asked for after ``verdict``. A judge that fails here leaves that one question unscored as published.
        """
        asked, erratum = self.asked(case), case.erratum
        if erratum is None or erratum.exclude or asked.context is None:
            return None
        judged = (self.data.opened(case) if is_ours(judge) else case).as_published()
        started = self._judging.clock()
        try:
            verdict = await self._judging.ask(judge, judged, asked.answer, asked.context)
        except BackendError as error:
            return Verdict("unscored", reason=error.message)
        asked.spend("judge", self._judging.clock() - started, verdict.usage)
        return verdict

    async def _check_applies(self, opened: Case, backend: Backend) -> None:
        """Decline the question, before anything is fed for it, if no memory of this kind can be asked it."""
        question = opened.question
        if question.cross_agent or question.cold_start:
            if self._offers is None:
                await self.started(opened, backend)
            if reason := asking.why_not(question, self._offers or frozenset()):
                raise NotApplicable(reason)

    async def _retrieve(self, opened: Case, memory: LiveMemory) -> None:
        asked = self.asked(opened)
        if asked.error is None and asked.context is None:
            try:
                await asking.retrieve(asked, opened, memory, self._settings.top_k, self._wanted)
            except BackendError as error:
                self._note(asked, error)
                raise

    async def _answer(self, opened: Case, memory: LiveMemory) -> None:
        asked = self.asked(opened)
        if asked.is_open(answers=self._answers):
            try:
                await asking.answer(asked, opened, memory)
            except BackendError as error:
                self._note(asked, error)
                raise

    async def _quotes_turns(self, backend: Backend) -> bool:
        """Whether any selected question's context quotes a turn of the sample word for word.

        One context without a quotation says nothing (it may be a real miss), so the sample's other
        questions are asked ahead until one is found; their contexts are kept for their own turn.
        """
        if self._quotes is None:
            self._quotes = False
            for place, case in enumerate(self.cases):
                if place < self._turn and self.asked(case).is_open(answers=False):
                    continue  # its turn is over
                try:
                    context = await self.context(case, backend)
                except NotApplicable:
                    continue
                except BackendError as error:
                    self._look_ahead_error = error
                    continue
                if is_in_doubt(context) and quotes(self.data.history_of(case).sample, context):
                    self._quotes = True
                    break
        return self._quotes

    def _note(self, asked: Asked, error: BackendError) -> None:
        asked.error = error
        if isinstance(error, BackendTimeout):
            self.fail(error)
