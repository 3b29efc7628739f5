"""The boundary, from the memory's side: which turns arrive, under which names, and how ids come back."""

from __future__ import annotations

from copy import deepcopy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_himga.data.schema import EvidenceRef, Message, Sample, Session
from pytest_himga.memory.boundary import History, read_context
from pytest_himga.memory.protocol import Recalled

DATE = "9:15 am on 3 March, 2024"


def two_days() -> Sample:
    """Sessions "1" and "4" (2 and 3 had no turns); the second turn is blank, the last has no id."""
    first = Session(
        "1",
        [
            Message("Ada", "I planted tulips.", "D1:1"),
            Message("Ben", " \n", "D1:2"),
            Message("Ada", "Good.", "D1:3"),
        ],
        DATE,
        title="the answer is tulips",
    )
    second = Session("4", [Message("Ben", "They came up purple.", "D4:7", "10 May"), Message("Ada", "Oh!")])
    return Sample("garden", "locomo", [first, second], [])


def test_turns_arrive_in_order_under_neutral_ids_and_blank_ones_do_not_arrive():
    fed = list(History.of(two_days()).sessions())
    assert fed == [
        Session(
            "s1",
            [Message("Ada", "I planted tulips.", "D1:1", DATE), Message("Ada", "Good.", "D1:3", DATE)],
            DATE,
        ),
        Session(
            "s2", [Message("Ben", "They came up purple.", "D2:1", "10 May"), Message("Ada", "Oh!", "D2:2")]
        ),
    ]


def test_blank_turns_are_counted_and_stay_in_the_sample():
    sample = two_days()
    before = deepcopy(sample)
    history = History.of(sample)
    list(history.sessions())
    assert history.blank_turns == 1
    assert sample == before


def test_each_neutral_id_leads_back_to_the_datasets_own():
    history = History.of(two_days())
    assert history.turn_ids == {
        "D1:1": "D1:1",
        "D1:2": "D1:2",
        "D1:3": "D1:3",
        "D2:1": "D4:7",
        "D2:2": "D2:2",
    }
    assert history.session_ids == {"s1": "1", "s2": "4"}


def test_ids_that_mark_the_evidence_are_mapped_back_exactly():
    marked = Session("answer_4be1b6b4_2", [Message("user", "My cat is called Moss.", "has-answer-1")])
    history = History.of(
        Sample("x", "longmemeval", [Session("noise_1", [Message("user", "Hi.")]), marked], [])
    )
    context, _ = read_context([Recalled("cat", turn_ids=["D2:1"], session_ids=["s2"])], history, 10)
    assert context.recalled == (
        Recalled("cat", turn_ids=("has-answer-1",), session_ids=("answer_4be1b6b4_2",)),
    )


def test_a_part_of_the_history_keeps_the_numbers_of_the_whole():
    history = History.of(two_days())
    assert list(history.sessions(1)) == list(history.sessions())[1:]
    assert list(history.sessions(0, 1)) == list(history.sessions())[:1]
    assert list(history.sessions(2)) == []


def test_a_memory_that_scribbles_on_its_messages_changes_nothing():
    sample = two_days()
    history = History.of(sample)
    before, fed_before = deepcopy(sample), list(history.sessions())
    for session in history.sessions():
        for message in session.messages:
            message.content, message.role, message.turn_id, message.date_str = "gone", "nobody", "D9:9", None
        session.messages.clear()
        session.session_id = "mine"
    assert sample == before
    assert list(history.sessions()) == fed_before
    assert history.turn_ids["D2:1"] == "D4:7"


# -- evidence ------------------------------------------------------------------------------------------


def evidence(*groups: list[str]) -> EvidenceRef:
    return EvidenceRef(groups=[list(group) for group in groups])


@pytest.mark.parametrize(
    ("groups", "ids"),
    [
        ([["D4:7"]], ["D2:1"]),
        ([["D4:7"], ["D1:3"], ["D4:7"]], ["D2:1", "D1:3"]),
        ([["D2:2"]], ["D2:2"]),
        ([["D2:1"]], []),  # D2:1 has an id of its own, so nothing of the file is called that
        ([["4"], ["1"]], ["s2", "s1"]),
        ([["D1:1", "1"]], ["D1:1"]),
        ([["nowhere", "4"]], ["s2"]),
        ([["nowhere"], []], []),
    ],
)
def test_evidence_is_found_by_the_files_ids_and_named_by_neutral_ones(groups, ids):
    assert History.of(two_days()).evidence_ids(evidence(*groups)) == ids


@pytest.mark.parametrize(
    ("groups", "until", "sessions"),
    [
        ([["D4:7"], ["D2:2"]], 2, ["s2"]),
        ([["4"], ["D1:1"]], 2, ["s2", "s1"]),
        ([["4"], ["D1:1"]], 1, ["s1"]),
        ([["4"]], 1, ["s2"]),
        ([["4", "1"]], 1, ["s1"]),
        ([], 2, []),
    ],
)
def test_evidence_stands_in_sessions_of_which_the_later_ones_do_not_count(groups, until, sessions):
    assert History.of(two_days()).evidence_sessions(evidence(*groups), until) == sessions


def test_of_two_sessions_with_one_id_a_turn_tells_which():
    sample = two_days()
    for session in sample.sessions:
        session.session_id = "twin"
    history = History.of(sample)
    assert history.evidence_ids(evidence(["twin"])) == ["s1", "s2"]
    assert history.evidence_sessions(evidence(["D2:2", "twin"]), 2) == ["s2"]


def test_what_comes_back_stands_in_the_sessions_of_its_turns_and_in_those_it_names():
    things = [Recalled("a", ["D2:1", "D2:2"]), Recalled("b", ["D1:1"], ["s2"]), Recalled("c")]
    context, _ = read_context(things, History.of(two_days()), 10)
    assert context.sessions == ({"s2"}, {"s1", "s2"}, set())
    assert read_context(things, History.of(two_days()), 1)[0].sessions == ({"s2"},)
    assert read_context("text", History.of(two_days()), 1)[0].sessions == ()


samples = st.lists(
    st.lists(st.tuples(st.sampled_from(["", " \t", "one", "two words"]), st.booleans()), max_size=4),
    max_size=4,
)


@given(samples)
def test_whatever_was_fed_can_be_given_back(layout):
    sessions = [
        Session(
            f"own-{s}",
            [Message("A", text, f"T{s}.{t}" if named else None) for t, (text, named) in enumerate(turns)],
        )
        for s, turns in enumerate(layout)
    ]
    history = History.of(Sample("x", "locomo", sessions, []))
    fed = list(history.sessions())
    returned = [
        Recalled(message.content, [message.turn_id], [session.session_id])
        for session in fed
        for message in session.messages
    ]
    context, count = read_context(returned, history, 100)
    kept = [
        (s, t, m)
        for s, session in enumerate(sessions, 1)
        for t, m in enumerate(session.messages, 1)
        if m.content.strip()
    ]
    assert [r.text for r in context.recalled] == [m.content for _, _, m in kept]
    assert [r.turn_ids for r in context.recalled] == [(m.turn_id or f"D{s}:{t}",) for s, t, m in kept]
    assert [r.session_ids for r in context.recalled] == [(f"own-{s - 1}",) for s, _, _ in kept]
    assert list(context.sessions) == [{f"s{s}"} for s, _, _ in kept]
    assert count + history.blank_turns == sum(len(session.messages) for session in sessions)


@pytest.mark.parametrize("content", ["", " ", "\n\t", "\u3000", "\xa0"])
def test_white_space_of_any_kind_is_blank(content):
    history = History.of(Sample("x", "locomo", [Session("1", [Message("A", content, "D1:1")])], []))
    assert history.blank_turns == 1
    assert list(history.sessions()) == [Session("s1", [])]
