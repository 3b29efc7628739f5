"""One himga run inside one process: what was asked for, and the engine that measures it.

The controller and each xdist worker make their own from the same command line; the controller hands out
the run's id, so that all write into one folder.
"""

from __future__ import annotations

import gc
import sys
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_himga.data.caches import index_folder
from pytest_himga.data.errata import apply_errata, read_errata
from pytest_himga.data.opening import Access, open_dataset
from pytest_himga.data.progress import announce, terminal_progress
from pytest_himga.data.selection import select
from pytest_himga.errors import DatasetError
from pytest_himga.lineup import Lineup, make_lineup
from pytest_himga.memory.resolve import Backend, resolve_backend
from pytest_himga.report.run_folder import RunFolder, new_run_id
from pytest_himga.score.summary import known_names
from pytest_himga.score.thresholds import Threshold, check_thresholds

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pytest_himga.data.dataset import Dataset
    from pytest_himga.data.schema import Case
    from pytest_himga.engine.engine import Engine
    from pytest_himga.score.calibration import Calibration
    from pytest_himga.settings import Settings


@dataclass
class Run:
    """``cases`` are all questions of himga's own selection, in the order of the datasets' files.

    ``worker`` is ``main`` or xdist's id; ``thresholds`` are those that apply to each dataset; ``selected``
    are the questions that the items left by pytest's own selection (-k, -m, ids, ...) ask, once it is known;
    ``calibrations`` tell how the judge of each dataset did on its probe, where one was made.
    """

    settings: Settings
    run_id: str
    worker: str
    datasets: list[Dataset]
    cases: list[Case]
    backend: Backend
    lineup: Lineup = field(default_factory=Lineup)
    thresholds: Mapping[str, list[Threshold]] = field(default_factory=dict)
    selected: list[Case] = field(default_factory=list)
    calibrations: dict[str, Calibration] = field(default_factory=dict)

    @cached_property
    def by_id(self) -> dict[str, Case]:
        """Each selected question by its node id."""
        return {case.id: case for case in self.cases}

    @cached_property
    def places(self) -> dict[str, int]:
        """Each selected question's place in the order of the datasets, by its node id."""
        return {nodeid: place for place, nodeid in enumerate(self.by_id)}

    @cached_property
    def folder(self) -> RunFolder:
        """Where this run's files go."""
        return RunFolder(self.settings.root, self.run_id)

    @property
    def digests(self) -> dict[str, str]:
        """Each dataset's sha256, so that a worker can tell that it reads the same data."""
        return {dataset.name: dataset.sha256 for dataset in self.datasets}

    @property
    def backend_is_fixture(self) -> bool:
        """Whether the backend is named after a fixture of the user."""
        return self.backend.origin == "fixture"

    @cached_property
    def engine(self) -> Engine:
        """The engine, made when the first question is asked."""
        from pytest_himga.engine.engine import Engine

        families = {dataset.name: dataset.family for dataset in self.datasets}
        engine = Engine(self.settings, self.backend, self.folder, self.run_id, self.worker, families)
        engine.expect(self.selected)
        return engine

    def close(self) -> None:
        """Close the engine and the files, if there are any."""
        if "engine" in self.__dict__:
            self.engine.close()
        if "folder" in self.__dict__:
            self.folder.close()


def start_run(settings: Settings, *, worker: str = "main", shared: Mapping[str, object] | None = None) -> Run:
    """Open the datasets, select the questions and resolve the backend: all that can be wrong, now.

    ``shared`` is what the controller sent to this worker.

    Raises
    ------
    HimgaError
        The first thing that is wrong, as a sentence.
    """
    with many_objects():
        datasets = _open_datasets(settings, shared)
        cases = select(datasets, samples=settings.samples, types=settings.types, subset=settings.subset)
    backend = resolve_backend(settings.backend, settings.backend_options)
    asked = {case.dataset for case in cases}
    families = {dataset.name: dataset.family for dataset in datasets if dataset.name in asked}
    lineup = make_lineup(settings.models, backend, families, settings.top_k)
    names = {
        dataset.name: _names_asked(dataset, cases, settings.top_k)
        for dataset in datasets
        if dataset.name in asked
    }
    run = Run(
        settings=settings,
        run_id=str(shared["run"]) if shared else new_run_id(),
        worker=worker,
        datasets=datasets,
        cases=cases,
        backend=backend,
        lineup=lineup,
        thresholds=check_thresholds(settings.thresholds, names),
    )
    if shared and shared["digests"] != run.digests:
        raise DatasetError(
            f"{', '.join(run.digests)}: the data changed while the run was starting (worker {worker} reads another "
            "sha256 than the controller); run it again"
        )
    return run


@contextmanager
def many_objects() -> Iterator[None]:
    """Let the garbage collector rest while many objects are made that all stay.

    With 20,000 questions it would go through them again and again, for a third of the time of collecting.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _open_datasets(settings: Settings, shared: Mapping[str, object] | None) -> list[Dataset]:
    """Open all datasets, and tell them their errata. Only the controller downloads and announces."""
    access = Access(
        data_dir=settings.data_dir,
        base=settings.base,
        offline=settings.offline or shared is not None,
        allow_unverified="unverified" in settings.allow,
        index_folder=Path(str(shared["index"])) if shared else index_folder(),
        announce=announce,
        progress=terminal_progress(sys.stderr),
    )
    datasets = [
        open_dataset(spec, labels=settings.locomo_labels, session_order=settings.session_order, access=access)
        for spec in settings.datasets
    ]
    apply_errata([read_errata(spec, settings.errata_base) for spec in settings.errata], datasets)
    return datasets


def _names_asked(dataset: Dataset, cases: list[Case], top_k: int) -> list[str]:
    """What a threshold can hold in this run: a type, say, only if it has a question that counts for it."""
    briefs = [
        case.brief for case in cases if case.dataset == dataset.name and not case.brief.expects_abstention
    ]
    scored = [brief for brief in briefs if brief.recoverable]
    types = {brief.type for brief in scored}
    return known_names(
        [name for name in dataset.type_labels if name in types],
        top_k,
        facets=[brief.facets for brief in scored],
        unrecoverable=len(scored) < len(briefs),
        errata=dataset.errata is not None,
    )
