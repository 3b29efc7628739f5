"""Skimming a LongMemEval record: the same briefs as reading it, or none; and no turn is decoded."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from longmemeval_records import Record, bakery, put, read_one, turn

from pytest_himga.data.family import Skimmed
from pytest_himga.data.longmemeval import LONGMEMEVAL, skim, type_labels
from pytest_himga.data.schema import Brief, Sample
from pytest_himga.errors import DatasetError

if TYPE_CHECKING:
    from collections.abc import Sequence

Change = tuple["Sequence[str | int]", Any]

#: What real files hold, and what else changes nothing about how a record is skimmed.
USUAL: list[Change] = [
    (["question_id"], "5eed0001_abs"),
    (["question_id"], "gpt4_0"),
    *((["question_type"], name) for name in type_labels()),
    *((["question_type"], name.replace("_", "-")) for name in type_labels()),
    (["question"], 'Wie heißt er? \u2014 \U0001f35e "so" \\ \n\t\u2028'),
    (["question"], " Spaces stay. "),
    (["answer"], 120),
    (["answer"], -7),
    (["answer"], 0),
    (["answer"], 12345678901234567890123),
    (["answer"], "9 days. 10 days would do as well."),
    (["answer_session_ids"], []),
    (["answer_session_ids"], ["elsewhere"]),
    (["answer_session_ids"], ...),
    (["question_date"], "2023/06/05 (Mon) 00:00"),  # before the minute of the last session
    (["question_date"], "2023-06-09T12:00:00+02:00"),
    (["haystack_dates", 0], "2023/06/04 (Sun) 23:59"),  # not sorted
    (["haystack_session_ids", 0], "answer_77aa_1"),  # two with one id
    (["haystack_sessions", 0], [turn("assistant", " ")]),
    (["haystack_sessions", 1, 0, "has_answer"], "yes"),
    (["difficulty"], {"nested": [1, 2.5, None]}),
]

#: What must be read whole: mended, refused, or right and of a kind that real files do not have.
ODD: list[Change] = [
    *(
        ([key], value)
        for key in ("question_id", "question_type", "question", "answer", "question_date")
        for value in (..., None, "", " ", True, 1.5, [], {"a": 1})
    ),
    (["question_id"], 26),
    (["question_type"], "abstention"),
    (["question_type"], "temporal"),
    (["question_date"], "2023/06/04 (Sun) 12:00"),  # a session of a later day
    (["question_date"], "June"),
    *(
        ([key], value)
        for key in ("haystack_dates", "haystack_session_ids", "haystack_sessions")
        for value in (..., None, [], "x", {}, 3)
    ),
    (["haystack_dates", 1], None),
    (["haystack_dates", 1], "2023/06/31 (Sat) 21:40"),
    (["haystack_dates", 1], 20230602),
    (["haystack_dates", 1], "2024/06/02 (Sun) 08:15"),
    (["haystack_session_ids", 1], None),
    (["haystack_session_ids", 1], 5),
    (["haystack_sessions", 1], []),
    (["haystack_sessions", 1], None),
    (["haystack_sessions", 1], "hello"),
    (["haystack_sessions", 1], {"role": "user"}),
    (["haystack_sessions", 1], ["hello"]),
    (["answer_session_ids"], None),
    (["answer_session_ids"], "answer_77aa_1"),
    (["answer_session_ids"], [1]),
]


def changed(*changes: Change) -> Record:
    data = bakery()
    for path, value in changes:
        try:
            put(data, path, value)
        except (KeyError, IndexError, TypeError):
            continue  # an earlier change took the place of this one away
    return data


def without_refs(sample: Sample) -> Skimmed:
    return Skimmed(sample.sample_id, [replace(Brief.of(question), refs=[]) for question in sample.qa_pairs])


@st.composite
def written(draw: st.DrawFn, data: Record) -> bytes:
    """The record as JSON, in one of the ways to write it."""
    keys = draw(st.permutations(list(data)))
    return json.dumps(
        {key: data[key] for key in keys},
        ensure_ascii=draw(st.booleans()),
        indent=draw(st.sampled_from([None, 0, 2])),
        separators=draw(st.sampled_from([(",", ":"), (", ", ": "), (" , ", " : ")])),
    ).encode()


@given(st.data(), st.lists(st.sampled_from(USUAL), max_size=4))
def test_a_usual_record_gives_the_briefs_of_its_sample(data: st.DataObject, changes: list[Change]) -> None:
    raw = data.draw(written(changed(*changes)))
    sample, said = read_one(json.loads(raw))
    assert said == []
    assert skim(raw) == skim(memoryview(bytearray(raw))) == without_refs(sample)


@given(st.data(), st.text(min_size=1), st.text(min_size=1) | st.integers(), st.text(min_size=1))
def test_any_text_is_skimmed_as_it_is_read(
    data: st.DataObject, question: str, answer: str | int, name: str
) -> None:
    raw = data.draw(written(bakery(question=question, answer=answer, question_id=name)))
    if all(str(text).strip() for text in (question, answer, name)):
        assert skim(raw) == without_refs(read_one(json.loads(raw))[0])
    else:
        assert skim(raw) is None


@pytest.mark.parametrize("change", USUAL, ids=str)
def test_each_usual_change_alone_is_skimmed(change: Change) -> None:
    data = changed(change)
    sample, said = read_one(data)
    assert said == []
    assert skim(json.dumps(data).encode()) == without_refs(sample)


@pytest.mark.parametrize("change", ODD, ids=str)
def test_each_odd_change_alone_is_left_to_the_reader(change: Change) -> None:
    assert skim(json.dumps(changed(change)).encode()) is None


@given(st.data(), st.lists(st.sampled_from(USUAL + ODD), max_size=4))
def test_a_skim_never_says_other_than_the_reader(data: st.DataObject, changes: list[Change]) -> None:
    raw = data.draw(written(changed(*changes)))
    skimmed = skim(raw)
    if skimmed is None:
        return
    sample, said = read_one(json.loads(raw))
    assert skimmed == without_refs(sample)
    assert said == []


def test_what_an_unanswerable_question_keeps() -> None:
    skimmed = skim(json.dumps(bakery(question_id="5eed0001_abs", answer="You never said.")).encode())
    assert skimmed is not None
    (brief,) = skimmed.briefs
    assert (skimmed.sample_id, brief.question_id) == ("5eed0001_abs", "5eed0001_abs")
    assert (brief.expects_abstention, brief.gold, brief.trap, brief.refs) == (True, None, None, [])


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (["content"], 5),
        (["content"], ...),
        (["role"], None),
        (["has_answer"], {"deep": [[[]]]}),
    ],
)
def test_turns_are_stepped_over_whatever_they_hold(path: list[str], value: object) -> None:
    data = bakery()
    put(data, ["haystack_sessions", 1, 1, *path], value)
    expected = skim(json.dumps(bakery()).encode())
    assert expected is not None
    assert skim(json.dumps(data).encode()) == expected


def test_a_broken_turn_is_found_when_its_sample_is_read() -> None:
    data = bakery()
    data["haystack_sessions"][2][0]["content"] = 5
    assert skim(json.dumps(data).encode()) is not None
    with pytest.raises(DatasetError, match=r"haystack_sessions\[2\]\[0\]\.content: is 5; expected a text"):
        read_one(data)


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"{",
        b"null",
        b"[]",
        b"{}",
        b'{"question_id": "x"',
        b'{"question_id": NaN}',
        b'{"question_id": "\xff"}',
        b"[" * 100_000,
        b'{"haystack_sessions": ' + b"[" * 100_000,
        json.dumps(bakery()).encode()[:-1],
        json.dumps(bakery()).encode() + b"]",
        json.dumps(bakery()).replace("Gustav now.", "Gustav \\q now.").encode(),
        json.dumps(bakery(question="\ud800?")).encode(),
        json.dumps(bakery()).replace("Gustav now.", "Gustav \\ud800 now.").encode(),
        b"\xef\xbb\xbf" + json.dumps(bakery()).encode(),
    ],
    ids=lambda raw: ascii(raw[:24]),
)
def test_what_is_no_whole_record_is_left_to_the_reader(raw: bytes) -> None:
    assert skim(raw) is None


@given(st.binary(max_size=60))
def test_no_bytes_make_it_raise(raw: bytes) -> None:
    assert skim(raw) is None


def test_a_key_may_be_escaped_and_the_last_of_two_counts() -> None:
    text = json.dumps(bakery())
    escaped = text.replace('"question_id"', '"question\\u005fid"')
    twice = text.replace('{"question_id"', '{"question": "Who?", "question_id"', 1)
    for raw in (escaped, twice):
        assert skim(raw.encode()) == without_refs(read_one(json.loads(raw))[0])


def test_the_buffer_is_free_again_afterwards() -> None:
    raw = json.dumps(bakery()).encode()
    for content in (raw, raw[:-1], raw.replace(b"2023/06/02", b"2023/16/02")):
        buffer = bytearray(content)
        view = memoryview(buffer)
        skim(view)
        view.release()
        buffer.clear()  # a BufferError if a view of it were still alive
        assert not buffer


def test_the_family_skims_and_loads_msgspec_only_then() -> None:
    assert LONGMEMEVAL.skim is skim
    code = """
        import sys
        import pytest_himga.data.longmemeval as longmemeval
        assert "msgspec" not in sys.modules
        assert longmemeval.skim(b"{}") is None
        assert "msgspec" in sys.modules
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True)
