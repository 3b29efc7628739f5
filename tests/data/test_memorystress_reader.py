"""MemoryStress as the runner reads it: checkpoints, evidence, and what a memory never hears."""

from __future__ import annotations

import gzip
import json
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest
from memorystress_parts import BEES, PETREL, Record, benchmark, question, session

from pytest_himga.data import Case, EvidenceRef, Message, QAPair, QuestionType, Sample, Session
from pytest_himga.data.identity import uid_of
from pytest_himga.data.memorystress import load_memorystress
from pytest_himga.data.memorystress.reader import MEMORYSTRESS, TYPES
from pytest_himga.errors import DatasetError, DatasetWarning
from pytest_himga.memory.boundary import History

Write = Callable[..., Path]


@pytest.fixture
def stress() -> Record:
    """A benchmark without a defect."""
    return benchmark()


def load(path: Path) -> tuple[list[Sample], list[str]]:
    """The samples, and what was said of them."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        samples = load_memorystress(path)
    assert all(issubclass(warning.category, DatasetWarning) for warning in caught)
    return samples, [str(warning.message) for warning in caught]


def only(path: Path) -> Sample:
    """The one sample of a file that has no defect."""
    (sample,), said = load(path)
    assert said == []
    return sample


def pairs(sample: Sample) -> dict[str, QAPair]:
    return {pair.question_id: pair for pair in sample.qa_pairs}


# -- a good benchmark --------------------------------------------------------------------------------


def test_a_good_benchmark_is_one_sample(stress: Record, write: Write) -> None:
    sample = only(write(stress))
    assert (sample.sample_id, sample.dataset) == ("main", "memorystress")
    assert sample.sessions[1] == Session(
        "S2",
        [
            Message("user", "Good morning to you.", date_str="2024-01-02T09:30:00"),
            Message("assistant", "Hello!", date_str="2024-01-02T09:30:00"),
            Message("user", f"{PETREL}, you know.", date_str="2024-01-02T09:30:00"),
            Message("assistant", "I see.", date_str="2024-01-02T09:30:00"),
        ],
        date_str="2024-01-02T09:30:00",
        title="topic-of-2",
        agent_id="agent_b",
    )
    assert sample.qa_pairs[1] == QAPair(
        "Q2",
        "What is the boat called?",
        "Heron",
        QuestionType.CONTRADICTION_RESOLUTION,
        EvidenceRef(session_ids=["S2", "S4"], groups=[["D2:3", "S2"], ["D4:1", "S4"]]),
        stress["questions"][1],
        gold="Heron",
        uid=uid_of("What is the boat called?", "contradiction_resolution", 0),
        asked_after=4,
        as_agent="agent_b",
        facets={"age": 0, "checkpoint": 3, "cross_agent": False, "cold_start": False},
    )
    assert sample.raw == {name: stress[name] for name in ("facts", "contradiction_chains")}


def test_a_path_as_text_and_a_compressed_file_do_too(stress: Record, write: Write, tmp_path: Path) -> None:
    path = write(stress)
    packed = tmp_path / "stress.json.gz"
    packed.write_bytes(gzip.compress(json.dumps(stress).encode()))
    assert load_memorystress(str(path)) == load_memorystress(path) == load_memorystress(packed)


def test_a_file_without_chains_will_do(stress: Record, write: Write) -> None:
    del stress["contradiction_chains"], stress["questions"][1]["target_chain_id"]
    del stress["facts"][1]["contradiction_chain"]
    assert pairs(only(write(stress)))["Q2"].evidence.groups == [["D2:3", "S2"]]


def test_the_family_is_told_by_what_every_file_has(stress: Record) -> None:
    assert stress.keys() >= MEMORYSTRESS.keys
    assert list(MEMORYSTRESS.type_labels("locomo")) == list(TYPES)
    assert len(TYPES) == 7


# -- checkpoints -------------------------------------------------------------------------------------


def test_sessions_come_by_phase_and_then_by_index(stress: Record, write: Write) -> None:
    stress["sessions"].reverse()
    assert [one.session_id for one in only(write(stress)).sessions] == ["S1", "S2", "S3", "S4"]
    for one in stress["sessions"]:
        one["session_index"] = 0  # then the file's order decides inside a phase
    assert [one.session_id for one in only(write(stress)).sessions] == ["S1", "S3", "S2", "S4"]


def test_a_question_is_asked_after_the_sessions_of_the_phases_up_to_its_own(
    stress: Record, write: Write
) -> None:
    sample = only(write(stress))
    assert [(one.question_id, one.asked_after) for one in sample.qa_pairs] == [
        ("Q1", 1), ("Q2", 4), ("Q3", 3), ("Q4", 4),
    ]  # fmt: skip
    case = Case.of("stress", "main", sample, pairs(sample)["Q3"])
    assert [one.session_id for one in case.history] == ["S1", "S2", "S3"]
    assert case.date_str == "2024-01-03T09:30:00"


def test_a_session_without_turns_is_left_out_and_not_counted(stress: Record, write: Write) -> None:
    stress["sessions"].insert(1, session(9, 1, "agent_a", [], session_index=1))
    path = write(stress)
    (sample,), said = load(path)
    assert [one.session_id for one in sample.sessions] == ["S1", "S2", "S3", "S4"]
    assert [one.asked_after for one in sample.qa_pairs] == [1, 4, 3, 4]
    assert said == [f"{path}: sample 'main': 1 session without turns (S9); left out"]


# -- questions ---------------------------------------------------------------------------------------


def test_who_asks_and_how_is_told(stress: Record, write: Write) -> None:
    found = pairs(only(write(stress)))
    assert {name: (one.as_agent, one.cross_agent, one.cold_start) for name, one in found.items()} == {
        "Q1": ("agent_a", False, False),
        "Q2": ("agent_b", False, False),
        "Q3": ("agent_b", True, False),
        "Q4": ("agent_b", False, True),
    }
    assert [found[name].facets for name in ("Q1", "Q3", "Q4")] == [
        {"age": 1, "checkpoint": 1, "cross_agent": False, "cold_start": False},
        {"age": 0, "checkpoint": 2, "cross_agent": True, "cold_start": False},
        {"age": 0, "checkpoint": 4, "cross_agent": False, "cold_start": True},
    ]


def test_a_cold_start_is_what_the_flag_says_and_not_the_type(stress: Record, write: Write) -> None:
    stress["questions"][0]["cold_start"] = True
    stress["questions"][3]["cold_start"] = False
    path = write(stress)
    (sample,), said = load(path)
    assert [one.cold_start for one in sample.qa_pairs] == [True, False, False, False]
    assert said == [
        (
            f"{path}: sample 'main': 1 question of type cold_start_recall without cold_start (Q4); "
            "the running instance is asked"
        )
    ]


@pytest.mark.parametrize("answer", ["Heron", " Heron ", "Heron; then Egret", 3, 1.5])
def test_the_answer_is_the_gold_literally_and_as_text(answer: object, stress: Record, write: Write) -> None:
    stress["questions"][0]["answer"] = answer
    pair = only(write(stress)).qa_pairs[0]
    assert (pair.answer, pair.gold, pair.raw["answer"]) == (str(answer), str(answer), answer)


def test_a_question_without_an_answer_is_kept_aloud(stress: Record, write: Write) -> None:
    del stress["questions"][0]["answer"]
    path = write(stress)
    (sample,), said = load(path)
    assert sample.qa_pairs[0].answer == ""
    assert said == [f"{path}: sample 'main': 1 question without an answer (Q1); only retrieval can be scored"]


def test_types_are_read_by_name_with_hyphens_too(stress: Record, write: Write) -> None:
    one = stress["questions"][0]
    spelled = [*TYPES, *(name.replace("_", "-") for name in TYPES)]
    stress["questions"] = [one | {"question_type": name, "cold_start": True} for name in spelled]
    (sample,), _ = load(write(stress))
    assert [pair.question_type.value for pair in sample.qa_pairs] == [*TYPES, *TYPES]
    assert [pair.uid for pair in sample.qa_pairs] == [uid_of(one["question"], name, 0) for name in spelled]


def test_an_unknown_type_is_fact_recall_aloud(stress: Record, write: Write) -> None:
    stress["questions"][0]["question_type"] = "gossip"
    path = write(stress)
    (sample,), said = load(path)
    pair = sample.qa_pairs[0]
    assert (pair.question_type, pair.uid) == (QuestionType.FACT_RECALL, uid_of(pair.question, "gossip", 0))
    assert said == [
        f"{path}: sample 'main': 1 question of an unknown question_type (Q1); read as fact_recall"
    ]


def test_twins_stay_two(stress: Record, write: Write) -> None:
    one = stress["questions"][0]
    other = one | {"question_type": "preference_recall"}
    stress["questions"] = [one, other, one | {"question_id": "Q2"}, one | {"question_id": "Q3"}]
    (sample,), _ = load(write(stress))
    assert [pair.uid for pair in sample.qa_pairs] == [
        uid_of(one["question"], "fact_recall", 0),
        uid_of(one["question"], "preference_recall", 0),
        uid_of(one["question"], "fact_recall", 1),
        uid_of(one["question"], "fact_recall", 2),
    ]


@pytest.mark.parametrize(
    ("targets", "recoverable"),
    [
        (["F1"], False),
        (["F1", "F2"], True),
        (["F2"], True),
        (["F1", "F9"], False),
        (["F9"], True),
        ([], True),
    ],
)
def test_only_a_question_whose_facts_are_all_lost_is_unrecoverable(
    targets: list[str], recoverable: bool, stress: Record, write: Write
) -> None:
    stress["facts"][0]["recoverable"] = False
    stress["questions"][0]["target_fact_ids"] = targets
    (sample,), _ = load(write(stress))
    assert sample.qa_pairs[0].recoverable is recoverable


# -- the boundary ------------------------------------------------------------------------------------


def test_a_memory_hears_turns_and_dates_and_nothing_else(stress: Record, write: Write) -> None:
    for name in ("facts", "contradiction_chains", "sessions", "questions"):
        for one in stress[name]:
            one["note"] = "SECRET note"
    for one in stress["sessions"]:
        one |= {"topic": "SECRET topic", "noise_level": "SECRET noise", "planted_fact_ids": ["SECRET fact"]}
        one["turns"][0]["has_answer"] = "SECRET mark"
    for one in stress["questions"]:
        one |= {"answer_detail": "SECRET detail", "scoring_dimensions": ["SECRET"], "difficulty": "SECRET"}
    stress["contradiction_chains"][0]["final_ground_truth"] = "SECRET truth"
    stress["facts"][0] |= {"category": "SECRET category", "tags": ["SECRET tag"]}
    (sample,), _ = load(write(stress))
    fed = list(History.of(sample).sessions())
    crossed = repr(fed)
    assert "SECRET" not in crossed
    assert not any(name in crossed for name in (*TYPES, "agent_a", "agent_b", "'S1'", "'F1'", "'Q1'"))
    assert fed[0] == Session(
        "s1",
        [
            Message("user", f"By the way, {BEES}.", "D1:1", "2024-01-01T09:30:00"),
            Message("assistant", "That must be quite a view!", "D1:2", "2024-01-01T09:30:00"),
        ],
        "2024-01-01T09:30:00",
    )


# -- samples -----------------------------------------------------------------------------------------


def test_in_a_folder_the_later_files_are_called_by_their_names(
    stress: Record, write: Write, tmp_path: Path
) -> None:
    write(stress, "runs/b.json")
    write(stress, "runs/a.json")
    write(stress | {"sample_id": "own"}, "runs/c.json")
    samples, _ = load(tmp_path / "runs")
    assert [one.sample_id for one in samples] == ["main", "b", "own"]
    assert samples[0].qa_pairs == samples[1].qa_pairs


def test_samples_are_never_merged(stress: Record, write: Write) -> None:
    with pytest.raises(
        DatasetError, match=r"a sample of this id stands in .*many\.json already; rename one$"
    ):
        load_memorystress(write([stress, stress, stress], "many.json"))


# -- sentences ---------------------------------------------------------------------------------------


def test_a_session_without_a_date_is_fed_without_one(stress: Record, write: Write) -> None:
    stress["sessions"][1]["simulated_date"] = ""
    path = write(stress)
    (sample,), said = load(path)
    assert {message.date_str for message in sample.sessions[1].messages} == {
        sample.sessions[1].date_str,
        None,
    }
    assert said == [f"{path}: sample 'main': 1 session without a simulated_date (S2); fed without a date"]


def test_a_turn_without_content_counts_as_blank(stress: Record, write: Write) -> None:
    del stress["sessions"][1]["turns"][1]["content"]
    path = write(stress)
    (sample,), said = load(path)
    assert sample.sessions[1].messages[1].content == ""
    assert History.of(sample).blank_turns == 1
    assert said == [
        f"{path}: sample 'main': 1 session with a turn that has no content (S2); such a turn counts as blank"
    ]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (
            lambda stress: stress["sessions"][1].update(simulated_date="last Tuesday"),
            (
                "sample 'main', field simulated_date of session S2: 'last Tuesday' is not a date; "
                "expected one like '2024-03-01T09:30:00'"
            ),
        ),
        (
            lambda stress: stress["sessions"][1]["turns"][2].update(role=""),
            "sample 'main', field turns[2] of session S2, role: is ''; expected 'user' or 'assistant'",
        ),
        (
            lambda stress: stress["sessions"][1]["turns"][2].pop("role"),
            "sample 'main', field turns[2] of session S2, role: missing; expected 'user' or 'assistant'",
        ),
        (
            lambda stress: stress["sessions"][1]["turns"][0].update(content=None),
            "sample 'main', field turns[0] of session S2, content: is None; expected a text",
        ),
        (
            lambda stress: stress["questions"][2].update(question=" "),
            "sample 'main', field question of Q3: is ' '; expected a text that is not blank",
        ),
        (
            lambda stress: stress.update(sample_id=7),
            "sample 'main', field sample_id: is 7; expected a text, or nothing",
        ),
        (
            lambda stress: stress["questions"][2].update(phase_asked="two"),
            "question 'Q3', field phase_asked: is 'two'; expected a whole number",
        ),
    ],
)
def test_a_broken_benchmark_is_one_sentence(
    change: Callable[[Record], object], sentence: str, stress: Record, write: Write
) -> None:
    change(stress)
    path = write(stress)
    with pytest.raises(DatasetError) as caught:
        load_memorystress(path)
    assert str(caught.value) == f"{path}: {sentence}"


def test_another_format_is_named_as_such(write: Write) -> None:
    with pytest.raises(DatasetError, match=r"is not MemoryStress, .*; the keys found are 'haystack'$"):
        load_memorystress(write({"haystack": [question(1, "?", "x", [])]}))
