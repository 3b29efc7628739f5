"""Data room: the part of the demo in MemoryStress' format is what the generator writes, and has all of its kinds."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from pytest_himga.data.memorystress import BenchmarkData, generate, load_benchmark, load_memorystress
from pytest_himga.data.opening import open_dataset

DEMO = Path(__file__).resolve().parents[2] / "pytest_himga" / "data" / "demo"
FILE = DEMO / "memorystress.json"

#: The arguments of `generate`, as its README gives them.
MADE = {"seed": 7, "facts": 40, "sessions": 80, "questions": 60}


@pytest.fixture(scope="module")
def demo() -> BenchmarkData:
    return load_benchmark(FILE)


def test_nobody_edits_it_by_hand(tmp_path: Path) -> None:
    """After a change to the generator: `generate(...).save(...)` anew, and the figures in the README."""
    generate(**MADE).save(tmp_path / "anew.json")
    assert FILE.read_bytes() == (tmp_path / "anew.json").read_bytes()
    assert f"generate({', '.join(f'{name}={value}' for name, value in MADE.items())})" in readme()


def test_it_has_all_types_checkpoints_and_patterns(demo: BenchmarkData) -> None:
    assert Counter(question.question_type for question in demo.questions) == {
        "fact_recall": 16,
        "preference_recall": 6,
        "contradiction_resolution": 13,
        "temporal_ordering": 7,
        "cross_agent_recall": 6,
        "cold_start_recall": 3,
        "single_mention_recall": 9,
    }
    assert Counter(question.phase_asked for question in demo.questions) == {1: 8, 2: 22, 3: 20, 4: 10}
    assert {question.agent_scope for question in demo.questions} == {"agent_a", "agent_b"}
    assert {session.agent_id for session in demo.sessions} == {"agent_a", "agent_b"}
    assert sum(question.cold_start for question in demo.questions) == 3
    assert len(demo.contradiction_chains) == 5
    assert FILE.stat().st_size < 150_000


def test_it_loads_without_a_warning() -> None:
    (sample,) = load_memorystress(FILE)  # a warning would be an error here
    assert (sample.sample_id, sample.dataset) == ("main", "memorystress")
    assert all(question.gold and question.evidence.groups for question in sample.qa_pairs)


def test_it_opens_by_its_name_and_nothing_is_mended() -> None:
    demo = open_dataset("demo-memorystress")
    assert demo.family == "memorystress"
    assert demo.warnings == []
    assert {case.question.question_type.value for case in demo.cases()} == set(demo.type_labels)


def test_the_readme_counts_what_is_there(demo: BenchmarkData) -> None:
    turns = sum(len(session.turns) for session in demo.sessions)
    assert f"{len(demo.sessions)} sessions with {turns} turns, {len(demo.questions)} questions" in readme()
    for name, count in Counter(question.question_type for question in demo.questions).items():
        assert re.search(rf"^\| {name} \| {count} \|", readme(), re.MULTILINE), name


def readme() -> str:
    return (DEMO / "README.md").read_text(encoding="utf-8")
