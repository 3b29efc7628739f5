"""The models of one process, in the engine room: made when first asked, on a loop of their own.

Not on the loop of async backends: one that blocks it must not hold an answer or a verdict that is on its way.
"""

from __future__ import annotations

import time
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from pytest_himga.engine.background import Background, Handoff, Progress
from pytest_himga.options import LONG_CALL_FACTOR

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from pathlib import Path

    from pytest_himga.answer.llm import LLMAnswerer
    from pytest_himga.judge.llm import LLMJudge
    from pytest_himga.llm.cache import ReplyCache
    from pytest_himga.llm.openai_chat import OpenAIChat
    from pytest_himga.models import Model, ModelSettings

T = TypeVar("T")


class Llms:
    """``timeout`` is that of one attempt in seconds, ``cache_folder`` where replies are kept by default."""

    def __init__(self, models: ModelSettings, *, timeout: float, offline: bool, cache_folder: Path) -> None:
        self._models = models
        self._timeout = timeout
        self._offline = offline
        self._cache_folder = cache_folder
        self._background = Background()
        self._judges: dict[str, LLMJudge] = {}
        self._chats: list[OpenAIChat] = []

    @cached_property
    def answerer(self) -> LLMAnswerer:
        """The LLM that answers."""
        from pytest_himga.answer.llm import LLMAnswerer
        from pytest_himga.models import answer_profile_of

        return LLMAnswerer(self._chat(self._models.answer_model), answer_profile_of(self._models))

    def judge(self, family: str) -> LLMJudge:
        """The LLM that judges the questions of datasets of this family."""
        from pytest_himga.judge.llm import LLMJudge
        from pytest_himga.models import judge_profile_of

        if family not in self._judges:
            profile = judge_profile_of(self._models, family)
            self._judges[family] = LLMJudge(self._judge_chat, profile, self._models.judge_votes)
        return self._judges[family]

    def clock(self) -> float:
        """Seconds, for differences: what loading the client took is no time of the call that needed it first."""
        return time.perf_counter() - sum(chat.loading for chat in self._chats)

    async def call(self, name: str, stage: str, work: Coroutine[Any, Any, T]) -> T:
        """The result of ``work``, which bounds its own time: its limit here is the last resort.

        Raises what ``work`` raises: an ``LLMError``, say.
        """
        progress = Progress(name, self._timeout, stage, times=2 * LONG_CALL_FACTOR)
        result: T = await Handoff(self._background.submit(work), progress, self._background)
        return result

    def run(self, name: str, stage: str, work: Coroutine[Any, Any, T]) -> T:
        """The same, from outside the pipeline."""
        return self._background.run(self.call(name, stage, work))

    @property
    def notes(self) -> list[str]:
        """What the reader of a run must know of how the models were asked."""
        told = [note for chat in self._chats for note in chat.notes]
        if "_cache" in self.__dict__ and self._cache is not None and self._cache.problem:
            told.append(self._cache.problem)
        return list(dict.fromkeys(told))

    def close(self) -> None:
        """Close the connections and the cache, and end the loop."""
        if self._chats:
            self.run("closing the models' connections", "judge", self._close_chats())
        if "_cache" in self.__dict__ and self._cache is not None:
            self._cache.close()
        self._background.close()

    async def _close_chats(self) -> None:
        for chat in self._chats:
            await chat.close()

    @cached_property
    def _judge_chat(self) -> OpenAIChat:
        return self._chat(self._models.judge_model)

    def _chat(self, model: Model | None) -> OpenAIChat:
        from pytest_himga.llm.openai_chat import OpenAIChat

        assert model is not None  # noqa: S101 - for the type checker: settings without it are refused
        chat = OpenAIChat(
            model.spec, model.endpoint, timeout=self._timeout, cache=self._cache, offline=self._offline
        )
        self._chats.append(chat)
        return chat

    @cached_property
    def _cache(self) -> ReplyCache | None:
        from pytest_himga.llm.cache import open_cache

        return open_cache(self._models.cache, self._cache_folder)
