"""The whole way with a real model server, whatever its model is worth as a judge.

``HIMGA_TEST_BASE_URL`` names the server; README says how to start one. Optional are ``HIMGA_TEST_MODEL``,
``HIMGA_TEST_API_KEY``, ``HIMGA_TEST_MODEL_OPTION`` (KEY=VALUE for the model that answers, one a line) and
``HIMGA_TEST_CONTEXT`` (the tokens of the server's context). A relay stands between himga and the server, so
that the tests see what was sent; ``-rP`` shows what it saw.
"""

from __future__ import annotations

import json
import os
import sys
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import Any

import pytest
from llm_models import block, is_judge
from llm_server import Act, LLMServer

SERVER = os.environ.get("HIMGA_TEST_BASE_URL", "").rstrip("/")
MODEL = os.environ.get("HIMGA_TEST_MODEL") or "local"
KEY = os.environ.get("HIMGA_TEST_API_KEY", "")
CONTEXT = int(os.environ.get("HIMGA_TEST_CONTEXT") or 0)
#: Seconds that one reply may take: small machines have models too.
PATIENCE = 300
LIMIT = 64
OPTIONS = [f"max_tokens={LIMIT}", "temperature=0", "seed=7"]
OF_ANSWERER = [*OPTIONS, *os.environ.get("HIMGA_TEST_MODEL_OPTION", "").splitlines()]

pytestmark = [
    pytest.mark.real_llm,
    pytest.mark.timeout(3600),
    pytest.mark.skipif(
        not SERVER, reason="HIMGA_TEST_BASE_URL names no model server; README says how to start one"
    ),
]


@dataclass
class Passed:
    """A request that went through the relay, and what came back."""

    body: dict[str, Any]
    status: int
    reply: dict[str, Any]
    seconds: float

    @property
    def question(self) -> str | None:
        return block(self.body, "question")

    @property
    def finish(self) -> str | None:
        return self.reply["choices"][0]["finish_reason"] if self.status == 200 else None

    @property
    def limit(self) -> int | None:
        return self.body.get("max_tokens", self.body.get("max_completion_tokens"))

    @property
    def format(self) -> str:
        form = self.body.get("response_format", {})
        return form.get("type", "none") + (" with a schema" if "schema" in form else "")


class Relay(LLMServer):
    """Passes each request on to the real server and keeps it in ``passed``."""

    def __init__(self) -> None:
        super().__init__(reply=self._pass_on)
        self.passed: list[Passed] = []

    def _pass_on(self, body: dict[str, Any]) -> Act:
        def act(handler: Any) -> None:
            started = time.perf_counter()
            status, content = _post(body, handler.asked.headers.get("authorization"))
            passed = Passed(body, status, json.loads(content), time.perf_counter() - started)
            with self.lock:
                self.passed.append(passed)
            handler.answer(status, content)

        return act

    @property
    def of_answers(self) -> list[Passed]:
        return [one for one in self.passed if not is_judge(one.body)]

    @property
    def of_verdicts(self) -> list[Passed]:
        return [one for one in self.passed if is_judge(one.body)]


def _post(body: dict[str, Any], authorization: str | None) -> tuple[int, bytes]:
    headers = {"Content-Type": "application/json"} | (
        {"Authorization": authorization} if authorization else {}
    )
    request = urllib.request.Request(f"{SERVER}/chat/completions", json.dumps(body).encode(), headers)
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE) as response:
            return response.status, response.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read()


class Real:
    """Runs of a project with the real model, each in a process of its own as a user has it."""

    def __init__(self, project: Any, relay: Relay) -> None:
        self.project = project
        self.relay = relay

    def run(
        self, *args: str, options: list[str] = OF_ANSWERER, backend: str = "bm25", data: str = "demo-locomo"
    ) -> pytest.RunResult:
        self.relay.passed.clear()
        result = self.project.run_apart(
            *("--himga-answerer=llm", f"--himga-model={MODEL}", f"--himga-base-url={self.relay.url}"),
            *(f"--himga-model-option={option}" for option in options),
            *(f"--himga-judge-model-option={option}" for option in OPTIONS),
            *(f"--himga-timeout={PATIENCE}", "--himga-top-k=3"),
            *("--himga-gate=none", "--himga-max-unscored=100%"),
            *args,
            backend=backend,
            data=data,
        )
        told = result.stdout.str() + result.stderr.str()
        assert result.ret in (0, 6), told
        assert "Traceback" not in told
        assert not KEY or KEY not in told
        return result

    def records(self) -> dict[str, dict[str, Any]]:
        """The results of the last run by question; all of them are proper ends of a question."""
        records = {record["question"]: record for record in self.project.results()}
        for record in records.values():
            assert record["verdict"] in ("correct", "wrong", "unscored")
            assert record["verdict"] != "unscored" or is_sentence(record["reason"]), record
            assert record["answer"] is None or record["answer"].strip()
        return records


def is_sentence(text: str) -> bool:
    return len(text.split()) > 3 and "\n" not in text


def scored(records: dict[str, dict[str, Any]]) -> dict[str, tuple[str, str]]:
    """The answer and the verdict of each question that got both."""
    return {
        question: (record["answer"], record["verdict"])
        for question, record in records.items()
        if record["verdict"] != "unscored"
    }


def spent(records: dict[str, dict[str, Any]], stage: str, name: str) -> int:
    return sum(record["usage"].get(stage, {}).get(name, 0) for record in records.values())


@pytest.fixture
def real(project, monkeypatch):
    if KEY:
        monkeypatch.setenv("HIMGA_API_KEY", KEY)
    with Relay() as relay:
        yield Real(project, relay)


def test_a_run_its_rerun_its_votes_and_the_cache_without_the_server(real):
    result = real.run("--himga-subset=6")
    first, answers, verdicts = real.records(), real.relay.of_answers, real.relay.of_verdicts
    run = real.project.run_json()
    show_what_was_seen(real.relay, first, result)

    assert len(first) == 6
    # What was paid for is booked, call by call.
    assert (spent(first, "answer", "calls"), spent(first, "judge", "calls")) == (len(answers), len(verdicts))
    told = [one.reply.get("usage") for one in real.relay.passed if one.status == 200]
    if all(told):
        assert spent(first, "answer", "tokens_in") > 0
        assert spent(first, "answer", "tokens_in") + spent(first, "judge", "tokens_in") == sum(
            usage["prompt_tokens"] for usage in told
        )
    # Who was asked stands in the run's file, and the key nowhere.
    for role, options in (("answerer", OF_ANSWERER), ("judge", OPTIONS)):
        entry = run["models"][role]
        assert (entry["model"], entry["server"]) == (MODEL, real.relay.url)
        assert list(entry["options"]) == [option.partition("=")[0] for option in options]
        assert all(len(fingerprint) == 64 for fingerprint in entry["fingerprints"].values())
    assert not KEY or KEY not in json.dumps(run)
    # Who answers sees no gold; who judges sees it, and is held to a form.
    assert all(block(one.body, "gold") is None for one in answers)
    assert {one.question for one in verdicts} == {q for q, record in first.items() if record["answer"]}
    if verdicts:
        assert verdicts[0].format == "json_schema"
        assert (verdicts[-1].format == "json_schema") != ("response_format json_schema" in noted(result))
    # What the user set is sent as it was set.
    for one in real.relay.passed:
        assert one.body["model"] == MODEL
        assert (one.body.get("temperature", 0), one.body.get("seed", 7)) == (0, 7)
        assert one.limit in (LIMIT, 4 * LIMIT, None)

    real.run("--himga-subset=6")
    again = real.records()
    # Only what brought nothing valid is asked again.
    assert scored(first).items() <= scored(again).items()
    assert not {one.question for one in real.relay.of_answers} & {
        question for question, record in first.items() if record["answer"]
    }
    assert not {one.question for one in real.relay.of_verdicts} & scored(first).keys()

    real.run("--himga-subset=6", "--himga-judge-votes=3")
    voted = real.records()
    for question, record in voted.items():
        votes = record["votes"]
        assert len(votes) == (3 if record["answer"] else 0)
        majority = {value for value in ("correct", "wrong") if votes.count(value) > 1}
        assert record["verdict"] == (majority.pop() if majority else "unscored")
        # The first of three votes is the one vote of before.
        if question in scored(again):
            assert votes[0] == again[question]["verdict"]
            assert record["usage"]["judge"]["cached"] >= 1

    real.run("--himga-subset=6", "--himga-judge-votes=3", "--himga-cache=read", "--himga-offline")
    assert real.relay.passed == []
    assert scored(voted) == scored(real.records())


def test_a_reply_that_is_cut_off_gets_one_larger_budget(real):
    real.run("--himga-subset=2", "--himga-judge=lexical", options=["max_tokens=1"])

    for question, record in real.records().items():
        asked = [one for one in real.relay.passed if one.question == question and one.status == 200]
        assert [one.limit for one in asked] == [1, 4][: len(asked)]
        assert record["usage"]["answer"]["tokens_out"] == sum(
            one.reply["usage"]["completion_tokens"] for one in asked if one.reply.get("usage")
        )
        assert len(asked) == 2 or asked[0].finish != "length"
        if asked[-1].finish == "length":
            assert (
                record["reason"]
                == f"the reply of {MODEL} was cut off at its token limit, also with a larger limit"
            )


@pytest.mark.skipif(
    not CONTEXT, reason="HIMGA_TEST_CONTEXT does not say how many tokens the server's context has"
)
def test_a_context_that_is_too_long_is_called_so_and_not_sent_again(real):
    real.project.write(
        "mem.py",
        f"""
class Talkative:
    def reset(self): ...
    def ingest(self, message): ...
    def retrieve(self, query): return "tulip hedgehog " * {CONTEXT}
""",
    )

    real.run("--himga-subset=1", backend="mem:Talkative", data="mini.json")

    (record,) = real.records().values()
    assert f"the request is longer than the context of {MODEL}" in record["reason"]
    assert [one.status for one in real.relay.passed] == [400]


def test_a_parameter_that_no_server_knows_keeps_nobody_from_an_answer(real):
    nonsense = "himga_no_such_parameter"
    options = [f"{nonsense}=1", *OF_ANSWERER]
    result = real.run("--himga-subset=1", "--himga-judge=lexical", options=options)

    (record,) = real.records().values()
    # Some servers refuse it, most take no notice.
    last = real.relay.passed[-1]
    assert last.status == 200
    assert (nonsense not in last.body) == (f"does not take {nonsense}" in noted(result))
    assert record["usage"]["answer"]["calls"] == len(real.relay.passed)


def noted(result: pytest.RunResult) -> str:
    """The summary as one line: it breaks its notes to the width of the terminal."""
    return " ".join(result.stdout.str().split())


def show_what_was_seen(relay: Relay, records: dict[str, dict[str, Any]], result: pytest.RunResult) -> None:
    """For whoever tries a server: what it took, how fast it was, and what its model said."""
    good = [one for one in relay.passed if one.status == 200]
    seconds = sorted(one.seconds for one in good) or [0.0]
    lines = [
        f"model: {good[0].reply.get('model') if good else 'none answered'}, asked as {MODEL}",
        f"replies: {len(good)} of {len(relay.passed)} requests, median {seconds[len(seconds) // 2]:.1f} s",
        f"formats, and how the server took them: {sorted({(one.format, one.status) for one in relay.of_verdicts})}",
        f"answers: {sum(bool(record['answer']) for record in records.values())} of {len(records)}",
        f"verdicts: {[record['verdict'] for record in records.values()]}",
        *(f"{'verdict' if is_judge(one.body) else 'answer'}: {said(one)!r}" for one in good),
        result.stdout.str(),
    ]
    sys.stdout.write("\n".join(lines) + "\n")


def said(one: Passed) -> str:
    return str(one.reply["choices"][0]["message"].get("content"))[:400]
