"""The controls on the real LoCoMo file: nothing scores 0, everything and exactly the evidence score 1."""

from __future__ import annotations

import warnings
from collections import Counter
from functools import cache
from typing import TYPE_CHECKING

import pytest

from pytest_himga.data.locomo import load_locomo
from pytest_himga.errors import DatasetWarning

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_himga.data.schema import Sample


@cache
def samples_of(path: Path) -> list[Sample]:
    """The ten samples, read once for all controls."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DatasetWarning)
        return load_locomo(path)


@pytest.mark.parametrize(
    ("backend", "verdicts"),
    [
        ("null", {"wrong": 1538, "n/a": 448}),
        ("oracle", {"correct": 1538, "n/a": 448}),
        ("full-context", {"correct": 1538, "n/a": 448}),
    ],
)
def test_the_controls_hit_their_marks(lab, real_locomo, backend, verdicts):
    counted: Counter[str] = Counter()
    scores = set()
    for sample in samples_of(real_locomo):
        for record in lab(backend, sample=sample).records():
            counted[record.verdict] += 1
            scores.add(record.score)
    assert counted == verdicts
    assert scores == {None, 0.0 if backend == "null" else 1.0}
