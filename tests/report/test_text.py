"""Text of strangers, made fit for a terminal."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_himga.report.text import clean, labelled, one_line, plain, wrapped

# all of Unicode with surrogates, which hypothesis leaves out of plain ``text()``
anything = st.text(st.characters(exclude_categories=()), max_size=200)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[2J", r"\x1b[2J"),
        ("a\x00b", r"a\x00b"),
        ("half \ud83d pair", r"half \ud83d pair"),
        ("left\u202eright", r"left\u202eright"),
        ("\u2066isolated\u2069", r"\u2066isolated\u2069"),
        ("bell\x07 del\x7f next\x85", r"bell\x07 del\x7f next\x85"),
        ("over\rwritten", r"over\rwritten"),
        ("two\u2028lines", r"two\u2028lines"),
        ("kept\n\ttoo", "kept\n\ttoo"),
        ("from\r\nWindows", "from\nWindows"),
        ("caf\u00e9 \u2615 \U0001f600", "caf\u00e9 \u2615 \U0001f600"),
        (r"a \x1b that was typed", r"a \x1b that was typed"),
    ],
)
def test_what_is_shown_as_an_escape_and_what_stays(text: str, shown: str) -> None:
    assert clean(text) == shown


@given(anything)
def test_cleaned_text_can_be_sent_and_has_no_other_line_break(text: str) -> None:
    cleaned = clean(text)
    cleaned.encode("utf-8")
    assert "".join(cleaned.splitlines()) == cleaned.replace("\n", "")
    assert clean(cleaned) == cleaned
    assert plain(text).isascii()


@given(anything, st.integers(0, 60))
def test_one_line_is_one_line_and_no_longer_than_asked(text: str, width: int) -> None:
    line = one_line(text, width)
    assert len(line) <= width
    assert len(line.splitlines()) <= 1
    assert line == line.strip()


def test_one_line_cuts_with_dots_only_if_it_must() -> None:
    assert one_line("  a \n b\t c ", 5) == "a b c"
    assert one_line("a long road home", 9) == "a long..."
    assert one_line("abcdef", 2) == ".."


def test_wrapping_keeps_paragraphs_and_option_names_whole() -> None:
    assert wrapped("one two three\n\nuse --himga-min-score", 12) == [
        "one two",
        "three",
        "",
        "use --himga-",
        "min-score",
    ]
    assert wrapped("use --himga-min-score", 18) == ["use", "--himga-min-score"]
    assert wrapped(" \n ", 10) == []


def test_a_label_stands_beside_its_text() -> None:
    assert labelled("gold", "a red kite over Lisbon", width=20, column=6) == [
        "gold  a red kite",
        "      over Lisbon",
    ]
    assert labelled("gold", "", width=20, column=6) == ["gold"]


def test_text_beyond_the_most_lines_is_cut_with_dots() -> None:
    lines = labelled("said", "one two three four five six", width=17, column=6, most=2)
    assert lines == ["said  one two", "      three fo..."]


def test_where_there_is_no_room_the_text_goes_below_its_label() -> None:
    assert labelled("provenance", "locomo, k 10", width=14, column=12) == ["provenance", "  locomo, k 10"]
    assert labelled("a long label", "text", width=40, column=6) == ["a long label", "  text"]


@given(anything, anything, st.integers(1, 60), st.integers(0, 30), st.none() | st.integers(0, 5))
def test_labelled_lines_fit_and_have_no_trailing_blanks(
    label: str, text: str, width: int, column: int, most: int | None
) -> None:
    lines = labelled(label, text, width=width, column=column, most=most)
    for line in lines:
        assert len(line) <= width
        assert line == line.rstrip()
        assert "\n" not in line
    if most is not None:
        assert len(lines) <= most + 1
