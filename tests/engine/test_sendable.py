"""What strangers wrote becomes plain data before it travels from worker to controller."""

from __future__ import annotations

import json
from collections import OrderedDict
from dataclasses import asdict
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from fractions import Fraction
from pathlib import PurePosixPath
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_himga.data.schema import Case, EvidenceRef, QAPair, QuestionType, Sample
from pytest_himga.score.record import Record, record_of, sendable


class Pair(NamedTuple):
    a: int
    b: int


class Colour(StrEnum):
    RED = "red"


class Mixed(str, Enum):  # noqa: UP042 - its str() is "Mixed.RED"
    RED = "red"


class Size(IntEnum):
    BIG = 3


class Shy:
    def __str__(self):
        raise RuntimeError("no text")


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (None, None),
        (True, True),
        (3, 3),
        (0.5, 0.5),
        ("caf\u00e9 \U0001f389", "caf\u00e9 \U0001f389"),
        ("\ud83d", "\\ud83d"),
        (Colour.RED, "red"),
        (Size.BIG, 3),
        (np.float64(0.5), 0.5),
        (np.float32(0.5), 0.5),
        (np.int64(3), 3),
        (np.uint8(3), 3),
        (Mixed.RED, "red"),
        (np.str_("a"), "a"),
        (Decimal("0.5"), 0.5),
        (Fraction(1, 2), 0.5),
        ((1, "a"), [1, "a"]),
        (Pair(1, 2), [1, 2]),
        ({3, 1, 2}, [1, 2, 3]),
        (frozenset({"b", "a"}), ["a", "b"]),
        (OrderedDict(a=(1,)), {"a": [1]}),
        ({Colour.RED: {"\udfff"}}, {"red": ["\\udfff"]}),
        (PurePosixPath("a/b"), "a/b"),
        (b"x", "b'x'"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_each_value_becomes_its_plain_self(value, plain):
    sent = sendable(value)
    assert sent == plain
    assert type(sent) is type(plain)


def test_an_object_that_has_no_text_is_named_by_its_type():
    assert sendable(Shy()) == "<Shy>"


anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(st.characters())
    | st.binary(),
    lambda inner: st.lists(inner) | st.tuples(inner) | st.dictionaries(st.text(st.characters()), inner),
    max_leaves=8,
)


@given(anything)
def test_whatever_comes_out_can_be_encoded_and_is_not_changed_again(value):
    sent = sendable(value)
    json.dumps(sent, ensure_ascii=False).encode("utf-8")
    assert sendable(sent) == sent


def test_a_record_of_dirty_texts_can_be_sent():
    question = QAPair(
        "0",
        "who \ud800?",
        "gold \udfff",
        QuestionType.ADVERSARIAL,
        EvidenceRef(groups=[["D\ud8001"]]),
        trap="\udead",
    )
    record = record_of(
        Case.of("mini", "one", Sample("one", "locomo", [], [question]), question),
        verdict="wrong",
        reason="\udbff",
        k=3,
    )
    record.answer, record.judge, record.votes = "a \ud83d", "j\ud800", ["\ud800"]
    record.score, record.metrics, record.usage = (
        np.float32(0.5),
        {"f1": np.float64(1)},
        {"judge": {"calls": np.int64(2)}},
    )
    record.make_sendable()
    text = json.dumps(asdict(record), ensure_ascii=False)
    text.encode("utf-8")
    assert (record.question, record.gold, record.trap) == ("who \\ud800?", "gold \\udfff", "\\udead")
    assert (record.score, record.metrics, record.usage) == (0.5, {"f1": 1.0}, {"judge": {"calls": 2}})
    assert record.evidence == ["D\\ud8001"]


def test_a_record_is_what_was_asked_before_anything_was_measured():
    question = QAPair(
        "7", "Who?", "Ada", QuestionType.TEMPORAL, EvidenceRef(groups=[["D1:1", "D1:2"], ["D2:1"]])
    )
    case = Case.of("mini", "one", Sample("one", "locomo", [], [question]), question)
    record = record_of(case, verdict="unscored", reason="not run", k=5, judge="evidence", worker="gw1")
    assert record == Record(
        id=case.id, dataset="mini", sample="one", uid=question.uid, type="temporal", expects_abstention=False,
        verdict="unscored", score=None, reason="not run", judge="evidence", question="Who?", gold="Ada",
        evidence=["D1:1", "D2:1"], k=5, worker="gw1",
    )  # fmt: skip


def test_the_line_of_results_jsonl_has_exactly_the_fields_of_version_1():
    question = QAPair("7", "Who?", "Ada", QuestionType.TEMPORAL)
    record = record_of(
        Case.of("mini", "one", Sample("one", "locomo", [], [question]), question),
        verdict="wrong",
        reason="",
        k=5,
    )
    assert list(record.to_json()) == [
        "v", "id", "dataset", "sample", "uid", "type", "expects_abstention", "verdict", "score", "reason", "judge",
        "votes", "outcome", "question", "gold", "trap", "answer", "abstention", "evidence", "found", "recalled",
        "context", "context_chars", "context_tokens", "k", "stage", "ms", "usage", "cached", "worker",
        "errata",
    ]  # fmt: skip
    assert record.to_json()["v"] == 1
