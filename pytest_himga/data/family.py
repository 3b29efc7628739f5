"""What a format must say of itself, in the data room: how its records are told, skimmed and read."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pytest_himga.data.schema import Brief, Sample


@dataclass(frozen=True)
class ReadOptions:
    """What a run may choose about reading: see ``--himga-locomo-labels`` and ``--himga-session-order``."""

    labels: str = "locomo"
    session_order: str = "time"


@dataclass(frozen=True)
class RawRecord:
    """One record of a dataset's file; ``number`` counts from 0 over all files of the dataset.

    ``warnings`` takes one sentence for each defect that was mended, see ``files.Place.sentence``.
    """

    data: dict[str, Any]
    number: int
    file: Path
    warnings: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Skimmed:
    """What an index keeps of a sample: its id as in the file, and its questions in their order."""

    sample_id: str
    briefs: list[Brief]


@dataclass(frozen=True)
class Family:
    """A format.

    Every record has all of ``keys``. ``read(record, options)`` makes a sample, or raises ``DatasetError``
    naming file, sample, field and value. ``skim(raw JSON of one record)`` does what an index needs without
    decoding the history; None means "read it whole", and so does a result of None. ``type_labels(labels)``
    maps each question type to what reports print, in printing order.
    """

    name: str
    keys: frozenset[str]
    read: Callable[[RawRecord, ReadOptions], Sample]
    type_labels: Callable[[str], dict[str, str]]
    #: The key that holds a sample's id, for errors about it.
    id_field: str = "sample_id"
    #: Its sessions can be read in two orders, so the places of its evidence are not the same in every run.
    ordered: bool = False
    skim: Callable[[bytes | memoryview], Skimmed | None] | None = None
