"""LongMemEval records with one thing wrong each: mended with a warning, or one sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from longmemeval_records import FILE, bakery, put, read_one

from pytest_himga.data.schema import Case
from pytest_himga.errors import DatasetError

if TYPE_CHECKING:
    from collections.abc import Sequence

SESSION = ("haystack_sessions", 1)
TURN = (*SESSION, 1)
TURN_FIELD = "haystack_sessions[1][1]"
A_DATE = "expected one like '2023/05/20 (Sat) 02:21'"


@pytest.mark.parametrize(
    ("where", "value", "field", "problem"),
    [
        (["question"], ..., "question", "missing; expected a text"),
        (["question"], None, "question", "missing; expected a text"),
        (["question"], 5, "question", "is 5; expected a text"),
        (["question"], " ", "question", "is ' '; expected a text that is not blank"),
        (["answer"], True, "answer", "is True; expected a text or a number"),
        (["answer"], ["Gustav"], "answer", "is ['Gustav']; expected a text or a number"),
        (["answer"], {}, "answer", "is {}; expected a text or a number"),
        (["question_date"], "soon", "question_date", f"'soon' is not a date; {A_DATE}"),
        (["question_date"], 20230609, "question_date", "is 20230609; expected a text"),
        (["haystack_sessions"], ..., "haystack_sessions", "missing; expected a list"),
        (["haystack_sessions"], {}, "haystack_sessions", "is {}; expected a list"),
        (["haystack_dates"], "today", "haystack_dates", "is 'today'; expected a list"),
        (
            ["haystack_dates", 1],
            "2023/06/31 (Sat) 21:40",
            "haystack_dates[1]",
            f"'2023/06/31 (Sat) 21:40' is not a date; {A_DATE}",
        ),
        (["haystack_dates", 1], "", "haystack_dates[1]", f"'' is not a date; {A_DATE}"),
        (["haystack_dates", 1], 7, "haystack_dates[1]", "is 7; expected a text"),
        (["haystack_session_ids"], 3, "haystack_session_ids", "is 3; expected a list"),
        (["haystack_session_ids", 2], ["x"], "haystack_session_ids[2]", "is ['x']; expected a text"),
        (["haystack_session_ids", 2], True, "haystack_session_ids[2]", "is True; expected a text"),
        (SESSION, None, "haystack_sessions[1]", "missing; expected a list"),
        (SESSION, "hello", "haystack_sessions[1]", "is 'hello'; expected a list"),
        (SESSION, {"role": "user"}, "haystack_sessions[1]", "is {'role': 'user'}; expected a list"),
        (TURN, "hello", TURN_FIELD, "is 'hello'; expected an object"),
        (TURN, None, TURN_FIELD, "is None; expected an object"),
        ((*TURN, "role"), ..., f"{TURN_FIELD}.role", "missing; expected a text"),
        ((*TURN, "role"), 1, f"{TURN_FIELD}.role", "is 1; expected a text"),
        ((*TURN, "content"), ..., f"{TURN_FIELD}.content", "missing; expected a text"),
        ((*TURN, "content"), None, f"{TURN_FIELD}.content", "missing; expected a text"),
        ((*TURN, "content"), ["a"], f"{TURN_FIELD}.content", "is ['a']; expected a text"),
    ],
)
def test_a_broken_record_is_one_sentence(
    where: Sequence[str | int], value: object, field: str, problem: str
) -> None:
    data = bakery()
    put(data, where, value)
    with pytest.raises(DatasetError) as caught:
        read_one(data)
    assert str(caught.value) == f"{FILE}: sample '5eed0001', field {field}: {problem}"


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (..., "missing"),
        (None, "missing"),
        (" ", "is ' '"),
        (True, "is True"),
        (["q"], "is ['q']"),
        (1.5, "is 1.5"),
    ],
)
def test_a_record_without_an_id_is_found_by_its_number(value: object, problem: str) -> None:
    data = bakery()
    put(data, ["question_id"], value)
    with pytest.raises(DatasetError) as caught:
        read_one(data, number=26)
    assert str(caught.value) == f"{FILE}: sample '26', field question_id: {problem}; expected a text"


@pytest.mark.parametrize(
    ("key", "value", "lengths"),
    [
        ("haystack_dates", ["2023/06/02 (Fri) 08:15"], (3, 1, 3)),
        ("haystack_dates", [], (3, 0, 3)),
        ("haystack_session_ids", ["a", "b", "c", "d"], (3, 3, 4)),
        ("haystack_sessions", [[]], (1, 3, 3)),
    ],
)
def test_lists_of_unequal_length_are_an_error_with_the_three_lengths(
    key: str, value: object, lengths: tuple[int, int, int]
) -> None:
    with pytest.raises(DatasetError) as caught:
        read_one(bakery(**{key: value}))
    sessions, dates, ids = lengths
    assert str(caught.value) == (
        f"{FILE}: sample '5eed0001', field haystack_sessions: there are {sessions} sessions, {dates} "
        f"haystack_dates and {ids} haystack_session_ids; expected as many of each"
    )


UNDATED = "is fed without a date, right behind the one before it"


@pytest.mark.parametrize(
    ("where", "value", "said"),
    [
        (["haystack_dates"], ..., f"haystack_dates: missing; each session {UNDATED}"),
        (["haystack_dates"], None, f"haystack_dates: missing; each session {UNDATED}"),
        (["haystack_dates", 2], None, f"haystack_dates[2]: missing; its session {UNDATED}"),
        (
            ["haystack_session_ids"],
            ...,
            "haystack_session_ids: missing; each session is called by its number",
        ),
        (
            ["haystack_session_ids", 0],
            None,
            "haystack_session_ids[0]: missing; its session is called by its number",
        ),
        (["question_date"], ..., "question_date: missing; the date of the last session stands in for it"),
        (["question_type"], ..., "question_type: missing; counted as single_session_user"),
        (["answer"], ..., "answer: missing; only retrieval can be scored"),
        (["answer"], None, "answer: missing; only retrieval can be scored"),
        (["answer"], " \n", "answer: missing; only retrieval can be scored"),
        (
            ["answer_session_ids"],
            ["answer_77aa_1", None],
            "answer_session_ids[1]: None is no session's id; it is left out",
        ),
        (
            ["answer_session_ids"],
            {"a": 1},
            "answer_session_ids[0]: {'a': 1} is no session's id; it is left out",
        ),
    ],
)
def test_what_is_missing_is_mended_aloud(where: Sequence[str | int], value: object, said: str) -> None:
    data = bakery()
    put(data, where, value)
    sample, warnings = read_one(data)
    assert warnings == [f"'5eed0001', field {said}"]
    assert len(sample.sessions) == 3
    assert sample.qa_pairs[0].evidence.groups == [["D2:1"]]


def test_sessions_without_ids_are_called_by_their_place_in_the_file() -> None:
    data = bakery()
    del data["haystack_session_ids"]
    data["haystack_dates"].reverse()
    sample, _ = read_one(data)
    assert [session.session_id for session in sample.sessions] == ["3", "2", "1"]


def test_sessions_without_any_date_stay_as_in_the_file() -> None:
    sample, _ = read_one(bakery(haystack_dates=None))
    assert [session.session_id for session in sample.sessions] == ["9c1f_2", "answer_77aa_1", "sharegpt_x_0"]
    assert {session.date_str for session in sample.sessions} == {None}


def test_without_a_date_the_question_is_asked_when_the_last_session_was() -> None:
    sample, _ = read_one(bakery(question_date=None))
    case = Case.of("lme", "sample", sample, sample.qa_pairs[0])
    assert sample.raw == {}
    assert case.date_str == "2023/06/05 (Mon) 07:00"


def test_a_question_without_an_answer_is_kept() -> None:
    sample, _ = read_one(bakery(answer=None))
    pair = sample.qa_pairs[0]
    assert (pair.answer, pair.gold, pair.expects_abstention) == ("", "", False)


def test_an_unanswerable_question_needs_no_explanation() -> None:
    sample, said = read_one(bakery(question_id="5eed0001_abs", answer=None))
    assert (sample.qa_pairs[0].answer, sample.qa_pairs[0].gold, said) == ("", None, [])


def test_numbers_as_ids_become_text() -> None:
    data = bakery(question_id=26, haystack_session_ids=[1, 2, 3], answer_session_ids=[2])
    sample, said = read_one(data)
    assert sample.sample_id == sample.qa_pairs[0].question_id == "26"
    assert [session.session_id for session in sample.sessions] == ["1", "2", "3"]
    assert sample.qa_pairs[0].evidence.session_ids == ["2"]
    assert said == []


@pytest.mark.parametrize(
    ("value", "session_ids"),
    [(..., []), (None, []), ([], []), ("answer_77aa_1", ["answer_77aa_1"])],
)
def test_the_list_of_evidence_sessions_may_be_short(value: object, session_ids: list[str]) -> None:
    data = bakery()
    put(data, ["answer_session_ids"], value)
    sample, said = read_one(data)
    assert sample.qa_pairs[0].evidence.session_ids == session_ids
    assert sample.qa_pairs[0].evidence.groups == [["D2:1"]]
    assert said == []


def test_a_history_of_nothing_is_still_a_question() -> None:
    sample, said = read_one(
        bakery(haystack_sessions=[], haystack_dates=[], haystack_session_ids=[], answer_session_ids=[])
    )
    assert (sample.sessions, len(sample.qa_pairs), said) == ([], 1, [])


def test_fields_that_nobody_knows_are_kept_and_change_nothing() -> None:
    data = bakery(difficulty="hard")
    data["haystack_sessions"][1][0] |= {"has_answer": True, "sentiment": "glad", "turn_id": "LEAK"}
    sample, said = read_one(data)
    assert sample.qa_pairs[0].raw["difficulty"] == "hard"
    assert "LEAK" not in repr(sample.sessions)
    assert said == []
