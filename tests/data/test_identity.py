"""A question keeps its name, whatever happens around it."""

from __future__ import annotations

import re
import warnings
from copy import deepcopy
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_himga.data.family import RawRecord, ReadOptions
from pytest_himga.data.identity import slug_of_name, uid_of
from pytest_himga.data.locomo import read

if TYPE_CHECKING:
    import random

Record = dict[str, Any]
QUESTIONS = st.lists(
    st.tuples(st.text(min_size=1).filter(str.strip), st.integers(1, 5)), min_size=1, max_size=12
)


def uids(questions: list[tuple[str, int]], labels: str = "locomo", answer: str = "x") -> list[str]:
    """The uids that the loader gives to (question, category) pairs."""
    qa = [{"question": question, "answer": answer, "category": category} for question, category in questions]
    record = RawRecord({"conversation": {}, "qa": qa}, 0, Path("made-up.json"))
    sample = read(record, ReadOptions(labels=labels))
    return [pair.uid for pair in sample.qa_pairs]


@given(QUESTIONS, st.randoms(use_true_random=False))
def test_reordering_moves_no_uid(questions: list[tuple[str, int]], shuffle: random.Random) -> None:
    moved = list(questions)
    shuffle.shuffle(moved)
    assert sorted(zip(moved, uids(moved), strict=True)) == sorted(
        zip(questions, uids(questions), strict=True)
    )


@given(QUESTIONS, QUESTIONS, st.data())
def test_inserting_moves_no_uid(
    questions: list[tuple[str, int]], more: list[tuple[str, int]], data: st.DataObject
) -> None:
    at = data.draw(st.integers(0, len(questions)))
    assert set(uids(questions)) <= set(uids(questions[:at] + more + questions[at:]))


@given(QUESTIONS)
def test_neither_labels_nor_golds_move_a_uid(questions: list[tuple[str, int]]) -> None:
    assert uids(questions) == uids(questions, labels="himga") == uids(questions, answer="corrected")


@given(QUESTIONS)
def test_every_uid_is_unique_short_and_plain(questions: list[tuple[str, int]]) -> None:
    names = uids(questions)
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[a-z0-9-]{1,40}-[0-9a-f]{6}", name) for name in names)


def test_two_questions_whose_hashes_meet_stay_two() -> None:
    # Without a latin letter a slug tells nothing apart, and 6 hex digits meet among some thousands.
    seen: dict[str, str] = {}
    number = 0
    while True:
        question = "".join(chr(0x4E00 + int(digit)) for digit in str(number))
        if (uid := uid_of(question, 4, 0)) in seen:
            break
        seen[uid] = question
        number += 1
    names = uids([(seen[uid], 4), (question, 4)])
    assert names == [uid, uid_of(question, 4, 1)]


@pytest.mark.parametrize(
    ("name", "slug"),
    [
        ("conv-26", "conv-26"),
        ("a.b", "a-b"),
        ("../../etc/passwd", "etc-passwd"),
        ("a::b[c]@d", "a-b-c-d"),
        ("été", "t"),
    ],
)
def test_a_name_becomes_a_slug(name: str, slug: str) -> None:
    assert slug_of_name(name) == slug


@given(st.text())
def test_a_slug_is_safe_in_ids_and_paths(name: str) -> None:
    assert re.fullmatch(r"[A-Za-z0-9_-]{1,60}", slug_of_name(name))


def test_long_names_that_differ_at_the_end_stay_two() -> None:
    long = "../" + "session/" * 40
    assert len({slug_of_name(long + end) for end in ("a", "b")}) == 2


def test_a_warning_does_not_depend_on_uids(record: Record) -> None:
    path = Path("made-up.json")
    twice = deepcopy(record)
    twice["qa"] *= 2
    said: list[str] = []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sample = read(RawRecord(twice, 0, path, said), ReadOptions())
    assert len({pair.uid for pair in sample.qa_pairs}) == 4
    assert said == []
