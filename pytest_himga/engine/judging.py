"""Who judges in this run and how it is asked, in the engine room.

Ours by rule at once, ours by LLM on the models' loop, a user's own in a thread with a limit.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from pytest_himga.engine.background import Background, Caller
from pytest_himga.errors import BackendError
from pytest_himga.judge.resolve import resolve_judge
from pytest_himga.judge.verdict import Judge, Verdict, problem_of
from pytest_himga.lane import Lane

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_himga.data.schema import Case
    from pytest_himga.engine.llms import Llms
    from pytest_himga.memory.protocol import Context
    from pytest_himga.models import ModelSettings


def is_ours(judge: Judge) -> bool:
    """Whether the judge is built in: it does not keep what it is given."""
    return type(judge).__module__.startswith("pytest_himga.")


def is_llm(judge: Judge | None) -> bool:
    """Whether it is ours and asks a model."""
    return judge is not None and is_ours(judge) and inspect.iscoroutinefunction(judge.judge)


class Judging:
    """``families`` maps each dataset to its family; ``timeout`` limits one call of a user's judge, seconds."""

    def __init__(
        self,
        models: ModelSettings,
        families: Mapping[str, str],
        llms: Llms,
        background: Background,
        timeout: float,
    ) -> None:
        self._families = families
        self._llms = llms
        self._background = background
        self._timeout = timeout
        self._by_llm = models.llm_judges
        self._one = resolve_judge(models.judge) if models.judge and not self._by_llm else None

    def of(self, dataset: str) -> Judge | None:
        """The judge of the dataset's questions; None where it is not known yet whether anything answers."""
        return self._llms.judge(self._families[dataset]) if self._by_llm else self._one

    def default(self, *, answers: bool) -> None:
        """None was asked for: ``lexical`` where something answers, else ``evidence``."""
        self._one = resolve_judge("lexical" if answers else "evidence")

    def clock(self) -> float:
        """As ``Llms.clock``."""
        return self._llms.clock()

    async def ask(self, judge: Judge, case: Case, answer: str | None, context: Context) -> Verdict:
        """The verdict of any judge; raises ``BackendError`` of stage ``judge``."""
        if is_ours(judge):
            verdict: Any = judge.judge(case, answer, context)
            return await self._llms.call("the LLM's verdict", "judge", verdict) if is_llm(judge) else verdict
        return await self._ask_own(judge, case, answer, context)

    async def _ask_own(self, judge: Judge, case: Case, answer: str | None, context: Context) -> Verdict:
        lane = Lane("judge")
        try:
            verdict: Any = await Caller(lane, self._background).one(
                "judge()",
                lambda: judge.judge(case, answer, context),
                limit=self._timeout,
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
