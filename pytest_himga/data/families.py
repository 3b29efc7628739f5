"""The formats that can be read, in the data room: one row for each, in the order in which they are tried."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_himga.data.family import ReadOptions
from pytest_himga.data.indexing import Indexing, chunks_of
from pytest_himga.data.locomo import LOCOMO
from pytest_himga.data.longmemeval import LONGMEMEVAL
from pytest_himga.data.memorystress.reader import MEMORYSTRESS

if TYPE_CHECKING:
    from pathlib import Path

FAMILIES = {family.name: family for family in (LOCOMO, LONGMEMEVAL, MEMORYSTRESS)}


def check_format(file: Path, family: str) -> None:
    """Raise ``DatasetError`` unless ``file`` is JSON to its end, with a record that has the family's keys."""
    Indexing([file], [file], [FAMILIES[family]], ReadOptions()).family(file)
    for _ in chunks_of(file, file):
        pass
