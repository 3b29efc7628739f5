"""How a live memory is asked one question, in the engine room: by which agent, and by a fresh instance or not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_himga.errors import BackendError, BackendTimeout

if TYPE_CHECKING:
    from collections.abc import Collection

    from pytest_himga.data.schema import Case, QAPair
    from pytest_himga.engine.asked import Asked
    from pytest_himga.engine.live_memory import LiveMemory
    from pytest_himga.engine.view import View

NO_AGENTS = "the backend has no as_agent(agent_id), so it cannot be asked as another agent"
NO_REOPEN = "the backend has no reopen(), so no fresh instance over the same store can be asked"


def why_not(question: QAPair, offers: Collection[str]) -> str:
    """Why a memory that ``offers`` these optional methods cannot be asked the question; empty if it can."""
    if question.cross_agent and "as_agent" not in offers:
        return NO_AGENTS
    if question.cold_start and "reopen" not in offers:
        return NO_REOPEN
    return ""


@dataclass(frozen=True)
class Wanted:
    """What a run wants of a memory beside the context: that it answers by itself, or its profile."""

    answer: bool
    profile: bool


async def retrieve(asked: Asked, opened: Case, memory: LiveMemory, top_k: int, wanted: Wanted) -> None:
    """Retrieve for the question; of a fresh instance, which is closed then, get all that is wanted.

    What it takes to make a view or a fresh instance is no time of retrieving: neither is booked. Raises
    ``BackendError``.
    """
    question = opened.question
    if not question.cold_start:
        view = await memory.whole.as_agent(question.as_agent, "retrieve")
        await _retrieve(asked, opened, memory, view, memory.whole, top_k)
        if wanted.profile:
            asked.profile = await (view if view.has("profile") else memory.whole).profile()
        return
    fresh = await memory.reopen()
    try:
        view = await fresh.as_agent(question.as_agent, "retrieve")
        await _retrieve(asked, opened, memory, view, fresh, top_k)
        if wanted.profile:
            asked.profile = await (view if view.has("profile") else fresh).profile()
        if wanted.answer and "answer" in memory.offers:
            asked.answer = await asked.booked("answer", fresh, view.answer(question.question))
    except BackendTimeout:
        raise  # to close it would be to wait behind the call that hangs
    except BackendError as error:
        await _close_after(error, fresh)
        raise
    await fresh.close("retrieve")


async def answer(asked: Asked, opened: Case, memory: LiveMemory) -> None:
    """Let the backend answer a question that it has retrieved for; raises ``BackendError``."""
    view = await memory.whole.as_agent(opened.question.as_agent, "answer")
    asked.answer = await asked.booked("answer", memory.whole, view.answer(opened.question.question))


async def _retrieve(
    asked: Asked, opened: Case, memory: LiveMemory, view: View, whole: View, top_k: int
) -> None:
    question, history = opened.question, memory.history
    view.reveal(question.question, lambda: history.evidence_ids(question.evidence))
    retrieving = view.retrieve(question.question, date=opened.date_str, k=top_k)
    asked.take(await asked.booked("retrieve", whole, retrieving), history, top_k)


async def _close_after(error: BackendError, fresh: View) -> None:
    """Close a fresh instance that failed: its first error is the one to know of, unless it hangs now."""
    try:
        await fresh.close("retrieve")
    except BackendTimeout:
        raise
    except BackendError:
        raise error from None
