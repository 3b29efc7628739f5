"""Runs in which a model answers, judges, or both: what the user sees, and what a failing model makes of it."""

from __future__ import annotations

import json
import re

import pytest
from llm_models import REFUSAL, block, is_judge, reads_and_compares, verdict
from llm_server import LLMServer, body, cut, refused, status, text

WITHOUT_OTHERS = [
    f"-pno:{name}"
    for name in ("asyncio", "anyio", "cov", "syrupy", "rerunfailures", "hypothesispytest", "timeout")
]
HEDGEHOG = "What is the name of Ben's hedgehog?"


@pytest.fixture
def server(_models_imported_once):
    with LLMServer(reply=reads_and_compares) as server:
        yield server


@pytest.fixture
def run(project, server, monkeypatch):
    """Pytest with a model on the server that answers and judges, unless the arguments say otherwise."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-only-for-this-test")

    def run(*args: str, answerer: str = "llm", apart: bool = False, **kwargs) -> pytest.RunResult:
        who = [f"--himga-answerer={answerer}", "--himga-model=small", f"--himga-base-url={server.url}"]
        start = project.run_apart if apart else project.run
        return start(*(who if answerer else who[1:]), *WITHOUT_OTHERS, *args, **kwargs)

    return run


def by_question(project) -> dict[str, dict]:
    return {record["question"]: record for record in project.results()}


def numbered(text: str, url: str) -> str:
    """A summary without what differs from run to run."""
    text = text.replace(url, "URL")
    text = re.sub(r"[0-9a-f]{12}", "HEX", text)
    return re.sub(r"\d+(\.\d+)? (ms|s)\b", "TIME", text)


# -- the whole of it ---------------------------------------------------------------------------------


def test_a_model_answers_and_a_model_judges(project, run, server):
    result = run("--himga-min-score=0.5")

    assert result.ret == 0
    out = numbered(result.stdout.str(), server.url)
    for line in (
        "himga: backend bm25, answerer llm, judge llm, k 10",
        "himga: answerer: small at URL, profile strict, fingerprint HEX",
        "himga: judge: small at URL, profile strict, fingerprint HEX",
        "himga: planned model calls: at most 18 (9 for answers, 9 for verdicts), fewer with what is in the cache",
        "answers     9 calls; 99 tokens in, 63 out",
        "verdicts    9 calls; 99 tokens in, 63 out",
        "answering   p50 TIME, p95 TIME",
        "judging     p50 TIME, p95 TIME",
    ):
        assert line in out.splitlines()
    told = " ".join(out.split())
    assert "answerer small at URL, profile strict, fingerprint HEX judge small at URL, profile" in told
    assert len(server.asked) == 18
    bramble = by_question(project)[HEDGEHOG]
    assert (bramble["verdict"], bramble["judge"], bramble["score"]) == ("correct", "llm:strict", 1.0)
    assert bramble["answer"].startswith("Ben: My hedgehog Bramble watched")
    assert (bramble["votes"], bramble["reason"], bramble["stage"]) == (["correct"], "by rule", None)
    assert bramble["usage"]["answer"] == {"calls": 1, "tokens_in": 11, "tokens_out": 7, "cost": 0.0}
    assert bramble["usage"]["judge"] == {"calls": 1, "tokens_in": 11, "tokens_out": 7, "cost": 0.0}
    assert bramble["ms"].keys() == {"ingest", "retrieve", "answer", "judge"}


def test_what_loading_the_client_takes_is_no_time_of_an_answer_or_a_verdict(project, run, monkeypatch):
    def load(chat):
        if not chat.loading:
            chat.loading = 1000.0  # seconds that nobody has waited for: what they are taken off is below 0

    monkeypatch.setattr("pytest_himga.llm.openai_chat.OpenAIChat._get_ready", load)
    run("-k", "hedgehog or ferry", "--himga-gate=none")

    first, second = (record["ms"] for record in by_question(project).values())
    assert first["answer"] < -900_000
    assert first["judge"] < -900_000
    assert second["answer"] > 0
    assert second["judge"] > 0


def test_the_planned_calls_come_before_the_first_one_and_with_q_too(run, server):
    seen = []

    def reply(body):
        seen.append(1)
        return reads_and_compares(body)

    server.reply = reply
    result = run("-q", "-k", "harbour", "--himga-judge-votes=3", "--himga-gate=none")

    lines = result.stdout.str().splitlines()
    planned = "himga: planned model calls: at most 16 (4 for answers, 12 for verdicts), fewer with what is in the cache"
    assert lines.index(planned) < next(n for n, line in enumerate(lines) if "[100%]" in line)
    assert len(seen) == 16


def test_run_json_says_who_answered_and_who_judged(project, run, server):
    run("--himga-judge-model=large", "--himga-model-option=temperature=0", "--himga-judge-votes=3")

    told = project.run_json()
    assert (told["answerer"], told["judge"]) == ("llm", "llm:strict")
    assert told["profiles"].keys() == {"answerer/strict", "judge/strict"}
    answerer, judge = told["models"]["answerer"], told["models"]["judge"]
    assert answerer["fingerprints"].keys() == judge["fingerprints"].keys() == {"strict"}
    assert {**answerer, "fingerprints": 0} == {
        "model": "small",
        "server": server.url,
        "options": {"temperature": 0},
        "votes": 1,
        "fingerprints": 0,
    }
    assert {**judge, "fingerprints": 0} == {
        "model": "large",
        "server": server.url,
        "options": {},
        "votes": 3,
        "fingerprints": 0,
    }
    sent = {body["model"]: body for body in server.bodies}
    assert sent["small"]["temperature"] == 0
    assert "temperature" not in sent["large"]


@pytest.mark.slow
def test_workers_change_nothing_but_times_and_the_planned_calls_are_told_once(project, run, server):
    result = run("--himga-gate=none", "-n2", apart=True)

    planned = [line for line in result.stdout.str().splitlines() if "planned model calls" in line]
    assert planned == [
        "himga: planned model calls: at most 18 (9 for answers, 9 for verdicts), fewer with what is in the cache"
    ]
    assert len(server.asked) == 18
    told = {q: (r["verdict"], r["answer"], r["reason"]) for q, r in by_question(project).items()}
    run("--himga-gate=none", "--himga-cache=off")
    assert told == {q: (r["verdict"], r["answer"], r["reason"]) for q, r in by_question(project).items()}


def test_each_family_is_judged_by_its_own_rules(project, run):
    result = run("--himga-subset=4", "--himga-gate=none", data="demo")

    judges = {record["dataset"]: record["judge"] for record in project.results()}
    assert judges == {
        "demo-locomo": "llm:strict",
        "demo-longmemeval": "llm:longmemeval",
        "demo-memorystress": "llm:memorystress",
    }
    for dataset, judge in judges.items():
        assert f"himga: judge of {dataset}: small at" in result.stdout.str()
        assert f"judge/{judge.removeprefix('llm:')}" in project.run_json()["profiles"]


def test_a_profile_of_ones_own_is_a_path(project, run, server):
    project.write(
        "rules/ours.toml",
        'kind = "judge"\n'
        'system = ["Tags end in {fence}. Rules: {rules} Reply with one JSON object: reason, verdict."]\n'
        'user = ["{question} {answer}", "{gold}", "{trap}"]\n'
        '[rules]\ndefault = ["Be kind to gardeners."]\nabstention = ["Be strict."]\n',
    )
    run("--himga-judge-profile=rules/ours.toml", "--himga-gate=none")

    assert {record["judge"] for record in project.results()} == {"llm:ours"}
    judged = [asked.prompt for asked in server.asked if is_judge(asked.body)]
    assert sum("Be kind to gardeners." in prompt for prompt in judged) == 8
    assert sum("Be strict." in prompt for prompt in judged) == 1


# -- who answers -------------------------------------------------------------------------------------

ANSWERING = """
from pytest_himga.memory import Recalled


class Memory:
    def __init__(self):
        self.turns = []

    def reset(self):
        self.turns = []

    def ingest(self, message):
        self.turns.append(message)

    def retrieve(self, query):
        return [Recalled(f"{t.role}: {t.content}", [t.turn_id], date_str=t.date_str) for t in self.turns]

    def answer(self, question):
        return "Bramble, said the backend"

    def profile(self):
        return {"favourite_flowers": ["tulips", "lilies"], "cat": None}
"""


@pytest.mark.parametrize(
    ("answerer", "judge", "answer"),
    [
        ("", "lexical", "Bramble, said the backend"),
        ("backend", "lexical", "Bramble, said the backend"),
        ("none", "evidence", None),
        ("my_answers:answer", "lexical", "asked on 6:40 pm on 21 April, 2024, knows 5"),
    ],
)
def test_who_answers_is_the_users_choice(project, run, server, answerer, judge, answer):
    project.write("answering.py", ANSWERING)
    project.write(
        "my_answers.py",
        "def answer(request):\n    return f'asked on {request.date}, knows {len(request.memories)}'\n",
    )
    run("--himga-gate=none", answerer=answerer, backend="answering:Memory")

    bramble = by_question(project)[HEDGEHOG]
    assert (bramble["answer"], bramble["judge"]) == (answer, judge)
    assert project.run_json()["answerer"] == (answerer or "backend")
    assert server.asked == []


def test_the_backends_answers_can_be_judged_by_a_model(project, run, server):
    project.write("answering.py", ANSWERING)
    run("--himga-judge=llm", "--himga-gate=none", answerer="", backend="answering:Memory")

    assert by_question(project)[HEDGEHOG]["verdict"] == "correct"
    assert len(server.asked) == 9
    assert all(is_judge(body) for body in server.bodies)


def test_what_the_memory_says_of_its_user_is_shown_to_the_model_that_answers(project, run, server):
    project.write("answering.py", ANSWERING)
    run("--himga-gate=none", backend="answering:Memory")

    profiles = {block(body, "profile") for body in server.bodies if not is_judge(body)}
    assert len(profiles) == 1
    assert "Favourite Flowers: tulips, lilies" in profiles.pop()
    assert by_question(project)[HEDGEHOG]["answer"] != "Bramble, said the backend"


OWN_ANSWERERS = """
import time


class Raises:
    name = "fails"
    def answer(self, request):
        raise RuntimeError("out of paper")


class Hangs:
    def answer(self, request):
        time.sleep(3)


class Async:
    async def answer(self, request):
        return "Bramble" if request.memories else ""


def number(request):
    return 7
"""


@pytest.mark.parametrize(
    ("attribute", "verdict", "reason"),
    [
        ("Raises", "unscored", "the answerer fails raised RuntimeError: out of paper"),
        ("Hangs", "unscored", "the answerer own:Hangs did not come back within 0.2 s (--himga-timeout)"),
        ("number", "unscored", "the answerer own:number returned "),
        ("Async", "correct", "F1 1.00"),
    ],
)
def test_an_answerer_of_ones_own_that_fails_is_an_outage(project, run, attribute, verdict, reason):
    project.write("own.py", OWN_ANSWERERS)
    result = run("-k", "hedgehog", "--himga-timeout=0.2", answerer=f"own:{attribute}")

    record = project.results()[0]
    assert record["verdict"] == verdict
    assert record["reason"].startswith(reason)
    assert record["stage"] == ("answer" if verdict == "unscored" else None)
    assert result.ret == (6 if verdict == "unscored" else 0)


def test_other_agents_and_cold_starts_are_answered_from_what_was_recalled(project, run):
    run("--himga-gate=none", "--himga-types=cross_agent_recall,cold_start_recall", data="demo-memorystress")

    records = project.results()
    assert {record["type"] for record in records} == {"cross_agent_recall", "cold_start_recall"}
    assert {record["verdict"] for record in records} <= {"correct", "wrong"}


# -- when a model fails ------------------------------------------------------------------------------

NO_WAIT = {"Retry_After": "0"}
ANSWER_FAULTS = {
    "an outage": (status(503, {"error": {"message": "resting"}}, **NO_WAIT), "resting", 5),
    "an error behind 200": (body({"error": {"message": "no luck"}}), "no luck", 1),
    "a refusal": (refused("I would rather not."), "rather not", 1),
    "nothing": (text(""), "was empty", 2),
    "half of it": (cut("ANSWER: Bram"), "cut off", 2),
    "no answer behind the marker": (text("I think so. ANSWER:"), "nothing follows its last 'ANSWER:'", 1),
}
JUDGE_FAULTS = {
    "an outage": status(500, {"error": {"message": "resting"}}, **NO_WAIT),
    "a refusal": refused("I would rather not."),
    "another word": text(verdict("INCORRECT")),
    "a bare word": text("CORRECT"),
    "both": text(verdict("CORRECT") + verdict("WRONG")),
    "a third one": text(verdict("PARTIALLY CORRECT")),
    "a thought": text("<think>" + verdict("CORRECT") + "</think>"),
    "half of it": cut(verdict("CORRECT")),
    "a torn object": text(verdict("CORRECT")[:-4]),
}


def asked_with(project, server, acts: dict, *, judge: bool) -> None:
    """A question for each act, which the model that answers (or judges) does; and one without."""
    questions = {f"How many tulips, with {name}?": act for name, act in acts.items()}
    garden = json.loads((project.path / "mini.json").read_text(encoding="utf-8"))[0]
    tulips = {"answer": 12, "evidence": ["D1:1"], "category": 4}
    garden["qa"] = [{"question": text, **tulips} for text in (*questions, "How many tulips?")]
    project.write_data("mini", [garden])

    def reply(body):
        act = questions.get(block(body, "question"))
        return act if act and is_judge(body) == judge else reads_and_compares(body)

    server.reply = reply


def by_fault(project) -> dict[str, dict]:
    """The records by what went wrong, and that of the question with which nothing did."""
    records = {
        text.removeprefix("How many tulips, with ")[:-1]: one for text, one in by_question(project).items()
    }
    assert records.pop("How many tulips")["verdict"] == "correct"
    return records


def test_no_answer_is_unscored_and_says_why(project, run, server):
    asked_with(project, server, {name: act for name, (act, *_) in ANSWER_FAULTS.items()}, judge=False)
    result = run()

    records = by_fault(project)
    assert records.keys() == ANSWER_FAULTS.keys()
    for fault, (_, words, calls) in ANSWER_FAULTS.items():
        record = records[fault]
        assert (record["verdict"], record["stage"]) == ("unscored", "answer")
        assert (record["answer"], record["score"]) == (None, None)
        assert words in record["reason"]
        assert record["usage"]["answer"]["calls"] == calls
        assert "judge" not in record["usage"]
    assert result.ret == 6


def test_what_is_no_verdict_is_unscored_at_the_judge(project, run, server):
    asked_with(project, server, JUDGE_FAULTS, judge=True)
    result = run()

    records = by_fault(project)
    assert records.keys() == JUDGE_FAULTS.keys()
    for record in records.values():
        assert (record["verdict"], record["stage"], record["votes"]) == ("unscored", "judge", ["unscored"])
        assert record["answer"].startswith("Ada: I planted twelve tulips")
        assert record["usage"]["judge"]["calls"] >= 1
    assert result.ret == 6


def test_a_wrong_key_is_told_of_once_and_not_asked_again(project, run, server):
    server.reply = lambda _: status(401, {"error": {"message": "bad key"}})
    result = run()

    assert result.ret == 6
    assert len(server.asked) == 1
    assert {record["verdict"] for record in project.results()} == {"unscored"}
    assert "9 questions unscored (" in result.stdout.str().splitlines()[-1]
    assert "bad key" in result.stdout.str().splitlines()[-1]


def test_a_server_that_is_not_there_is_no_score(project, run, server):
    server.__exit__()
    result = run("-k", "hedgehog", "--himga-timeout=0.05")

    record = project.results()[0]
    assert (record["verdict"], record["stage"]) == ("unscored", "answer")
    assert server.url.removesuffix("/v1") in record["reason"]
    assert result.ret == 6


def test_votes_are_counted_and_their_spread_is_shown(project, run, server):
    votes = {
        HEDGEHOG: ["WRONG", "CORRECT", "CORRECT"],
        "Which ferry sails on Thursdays?": ["WRONG", "CORRECT", "no"],
    }

    def reply(body):
        waiting = votes.get(block(body, "question") or "", [])
        return verdict(waiting.pop()) if waiting and is_judge(body) else reads_and_compares(body)

    server.reply = reply
    result = run("-k", "hedgehog or ferry", "--himga-judge-votes=3")

    hedgehog, ferry = by_question(project)[HEDGEHOG], by_question(project)["Which ferry sails on Thursdays?"]
    assert (hedgehog["verdict"], sorted(hedgehog["votes"])) == ("correct", ["correct", "correct", "wrong"])
    assert hedgehog["reason"] == "2 of 3 votes: by rule"
    assert (ferry["verdict"], sorted(ferry["votes"])) == ("unscored", ["correct", "unscored", "wrong"])
    assert ferry["reason"].startswith("no majority of 3 votes (1 correct, 1 wrong, 1 unscored): ")
    assert "votes       2 of 2 questions with several votes were not unanimous" in result.stdout.str()


def test_a_parameter_that_the_model_does_not_take_is_left_out_and_told(project, run, server):
    def reply(body):
        if "temperature" in body:
            error = {"message": "Unsupported parameter: 'temperature'", "param": "temperature"}
            return status(400, {"error": error})
        return reads_and_compares(body)

    server.reply = reply
    result = run("--himga-model-option=temperature=0", "--himga-gate=none")

    assert result.ret == 0
    assert len(server.asked) == 19
    assert re.search(
        r"^note +small does not take temperature: sent without it$", result.stdout.str(), re.MULTILINE
    )


def test_the_benchmark_prompt_says_when_k_is_not_that_of_published_numbers(run):
    result = run("--himga-answer-profile=benchmark", "--himga-gate=none")

    assert "k 200" in " ".join(result.stdout.str().split("note", 1)[1].split())


# -- a user's own tests ------------------------------------------------------------------------------

OWN_TESTS = """
def test_of_my_own(himga_case, himga_answer, himga_context, himga_judge, himga_verdict):
    assert himga_judge.name == "llm:strict"
    assert himga_verdict.value in ("correct", "wrong")
    assert himga_answer
    assert himga_judge.judge(himga_case, "a walrus", himga_context).value == "wrong"
"""


def test_a_users_own_test_may_ask_the_models_judge_about_any_answer(project, run, server):
    project.write("test_own.py", OWN_TESTS)
    result = run("--himga-gate=none", "--himga-items=off", "-k", "hedgehog")

    result.assert_outcomes(passed=1, deselected=8)
    assert len(server.asked) == 3


def test_an_erratum_with_another_gold_is_judged_twice(project, run, server):
    question = next(key for key in _uids(project) if "hedgehog" in key)
    project.write(
        "errata.json",
        json.dumps(
            {
                "source": "here",
                "question": [{"id": f"garden/{question}", "gold": "Thistle", "reason": "renamed"}],
            }
        ),
    )
    run("-k", "hedgehog", "--himga-errata=errata.json", "--himga-gate=none")

    record = project.results()[0]
    assert (record["verdict"], record["errata"]["verdict"]) == ("wrong", "correct")
    assert record["usage"]["judge"]["calls"] == 2
    assert [block(body, "gold") for body in server.bodies if is_judge(body)] == ["Thistle", "Bramble"]


def _uids(project) -> list[str]:
    lines = project.run("--co", "-q").outlines
    return [line.split("::")[1] for line in lines if line.startswith("himga/")]


def test_silence_where_nothing_is_asked_for(project, run, server):
    """Collecting, and a judge by rule, ask no model."""
    run("--co", "-q")
    result = run("--himga-judge=evidence", "--himga-gate=none", answerer="none")

    assert server.asked == []
    assert "note of no use here: --himga-model, --himga-base-url; no model answers or judges in this run" in (
        " ".join(result.stdout.str().split())
    )
    assert REFUSAL not in json.dumps(project.results())
