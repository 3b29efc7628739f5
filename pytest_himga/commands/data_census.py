"""``himga data``: what is in a dataset, counted, by its index or by every one of its records."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

from pytest_himga.data.caches import scratch_folder
from pytest_himga.data.dates import parse_date
from pytest_himga.data.families import FAMILIES
from pytest_himga.data.files import files_of, is_gzip, unpack
from pytest_himga.data.indexing import Found, Indexing
from pytest_himga.data.progress import terminal_progress
from pytest_himga.errors import DatasetError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from pytest_himga.data.dataset import Dataset
    from pytest_himga.data.family import RawRecord, ReadOptions
    from pytest_himga.data.progress import Progress
    from pytest_himga.data.schema import Brief, Sample


# -- questions ---------------------------------------------------------------------------------------


@dataclass
class Count:
    """How many questions there are of a kind; the three groups have no question in common."""

    label: str
    answerable: int = 0
    abstention: int = 0
    unrecoverable: int = 0

    @property
    def questions(self) -> int:
        """All of them."""
        return self.answerable + self.abstention + self.unrecoverable

    def add(self, brief: Brief) -> None:
        """Count one."""
        if brief.expects_abstention:
            self.abstention += 1
        elif not brief.recoverable:
            self.unrecoverable += 1
        else:
            self.answerable += 1


@dataclass(frozen=True)
class Census:
    """The questions by type, all of them, and by what a longitudinal dataset says of them.

    ``unanswered`` counts those that can be answered and have no answer in the file.
    """

    types: list[Count]
    everything: Count
    rounds: list[Count]
    unanswered: int


def census_of(dataset: Dataset) -> Census:
    """Count the questions of a dataset by its index; decodes nothing."""
    briefs = [brief for sample in dataset.opened.index.samples for brief in sample.briefs]
    types = {name: Count(label) for name, label in dataset.type_labels.items()}
    everything = Count("all")
    for brief in briefs:
        types.setdefault(brief.type, Count(brief.type)).add(brief)
        everything.add(brief)
    return Census(
        types=list(types.values()),
        everything=everything,
        rounds=list(_rounds(briefs)),
        unanswered=sum(not brief.expects_abstention and not (brief.gold or "").strip() for brief in briefs),
    )


def _rounds(briefs: list[Brief]) -> Iterator[Count]:
    """By checkpoint, and the questions that another agent or a fresh instance must answer."""
    rounds = {
        checkpoint: Count(f"checkpoint {checkpoint}")
        for checkpoint in sorted({one.facets["checkpoint"] for one in briefs if "checkpoint" in one.facets})
    }
    across, cold = Count("cross-agent"), Count("cold-start")
    for brief in briefs:
        if "checkpoint" in brief.facets:
            rounds[brief.facets["checkpoint"]].add(brief)
        for facet, count in (("cross_agent", across), ("cold_start", cold)):
            if brief.facets.get(facet) is True:
                count.add(brief)
    yield from rounds.values()
    if rounds:
        yield across
        yield cold


# -- histories ---------------------------------------------------------------------------------------


@dataclass
class History:
    """What only decoding tells, over all samples that were added.

    ``unproven`` are questions without evidence, ``unproven_abstention`` those of them that cannot be
    answered anyway. ``unsorted`` counts samples whose sessions, as read, are not in the order of time.
    """

    sessions: int = 0
    turns: int = 0
    blank: int = 0
    groups: int = 0
    unproven: int = 0
    unproven_abstention: int = 0
    unsorted: int = 0

    def add(self, sample: Sample) -> None:
        """Count one sample."""
        self.sessions += len(sample.sessions)
        for session in sample.sessions:
            self.turns += len(session.messages)
            self.blank += sum(not message.content.strip() for message in session.messages)
        for question in sample.qa_pairs:
            self.groups += len(question.evidence.groups)
            if not question.evidence.groups:
                self.unproven += 1
                self.unproven_abstention += question.expects_abstention
        dates = [parse_date(session.date_str) for session in sample.sessions if session.date_str]
        self.unsorted += any(later < earlier for earlier, later in pairwise(dates))


def history_of(dataset: Dataset) -> tuple[History, list[str]]:
    """Decode the samples one after another, where the index says that they lie; also gives the warnings."""
    found, history = _read(dataset, dataset.opened.data)
    return history, found.warnings


def read_everything(dataset: Dataset) -> tuple[Found, History]:
    """Read the files themselves from their first byte to the last, decoding one record after another.

    Nothing that is kept about them is believed: digest, records and warnings are made anew.

    Raises
    ------
    DatasetError
        For the first thing that cannot be read.
    """
    with _unpacked(dataset.opened.paths) as data:
        return _read(dataset, data)


def _read(dataset: Dataset, data: list[Path]) -> tuple[Found, History]:
    family, history = FAMILIES[dataset.family], History()
    lengths = [entry.length for entry in dataset.opened.index.samples]
    total = sum(lengths)
    with _progress(dataset.name) as progress:
        done = 0

        def read(record: RawRecord, options: ReadOptions) -> Sample:
            nonlocal done
            sample = family.read(record, options)
            history.add(sample)
            done += lengths[record.number] if record.number < len(lengths) else 0
            progress(done, total)
            return sample

        every_record = replace(family, read=read, skim=None)
        indexing = Indexing(dataset.opened.paths, data, [every_record], dataset.options)
        found = indexing.run(dataset.path, files_of(dataset.path)[1])
    return found, history


@contextmanager
def _unpacked(files: Iterable[Path]) -> Iterator[list[Path]]:
    """The files, and fresh copies of those that are packed: the kept ones may be of other bytes."""
    with scratch_folder() as scratch:
        data = []
        for number, file in enumerate(files):
            if is_gzip(file):
                copy = scratch / f"{number}.json"
                try:
                    with copy.open("wb") as target:
                        unpack(file, target)
                except OSError as error:
                    raise DatasetError(
                        f"{file}: cannot be unpacked into {scratch.parent} ({error.strerror or error}); "
                        "free space there"
                    ) from error
                data.append(copy)
            else:
                data.append(file)
        yield data


@contextmanager
def _progress(name: str) -> Iterator[Progress]:
    """How far it is, on a terminal; a log has no use for it."""
    if sys.stderr is not None and sys.stderr.isatty():
        with terminal_progress(sys.stderr)(name) as progress:
            yield progress
    else:
        yield lambda _done, _total: None
