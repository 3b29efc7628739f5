"""Whatever lies at a path is read, or refused in one sentence."""

from __future__ import annotations

import errno
import gzip
import hashlib
import io
import json
import os
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_himga.data.files import Place, decode_record, diagnose, exists, read_records, shown, unpack
from pytest_himga.errors import DatasetError

Write = Callable[..., Path]


def refusal(path: Path | str) -> str:
    """What ``read_records`` says instead of reading: one line, and no chain of tracebacks for a bad file."""
    with pytest.raises(DatasetError) as caught:
        read_records(path)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_file_holds_a_list_of_records(write: Write) -> None:
    path = write([{"a": 1}, {"b": 2}])
    read = read_records(path)
    assert read.records == [{"a": 1}, {"b": 2}]
    assert read.files == [path]
    assert read.origins == [path, path]
    assert read.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()


def test_a_file_may_hold_one_record(write: Write) -> None:
    assert read_records(str(write({"a": 1}))).records == [{"a": 1}]


def test_a_gz_is_the_same_data_as_the_file(write: Write, tmp_path: Path) -> None:
    plain = write([{"a": 1}])
    packed = tmp_path / "chats.json.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    disguised = tmp_path / "packed.json"
    disguised.write_bytes(packed.read_bytes())
    read = read_records(plain)
    for path in (packed, disguised):
        assert read_records(path).records == read.records
        assert read_records(path).sha256 == read.sha256


def test_a_folder_is_read_by_name_and_only_its_json(write: Write, tmp_path: Path) -> None:
    b, a, c = (
        write({"b": 1}, "d/b.json"),
        write([{"a": 1}, {"a": 2}], "d/a.json"),
        write({"c": 1}, "d/c.json"),
    )
    write({"no": 1}, "d/.hidden.json")
    write({"no": 1}, "d/notes.txt")
    write({"no": 1}, "d/deeper.json/inner.json")
    read = read_records(tmp_path / "d")
    assert read.records == [{"a": 1}, {"a": 2}, {"b": 1}, {"c": 1}]
    assert read.files == [a, b, c]
    assert read.origins == [a, a, b, c]


def test_a_folder_s_hash_is_over_names_and_contents(write: Write, tmp_path: Path) -> None:
    first = write({"a": 1}, "d/a.json")
    write({"b": 1}, "d/b.json")
    hashes = [read_records(tmp_path / "d").sha256]
    write({"ignored": 1}, "d/readme.md")
    assert read_records(tmp_path / "d").sha256 == hashes[0]
    write({"a": 2}, "d/a.json")
    hashes.append(read_records(tmp_path / "d").sha256)
    first.rename(tmp_path / "d" / "aa.json")
    hashes.append(read_records(tmp_path / "d").sha256)
    assert len(set(hashes)) == 3


def test_a_byte_order_mark_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "bom.json"
    path.write_bytes(b'\xef\xbb\xbf{"a": "\xc3\xa9"}')
    assert read_records(path).records == [{"a": "é"}]


BROKEN = {
    "empty": (
        b"",
        "the JSON ends too early (Expecting value: line 1, column 1); it seems truncated, fetch it again",
    ),
    "cut off": (
        b'[{"a": 1},\n {"b": 1',
        (
            "the JSON ends too early (Expecting ',' delimiter: line 2, column 9); "
            "it seems truncated, fetch it again"
        ),
    ),
    "cut off in a text": (
        b'[{"a": "and so',
        (
            "the JSON ends too early (Unterminated string starting at: line 1, column 8); "
            "it seems truncated, fetch it again"
        ),
    ),
    "json lines": (
        b'{"a": 1}\n{"b": 2}\n',
        "there is more after the end of the JSON (line 2, column 1); several records stand in one list",
    ),
    "html": (
        b"<html><body>moved</body></html>",
        "is not JSON (Expecting value: line 1, column 1); mend or fetch the file again",
    ),
    "nan": (b'{"a": NaN}', "is not JSON that can be used (NaN is not a JSON value); mend the file"),
    "huge number": (
        b'{"a": 1' + b"0" * 5000 + b"}",
        (
            "is not JSON that can be used (Exceeds the limit (4300 digits) for integer string conversion: "
            "value has 5001 digits); mend the file"
        ),
    ),
    "deep": (b"[" * 200_000, "the JSON is nested too deeply to be a dataset; check the file"),
    "text": (b'"chats"', "holds 'chats'; expected a list of records, or one record (an object)"),
    "null": (b"null", "holds None; expected a list of records, or one record (an object)"),
    "list of texts": (b'[{"a": 1}, "b"]', "record [1] is 'b'; expected an object"),
    "no record": (b"[]", "holds no record; a dataset has at least one sample"),
    "latin-1": (b'{"a": "\xe9"}', "is not UTF-8: byte 0xe9 at offset 7; save the file as UTF-8"),
    "latin-1 after a bom": (
        b'\xef\xbb\xbf{"a": "\xe9"}',
        "is not UTF-8: byte 0xe9 at offset 10; save the file as UTF-8",
    ),
    "utf-16": (b"\xff\xfe{\x00}\x00", "is not UTF-8: byte 0xff at offset 0; save the file as UTF-8"),
}


@pytest.mark.parametrize(("data", "problem"), BROKEN.values(), ids=BROKEN)
def test_a_broken_file_is_one_sentence(data: bytes, problem: str, tmp_path: Path) -> None:
    path = tmp_path / "broken.json"
    path.write_bytes(data)
    assert refusal(path) == f"{path}: {problem}"


def test_a_gz_may_be_none_broken_or_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "chats.json.gz"
    whole = gzip.compress(json.dumps([{"a": list(range(500))}]).encode())
    path.write_bytes(b"[]")
    assert refusal(path) == f"{path}: is called .gz and is not gzip data; rename it or compress it"
    path.write_bytes(whole[:-20])
    assert refusal(path) == f"{path}: the gzip data end too early; the file is truncated, fetch it again"
    path.write_bytes(whole[:-8] + bytes([whole[-8] ^ 1]) + whole[-7:])
    assert refusal(path).startswith(f"{path}: the gzip data are broken (CRC check failed")
    path.write_bytes(whole[:12] + b"\xff" * 40 + whole[52:])
    assert refusal(path).startswith(f"{path}: the gzip data are broken (")


@pytest.mark.parametrize("name", ["nowhere.json", "x" * 400, "nul\0byte.json"], ids=["gone", "long", "nul"])
def test_nothing_there(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    assert not exists(path)
    assert refusal(path) == f"{path}: there is no such file or folder; check the path"


def test_a_folder_without_json(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("hello", encoding="utf-8")
    assert refusal(tmp_path) == (
        f"{tmp_path}: the folder holds no .json file; a dataset's folder holds its records as .json"
    )


def test_a_dangling_link_in_a_folder_is_not_passed_over(write: Write, tmp_path: Path) -> None:
    write({"a": 1}, "d/a.json")
    link = tmp_path / "d" / "b.json"
    link.symlink_to(tmp_path / "gone.json")
    assert refusal(tmp_path / "d") == (
        f"{link}: cannot be read (No such file or directory); check its permissions"
    )


def test_a_file_or_folder_that_may_not_be_read(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write({"a": 1})

    def denied(self: Path) -> bytes:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Path, "read_bytes", denied)
    monkeypatch.setattr(Path, "iterdir", denied)
    for place in (path, tmp_path):
        assert refusal(place) == f"{place}: cannot be read (Permission denied); check its permissions"


def test_a_value_is_quoted_on_one_short_line() -> None:
    assert shown("a\nb\ud800\x1b[31m") == r"'a\nb\ud800\x1b[31m'"
    assert len(shown("x" * 1000)) == 80
    assert shown("x" * 1000).endswith("xxx...")


def test_a_place_says_where() -> None:
    place = Place(Path("chats.json"), "boat")
    assert str(place.error("qa[0]", "is None")) == "chats.json: sample 'boat', field qa[0]: is None"


def test_a_value_is_not_cut_inside_an_escape() -> None:
    for length in range(70, 80):
        assert not shown("x" * length + "\n" * 40).removesuffix("...").endswith("\\")


# -- files that are none, and disks that are full ----------------------------------------------------


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with a name")
@pytest.mark.parametrize("where", ["pipe.json", "folder/pipe.json", "pipe.json.gz"])
def test_a_pipe_or_a_device_is_not_waited_for(where: str, tmp_path: Path) -> None:
    pipe = tmp_path / where
    pipe.parent.mkdir(exist_ok=True)
    os.mkfifo(pipe)
    said = "is a pipe or a device, which cannot be read twice; save the data as a file"
    assert refusal(pipe.parent if "/" in where else pipe) == f"{pipe}: {said}"
    assert refusal(Path("/dev/zero")) == f"/dev/zero: {said}"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_a_full_disk_is_not_blamed_on_the_gzip_data(tmp_path: Path) -> None:
    packed = tmp_path / "chats.json.gz"
    packed.write_bytes(gzip.compress(b"[]"))
    with pytest.raises(OSError, match="No space left"), Path("/dev/full").open("wb", buffering=0) as full:
        unpack(packed, full)


def test_gzip_data_that_cannot_be_read_are_not_called_broken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packed = tmp_path / "chats.json.gz"
    packed.write_bytes(gzip.compress(b"[]"))

    def failing(*_: object) -> bytes:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(gzip.GzipFile, "read", failing)
    with pytest.raises(DatasetError, match=r"gz: cannot be read \(Input/output error\); check"):
        unpack(packed, io.BytesIO())


def test_what_is_wrong_with_a_small_gz_is_not_found_out_by_unpacking_gigabytes(tmp_path: Path) -> None:
    bomb = tmp_path / "chats.json.gz"
    with gzip.open(bomb, "wb") as packed:
        for _ in range(64):
            packed.write(bytes(1 << 20))
    tracemalloc.start()
    diagnose(bomb, 1 << 20)  # says nothing
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 16 << 20
    with pytest.raises(DatasetError, match="is not JSON"):
        diagnose(bomb, 1 << 30)


def test_a_wrong_byte_is_placed_in_the_file_and_not_in_its_record() -> None:
    with pytest.raises(DatasetError, match=r"^chats.json: is not UTF-8: byte 0xe9 at offset 1007; save"):
        decode_record(Path("chats.json"), b'{"a": "\xe9"}', 1000)
