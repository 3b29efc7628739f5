"""The example of a judge of one's own as its README has it, with a scripted model in the server's place."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from llm_models import block, is_judge, verdict
from llm_server import LLMServer

EXAMPLE = Path(__file__).parents[2] / "examples" / "llm_judge"
README = (EXAMPLE / "README.md").read_text(encoding="utf-8")


@pytest.fixture
def server():
    def reply(body):
        return verdict("CORRECT") if is_judge(body) else "ANSWER: blue"

    with LLMServer(reply=reply) as server:
        yield server


@pytest.fixture
def run(story, server, monkeypatch):
    """A command of the example's README; ``subset`` makes it shorter."""
    for path in EXAMPLE.iterdir():
        if path.is_file():
            shutil.copy(path, story.path)
    monkeypatch.setenv("HIMGA_BASE_URL", server.url)

    def run(line: str, subset: int = 5) -> pytest.RunResult:
        given = dict(option.partition("=")[::2] for option in line.split()[1:] if option != "\\")
        data, backend = given.pop("--himga-dataset"), given.pop("--himga-backend")
        if "--himga-subset" in given:
            given["--himga-subset"] = str(subset)
        options = [f"{name}={value}" if value else name for name, value in given.items()]
        return story.run(*options, data=data, backend=backend)

    return run


def command(with_: str) -> str:
    """The one command of README that has these words in it."""
    blocks = re.findall(r"```text\n(pytest .+?)```", README, re.DOTALL)
    (found,) = [block for block in blocks if with_ in block and ("offline" in block) == ("offline" in with_)]
    return found


def test_it_asks_by_its_own_rules_and_then_lives_on_what_it_was_told(run, server, story):
    result = run(command("--himga-subset"))

    verdicts = [one for one in server.asked if is_judge(one.body)]
    assert (result.ret, len(verdicts), len(server.asked)) == (0, 5, 10)
    for one in verdicts:
        own_rules = "in any words" if block(one.body, "gold") else "Nobody can know this"
        assert own_rules in one.prompt
    first = story.verdicts()

    server.asked.clear()
    assert run(command("--himga-offline")).ret == 0
    assert (server.asked, story.verdicts()) == ([], first)


def test_without_a_server_and_without_replies_nothing_is_measured(run, server):
    result = run(command("--himga-offline"))

    assert (result.ret, server.asked) == (6, [])
    assert "replies.sqlite3 cannot be opened: it is not there" in " ".join(result.stdout.str().split())


def test_retrieval_needs_no_model(run, server):
    assert run(command("--himga-judge=evidence")).ret == 0
    assert server.asked == []
