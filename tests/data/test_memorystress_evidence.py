"""MemoryStress' evidence: the groups that a question has, and how memories of every kind hit them."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from memorystress_parts import HERON, PETREL, Record, benchmark, fact, turns

from pytest_himga.data import Case, EvidenceRef, QAPair, Sample
from pytest_himga.data.memorystress import load_memorystress
from pytest_himga.errors import DatasetWarning
from pytest_himga.judge.evidence import EvidenceJudge, coverage
from pytest_himga.memory.boundary import History, read_context
from pytest_himga.memory.protocol import Recalled
from pytest_himga.score.retrieval import retrieval_metrics

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


# -- evidence ----------------------------------------------------------------------------------------


def test_a_fact_is_a_group_of_its_turns_and_sessions_up_to_the_checkpoint(
    stress: Record, write: Write
) -> None:
    found = pairs(only(write(stress)))
    # mentioned again in S3, in other case and punctuation, which the question of phase 1 has not heard
    assert found["Q1"].evidence.groups == [["D1:1", "S1"]]
    assert found["Q3"].evidence.groups == [["D1:1", "D3:1", "S1", "S3"]]
    assert found["Q4"].evidence == EvidenceRef(session_ids=["S2"], groups=[["D2:3", "S2"]])


def test_turns_are_counted_in_the_order_in_which_sessions_are_fed(stress: Record, write: Write) -> None:
    stress["sessions"].reverse()
    stress["sessions"][0]["turns"].insert(0, {"role": "user", "content": " "})
    sample = only(write(stress))
    assert pairs(sample)["Q2"].evidence.groups == [["D2:3", "S2"], ["D4:2", "S4"]]
    fed = [message.turn_id for one in History.of(sample).sessions() for message in one.messages]
    assert {"D2:3", "D4:2"} <= set(fed)
    assert "D4:1" not in fed


@pytest.mark.parametrize(
    ("session_id", "text", "groups"),
    [
        ("S4", HERON, [["D2:3", "S2"], ["D4:1", "S4"]]),
        ("", HERON, [["D2:3", "S2"]]),  # as in the published generator's files
        ("S9", HERON, [["D2:3", "S2"]]),
        ("S4", "The rowing boat is now the Egret", [["D2:3", "S2"]]),
        ("S2", "Good morning", [["D2:3", "S2"], ["D2:1", "S2"]]),
    ],
)
def test_a_chain_adds_its_last_version_that_was_planted(
    session_id: str, text: str, groups: list[list[str]], stress: Record, write: Write
) -> None:
    stress["contradiction_chains"][0]["versions"][1] |= {"session_id": session_id, "content": text}
    (sample,), _ = load(write(stress))
    assert pairs(sample)["Q2"].evidence.groups == groups


def test_a_version_after_the_checkpoint_is_no_evidence(stress: Record, write: Write) -> None:
    stress["questions"][1]["phase_asked"] = 2
    (sample,), _ = load(write(stress))
    assert pairs(sample)["Q2"].evidence.groups == [["D2:3", "S2"]]


def test_a_chain_that_is_asked_without_its_fact_has_its_last_version_alone(
    stress: Record, write: Write
) -> None:
    stress["questions"][1]["target_fact_ids"] = []
    assert pairs(only(write(stress)))["Q2"].evidence.groups == [["D4:1", "S4"]]
    stress["questions"][1]["phase_asked"] = 2
    assert pairs(only(write(stress)))["Q2"].evidence.groups == [["D2:3", "S2"]]


def test_facts_of_one_session_are_groups_of_their_own(stress: Record, write: Write) -> None:
    stress["facts"].append(fact("F3", "Good morning to you", "S2"))
    stress["questions"][3]["target_fact_ids"] = ["F2", "F3", "F2"]
    assert pairs(only(write(stress)))["Q4"].evidence.groups == [["D2:3", "S2"], ["D2:1", "S2"]]


def test_a_fact_that_was_never_said_is_no_evidence(stress: Record, write: Write) -> None:
    stress["facts"].append(fact("F3", "The teapot is cracked", "S2"))
    stress["questions"][3]["target_fact_ids"] = ["F3"]
    path = write(stress)
    (sample,), said = load(path)
    assert pairs(sample)["Q4"].evidence == EvidenceRef()
    assert said == [
        f"{path}: sample 'main': 1 fact never planted (F3); such a fact is no evidence of any question"
    ]


def test_a_number_in_a_longer_number_is_not_found(stress: Record, write: Write) -> None:
    stress["facts"].append(fact("F3", "The code is 12", "S2"))
    stress["sessions"][1]["turns"] += turns("The code is 123, no: the code is 12.", "The code is 123.")
    stress["questions"][3]["target_fact_ids"] = ["F3"]
    assert pairs(only(write(stress)))["Q4"].evidence.groups == [["D2:5", "S2"]]


def test_a_mention_that_does_not_say_it_is_no_evidence_where_the_others_do(
    stress: Record, write: Write
) -> None:
    stress["sessions"][2]["turns"] = turns("You remember the bees?", "I do.")
    assert pairs(only(write(stress)))["Q3"].evidence.groups == [["D1:1", "S1"]]


def test_where_sessions_tell_facts_in_their_own_words_the_session_is_all_that_is_known(
    stress: Record, write: Write
) -> None:
    stress["sessions"][0]["turns"] = turns("Three hives stand up there, at the school.", " ", "They hum.")
    stress["sessions"][1]["turns"] = turns("I call her Petrel.", "Her?", f"{HERON}, one day.")
    path = write(stress)
    (sample,), said = load(path)
    found = pairs(sample)
    assert found["Q1"].evidence.groups == [["S1"]]
    # S3 quotes it, and S1 may say it just as well
    assert found["Q3"].evidence.groups == [["S1", "S3"]]
    assert found["Q2"].evidence.groups == [["S2"], ["D4:1", "S4"]]
    assert said == [
        (
            f"{path}: sample 'main': 2 facts told in other words (F1, F2); "
            "known by session only, and any turn of it is evidence"
        )
    ]


@pytest.mark.parametrize(
    ("returned", "verdict"),
    [
        ([Recalled("x", turn_ids=["D1:1"])], "correct"),
        ([Recalled("x", turn_ids=["D1:2"])], "correct"),
        ([Recalled("x", session_ids=["s1"])], "correct"),
        ([Recalled("x", turn_ids=["D2:1"])], "wrong"),
        ("user: Three hives stand up there, at the school.\nassistant: They hum a lot.", "correct"),
        # text does not show which of the turns it is, so it is not blamed for one that it lacks
        ("user: Three hives stand up there, at the school.", "unscored"),
    ],
)
def test_a_session_that_is_known_as_a_whole_is_hit_by_any_of_its_ids(
    returned: Any, verdict: str, stress: Record, write: Write
) -> None:
    stress["sessions"][0]["turns"] = turns("Three hives stand up there, at the school.", "They hum a lot.")
    stress["sessions"][1]["turns"] = turns("I call her Petrel.")
    (sample,), _ = load(write(stress))
    context, _ = read_context(returned, History.of(sample), top_k=10)
    case = Case.of("stress", "main", sample, pairs(sample)["Q1"])
    assert EvidenceJudge().judge(case, None, context).value == verdict


# -- as memories find it -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("returned", "verdict", "share"),
    [
        ([Recalled("x", turn_ids=["D2:3"]), Recalled("x", turn_ids=["D4:1"])], "correct", 1.0),
        ([Recalled("x", session_ids=["s2", "s4"])], "correct", 1.0),
        ([Recalled("x", session_ids=["s4"]), Recalled("x", turn_ids=["D2:3", "D2:4"])], "correct", 1.0),
        ([Recalled(f"News: {HERON}."), Recalled(f"{PETREL}, you know.")], "correct", 1.0),
        (f"user: {PETREL}, you know.\nassistant: I see.\nuser: News: {HERON}.", "correct", 1.0),
        (f"user: {PETREL}, you know.", "wrong", 0.5),
        ([Recalled("x", turn_ids=["D4:1", "D1:1"])], "wrong", 0.5),
        ([Recalled("x", session_ids=["s1"])], "wrong", 0.0),
    ],
)
def test_a_memory_hits_by_turn_by_session_and_by_text(
    returned: Any, verdict: str, share: float, stress: Record, write: Write
) -> None:
    sample = only(write(stress))
    case = Case.of("stress", "main", sample, pairs(sample)["Q2"])
    context, _ = read_context(returned, History.of(sample), top_k=10)
    judged = EvidenceJudge().judge(case, None, context)
    assert (judged.value, judged.score) == (verdict, share)
    ranked = [[*one.turn_ids, *one.session_ids] for one in context.recalled or ()]
    if any(ranked):
        found = retrieval_metrics(ranked, case.question.evidence.groups, top_k=10)
        assert found["recall@10"] == share


def test_whoever_returns_the_whole_history_as_text_has_all_evidence(stress: Record, write: Write) -> None:
    sample = only(write(stress))
    history = History.of(sample)
    for pair in sample.qa_pairs:
        heard = history.sessions(end=pair.asked_after)
        text = "\n".join(f"{turn.role}: {turn.content}" for one in heard for turn in one.messages)
        context, _ = read_context(text, history, top_k=10)
        assert coverage(Case.of("stress", "main", sample, pair), context).share == 1.0
