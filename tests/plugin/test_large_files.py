"""A dataset that is larger than the memory it may take: collected and run without ever being held whole."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="resource is a module of Unix")

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "scale.py"
#: Millions of bytes: decoded whole it would take three times as much.
SIZE = 150
#: MB beyond a bare pytest that collecting may take, whatever the size of the file.
MOST = 100
#: ... and that a worker may take when it runs: that, and the samples in flight with what searches them.
MOST_RUNNING = 160


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    spec = importlib.util.spec_from_file_location("scale", BENCHMARK)
    scale = sys.modules["scale"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(scale)
    yield scale
    del sys.modules["scale"]


@pytest.mark.slow
def test_a_large_file_is_never_held_in_memory(bench, tmp_path):
    runs = bench.Bench(tmp_path)
    file = tmp_path / "big.json"
    bench.write_longmemeval(file, SIZE)
    assert file.stat().st_size > (SIZE - 20) * 1e6
    ours = [f"--himga-dataset=big={file}", "--himga-backend=bm25", "--himga-gate=none"]

    bare = runs.pytest("--co", "nothing.py").memory["main"]
    first = runs.pytest(*ours, "--co").memory["main"]
    later = runs.pytest(*ours, "--co").memory["main"]
    running = runs.pytest(*ours, "--himga-subset=30", "-n2").memory

    assert first - bare < MOST
    assert later - bare < MOST
    assert sorted(running) == ["gw0", "gw1", "main"]
    assert all(megabytes - bare < MOST_RUNNING for megabytes in running.values()), (bare, running)
