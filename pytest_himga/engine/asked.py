"""What is known of one question, in the engine room, and how its stages are booked."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from pytest_himga.engine.faults import failed
from pytest_himga.errors import BackendError
from pytest_himga.memory.boundary import read_context

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping

    from pytest_himga.engine.view import View
    from pytest_himga.judge.verdict import Verdict
    from pytest_himga.memory.boundary import History
    from pytest_himga.memory.protocol import Context, Usage

T = TypeVar("T")


@dataclass
class Asked:
    """What one question has brought so far; ``ms`` and ``usage`` are by stage.

    ``usage`` holds what was spent on it before it was asked again (a rerun) as well: it was paid for.
    """

    context: Context | None = None
    returned: int = 0
    #: What the memory said of its user, for an LLM that answers.
    profile: Mapping[str, Any] | None = None
    answer: str | None = None
    #: Why nobody answered from the context, which is there all the same.
    answer_error: BackendError | None = None
    verdict: Verdict | None = None
    error: BackendError | None = None
    judge_error: BackendError | None = None
    ms: dict[str, float] | None = None
    usage: dict[str, Usage] = field(default_factory=dict)

    def is_open(self, *, answers: bool) -> bool:
        """Whether the memory has still something to say, which ``answers`` or not."""
        if self.error is not None:
            return False
        return self.context is None or (answers and self.answer is None)

    def spend(self, stage: str, seconds: float, usage: Usage | None = None) -> None:
        """Book the time that it took and what was used, beside what was before."""
        before = (self.ms or {}).get(stage, 0.0)
        self.ms = {**(self.ms or {}), stage: before + seconds * 1000}
        self.use(stage, usage)

    def use(self, stage: str, usage: Usage | None) -> None:
        """Book what was used beside what the stage has used already."""
        if usage is not None:
            before = self.usage.get(stage)
            self.usage[stage] = before + usage if before else usage

    async def booked(self, stage: str, whole: View, work: Coroutine[object, None, T]) -> T:
        """The result of ``work``, with its time and what ``whole``, which keeps the totals, used for it."""
        try:
            before = await whole.usage(stage)
            started = time.perf_counter()
            result = await work
            self.spend(stage, time.perf_counter() - started)
        finally:
            work.close()
        if before is not None and (after := await whole.usage(stage)) is not None:
            self.use(stage, after - before)
        return result

    def take(self, returned: object, history: History, top_k: int) -> None:
        """Keep what a ``retrieve`` returned; raises ``BackendError`` for what is not in its contract."""
        try:
            self.context, self.returned = read_context(returned, history, top_k)
        except BackendError:
            raise
        except Exception as error:  # noqa: BLE001 - a list that loads as it is read is the backend's code too
            raise failed("reading what retrieve() returned", error, "retrieve") from None
