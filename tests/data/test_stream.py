"""Splitting a file into its records: the same records as a parser that reads it whole, or a sentence."""

from __future__ import annotations

import hashlib
import io
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_himga.data import stream
from pytest_himga.data.stream import split_records
from pytest_himga.errors import DatasetError

FILE = Path("chats.json")

halves = st.sampled_from(["\ud800", "\udfff\ud801", "\\ud800"])
texts = (
    st.text(max_size=12)
    | halves
    | st.sampled_from(['}, {"question_id": 1}', "\\", '"', '\\"}', "]", "}", "\u2028"])
)
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
records = st.dictionaries(texts, values, max_size=4)


def split(data: bytes, file: Path = FILE) -> list[tuple[int, bytes]]:
    return [(chunk.offset, bytes(chunk.data)) for chunk in split_records(file, io.BytesIO(data))]


@given(
    st.lists(records, max_size=5),
    st.sampled_from([None, 1, 4]),
    st.sampled_from([b"", b"\xef\xbb\xbf"]),
    st.integers(1, 60),
)
@settings(max_examples=300)
def test_the_records_are_those_that_a_parser_finds_wherever_the_blocks_end(found, indent, bom, block):
    data = bom + json.dumps(found, indent=indent).encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stream, "BLOCK", block)
        pieces = split(data)
    assert [json.loads(piece) for _, piece in pieces] == found
    assert all(data[offset : offset + len(piece)] == piece for offset, piece in pieces)


def test_letters_need_no_escape():
    found = [{"caf\u00e9": "\U0001f600\u2028"}, {"a": "\u00e9" * 40}]
    pieces = split(json.dumps(found, ensure_ascii=False).encode())
    assert [json.loads(piece) for _, piece in pieces] == found


@given(records, st.integers(1, 60))
def test_one_record_instead_of_a_list_is_one_record(record, block):
    data = f" {json.dumps(record)}\n".encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stream, "BLOCK", block)
        ((offset, piece),) = split(data)
    assert json.loads(piece) == record
    assert offset == 1


def test_every_byte_goes_through_the_digest(tmp_path):
    data = json.dumps([{"a": "x" * 50}] * 9).encode() + b"\n\n"
    digest = hashlib.sha256()
    found = list(split_records(FILE, io.BytesIO(data), digest))
    assert len(found) == 9
    assert digest.hexdigest() == hashlib.sha256(data).hexdigest()


def test_a_file_that_ends_anywhere_is_never_taken_for_a_whole_one(tmp_path):
    whole = json.dumps(
        [{"a": "\u00e9\n", "b": [1, -2.5e3, True, None]}, {"c": {"d": "e"}}], indent=1
    ).encode()
    for end in range(len(whole) - 1):
        file = tmp_path / "cut.json"
        file.write_bytes(whole[:end])
        with pytest.raises(DatasetError, match=r"^\S*cut\.json: ") as caught:
            split(whole[:end], file)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "is not JSON|ends too early"),
        (b"  \n", "is not JSON|ends too early"),
        (b"7", "expected a list of records, or one record"),
        (b'"text"', "expected a list of records, or one record"),
        (b"[1, 2]", r"record \[0\] is 1; expected an object"),
        (b'[{"a": 1}, null]', r"record \[1\] is None; expected an object"),
        (b'[{"a": 1} {"b": 2}]', "is not JSON .*line 1, column 11"),
        (b'[{"a": 1},]', "is not JSON .*line 1"),
        (b'[{"a": 1}] x', "there is more after the end of the JSON"),
        (b'{"a": 1} {"b": 2}', "there is more after the end of the JSON"),
        (b'[{"a": nul}]', "is not JSON .*line 1, column 8"),
        (b'[{"a": NaN}]', "NaN is not a JSON value"),
        (b'[{"a": "\\q"}]', "is not JSON .*escape"),
        (b"[" * 100_000, "ends too early|too deeply|expected an object"),
        (b'[{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}]", "nested too deeply"),
    ],
)
def test_what_is_no_list_of_records_is_said_in_a_sentence(tmp_path, data, said):
    file = tmp_path / "bad.json"
    file.write_bytes(data)
    with pytest.raises(DatasetError, match=said):
        split(data, file)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (
            b'[{"a": 1}, {"b": nul}]',
            r"is not JSON that can be used \(JSON is malformed: invalid character at byte 1\d\)",
        ),
        (b'[{"a": 1}, {"b": "x', r"ends too early \(.* at byte \d+\); it seems truncated, fetch it again"),
        (b'[{"a": 1}, {"b": 2}', r"ends too early"),
        (b'[{"a": 1}, 3]', r"expected an object at byte 11"),
    ],
)
def test_a_file_too_large_to_be_read_whole_has_its_error_placed_by_the_byte(
    tmp_path, monkeypatch, data, said
):
    monkeypatch.setattr(stream, "READ_WHOLE", 0)
    file = tmp_path / "large.json"
    file.write_bytes(data)
    with pytest.raises(DatasetError, match=said):
        split(data, file)


def test_half_a_pair_in_one_record_does_not_slow_down_the_others(tmp_path, monkeypatch):
    blanked = []
    pattern = stream._HALF_PAIR

    class Counted:
        def sub(self, *args):
            blanked.append(args)
            return pattern.sub(*args)

    monkeypatch.setattr(stream, "_HALF_PAIR", Counted())
    records = [{"n": n, "text": "half \ud83d" if n in {0, 70} else "whole \U0001f600"} for n in range(100)]
    file = tmp_path / "chats.json"
    file.write_text(json.dumps(records), encoding="utf-8")
    with file.open("rb", buffering=0) as source:
        found = [json.loads(bytes(chunk.data)) for chunk in stream.split_records(file, source)]
    assert found == records
    assert len(blanked) == 2
