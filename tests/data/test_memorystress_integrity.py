"""What does not add up in a MemoryStress benchmark: one sentence for each kind, and never an error."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from memorystress_parts import HERON, Record, benchmark, fact, session, turns

from pytest_himga.data.memorystress import BenchmarkData, generate
from pytest_himga.data.memorystress.integrity import problems

if TYPE_CHECKING:
    from collections.abc import Callable


def said_of(record: Record) -> list[str]:
    return problems(BenchmarkData.from_dict(record))


def version(stress: Record, **fields: Any) -> None:
    stress["contradiction_chains"][0]["versions"][1].update(fields)


def test_nothing_is_said_of_a_benchmark_that_adds_up() -> None:
    assert said_of(benchmark()) == []


def test_nor_of_an_empty_one() -> None:
    assert problems(BenchmarkData()) == []


def test_nor_of_what_we_generate() -> None:
    assert problems(generate(seed=5, facts=40, sessions=60, questions=60)) == []


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        # -- ids
        (
            lambda stress: stress["facts"].append(stress["facts"][0]),
            "1 fact id used more than once (F1); the first of each counts",
        ),
        (
            lambda stress: stress["contradiction_chains"].append(stress["contradiction_chains"][0]),
            "1 chain id used more than once (C1); the first of each counts",
        ),
        (
            lambda stress: stress["sessions"].append(session(3, 3, "agent_a", turns("Hello."))),
            "1 session id used more than once (S3); none is left out",
        ),
        (
            lambda stress: stress["questions"].append(stress["questions"][0]),
            "1 question id used more than once (Q1); none is left out",
        ),
        (
            lambda stress: stress["facts"][0].update(session_planted="S9"),
            "1 fact whose session_planted is no session (F1)",
        ),
        (
            lambda stress: stress["facts"][0].update(mention_sessions=["S1", "S8", "S9"]),
            "1 fact whose mention_sessions are not all sessions (F1)",
        ),
        (
            lambda stress: stress["facts"][0].update(contradiction_chain="C9"),
            "1 fact whose contradiction_chain is no chain (F1)",
        ),
        (
            lambda stress: stress["contradiction_chains"][0].update(original_fact_id="F9"),
            "1 chain whose original_fact_id is no fact (C1)",
        ),
        (
            lambda stress: stress["sessions"][2].update(planted_fact_ids=["F1", "F9"]),
            "1 session whose planted_fact_ids are not all facts (S3)",
        ),
        (
            lambda stress: stress["questions"][3].update(target_fact_ids=["F2", "F9"]),
            "1 question whose target_fact_ids are not all facts (Q4)",
        ),
        (
            lambda stress: stress["questions"][3].update(target_chain_id="C9"),
            "1 question whose target_chain_id is no chain (Q4)",
        ),
        # -- facts and chains
        (
            lambda stress: stress["facts"].append(fact("F3", "The teapot is cracked", "S2")),
            "1 fact never planted (F3); such a fact is no evidence of any question",
        ),
        (
            lambda stress: version(stress, session_id=""),
            "1 chain version never planted (C1 version 2); its text stands in another session",
        ),
        (
            lambda stress: version(stress, session_id="S9", content="The boat is sold"),
            "1 chain version never planted (C1 version 2); its text stands in no session",
        ),
        (
            lambda stress: version(stress, content=None),
            "1 chain version never planted (C1 version 2); its text stands in no session",
        ),
        (
            lambda stress: stress["contradiction_chains"][0]["versions"].extend([{}, {"version": "four"}]),
            (
                "2 chain versions never planted (C1 version 3, C1 version four); "
                "the text of 2 of them stands in no session"
            ),
        ),
        # -- questions
        (
            lambda stress: stress["questions"][1].update(answer="Petrel"),
            "1 question whose answer is not the chain's final_ground_truth (Q2); the answer is what is scored",
        ),
        (
            lambda stress: stress["questions"][3].update(phase_asked=1),
            "1 question about a fact that is planted after the checkpoint (Q4); nobody can know it then",
        ),
        (
            lambda stress: stress["questions"][2].update(agent_scope="agent_a"),
            (
                "1 question of type cross_agent_recall from the agent that was told the answer (Q3); "
                "such a question does not cross agents"
            ),
        ),
        (
            lambda stress: stress["questions"][2].update(target_fact_ids=["F2"]),
            (
                "1 question of type cross_agent_recall from the agent that was told the answer (Q3); "
                "such a question does not cross agents"
            ),
        ),
        (
            lambda stress: stress["questions"][0].update(question_type="Cold-Start-Recall"),
            "1 question of type cold_start_recall without cold_start (Q1); the running instance is asked",
        ),
        (
            lambda stress: stress["questions"][3].update(phase_asked=5),
            "1 question whose phase_asked is not 1 to 4 (Q4)",
        ),
        # -- totals
        (
            lambda stress: stress.update(stats={"total_facts": 583}),
            "stats.total_facts is 583, and the file has 2",
        ),
        (
            lambda stress: stress.update(stats={"total_questions": "4", "total_chains": 1}),
            "stats.total_questions is '4', and the file has 4",
        ),
        (
            lambda stress: stress.update(phases={str(n): {"session_range": [n, n]} for n in (1, 2, 3)}),
            "phases.2.session_range has 1 sessions, and the phase has 2",
        ),
        (
            lambda stress: stress.update(phases={"1": {}, "2": {"session_range": "2-3"}}),
            "1 phase not in phases (3)",
        ),
    ],
)
def test_what_does_not_add_up_is_one_sentence(change: Callable[[Record], object], sentence: str) -> None:
    stress = benchmark()
    change(stress)
    assert said_of(stress) == [sentence]


@pytest.mark.parametrize(
    "change",
    [
        lambda stress: stress.update(stats={"total_facts": 2, "seed": 42, "model": "gpt-4o"}),
        # checkpoint 4 brings no sessions: no file lists it
        lambda stress: stress.update(phases={"1": {"session_range": [1, 1]}, "2": {}, "3": {}}),
        lambda stress: stress["facts"][0].update(contradiction_chain=""),
        lambda stress: stress["questions"][2].update(target_fact_ids=["F1", "F2"]),
        lambda stress: stress["questions"][1].update(answer=" Heron\n"),
        lambda stress: stress["contradiction_chains"][0].update(final_ground_truth=""),
    ],
)
def test_what_is_normal_is_not_worth_a_word(change: Callable[[Record], object]) -> None:
    stress = benchmark()
    change(stress)
    assert said_of(stress) == []


def test_many_of_a_kind_are_one_sentence_with_the_first_ids() -> None:
    stress = benchmark()
    stress["facts"] += [fact(f"F{n}", HERON, "nowhere") for n in range(10, 18)]
    assert said_of(stress) == [
        "8 facts whose session_planted is no session (F10, F11, F12, F13, F14 and 3 more)",
        "8 facts whose mention_sessions are not all sessions (F10, F11, F12, F13, F14 and 3 more)",
        "8 facts never planted (F10, F11, F12, F13, F14 and 3 more); such a fact is no evidence of any question",
    ]


def test_where_nothing_is_quoted_no_text_is_missed() -> None:
    stress = benchmark()
    for one in stress["sessions"]:
        one["turns"] = turns("Something else in other words.")
    version(stress, session_id="")
    assert said_of(stress) == [
        "2 facts told in other words (F1, F2); known by session only, and any turn of it is evidence",
        "1 chain version never planted (C1 version 2)",
    ]


_ids = st.sampled_from(["F1", "F2", "C1", "S1", "S2", "Q1", "", "nothing"])


@settings(max_examples=25, deadline=None)  # a slow machine is no failure
@given(st.data())
def test_nothing_is_ever_raised(data: st.DataObject) -> None:
    stress = BenchmarkData.from_dict(benchmark())
    for one in [*stress.facts, *stress.contradiction_chains, *stress.sessions, *stress.questions]:
        for name, value in vars(one).items():
            if not data.draw(st.integers(0, 4)):
                if isinstance(value, int) and not isinstance(value, bool):
                    setattr(one, name, data.draw(st.integers()))
                elif isinstance(value, str):
                    setattr(one, name, data.draw(_ids))
                elif name in ("mention_sessions", "planted_fact_ids", "target_fact_ids"):
                    setattr(one, name, data.draw(st.lists(_ids, max_size=3)))
                elif name in ("versions", "turns"):
                    texts = st.sampled_from(["version", "content", "session_id", "role"])
                    setattr(one, name, data.draw(st.lists(st.dictionaries(texts, _ids), max_size=3)))
    assert all("\n" not in sentence and sentence for sentence in problems(stress))
