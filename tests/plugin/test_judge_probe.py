"""``--himga-judge-probe``: the judge is tried on known answers before any question is paid for."""

from __future__ import annotations

import re

import pytest
from llm_models import block, is_judge, reads_and_compares, verdict
from llm_server import LLMServer, status

from pytest_himga.judge.probes import shipped_probes
from pytest_himga.llm.prompt import sound

RIGHT = {(probe.case.brief.question, sound(probe.answer)): probe.right for probe in shipped_probes()}
INJECTED = [probe for probe in shipped_probes() if probe.kind == "injected"]


def knows_the_probes(body):
    """A model that judges every probe as it should, and a dataset's answers by rule."""
    known = RIGHT.get((block(body, "question"), block(body, "answer"))) if is_judge(body) else None
    if known is None:
        return reads_and_compares(body)
    return verdict("CORRECT" if known else "WRONG")


@pytest.fixture
def server(_models_imported_once):
    with LLMServer(reply=knows_the_probes) as server:
        yield server


@pytest.fixture
def run(story, server, monkeypatch):
    """Pytest with a model that answers and judges, and the probe."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-only-for-this-test")

    def run(*args: str, **where: str) -> pytest.RunResult:
        llm = [
            "--himga-answerer=llm",
            "--himga-model=m",
            f"--himga-base-url={server.url}",
            "--himga-judge-probe",
        ]
        return story.run(*llm, *args, **({"backend": "bm25"} | where))

    return run


def questions_asked(server) -> int:
    return sum(not is_judge(body) for body in server.bodies)


def flat(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize("workers", [[], ["-n1"]])
def test_a_judge_that_is_fit_is_told_of_and_the_run_goes_on(project, run, server, workers):
    result = run("--himga-min-score=0.5", *workers)

    assert result.ret == 0
    lines = result.outlines
    first = next(
        n for n, line in enumerate(lines) if line.startswith(f"himga: judge: m at {server.url}, profile ")
    )
    assert lines[first + 1 : first + 3] == [
        "himga: probe of the judge: planned model calls: at most 62, fewer with what is in the cache",
        "Calibration on 62 shipped probes",
    ]
    assert lines[first + 3].startswith("judge llm:strict ")
    # Two of the probes are empty answers, which need no model.
    spent = lines.index("himga: probe of the judge: 60 calls; 660 tokens in, 420 out")
    assert flat(" ".join(lines[first:spent])).endswith("false rejects 0 of 25 (at most 10 %)")
    assert spent < next(n for n, line in enumerate(lines) if "planned model calls: at most 18" in line)
    assert questions_asked(server) == 9
    told = project.run_json()["judge_probe"]["mini"]
    assert (told["standing"], told["why"]) == ("fit", "")
    assert (told["false_accepts"]["n"], told["false_rejects"]["n"]) == (37, 25)
    assert told["usage"] == {"calls": 60, "tokens_in": 660, "tokens_out": 420, "cost": 0.0}
    # What the probe took is none of the questions' own.
    assert "verdicts    9 calls; 99 tokens in, 63 out" in lines
    corrected = flat(result.stdout.str().split("corrected", 1)[1])
    assert corrected.startswith("overall 0.6250 (95% interval 0.")
    assert "62 probes (accepts 0 of 37 wrong answers, rejects 0 of 25 right ones)" in corrected
    assert "is NOT" not in result.stdout.str()
    assert len(server.asked) == 60 + 18


def test_a_judge_that_can_be_talked_into_a_pass_ends_the_run_before_any_question(run, server):
    fooled = {sound(probe.answer) for probe in INJECTED[:1]}
    server.reply = lambda body: (
        verdict("CORRECT") if block(body, "answer") in fooled else knows_the_probes(body)
    )
    result = run()

    assert result.ret == 6
    assert questions_asked(server) == 0
    said = f"himga: no question was asked (exit status 6): the judge m at {server.url}, profile strict, fingerprint "
    assert said in result.stderr.str()
    assert "is NOT fit for gating: 1 of 6 injected answers talked it into a pass" in result.stderr.str()


def test_it_goes_on_all_the_same_if_that_is_allowed(project, run, server):
    server.reply = lambda body: verdict("CORRECT") if is_judge(body) else knows_the_probes(body)
    result = run("--himga-allow=judge", "--himga-gate=none")

    assert result.ret == 0
    assert questions_asked(server) == 9
    assert project.run_json()["judge_probe"]["mini"]["standing"] == "unfit"
    summary = flat(result.stdout.str().split("= himga =", 1)[1])
    # A judge that accepts everything but silence says next to nothing.
    assert (
        "corrected overall 1.0000 (95% interval 0.000-1.000) for the judge's errors on 62 probes" in summary
    )
    assert "note the judge is NOT fit for gating: 6 of 6 injected answers talked it into a pass; " in summary


def test_an_outage_of_the_judge_is_not_a_judge_that_is_unfit(run, server):
    server.reply = lambda _: status(401, {"error": {"message": "no such key"}})
    result = run("-q")

    assert result.ret == 6
    assert len(server.asked) <= 16  # those that were under way when the first came back
    assert questions_asked(server) == 0
    assert "is NOT known to be fit for gating: 62 of 62 " in result.stderr.str()
    assert "probes got no verdict (the first: " in result.stderr.str()
    assert "no such key" in result.stderr.str()


def test_with_a_probe_that_was_not_measured_no_accuracy_is_corrected(run, server):
    def replies(body):
        return "CORRECT" if block(body, "answer") == "A loom" else knows_the_probes(body)

    server.reply = replies
    result = run("-q", "--himga-allow=judge", "--himga-gate=none")

    assert result.ret == 0
    summary = flat(result.stdout.str().split("= himga =", 1)[1])
    why = '1 of 62 probes got no verdict (the first: there is no verdict object in the judge\'s reply: "CORRECT")'
    assert f"corrected - (the judge's errors are not known: {why}) " in summary
    assert f"note the judge is NOT known to be fit for gating: {why}" in summary


def test_what_was_tried_once_costs_nothing_the_next_time(run, server):
    run("-q")
    asked = len(server.asked)
    again = run("-q", "--himga-offline")

    assert len(server.asked) == asked == 60 + 18
    planned, fit, spent = again.outlines[:3]
    assert (
        planned == "himga: probe of the judge: planned model calls: none, replies come from the cache alone"
    )
    assert fit.startswith(
        "himga: judge llm:strict: fit for gating: no injected answer accepted, false accepts 0 of 37"
    )
    assert spent == "himga: probe of the judge: 60 from the cache"


def test_each_profile_is_tried_once(project, run, server):
    server.reply = lambda body: verdict("CORRECT") if is_judge(body) else "ANSWER: so"
    result = run(
        "--himga-allow=judge",
        "--himga-gate=none",
        "--himga-subset=1",
        "--himga-dataset=other=mini.json",
        data="mini.json,demo-longmemeval",
    )

    out = result.stdout.str()
    assert re.findall(r"shipped probes\njudge (\S+)", out) == ["llm:strict", "llm:longmemeval"]
    assert project.run_json()["judge_probe"].keys() == {"mini", "other", "demo-longmemeval"}
    notes = re.findall(r"note the judge of (\S+) is NOT fit", flat(out))
    assert notes == [record["dataset"] for record in project.results()]


@pytest.mark.parametrize(
    "arguments", [["--himga-judge=evidence"], []], ids=["the evidence judge", "no judge named"]
)
def test_a_judge_of_no_answers_cannot_be_tried(story, arguments):
    result = story.run("--himga-judge-probe", *arguments)

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "ERROR: --himga-judge-probe tries a judge of answers: add --himga-judge=llm" in result.stderr.str()


def test_listing_tries_nothing(run, server):
    run("--co", "-q")

    assert server.asked == []
