"""A memory that does what a test tells it to, for stories about outcomes, gates, exit statuses and summaries."""

from __future__ import annotations

import asyncio
import importlib
import json
from collections import Counter
from typing import TYPE_CHECKING

import pytest
from llm_server import LLMServer

if TYPE_CHECKING:
    from pathlib import Path

MEMORY = '''
import json
import os
from pathlib import Path

from pytest_himga.memory import Recalled

HERE = Path(__file__).parent
ACTIONS = json.loads((HERE / "actions.json").read_text(encoding="utf-8"))


def offline(query):
    raise ConnectionError(f"the store is offline ({len(query)} letters asked)")


class Memory:
    """Returns its whole history, which holds all evidence, unless a word of the question says otherwise."""

    version = "7"

    def __init__(self):
        self.turns = []

    def reset(self):
        self.turns = []

    def ingest(self, message):
        if not self.turns:
            with (HERE / "fed.txt").open("a", encoding="utf-8") as file:
                file.write(f"{message.content}\\n")
        if ACTIONS.get("ingest") in message.content.split():
            os._exit(1)
        self.turns.append(message)

    def retrieve(self, query):
        with (HERE / "asked.txt").open("a", encoding="utf-8") as file:
            file.write(f"{query}\\n")
        action = next((ACTIONS[word] for word in ACTIONS if word in query), "")
        if action == "die":
            os._exit(1)
        if action == "die once" and not (HERE / "died.txt").exists():
            (HERE / "died.txt").touch()
            os._exit(1)
        if action == "raise":
            offline(query)
        if action == "miss":
            return []
        return [Recalled(f"{m.role}: {m.content}", turn_ids=[m.turn_id]) for m in self.turns]


class Answering(Memory):
    """Answers with what it was told for a word of the question; with "I don't know" otherwise."""

    def answer(self, question):
        return next((ACTIONS[word] for word in ACTIONS if word in question), "I don't know.")
'''

#: What the stories need of the installed plugins; the others would take as long as all the rest.
NEEDED = ("-p", "pytest_himga.plugin", "-p", "xdist.plugin")
#: pytest 8 warns that it cannot rewrite the assertions of a plugin that is imported already.
NEEDED += ("-W", "ignore:Module already imported:pytest.PytestAssertRewriteWarning")
#: Imported here, because pytester forgets whatever a run imports.
for name in (
    "collect",
    "controller",
    "display",
    "engine.engine",
    "gate_items",
    "memory.bm25",
    "outcomes",
    "xdist",
):
    importlib.import_module(f"pytest_himga.{name}")


@pytest.fixture(scope="session")
def _models_imported_once() -> None:
    """As ``_imported_once``, for runs that ask models: one call imports what the openai package puts off."""
    for name in ("answer.llm", "judge.llm", "llm.cache", "llm.openai_chat"):
        importlib.import_module(f"pytest_himga.{name}")
    from pytest_himga.llm.endpoint import Endpoint
    from pytest_himga.llm.openai_chat import OpenAIChat
    from pytest_himga.llm.prompt import ChatMessage, ChatRequest, ModelSpec

    async def call(server: LLMServer) -> None:
        chat = OpenAIChat(ModelSpec("m", server.url), Endpoint(server.url), timeout=60)
        await chat.ask(ChatRequest((ChatMessage("user", ("Are you there?",)),)), str)
        await chat.close()

    with LLMServer() as server:
        asyncio.run(call(server))


class Story:
    """A project with ``Memory`` in its module ``mem``; ``run`` and ``run_apart`` are the project's.

    Unless told otherwise that memory gets seven of the nine questions right; SAILOR and CAT are n/a for
    the evidence judge.
    """

    TULIPS = "himga/mini/garden::how-many-tulips-did-ada-plant-0767e5"
    HEDGEHOG = "himga/mini/garden::what-is-the-name-of-ben-s-hedgehog-83804f"
    COLOUR = "himga/mini/garden::which-colour-were-the-tulips-beside-the--0cdbc0"
    CAT = "himga/mini/garden::what-is-ada-s-cat-called-5fcadd"
    FERRY = "himga/mini/harbour::which-ferry-sails-on-thursdays-6fd671"
    REPAINT = "himga/mini/harbour::what-did-dan-repaint-6a98d2"
    SAILOR = "himga/mini/harbour::would-dan-make-a-good-sailor-4faf1d"
    BEACON = "himga/mini/harbour::what-hue-will-the-entrance-of-the-beacon-4ca38e"

    def __init__(self, project) -> None:
        self.project = project
        self.path: Path = project.path
        project.pytester.makeini("[pytest]\npythonpath = .\n")
        project.write("mem.py", MEMORY)
        self.memory_does()

    def memory_does(self, **actions: str) -> None:
        """For a question with this word in it: ``miss``, ``raise``, ``die`` or an answer."""
        self.project.write("actions.json", json.dumps(actions))

    def run(self, *args: str, backend: str = "mem:Memory", **where: str) -> pytest.RunResult:
        """Pytest with that memory and no other plugin than himga and xdist, in this process."""
        return self.project.run(*NEEDED, *args, backend=backend, **where)

    def run_apart(self, *args: str, backend: str = "mem:Memory", **where: str) -> pytest.RunResult:
        """Pytest with that memory, in a process of its own."""
        return self.project.run_apart(*NEEDED, *args, backend=backend, **where)

    def fed(self) -> Counter:
        """How often each sample was fed, by its first turn."""
        return self._lines_of("fed.txt")

    def asked(self) -> Counter:
        """How often each question was asked."""
        return self._lines_of("asked.txt")

    def verdicts(self) -> dict[str, str]:
        """The verdict of each question of the newest run, by its text."""
        return {record["question"]: record["verdict"] for record in self.project.results()}

    def _lines_of(self, name: str) -> Counter:
        return Counter((self.path / name).read_text(encoding="utf-8").splitlines())


@pytest.fixture
def story(project, monkeypatch) -> Story:
    """A small project and a memory that does what the test tells it to, see ``Story``."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    return Story(project)
