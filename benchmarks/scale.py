"""Large datasets: how long collecting takes and how much memory it needs, as ratios from one run.

    python benchmarks/scale.py [--sizes 277,2737] [--rounds 3] [--folder /somewhere/with/room]

Files in LongMemEval's format are generated (500 questions; the sizes are millions of bytes). Each is
collected for the first time (no index yet) and again (with its index), beside `json.load` of the same file
and a bare pytest that collects nothing, in turn. Memory is the most that a process ever held (ru_maxrss), of
each process of a run on its own. Then 20,000 questions are collected, and a run with 30 s of work in the
backend is timed on one worker and on two.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

QUESTIONS = 500
TURNS = 10
OTHERS = ("cacheprovider", "randomly", "asyncio", "rerunfailures", "cov", "timeout")
QUIET = ["-q", *(word for name in OTHERS for word in ("-p", f"no:{name}"))]

#: Says at its end how much memory the process ever held, into a file of its own; loaded with -p.
WATCHER = """
import os, resource
def pytest_unconfigure(config):
    role = getattr(config, "workerinput", {}).get("workerid", "main")
    with open(os.environ["WATCHED"] + "-" + role, "w", encoding="utf-8") as file:
        file.write(str(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss))
"""

LOAD = """
import json, resource, sys, time
started = time.perf_counter()
with open(sys.argv[1], encoding="utf-8") as file:
    records = json.load(file)
print(time.perf_counter() - started, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""

#: A backend that waits as one that calls a server does: 60 ms a session and 40 ms a question.
SLOW = """
import time
class Slow:
    def reset(self): pass
    def ingest_session(self, session): time.sleep(0.06)
    def ingest(self, message): pass
    def retrieve(self, query): time.sleep(0.04); return []
"""


def write_longmemeval(path: Path, megabytes: float, questions: int = QUESTIONS) -> None:
    """Write a file of about so many million bytes; the same bytes each time."""
    dice = random.Random(1)
    letters = "abcdefghijklmnopqrstuvwxyz"
    words = ["".join(dice.choices(letters, k=dice.randint(2, 9))) for _ in range(4000)]
    sentences = [" ".join(dice.choices(words, k=dice.randint(60, 330))) for _ in range(400)]
    a_turn = statistics.mean(map(len, sentences)) + 50
    sessions = max(1, round(megabytes * 1e6 / questions / a_turn / TURNS))
    with path.open("w", encoding="utf-8") as file:
        for number in range(questions):
            record = _record(number, sessions, dice, sentences)
            file.write((", " if number else "[") + json.dumps(record))
        file.write("]")


def _record(number: int, sessions: int, dice: random.Random, sentences: list[str]) -> dict[str, object]:
    days = sorted(dice.randint(1, 28) for _ in range(sessions))
    roles = ("user", "assistant")
    haystack = [
        [
            {"role": roles[turn % 2], "content": f'{dice.choice(sentences)}\n"{turn}" \u2019'}
            for turn in range(TURNS)
        ]
        for _ in range(sessions)
    ]
    haystack[number % sessions][0] |= {"content": f"My lucky number is {number}.", "has_answer": True}
    return {
        "question_id": f"{number:08x}",
        "question_type": "single-session-user",
        "question": f"What is lucky number {number}?",
        "answer": str(number),
        "question_date": "2023/05/30 (Tue) 23:40",
        "haystack_dates": [f"2023/05/{day:02d} (Xxx) 02:21" for day in days],
        "haystack_session_ids": [f"{number:x}_{n}" for n in range(sessions)],
        "haystack_sessions": haystack,
        "answer_session_ids": [f"{number:x}_{number % sessions}"],
    }


@dataclass(frozen=True)
class Cost:
    """Wall seconds of the process, and the MB that each process held at most, by its role.

    ``collecting`` are the seconds that pytest itself says collecting took (0 where it does not say).
    """

    seconds: float
    memory: dict[str, float]
    collecting: float = 0.0


class Bench:
    """Runs pytest in a folder of its own, with a cache of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.cache = folder / "cache"
        (folder / "watcher.py").write_text(WATCHER, encoding="utf-8")
        (folder / "slow.py").write_text(SLOW, encoding="utf-8")
        (folder / "pytest.ini").write_text("[pytest]\npythonpath = .\n", encoding="utf-8")
        (folder / "nothing.py").write_text("", encoding="utf-8")

    def pytest(self, *arguments: str) -> Cost:
        """One run; its exit status must be one of a run that went through."""
        env = {k: v for k, v in os.environ.items() if not k.startswith(("HIMGA_", "PYTEST_"))}
        env |= {"XDG_CACHE_HOME": str(self.cache), "WATCHED": str(self.folder / "watched")}
        env |= {"PYTHONPATH": str(self.folder)}
        env.pop("PYTHONDONTWRITEBYTECODE", None)
        for old in self.folder.glob("watched-*"):
            old.unlink()
        command = [sys.executable, "-m", "pytest", *QUIET, "-p", "watcher", *arguments]
        started = time.perf_counter()
        done = subprocess.run(command, cwd=self.folder, env=env, capture_output=True, text=True, check=False)
        seconds = time.perf_counter() - started
        if done.returncode not in (0, 1, 5):
            sys.exit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}")
        memory = {
            file.name.removeprefix("watched-"): int(file.read_text(encoding="utf-8")) / 1024
            for file in self.folder.glob("watched-*")
        }
        said = re.search(r"collected in ([\d.]+)s", done.stdout)
        return Cost(seconds, memory, float(said[1]) if said else 0.0)

    def json_load(self, file: Path) -> Cost:
        """``json.load`` of the whole file in a process of its own."""
        done = subprocess.run(
            [sys.executable, "-c", LOAD, str(file)], capture_output=True, text=True, check=True
        )
        seconds, kilobytes = done.stdout.split()
        return Cost(float(seconds), {"main": int(kilobytes) / 1024})

    def forget(self) -> None:
        """Remove all indexes."""
        shutil.rmtree(self.cache, ignore_errors=True)


def collecting(bench: Bench, file: Path, rounds: int) -> None:
    """First and later collections of a file, beside json.load and bare pytest."""
    dataset = f"--himga-dataset=big={file}"
    ours = [dataset, "--himga-backend=null", "--co"]
    bare_run = ["--co", "nothing.py"]
    bench.pytest(*bare_run), bench.pytest(*ours)  # warm the caches of the disk and of bytecode
    seconds: dict[str, list[float]] = {}
    memory: dict[str, list[float]] = {}
    for _ in range(rounds):
        bench.forget()
        costs = {
            "bare pytest": bench.pytest(*bare_run),
            "first collection": bench.pytest(*ours),
            "later collection": bench.pytest(*ours),
            "json.load": bench.json_load(file),
        }
        for name, cost in costs.items():
            seconds.setdefault(name, []).append(cost.seconds)
            memory.setdefault(name, []).append(cost.memory["main"])
    print(f"\n{file.name}: {file.stat().st_size / 1e6:,.0f} MB, {QUESTIONS} questions, medians of {rounds}")
    for name, values in seconds.items():
        print(f"  {name:18} {statistics.median(values):7.2f} s  {statistics.median(memory[name]):7.0f} MB")
    bare_s, bare_mb = seconds["bare pytest"], memory["bare pytest"]
    for name in ("first collection", "later collection"):
        beyond = [a - b for a, b in zip(seconds[name], bare_s, strict=True)]
        share = [d / j for d, j in zip(beyond, seconds["json.load"], strict=True)]
        more = [a - b for a, b in zip(memory[name], bare_mb, strict=True)]
        print(
            f"  {name} beyond bare pytest: {statistics.median(beyond):+.2f} s "
            f"({statistics.median(share):.2f} of json.load), {statistics.median(more):+.0f} MB"
        )


def running(bench: Bench, file: Path) -> None:
    """The memory of a real run on two workers."""
    cost = bench.pytest(
        f"--himga-dataset=big={file}", "--himga-backend=bm25", "--himga-gate=none", "--himga-subset=60", "-n2"
    )
    bare = bench.pytest("nothing.py", "-n2")
    print(
        f"\n60 questions of {file.name} with bm25 on two workers, {cost.seconds:.1f} s; MB beyond a bare run with -n2:"
    )
    for role, megabytes in sorted(cost.memory.items()):
        print(f"  {role:5} {megabytes - bare.memory.get(role, 0):+7.0f} MB")


def many(bench: Bench, rounds: int) -> None:
    """Collecting 20,000 questions with an index."""
    questions = 20_000
    file = bench.folder / "many.json"
    write_longmemeval(file, questions * 0.006, questions)
    tests = bench.folder / "many_bare.py"
    tests.write_text(
        f"import pytest\n@pytest.mark.parametrize('n', range({questions}))\ndef test_n(n): pass\n",
        encoding="utf-8",
    )
    ours = [f"--himga-dataset=many={file}", "--himga-backend=null", "--co"]
    bench.pytest(*ours)
    himga, bare, nothing = [], [], []
    for _ in range(rounds):
        himga.append(bench.pytest(*ours))
        bare.append(bench.pytest("--co", tests.name))
        nothing.append(bench.pytest("--co", "nothing.py"))
    print(f"\n{questions:,} questions, index there, medians of {rounds}")
    for name, values in (
        ("himga", himga),
        ("bare parametrized tests", bare),
        ("nothing to collect", nothing),
    ):
        whole = statistics.median(cost.seconds for cost in values)
        collecting = statistics.median(cost.collecting for cost in values)
        print(f"  {name:24} {whole:6.2f} s the process, {collecting:6.2f} s collecting as pytest says it")
    file.unlink()


def workers(bench: Bench, rounds: int) -> None:
    """A run with 30 s of waiting in the backend: one worker against two."""
    file = bench.folder / "wait.json"
    write_longmemeval(file, 2.0, 60)
    sessions = len(json.loads(file.read_text(encoding="utf-8"))[0]["haystack_sessions"])
    work = 60 * (sessions * 0.06 + 0.04)
    repeats = math.ceil(30 / work)
    datasets = ",".join(f"wait{n}={file}" for n in range(repeats))
    ours = [f"--himga-dataset={datasets}", "--himga-backend=slow:Slow", "--himga-gate=none"]
    times: dict[int, list[float]] = {1: [], 2: []}
    for _ in range(rounds):
        for n, values in times.items():
            values.append(bench.pytest(*ours, f"-n{n}").seconds)
    ratio = statistics.median(a / b for a, b in zip(times[1], times[2], strict=True))
    print(f"\n{work * repeats:.0f} s of waiting in the backend, medians of {rounds}")
    for n, values in times.items():
        print(f"  -n{n}  {statistics.median(values):6.1f} s")
    print(f"  two workers are {ratio:.2f} times as fast as one")


def main() -> None:
    """Print all figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--sizes", default="277,2737", help="sizes in million bytes, with commas")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", type=Path, default=None)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as name:
        bench = Bench(Path(name))
        for size in (float(text) for text in arguments.sizes.split(",") if text):
            file = bench.folder / f"big-{size:.0f}.json"
            write_longmemeval(file, size)
            collecting(bench, file, arguments.rounds)
            running(bench, file)
            file.unlink()
        many(bench, arguments.rounds)
        workers(bench, min(arguments.rounds, 2))


if __name__ == "__main__":
    main()
