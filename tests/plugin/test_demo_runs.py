"""The demo as a user runs it: a part in each format, between nothing and everything, as README prints it."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
#: What the quick start's summary shows of each part: correct and answerable, and all questions.
PARTS = {
    "demo-locomo": (57, 66),
    "demo-longmemeval": (22, 26),
    "demo-memorystress": (60, 60),
}


def totals(story, name: str) -> dict[str, float | None]:
    return {part: numbers[name] for part, numbers in story.project.run_json()["totals"].items()}


@pytest.mark.parametrize(
    ("backend", "score"), [("oracle", 1.0), ("full-context", 1.0), ("null", 0.0)], ids=lambda value: value
)
def test_the_controls_are_at_the_ends_in_every_format(story, backend, score):
    result = story.run("--himga-gate=none", data="demo", backend=backend)

    assert result.ret == 0
    assert totals(story, "overall") == dict.fromkeys(PARTS, score)
    verdicts = [record["verdict"] for record in story.project.results()]
    # what nobody can find: the unanswerable questions, and nothing else
    assert len(verdicts) == sum(questions for _, questions in PARTS.values())
    assert verdicts.count("n/a") == sum(questions - measured for measured, questions in PARTS.values())
    assert "unscored" not in verdicts
    assert "warning" not in result.stdout.str()


def test_bm25_is_between_them_in_every_format_and_most_types(story):
    result = story.run("--himga-gate=none", data="demo", backend="bm25")

    assert result.ret == 0
    for part, overall in totals(story, "overall").items():
        assert overall is not None
        assert 0.65 < overall < 0.85, part
    verdicts = defaultdict(set)
    for record in story.project.results():
        verdicts[record["dataset"], record["type"]].add(record["verdict"])
    both = {key for key, seen in verdicts.items() if {"correct", "wrong"} <= seen}
    assert {key for key in verdicts if key not in both} == {
        ("demo-locomo", "adversarial"),  # one is answerable
        ("demo-memorystress", "cold_start_recall"),
        ("demo-memorystress", "single_mention_recall"),
    }


def test_readme_shows_what_its_first_command_prints(story):
    (options,) = re.findall(r"^pip install -e \. && pytest examples/quickstart (.+)$", README, re.MULTILINE)
    quickstart = README[: README.index("## Your own memory")]
    shown = re.findall(r"```text\n(.+?)```", quickstart, re.DOTALL)
    story.project.pytester.makeini((ROOT / "examples/quickstart/pytest.ini").read_text(encoding="utf-8"))
    given = dict(option.split("=") for option in options.split())
    assert set(given) == {"--himga-dataset", "--himga-backend"}

    result = story.run(data=given["--himga-dataset"], backend=given["--himga-backend"])

    assert result.ret == 0
    assert len(shown) == 2
    for block in shown:
        assert block in result.stdout.str()
    asked = [questions for _, questions in PARTS.values()]
    (told,) = re.findall(
        r"asks (\d+) questions .+: (\d+) in\s.+?, (\d+) in .+?, (\d+) in ", quickstart, re.DOTALL
    )
    assert [int(number) for number in told] == [sum(asked), *asked]
