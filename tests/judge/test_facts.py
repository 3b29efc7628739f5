"""Dates and numbers are compared as what they are, not as they are written."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_himga.judge.facts import Date, Number, facts_occur, find_facts, fold

MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
          "November", "December")  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        "7 May 2023", "7 May, 2023", "7May, 2023", "7th May 2023", "the 7th of May, 2023", "May 7, 2023",
        "May 7th, 2023", "May 7 2023", "2023-05-07", "2023/05/07", "2023-5-7", "5/7/2023", "on 7 may 2023.",
        "It was (May 7,2023)", "MAY 7, 2023", "7` May 2023", "7\u200b May 2023", "May\u00a07,\u00a02023",
    ],
)  # fmt: skip
def test_one_date_however_it_is_written(text):
    assert find_facts(text).dates == [Date(2023, 5, 7)]
    assert find_facts(text).numbers == []


@pytest.mark.parametrize(
    ("text", "dates"),
    [
        ("May 2023", [Date(2023, 5)]),
        ("June.2021", [Date(2021, 6)]),
        ("2023-05", [Date(2023, 5)]),
        ("7 May", [Date(None, 5, 7)]),
        ("Sept 3rd", [Date(None, 9, 3)]),
        ("16April, 2021", [Date(2021, 4, 16)]),
        ("12Janury, 2021", [Date(2021, 1, 12)]),
        ("in 1998", [Date(1998)]),
        ("December 2-3, 2021", [Date(2021, 12, 2), Date(2021, 12, 3)]),
        ("June 29 to 30, 2021", [Date(2021, 6, 29), Date(2021, 6, 30)]),
        ("2nd and 8th of April", [Date(None, 4, 2), Date(None, 4, 8)]),
        ("13/5/2023", [Date(2023, 5, 13)]),
        ("August", [Date(None, 8)]),
        ("in May", [Date(None, 5)]),
        ("on Friday", [Date(weekday="friday")]),
        ("the week before 9 June 2021", [Date(2021, 6, 9, relation="before")]),
        ("the Sunday prior to June 9th", [Date(None, 6, 9, relation="before"), Date(weekday="sunday")]),
        ("after 9 June 2021", [Date(2021, 6, 9, relation="after")]),
        ("he may march on", []),
        ("those 2 may be hers", []),
        ("the 2010s", []),
        ("45 May 2023", [Date(2023, 5)]),
    ],
)
def test_dates_are_as_precise_as_they_are_written(text, dates):
    found = find_facts(text).dates
    assert sorted(found, key=str) == sorted(dates, key=str)


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("two", ["2"]),
        ("Twenty-one", ["21"]),
        ("twenty one", ["21"]),
        ("ninety", ["90"]),
        ("the third", ["3"]),
        ("the twenty-first", ["21"]),
        ("3rd", ["3"]),
        ("1,250 tulips", ["1250"]),
        ("$40", ["40"]),
        ("40%", ["40"]),
        ("2.50 and 2.0", ["2.5", "2"]),
        ("007", ["7"]),
        ("20-50 seconds", ["20", "50 seconds"]),
        ("7,8,9", ["7", "8", "9"]),
        ("two hundred and five", ["205"]),
        ("a thousand", ["1000"]),
        ("three weeks", ["3 weeks"]),
        ("an 8-year-old", ["8 years"]),
        ("twice", ["2 times"]),
        ("one month", ["1 month"]),
        ("first week", ["1 week"]),
        ("a 6K run in 4D", []),
        ("someone often wonders", []),
        ("9" * 6000, ["9" * 6000]),
    ],
)
def test_numbers_in_digits_and_words(text, numbers):
    assert [str(n) for n in find_facts(text).numbers if not n.weak] == numbers


@pytest.mark.parametrize("text", ["one of them", "the first time", "once", "a week", "one day", "an hour"])
def test_one_is_mostly_no_number_so_it_is_never_demanded(text):
    facts = find_facts(text)
    assert list(facts.demanded) == []
    assert [n.value for n in facts.numbers] == ["1"] * len(facts.numbers)
    assert facts.numbers


@pytest.mark.parametrize(
    ("gold", "answer", "occur"),
    [
        ("7 May 2023", "It happened on May 7th, 2023, a Sunday", True),
        ("7 May 2023", "2023-05-07", True),
        ("May 2023", "7 May 2023", True),
        ("2023", "7 May 2023", True),
        ("7 May", "7 May 2023", True),
        ("7 May 2023", "May 2023", False),
        ("7 May 2023", "7 May", False),
        ("7 May 2023", "8 May 2023", False),
        ("7 May 2023", "7 May 2022", False),
        ("7 May 2023", "7 June 2023", False),
        ("May 2023", "2023", False),
        ("5 and 6 May", "May 5-6", True),
        ("5 and 6 May", "May 5", False),
        ("the week before 9 June 2021", "a week prior to June 9, 2021", True),
        ("the week before 9 June 2021", "9 June 2021", False),
        ("9 June 2021", "the week before 9 June 2021", False),
        ("the week after 9 June 2021", "the week before 9 June 2021", False),
        ("the Friday before 9 June", "the Sunday before 9 June", False),
        ("two", "2", True),
        ("2", "two of them", True),
        ("three", "two", False),
        ("two weeks", "2 weeks", True),
        ("two weeks", "two", True),
        ("two weeks", "two months", False),
        ("2 hrs", "two hours", True),
        ("one month", "a month", True),
        ("one month", "two months", False),
        ("twice", "two times", True),
        ("1,250", "1250 tulips", True),
        ("2000", "2,000", True),
        ("2,000", "2000", True),
        ("7", "on 7 May", False),
        ("$10", "10 dollars", True),
        ("1", "one", True),
        ("the lighthouse", "nothing at all", True),
    ],
)
def test_every_fact_of_the_gold_must_be_in_the_answer(gold, answer, occur):
    assert facts_occur(gold, answer) is occur


def test_facts_read_like_a_person_would_say_them():
    assert str(Date(2023, 5, 7)) == "7 May 2023"
    assert str(Date(2023, 5, relation="before")) == "before May 2023"
    assert str(Date(weekday="friday")) == "Friday"
    assert str(Number("3", "week")) == "3 weeks"
    assert str(Number("1", "week")) == "1 week"


def test_what_is_left_is_the_text_without_its_facts():
    words = find_facts("The week of May 7, 2023 with three dogs").rest.replace("|", " ").split()
    assert words == ["the", "week", "of", "with", "dogs"]


def test_folding_leaves_one_typography():
    assert (
        fold("\u2018kiln\u2019 \u201coven\u201d 3\u20135 har\u200bbour \uff12")
        == "'kiln' \"oven\" 3-5 harbour 2"
    )


@given(st.text(st.characters()))
def test_any_text_has_its_own_facts(text):
    assert facts_occur(text, text)


@given(st.dates().filter(lambda d: 1000 <= d.year < 3000))
def test_any_date_is_found_in_every_form(date):
    month = MONTHS[date.month - 1]  # not strftime, which speaks the locale's language
    forms = [
        date.isoformat(),
        f"{date.day} {month}, {date.year}",
        f"{month} {date.day}, {date.year}",
        f"{date.day}{month} {date.year}",
        f"the {date.day}th of {month[:3]}. {date.year}",
    ]
    for form in forms:
        assert find_facts(form).dates == [Date(date.year, date.month, date.day)], form
