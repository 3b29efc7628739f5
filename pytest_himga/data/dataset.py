"""One opened dataset: its samples, its names in ids, and where it came from."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pytest_himga.data.schema import Case

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_himga.data.schema import Sample


@dataclass
class Dataset:
    """A named collection of samples.

    ``name`` is the slug that stands in ids and paths, ``family`` the format; ``sample_names`` are the
    samples' slugs, parallel to ``samples``. ``sha256`` is hex over the uncompressed data, ``labels``
    the table that named the types, ``warnings`` what the loader mended, as text. ``type_labels`` maps
    each type of the family to what reports print, in the order in which they print it.
    """

    name: str
    family: str
    path: Path
    sha256: str
    labels: str
    samples: list[Sample]
    sample_names: list[str]
    warnings: list[str] = field(default_factory=list)
    type_labels: dict[str, str] = field(default_factory=dict)

    def cases(self) -> list[Case]:
        """List every question, in file order."""
        return [
            Case.of(self.name, sample_name, sample, question)
            for sample_name, sample in zip(self.sample_names, self.samples, strict=True)
            for question in sample.qa_pairs
        ]
