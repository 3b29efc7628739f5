"""The `himga` command as a user has it: a folder, data of each format in it, and a cache of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from chat_records import chat
from loopback import Web

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# The small records of the data room's tests.
sys.path.append(str(Path(__file__).parents[1] / "data"))

from pytest_himga.cli import main


@dataclass
class Outcome:
    """What a command line came to."""

    status: int
    out: str
    err: str

    @property
    def sentence(self) -> str:
        """The one line of an error; there is nothing else."""
        assert (self.out, self.err.count("\n")) == ("", 1), self
        return self.err.removesuffix("\n")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder; nothing is in the cache."""
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return folder


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """Where the platform keeps datasets."""
    return tmp_path / "cache" / "pytest-himga" / "datasets"


@pytest.fixture
def himga(capsys: pytest.CaptureFixture[str]) -> Callable[..., Outcome]:
    """Run the command in this process."""

    def run(*arguments: object) -> Outcome:
        capsys.readouterr()
        status = main([str(argument) for argument in arguments])
        return Outcome(status, *capsys.readouterr())

    return run


@pytest.fixture
def start(here: Path) -> Callable[..., subprocess.Popen[bytes]]:
    """Start the command in a process of its own, for what ends one."""

    def popen(*arguments: object, **kwargs: object) -> subprocess.Popen[bytes]:
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | kwargs
        return subprocess.Popen([sys.executable, "-m", "pytest_himga.cli", *map(str, arguments)], **pipes)

    return popen


@pytest.fixture
def write(here: Path) -> Callable[[str, object], Path]:
    """Write JSON to a file below the current folder."""

    def write_json(name: str, content: object) -> Path:
        path = here / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(content), encoding="utf-8")
        return path

    return write_json


@pytest.fixture
def web(monkeypatch: pytest.MonkeyPatch) -> Iterator[Web]:
    """A mirror on loopback that has one file, whatever is asked for."""
    for name in list(os.environ):
        if name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    with Web(json.dumps([chat()]).encode()) as server:
        monkeypatch.setenv("HIMGA_DATA_MIRROR", server.root)
        yield server
