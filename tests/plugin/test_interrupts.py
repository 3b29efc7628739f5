"""A run that is cut short, and a machine that does not play along: what was measured stays, and says what it is."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

#: Plugins that many have installed and no story here is about; without them a run takes half the time.
OTHERS = ("asyncio", "anyio", "cov", "syrupy", "rerunfailures", "hypothesispytest", "timeout", "randomly")
WITHOUT_OTHERS = [f"-pno:{name}" for name in OTHERS]
FERRY = "himga/mini/harbour::which-ferry-sails-on-thursdays-6fd671"
#: The garden is measured, the harbour is not.
HALF_A_TABLE = [
    "mini           n  correct   score  95% interval  unscored  missed  n/a",
    "3 open_domain  1        -       -             -         1       -    0",
    "4 single_hop   5        2  1.0000   0.342-1.000         3       0    0",
    "overall        8        4  1.0000   0.510-1.000         4       0    0",
    "note        4 questions not run (the run stopped early):",
    "            himga/mini/harbour::which-ferry-sails-on-thursdays-6fd671,",
]

MEMORIES = """
import asyncio
import os
import signal
import time
from pathlib import Path

from pytest_himga.memory import Recalled

FERRY = "Which ferry sails on Thursdays?"


class Memory:
    def __init__(self):
        self.turns = []

    def reset(self):
        self.turns = []

    def ingest(self, message, session):
        self.turns.append(message)

    def retrieve(self, query):
        if query == FERRY:
            self.odd()
        return [Recalled(turn.content, turn_ids=[turn.turn_id]) for turn in self.turns]

    def odd(self):
        pass


class Slow(Memory):
    def odd(self):
        Path("started").touch()
        time.sleep(30)


class AsyncSlow(Memory):
    async def retrieve(self, query):
        if query == FERRY:
            Path("started").touch()
            await asyncio.sleep(30)
        return super().retrieve("")


class Killed(Memory):
    def odd(self):
        os.kill(os.getpid(), signal.SIGKILL)


class Raises(Memory):
    def odd(self):
        raise ConnectionError("the store is offline")


class Forgets(Memory):
    def retrieve(self, query):
        return []
"""


@pytest.fixture
def project(project):
    """The small project with the memories of these stories."""
    project.pytester.makeini("[pytest]\npythonpath = .\n")
    project.write("mems.py", MEMORIES)
    return project


# -- Ctrl-C ------------------------------------------------------------------------------------------


def interrupted(project, *args: str) -> tuple[int, list[str], float]:
    """Start pytest, press Ctrl-C while a retrieve hangs: exit status, lines, and the seconds it then took."""
    command = [sys.executable, "-m", "pytest", *WITHOUT_OTHERS, "--himga-dataset=mini.json", *args]
    process = subprocess.Popen(
        command,
        cwd=project.path,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        start_new_session=True,
    )
    try:
        waited_since = time.monotonic()
        while not (project.path / "started").exists():
            assert time.monotonic() - waited_since < 30, "no retrieve began"
            time.sleep(0.02)
        # With workers, give the reports of the other sample a moment to arrive.
        time.sleep(0.5)
        pressed = time.monotonic()
        os.killpg(process.pid, signal.SIGINT)  # a terminal sends it to the workers too
        output, _ = process.communicate(timeout=30)
        return process.returncode, output.splitlines(), time.monotonic() - pressed
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)


@pytest.mark.skipif(sys.platform == "win32", reason="signals to a group of processes")
@pytest.mark.parametrize(
    ("memory", "workers"),
    [("Slow", "-n0"), ("AsyncSlow", "-n0"), ("Slow", "-n2")],
    ids=lambda value: value.strip("-"),
)
def test_ctrl_c_ends_the_run_at_once_and_the_half_table_says_that_it_is_one(project, memory, workers):
    status, lines, took = interrupted(
        project, workers, f"--himga-backend=mems:{memory}", "--himga-min-score=0.9"
    )

    assert status == pytest.ExitCode.INTERRUPTED
    assert took < 6
    pytest.LineMatcher(lines).fnmatch_lines([*HALF_A_TABLE, "!* KeyboardInterrupt !*"])
    text = "\n".join(lines)
    for noise in ("Traceback", "INTERNALERROR", "pytest_himga/", "::gate"):
        assert noise not in text
    # The files tell the same.
    run = project.run_json()
    assert (run["exit"], run["gates"]) == (2, [])
    unscored = {
        record["id"]: record["reason"] for record in project.results() if record["verdict"] == "unscored"
    }
    assert len(unscored) == 4
    assert set(unscored.values()) == {"not run: the run stopped early"}


# -- pytest stops it ---------------------------------------------------------------------------------


def test_x_stops_at_the_first_unscored_question_and_evaluates_no_gate(project):
    result = project.run(*WITHOUT_OTHERS, "-x", "--himga-min-score=0.9", backend="mems:Raises")

    assert result.ret == 6
    result.assert_outcomes(passed=4, skipped=1, errors=1)
    result.stdout.fnmatch_lines(
        [
            "overall        8        4  1.0000   0.510-1.000         4       0    0",
            "note        3 questions not run (the run stopped early):",
            "!* stopping after 1 failures !*",
            f"himga: not measured (exit status 6): 1 question unscored (*): {FERRY}; 3 questions not run (*): *",
        ]
    )
    assert "::gate" not in result.stdout.str()


def test_x_stops_at_a_wrong_answer_and_that_is_proof(project):
    result = project.run(*WITHOUT_OTHERS, "-x", backend="mems:Forgets")

    assert result.ret == 1
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "overall        8        0  0.0000   0.000-0.793         7       1    0",
            "note        8 questions not run (the run stopped early):",
        ]
    )


def test_a_time_limit_on_items_leaves_the_question_unscored_and_the_others_measured(project):
    """pytest-timeout breaks into our waiting; what it breaks is the question, not the run."""
    with_timeout = [option for option in WITHOUT_OTHERS if option != "-pno:timeout"]

    result = project.run_apart(*with_timeout, "--timeout=0.5", backend="mems:Slow")

    assert result.ret == 6
    result.assert_outcomes(passed=6, skipped=2, errors=1)
    result.stdout.fnmatch_lines(
        [
            f"*_ ERROR at call of {FERRY} *",
            "unscored: its call was stopped: Failed: Timeout (>0.5s) from pytest-timeout.",
            "question    Which ferry sails on Thursdays?",
            "note        fed more than once: mini/harbour",
            f"UNSCORED {FERRY} - unscored...",
            f"himga: not measured (exit status 6): 1 question unscored (its call was stopped: *): {FERRY}",
        ]
    )
    assert "def runtest" not in result.stdout.str()


def test_the_debugger_opens_on_a_wrong_answer_and_can_be_left(project):
    """``q`` at the prompt; what had been measured is shown."""
    command = [sys.executable, "-m", "pytest", *WITHOUT_OTHERS, "--pdb"]
    command += ["--himga-dataset=mini.json", "--himga-backend=mems:Forgets"]
    done = subprocess.run(
        command,
        cwd=project.path,
        input="p result.record.verdict\nq\n",
        capture_output=True,
        encoding="utf-8",
        timeout=60,
    )

    assert done.returncode == pytest.ExitCode.INTERRUPTED
    pytest.LineMatcher(done.stdout.splitlines()).fnmatch_lines(
        [
            "wrong (evidence): 0 of 1 evidence turn in the context",
            "question    How many tulips did Ada plant?",
            "*> entering PDB >*",
            "(Pdb) 'wrong'",
            "overall        8        0  0.0000   0.000-0.793         7       1    0",
            "!*Exit: Quitting debugger !*",
        ]
    )
    assert "INTERNALERROR" not in done.stdout


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_a_worker_that_is_killed_costs_the_question_it_was_asking(project):
    result = project.run_apart(*WITHOUT_OTHERS, "-n2", "--himga-min-score=0.5", backend="mems:Killed")

    assert result.ret == 6
    lost = [record for record in project.results() if record["verdict"] == "unscored"]
    assert [record["id"] for record in lost] == [FERRY]
    assert lost[0]["reason"].startswith("worker gw")
    assert lost[0]["reason"].endswith("died while it was running this question")
    result.stdout.fnmatch_lines(
        [
            "overall        8        6  1.0000   0.610-1.000         1       0    1",
            f"himga: not measured (exit status 6): 1 question unscored (worker gw* died while*): {FERRY}*",
        ]
    )


# -- the machine -------------------------------------------------------------------------------------


@pytest.mark.parametrize("workers", ["-n0", "-n2"])
def test_a_root_that_cannot_be_written_is_one_note_and_the_run_goes_on(project, workers):
    (project.path / ".himga").write_text("a file where the folder would be", encoding="utf-8")

    result = (project.run if workers == "-n0" else project.run_apart)(
        *WITHOUT_OTHERS, workers, "--himga-min-score=0.8", backend="mems:Memory"
    )

    assert result.ret == 0
    said = " ".join(" ".join(result.outlines).split())
    assert said.count(" note ") == 1
    assert ".himga cannot be written (" in said
    assert (
        "this run's results and contexts are not kept; free or change that path, or run from another root"
        in said
    )
    assert (project.path / ".himga").read_text(encoding="utf-8") == "a file where the folder would be"


FULL_DISK = """
import errno
import os

real_write = os.write
real_fsync = os.fsync

def full(*args):
    raise OSError(errno.ENOSPC, "No space left on device")

def pytest_configure(config):
    os.{call} = full

def pytest_unconfigure(config):
    os.write, os.fsync = real_write, real_fsync
"""


@pytest.mark.parametrize("call", ["write", "fsync"])
def test_a_full_disk_is_one_note_and_the_run_goes_on(project, call):
    project.write("conftest.py", FULL_DISK.replace("{call}", call))

    result = project.run(*WITHOUT_OTHERS, backend="mems:Memory")

    assert result.ret == 0
    said = " ".join(" ".join(result.outlines).split())
    assert said.count("cannot be written (No space left on device)") == 1
    result.stdout.fnmatch_lines(["overall        8        7  1.0000   0.646-1.000         0       0    1"])
    # Nothing that is half written bears a final name.
    left = [path.name for path in (project.path / ".himga").rglob("*") if path.is_file()]
    assert not {"results.jsonl", "run.json"} & set(left)


JUMPING_CLOCK = """
import itertools
import time

hours = itertools.count()
real = time.time

def pytest_configure(config):
    time.time = lambda: 1_700_000_000.0 + 3600 * ((next(hours) * 7919) % 97 - 48)

def pytest_unconfigure(config):
    time.time = real
"""


def test_a_clock_that_jumps_changes_no_result(project):
    def measured() -> list[dict]:
        result = project.run(*WITHOUT_OTHERS, "--himga-timeout=30")
        assert result.ret == 1
        return [{**record, "ms": {}} for record in project.results()], [
            line for line in result.outlines if line.startswith(("overall", "all ", "  recall", "himga:"))
        ]

    before = measured()
    project.write("conftest.py", JUMPING_CLOCK)

    assert measured() == before
    assert all(ms >= 0 for record in project.results() for ms in record["ms"].values())
