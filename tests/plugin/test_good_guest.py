"""A guest in other people's projects: silent until asked, and on good terms with the other plugins."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys

import pytest

from pytest_himga.options import OPTIONS

#: What a project that never asks for a benchmark pays for: options and fixtures.
LIGHT = {
    "pytest_himga",
    "pytest_himga.errors",
    "pytest_himga.fixtures",
    "pytest_himga.option_source",
    "pytest_himga.options",
    "pytest_himga.plugin",
    "pytest_himga.settings",
    "pytest_himga.stash",
}
HEAVY = (
    "openai",
    "httpx",
    "numpy",
    "nltk",
    "bm25s",
    "regex",
    "Stemmer",
    "scipy",
    "numba",
    "msgspec",
    "filelock",
)

#: Finds everything, unless a question is to fail for the first so many times.
MEMORY = """
import json
from pathlib import Path
from pytest_himga import Recalled

HERE = Path(__file__).parent

class Memory:
    deterministic = True
    failures = {}

    def __init__(self):
        self.turns = []
        self.plan = HERE / "plan.json"

    def reset(self):
        self.turns.clear()

    def ingest(self, message):
        if not self.turns:
            with (HERE / "log.txt").open("a", encoding="utf-8") as log:
                print("fed", message.content.split()[1], file=log)
        self.turns.append(Recalled(message.content, turn_ids=[message.turn_id]))

    def retrieve(self, query):
        plan = json.loads(self.plan.read_text(encoding="utf-8")) if self.plan.exists() else {}
        for word, times in plan.items():
            if word in query:
                self.failures[word] = self.failures.get(word, 0) + 1
                if self.failures[word] <= times:
                    raise ConnectionError("the store is down")
        return self.turns


class AsyncMemory:
    deterministic = True

    def __init__(self):
        import asyncio

        self.loop = asyncio.get_running_loop()
        self.inner = Memory()

    async def reset(self):
        self.inner.reset()

    async def ingest(self, message):
        self.inner.ingest(message)

    async def retrieve(self, query):
        import asyncio

        assert asyncio.get_running_loop() is self.loop
        await asyncio.sleep(0)
        return self.inner.retrieve(query)
"""
MINE = "def test_mine():\n    pass\n"


@pytest.fixture
def guest(project):
    """A project with a memory of its own and one ordinary test."""
    project.write("mem.py", MEMORY)
    project.write("test_mine.py", MINE)
    return project


def fed(project) -> list[str]:
    """A word for each time that a sample was fed: ``planted`` is garden, ``ferry`` is harbour."""
    lines = (project.path / "log.txt").read_text(encoding="utf-8").splitlines()
    return [line.removeprefix("fed ") for line in lines]


def timeless(result: pytest.RunResult) -> list[str]:
    """The output without what differs from run to run."""
    return [re.sub(r"in \d+\.\d+s", "in 0s", line) for line in result.outlines]


# -- not asked for -----------------------------------------------------------------------------------


def test_unasked_nothing_is_imported_collected_written_or_printed(guest):
    guest.write(
        "test_modules.py",
        f"""
import sys

def test_modules():
    ours = {{name for name in sys.modules if name.split(".")[0] == "pytest_himga"}}
    assert ours == {LIGHT!r}
    assert not set({HEAVY!r}) & set(sys.modules)
""",
    )
    before = {path.name for path in guest.path.iterdir()}

    # pytest-randomly imports numpy wherever it is installed
    result = guest.pytester.runpytest_subprocess("-p", "no:cacheprovider", "-p", "no:randomly", "-v")

    result.assert_outcomes(passed=2)
    assert result.ret == 0
    # pytester keeps its own beside the project
    after = {
        path.name for path in guest.path.iterdir() if not path.name.startswith(("runpytest-", "std", "__"))
    }
    assert after == before
    told = [
        line for line in result.outlines if "himga" in line and not line.startswith(("plugins:", "rootdir:"))
    ]
    assert told == []
    assert not result.stderr.str()


def test_without_a_model_nothing_is_imported_that_only_models_need(guest, monkeypatch):
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    guest.write(
        "test_modules.py",
        """
import sys

def test_modules(himga_case, himga_verdict):
    for_models = {"openai", "httpx", "aiohttp", "sqlite3", "tomllib", "pytest_himga.llm.endpoint"}
    assert not for_models & set(sys.modules)
""",
    )

    result = guest.run_apart("-p", "pytest_himga.plugin", "-k", "test_modules and hedgehog")

    result.assert_outcomes(passed=1, deselected=18)


def test_unasked_the_output_is_the_same_as_without_the_plugin(guest):
    options = ["-v", "-ra", "-p", "no:cacheprovider", "-p", "no:randomly"]
    with_us = timeless(guest.pytester.runpytest_inprocess(*options))
    without = timeless(guest.pytester.runpytest_inprocess(*options, "-p", "no:himga"))

    assert [line for line in with_us if not line.startswith("plugins:")] == [
        line for line in without if not line.startswith("plugins:")
    ]


def test_other_himga_options_alone_ask_for_nothing(guest):
    result = guest.pytester.runpytest_inprocess("--himga-backend=no.such:thing", "--himga-top-k=ten")

    result.assert_outcomes(passed=1)
    assert "himga:" not in result.stdout.str()
    assert not (guest.path / ".himga").exists()


def test_importing_the_data_room_needs_no_pytest():
    code = (
        "import sys, pytest_himga.data; print([m for m in ('pytest', 'numpy', 'httpx') if m in sys.modules])"
    )

    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, encoding="utf-8", check=True
    )

    assert done.stdout.strip() == "[]"


# -- what it says about itself -----------------------------------------------------------------------


def test_help_has_one_group_with_every_option(project):
    result = project.pytester.runpytest_inprocess("--help")

    lines = result.outlines
    assert result.ret == 0
    assert lines.count("memory benchmarks (pytest-himga):") == 1
    start = lines.index("memory benchmarks (pytest-himga):")
    group = lines[start + 1 : lines.index("", start)]
    flags = [re.split("[= ]", line.strip())[0] for line in group if line.startswith("  --")]
    assert flags == [option.flag for option in OPTIONS]
    assert sum("--himga-" in line and line.startswith("  --") for line in lines) == len(OPTIONS)
    inis = [line.split()[0] for line in lines if line.startswith("  himga_")]
    assert inis == [option.ini for option in OPTIONS if not option.cli_only]


def test_help_asks_for_help_only(project):
    result = project.run("--help", data="nowhere.json", backend="no.such:thing")

    assert result.ret == 0
    assert "nowhere.json" not in result.stderr.str()


def test_fixtures_lists_all_six_with_what_they_are(project):
    result = project.pytester.runpytest_inprocess("--fixtures")

    text = result.stdout.str()
    for name, doc in {
        "himga_case": "The question (`.question`) and its sample (`.sample`)",
        "himga_memory": "The live memory, fed up to the question's checkpoint",
        "himga_context": "What the memory returned for the question",
        "himga_answer": "The answer to the question; None where nothing produces one.",
        "himga_judge": "The judge of this run",
        "himga_verdict": "The verdict, correct or wrong",
    }.items():
        assert re.search(rf"^{name} -- .*\n +{re.escape(doc)}", text, re.MULTILINE), name


def test_markers_lists_ours(project):
    result = project.pytester.runpytest_inprocess("--markers", "--strict-markers")

    result.stdout.fnmatch_lines(["@pytest.mark.himga: every item of a himga benchmark*"])


def test_the_mark_may_be_used_under_strict_markers_without_a_run(project):
    project.write("test_mine.py", "import pytest\n\n@pytest.mark.himga\ndef test_mine():\n    pass\n")

    result = project.pytester.runpytest_inprocess("--strict-markers", "-m", "himga")

    result.assert_outcomes(passed=1)


@pytest.mark.parametrize("option", ["--fixtures", "--fixtures-per-test", "--funcargs"])
def test_a_list_of_fixtures_is_no_run(project, option):
    result = project.run(option)

    assert result.ret == 0
    text = result.stdout.str()
    assert "Traceback" not in text
    assert "not run" not in text
    assert "not measured" not in text
    assert not (project.path / ".himga").exists()


def test_a_plan_of_the_setup_measures_nothing_and_says_so(project):
    result = project.run("--setup-plan")

    assert result.ret == 6
    assert "INTERNALERROR" not in result.stdout.str()
    assert result.outlines[-1].startswith("himga: not measured (exit status 6): 9 questions not run")


# -- terminals ---------------------------------------------------------------------------------------


def section(result: pytest.RunResult) -> list[str]:
    """The lines of himga's own section."""
    lines = result.outlines
    start = next(n for n, line in enumerate(lines) if re.fullmatch(r"=+ himga =+", line))
    return lines[start : next(n for n in range(start + 1, len(lines)) if lines[n].startswith("==="))]


def test_no_color_and_color(project, monkeypatch):
    assert "\x1b" not in project.run("--color=no").stdout.str()
    assert "\x1b" in project.run("--color=yes").stdout.str()
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in project.run().stdout.str()


@pytest.mark.parametrize("columns", [40, 120])
def test_the_section_fits_the_terminal(project, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", str(columns))

    lines = section(project.run())

    assert max(len(line) for line in lines) <= columns
    assert any(line.startswith("overall") for line in lines)


def test_the_output_survives_a_terminal_that_knows_ascii_only(guest):
    record = {
        "sample_id": "é",
        "conversation": {
            "speaker_a": "Zoë",
            "speaker_b": "Ben",
            "session_1_date_time": "9:15 am on 3 March, 2024",
            "session_1": [{"speaker": "Zoë", "dia_id": "D1:1", "text": "Ich mag Käsespätzle 🧀 sehr."}],
        },
        "qa": [{"question": "Was mag Zoë 🧀?", "answer": "Käsespätzle", "evidence": ["D1:1"], "category": 4}],
    }
    guest.write_data("odd", [record])
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "--himga-dataset=odd.json",
            "--himga-backend=null",
            "-vv",
            "-pno:randomly",
        ],
        cwd=guest.path,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        check=False,
    )

    assert done.returncode == 1
    assert b"Traceback" not in done.stdout + done.stderr
    assert b"1 failed" in done.stdout


# -- other plugins missing ---------------------------------------------------------------------------


@pytest.mark.parametrize("command", [["--co"], ["--co", "-q"], ["--collect-only", "-qq"]])
def test_collecting_writes_nothing(project, command):
    result = project.run(*command)

    assert result.ret == 0
    assert not (project.path / ".himga").exists()


def test_without_xdist(guest):
    result = guest.run("-p", "no:xdist", backend="mem:Memory")

    result.assert_outcomes(passed=8, skipped=2)
    assert result.ret == 0


def test_without_the_cache(guest):
    result = guest.run("-p", "no:cacheprovider", backend="mem:Memory")

    result.assert_outcomes(passed=8, skipped=2)
    assert not (guest.path / ".pytest_cache").exists()


@pytest.mark.parametrize(
    ("backend", "gate", "status"), [("mem:Memory", "verdict", 0), ("null", "verdict", 1), ("null", "none", 0)]
)
def test_without_a_terminal(guest, backend, gate, status):
    result = guest.run("-p", "no:terminal", f"--himga-gate={gate}", backend=backend)

    assert result.ret == status
    assert len(guest.results()) == 9
    assert guest.run_json()["exit"] == status
    assert "himga" not in result.stdout.str()


def test_without_capture_logging_and_junit(guest):
    blocked = [f"-pno:{name}" for name in ("logging", "junitxml", "faulthandler", "stepwise", "doctest")]

    result = guest.run("-s", *blocked, backend="mem:Memory")

    result.assert_outcomes(passed=8, skipped=2)


# -- other plugins present ---------------------------------------------------------------------------


def test_asyncio_in_auto_mode(guest):
    guest.write(
        "test_async.py",
        """
import asyncio
import pytest

@pytest.fixture
async def number():
    await asyncio.sleep(0)
    return 3

async def test_async(number):
    await asyncio.sleep(0)
    assert number == 3

async def test_own(himga_verdict):
    await asyncio.sleep(0)
    assert himga_verdict.value == "correct"
""",
    )

    result = guest.run("-o", "asyncio_mode=auto", "-W", "error", backend="mem:AsyncMemory")

    result.assert_outcomes(passed=2 + 7 + 7, skipped=4)
    assert result.ret == 0
    assert fed(guest) == ["planted", "ferry"]


SNAPSHOTS = """
def test_one(snapshot):
    assert {"a": 1} == snapshot

def test_two(snapshot):
    assert ["b"] == snapshot
"""


def test_syrupys_snapshots_are_written_checked_and_found_unused_as_ever(guest):
    guest.write("test_snap.py", SNAPSHOTS)
    stored = guest.path / "__snapshots__" / "test_snap.ambr"

    written = guest.run("--snapshot-update", backend="mem:Memory")
    assert "2 snapshots generated." in written.stdout.str()
    assert written.ret == 0
    first = stored.read_text(encoding="utf-8")

    checked = guest.run(backend="mem:Memory")
    assert "2 snapshots passed." in checked.stdout.str()
    assert "snapshots unused" not in checked.stdout.str()
    assert checked.ret == 0

    guest.write("test_snap.py", SNAPSHOTS.split("\n\n")[0])
    unused = guest.run(backend="mem:Memory")
    assert "1 snapshot passed. 1 snapshot unused." in unused.stdout.str()
    assert unused.ret == 1
    assert stored.read_text(encoding="utf-8") == first

    removed = guest.run("--snapshot-update", backend="mem:Memory")
    assert "1 unused snapshot deleted." in removed.stdout.str()
    assert removed.ret == 0
    assert "test_two" not in stored.read_text(encoding="utf-8")


def test_a_failing_snapshot_is_a_failed_test(guest):
    guest.write("test_snap.py", SNAPSHOTS)
    guest.run("--snapshot-update", backend="mem:Memory")
    guest.write("test_snap.py", SNAPSHOTS.replace('"b"', '"c"'))

    result = guest.run(backend="mem:Memory")

    assert "1 snapshot failed." in result.stdout.str()
    assert result.ret == 1


def test_questions_named_alone_leave_snapshots_alone(guest):
    guest.write("test_snap.py", SNAPSHOTS)
    guest.run("--snapshot-update", backend="mem:Memory")
    stored = guest.path / "__snapshots__" / "test_snap.ambr"
    first = stored.read_text(encoding="utf-8")

    result = guest.run("--snapshot-update", "himga/mini", backend="mem:Memory")

    assert "deleted" not in result.stdout.str()
    assert stored.read_text(encoding="utf-8") == first
    assert result.ret == 0


@pytest.mark.parametrize("seed", [1, 2])
def test_in_random_order_each_sample_is_fed_once(guest, seed):
    guest.write("test_own.py", "def test_own(himga_verdict):\n    assert himga_verdict.value == 'correct'\n")

    result = guest.run("-v", "-p", "randomly", f"--randomly-seed={seed}", backend="mem:Memory")

    result.stdout.fnmatch_lines([f"Using --randomly-seed={seed}"])
    result.assert_outcomes(passed=1 + 7 + 7, skipped=4)
    assert sorted(fed(guest)) == ["ferry", "planted"]
    records = [record["question"] for record in guest.results()]
    assert records[0] == "How many tulips did Ada plant?"
    assert len(records) == 9


def test_random_order_is_random_within_a_sample(guest):
    orders = set()
    for seed in range(3):
        result = guest.run(
            "-v", "-p", "randomly", f"--randomly-seed={seed}", "himga/mini/garden", backend="null"
        )
        orders.add(
            tuple(line.split()[0] for line in result.outlines if line.startswith("himga/mini/garden::"))
        )

    assert len(orders) > 1


def test_with_reruns_a_flaky_question_passes_and_counts_once(guest):
    guest.write("plan.json", json.dumps({"hedgehog": 1, "ferry": 2}))

    result = guest.run("--reruns=2", backend="mem:Memory")

    result.assert_outcomes(passed=1 + 7, skipped=2)
    assert result.parseoutcomes()["rerun"] == 3
    assert result.ret == 0
    result.stdout.fnmatch_lines(["all            9        7  1.0000*"])
    records = guest.results()
    assert len(records) == 9
    assert [record["verdict"] for record in records].count("correct") == 7
    # a rerun asks again; it does not feed again
    assert fed(guest) == ["planted", "ferry"]


def test_with_reruns_the_last_attempt_wins(guest):
    guest.write("plan.json", json.dumps({"hedgehog": 99}))

    result = guest.run("--reruns=2", backend="mem:Memory")

    result.assert_outcomes(passed=1 + 6, skipped=2, errors=1)
    assert result.ret == 6
    result.stdout.fnmatch_lines(["all            9        6  1.0000*"])
    assert [record["verdict"] for record in guest.results()].count("unscored") == 1


def test_with_reruns_a_flaky_own_test_passes_too(guest):
    guest.write("plan.json", json.dumps({"hedgehog": 1}))
    guest.write("test_own.py", "def test_own(himga_verdict):\n    assert himga_verdict.value == 'correct'\n")

    result = guest.run("--reruns=2", "--himga-items=off", backend="mem:Memory")

    result.assert_outcomes(passed=1 + 7, skipped=2)
    assert result.ret == 0
    assert [record["verdict"] for record in guest.results()].count("correct") == 7


@pytest.mark.slow
def test_with_reruns_and_workers(guest):
    guest.write("plan.json", json.dumps({"hedgehog": 1, "ferry": 1}))

    result = guest.run_apart("-n2", "--reruns=2", backend="mem:Memory")

    result.assert_outcomes(passed=1 + 7, skipped=2)
    assert result.ret == 0
    assert len(guest.results()) == 9


def test_a_rerun_of_a_wrong_answer_stays_wrong(guest):
    result = guest.run("--reruns=1", "himga/mini/harbour")

    result.assert_outcomes(passed=2, failed=1, skipped=1)
    assert result.ret == 1


def test_coverage_sees_the_memory_at_work(guest):
    result = guest.run_apart(
        "--cov=mem", "--cov-report=term-missing", "-p", "no:asyncio", "-W", "ignore", backend="mem:Memory"
    )

    result.assert_outcomes(passed=8, skipped=2)
    line = next(line for line in result.outlines if line.startswith("mem.py"))
    # the methods of the memory ran in threads of ours, and are covered all the same
    missing = {int(number) for number in re.findall(r"\d+", line.split("%")[1])}
    body = MEMORY.splitlines()
    for number, text in enumerate(body, start=1):
        if text.strip() in ("return self.turns", "self.turns.clear()"):
            assert number not in missing
    assert result.ret == 0


def test_a_time_limit_of_pytest_timeout_is_no_trouble(guest):
    result = guest.run("--timeout=60", backend="mem:Memory")

    result.assert_outcomes(passed=8, skipped=2)
    assert result.ret == 0


def test_a_hang_that_pytest_timeout_ends_is_unscored(guest):
    guest.write(
        "slow.py",
        "import time\nfrom mem import Memory\n\nclass Slow(Memory):\n    def retrieve(self, query):\n"
        "        if 'hedgehog' in query:\n            time.sleep(30)\n        return self.turns\n",
    )

    result = guest.run_apart("--timeout=1", backend="slow:Slow")

    assert result.ret == 6
    verdicts = [record["verdict"] for record in guest.results()]
    assert verdicts.count("unscored") >= 1
    assert "wrong" not in verdicts
    assert verdicts[5:] == ["correct", "correct", "n/a", "correct"]


def test_warnings_as_errors(guest):
    result = guest.run("-W", "error", backend="mem:Memory")

    result.assert_outcomes(passed=8, skipped=2)
    assert result.ret == 0
    assert "warnings summary" not in result.stdout.str()


@pytest.mark.slow
@pytest.mark.parametrize("extra", [[], ["-n2"]])
def test_every_file_is_opened_as_utf_8(guest, extra):
    others = ["asyncio", "anyio", "cov", "randomly", "rerunfailures", "hypothesispytest", "timeout"]
    done = subprocess.run(
        [
            *[sys.executable, "-X", "warn_default_encoding", "-W", "error::EncodingWarning", "-m", "pytest"],
            *[f"-pno:{name}" for name in others],
            *[
                "--himga-dataset=mini.json,demo-locomo",
                "--himga-backend=bm25",
                "--himga-min-score=0.1",
                "-ra",
                *extra,
            ],
            *["-W", "ignore::pytest.PytestConfigWarning", "--junitxml=j.xml"],
        ],
        cwd=guest.path,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert "EncodingWarning" not in done.stdout + done.stderr
