"""The controls on the real files: nothing scores 0, everything and exactly the evidence score 1."""

from __future__ import annotations

import os
import warnings
from collections import Counter
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_himga.data.locomo import load_locomo
from pytest_himga.data.longmemeval import load_longmemeval
from pytest_himga.data.memorystress import load_memorystress
from pytest_himga.errors import DatasetWarning

if TYPE_CHECKING:
    from pytest_himga.data.schema import Sample

FOLDER = Path(os.environ.get("HIMGA_TEST_DATA", Path(__file__).parents[3] / "shared" / "data"))
#: The file, its loader, and how many questions have evidence, and how many have not or must be abstained from.
FILES = {
    "locomo10.json": (load_locomo, 1538, 448),
    "longmemeval_oracle.json.gz": (load_longmemeval, 470, 30),
    "longmemeval_s_cleaned.sample.json.gz": (load_longmemeval, 5, 1),
    "memorystress_full.json": (load_memorystress, 298, 2),
    "memorystress_small.json": (load_memorystress, 20, 0),
}


@cache
def samples_of(name: str) -> list[Sample]:
    """The samples of a real file, read once for all controls."""
    path = FOLDER / name
    if not path.is_file():
        pytest.skip(f"the real file is not there: {path}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DatasetWarning)
        return FILES[name][0](path)


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("backend", ["null", "oracle", "full-context"])
def test_the_controls_hit_their_marks(lab, name, backend):
    _, answerable, other = FILES[name]
    counted: Counter[str] = Counter()
    scores, recalls = set(), set()
    for sample in samples_of(name):
        for record in lab(backend, sample=sample).records():
            counted[record.verdict] += 1
            scores.add(record.score)
            recalls |= {value for key, value in record.metrics.items() if "recall@" in key}
    mark = 0.0 if backend == "null" else 1.0
    expected = {"wrong" if backend == "null" else "correct": answerable, "n/a": other}
    assert counted == {verdict: count for verdict, count in expected.items() if count}
    assert scores - {None} == {mark}
    assert recalls == (set() if backend == "full-context" else {mark})
