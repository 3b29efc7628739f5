"""MemoryStress: its typed container, its reader, its integrity checks and a generator of its format."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_himga.data.memorystress.model import (
    BenchmarkData,
    ContradictionChain,
    Fact,
    Question,
    Session,
    load_benchmark,
)
from pytest_himga.data.memorystress.reader import load_memorystress

if TYPE_CHECKING:
    from pytest_himga.data.memorystress.generator import generate

__all__ = [
    "BenchmarkData",
    "ContradictionChain",
    "Fact",
    "Question",
    "Session",
    "generate",
    "load_benchmark",
    "load_memorystress",
]


def __getattr__(name: str) -> Any:
    # A run that reads MemoryStress has no use for the generator and its vocabulary.
    if name == "generate":
        from pytest_himga.data.memorystress.generator import generate

        return generate
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
