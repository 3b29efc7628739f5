"""What comes in while a run goes on: the records of the questions, and what the workers say beside them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pytest_himga.describe import failure_repr
from pytest_himga.score.record import Record

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pytest_himga.data.schema import Case


@dataclass
class Tally:
    """Kept on the controller, filled from the test reports alone: a dead worker sends nothing else.

    ``by_id`` are the selected questions; ``expected`` those of them that will run. ``dead`` are the workers
    that died, ``lost`` the questions that they were running, each with its worker. ``scopes`` tell for each
    sample which worker fed it into which scope ("": it died before it could say). ``returned`` is the most
    things that a ``retrieve`` brought; ``notes`` are what the models' clients have to say, each once.
    """

    by_id: Mapping[str, Case]
    records: dict[str, Record] = field(default_factory=dict)
    expected: set[str] = field(default_factory=set)
    lost: dict[str, str] = field(default_factory=dict)
    dead: list[str] = field(default_factory=list)
    unmeasured_failures: int = 0
    returned: int = 0
    scopes: dict[str, set[tuple[str, str]]] = field(default_factory=dict)
    blank_turns: dict[str, int] = field(default_factory=dict)
    backend_version: str | None = None
    answers: bool | None = None
    notes: dict[str, None] = field(default_factory=dict)
    _outages: set[str] = field(default_factory=set)

    def expect(self, nodeids: Iterable[str]) -> None:
        """These items will run; every question among them must bring a record."""
        self.expected.update(nodeid for nodeid in nodeids if nodeid in self.by_id)

    def worker_died(self, worker: str) -> None:
        """A worker is gone; what it was running is lost unless its report is here already."""
        self.dead.append(worker)

    def take(self, report: Any) -> None:
        """Keep the record that a report carries; the last one of a question counts."""
        if report.when == "???" and report.nodeid in self.by_id:
            self._take_crash(report)
        data = getattr(report, "himga", None)
        if data is None or "record" not in data:
            return
        record = Record(**data["record"])
        if report.failed and record.verdict == "unscored":
            self.unmeasured_failures += 1
        self._take_aside(record, data["aside"])
        # An outage in a user's own test stays one, whichever of the question's items came first; what a
        # rerun asked again does not.
        if record.id not in self._outages or record.verdict == "unscored":
            self.records[record.id] = record
        if record.verdict == "unscored" and report.outcome != "rerun":
            self._outages.add(record.id)

    def gate_failed_unmeasured(self) -> None:
        """A gate item's report failed because the gate could not be evaluated: no proof of anything."""
        self.unmeasured_failures += 1

    def _take_crash(self, report: Any) -> None:
        """Xdist's report of the item during which a worker died: an unscored question, not a failed test."""
        worker = getattr(getattr(getattr(report, "node", None), "gateway", None), "id", "a worker")
        self.lost[report.nodeid] = worker
        self.unmeasured_failures += 1
        case = self.by_id[report.nodeid]
        scopes = self.scopes.setdefault(f"{case.dataset}/{case.sample_name}", set())
        if all(by != worker for by, _ in scopes):
            scopes.add((worker, ""))
        # xdist leaves the question unnamed, and JUnit would take "???" for a failed setup.
        report.when, report.location = "call", (case.sample_id, None, report.nodeid)
        report.longrepr = failure_repr(f"unscored: {died_during(worker)}", case.sample_id)
        # Its record may be here already, if the worker died after the verdict.
        report.himga = {"outcome": "unscored"}

    def _take_aside(self, record: Record, aside: dict[str, Any]) -> None:
        self.returned = max(self.returned, aside["returned"] or 0)
        if aside["scope"]:
            scopes = self.scopes.setdefault(f"{record.dataset}/{record.sample}", set())
            scopes.add((record.worker, aside["scope"]))
        # A question that could not be asked may have been told of before its sample was looked at.
        sample = f"{record.dataset}/{record.sample}"
        self.blank_turns[sample] = max(self.blank_turns.get(sample, 0), aside["blank"])
        self.backend_version = self.backend_version or aside["version"]
        self.notes |= dict.fromkeys(aside["notes"])
        if aside["answers"] is not None:
            self.answers = aside["answers"]


def died_during(worker: str) -> str:
    """Why the question that a worker was running when it died has no verdict."""
    return f"worker {worker} died while it was running this question"
