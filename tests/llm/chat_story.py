"""A story of one question to a model: what the server does, what comes of it, and how long is waited."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
from llm_server import Act, Asked, LLMServer

from pytest_himga.errors import LLMError
from pytest_himga.llm.endpoint import Endpoint
from pytest_himga.llm.openai_chat import OpenAIChat
from pytest_himga.llm.prompt import ChatMessage, ChatRequest, Fenced, ModelSpec, ResponseFormat
from pytest_himga.llm.retrying import Pace

if TYPE_CHECKING:
    from pytest_himga.llm.connection import Connection
    from pytest_himga.memory.protocol import Usage

KEY = "sk-scripted-0123456789"
FORMAT = ResponseFormat("verdict", {"type": "object", "properties": {"verdict": {"type": "string"}}})


def question(text: str = "Which colour?", response_format: ResponseFormat | None = None) -> ChatRequest:
    messages = (ChatMessage("system", ("Be short.",)), ChatMessage("user", (Fenced("question", text),)))
    return ChatRequest(messages, response_format)


def as_it_is(text: str) -> str:
    return text


class FakeTime:
    """Time that passes only while somebody sleeps, and chance that is always the same."""

    def __init__(self, chance: float = 0.5) -> None:
        self.waits: list[float] = []
        self.pace = Pace(
            sleep=self.sleep,
            chance=lambda: chance,
            clock=lambda: sum(self.waits),
            now=lambda: 1_700_000_000.0,
        )

    async def sleep(self, seconds: float) -> None:
        self.waits.append(round(seconds, 3))


@dataclass
class Told:
    """What came of it; ``error`` is the sentence, "" if there was an answer."""

    asked: list[Asked]
    value: Any = None
    usage: Usage | None = None
    error: str = ""
    waits: list[float] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def sent(self, name: str) -> list[Any]:
        """What each request said for a parameter, None where it did not."""
        return [asked.body.get(name) for asked in self.asked]


@dataclass
class Story:
    server: LLMServer
    runner: asyncio.Runner
    connection: Connection | None = None
    endpoint: Endpoint | None = None

    def chat(self, options: dict[str, Any] | None = None, *, pace: Pace, timeout: float = 60.0, **more: Any):
        """A model called gpt-x. All of them share one client, because making one takes 30 ms."""
        assert self.endpoint is not None
        spec = ModelSpec("gpt-x", self.server.url, options or {})
        chat = OpenAIChat(spec, self.endpoint, timeout=timeout, pace=pace, **more)
        self.connection = self.connection or chat.connection
        self.connection._whom = chat.whom
        chat.connection = self.connection
        return chat

    def tell(
        self,
        *script: Act,
        options: dict[str, Any] | None = None,
        asking: ChatRequest | None = None,
        **more: Any,
    ) -> Told:
        """Ask one question while the server does what ``script`` says, then answers well."""
        time = FakeTime()
        chat = self.chat(options, pace=more.pop("pace", time.pace), **more)
        told = self.ask(chat, *script, asking=asking)
        told.waits = time.waits
        return told

    def ask(self, chat: OpenAIChat, *script: Act, asking: ChatRequest | None = None, read=as_it_is) -> Told:
        self.server.script[:] = script
        self.server.asked.clear()
        try:
            reply = self.runner.run(chat.ask(asking or question(), read))
        except LLMError as error:
            told = Told([*self.server.asked], usage=error.usage, error=error.message)
        else:
            told = Told([*self.server.asked], reply.value, reply.usage)
        told.notes = chat.notes
        return told


@pytest.fixture(scope="module")
def stage():
    with LLMServer() as server, asyncio.Runner() as runner:
        endpoint = Endpoint(server.url, KEY, advice="check the key in HIMGA_API_KEY")
        it = Story(server, runner, endpoint=endpoint)
        yield it
        if it.connection is not None:
            runner.run(it.connection.close())


@pytest.fixture
def story(stage):
    stage.server.reply = lambda _body: "ok"
    stage.server.asked.clear()
    return stage
