"""Files on disk, read into plain records; the only room that opens a dataset.

Whatever is wrong with a file becomes one ``DatasetError`` sentence here, and ``Place`` builds the same
kind of sentence for the loaders, which know what is wrong *inside* a record.
"""

from __future__ import annotations

import hashlib
import json
import re
import stat
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NoReturn

from pytest_himga.errors import DatasetError

if TYPE_CHECKING:
    from collections.abc import Iterator

_BOM = b"\xef\xbb\xbf"
_GZIP_MAGIC = b"\x1f\x8b"
#: Longest value that an error quotes; enough to find it in the file, short enough for one line.
_LONGEST_SHOWN = 80
_BLOCK = 1 << 20


@dataclass(frozen=True)
class RecordFile:
    """What a dataset's file or folder holds.

    ``origins`` is parallel to ``records``: the file that each came from. ``sha256`` is hex over the
    uncompressed bytes, so that a file and its ``.gz`` are one version of the data; for a folder over
    the sorted (name, sha256) pairs of its files.
    """

    path: Path
    records: list[dict[str, Any]]
    sha256: str
    files: list[Path]
    origins: list[Path]


@dataclass(frozen=True)
class Place:
    """Where a record stands, for sentences about it: the file and the sample."""

    file: Path
    sample: str

    def error(self, field: str, problem: str) -> DatasetError:
        """Make the error to raise about ``field``; ``problem`` shows the value."""
        return DatasetError(self.sentence(field, problem))

    def sentence(self, field: str, problem: str) -> str:
        """Say file, sample, field and problem in one line."""
        return f"{self.file}: sample {shown(self.sample)}, field {field}: {problem}"


def shown(value: object) -> str:
    """Quote ``value`` on one line, escaped and cut to 80 characters."""
    text = repr(value)
    # not cut right behind a backslash, where the dots would read as an escape
    return text if len(text) <= _LONGEST_SHOWN else text[: _LONGEST_SHOWN - 3].rstrip("\\") + "..."


def exists(path: Path) -> bool:
    """Tell whether there is something at ``path``; False where the path cannot even be asked for."""
    try:
        return path.exists()
    except (OSError, ValueError):  # too long, not permitted, a NUL inside
        return False


def read_records(path: Path | str) -> RecordFile:
    """Read the records of a ``.json`` file, a ``.gz`` of one, or a folder of ``.json`` files.

    A file holds a list of records or one record. A folder's files are read in the order of their
    names; hidden files and files that do not end in ``.json`` are ignored. Raises ``DatasetError``,
    and nothing else, for whatever cannot be read.
    """
    path = Path(path)
    files, folder = files_of(path)
    records: list[dict[str, Any]] = []
    origins: list[Path] = []
    digests: list[tuple[str, str]] = []
    for file in files:
        data = _bytes_of(file)
        digests.append((file.name, hashlib.sha256(data).hexdigest()))
        found = _records_of(file, data)
        records += found
        origins += [file] * len(found)
    if not records:
        raise DatasetError(f"{path}: holds no record; a dataset has at least one sample")
    sha256 = hashlib.sha256(json.dumps(digests).encode()).hexdigest() if folder else digests[0][1]
    return RecordFile(path, records, sha256, files, origins)


def files_of(path: Path) -> tuple[list[Path], bool]:
    """List the files of a dataset, in the order in which they are read, and tell whether it is a folder.

    Raises ``DatasetError`` if there is nothing, a folder without ``.json`` files, or something else than
    files: a pipe or a device cannot be read twice, and some have no end.
    """
    if not exists(path):
        raise DatasetError(f"{path}: there is no such file or folder; check the path")
    folder = _is_folder(path)
    files = _json_files(path) if folder else [path]
    for file in files:
        try:
            mode = file.stat().st_mode
        except OSError as error:
            unreadable(file, error)
        if not stat.S_ISREG(mode):
            raise DatasetError(
                f"{file}: is a pipe or a device, which cannot be read twice; save the data as a file"
            )
    return files, folder


def diagnose(file: Path, largest: int) -> None:
    """Raise the ``DatasetError`` that says best what is wrong with a file of at most ``largest`` bytes.

    The bytes are the uncompressed ones: a small ``.gz`` may hold any number of them.
    """
    data = bytearray()
    for block in unpacked_blocks(file) if is_gzip(file) else _plain_blocks(file):
        data += block
        if len(data) > largest:
            return
    _records_of(file, bytes(data))


def decode_record(file: Path, data: bytes, offset: int = 0) -> dict[str, Any]:
    """Decode the JSON object ``data``, which begins at ``offset`` of ``file``; raises ``DatasetError``."""
    content = _json_of(file, _text_of(file, data, offset))
    if not isinstance(content, dict):
        raise DatasetError(f"{file}: holds {shown(content)} where a record was; the file has changed")
    return content


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError as error:
        unreadable(path, error)


def _json_files(folder: Path) -> list[Path]:
    try:
        # a dangling link stays in, so that it is reported and not passed over
        files = [f for f in folder.iterdir() if f.suffix == ".json" and f.name[0] != "." and not f.is_dir()]
    except OSError as error:
        unreadable(folder, error)
    if not files:
        raise DatasetError(
            f"{folder}: the folder holds no .json file; a dataset's folder holds its records as .json"
        )
    return sorted(files, key=lambda file: file.name)


def _bytes_of(file: Path) -> bytes:
    try:
        data = file.read_bytes()
    except OSError as error:
        unreadable(file, error)
    if file.suffix == ".gz" or data.startswith(_GZIP_MAGIC):
        return _decompressed(file, data)
    return data


def is_gzip(file: Path) -> bool:
    """Tell whether ``file`` is gzip data by its first bytes; one that is only called so is an error."""
    try:
        with file.open("rb") as opened:
            magic = opened.read(len(_GZIP_MAGIC))
    except OSError as error:
        unreadable(file, error)
    if file.suffix == ".gz" and magic != _GZIP_MAGIC:
        raise _no_gzip(file)
    return magic == _GZIP_MAGIC


def unpack(file: Path, target: BinaryIO) -> None:
    """Write what the gzip file ``file`` holds into ``target``, block by block.

    Raises ``DatasetError`` for what is wrong with ``file``, and ``OSError`` where ``target`` takes no more.
    """
    target.writelines(unpacked_blocks(file))


def unpacked_blocks(file: Path) -> Iterator[bytes]:
    """What the gzip file ``file`` holds, block by block; raises ``DatasetError`` for what is wrong with it."""
    import gzip

    try:
        with _gzip_errors(file), gzip.open(file) as packed:
            while block := packed.read(_BLOCK):
                yield block
    except OSError as error:
        unreadable(file, error)


def _plain_blocks(file: Path) -> Iterator[bytes]:
    try:
        with file.open("rb") as opened:
            while block := opened.read(_BLOCK):
                yield block
    except OSError as error:
        unreadable(file, error)


def _decompressed(file: Path, data: bytes) -> bytes:
    import gzip

    if not data.startswith(_GZIP_MAGIC):
        raise _no_gzip(file)
    with _gzip_errors(file):
        return gzip.decompress(data)


def _no_gzip(file: Path) -> DatasetError:
    return DatasetError(f"{file}: is called .gz and is not gzip data; rename it or compress it")


@contextmanager
def _gzip_errors(file: Path) -> Iterator[None]:
    import gzip
    import zlib

    try:
        yield
    except EOFError:
        raise DatasetError(
            f"{file}: the gzip data end too early; the file is truncated, fetch it again"
        ) from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise DatasetError(f"{file}: the gzip data are broken ({error}); fetch the file again") from None


def _records_of(file: Path, data: bytes) -> list[dict[str, Any]]:
    content = _json_of(file, _text_of(file, data))
    records = [content] if isinstance(content, dict) else content
    if not isinstance(records, list):
        raise DatasetError(
            f"{file}: holds {shown(content)}; expected a list of records, or one record (an object)"
        )
    for number, record in enumerate(records):
        if not isinstance(record, dict):
            raise DatasetError(f"{file}: record [{number}] is {shown(record)}; expected an object")
    return records


def _text_of(file: Path, data: bytes, offset: int = 0) -> str:
    body = data.removeprefix(_BOM)
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError as error:
        offset += error.start + len(data) - len(body)
        raise DatasetError(
            f"{file}: is not UTF-8: byte 0x{body[error.start]:02x} at offset {offset}; save the file as UTF-8"
        ) from None


def _json_of(file: Path, text: str) -> Any:
    try:
        return json.loads(text, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        # a text cut off inside a string is reported at the string's start, far from the end
        if error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated string"):
            raise DatasetError(
                f"{file}: the JSON ends too early ({error.msg}: {where}); it seems truncated, fetch it again"
            ) from None
        if error.msg == "Extra data":
            raise DatasetError(
                f"{file}: there is more after the end of the JSON ({where}); several records stand in one list"
            ) from None
        raise DatasetError(
            f"{file}: is not JSON ({error.msg}: {where}); mend or fetch the file again"
        ) from None
    except ValueError as error:  # NaN, or a number with more digits than Python converts
        problem = re.sub(r";.*", "", str(error))
        raise DatasetError(f"{file}: is not JSON that can be used ({problem}); mend the file") from None
    except RecursionError:
        raise DatasetError(f"{file}: the JSON is nested too deeply to be a dataset; check the file") from None


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON value")


def unreadable(path: Path, error: OSError) -> NoReturn:
    """Raise what an ``OSError`` means to the user."""
    raise DatasetError(
        f"{path}: cannot be read ({error.strerror or error}); check its permissions"
    ) from error
