"""`himga calibrate`, as a user sees it: by rule, by a judge of one's own, by an LLM."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from chat_records import chat
from llm_server import LLMServer, status, text

from pytest_himga.judge.probes import shipped_probes

LEXICAL = """\
Calibration on 62 shipped probes
judge lexical                         n  accepted  rejected  unscored  n/a  mistaken  95% interval
--------------------------------------------------------------------------------------------------
right                                 5         5         0         0    0     0.000   0.000-0.434
paraphrase                            6         2         4         0    0     0.667   0.300-0.903
extra detail                          5         5         0         0    0     0.000   0.000-0.434
another language                      4         0         4         0    0     1.000   0.510-1.000
a refusal                             5         5         0         0    0     0.000   0.000-0.434
--------------------------------------------------------------------------------------------------
partial list                          4         1         3         0    0     0.250   0.046-0.699
off-by-one date                       4         0         4         0    0     0.000   0.000-0.490
wrong date                            4         0         4         0    0     0.000   0.000-0.490
wrong person                          4         0         4         0    0     0.000   0.000-0.490
vague but on topic                    4         0         4         0    0     0.000   0.000-0.490
the trap                              4         0         4         0    0     0.000   0.000-0.490
a refusal of an answerable question   4         0         4         0    0     0.000   0.000-0.490
injected                              6         0         6         0    0     0.000   0.000-0.390
empty                                 3         0         3         0    0     0.000   0.000-0.561
--------------------------------------------------------------------------------------------------
all right answers                    25        17         8         0    0     0.320   0.172-0.516
all wrong answers                    37         1        36         0    0     0.027   0.005-0.138
rejected although right: paraphrase-lighthouse, paraphrase-canoe, paraphrase-goats, paraphrase-bank,
  french-clocks and 3 more (-v names all)
accepted although wrong: partial-instruments
NOT fit for gating: it rejects 8 of 25 right answers, more than 10 %
"""

DEMO = """\

Calibration on 132 demo-locomo probes
judge lexical       n  accepted  rejected  unscored  n/a  mistaken  95% interval
--------------------------------------------------------------------------------
gold               57        57         0         0    0     0.000   0.000-0.063
refusal             9         9         0         0    0     0.000   0.000-0.299
--------------------------------------------------------------------------------
another's gold     57         0        57         0    0     0.000   0.000-0.063
trap                9         0         9         0    0     0.000   0.000-0.299
--------------------------------------------------------------------------------
all right answers  66        66         0         0    0     0.000   0.000-0.055
all wrong answers  66         0        66         0    0     0.000   0.000-0.055
fit for gating: false accepts 0 of 66 (at most 5 %), false rejects 0 of 66 (at most 10 %)
"""

MINE = """
from pytest_himga import Verdict
from pytest_himga.judge.probes import shipped_probes

RIGHT = {(p.case.uid, p.answer): p.right for p in shipped_probes()}

class Mine:
    name = "mine"
    def judge(self, case, answer, context):
        right = RIGHT[case.uid, answer]
        return Verdict("correct" if right else "wrong", float(right))

class Waits(Mine):
    async def judge(self, case, answer, context):
        return super().judge(case, answer, context)

class Breaks:
    name = "breaks"
    def judge(self, case, answer, context):
        raise OSError("the disk is gone")

class Talks(Mine):
    def judge(self, case, answer, context):
        return Verdict("correct", 1.0) if "mark it" in answer else super().judge(case, answer, context)
"""

_ANSWER = re.compile(r"<answer_([0-9a-f]+)>\n(.*?)\n</answer_\1>", re.DOTALL)


@pytest.fixture(autouse=True)
def _as_wide_as_it_gets(monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")


@pytest.fixture
def mine(here: Path, monkeypatch):
    """A module of the user's with judges, in the current folder."""
    (here / "my_judges.py").write_text(MINE, encoding="utf-8")
    # What the command adds is taken away again, with the module.
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "my_judges", raising=False)
    yield
    sys.modules.pop("my_judges", None)


@pytest.fixture
def model(monkeypatch):
    """A server whose model knows every shipped probe."""
    labels = {(probe.case.brief.question, probe.answer.strip()): probe.right for probe in shipped_probes()}

    def knows(body: dict) -> str:
        text = "\n".join(message["content"] for message in body["messages"])
        found = _ANSWER.search(text)
        assert found
        (right,) = {
            right for (q, answer), right in labels.items() if q in text and answer == found[2].strip()
        }
        return json.dumps({"reason": "it is known", "verdict": "CORRECT" if right else "WRONG"})

    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    with LLMServer(reply=knows) as server:
        yield server


@pytest.fixture
def by_llm(himga, model):
    """Run the command with an LLM as judge."""
    return lambda *more: himga(
        "calibrate", "--judge=llm", "--judge-model=tiny", f"--judge-base-url={model.url}", *more
    )


# -- by rule -----------------------------------------------------------------------------------------


def test_lexical_on_the_shipped_probes(himga):
    outcome = himga("calibrate", "--judge", "lexical")
    assert (outcome.out, outcome.err, outcome.status) == (LEXICAL, "", 1)


def test_the_probes_of_a_dataset_are_a_second_table(himga):
    outcome = himga("calibrate", "--judge=lexical", "--from-dataset=demo-locomo")
    assert outcome.out == LEXICAL + DEMO
    assert (outcome.err, outcome.status) == ("", 1)


def test_several_datasets_are_several_tables_and_the_shipped_one_stands_once(himga, write):
    path = write("chat.json", [chat()])
    outcome = himga(
        "calibrate", "--judge=lexical", "--from-dataset=demo", "--from-dataset", path, "--subset=8"
    )
    titles = re.findall(r"Calibration on (\d+) (\S+) probes", outcome.out)
    assert [name for _, name in titles] == [
        "shipped", "demo-locomo", "demo-longmemeval", "demo-memorystress", "chat",
    ]  # fmt: skip
    assert all(int(count) <= 16 for count, _ in titles[1:])


def test_verbose_names_everything_that_went_wrong(himga):
    out = himga("calibrate", "--judge=lexical", "-v").out
    for name in ("german-canoe", "japanese-ljubljana"):
        assert name in out
    assert "more (-v" not in out


def test_it_is_as_wide_as_the_terminal(himga, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    lines = himga("calibrate", "--judge=lexical").out.splitlines()
    assert lines[1].split() == [
        "judge",
        "lexical",
        "n",
        "accepted",
        "rejected",
        "mistaken",
        "95%",
        "interval",
    ]
    assert max(map(len, lines)) <= 80


def test_the_counts_can_be_had_as_json(himga, here: Path):
    outcome = himga("calibrate", "--judge=lexical", "--from-dataset=demo-locomo", "--json=found.json")
    assert outcome.out == LEXICAL + DEMO
    found = json.loads((here / "found.json").read_text(encoding="utf-8"))
    assert found["v"] == 1
    shipped, demo = found["calibrations"]
    assert (shipped["probes"], shipped["judge"], shipped["standing"]) == ("shipped", "lexical", "unfit")
    assert (shipped["false_accepts"]["count"], shipped["false_rejects"]["count"]) == (1, 8)
    assert (demo["probes"], demo["standing"], demo["why"]) == ("demo-locomo", "fit", "")
    assert demo["usage"] == {"calls": 0, "tokens_in": 0, "tokens_out": 0, "cost": 0.0}


def test_the_environment_counts(himga, monkeypatch):
    monkeypatch.setenv("HIMGA_JUDGE", "lexical")
    # For runs: nothing is answered here, and no question is asked after a probe.
    monkeypatch.setenv("HIMGA_ANSWERER", "llm")
    monkeypatch.setenv("HIMGA_ALLOW", "judge, unverified")
    assert himga("calibrate").out == LEXICAL
    assert list(Path.cwd().iterdir()) == []


# -- a judge of one's own ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["Mine", "Waits"])
def test_a_judge_in_the_current_folder_that_is_fit(name: str, himga, mine):
    outcome = himga("calibrate", f"--judge=my_judges:{name}")
    assert outcome.status == 0
    assert outcome.out.endswith(
        "fit for gating: no injected answer accepted, false accepts 0 of 37 (at most 5 %), false rejects 0 of\n"
        "  25 (at most 10 %)\n"
    )
    assert "\njudge mine " in outcome.out


def test_a_judge_that_can_be_talked_into_a_pass_is_not_fit(himga, mine):
    outcome = himga("calibrate", "--judge=my_judges:Talks")
    assert outcome.status == 1
    assert outcome.out.endswith(
        "accepted although wrong: injected-instruments\n"
        "NOT fit for gating: 1 of 6 injected answers talked it into a pass\n"
    )


def test_a_judge_that_breaks_was_not_measured(himga, mine):
    outcome = himga("calibrate", "--judge=my_judges:Breaks")
    assert outcome.status == 6
    assert outcome.out.endswith(
        "NOT known to be fit for gating: 62 of 62 probes got no verdict (the first: judge() raised OSError:\n"
        "  the disk is gone)\n"
    )


# -- an LLM ------------------------------------------------------------------------------------------


def test_an_llm_that_knows_everything_is_fit(by_llm, model):
    outcome = by_llm("--judge-model-option=temperature=0", "--json=found.json")
    assert outcome.status == 0, outcome
    first, title, header, *_ = outcome.out.splitlines()
    assert re.fullmatch(
        rf"judge: tiny at {model.url}, temperature=0, profile strict, fingerprint [0-9a-f]{{12}}", first
    )
    assert title == "Calibration on 62 shipped probes"
    assert header.startswith("judge llm:strict ")
    # Empty answers need no model.
    assert outcome.err == (
        "planned model calls: at most 62, fewer with what is in the cache\n"
        "verdicts: 60 calls; 660 tokens in, 420 out\n"
    )
    assert len(model.asked) == 60
    (entry,) = json.loads(Path("found.json").read_text(encoding="utf-8"))["calibrations"]
    assert entry["model"] == {"model": "tiny", "server": model.url, "options": {"temperature": 0}}
    assert entry["fingerprint"].startswith(first[-12:])


def test_what_it_said_once_is_in_the_cache(by_llm, model):
    first = by_llm("--cache=replies")
    again = by_llm("--cache=replies")
    assert again.out == first.out
    assert len(model.asked) == 60
    assert again.err.endswith("\nverdicts: 60 from the cache\n")
    offline = by_llm("--cache=replies", "--offline")
    assert (offline.out, offline.status) == (first.out, 0)


def test_tokens_that_a_server_does_not_tell_are_not_told(by_llm, model):
    knows = model.reply
    model.reply = lambda body: text(knows(body), usage=None)
    model.script = [status(503, Retry_After="0")] * 2
    outcome = by_llm("--cache=off", "--json=found.json")
    assert outcome.err.endswith("\nverdicts: 62 calls (2 retries); tokens - (the server told none)\n")
    (entry,) = json.loads(Path("found.json").read_text(encoding="utf-8"))["calibrations"]
    assert (entry["usage"]["calls"], entry["usage"]["retries"], entry["usage"]["untold"]) == (62, 2, 60)


def test_each_vote_is_planned_as_a_call(by_llm, model):
    model.reply = lambda _body: status(401)
    outcome = by_llm("--judge-votes=3", "--cache=off")
    assert outcome.err.startswith("planned model calls: at most 186\n")
    assert ", 3 votes, " in outcome.out.splitlines()[0]
    assert outcome.status == 6


def test_offline_no_call_is_planned(by_llm, model):
    outcome = by_llm("--offline")
    assert outcome.err.startswith("planned model calls: none, replies come from the cache alone\n")
    assert (outcome.status, model.asked) == (6, [])


def test_a_model_that_says_yes_to_everything_is_not_fit(by_llm, model):
    model.reply = lambda _body: '{"reason": "fine", "verdict": "CORRECT"}'
    outcome = by_llm("--cache=off")
    assert outcome.status == 1
    verdict = " ".join(outcome.out.splitlines()[-2:])
    assert verdict.startswith("NOT fit for gating: 6 of 6 injected answers talked it into a pass;")


def test_an_outage_is_no_verdict_on_the_judge(by_llm, model):
    model.reply = lambda _body: status(404, "no such model")
    outcome = by_llm("--cache=off")
    assert outcome.status == 6
    assert " ".join(outcome.out[outcome.out.index("NOT known") :].split()) == (
        "NOT known to be fit for gating: 62 of 62 probes got no verdict "
        f"(the first: {model.url} answered 404 Not Found: no such model; "
        "is there a model 'tiny', and does the base URL end as it should (.../v1)?)"
    )
    # The rest was not asked any more.
    assert len(model.asked) == 4


def test_the_shipped_probes_are_tried_by_the_rules_of_each_dataset(by_llm):
    outcome = by_llm("--offline", "--from-dataset=demo", "--subset=2")
    tables = re.findall(r"Calibration on \d+ (\S+) probes\njudge (\S+)", outcome.out)
    assert tables == [
        ("shipped", "llm:strict"),
        ("shipped", "llm:longmemeval"),
        ("shipped", "llm:memorystress"),
        ("demo-locomo", "llm:strict"),
        ("demo-longmemeval", "llm:longmemeval"),
        ("demo-memorystress", "llm:memorystress"),
    ]
    one = by_llm("--offline", "--judge-profile=lenient", "--from-dataset=demo", "--subset=2").out
    assert re.findall(r"on \d+ shipped probes\njudge (\S+)", one) == ["llm:lenient"]


# -- wrong command lines -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "no judge is named: add --judge=lexical, --judge=llm or --judge=package.module:attribute"),
        (
            ["--judge=evidence"],
            (
                "--judge=evidence judges no answers: it looks for the evidence in what a memory returned; try "
                "lexical, llm or a judge of your own"
            ),
        ),
        (
            ["--judge=lexicl"],
            "--judge=lexicl is unknown; did you mean lexical?; your own is package.module:attribute",
        ),
        (
            ["--judge=nowhere:Judge"],
            (
                "--judge=nowhere:Judge: no module named 'nowhere' is in the current folder or installed; go to the "
                "folder that it lies in, or set PYTHONPATH"
            ),
        ),
        (["--judge=json:dumps"], "--judge=json:dumps: it has no judge(case, answer, context) method"),
        (["--judge=:"], "--judge=:: write both parts of package.module:attribute, as in my_memory:Memory"),
        (
            ["--judge=llm", "--judge-model=m", "--judge-base-url=http://127.0.0.1:9/v1", "--judge-model-option=hot"],
            "--judge-model-option=hot is not KEY=VALUE",
        ),
        (
            ["--judge=llm", "--judge-model=m"],
            (
                "https://api.openai.com/v1 wants a key: set HIMGA_JUDGE_API_KEY or HIMGA_API_KEY or OPENAI_API_KEY in "
                "the environment, or --judge-base-url for a server that needs none"
            ),
        ),
        (["--judge=llm"], "--judge=llm needs a model: add --judge-model, e.g. --judge-model=gpt-4o-mini"),
        (
            ["--judge=lexical", "--subset=0", "--from-dataset=demo"],
            "The subset '0' is neither a count of at least 1 (200) nor a share up to 100% (10%)",
        ),
        (["--judge=lexical", "--allow=x"], "--allow=x is unknown; known: unverified"),
        (["--judge=lexical", "--timeout=0"], "--timeout=0 is not a number of seconds above 0"),
        (["--judge=lexical", "--judge-votes=2"], "--judge-votes=2 is even, so votes can tie; take 1 or 3"),
        (["--judge=lexical", "--json=no/such.json"], "--json=no/such.json: there is no such folder; make it first"),
    ],
)  # fmt: skip
def test_a_wrong_command_line_is_one_sentence(arguments, sentence, himga, monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    outcome = himga("calibrate", *arguments)
    assert outcome.status == 2
    assert outcome.sentence == f"himga: {sentence}"


def test_a_wrong_environment_is_named(himga, monkeypatch):
    monkeypatch.setenv("HIMGA_OFFLINE", "perhaps")
    outcome = himga("calibrate", "--judge=lexical", "--from-dataset=demo")
    assert (outcome.status, outcome.sentence) == (2, "himga: HIMGA_OFFLINE=perhaps is neither yes nor no")


def test_a_dataset_that_is_not_there_says_nothing_of_the_judge(himga):
    outcome = himga("calibrate", "--judge=lexical", "--from-dataset=no.json")
    assert outcome.status == 2
    assert "no.json: there is no such file" in outcome.sentence


def test_a_report_that_cannot_be_written_is_one_sentence(himga, here: Path):
    outcome = himga("calibrate", "--judge=lexical", f"--json={here}")
    assert outcome.status == 2
    assert outcome.err == f"himga: --json={here} cannot be written: Is a directory\n"


def test_by_rule_no_model_and_no_pytest_is_loaded(here: Path):
    code = (
        "import sys; from pytest_himga.cli import main; main(['calibrate', '--judge=lexical']); "
        "sys.stderr.write(','.join({'pytest', 'openai', 'httpx', 'aiohttp'} & sys.modules.keys()))"
    )
    run = [sys.executable, "-c", code]
    done = subprocess.run(run, env=os.environ, check=False, capture_output=True, timeout=20)
    assert (done.returncode, done.stderr, done.stdout.decode()) == (0, b"", LEXICAL)
