"""The answerer that asks a model, in the answer room."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from pytest_himga.answer.assembly import fields_of
from pytest_himga.answer.reading import final_answer
from pytest_himga.llm.prompt import ChatRequest

if TYPE_CHECKING:
    from pytest_himga.answer.answer_profile import AnswerProfile
    from pytest_himga.answer.request import AnswerRequest
    from pytest_himga.llm.contract import Chat, Reply


@dataclass(frozen=True)
class LLMAnswerer:
    """Answers by one model with the prompts of one profile."""

    chat: Chat
    profile: AnswerProfile
    name: ClassVar[str] = "llm"

    async def answer(self, request: AnswerRequest) -> Reply[str]:
        """The final answer, never blank.

        Raises
        ------
        LLMError
            If the model gave none.
        """
        return await self.chat.ask(self.request_for(request), self.read)

    def request_for(self, request: AnswerRequest) -> ChatRequest:
        """What the model is sent."""
        return ChatRequest(self.profile.messages(fields_of(request)))

    def read(self, text: str) -> str:
        """The final answer in a reply; raises ``Unreadable`` if there is none."""
        return final_answer(text, self.profile.marker)
