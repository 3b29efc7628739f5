"""Who answers in this run, in the engine room: the backend itself, an LLM, a user's own code, or nobody."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from pytest_himga.engine.background import Background, Caller
from pytest_himga.errors import BackendError, LLMError
from pytest_himga.lane import Lane
from pytest_himga.llm.contract import Reply

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from pytest_himga.answer.request import AnswerRequest
    from pytest_himga.answer.resolve import OwnAnswerer
    from pytest_himga.data.schema import Case
    from pytest_himga.engine.asked import Asked
    from pytest_himga.engine.llms import Llms
    from pytest_himga.memory.protocol import Usage
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
        self._own: OwnAnswerer | None = None
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
        answering = self._ask_llm(request) if self._own is None else self._ask_own(self._own, request)
        usage: Usage | None = None
        started = self._llms.clock()
        try:
            reply = await answering
            usage = None if self._own else reply.usage
        except LLMError as error:
            usage = error.usage
            raise BackendError(error.message, stage="answer") from None
        finally:
            asked.spend("answer", self._llms.clock() - started, usage)
        return reply.value

    def _ask_llm(self, request: AnswerRequest) -> Coroutine[Any, Any, Reply[str]]:
        # Not async: that the answerer is made now, which reads files, is no time of the first answer.
        return self._llms.call("the LLM's answer", "answer", self._llms.answerer.answer(request))

    async def _ask_own(self, answerer: OwnAnswerer, request: AnswerRequest) -> Reply[str]:
        from pytest_himga.answer.resolve import problem_of_answer

        lane = Lane("answerer")
        try:
            answer = await Caller(lane, self._background).one(
                f"the answerer {answerer.name}",
                partial(answerer.call, request),
                limit=self._timeout,
                stage="answer",
                on_loop=answerer.is_async,
            )
        finally:
            lane.close()
        if problem := problem_of_answer(answer):
            raise BackendError(f"the answerer {answerer.name} {problem}", stage="answer")
        return Reply(answer)
