"""One opened dataset: its questions at hand, its samples where they lie, decoded when they are needed."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from pytest_himga.data.family import RawRecord
from pytest_himga.data.files import decode_record, unreadable
from pytest_himga.data.schema import Case

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_himga.data.erratum import AppliedErrata
    from pytest_himga.data.family import Family, ReadOptions
    from pytest_himga.data.indexed import OpenedIndex
    from pytest_himga.data.schema import Sample


class StoredSamples:
    """The samples of indexed files.

    A decoded sample lives as long as somebody holds it; the one decoded last is held here, so that a test
    that looks at its parts one after another does not decode it each time.
    """

    def __init__(self, opened: OpenedIndex, family: Family, options: ReadOptions) -> None:
        self._opened = opened
        self._family = family
        self._options = options
        self._alive: WeakValueDictionary[int, Sample] = WeakValueDictionary()
        self._last: Sample | None = None

    def sample(self, number: int) -> Sample:
        """The sample of this number (from 0, in file order); raises ``DatasetError``."""
        sample = self._alive.get(number)
        if sample is None:
            self._last = None  # let go of it before the next one is made
            sample = self._alive[number] = self._decode(number)
        self._last = sample
        return sample

    def _decode(self, number: int) -> Sample:
        entry = self._opened.index.samples[number]
        path, data = self._opened.paths[entry.file], self._opened.data[entry.file]
        self._opened.check_unchanged(entry.file)
        try:
            with data.open("rb") as source:
                source.seek(entry.offset)
                raw = source.read(entry.length)
        except OSError as error:
            unreadable(data, error)
        record = RawRecord(decode_record(path, raw, entry.offset), number, path)
        return self._family.read(record, self._options)


@dataclass(frozen=True)
class StoredSample:
    """The source of one stored sample."""

    samples: StoredSamples
    number: int

    def sample(self) -> Sample:
        """The sample, decoded now if nobody holds it."""
        return self.samples.sample(self.number)


@dataclass
class Dataset:
    """A named collection of samples.

    ``name`` is the slug that stands in ids and paths, ``family`` the format; ``sample_names`` are the
    samples' slugs, parallel to ``sample_ids``, which are as in the file. ``sha256`` is hex over the
    uncompressed data, ``options`` say how it is read, ``warnings`` what the loader mended, as text.
    ``type_labels`` maps each type of the family to what reports print, in the order in which they print
    it. ``ordered`` says that there is a choice of the sessions' order, ``unverified`` why the data may be
    other than the published ones ("": they are, or were never published). ``errata`` are what was left out
    or corrected, if anything.
    """

    name: str
    family: str
    path: Path
    options: ReadOptions
    opened: OpenedIndex
    stored: StoredSamples = field(compare=False, repr=False)
    sample_names: list[str]
    type_labels: dict[str, str] = field(default_factory=dict)
    ordered: bool = False
    unverified: str = ""
    errata: AppliedErrata | None = None

    @property
    def sha256(self) -> str:
        """Hex over the uncompressed bytes of the file; see ``Index``."""
        return self.opened.index.sha256

    @property
    def labels(self) -> str:
        """The table that named the types."""
        return self.options.labels

    @property
    def session_order(self) -> str | None:
        """The order of its sessions, where there is a choice."""
        return self.options.session_order if self.ordered else None

    @property
    def errata_label(self) -> str | None:
        """The lists of errata that say something of it, as a line of provenance names them."""
        return self.errata.label if self.errata else None

    @property
    def warnings(self) -> list[str]:
        """What the loader mended, one sentence each."""
        return self.opened.index.warnings

    @property
    def sample_ids(self) -> list[str]:
        """The samples' ids as in the file."""
        return [sample.sample_id for sample in self.opened.index.samples]

    @property
    def samples(self) -> list[Sample]:
        """All samples, decoded; for a large file this is a lot of memory."""
        return [self.stored.sample(number) for number in range(len(self.sample_names))]

    def cases(self) -> list[Case]:
        """List every question, in file order; decodes nothing."""
        errata = self.errata.by_question if self.errata else {}
        cases = []
        for number, (name, entry) in enumerate(
            zip(self.sample_names, self.opened.index.samples, strict=True)
        ):
            source = StoredSample(self.stored, number)
            for position, brief in enumerate(entry.briefs):
                erratum = errata.get((name, brief.uid))
                known = (
                    brief if erratum is None or erratum.gold is None else replace(brief, gold=erratum.gold)
                )
                cases.append(Case(self.name, name, known, position, source, erratum))
        return cases
