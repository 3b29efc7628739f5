"""Data room: the part of the demo in LoCoMo's format keeps its promises, read here as plain JSON without any loader."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import date, datetime, time, timedelta
from pathlib import Path
from typing import Any

import pytest

DEMO = Path(__file__).resolve().parents[2] / "pytest_himga" / "data" / "demo"
TEXT = (DEMO / "locomo.json").read_text(encoding="utf-8")
RECORDS: dict[str, dict[str, Any]] = {record["sample_id"]: record for record in json.loads(TEXT)}

MONTHS = ["January", "February", "March", "April", "May", "June", "July"]
MONTHS += ["August", "September", "October", "November", "December"]
MONDAY, WEDNESDAY, THURSDAY, FRIDAY, SATURDAY, SUNDAY = 0, 2, 3, 4, 5, 6

each_sample = pytest.mark.parametrize("sample", RECORDS)


def sessions(sample: str) -> dict[int, list[dict[str, Any]]]:
    conversation = RECORDS[sample]["conversation"]
    return {
        int(key.removeprefix("session_")): turns
        for key, turns in conversation.items()
        if re.fullmatch(r"session_\d+", key)
    }


def turns(sample: str) -> dict[str, dict[str, Any]]:
    return {turn["dia_id"]: turn for session in sessions(sample).values() for turn in session}


def session_of(turn_id: str) -> int:
    return int(turn_id[1:].partition(":")[0])


def when(sample: str, session: int) -> datetime:
    """The session's date and time, by hand: strptime's month names would follow the locale."""
    raw = RECORDS[sample]["conversation"][f"session_{session}_date_time"]
    shape = re.fullmatch(r"(1[0-2]|[1-9]):([0-5]\d) ([ap])m on ([1-9]\d?) ([A-Z][a-z]+), (20\d\d)", raw)
    assert shape, f"{sample}, session {session}: {raw!r} is not like '1:56 pm on 8 May, 2023'"
    hour, minute, half, day, month, year = shape.groups()
    on = date(int(year), MONTHS.index(month) + 1, int(day))
    return datetime.combine(on, time(int(hour) % 12 + 12 * (half == "p"), int(minute)))


def questions(sample: str | None = None) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, record in RECORDS.items():
        if sample in (None, name):
            yield from ((name, entry) for entry in record["qa"])


def question(sample: str, start: str) -> dict[str, Any]:
    """The one question of the sample that begins so (of twins: the first)."""
    found = [entry for _, entry in questions(sample) if entry["question"].startswith(start)]
    assert len({entry["question"] for entry in found}) == 1, f"{sample}: {start!r}"
    return found[0]


# ---- shape ----


def test_four_conversations_of_people_who_do_not_meet() -> None:
    assert list(RECORDS) == ["boat", "bakery", "birthday", "bees"]
    speakers = [r["conversation"][key] for r in RECORDS.values() for key in ("speaker_a", "speaker_b")]
    assert len(set(speakers)) == 8
    assert sum(len(sessions(sample)) for sample in RECORDS) == 16


@each_sample
def test_ten_turns_are_far_from_the_whole_conversation(sample: str) -> None:
    assert len(turns(sample)) >= 60
    assert all(12 <= len(session) <= 22 for session in sessions(sample).values())


@each_sample
def test_sessions_are_numbered_dated_and_in_order(sample: str) -> None:
    numbers = list(sessions(sample))
    assert numbers == list(range(1, len(numbers) + 1))
    conversation_keys = {"speaker_a", "speaker_b"}
    conversation_keys |= {f"session_{n}{end}" for n in numbers for end in ("", "_date_time")}
    assert set(RECORDS[sample]["conversation"]) == conversation_keys
    moments = [when(sample, n) for n in numbers]
    assert moments == sorted(set(moments))


def test_one_session_begins_just_after_midnight() -> None:
    starts = [when(sample, n).time() for sample in RECORDS for n in sessions(sample)]
    assert sum(start.hour == 0 for start in starts) == 1, "12:xx am is the hour that parsers get wrong"
    assert sum(start.hour == 12 for start in starts) == 1, "and 12:xx pm is the other one"


@each_sample
def test_every_turn_is_whole(sample: str) -> None:
    conversation = RECORDS[sample]["conversation"]
    both = {conversation["speaker_a"], conversation["speaker_b"]}
    for n, session in sessions(sample).items():
        assert [turn["dia_id"] for turn in session] == [f"D{n}:{i}" for i in range(1, len(session) + 1)]
        assert {turn["speaker"] for turn in session} == both
        for turn in session:
            assert set(turn) - {"blip_caption"} == {"speaker", "dia_id", "text"}
            for words in (turn["text"], turn.get("blip_caption", "x")):
                assert words == " ".join(words.split()) != ""
                assert words.isprintable()


@each_sample
def test_every_question_is_whole_and_its_evidence_is_there(sample: str) -> None:
    known = turns(sample)
    assert len(RECORDS[sample]["qa"]) >= 14
    for _, entry in questions(sample):
        assert entry["question"] == entry["question"].strip() != ""
        assert entry["question"].endswith("?")
        assert entry["evidence"], entry["question"]
        assert len(set(entry["evidence"])) == len(entry["evidence"])
        assert set(entry["evidence"]) <= set(known), entry["question"]
        keys = {"question", "evidence", "category"}
        keys |= {"adversarial_answer"} if entry["category"] == 5 else {"answer"}
        assert set(entry) - ({"answer"} if entry["category"] == 5 else set()) == keys
        for gold in (entry.get("answer", "x"), entry.get("adversarial_answer", "x")):
            assert str(gold).strip() == str(gold) != ""


@each_sample
def test_the_optional_parts_agree_with_the_conversation(sample: str) -> None:
    """LoCoMo's three summaries are optional: `boat` has them all, the others have none."""
    record = RECORDS[sample]
    extra = set(record) - {"sample_id", "conversation", "qa"}
    if sample != "boat":
        assert not extra
        return
    assert extra == {"event_summary", "observation", "session_summary"}
    numbers = list(sessions(sample))
    assert list(record["event_summary"]) == [f"events_session_{n}" for n in numbers]
    assert list(record["session_summary"]) == [f"session_{n}_summary" for n in numbers]
    assert list(record["observation"]) == [f"session_{n}_observation" for n in numbers]
    known = turns(sample)
    for n in numbers:
        day = record["conversation"][f"session_{n}_date_time"].partition(" on ")[2]
        assert record["event_summary"][f"events_session_{n}"]["date"] == day
        for who, facts in record["observation"][f"session_{n}_observation"].items():
            assert all(known[turn_id]["speaker"] == who for _, turn_id in facts)
            assert {session_of(turn_id) for _, turn_id in facts} == {n}


def test_nothing_leads_out_of_the_file() -> None:
    assert "http" not in TEXT
    assert "img_url" not in TEXT
    assert '"query"' not in TEXT


def test_accents_and_emoji_are_written_as_themselves() -> None:
    assert "\\u" not in TEXT
    assert all(sign in TEXT for sign in ("Gérard", "Tromsø", "øre", "£", "🐝"))
    asked = "".join(entry["question"] + str(entry.get("answer", "")) for _, entry in questions())
    assert not asked.isascii(), "a question and a gold should meet other letters too"


# ---- what it covers ----


def test_every_category_has_its_share() -> None:
    assert Counter(entry["category"] for _, entry in questions()) == {1: 11, 2: 13, 3: 7, 4: 25, 5: 10}
    for sample in RECORDS:
        assert {entry["category"] for _, entry in questions(sample)} == {1, 2, 3, 4, 5}


def test_one_gold_is_a_number_and_the_rest_are_text() -> None:
    golds = [entry["answer"] for _, entry in questions() if "answer" in entry]
    assert [gold for gold in golds if not isinstance(gold, str)] == [1968]


def test_one_adversarial_question_can_be_answered() -> None:
    both = [(sample, e) for sample, e in questions() if "answer" in e and "adversarial_answer" in e]
    assert [(sample, e["category"], e["answer"], e["adversarial_answer"]) for sample, e in both] == [
        ("bakery", 5, "No", "Yes")
    ]


def test_alternatives_stand_in_open_domain_golds_only() -> None:
    with_semicolon = {e["category"] for _, e in questions() if ";" in str(e.get("answer", ""))}
    assert with_semicolon == {3}


def test_the_only_twins_are_the_two_that_were_meant() -> None:
    texts = Counter((sample, entry["question"]) for sample, entry in questions())
    twins = {}
    for (sample, text), times in texts.items():
        if times > 1:
            pair = [entry for _, entry in questions(sample) if entry["question"] == text]
            assert [e["answer"] for e in pair] == [pair[0]["answer"]] * 2
            assert [e["evidence"] for e in pair] == [pair[0]["evidence"]] * 2
            twins[sample] = sorted(entry["category"] for entry in pair)
    assert twins == {"bakery": [4, 4], "birthday": [1, 2]}


def test_some_answers_take_turns_from_several_sessions() -> None:
    spread = [
        (sample, len({session_of(turn_id) for turn_id in entry["evidence"]}))
        for sample, entry in questions()
        if "answer" in entry
    ]
    assert {sample for sample, apart in spread if apart >= 2} == set(RECORDS)
    assert max(apart for _, apart in spread) >= 3


@pytest.mark.parametrize(
    ("sample", "start", "word"),
    [
        ("boat", "What kind of bird", "heron"),
        ("boat", "Which words are engraved", "next summer"),
        ("boat", "What was the boat called", "archie meads"),
        ("bakery", "Which spice", "nutmeg"),
        ("birthday", "What breed of dog", "spaniel"),
        ("birthday", "What colour is the fabric", "mustard yellow"),
        ("bees", "What is the bee wearing", "football socks"),
        ("bees", "Which prize", "third prize"),
    ],
)
def test_a_caption_alone_holds_the_fact(sample: str, start: str, word: str) -> None:
    entry = question(sample, start)
    assert word in entry["answer"].lower()
    holders = [i for i, turn in turns(sample).items() if word in turn.get("blip_caption", "").lower()]
    assert len(holders) == 1
    assert holders[0] in entry["evidence"]
    said = [i for i, turn in turns(sample).items() if word in turn["text"].lower()]
    # Wilf quotes himself, "next summer, love"; that these are the bell's words stands in the photo only
    assert said == (["D1:13"] if word == "next summer" else [])


@pytest.mark.parametrize(
    ("sample", "start", "asked_about", "true_of"),
    [
        ("boat", "How did Noor sprain", "Noor", "Wilf"),
        ("boat", "What was Bosun following", "Bosun", "Tesla"),
        ("boat", "Where does Wilf's brother", "Wilf", "Noor"),
        ("bakery", "When is Kofi's knee", "Kofi", "Odile"),
        ("birthday", "What did Magnus drop", "Magnus", "Hattie"),
        ("birthday", "Which tune did Hattie", "Hattie", "Magnus"),
        ("bees", "Where was Agnes stung while", "Agnes", "Dele"),
        ("bees", "What name did Farida", "Farida", "Dele"),
    ],
)
def test_a_trap_is_true_of_somebody_else(sample: str, start: str, asked_about: str, true_of: str) -> None:
    entry = question(sample, start)
    assert entry["category"] == 5
    assert asked_about in entry["question"]
    (tempting,) = (turns(sample)[turn_id] for turn_id in entry["evidence"])
    assert true_of in (tempting["speaker"], tempting["text"].split()[0])
    assert asked_about not in (tempting["speaker"], tempting["text"].split()[0])


@pytest.mark.parametrize(
    ("sample", "earlier", "later"),
    [
        ("boat", "For which Saturday was the launch planned", "To what date was the launch moved"),
        ("bakery", "Which bread did Odile first mean", "Which bread did Odile decide"),
        ("birthday", "Which hall was pencilled in", "Where did the family celebrate"),
        ("birthday", "Who was meant to do the music and the speech", "Who was to make the speech after"),
        ("bees", "On which ward was Dele working", "Which ward did Dele ask"),
        ("bees", "What did Agnes mean to do in the autumn", "Why did Agnes take the notice"),
    ],
)
def test_a_fact_that_changes_is_asked_before_and_after(sample: str, earlier: str, later: str) -> None:
    before, after = question(sample, earlier), question(sample, later)
    assert before["answer"] != after["answer"]
    assert max(map(session_of, before["evidence"])) < min(map(session_of, after["evidence"]))


# ---- dates, reckoned from the day of the telling ----


def last(weekday: int, today: date) -> date:
    """The nearest such weekday before ``today``, never ``today`` itself."""
    return today - timedelta(days=(today.weekday() - weekday - 1) % 7 + 1)


def coming(weekday: int, today: date) -> date:
    return today + timedelta(days=(weekday - today.weekday() - 1) % 7 + 1)


Reckoning = Callable[[date], date]
TOLD: list[tuple[str, str, str, Reckoning]] = [
    ("boat", "When was the auction", "the day before yesterday", lambda t: t - timedelta(days=2)),
    ("boat", "On what date did the engine", "on Sunday", lambda t: last(SUNDAY, t)),
    (
        "boat",
        "For which Saturday",
        "the first Saturday of June",
        lambda t: coming(SATURDAY, date(t.year, 5, 31)),
    ),
    ("boat", "To what date was the launch", "the sixteenth of September", lambda t: date(t.year, 9, 16)),
    ("bakery", "When was Kofi's diploma exam", "on 20 May", lambda t: date(t.year, 5, 20)),
    ("bakery", "When did Kofi sit", "five extra weeks", lambda t: date(t.year, 5, 20) + timedelta(weeks=5)),
    ("bakery", "On what date were Odile", "two weeks ago yesterday", lambda t: t - timedelta(days=15)),
    (
        "birthday",
        "Once the party had been put back",
        "two days before the party",
        lambda t: date(t.year, 9, 21) - timedelta(days=2),
    ),
    ("birthday", "When do the Gutter Grannies", "the day after tomorrow", lambda t: t + timedelta(days=2)),
    ("bees", "On what date did Dele leave the jar", "on Friday", lambda t: last(FRIDAY, t)),
    (
        "bees",
        "By what date did Matron",
        "three full weeks",
        lambda t: last(SATURDAY, date(t.year, 10, 1)) - timedelta(weeks=3),
    ),
    ("bees", "On what date did Dele start", "on Monday", lambda t: coming(MONDAY, t)),
]


@pytest.mark.parametrize(("sample", "start", "phrase", "reckon"), TOLD)
def test_a_told_date_comes_to_the_gold(sample: str, start: str, phrase: str, reckon: Reckoning) -> None:
    entry = question(sample, start)
    (teller,) = (i for i in entry["evidence"] if phrase in turns(sample)[i]["text"])
    day = reckon(when(sample, session_of(teller)).date())
    assert entry["answer"] == f"{day.day} {MONTHS[day.month - 1]} {day.year}"


def test_years_apart_are_counted_to_the_party() -> None:
    entry = question("birthday", "For how many years")
    (teller,) = entry["evidence"]
    fell_out = int(re.findall(r"\b2\d{3}\b", turns("birthday")[teller]["text"])[0])
    assert entry["answer"] == f"{when('birthday', 4).year - fell_out} years"


def test_no_temporal_gold_was_left_unreckoned() -> None:
    reckoned = {question(sample, start)["question"] for sample, start, *_ in TOLD}
    temporal = {entry["question"] for _, entry in questions() if entry["category"] == 2}
    assert temporal - reckoned == {question("birthday", "For how many years")["question"]}


@pytest.mark.parametrize(
    ("sample", "teller", "phrase", "holds"),
    [
        ("boat", "D2:14", "six weeks off", lambda t: (date(2023, 6, 3) - t).days // 7 == 6),
        ("boat", "D3:1", "afloat yesterday", lambda t: t - timedelta(days=1) == date(2023, 6, 3)),
        (
            "boat",
            "D3:4",
            "last Wednesday of May",
            lambda t: last(WEDNESDAY, date(t.year, 6, 1)) < last(FRIDAY, t),
        ),
        ("boat", "D4:1", "Ten days afloat", lambda t: t - timedelta(days=10) == date(2023, 9, 16)),
        ("bakery", "D1:1", "Three weeks ago", lambda t: (t - timedelta(weeks=3)).weekday() == MONDAY),
        ("birthday", "D1:1", "a Saturday", lambda t: date(t.year, 9, 7).weekday() == SATURDAY),
        ("birthday", "D2:5", "the 21st", lambda t: date(t.year, 9, 7) + timedelta(14) == date(2024, 9, 21)),
        ("birthday", "D4:15", "three breakfasts", lambda t: t - date(2024, 9, 21) == timedelta(days=3)),
        ("birthday", "D4:21", "a Thursday league", lambda t: (t + timedelta(days=2)).weekday() == THURSDAY),
        ("bees", "D4:1", "A year ago today", lambda t: MONTHS[t.month - 1] in turns("bees")["D1:5"]["text"]),
    ],
)
def test_the_story_agrees_with_its_calendar(
    sample: str, teller: str, phrase: str, holds: Callable[[date], bool]
) -> None:
    assert phrase in turns(sample)[teller]["text"]
    assert holds(when(sample, session_of(teller)).date())


# ---- its README ----


@each_sample
def test_the_readme_counts_what_is_there(sample: str) -> None:
    readme = (DEMO / "README.md").read_text(encoding="utf-8")
    row = next(line for line in readme.splitlines() if line.startswith(f"| `{sample}`"))
    assert f"{len(sessions(sample))} / {len(turns(sample))}" in row
    assert f"{sum(1 for _ in questions())} questions" in readme
