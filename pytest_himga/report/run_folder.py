"""What a run leaves on disk, in the report room: ``.himga/runs/<run id>/`` and who may write there.

::

    .himga/
      .gitignore                     "*": the folder hides itself from git
      runs/20250131T120000Z-3fa9/    one folder per run, sorted by name = sorted by start
        results.jsonl                one line per question, in dataset order  (controller, at the end)
        run.json                     what was run, and what came of it        (controller, at the end)
        contexts/                    what the memory returned                 (any worker, as it goes)

Nothing here raises because of the disk. The first thing that cannot be written becomes one sentence,
``RunFolder.problem``, and the run goes on without leaving anything more.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import secrets
import shutil
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, BinaryIO, TypedDict

from pytest_himga.report.contexts import Contexts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from pytest_himga.score.record import Record

RUN_VERSION = 1
#: Runs that stay when a newer one ends: enough to look back over a day's work, small on disk.
KEPT_RUNS = 20
#: A run that has not written its ``run.json`` may still be going; it is left alone for this long.
SPARED = timedelta(days=1)

#: The keys of a line of ``results.jsonl``, in their order.
RESULT_FIELDS = (
    "v", "id", "dataset", "sample", "uid", "type", "expects_abstention", "verdict", "score", "reason",
    "judge", "votes", "outcome", "question", "gold", "trap", "answer", "abstention", "evidence", "found",
    "recalled", "context", "context_chars", "context_tokens", "k", "stage", "ms", "usage", "cached", "worker",
    "errata",
)  # fmt: skip

_RUN_ID = re.compile(r"(\d{8}T\d{6})Z-[0-9a-f]{4}", re.ASCII)
_STAMP = "%Y%m%dT%H%M%S"
#: JSON allows these inside a text, but many readers take them for the end of a line.
_LINE_ENDS = (("\x85", "\\u0085"), ("\u2028", "\\u2028"), ("\u2029", "\\u2029"))


class DatasetEntry(TypedDict):
    """One dataset in ``run.json``: what was read, and which part of it was asked."""

    name: str
    family: str
    sha256: str
    labels: str | None
    errata: Any
    session_order: str | None
    unverified: str | None
    selection: Any
    items: int


class BackendEntry(TypedDict):
    """The memory under test in ``run.json``."""

    name: str
    version: str | None
    options: Mapping[str, Any]


def new_run_id(now: datetime | None = None) -> str:
    """``YYYYMMDDTHHMMSSZ-xxxx``: the start in UTC, and 4 random hex for runs of the same second.

    ``now`` is any aware time; the default is the clock.
    """
    start = (now or datetime.now(UTC)).astimezone(UTC)
    return f"{start.strftime(_STAMP)}Z-{secrets.token_hex(2)}"


def run_document(
    *,
    run: str,
    plugin: str,
    python: str,
    datasets: Sequence[DatasetEntry],
    backend: BackendEntry,
    k: int,
    answerer: str | None,
    judge: str,
    profiles: Mapping[str, str],
    models: Mapping[str, Any],
    judge_probe: Mapping[str, Any],
    settings: Mapping[str, Any],
    totals: Mapping[str, Mapping[str, float | None]],
    gates: Sequence[Any],
    exit_status: int,
) -> dict[str, Any]:
    """Put together ``run.json``, version 1, with its keys in their order.

    ``profiles`` maps a prompt's profile to the sha256 of its text, ``models`` a role to the model in it,
    ``judge_probe`` a dataset to how its judge did on known answers (empty where it was not tried), and
    ``totals`` a dataset to its named numbers, None where nothing was measured.
    """
    return {
        "v": RUN_VERSION,
        "run": run,
        "plugin": plugin,
        "python": python,
        "datasets": [_ordered(entry, DatasetEntry) for entry in datasets],
        "backend": _ordered(backend, BackendEntry),
        "k": k,
        "answerer": answerer,
        "judge": judge,
        "profiles": dict(profiles),
        "models": dict(models),
        "judge_probe": dict(judge_probe),
        "settings": dict(settings),
        "totals": {dataset: dict(numbers) for dataset, numbers in totals.items()},
        "gates": list(gates),
        "exit": exit_status,
    }


class RunFolder:
    """The folder of one run; made when the first thing is written into it, by whichever process.

    ``root`` is the root directory of the project. Every process of a run (the controller and each xdist
    worker) makes its own ``RunFolder`` with the same ``run_id``. ``problem`` is None, or one sentence
    saying what could not be written first; nothing is written after that.
    """

    def __init__(self, root: Path, run_id: str) -> None:
        self.run_id = run_id
        self._started = _start_of(run_id)
        self.himga = root / ".himga"
        self.runs = self.himga / "runs"
        self.path = self.runs / run_id
        self.contexts = self.path / "contexts"
        self.problem: str | None = None
        self._contexts = Contexts(self.contexts)
        self._ready = False
        self._count = itertools.count()
        self._token = secrets.token_hex(4)  # two machines on one shared disk may share a process id

    # ------------------------------------------------------------------ contexts

    def put_context(self, text: str) -> str | None:
        """Keep what a memory returned; the sha256 (hex) of its UTF-8 text, None if it cannot be kept."""
        if self.problem:
            return None
        try:
            self._make_folders()
            return self._contexts.put(text)
        except OSError as error:
            self._give_up(error)
            return None

    def read_context(self, sha: str) -> str:
        """The text kept under ``sha``; ``HimgaError`` if there is none or it is not what was written."""
        return self._contexts.read(sha)

    def close(self) -> None:
        """Close this process's files."""
        self._contexts.close()

    # ------------------------------------------------------------------ results

    def write_results(self, records: Iterable[Record]) -> Path | None:
        """Write ``results.jsonl``, the records as they come; its path, None if it cannot be written."""
        return self._write_whole("results.jsonl", lambda file: file.writelines(map(_result_line, records)))

    def write_run(self, data: dict[str, Any]) -> Path | None:
        """Write ``run.json``; its path, None if it cannot be written.

        NaN and infinity are a ValueError: what was not measured is null.
        """
        try:
            text = json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False, default=_path_as_text)
        except ValueError as error:
            msg = "run.json cannot hold NaN or infinity: give None for a number that was not measured"
            raise ValueError(msg) from error
        return self._write_whole("run.json", lambda file: file.write(_encoded(text + "\n")))

    def _write_whole(self, name: str, fill: Callable[[BinaryIO], object]) -> Path | None:
        """Write a file beside its place, sync it and put it there in one step: readers see all or nothing."""
        if self.problem:
            return None
        target = self.path / name
        temporary = self.path / f".{name}.{self._own_suffix()}"
        try:
            self._make_folders()
            try:
                with temporary.open("xb") as file:
                    fill(file)
                    file.flush()
                    os.fsync(file.fileno())
                temporary.replace(target)
            except BaseException:
                _remove(temporary)
                raise
        except OSError as error:
            self._give_up(error)
            return None
        return target

    # ------------------------------------------------------------------ old runs

    def prune(self, keep: int = KEPT_RUNS) -> None:
        """Delete all but the newest ``keep`` runs; this run is always among those that stay.

        Only folders that are named like a run are touched, and a link to a folder is none. A run that
        started within a day before this one and has no ``run.json`` may still be going: it stays.
        What cannot be deleted stays, without a word.
        """
        spared_from = (self._started - SPARED).strftime(_STAMP)
        others = sorted((folder for folder in self._run_folders() if folder != self.path), reverse=True)
        for folder in others[max(keep - 1, 0) :]:
            if folder.name < spared_from or _is_finished(folder):
                shutil.rmtree(folder, ignore_errors=True)

    def _run_folders(self) -> Iterator[Path]:
        with suppress(OSError), os.scandir(self.runs) as entries:
            for entry in entries:
                if _RUN_ID.fullmatch(entry.name) and entry.is_dir(follow_symlinks=False):
                    yield self.runs / entry.name

    # ------------------------------------------------------------------ the disk

    def _make_folders(self) -> None:
        if self._ready:
            return
        self.contexts.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError), (self.himga / ".gitignore").open("x", encoding="utf-8") as file:
            file.write("*\n")
        self._ready = True

    def _own_suffix(self) -> str:
        """Make the end of a file name that no other process, thread or call uses."""
        return f"{os.getpid()}-{self._token}-{next(self._count)}.tmp"

    def _give_up(self, error: OSError) -> None:
        if self.problem is None:
            self.problem = (
                f"{self.himga} cannot be written ({_why(error)}): this run's results and contexts are not "
                f"kept; free or change that path, or run from another root directory"
            )


def _result_line(record: Record) -> bytes:
    data = record.to_json()
    ordered = {name: data[name] for name in RESULT_FIELDS}
    try:
        text = json.dumps(ordered, ensure_ascii=False, allow_nan=False)
    except ValueError:
        # A memory may score what it returns with NaN, which JSON does not have.
        text = json.dumps(_finite(ordered), ensure_ascii=False, allow_nan=False)
    for character, escape in _LINE_ENDS:
        text = text.replace(character, escape)
    return _encoded(text + "\n")


def _encoded(text: str) -> bytes:
    r"""Encode a JSON text; the ``\udXXX`` that comes of a lone surrogate is JSON's own escape too."""
    return text.encode("utf-8", "backslashreplace")


def _finite(value: Any) -> Any:
    """``value`` with None for every NaN and infinity in it."""
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    if isinstance(value, float) and not abs(value) < float("inf"):
        return None
    return value


def _path_as_text(value: object) -> str:
    if isinstance(value, PurePath):
        return str(value)
    msg = f"run.json: {value!r} is not plain data"
    raise TypeError(msg)


def _ordered(entry: Mapping[str, Any], shape: type) -> dict[str, Any]:
    """``entry`` with the keys of a TypedDict, in its order; a KeyError names one that is missing."""
    return {key: entry[key] for key in shape.__annotations__}


def _start_of(run_id: str) -> datetime:
    """Read the start from a run id, which becomes a path and may come from another process."""
    with suppress(ValueError):
        if _RUN_ID.fullmatch(run_id):
            return datetime.strptime(run_id.split("Z", 1)[0], _STAMP).replace(tzinfo=UTC)
    msg = f"run id {run_id!r}: expected YYYYMMDDTHHMMSSZ-xxxx, as new_run_id() makes it"
    raise ValueError(msg)


def _is_finished(folder: Path) -> bool:
    try:
        return (folder / "run.json").exists()
    except OSError:  # nobody lets us look: leave it
        return False


def _why(error: OSError) -> str:
    """``No space left on device``, and which file it was about where the system says so."""
    reason = error.strerror or str(error) or type(error).__name__
    return reason if error.filename is None else f"{reason}: {error.filename}"


def _remove(path: Path) -> None:
    with suppress(OSError):
        path.unlink()
