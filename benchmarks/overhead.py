"""What himga itself costs, as ratios from one run: each pair of commands runs in turn, A B A B ...

    python benchmarks/overhead.py [--rounds 5] [--data ../shared/data/locomo10.json]

Machines are noisy, so only numbers of one run are compared, and the median of the rounds is printed. The
suites to compare with are written into a temporary folder; nothing but this project's own dependencies is
needed, and the official LoCoMo file.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ITEMS = 1986
#: Other plugins that happen to be installed cost time of their own and would blur the comparison.
OTHERS = ("cacheprovider", "randomly", "asyncio", "rerunfailures", "cov", "timeout")
QUIET = ["-q", *(word for name in OTHERS for word in ("-p", f"no:{name}"))]

NO_OPS = f"""
import pytest
@pytest.mark.parametrize("n", range({ITEMS}))
def test_nothing(n): pass
"""

#: The same search as the bm25 backend does, written the way a person would without himga.
BARE_BM25 = """
import json, re, pytest, bm25s, Stemmer
from functools import lru_cache

SAMPLES = json.load(open({data!r}, encoding="utf-8"))
STEMMER = Stemmer.Stemmer("english")
FAILS = {fails}

def tokens(texts):
    return bm25s.tokenize(texts, stopwords="en", stemmer=STEMMER, return_ids=False, show_progress=False)

@lru_cache(maxsize=1)
def index(n):
    conversation = SAMPLES[n]["conversation"]
    names = sorted((k for k in conversation if re.fullmatch(r"session_\\d+", k)), key=lambda k: int(k[8:]))
    turns = [turn for name in names for turn in conversation[name]]
    texts = []
    for turn in turns:
        caption = turn.get("blip_caption")
        image = f"[Image: {{caption}}] " if caption else ""
        texts.append(f"{{turn['speaker']}}: {{image}}{{turn['text']}}")
    bm25 = bm25s.BM25(k1=1.5, b=0.75)
    bm25.index(tokens(texts), show_progress=False)
    return [turn["dia_id"] for turn in turns], bm25

@pytest.mark.parametrize("n,q", [(n, q) for n, sample in enumerate(SAMPLES) for q in range(len(sample["qa"]))])
def test_question(n, q):
    qa = SAMPLES[n]["qa"][q]
    evidence = set(re.findall(r"D\\d+:\\d+", " ".join(qa["evidence"])))
    ids, bm25 = index(n)
    scores = bm25.get_scores(tokens([qa["question"]])[0])
    found = evidence <= {{ids[i] for i in (-scores).argsort(kind="stable")[:10]}}
    if qa["category"] == 5 or not evidence:
        pytest.skip("no evidence")
    if FAILS:
        assert found
"""

UNRELATED = """
import pytest
@pytest.mark.parametrize("n", range(300))
def test_unrelated(n): assert n >= 0
"""


def run(arguments: list[str], cwd: Path) -> tuple[float, float]:
    """Wall and CPU seconds of one pytest run."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("HIMGA_", "PYTEST_"))}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *QUIET, *arguments],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    wall = time.perf_counter() - started
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode not in (0, 1):
        sys.exit(f"pytest {' '.join(arguments)} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}")
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def pair(name: str, ours: list[str], other: list[str], cwd: Path, rounds: int, items: int = ITEMS) -> None:
    """Run both in turn and print medians, difference and ratio."""
    run(ours, cwd), run(other, cwd)  # warm the caches of the disk and of bytecode
    walls: list[tuple[float, float]] = []
    cpus: list[tuple[float, float]] = []
    for _ in range(rounds):
        (wall_a, cpu_a), (wall_b, cpu_b) = run(ours, cwd), run(other, cwd)
        walls.append((wall_a, wall_b))
        cpus.append((cpu_a, cpu_b))
    print(f"\n{name}")
    for what, pairs in (("wall", walls), ("cpu ", cpus)):
        a, b = (statistics.median(side) for side in zip(*pairs, strict=True))
        ratio = statistics.median(x / y for x, y in pairs)
        difference = statistics.median(x - y for x, y in pairs)
        print(
            f"  {what}  himga {a:6.2f} s   other {b:6.2f} s   ratio {ratio:5.2f}   difference {difference:+6.2f} s"
            f"  ({difference / items * 1000:+.2f} ms an item)"
        )


def main() -> None:
    """Print all comparisons."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    here = Path(__file__).resolve().parent
    parser.add_argument("--data", type=Path, default=here.parents[1] / "shared" / "data" / "locomo10.json")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    if not arguments.data.is_file():
        sys.exit(f"{arguments.data} is not there: give the official locomo10.json with --data")
    data, rounds = str(arguments.data.resolve()), arguments.rounds
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
        for file, text in {
            "noops.py": NO_OPS,
            "bare.py": BARE_BM25.format(data=data, fails=True),
            "bare_passing.py": BARE_BM25.format(data=data, fails=False),
            "unrelated.py": UNRELATED,
            "nothing.py": "",
        }.items():
            (folder / file).write_text(text, encoding="utf-8")
        locomo = f"--himga-dataset=locomo={data}"
        null, bm25 = [locomo, "--himga-backend=null"], [locomo, "--himga-backend=bm25"]
        no_gate = "--himga-gate=none"
        pair("null against bare no-op items", [*null, no_gate], ["noops.py"], folder, rounds)
        pair(
            "bm25, misses shown as failures, against bare asserting tests", bm25, ["bare.py"], folder, rounds
        )
        pair(
            "bm25, misses tolerated, against bare tests that cannot fail",
            [*bm25, no_gate],
            ["bare_passing.py"],
            folder,
            rounds,
        )
        pair(
            "collecting LoCoMo against collecting nothing",
            [*null, "--co"],
            ["--co", "nothing.py", "noops.py::test_nothing[0]"],
            folder,
            rounds,
        )
        pair(
            "installed but unused against not loaded",
            ["unrelated.py"],
            ["-p", "no:himga", "unrelated.py"],
            folder,
            rounds,
            items=300,
        )


if __name__ == "__main__":
    main()
