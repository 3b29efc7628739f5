"""Parallel runs: which items stay together, who hands them out, and what controller and workers tell.

Imported only where pytest-xdist is active.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from xdist.scheduler.loadscope import LoadScopeScheduling

from pytest_himga.collect import PREFIX
from pytest_himga.data.caches import index_folder
from pytest_himga.errors import SettingsError
from pytest_himga.stash import CHANNEL, USAGE_ERROR

if TYPE_CHECKING:
    from collections.abc import Collection

    from xdist.workermanage import WorkerController

    from pytest_himga.controller import Controller
    from pytest_himga.display import Display
    from pytest_himga.run import Run

_IN_BRACKETS = re.compile(r"([A-Za-z0-9_-]+)/([A-Za-z0-9_-]+)/")


def unit_of(nodeid: str, samples: Collection[str]) -> str | None:
    """The unit of an item: its sample's id; None for a test that is not about a question.

    ``samples`` are the ids of the samples of this run. A user's own test carries
    ``<dataset>/<sample>/<uid>`` in its brackets.
    """
    if nodeid.startswith(PREFIX):
        return nodeid.split("::", 1)[0]
    _, bracket, inside = nodeid.partition("[")
    if bracket:
        for dataset, sample in _IN_BRACKETS.findall(inside):
            if f"{PREFIX}{dataset}/{sample}" in samples:
                return f"{PREFIX}{dataset}/{sample}"
    return None


class SampleScheduling(LoadScopeScheduling):
    """Hands out whole samples, and does not run again the item during which a worker died.

    Other tests go module by module, as with ``--dist loadscope``. After a crash the rest of the sample
    is the next unit that is handed out, because its worker's memory is lost.
    """

    def __init__(self, config: pytest.Config, log: Any, samples: Collection[str]) -> None:
        super().__init__(config, log)
        self._samples = samples
        self._positions: dict[WorkerController, dict[str, int]] = {}

    def _split_scope(self, nodeid: str) -> str:
        scope: str = unit_of(nodeid, self._samples) or super()._split_scope(nodeid)
        return scope

    def _assign_work_unit(self, node: WorkerController) -> None:
        """Like xdist's, but with an index of the collection: its linear search is slow at 20,000 items."""
        scope, unit = self.workqueue.popitem(last=False)
        self.assigned_work.setdefault(node, {})[scope] = unit
        positions = self._positions.get(node)
        if positions is None:
            collected = self.registered_collections[node]
            positions = self._positions[node] = {nodeid: n for n, nodeid in enumerate(collected)}
        node.send_runtest_some([positions[nodeid] for nodeid, done in unit.items() if not done])

    def _reschedule(self, node: WorkerController) -> None:
        """Like xdist's, until the worker has two items or knows that no more will come.

        It begins an item only when it knows the next, so a unit of which a crash left one item would
        wait for ever.
        """
        super()._reschedule(node)
        while not node.shutting_down and self._pending_of(self.assigned_work[node]) < 2:
            super()._reschedule(node)

    def remove_node(self, node: WorkerController) -> str | None:
        """The item during which the worker died, or None; what it had not done is handed out again."""
        work = self.assigned_work.pop(node)
        open_units = {scope: unit for scope, unit in work.items() if not all(unit.values())}
        if not open_units:
            return None
        unit = next(iter(open_units.values()))
        crashed = next(nodeid for nodeid, done in unit.items() if not done)
        unit[crashed] = True
        for scope, rest in reversed(open_units.items()):
            if not all(rest.values()):
                self.workqueue[scope] = rest
                self.workqueue.move_to_end(scope, last=False)
        for other in self.assigned_work:
            self._reschedule(other)
        return crashed


class ControllerHooks:
    """What the controller of a parallel run does beside pytest's own hooks."""

    def __init__(self, run: Run, controller: Controller, display: Display) -> None:
        self._run = run
        self._controller = controller
        self._display = display

    def pytest_configure_node(self, node: WorkerController) -> None:
        """Tell a worker which run it belongs to."""
        node.workerinput[CHANNEL] = {
            "run": self._run.run_id,
            "digests": self._run.digests,
            "index": str(index_folder()),
        }

    @pytest.hookimpl(tryfirst=True)
    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: Any) -> Any:
        """Our scheduler, unless the user chose one."""
        if explicit_dist(config):
            return None
        return SampleScheduling(config, log, {case.sample_id for case in self._run.cases})

    def pytest_xdist_node_collection_finished(self, node: WorkerController, ids: list[str]) -> None:  # noqa: ARG002 - a hook's signature
        """Every worker collects the same items: these are the ones to expect results of."""
        self._controller.tally.expect(ids)
        asked = self._run.by_id.keys() & set(ids)
        # Tests of the user's may ask any of them.
        self._display.planned(asked or self._run.by_id)

    def pytest_testnodedown(self, node: WorkerController, error: object) -> None:
        """Pass on what a worker could not say: a usage error ends the run as one."""
        output = getattr(node, "workeroutput", None) or {}
        if USAGE_ERROR in output:
            raise pytest.UsageError(output[USAGE_ERROR])
        if error and str(error) != "keyboard-interrupt":
            self._controller.tally.worker_died(node.gateway.id)


def explicit_dist(config: pytest.Config) -> str | None:
    """The ``--dist`` that the user wrote, None if there is none.

    xdist sets ``option.dist`` by itself before any hook of ours runs; only the arguments as first parsed
    still tell.
    """
    known = config.known_args_namespace
    if getattr(known, "distload", False):
        return "load"
    dist: str = getattr(known, "dist", "no")
    return None if dist == "no" else dist


def check_dist(config: pytest.Config) -> str:
    """A note about a ``--dist`` of the user's, "" if there is nothing to say; ``each`` is refused."""
    dist = explicit_dist(config)
    if dist == "each":
        raise SettingsError(
            "--dist each runs every question on every worker, and himga counts each question once; "
            "leave --dist out"
        )
    if dist is None:
        return ""
    return f"--dist {dist}: samples may be fed once per worker; leave --dist out to keep each sample on one"
