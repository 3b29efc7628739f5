"""Hundreds of warnings become a few lines, and none is lost."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pytest_himga.commands.data_warnings import MOST_SHOWN, kinds_of, warning_lines
from pytest_himga.data.files import Place

FILE = Path("data/chats.json")


def lines(*warnings: str, files: tuple[Path, ...] = (FILE,)) -> list[str]:
    return list(warning_lines(warnings, files))


def test_a_warning_that_comes_up_once_is_itself_without_its_file() -> None:
    assert lines(
        "data/chats.json: sample 'a', field qa[3].answer: missing; only retrieval can be scored"
    ) == ["sample 'a', field qa[3].answer: missing; only retrieval can be scored"]


def test_those_that_differ_in_places_and_values_only_are_one_kind() -> None:
    said = [
        Place(FILE, sample).sentence(f"qa[{n}].evidence[0]", f"{value!r} names no turn; it is left out")
        for n, (sample, value) in enumerate([("a", "D1:9"), ("it's b", "D'"), ("c", 'D"1'), ("d", "")])
    ]
    assert lines(*said) == [
        "4 x qa[N].evidence[N]: ... names no turn; it is left out",
        "    sample 'a', qa[0].evidence[0]: 'D1:9'",
        '    sample "it\'s b", qa[1].evidence[0]: "D\'"',
        "    sample 'c', qa[2].evidence[0]: 'D\"1'",
        "    sample 'd', qa[3].evidence[0]: ''",
    ]


def test_an_apostrophe_in_a_sentence_is_no_quotation() -> None:
    said = [f"{FILE}: sample 's', field ids[{n}]: [{n}] is no session's id; it's left out" for n in range(2)]
    assert lines(*said)[0] == "2 x ids[N]: [...] is no session's id; it's left out"


def test_only_the_first_places_of_a_kind_are_named() -> None:
    said = [f"{FILE}: sample '{n}', field question_date: missing" for n in range(MOST_SHOWN + 3)]
    found = lines(*said)
    assert found[0] == f"{MOST_SHOWN + 3} x question_date: missing"
    assert found[1:] == [*(f"    sample '{n}', question_date" for n in range(MOST_SHOWN)), "    and 3 more"]


def test_ids_in_parentheses_and_counts_do_not_make_a_kind() -> None:
    files = (Path("d/a.json"), Path("d/b.json"))
    said = [
        "d/a.json: sample 'main': 2 facts never planted (F1, F2); nobody knows",
        "d/b.json: sample 'b': 31 facts never planted (F3, F4 and 29 more); nobody knows",
        "d/b.json: sample 'b': 2 questions without an answer (Q1, Q2)",
    ]
    assert lines(*said, files=files) == [
        "2 x ... facts never planted ...; nobody knows",
        "    a.json: sample 'main': (F1, F2)",
        "    b.json: sample 'b': (F3, F4 and 29 more)",
        "b.json: sample 'b': 2 questions without an answer (Q1, Q2)",
    ]


def test_a_value_that_was_cut_is_a_value() -> None:
    said = [
        Place(FILE, "s").sentence("type", f"{shown} is no type") for shown in ("'" + "a" * 76 + "...", "'b'")
    ]
    assert lines(*said)[0] == "2 x type: ... is no type"


@pytest.mark.parametrize("pair", [("answer: missing", "question: missing"), ("a: missing", "a: is 'x'")])
def test_other_fields_and_problems_are_other_kinds(pair: tuple[str, str]) -> None:
    assert len(lines(*(f"{FILE}: sample 's', field {text}" for text in pair))) == 2


@example([("0" * 58 + "\x1f\x08\U00018d09\ud7fc", "a", value) for value in ("", "0")])
@given(st.lists(st.tuples(st.text(), st.sampled_from(["a", "b[0]", "b[17]"]), st.text())))
def test_every_warning_is_counted_once(said: list[tuple[str, str, str]]) -> None:
    sentences = [Place(FILE, sample).sentence(field, f"{value!r} is odd") for sample, field, value in said]
    kinds = kinds_of(sentences, [FILE])
    assert sum(kind.count for kind in kinds) == len(sentences)
    assert len(kinds) <= 2
    assert all(len(kind.places) == min(kind.count, MOST_SHOWN) for kind in kinds)
