"""Who answers in this run, in the engine room: the backend itself, an LLM, a user's own code, or nobody."""

from __future__ import annotations

import inspect
import time
from functools import partial
from typing import TYPE_CHECKING

from pytest_himga.engine.background import Background, Caller, Lane
from pytest_himga.errors import BackendError, LLMError
from pytest_himga.llm.contract import Reply

if TYPE_CHECKING:
    from pytest_himga.answer.request import AnswerRequest
    from pytest_himga.data.schema import Case
    from pytest_himga.engine.asked import Asked
    from pytest_himga.engine.llms import Llms
    from pytest_himga.models import ModelSettings


class Answering:
    """How questions get their answers.

    ``by_backend``: the memory's own ``answer`` is asked, where it has one. ``from_context``: somebody else
    answers from what the memory returned.
    """

    def __init__(self, models: ModelSettings, llms: Llms, background: Background, timeout: float) -> None:
        name = models.answerer
        self.by_backend = name in (None, "backend")
        self.from_context = not self.by_backend and name != "none"
        self._llms = llms
        self._background = background
        self._timeout = timeout
        self._own = None
        if self.from_context and name is not None and name != "llm":
            from pytest_himga.answer.resolve import load_answerer

            self._own = load_answerer(name)

    async def answer(self, asked: Asked, opened: Case, top_k: int) -> str:
        """Answer from the question's context; what it took is booked, also where it fails.

        Raises ``BackendError`` of stage ``answer``.
        """
        from pytest_himga.answer.request import AnswerRequest

        assert asked.context is not None  # noqa: S101 - for the type checker: it was retrieved
        request = AnswerRequest.of(
            opened.question.question, opened.date_str, asked.context, asked.profile, top_k
        )
        started = time.perf_counter()
        try:
            reply = await self._ask(request)
        except LLMError as error:
            asked.spend("answer", started, error.usage)
            raise BackendError(error.message, stage="answer") from None
        asked.spend("answer", started, None if self._own else reply.usage)
        return reply.value

    async def _ask(self, request: AnswerRequest) -> Reply[str]:
        if self._own is None:
            return await self._llms.call("the LLM's answer", "answer", self._llms.answerer.answer(request))
        from pytest_himga.answer.resolve import problem_of_answer

        lane = Lane("answerer")
        try:
            answer = await Caller(lane, self._background).one(
                f"the answerer {self._own.name}",
                partial(self._own.call, request),
                limit=self._timeout,
                stage="answer",
                on_loop=inspect.iscoroutinefunction(self._own.call),
            )
        finally:
            lane.close()
        if problem := problem_of_answer(answer):
            raise BackendError(f"the answerer {self._own.name} {problem}", stage="answer")
        return Reply(answer)
