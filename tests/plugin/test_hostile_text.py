"""Texts that mean harm, in data, memory and judge: every run ends as it should and no terminal is repainted."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from itertools import pairwise

import pytest

#: Plugins that many have installed and no story here is about; without them a run takes half the time.
WITHOUT_OTHERS = [
    f"-pno:{name}"
    for name in ("asyncio", "anyio", "cov", "syrupy", "rerunfailures", "hypothesispytest", "timeout")
]

#: What a text may hold that ends a run under xdist, repaints a terminal, breaks XML, or looks like an id.
NASTY = {
    "half a pair": "left \ud83d right \udc00",
    "nul": "before\x00after",
    "colours": "\x1b[31mred\x1b[0m \x1b]0;title\x07 \x9b2J",
    "turned around": "\u202etxet desrever\u202c \u2066 \u200f",
    "line ends": "one\r\ntwo\rthree\u2028four\x85five\x0bsix",
    "xml": "</failure> ]]> <![CDATA[ &amp; \ufffe \uffff",
    "an id": "himga/demo-locomo/boat::question [x] @group -- ../..",
    "markup": "[bold]text[/bold] {braces} %s %(name)s ${var}",
    "other scripts": "日本語 العربية ﬁ 🦔 é",
    "blank": " \t\u00a0 \u3000",
}
ALL = " ".join(NASTY.values())

MEMORIES = f"""
from pytest_himga.judge.verdict import Verdict
from pytest_himga.memory import Recalled

ALL = {ALL!r}


class Memory:
    def __init__(self):
        self.turns = []

    def reset(self):
        self.turns = []

    def ingest(self, message, session):
        self.turns.append(message)


class Quotes(Memory):
    version = ALL

    def retrieve(self, query):
        return [Recalled(turn.content, turn_ids=[turn.turn_id]) for turn in self.turns]


class Answers(Memory):
    version = ALL

    def retrieve(self, query):
        return ALL + "x" * len(query)

    def answer(self, question):
        return ALL + question


class Raises(Memory):
    def retrieve(self, query):
        raise RuntimeError(ALL + query)


class Judge:
    name = ALL

    def judge(self, case, answer, context):
        values = ["correct", "wrong", "unscored", "n/a"]
        value = values[len(case.question.question) % 4]
        return Verdict(value, 0.0 if value == "wrong" else 1.0, ALL, votes=(ALL, "x"))
"""


def hostile_records() -> list[dict]:
    """Two conversations in which every text is hostile, and one question of 100,000 letters."""
    records = []
    for sample in ("garden", ALL):
        turns = [
            {"speaker": f"Ada {text}", "dia_id": f"D1:{n}", "text": f"I wrote down {text} number {n}."}
            for n, text in enumerate(NASTY.values(), start=1)
        ]
        questions = [
            {
                "question": f"What of {text}?",
                "answer": f"It is {text}",
                "evidence": [f"D1:{n}"],
                "category": 4,
            }
            for n, text in enumerate(NASTY.values(), start=1)
        ]
        questions.append(
            {"question": f"Trap {ALL}", "adversarial_answer": ALL, "evidence": [], "category": 5}
        )
        questions.append(
            {"question": "q" * 100_000, "answer": "a" * 100_000, "evidence": ["D1:1"], "category": 4}
        )
        conversation = {
            "speaker_a": ALL,
            "session_1_date_time": "9:15 am on 3 March, 2024",
            "session_1": turns,
        }
        records.append({"sample_id": sample, "conversation": conversation, "qa": questions})
    return records


@pytest.fixture
def run(project):
    """Runs the hostile dataset on one of the memories."""
    project.pytester.makeini("[pytest]\npythonpath = .\n")
    project.write_data("hostile", hostile_records())
    (project.path / "mems.py").write_text(MEMORIES, encoding="utf-8", errors="surrogatepass")

    def run(memory: str, *args: str, apart: bool = False) -> pytest.RunResult:
        runner = project.run_apart if apart else project.run
        return runner(*WITHOUT_OTHERS, *args, data="hostile.json", backend=memory)

    run.project = project
    return run


def raw_characters(text: str) -> set[str]:
    """What a terminal would obey rather than show."""
    obeyed = {chr(code) for code in (*range(32), 0x7F, *range(0x80, 0xA0)) if chr(code) not in "\n\t"}
    obeyed |= set("\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c")
    return {character for character in text if character in obeyed or "\ud800" <= character <= "\udfff"}


def is_whole(result: pytest.RunResult, project) -> list[dict]:
    """What holds of every hostile run; its records."""
    text = result.stdout.str() + result.stderr.str()
    assert "INTERNALERROR" not in text
    assert raw_characters(text) == set()
    records = project.results()  # every line is JSON of its own
    assert len(records) == 2 * (len(NASTY) + 2)
    assert len({record["id"] for record in records}) == len(records)
    assert all(record["id"].isascii() for record in records)
    project.run_json()
    return records


MEMORY_RUNS = {
    "full-context": 0,
    "bm25": 1,
    "oracle": 0,
    "mems:Quotes": 0,
    "mems:Answers": 1,
    "mems:Raises": 6,
}


@pytest.mark.parametrize("memory", MEMORY_RUNS)
def test_every_memory_survives_a_hostile_dataset(run, memory):
    result = run(memory, "--junitxml=report.xml")

    records = is_whole(result, run.project)
    verdicts = {record["verdict"] for record in records}
    assert result.ret == MEMORY_RUNS[memory]
    if memory == "oracle":
        scores = [record["score"] for record in records if record["verdict"] != "n/a"]
        assert scores == [1.0] * 2 * (len(NASTY) + 1)
    assert ("unscored" in verdicts) == (memory == "mems:Raises") == (verdicts == {"unscored"})
    tree = ET.parse(run.project.path / "report.xml")
    assert len(tree.findall(".//testcase")) == len(records)


@pytest.mark.parametrize(
    ("memory", "options"),
    [
        ("mems:Answers", ("-vv", "-rA")),
        ("mems:Raises", ("-q", "--tb=line")),
        ("mems:Answers", ("--himga-min-score=0.1", "-rA")),
    ],
)
def test_no_verbosity_lets_a_control_character_through(run, memory, options):
    is_whole(run(memory, *options), run.project)


def test_a_judges_words_are_cleaned_too(run):
    result = run("mems:Quotes", "--himga-judge=mems:Judge", "-rA", "-v", "-n2", apart=True)

    assert result.ret == 1
    records = is_whole(result, run.project)
    assert {record["verdict"] for record in records} == {"correct", "wrong", "unscored", "n/a"}


@pytest.mark.slow
@pytest.mark.parametrize("memory", ["mems:Answers", "mems:Raises"])
def test_workers_can_send_it_and_the_result_is_the_same(run, memory):
    alone = [{**record, "ms": {}, "worker": ""} for record in is_whole(run(memory), run.project)]

    result = run(memory, "-n2", "-v", "--junitxml=report.xml", apart=True)

    together = [{**record, "ms": {}, "worker": ""} for record in is_whole(result, run.project)]
    assert together == alone
    assert result.ret == MEMORY_RUNS[memory]
    assert len(ET.parse(run.project.path / "report.xml").findall(".//testcase")) == len(alone)


def test_a_failure_stays_short_whatever_it_quotes(run):
    result = run("mems:Answers", "-v")

    lines = result.outlines
    start = next(n for n, line in enumerate(lines) if " FAILURES " in line)
    end = next(n for n, line in enumerate(lines) if " himga " in line)
    heads = [n for n in range(start + 1, end) if lines[n][:1] == lines[n][-1:] == "_"]
    assert len(heads) > 10
    for first, following in pairwise([*heads, end]):
        assert following - first - 1 <= 25
        assert max(len(line) for line in lines[first + 1 : following]) <= 100


@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
def test_a_terminal_that_knows_few_letters_is_no_reason_to_crash(run, monkeypatch, encoding):
    monkeypatch.setenv("PYTHONIOENCODING", encoding)
    monkeypatch.setenv("PYTHONUTF8", "0")

    result = run("mems:Answers", "-v", "-rA", apart=True)

    assert result.ret == 1
    assert "Traceback" not in result.stderr.str()
    assert "INTERNALERROR" not in result.stdout.str()
    records = run.project.results()
    assert any("日本語" in record["question"] for record in records)


def test_an_id_of_a_hostile_question_can_be_given_back(run):
    ids = [record["id"] for record in is_whole(run("null"), run.project)]

    result = run("null", *reversed(ids), "--collect-only", "-q")

    assert result.ret == 0
    assert result.outlines[: len(ids)] == ids


def test_a_hostile_file_name_is_quoted(project):
    """Even the name of a dataset can be anything."""
    name = "d\x1b[31m\u202e é"
    (project.path / f"{name}.json").write_text(json.dumps(hostile_records()[:1]), encoding="utf-8")

    result = project.run(*WITHOUT_OTHERS, data=f"{name}.json", backend="null")

    assert raw_characters(result.stdout.str()) == set()
    assert {record["dataset"] for record in project.results()} == {"d-31m"}
