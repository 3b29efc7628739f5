"""How a judge is asked, in the engine room: ours at once, a user's own in a thread with a limit."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from pytest_himga.engine.background import Background, Caller, Lane
from pytest_himga.errors import BackendError
from pytest_himga.judge.resolve import resolve_judge
from pytest_himga.judge.verdict import Judge, Verdict, problem_of

if TYPE_CHECKING:
    from pytest_himga.data.schema import Case
    from pytest_himga.memory.protocol import Context


def is_ours(judge: Judge) -> bool:
    """Whether the judge is built in: it neither hangs nor keeps what it is given."""
    return type(judge).__module__.startswith("pytest_himga.")


async def ask_judge(
    judge: Judge, case: Case, answer: str | None, context: Context, limit: float, background: Background
) -> Verdict:
    """The verdict of any judge, ``limit`` in seconds; raises ``BackendError`` of stage ``judge``."""
    if is_ours(judge):
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
