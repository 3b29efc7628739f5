"""The files of MemoryStress' own generator: every figure that is known of them. Skipped where they are not."""

from __future__ import annotations

import json
import os
import warnings
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_himga.data.memorystress import BenchmarkData, load_benchmark, load_memorystress
from pytest_himga.errors import DatasetWarning
from pytest_himga.memory.boundary import History

if TYPE_CHECKING:
    from pytest_himga.data import Sample

FOLDER = Path(os.environ.get("HIMGA_TEST_DATA") or Path(__file__).parents[3] / "shared" / "data")


def real(name: str) -> Path:
    path = FOLDER / name
    if not path.is_file():
        pytest.skip(f"needs MemoryStress' generated {name} in {FOLDER} (or $HIMGA_TEST_DATA)")
    return path


@pytest.fixture(scope="module")
def small() -> BenchmarkData:
    """The small file: 50 sessions."""
    return load_benchmark(real("memorystress_small.json"))


@pytest.fixture(scope="module")
def full() -> BenchmarkData:
    """The file of the published size."""
    return load_benchmark(real("memorystress_full.json"))


@pytest.fixture(scope="module")
def sample() -> Sample:
    """The full file as the runner reads it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DatasetWarning)
        (one,) = load_memorystress(real("memorystress_full.json"))
    return one


def said_of(name: str) -> list[str]:
    path = real(name)
    with pytest.warns(DatasetWarning) as caught:
        load_memorystress(path)
    assert {str(warning.message).partition("'main': ")[0] for warning in caught} == {f"{path}: sample "}
    return [str(warning.message).partition("'main': ")[2] for warning in caught]


def turns(data: BenchmarkData) -> list[str]:
    return [turn["content"] for session in data.sessions for turn in session.turns]


# -- the container -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["memorystress_small.json", "memorystress_full.json"])
def test_a_file_comes_through_unchanged(name: str, tmp_path: Path) -> None:
    data = load_benchmark(real(name))
    assert data.to_dict() == json.loads(real(name).read_text(encoding="utf-8"))
    data.save(tmp_path / "again.json.gz")
    assert load_benchmark(tmp_path / "again.json.gz") == data


def test_the_sizes_are_those_of_the_generator(small: BenchmarkData, full: BenchmarkData) -> None:
    assert [len(part) for part in (small.facts, small.sessions, small.questions, small.contradiction_chains)] == [
        30, 50, 20, 5,
    ]  # fmt: skip
    assert [len(part) for part in (full.facts, full.sessions, full.questions, full.contradiction_chains)] == [
        600, 1000, 300, 40,
    ]  # fmt: skip
    assert Counter(session.phase for session in full.sessions) == {1: 100, 2: 400, 3: 500}
    assert list(full.phases) == ["1", "2", "3"]
    assert [session.session_index for session in full.sessions] == list(range(1000))
    assert sum(not session.planted_fact_ids for session in full.sessions) == 555
    assert (full.sessions[0].session_id, full.sessions[-1].simulated_date) == ("S0001", "2024-10-26T16:48:00")
    assert all(
        fact.recoverable and fact.tags == [] and len(fact.mention_sessions) == 1 for fact in full.facts
    )


def test_no_update_of_a_chain_is_planted(full: BenchmarkData) -> None:
    later = [version for chain in full.contradiction_chains for version in chain.versions[1:]]
    everything = turns(full)
    assert len(later) == 48
    assert {version["session_id"] for version in later} == {""}
    assert {"simulated_date" in version for version in later} == {False}
    assert sum(not any(version["content"] in turn for turn in everything) for version in later) == 40
    assert Counter(chain.pattern for chain in full.contradiction_chains)["fact_update_revert"] == 8


def test_what_does_not_add_up_is_said() -> None:
    assert said_of("memorystress_full.json") == [
        "3 facts never planted (F534, F577, F582); such a fact is no evidence of any question",
        (
            "48 chain versions never planted (C001 version 2, C002 version 2, C003 version 2, C004 version 2, "
            "C005 version 2 and 43 more); the text of 40 of them stands in no session"
        ),
        (
            "37 questions whose answer is not the chain's final_ground_truth "
            "(Q053, Q060, Q061, Q073, Q079 and 32 more); the answer is what is scored"
        ),
        (
            "14 questions of type cross_agent_recall from the agent that was told the answer "
            "(Q057, Q069, Q086, Q113, Q115 and 9 more); such a question does not cross agents"
        ),
    ]
    assert said_of("memorystress_small.json") == [
        (
            "7 chain versions never planted (C001 version 2, C002 version 2, C003 version 2, C004 version 2, "
            "C004 version 3 and 2 more); the text of 5 of them stands in no session"
        ),
        (
            "2 questions whose answer is not the chain's final_ground_truth (Q012, Q015); "
            "the answer is what is scored"
        ),
        (
            "1 question of type cross_agent_recall from the agent that was told the answer (Q006); "
            "such a question does not cross agents"
        ),
    ]


# -- the sample --------------------------------------------------------------------------------------


def test_nothing_of_the_history_is_lost(sample: Sample, full: BenchmarkData) -> None:
    assert [session.session_id for session in sample.sessions] == [one.session_id for one in full.sessions]
    assert [message.content for session in sample.sessions for message in session.messages] == turns(full)
    assert {message.role for session in sample.sessions for message in session.messages} == {
        "user",
        "assistant",
    }
    assert [session.date_str for session in sample.sessions] == [one.simulated_date for one in full.sessions]
    assert {session.agent_id for session in sample.sessions} == {"agent_a", "agent_b"}


def test_nothing_of_the_questions_is_lost(sample: Sample, full: BenchmarkData) -> None:
    assert [pair.question_id for pair in sample.qa_pairs] == [f"Q{n:03}" for n in range(1, 301)]
    assert [pair.raw for pair in sample.qa_pairs] == [question.to_dict() for question in full.questions]
    assert [(pair.answer, pair.gold) for pair in sample.qa_pairs] == [
        (one.answer,) * 2 for one in full.questions
    ]
    assert Counter(pair.question_type.value for pair in sample.qa_pairs) == {
        "fact_recall": 78,
        "contradiction_resolution": 50,
        "single_mention_recall": 47,
        "preference_recall": 41,
        "temporal_ordering": 36,
        "cross_agent_recall": 28,
        "cold_start_recall": 20,
    }


def test_repeated_questions_stay_apart(sample: Sample) -> None:
    texts = Counter(pair.question for pair in sample.qa_pairs)
    assert sum(times - 1 for times in texts.values()) == 83
    assert len({(pair.question, pair.question_type) for pair in sample.qa_pairs}) == 300 - 34
    assert len({pair.uid for pair in sample.qa_pairs}) == 300


def test_a_questions_history_is_the_sessions_of_the_phases_up_to_its_own(
    sample: Sample, full: BenchmarkData
) -> None:
    assert Counter(question.phase_asked for question in full.questions) == {1: 51, 2: 99, 3: 99, 4: 51}
    for pair, question in zip(sample.qa_pairs, full.questions, strict=True):
        heard = [session.session_id for session in sample.sessions[: pair.asked_after]]
        assert heard == [one.session_id for one in full.sessions if one.phase <= question.phase_asked]
    assert Counter(pair.asked_after for pair in sample.qa_pairs) == {100: 51, 500: 99, 1000: 99 + 51}


def test_the_evidence_is_the_turn_that_says_it(sample: Sample, full: BenchmarkData) -> None:
    facts = {fact.fact_id: fact for fact in full.facts}
    heard = {
        message.turn_id: (number, message.content)
        for number, session in enumerate(History.of(sample).sessions())
        for message in session.messages
    }
    for pair, question in zip(sample.qa_pairs, full.questions, strict=True):
        (fact,) = (facts[one] for one in question.target_fact_ids)
        if question.question_id in {"Q044", "Q236"}:  # their fact stands in no turn
            assert pair.evidence.groups == []
            continue
        ((turn_id, session_id),) = pair.evidence.groups
        number, content = heard[turn_id]
        assert content.endswith(fact.content)
        assert sample.sessions[number].session_id == session_id == fact.session_planted
        assert number < (pair.asked_after or 0)
        assert pair.evidence.session_ids == [session_id]


def test_who_asks_is_told_and_agents_are_often_crossed_by_accident(
    sample: Sample, full: BenchmarkData
) -> None:
    told = {session.session_id: session.agent_id for session in full.sessions}
    planted = {fact.fact_id: told[fact.session_planted] for fact in full.facts}
    crossing = [pair for pair in sample.qa_pairs if pair.cross_agent]
    assert {pair.as_agent for pair in crossing} == {"agent_b"}
    assert {pair.as_agent for pair in sample.qa_pairs if not pair.cross_agent} == {"agent_a"}
    assert len(crossing) == 28
    assert sum(planted[pair.raw["target_fact_ids"][0]] == pair.as_agent for pair in crossing) == 14
    assert sum(planted[pair.raw["target_fact_ids"][0]] != pair.as_agent for pair in sample.qa_pairs) == 136


def test_the_facets_are_those_of_the_dimensions(sample: Sample) -> None:
    ages = [pair.facets["age"] for pair in sample.qa_pairs]
    assert (min(ages), max(ages), ages.count(1000)) == (1, 1000, 2)
    cold = [pair for pair in sample.qa_pairs if pair.cold_start]
    assert {pair.question_type.value for pair in cold} == {"cold_start_recall"}
    assert len(cold) == sum(pair.facets["cold_start"] for pair in sample.qa_pairs) == 20
    assert sum(pair.facets["cross_agent"] for pair in sample.qa_pairs) == 28
    assert all(pair.recoverable for pair in sample.qa_pairs)


def test_nothing_but_turns_and_dates_crosses_the_boundary(sample: Sample, full: BenchmarkData) -> None:
    said = {(turn["role"], turn["content"]) for session in full.sessions for turn in session.turns}
    dates = {session.simulated_date for session in full.sessions}
    for number, session in enumerate(History.of(sample).sessions(), start=1):
        assert (session.session_id, session.title, session.agent_id) == (f"s{number}", None, None)
        assert session.date_str in dates
        for turn, message in enumerate(session.messages, start=1):
            assert (message.role, message.content) in said
            assert (message.turn_id, message.date_str) == (f"D{number}:{turn}", session.date_str)
