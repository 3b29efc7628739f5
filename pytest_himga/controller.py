"""What the controller adds up: one record a question, gates, reasons, and the exit status.

With ``-n`` the workers measure and send; without it this process does both. Nothing else in the plugin
decides whether a run passes.
"""

from __future__ import annotations

import platform
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from pytest_himga import __version__
from pytest_himga.report.run_folder import run_document
from pytest_himga.report.terminal import DatasetReport, Provenance
from pytest_himga.report.text import one_line
from pytest_himga.score.gate import GateResult, decide_exit, evaluate, undecided
from pytest_himga.score.record import Record, record_of
from pytest_himga.score.summary import summarise
from pytest_himga.score.thresholds import allowed_unscored

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pytest_himga.data.schema import Case
    from pytest_himga.run import Run

#: How many questions a reason names before it counts the rest.
NAMED = 3
#: Characters of a reason that a line holds beside them.
LONGEST_REASON = 200


@dataclass(frozen=True)
class GateItem:
    """The gate item of one dataset, ``himga/<dataset>::gate``; ``text`` starts with a headline."""

    nodeid: str
    status: Literal["passed", "failed", "unmeasured"]
    text: str


@dataclass
class Tally:
    """What came in. ``dead`` are the workers that died, ``lost`` what they were running and why it is lost.

    ``scopes`` tell for each sample which worker fed it into which scope ("": it died before it could say).
    """

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


class Controller:
    """Takes reports while the run goes on; ``settle`` ends it."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.tally = Tally()
        self.gate_results: list[GateResult] = []
        self.gate_items: list[GateItem] = []
        self.settled = False

    # -- while the run goes on ------------------------------------------------------------------

    def expect(self, nodeids: Iterable[str]) -> None:
        """These items will run; every question among them must bring a record."""
        self.tally.expected.update(nodeid for nodeid in nodeids if nodeid in self.run.by_id)

    def refuse(self) -> None:
        """The run ends in a usage error: what never began is not missing, so nothing is told of it."""
        self.tally.expected.clear()

    def worker_died(self, worker: str) -> None:
        """A worker is gone; what it was running is lost unless its report is here already."""
        self.tally.dead.append(worker)

    def take(self, report: Any) -> None:
        """Keep the record that a report carries; the last one of a question counts."""
        if report.when == "???" and report.nodeid in self.run.by_id:
            self._take_crash(report)
        data = getattr(report, "himga", None)
        if data is None or "record" not in data:
            return
        record = Record(**data["record"])
        self.tally.records[record.id] = record
        if report.failed and record.verdict == "unscored":
            self.tally.unmeasured_failures += 1
        self._take_aside(record, data["aside"])

    def gate_failed_unmeasured(self) -> None:
        """A gate item's report failed because the gate could not be evaluated: no proof of anything."""
        self.tally.unmeasured_failures += 1

    def _take_crash(self, report: Any) -> None:
        """Xdist's report of the item during which a worker died: an unscored question, not a failed test."""
        worker = getattr(getattr(getattr(report, "node", None), "gateway", None), "id", "a worker")
        reason = f"worker {worker} died while it was running this question"
        self.tally.lost[report.nodeid] = reason
        self.tally.unmeasured_failures += 1
        case = self.run.by_id[report.nodeid]
        scopes = self.tally.scopes.setdefault(f"{case.dataset}/{case.sample_name}", set())
        if all(by != worker for by, _ in scopes):
            scopes.add((worker, ""))
        # xdist leaves the question unnamed, and JUnit would take "???" for a failed setup.
        report.when, report.location = "call", (case.sample_id, None, report.nodeid)
        report.longrepr = f"unscored: {reason}"
        # Its record may be here already, if the worker died after the verdict.
        report.himga = {"outcome": "unscored"}

    def _take_aside(self, record: Record, aside: dict[str, Any]) -> None:
        tally = self.tally
        tally.returned = max(tally.returned, aside["returned"] or 0)
        if aside["scope"]:
            scopes = tally.scopes.setdefault(f"{record.dataset}/{record.sample}", set())
            scopes.add((record.worker, aside["scope"]))
        tally.blank_turns[f"{record.dataset}/{record.sample}"] = aside["blank"]
        tally.backend_version = tally.backend_version or aside["version"]
        if aside["answers"] is not None:
            tally.answers = aside["answers"]

    # -- at the end -----------------------------------------------------------------------------

    def settle(self, *, complete: bool) -> None:
        """The run is over: account for what is missing, and apply the gates to a complete one.

        ``complete`` is False where pytest stopped early (-x, Ctrl-C, an error).
        """
        if self.settled:
            return
        self.settled = True
        for nodeid in self.run.by_id:
            if nodeid in self.tally.expected and nodeid not in self.tally.records:
                reason = self.tally.lost.get(nodeid, "not run: " + self._why_not_run(complete))
                record = record_of(
                    self.run.by_id[nodeid], verdict="unscored", reason=reason, k=self.run.settings.top_k
                )
                record.outcome = "unscored" if nodeid in self.tally.lost else "missing"
                self.tally.records[nodeid] = record
        if complete and self.asked_anything and "score" in self.run.settings.gates:
            self._apply_score_gate()

    def _why_not_run(self, complete: bool) -> str:
        if self.tally.dead:
            return f"worker {', '.join(self.tally.dead)} died"
        return "no result came back" if complete else "the run stopped early"

    def _apply_score_gate(self) -> None:
        summaries = {report.summary.dataset: report.summary for report in self.reports_without_gates}
        for dataset, thresholds in self.run.thresholds.items():
            if not thresholds:
                continue
            nodeid = f"himga/{dataset}::gate"
            if self.partial:
                self.gate_items.append(GateItem(nodeid, "unmeasured", f"gate not evaluated: {self.partial}"))
                continue
            results = [evaluate(threshold, summaries[dataset]) for threshold in thresholds]
            if self.too_many_unscored:
                results = [undecided(result) for result in results]
            self.gate_results += results
            self.gate_items.append(GateItem(nodeid, _gate_status(results), _gate_text(results)))

    @property
    def asked_anything(self) -> bool:
        """Whether any question was to be measured in this run at all."""
        return bool(self.tally.expected or self.tally.records)

    @property
    def records(self) -> list[Record]:
        """All records, in the order of the datasets."""
        return [self.tally.records[nodeid] for nodeid in self.run.by_id if nodeid in self.tally.records]

    @property
    def unscored(self) -> list[Record]:
        """What should have been measured and was not."""
        return [record for record in self.records if record.verdict == "unscored"]

    @property
    def _not_run(self) -> list[Record]:
        return [record for record in self.unscored if record.outcome == "missing"]

    @property
    def _asked_in_vain(self) -> list[Record]:
        return [record for record in self.unscored if record.outcome != "missing"]

    @property
    def too_many_unscored(self) -> bool:
        """Whether more is unscored than the user allows."""
        measurable = sum(record.verdict != "n/a" for record in self.records)
        return len(self.unscored) > allowed_unscored(self.run.settings.max_unscored, measurable)

    @property
    def partial(self) -> str:
        """Why this is not the whole selection, "" if it is."""
        asked = len(self.records)
        total = len(self.run.by_id)
        if asked == total:
            return ""
        return f"only {asked} of {total} selected questions were run (-k, -m, ids, --lf, --deselect or --himga-items)"

    @property
    def whole(self) -> bool:
        """Whether all that was selected was run and measured well enough."""
        return not self.partial and not self.too_many_unscored

    def unmeasured(self) -> list[str]:
        """A phrase for each thing that should have been measured and was not."""
        settings = self.run.settings
        if not self.asked_anything:
            # Then the user's own tests were to do the measuring, and a gate over nothing is not passed.
            idle = settings.gate_asked_for and not settings.builtin_items
            return ["--himga-items=off, and no test asked for himga_verdict"] if idle else []
        phrases = []
        if self.too_many_unscored:
            phrases += [*_named("unscored", self._asked_in_vain), *_named("not run", self._not_run)]
        if self.tally.dead and not self.too_many_unscored:
            phrases.append(f"worker {', '.join(self.tally.dead)} died")
        phrases += [
            f"{item.nodeid}: {item.text.splitlines()[0]}"
            for item in self.gate_items
            if item.status == "unmeasured" and not (self.too_many_unscored and not self.partial)
        ]
        measured = any(record.verdict in ("correct", "wrong") for record in self.records)
        asked_for = self.run.settings.gate_asked_for or not self.partial
        if not measured and not phrases and asked_for:
            phrases.append("every question is n/a for this judge, so nothing was measured")
        return phrases

    def exit_status(
        self, pytest_status: int, tests_failed: int, *, proven_elsewhere: bool = False
    ) -> tuple[int, str]:
        """The run's exit status and the last line that explains a 6."""
        proven = proven_elsewhere or tests_failed > self.tally.unmeasured_failures
        return decide_exit(pytest_status, proven=proven, unmeasured=self.unmeasured())

    # -- numbers --------------------------------------------------------------------------------

    @cached_property
    def reports_without_gates(self) -> list[DatasetReport]:
        """The numbers of each dataset that was asked anything."""
        reports = []
        for dataset in self.run.datasets:
            records = [record for record in self.records if record.dataset == dataset.name]
            if records:
                summary = summarise(
                    dataset.name,
                    records,
                    type_labels=dataset.type_labels,
                    top_k=self.run.settings.top_k,
                    abstains=_abstains if self.tally.answers else None,
                )
                reports.append(DatasetReport(summary, self._provenance(dataset.sha256, len(records))))
        return reports

    @property
    def reports(self) -> list[DatasetReport]:
        """The numbers of each dataset, with its gates."""
        return [
            DatasetReport(
                report.summary,
                report.provenance,
                [gate for gate in self.gate_results if gate.dataset == report.summary.dataset],
            )
            for report in self.reports_without_gates
        ]

    @property
    def judge_name(self) -> str:
        """The judge that gave the verdicts; ``-`` where none did."""
        return next((record.judge for record in self.records if record.judge), "-")

    def _provenance(self, sha256: str, items: int) -> Provenance:
        return Provenance(
            sha256=sha256,
            items=items,
            backend=self.run.backend.name,
            judge=self.judge_name,
            top_k=self.run.settings.top_k,
            plugin_version=__version__,
            backend_version=self.tally.backend_version,
        )

    def notes(self) -> list[str]:
        """What a reader of the numbers must know."""
        tally, notes = self.tally, []
        top_k = self.run.settings.top_k
        if tally.returned > top_k:
            notes.append(
                f"retrieve() returned up to {tally.returned} things; only the first {top_k} count (--himga-top-k)"
            )
        again = sorted(sample for sample, scopes in tally.scopes.items() if len(scopes) > 1)
        if again:
            notes.append(f"fed more than once: {', '.join(again)}")
        if blank := sum(tally.blank_turns.values()):
            notes.append(f"{blank} blank turns were not fed")
        if self.partial and self.asked_anything:
            notes.append(self.partial)
        # What is beyond the allowance has been shown as errors; what is within it, and what was never run,
        # is named nowhere else.
        notes += _named("unscored", [] if self.too_many_unscored else self._asked_in_vain)
        notes += _named("not run", self._not_run)
        if self.run.folder.problem:
            notes.append(self.run.folder.problem)
        return notes

    def write_results(self) -> None:
        """``results.jsonl``; what cannot be written becomes a note."""
        if self.asked_anything:
            self.run.folder.write_results(self.records)

    def write_run(self, exit_status: int) -> None:
        """``run.json``, and room for it among the newest runs."""
        if self.asked_anything:
            self.run.folder.write_run(self._document(exit_status))
            self.run.folder.prune()

    def _document(self, exit_status: int) -> dict[str, Any]:
        settings, run = self.run.settings, self.run
        counts = {report.summary.dataset: report.provenance.items for report in self.reports}
        return run_document(
            run=run.run_id,
            plugin=__version__,
            python=platform.python_version(),
            datasets=[
                {
                    "name": dataset.name,
                    "family": dataset.family,
                    "sha256": dataset.sha256,
                    "labels": dataset.labels,
                    "errata": None,
                    "session_order": None,
                    "selection": {
                        "samples": list(settings.samples),
                        "types": list(settings.types),
                        "subset": settings.subset,
                    },
                    "items": counts.get(dataset.name, 0),
                }
                for dataset in run.datasets
            ],
            backend={
                "name": run.backend.name,
                "version": self.tally.backend_version,
                "options": dict(settings.backend_options),
            },
            k=settings.top_k,
            answerer="backend" if self.tally.answers else "none",
            judge=self.judge_name,
            profiles={},
            models={},
            settings=settings.as_json(),
            totals={report.summary.dataset: report.summary.totals() for report in self.reports},
            gates=[
                {
                    "gate": "score",
                    "dataset": gate.dataset,
                    "name": gate.name,
                    "threshold": float(gate.threshold.value),
                    "value": gate.value,
                    "n": gate.n,
                    "status": gate.status,
                    "text": gate.text,
                }
                for gate in self.gate_results
            ],
            exit_status=exit_status,
        )

    def order_of(self, nodeid: str) -> int:
        """A question's place in the datasets."""
        return self._order.get(nodeid, len(self._order))

    @cached_property
    def _order(self) -> dict[str, int]:
        return {nodeid: n for n, nodeid in enumerate(self.run.by_id)}

    def case(self, nodeid: str) -> Case | None:
        """The question with this node id."""
        return self.run.by_id.get(nodeid)


def _gate_status(results: Sequence[GateResult]) -> Literal["passed", "failed", "unmeasured"]:
    statuses = {result.status for result in results}
    if statuses & {"proven", "failed"}:
        return "failed"
    return "passed" if statuses == {"passed"} else "unmeasured"


def _gate_text(results: Sequence[GateResult]) -> str:
    """What failed comes first: its line is also the short summary's."""
    order = {"proven": 0, "failed": 0, "unmeasured": 1, "passed": 2}
    return "\n".join(result.text for result in sorted(results, key=lambda result: order[result.status]))


def _named(what: str, records: Sequence[Record]) -> list[str]:
    """A phrase that counts and names the records, or none if there are none."""
    if not records:
        return []
    names = ", ".join(record.id for record in records[:NAMED])
    more = f" and {len(records) - NAMED} more" if len(records) > NAMED else ""
    reasons = list(dict.fromkeys(record.reason.removeprefix(f"{what}: ") for record in records))
    why = f" ({one_line(reasons[0], LONGEST_REASON)})" if len(reasons) == 1 else ""
    plural = "" if len(records) == 1 else "s"
    return [f"{len(records)} question{plural} {what}{why}: {names}{more}"]


def _abstains(answer: str) -> bool:
    from pytest_himga.judge.abstention import abstains

    return abstains(answer)
