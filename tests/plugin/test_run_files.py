"""What a run leaves in .himga: results.jsonl, run.json, and nothing where it cannot be written."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import subprocess
import sys
from collections import Counter

import pytest

from pytest_himga import __version__
from pytest_himga.report.run_folder import RunFolder

# The formats of version 1, spelled out here and not taken from the code under test.
RESULT_FIELDS = """
    v id dataset sample uid type expects_abstention verdict score reason judge votes outcome question gold trap
    answer abstention evidence found recalled context context_chars context_tokens k stage ms usage cached worker
    errata
"""
RUN_FIELDS = """
    v run plugin python datasets backend k answerer judge profiles models judge_probe settings totals gates exit
"""


def runs(story) -> list:
    """The folders of all runs, oldest first."""
    return sorted((story.path / ".himga" / "runs").iterdir())


# -- results.jsonl ------------------------------------------------------------------------------------


def test_each_line_has_every_field_in_its_order(story):
    story.memory_does(ferry="miss", hedgehog="raise")
    story.run("--himga-min-score=0.5")
    for record in story.project.results():
        assert list(record) == RESULT_FIELDS.split()
        assert record["v"] == 1
        assert record["id"] == f"himga/{record['dataset']}/{record['sample']}::{record['uid']}"


def test_a_correct_question(story):
    story.run()
    record = story.project.results()[2]
    (folder,) = runs(story)
    context = RunFolder(story.path, folder.name).read_context(record["context"])
    assert hashlib.sha256(context.encode()).hexdigest() == record["context"]
    assert context.startswith(
        "Ada: I planted twelve tulips beside the old pump this morning.\nBen: My hedgehog "
    )
    assert record.pop("ms").keys() == {"ingest", "retrieve", "judge"}
    assert record == {
        "v": 1,
        "id": story.COLOUR,
        "dataset": "mini",
        "sample": "garden",
        "uid": "which-colour-were-the-tulips-beside-the--0cdbc0",
        "type": "multi_hop",
        "expects_abstention": False,
        "verdict": "correct",
        "score": 1.0,
        "reason": "2 of 2 evidence turns in the context",
        "judge": "evidence",
        "votes": [],
        "outcome": "passed",
        "question": "Which colour were the tulips beside the pump?",
        "gold": "purple",
        "trap": None,
        "answer": None,
        "abstention": None,
        "evidence": ["D1:1", "D2:1"],
        "found": ["D1:1", "D2:1"],
        "recalled": [
            {"turns": [ref], "sessions": [], "score": None}
            for ref in ("D1:1", "D1:2", "D1:3", "D2:1", "D2:2")
        ],
        "context": record["context"],
        "context_chars": len(context),
        "context_tokens": len(context) // 4,
        "k": 10,
        "stage": None,
        "usage": {},
        "cached": [],
        "worker": "main",
        "errata": None,
    }


def test_questions_that_are_missed_unscored_and_n_a(story):
    story.memory_does(ferry="miss", hedgehog="raise")
    story.run("--himga-gate=none", "--himga-max-unscored=1")
    by_id = {record["id"]: record for record in story.project.results()}
    fields = ("verdict", "score", "outcome", "stage", "found", "recalled", "context_chars", "trap", "gold")

    def told(nodeid):
        return tuple(by_id[nodeid][field] for field in fields)

    assert told(story.FERRY) == ("wrong", 0.0, "missed", None, [], [], 0, None, "Marigold")
    assert told(story.HEDGEHOG) == ("unscored", None, "unscored", "retrieve", [], None, None, None, "Bramble")
    verdict, score, outcome, *_, trap, gold = told(story.CAT)
    assert (verdict, score, outcome, trap, gold) == ("n/a", None, "skipped", "Bramble", None)
    assert by_id[story.CAT]["expects_abstention"] is True
    assert by_id[story.SAILOR]["gold"] == "Perhaps; he is patient"
    assert "the store is offline" in by_id[story.HEDGEHOG]["reason"]


def test_what_a_memory_spends_is_booked_by_stage(story):
    story.project.write(
        "spending.py",
        "from pytest_himga import Usage\nfrom mem import Answering\n\nclass Spending(Answering):\n"
        "    spent = Usage()\n"
        "    def ingest(self, message):\n        self.spent += Usage(calls=1, tokens_in=10)\n"
        "        super().ingest(message)\n"
        "    def retrieve(self, query):\n        self.spent += Usage(calls=1, tokens_in=3)\n"
        "        return super().retrieve(query)\n"
        "    def answer(self, question):\n        self.spent += Usage(calls=2, tokens_out=5, cost=0.5)\n"
        "        return super().answer(question)\n"
        "    def usage(self):\n        return self.spent\n",
    )
    story.run("--himga-gate=none", backend="spending:Spending")
    for record in story.project.results():
        assert record["ms"].keys() == {"ingest", "retrieve", "answer", "judge"}
        turns = {"garden": 5, "harbour": 2}[record["sample"]]
        spent = {
            stage: (u["calls"], u["tokens_in"], u["tokens_out"], u["cost"])
            for stage, u in record["usage"].items()
        }
        assert spent["ingest"] == (turns, 10 * turns, 0, 0)
        assert spent["retrieve"] == (1, 3, 0, 0)
        assert spent["answer"] == (2, 0, 5, 0.5)


def test_lines_come_in_the_order_of_the_dataset_however_the_items_ran(story):
    story.project.write("conftest.py", "def pytest_collection_modifyitems(items):\n    items.reverse()\n")
    story.run(data="mini.json,other=mini.json")
    assert [record["dataset"] for record in story.project.results()] == ["mini"] * 9 + ["other"] * 9
    first = [record["question"] for record in story.project.results()][:9]
    samples = json.loads((story.path / "mini.json").read_text(encoding="utf-8"))
    assert first == [qa["question"] for sample in samples for qa in sample["qa"]]


def test_a_partial_run_keeps_only_what_it_asked(story):
    story.run("-k", "harbour")
    assert {record["sample"] for record in story.project.results()} == {"harbour"}
    assert story.project.run_json()["datasets"][0]["items"] == 4


# -- run.json -----------------------------------------------------------------------------------------


def test_run_json_tells_what_was_run(story):
    story.memory_does(ferry="miss")
    options = [
        "--himga-top-k=7",
        "--himga-timeout=30",
        "--himga-types=single-hop,temporal",
        "--himga-samples=harbour,garden",
    ]
    result = story.run(*options, "--himga-min-score=0.8", "--himga-max-unscored=1%")
    run = story.project.run_json()
    (folder,) = runs(story)
    assert list(run) == RUN_FIELDS.split()
    assert run["run"] == folder.name
    assert re.fullmatch(r"\d{8}T\d{6}Z-[0-9a-f]{4}", run["run"])
    assert (run["v"], run["plugin"], run["python"]) == (1, __version__, platform.python_version())
    assert run["datasets"] == [
        {
            "name": "mini",
            "family": "locomo",
            "sha256": hashlib.sha256((story.path / "mini.json").read_bytes()).hexdigest(),
            "labels": "locomo",
            "errata": None,
            "session_order": None,
            "unverified": None,
            "selection": {
                "samples": ["harbour", "garden"],
                "types": ["single-hop", "temporal"],
                "subset": None,
            },
            "items": 6,
        }
    ]
    assert run["backend"] == {"name": "mem:Memory", "version": "7", "options": {}}
    assert (run["k"], run["answerer"], run["judge"]) == (7, "none", "evidence")
    assert (run["profiles"], run["models"]) == ({}, {})
    assert run["settings"]["timeout"] == 30
    assert run["settings"]["gate"] == ["score"]
    assert run["settings"]["min_score"] == ["0.8"]
    assert run["settings"]["max_unscored"] == "1%"
    assert run["gates"] == [
        {
            "gate": "score",
            "dataset": "mini",
            "name": "overall",
            "threshold": 0.8,
            "value": 5 / 6,
            "n": 6,
            "status": "passed",
            "text": "overall 0.8333 is at least 0.8 (5 of 6)",
        }
    ]
    assert run["exit"] == result.ret == 0
    assert str(story.path) not in json.dumps(run)


def test_the_totals_are_those_of_the_printed_table(story):
    story.memory_does(ferry="miss", hedgehog="raise")
    result = story.run()
    totals = story.project.run_json()["totals"]["mini"]
    printed = {}
    for line in result.outlines:
        words = line.split()
        if re.match(r"(\d \w+|overall|abstention|all) +\d+ +[\d-]+ +[\d.-]+ ", line):
            name, _, _, score = words[words[0].isdigit() :][:4]
            printed[name] = None if score == "-" else score
        elif line.startswith(("  recall", "  hit", "  nDCG")):
            for k, figure in zip((1, 3, 5, 10), words[1:], strict=True):
                printed[f"{words[0].lower()}@{k}"] = figure
        elif line.startswith("  MRR"):
            printed["mrr"] = words[1]
    assert len(printed) == 4 + 3 + 12 + 1
    for name, figure in printed.items():
        assert (name, figure) == (name, None if totals[name] is None else f"{totals[name]:.4f}")
    counts = Counter(record["verdict"] for record in story.project.results())
    assert totals["all"] == counts["correct"] / (counts["correct"] + counts["wrong"])
    assert {"f1": None, "adversarial": None, "false-refusal": None}.items() <= totals.items()


def test_totals_can_be_worked_out_again_from_the_results(story):
    story.memory_does(ferry="miss")
    story.run("--himga-gate=none")
    totals = story.project.run_json()["totals"]["mini"]
    answerable = [r for r in story.project.results() if not r["expects_abstention"]]
    scored = [r for r in answerable if r["verdict"] in ("correct", "wrong")]
    assert totals["overall"] == sum(r["verdict"] == "correct" for r in scored) / len(scored)
    assert totals["mean-score"] == pytest.approx(sum(r["score"] for r in scored) / len(scored))
    shares = []
    for r in scored:
        seen = {ref for one in r["recalled"][:3] for ref in one["turns"]}
        shares.append(sum(ref in seen for ref in r["evidence"]) / len(r["evidence"]))
    assert totals["recall@3"] == pytest.approx(sum(shares) / len(shares))
    chars = [r["context_chars"] for r in story.project.results()]
    assert totals["context-tokens"] == pytest.approx(sum(chars) / len(chars) / 4)


# -- the folder ---------------------------------------------------------------------------------------


def test_the_folder_hides_itself_from_git(story):
    story.run()
    assert (story.path / ".himga" / ".gitignore").read_text(encoding="utf-8").split() == ["*"]
    assert {p.name for p in runs(story)[0].iterdir()} == {"run.json", "results.jsonl", "contexts"}


@pytest.mark.parametrize(("actions", "status"), [({}, 0), ({"ferry": "miss"}, 1), ({"ferry": "raise"}, 6)])
def test_where_nothing_can_be_written_the_run_goes_on_with_one_note(story, actions, status):
    story.memory_does(**actions)
    (story.path / ".himga").write_text("I was here first", encoding="utf-8")
    result = story.run()
    assert result.ret == status
    text = " ".join(result.stdout.str().split())
    assert text.count("cannot be written") == 1
    assert "note " in text
    assert "results and contexts are not kept" in text
    assert (story.path / ".himga").read_text(encoding="utf-8") == "I was here first"
    assert "INTERNALERROR" not in text


def test_the_newest_twenty_runs_are_kept(story):
    story.run()
    (newest,) = runs(story)
    for n in range(25):
        old = newest.with_name(f"20200101T0000{n:02}Z-00aa")
        old.mkdir()
        (old / "run.json").write_text("{}", encoding="utf-8")
    (newest.parent / "my notes").mkdir()
    story.run()
    names = [folder.name for folder in runs(story)]
    assert "my notes" in names
    kept = [name for name in names if name != "my notes"]
    assert len(kept) == 20
    assert newest.name in kept
    assert kept[0] == "20200101T000007Z-00aa"


def test_two_runs_at_once_do_not_disturb_each_other(story):
    story.memory_does(ferry="miss")
    command = [sys.executable, "-m", "pytest", "-p", "pytest_himga.plugin", "-p", "no:cacheprovider"]
    ours = ["--himga-dataset=mini.json", "--himga-backend=mem:Memory"]
    both = [
        subprocess.Popen(
            [*command, *ours, extra],
            cwd=story.path,
            env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        for extra in ("--himga-gate=none", "--himga-gate=verdict")
    ]
    said = [one.communicate(timeout=60)[0].decode("utf-8", "replace") for one in both]
    assert [one.returncode for one in both] == [0, 1], said
    folders = runs(story)
    assert len(folders) == 2
    exits = [json.loads((f / "run.json").read_text(encoding="utf-8"))["exit"] for f in folders]
    assert sorted(exits) == [0, 1]
    for folder in folders:
        assert len((folder / "results.jsonl").read_text(encoding="utf-8").splitlines()) == 9
        assert [p.name for p in folder.rglob("*.tmp")] == []
