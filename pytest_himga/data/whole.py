"""A dataset's file as a list of samples in memory, in the data room: for scripts, not for runs."""

from __future__ import annotations

import warnings as python_warnings
from typing import TYPE_CHECKING

from pytest_himga.data.family import Family, RawRecord, ReadOptions
from pytest_himga.data.files import Place, read_records
from pytest_himga.errors import DatasetWarning

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_himga.data.schema import Sample


def load_file(path: Path | str, family: Family, options: ReadOptions) -> list[Sample]:
    """Load all samples of a file, ``.gz`` or folder, in file order.

    Emits a ``DatasetWarning`` for each defect that loses something; raises ``DatasetError`` for what
    cannot be read.
    """
    source = read_records(path)
    found: list[str] = []
    samples: list[Sample] = []
    seen: dict[str, Path] = {}
    for number, (record, file) in enumerate(zip(source.records, source.origins, strict=True)):
        sample = family.read(RawRecord(record, number, file, found), options)
        check_new(sample.sample_id, file, seen, family)
        samples.append(sample)
    for text in found:
        python_warnings.warn(DatasetWarning(text), stacklevel=3)
    return samples


def check_new(sample_id: str, file: Path, seen: dict[str, Path], family: Family) -> None:
    """Refuse a second sample of one id; ``seen`` keeps where each was found."""
    if sample_id in seen:
        raise Place(file, sample_id).error(
            family.id_field, f"a sample of this id stands in {seen[sample_id]} already; rename one"
        )
    seen[sample_id] = file
