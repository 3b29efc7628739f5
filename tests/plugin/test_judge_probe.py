"""``--himga-judge-probe``: the judge is tried on known answers before any question is paid for."""

from __future__ import annotations

import pytest
from llm_models import block, is_judge, reads_and_compares, verdict
from llm_server import LLMServer, status

from pytest_himga.judge.probes import shipped_probes
from pytest_himga.llm.prompt import sound

WITHOUT_OTHERS = [
    f"-pno:{name}"
    for name in ("asyncio", "anyio", "cov", "syrupy", "rerunfailures", "hypothesispytest", "timeout")
]
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
def run(project, server, monkeypatch):
    """Pytest with a model that answers and judges, and the probe."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-only-for-this-test")

    def run(*args: str, apart: bool = False) -> pytest.RunResult:
        llm = [
            "--himga-answerer=llm",
            "--himga-model=m",
            f"--himga-base-url={server.url}",
            "--himga-judge-probe",
        ]
        return (project.run_apart if apart else project.run)(*llm, *WITHOUT_OTHERS, *args)

    return run


def questions_asked(server) -> int:
    return sum(not is_judge(body) for body in server.bodies)


@pytest.mark.parametrize("workers", [[], ["-n2"]])
def test_a_judge_that_is_fit_is_told_of_and_the_run_goes_on(project, run, server, workers):
    result = run("--himga-min-score=0.5", *workers, apart=bool(workers))

    assert result.ret == 0
    lines = result.stdout.str().splitlines()
    planned = lines.index("himga: planned model calls of the probe: at most 62")
    assert lines[planned + 1] == "Calibration on 62 shipped probes"
    fit = next(n for n, line in enumerate(lines) if line.startswith("fit for gating: "))
    assert fit < next(n for n, line in enumerate(lines) if "planned model calls: at most 18" in line)
    assert questions_asked(server) == 9
    told = project.run_json()["judge_probe"]["mini"]
    assert (told["standing"], told["why"]) == ("fit", "")
    assert (told["false_accepts"]["n"], told["false_rejects"]["n"]) == (37, 25)
    corrected = " ".join(result.stdout.str().split("corrected", 1)[1].split())
    assert corrected.startswith("overall 0.6250 (95% interval 0.")
    assert "62 probes (accepts 0 of 37 wrong answers, rejects 0 of 25 right ones)" in corrected


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
    # A judge that accepts everything but silence says next to nothing.
    corrected = " ".join(result.stdout.str().split("corrected", 1)[1].split())
    assert corrected.startswith(
        "overall 1.0000 (95% interval 0.000-1.000) for the judge's errors on 62 probes"
    )


def test_an_outage_of_the_judge_is_not_a_judge_that_is_unfit(run, server):
    server.reply = lambda _: status(401, {"error": {"message": "no such key"}})
    result = run("-q")

    assert result.ret == 6
    assert len(server.asked) <= 16  # those that were under way when the first came back
    assert questions_asked(server) == 0
    assert "is NOT known to be fit for gating: 62 of 62 " in result.stderr.str()
    assert "probes got no verdict (the first: " in result.stderr.str()
    assert "no such key" in result.stderr.str()


def test_what_was_tried_once_costs_nothing_the_next_time(run, server):
    run("--himga-gate=none")
    before = len(server.asked)
    run("--himga-gate=none")

    assert before == 60 + 18  # two of the probes are empty answers, which need no model
    assert len(server.asked) == before


def test_each_profile_is_tried_once(project, monkeypatch, server):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-only-for-this-test")
    result = project.run(
        "--himga-answerer=llm",
        "--himga-model=m",
        f"--himga-base-url={server.url}",
        "--himga-judge-probe",
        "--himga-gate=none",
        "--himga-subset=1",
        "--himga-dataset=other=mini.json",
        *WITHOUT_OTHERS,
        data="mini.json,demo-longmemeval",
    )

    out = result.stdout.str()
    assert out.count("Calibration on 62 shipped probes") == 2
    assert project.run_json()["judge_probe"].keys() == {"mini", "other", "demo-longmemeval"}


@pytest.mark.parametrize(
    "arguments", [["--himga-judge=evidence"], []], ids=["the evidence judge", "no judge named"]
)
def test_a_judge_of_no_answers_cannot_be_tried(project, arguments):
    result = project.run("--himga-judge-probe", *arguments)

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "ERROR: --himga-judge-probe tries a judge of answers: add --himga-judge=llm" in result.stderr.str()


def test_listing_tries_nothing(run, server):
    run("--co", "-q")

    assert server.asked == []
