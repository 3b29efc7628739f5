"""Data room: the part of the demo in LongMemEval's format keeps its promises, read as plain JSON first."""

from __future__ import annotations

import json
import re
from collections import Counter
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_himga.data import load_longmemeval
from pytest_himga.data.opening import open_dataset

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

DEMO = Path(__file__).resolve().parents[2] / "pytest_himga" / "data" / "demo"
FILE = DEMO / "longmemeval.json"
TEXT = FILE.read_text(encoding="utf-8")
RECORDS: dict[str, dict[str, Any]] = {record["question_id"]: record for record in json.loads(TEXT)}

TYPES = {
    "single-session-user": 4,
    "single-session-assistant": 3,
    "single-session-preference": 3,
    "temporal-reasoning": 4,
    "knowledge-update": 4,
    "multi-session": 4,
}
WEEKDAYS = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]
THURSDAY, SUNDAY = 3, 6

each_question = pytest.mark.parametrize("question", RECORDS)


def abstains(question: str) -> bool:
    return question.endswith("_abs")


def when(text: str) -> datetime:
    """The minute, by hand: strptime's names of weekdays would follow the locale."""
    shape = re.fullmatch(r"(\d{4})/(\d\d)/(\d\d) \((\w{3})\) (\d\d):(\d\d)", text)
    assert shape, f"{text!r} is not like '2023/05/20 (Sat) 02:21'"
    year, month, day, weekday, hour, minute = shape.groups()
    moment = datetime(int(year), int(month), int(day), int(hour), int(minute), tzinfo=UTC)
    assert WEEKDAYS[moment.weekday()] == weekday, text
    return moment


def dates(question: str) -> list[datetime]:
    return [when(text) for text in RECORDS[question]["haystack_dates"]]


def asked(question: str) -> datetime:
    return when(RECORDS[question]["question_date"])


def sessions(question: str) -> Iterator[tuple[str, datetime, list[dict[str, Any]]]]:
    record = RECORDS[question]
    yield from zip(record["haystack_session_ids"], dates(question), record["haystack_sessions"], strict=True)


def evidence(question: str) -> list[tuple[datetime, str]]:
    """The turns that hold the answer, in the order of time."""
    return sorted(
        (on, turn["content"])
        for _, on, turns in sessions(question)
        for turn in turns
        if turn.get("has_answer") is True
    )


def told(question: str, phrase: str) -> date:
    """The day on which a turn that holds the answer said so."""
    (on,) = (on for on, text in evidence(question) if phrase in text)
    return on.date()


# ---- shape ----


def test_it_covers_every_type_and_what_cannot_be_answered() -> None:
    answerable = [record for question, record in RECORDS.items() if not abstains(question)]
    assert Counter(record["question_type"] for record in answerable) == TYPES
    abstention = {record["question_type"] for question, record in RECORDS.items() if abstains(question)}
    assert abstention == {"single-session-user", "temporal-reasoning", "knowledge-update", "multi-session"}
    assert len(RECORDS) == 26


def test_types_stand_in_blocks_as_in_the_published_file() -> None:
    in_order = [record["question_type"] for record in RECORDS.values()]
    assert list(dict.fromkeys(in_order)) == list(TYPES)
    assert in_order == sorted(in_order, key=list(TYPES).index)


def test_it_is_small_and_a_turn_is_a_line() -> None:
    assert len(TEXT.encode()) < 120_000
    lines = TEXT.splitlines()
    turns = [
        turn for record in RECORDS.values() for session in record["haystack_sessions"] for turn in session
    ]
    assert [json.loads(line.rstrip(",")) for line in lines if line.startswith('    {"role": ')] == turns
    assert max(map(len, lines)) < 350
    assert "\\u" not in TEXT
    assert all(sign in TEXT for sign in ("João", "£", "🥚"))
    assert "http" not in TEXT


@each_question
def test_every_record_is_whole(question: str) -> None:
    record = RECORDS[question]
    # The published files have one order of the keys each.
    order = list(record)
    assert order[:3] == ["question_id", "question_type", "question"]
    assert order[3:] in (
        [
            *("answer", "question_date", "haystack_dates", "haystack_session_ids", "haystack_sessions"),
            "answer_session_ids",
        ],
        [
            *("question_date", "answer", "answer_session_ids", "haystack_dates", "haystack_session_ids"),
            "haystack_sessions",
        ],
    )
    assert re.fullmatch(r"(gpt4_)?[0-9a-f]{8}(_abs)?", question)
    assert re.fullmatch(r"\S.*[?!.]", record["question"])
    assert str(record["answer"]).strip() == str(record["answer"]) != ""
    assert 4 <= len(record["haystack_sessions"]) <= 9
    for _, on, turns in sessions(question):
        assert on.date() <= asked(question).date()
        assert 2 <= len(turns) <= 6
        for turn in turns:
            assert set(turn) - {"has_answer"} == {"role", "content"}
            assert turn["role"] in ("user", "assistant")
            assert turn["content"] == " ".join(turn["content"].split())
            assert turn["content"].isprintable()


@each_question
def test_session_ids_give_the_evidence_away_as_the_published_ones_do(question: str) -> None:
    record = RECORDS[question]
    ids = record["haystack_session_ids"]
    shapes = r"ultrachat_\d{5,6}|sharegpt_[0-9A-Za-z]{7}_\d+|[0-9a-f]{8}_\d"
    of_evidence = [name for name in ids if name.startswith("answer_")]
    assert all(re.fullmatch(shapes, name) for name in ids if name not in of_evidence)
    assert all(re.fullmatch(rf"answer_({shapes}|[0-9a-f]{{8}}(_abs)?(_\d)?)", name) for name in of_evidence)
    assert sorted(of_evidence) == sorted(record["answer_session_ids"]) != []
    assert {"_abs" in name for name in of_evidence} == {abstains(question)}


@each_question
def test_only_sessions_with_evidence_hold_the_answer(question: str) -> None:
    for name, _, turns in sessions(question):
        if not name.startswith("answer_"):
            assert not any(turn.get("has_answer") for turn in turns)
        elif RECORDS[question]["question_type"] == "single-session-assistant":
            assert [turn["role"] for turn in turns if turn["has_answer"]] == ["assistant"]
        else:
            assert not any(turn["has_answer"] for turn in turns if turn["role"] == "assistant")
    assert bool(evidence(question)) is (not abstains(question) or question == "gpt4_0c8e6d31_abs")


def test_fillers_are_many_and_each_is_the_same_wherever_it_stands() -> None:
    contents: dict[str, set[str]] = {}
    for question in RECORDS:
        for name, _, turns in sessions(question):
            if not name.startswith("answer_"):
                said = json.dumps([(turn["role"], turn["content"]) for turn in turns])
                contents.setdefault(name, set()).add(said)
    assert len(contents) > 50
    assert [name for name, said in contents.items() if len(said) > 1] == []


# ---- what it has on purpose ----


def orders_differ(question: str) -> bool:
    return dates(question) != sorted(dates(question))


def of_minutes(question: str, *, evidence: bool) -> bool:
    """Whether a session with (or without) evidence lies after the question's minute, on its day."""
    late = [name for name, on, _ in sessions(question) if on > asked(question)]
    return any(name.startswith("answer_") is evidence for name in late)


def without_answer(question: str) -> bool:
    """Whether a session that counts as evidence holds no part of the answer."""
    marked = [
        any(turn["has_answer"] for turn in turns)
        for name, _, turns in sessions(question)
        if "answer_" in name
    ]
    return not abstains(question) and not all(marked)


def some_turns(test: Callable[[list[dict[str, Any]]], bool]) -> Callable[[str], bool]:
    return lambda question: any(test(turns) for _, _, turns in sessions(question))


def twice_the_same(names: list[Any]) -> bool:
    return len(set(names)) < len(names)


TRAPS: dict[str, tuple[Callable[[str], bool], set[str]]] = {
    "an answer that is a number": (
        lambda q: isinstance(RECORDS[q]["answer"], int),
        {"b07d42e5", "2e64c8fb", "6c0f82da"},
    ),
    "an answer with an alternative": (
        lambda q: "right as well" in str(RECORDS[q]["answer"]),
        {"gpt4_0c8e6d31"},
    ),
    "a rubric for an answer": (
        lambda q: len(str(RECORDS[q]["answer"])) > 150 and not abstains(q),
        {"e86b30a2", "47ca5d19", "gpt4_f3b8027c"},
    ),
    "sessions out of order": (orders_differ, {"71b9e4f6", "a93f0b57"}),
    "evidence out of order": (
        lambda q: sorted(RECORDS[q]["answer_session_ids"]) != RECORDS[q]["answer_session_ids"],
        {"71b9e4f6"},
    ),
    "two sessions of one id": (
        lambda q: twice_the_same(RECORDS[q]["haystack_session_ids"]),
        {"gpt4_e1957bc4"},
    ),
    "two sessions of one minute": (lambda q: twice_the_same(dates(q)), {"71b9e4f6", "0a8d6e9f"}),
    "evidence after the question's minute": (lambda q: of_minutes(q, evidence=True), {"a93f0b57"}),
    "another session after the question's minute": (lambda q: of_minutes(q, evidence=False), {"b6d9357a"}),
    "a blank turn": (
        some_turns(lambda turns: any(not turn["content"] for turn in turns)),
        {"58e2b6f0", "2e64c8fb"},
    ),
    "evidence that the assistant begins": (
        lambda q: any("answer_" in n and turns[0]["role"] == "assistant" for n, _, turns in sessions(q)),
        {"gpt4_6a1e90cd", "gpt4_0c8e6d31", "gpt4_0c8e6d31_abs"},
    ),
    "one role twice in a row": (
        some_turns(lambda turns: any(a["role"] == b["role"] for a, b in pairwise(turns))),
        {"d17e50b4_abs", "gpt4_e1957bc4", "f40a6c23_abs"},
    ),
    "evidence without an answer in it": (without_answer, {"b6d9357a"}),
    "marks on every turn": (
        lambda q: all("has_answer" in turn for _, _, turns in sessions(q) for turn in turns),
        {"b07d42e5", "9d05e3b1", "47ca5d19", "71b9e4f6", "f40a6c23", "0a8d6e9f"},
    ),
    "no question without the suffix": (
        lambda q: abstains(q) and q.removesuffix("_abs") not in RECORDS,
        {"d17e50b4_abs"},
    ),
}


@pytest.mark.parametrize("trap", TRAPS)
def test_a_trap_of_the_published_file_is_there(trap: str) -> None:
    is_there, expected = TRAPS[trap]
    assert {question for question in RECORDS if is_there(question)} == expected


def test_sessions_of_one_id_have_dates_of_their_own() -> None:
    twice = [on for name, on, _ in sessions("gpt4_e1957bc4") if name == "1c97e4b3_5"]
    assert len(set(twice)) == 2


def test_marks_stand_on_sessions_with_evidence_where_they_do_not_stand_everywhere() -> None:
    everywhere = TRAPS["marks on every turn"][1]
    for question in RECORDS.keys() - everywhere:
        for name, _, turns in sessions(question):
            assert {"has_answer" in turn for turn in turns} == {name.startswith("answer_")}


# ---- the golds follow from the evidence, from all of it ----


@pytest.mark.parametrize(
    "question",
    [
        question
        for question, record in RECORDS.items()
        if not abstains(question) and not record["question_type"].startswith("single-session")
    ],
)
def test_what_takes_several_sessions_has_evidence_in_each(question: str) -> None:
    days = [on for on, _ in evidence(question)]
    # How long ago something was takes one session and the date of the question.
    assert len(set(days)) == len(days) >= (1 if "weeks ago" in RECORDS[question]["question"] else 2)


def test_days_and_weeks_come_to_the_gold() -> None:
    up, sown = told("gpt4_0c8e6d31", "first one came up"), told("gpt4_0c8e6d31", "sowed the chillies")
    days = (up - sown).days
    assert RECORDS["gpt4_0c8e6d31"]["answer"].startswith(f"{days} days; {days + 1} days, ")
    swept = told("gpt4_d52a78b0", "swept yesterday") - timedelta(days=1)
    assert RECORDS["gpt4_d52a78b0"]["answer"] == f"{(asked('gpt4_d52a78b0').date() - swept).days / 7:g} weeks"


def test_what_was_first_was_first() -> None:
    (first, harmonium), (second, chair) = evidence("71b9e4f6")
    assert "harmonium" in harmonium
    assert "rocking chair" in chair
    assert first.date() == second.date()
    assert first.hour < 9 < second.hour, "before work, and after supper"
    assert RECORDS["71b9e4f6"]["answer"] == "The harmonium"


def test_the_lighthouses_stand_in_the_order_of_the_visits_and_not_of_the_telling() -> None:
    visits = {
        "Skerrow": told("a93f0b57", "Yesterday I stood") - timedelta(days=1),
        # the last Sunday of August
        "Pellan Point": max(date(2023, 8, d) for d in range(1, 32) if date(2023, 8, d).weekday() == SUNDAY),
        "the Old Cob": told("a93f0b57", "this minute"),
    }
    assert "last Sunday of August" in evidence("a93f0b57")[1][1]
    assert ", then ".join(sorted(visits, key=visits.__getitem__)) == RECORDS["a93f0b57"]["answer"]
    assert [next(name for name in visits if name in text) for _, text in evidence("a93f0b57")] == list(visits)


@pytest.mark.parametrize(
    ("question", "pattern", "gold"),
    [
        ("gpt4_e1957bc4", r"£([\d,]+)", "£{:,}"),
        ("0a8d6e9f", r"(\d+) kilometres", "{} kilometres"),
    ],
)
def test_a_sum_takes_every_part(question: str, pattern: str, gold: str) -> None:
    parts = [re.findall(pattern, text) for _, text in evidence(question)]
    assert [len(found) for found in parts] == [1] * len(parts)
    assert RECORDS[question]["answer"] == gold.format(sum(int(n.replace(",", "")) for (n,) in parts))


def test_what_is_counted_is_told_once_each() -> None:
    clocks = ["kitchen clock", "school's gable", "cuckoo"]
    assert [[thing in text for thing in clocks].index(True) for _, text in evidence("6c0f82da")] == [0, 1, 2]
    assert RECORDS["6c0f82da"]["answer"] == len(clocks)
    cousins = {"Beatriz": True, "João": False, "Anselm": True}
    assert [min(cousins, key=f"{text} {' '.join(cousins)}".index) for _, text in evidence("93b7f1c5")] == [
        *cousins  # the first name in each turn
    ]
    assert {name: name in RECORDS["93b7f1c5"]["answer"] for name in cousins} == cousins


@pytest.mark.parametrize(
    ("question", "old", "new"),
    [
        ("2e64c8fb", "six pupils", "we are nine now"),
        ("gpt4_8b17d09e", "third from the left", "in her bread bin"),
        ("f40a6c23", "every Tuesday", "on Thursday"),
        ("b6d9357a", "Ruben is building the stage", "Hanne has taken over"),
    ],
)
def test_an_update_has_an_old_value_and_a_new_one(question: str, old: str, new: str) -> None:
    (_, before), (_, after) = evidence(question)
    assert old in before
    assert new in after
    assert new not in before


def test_the_new_day_of_the_library_was_told_on_such_a_day() -> None:
    assert told("f40a6c23", "waited two days for nothing").weekday() == THURSDAY
    assert RECORDS["f40a6c23"]["answer"] == "Thursday"


@pytest.mark.parametrize(
    ("question", "never_said"),
    [
        ("d17e50b4_abs", "nephew"),
        ("gpt4_0c8e6d31_abs", "aubergine"),
        ("f40a6c23_abs", "bank"),
        ("gpt4_e1957bc4_abs", "wheel"),
    ],
)
def test_what_cannot_be_answered_asks_for_what_was_never_said(question: str, never_said: str) -> None:
    history = [turn["content"] for _, _, turns in sessions(question) for turn in turns]
    assert never_said in RECORDS[question]["question"]
    assert not any(never_said in text for text in history)
    assert RECORDS[question]["answer"].startswith(("You never", "You told me"))


# ---- as the loader reads it ----


@pytest.mark.parametrize("order", ["time", "file"])
def test_it_loads_without_a_warning_in_either_order(order: str) -> None:
    samples = load_longmemeval(FILE, order)  # a warning would be an error here
    assert [sample.sample_id for sample in samples] == list(RECORDS)
    assert {sample.dataset for sample in samples} == {"longmemeval"}
    blank = [
        m for sample in samples for session in sample.sessions for m in session.messages if not m.content
    ]
    assert len(blank) == 2


def test_it_opens_by_its_name_and_nothing_is_mended() -> None:
    demo = open_dataset("demo-longmemeval")
    assert demo.warnings == []
    questions = [case.question for case in demo.cases()]
    assert Counter(q.question_type.value for q in questions if q.gold is not None) == {
        name.replace("-", "_"): count for name, count in TYPES.items()
    }
    assert sum(q.expects_abstention for q in questions) == 4
    assert {q.gold for q in questions} >= {"113", "9", "3", None}


# ---- its README ----


def test_the_readme_counts_what_is_there() -> None:
    readme = (DEMO / "README.md").read_text(encoding="utf-8")
    held = [
        turn for record in RECORDS.values() for session in record["haystack_sessions"] for turn in session
    ]
    slots = sum(len(record["haystack_sessions"]) for record in RECORDS.values())
    assert f"{len(RECORDS)} questions, each with a history of its own: {slots} sessions" in readme
    assert f"{len(held)} turns" in readme
    for name, count in TYPES.items():
        assert re.search(rf"^\| {name} \| {count} \|", readme, re.MULTILINE), name
