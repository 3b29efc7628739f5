"""Splitting a file into its records: the same records as a parser that reads it whole, or a sentence."""

from __future__ import annotations

import hashlib
import io
import itertools
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_himga.data import stream
from pytest_himga.data.family import Skimmed
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


@pytest.mark.slow
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


# -- with a skim, which accepts or refuses what the file's first key suggests --------------------------

#: Texts and objects that look like the beginning of the next record.
lures = st.sampled_from(['}, {"id": ', '"id"', '\\"id\\"', '{"id": 1}', '}, {\\"id\\": 2}, {'])
nested = st.recursive(
    lures | st.integers(0, 9) | halves,
    lambda inner: st.lists(inner, max_size=3) | st.builds(lambda v: {"id": v, "x": v}, inner),
    max_leaves=6,
)
listed = st.lists(st.builds(lambda v, w: {"id": v, "more": w}, nested, nested), min_size=1, max_size=6)


def skim_of(refused: set[int]):
    """Accepts whole JSON with a number of its own, but for the calls that are refused."""
    from msgspec import DecodeError, Raw
    from msgspec.json import Decoder

    decode = Decoder(dict[str, Raw]).decode
    calls = []

    def skim(view: memoryview) -> Skimmed | None:
        calls.append(bytes(view))
        try:
            decode(view)
        except DecodeError:
            return None
        return None if len(calls) in refused else Skimmed(str(len(calls)), [])

    return skim


@given(listed, st.sets(st.integers(1, 8)), st.sampled_from([None, 1, 40]), st.integers(1, 60))
@settings(max_examples=300)
def test_a_guess_at_where_a_record_ends_changes_nothing(found, refused, indent, block):
    data = json.dumps(found, indent=indent).encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stream, "BLOCK", block)
        chunks = [
            (chunk.offset, bytes(chunk.data), chunk.skimmed)
            for chunk in split_records(FILE, io.BytesIO(data), None, skim_of(refused))
        ]
    assert [json.loads(piece) for _, piece, _ in chunks] == found
    assert [(offset, piece) for offset, piece, _ in chunks] == split(data)


def test_records_that_begin_alike_are_read_in_one_pass():
    data = json.dumps([{"id": n, "more": [{"id": 7}, {"x": '}, {"id": 1'}] * 20} for n in range(9)]).encode()
    seen = []

    def skim(view: memoryview) -> Skimmed | None:
        seen.append(bytes(view))
        try:
            json.loads(bytes(view))
        except ValueError:
            return None
        return Skimmed(str(len(seen)), [])

    chunks = [(bytes(c.data), c.skimmed) for c in split_records(FILE, io.BytesIO(data), None, skim)]
    assert [json.loads(piece)["id"] for piece, _ in chunks] == list(range(9))
    assert all(skimmed is not None for _, skimmed in chunks)


def test_a_key_that_never_comes_again_does_not_make_it_read_the_whole_file(monkeypatch):
    monkeypatch.setattr(stream, "BLOCK", 100)
    records = [{"first": 1}, *({"n": n, "text": "x" * 50} for n in range(500))]
    source = io.BytesIO(json.dumps(records).encode())
    read = []

    def skim(view: memoryview) -> Skimmed:
        read.append(source.tell())
        return Skimmed(str(len(read)), [])

    assert sum(1 for _ in split_records(FILE, source, None, skim)) == 501
    assert read[0] <= 400
    assert max(b - a for a, b in itertools.pairwise(read)) <= 800
