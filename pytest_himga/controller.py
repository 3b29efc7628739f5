"""How a run ends: what is missing, how the gates come out, and the exit status.

With ``-n`` the workers measure and send; without it this process does both. Nothing else in the plugin
decides whether a run passes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from pytest_himga.report.text import counted, one_line
from pytest_himga.score.gate import GateResult, decide_exit, evaluate, undecided
from pytest_himga.score.record import Record, exclusion_of, record_of
from pytest_himga.score.summary import DatasetSummary, summarise
from pytest_himga.score.thresholds import allowed_unscored
from pytest_himga.tally import Tally, died_during

if TYPE_CHECKING:
    from collections.abc import Sequence

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


class Controller:
    """Judges the run by its tally. ``builtin`` says whether the arguments asked for himga's own items."""

    def __init__(self, run: Run, *, builtin: bool = True) -> None:
        self.run = run
        self.tally = Tally(run.by_id)
        self.gate_results: list[GateResult] = []
        self.gate_items: list[GateItem] = []
        self._builtin = builtin
        self._settled = False

    def refuse(self) -> None:
        """The run ends in a usage error: what never began is not missing, so nothing is told of it."""
        self.tally.expected.clear()
        self._settled = True

    def settle(self, *, complete: bool) -> None:
        """The run is over: account for what is missing, and apply the gates to a complete one.

        ``complete`` is False where pytest stopped early (-x, Ctrl-C, an error).
        """
        if self._settled:
            return
        self._settled = True
        for nodeid in self.tally.expected - self.tally.records.keys():
            self.tally.records[nodeid] = self._record_of_missing(nodeid, complete)
        if complete and "score" in self.run.settings.gates and (self.asked_anything or self._builtin):
            self._apply_score_gate()

    def _record_of_missing(self, nodeid: str, complete: bool) -> Record:
        lost_by = self.tally.lost.get(nodeid)
        record = record_of(
            self.run.by_id[nodeid],
            verdict="unscored",
            reason=died_during(lost_by) if lost_by else f"not run: {self._why_not_run(complete)}",
            k=self.run.settings.top_k,
            worker=lost_by or "",
        )
        record.outcome = "unscored" if lost_by else "missing"
        # No judge has seen it, but the run has one, which decides what a wrong citation leaves out.
        judges = (other.judge for other in self.tally.records.values() if other.judge)
        record.errata = exclusion_of(self.run.by_id[nodeid], next(judges, ""))
        return record

    def _why_not_run(self, complete: bool) -> str:
        if self.tally.dead:
            return f"worker {', '.join(self.tally.dead)} died"
        return "no result came back" if complete else "the run stopped early"

    # -- what there is --------------------------------------------------------------------------

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
    def not_run(self) -> list[Record]:
        """What never came to be asked."""
        return [record for record in self.unscored if record.outcome == "missing"]

    @property
    def asked_in_vain(self) -> list[Record]:
        """What was asked and brought no verdict."""
        return [record for record in self.unscored if record.outcome != "missing"]

    @property
    def too_many_unscored(self) -> bool:
        """Whether more is unscored than the user allows."""
        measurable = sum(record.verdict != "n/a" for record in self.records)
        return len(self.unscored) > allowed_unscored(self.run.settings.max_unscored, measurable)

    @property
    def partial(self) -> str:
        """Why this is not the whole selection, "" if it is."""
        asked, total = len(self.records), len(self.run.by_id)
        if asked == total:
            return ""
        return f"only {asked} of {total} selected questions were run (-k, -m, ids, --lf, --deselect or --himga-items)"

    @property
    def whole(self) -> bool:
        """Whether all that was selected was run and measured well enough."""
        return not self.partial and not self.too_many_unscored

    @cached_property
    def summaries(self) -> dict[str, DatasetSummary]:
        """The numbers of each dataset that was asked anything; asked for when the run is settled."""
        records = self.records
        found = {}
        for dataset in self.run.datasets:
            asked = [record for record in records if record.dataset == dataset.name]
            if asked:
                found[dataset.name] = summarise(
                    dataset.name,
                    asked,
                    type_labels=dataset.type_labels,
                    top_k=self.run.settings.top_k,
                    abstains=_abstains if self.tally.answers else None,
                    errata=dataset.errata is not None,
                )
        return found

    # -- how it comes out -----------------------------------------------------------------------

    def _apply_score_gate(self) -> None:
        partial, too_many = self.partial, self.too_many_unscored
        for dataset, thresholds in self.run.thresholds.items():
            if not thresholds:
                continue
            nodeid = f"himga/{dataset}::gate"
            if partial:
                self.gate_items.append(GateItem(nodeid, "unmeasured", f"gate not evaluated: {partial}"))
                continue
            results = [evaluate(threshold, self.summaries[dataset]) for threshold in thresholds]
            if too_many:
                results = [undecided(result) for result in results]
            self.gate_results += results
            self.gate_items.append(GateItem(nodeid, _gate_status(results), _gate_text(results)))

    def unmeasured(self) -> list[str]:
        """A phrase for each thing that should have been measured and was not."""
        settings = self.run.settings
        gates = [item for item in self.gate_items if item.status == "unmeasured"]
        if not self.asked_anything:
            # Then the user's own tests were to do the measuring, and a gate over nothing is not passed.
            idle = settings.gate_asked_for and not settings.builtin_items
            phrases = ["--himga-items=off, and no test asked for himga_verdict"] if idle else []
            return phrases or [_said(item) for item in gates]
        too_many = self.too_many_unscored
        phrases = []
        if too_many:
            phrases += [*named("unscored", self.asked_in_vain), *named("not run", self.not_run)]
        elif self.tally.dead:
            phrases.append(f"worker {', '.join(self.tally.dead)} died")
        if self.partial or not too_many:
            phrases += [_said(item) for item in gates]
        measured = any(record.verdict in ("correct", "wrong") for record in self.records)
        if not measured and not phrases and (settings.gate_asked_for or not self.partial):
            kinds = " or ".join(sorted({record.verdict for record in self.records}))
            phrases.append(f"every question is {kinds}{_why(self.records)}, so nothing was measured")
        return phrases

    def exit_status(
        self, pytest_status: int, tests_failed: int, *, proven_elsewhere: bool = False
    ) -> tuple[int, str]:
        """The run's exit status and the last line that explains a 6."""
        proven = proven_elsewhere or tests_failed > self.tally.unmeasured_failures
        return decide_exit(pytest_status, proven=proven, unmeasured=self.unmeasured())


def named(what: str, records: Sequence[Record]) -> list[str]:
    """A phrase that counts and names the records, or none if there are none."""
    if not records:
        return []
    names = ", ".join(record.id for record in records[:NAMED])
    more = f" and {len(records) - NAMED} more" if len(records) > NAMED else ""
    why = _why(records, told=f"{what}: ")
    return [f"{counted(len(records), 'question')} {what}{why}: {names}{more}"]


def _why(records: Sequence[Record], told: str = "") -> str:
    """The one reason of all the records in brackets, without ``told`` before it; "" if there are several."""
    reasons = {record.reason.removeprefix(told) for record in records}
    return f" ({one_line(reasons.pop(), LONGEST_REASON)})" if len(reasons) == 1 else ""


def _said(item: GateItem) -> str:
    return f"{item.nodeid}: {item.text.splitlines()[0]}"


def _gate_status(results: Sequence[GateResult]) -> Literal["passed", "failed", "unmeasured"]:
    statuses = {result.status for result in results}
    if statuses & {"proven", "failed"}:
        return "failed"
    return "passed" if statuses == {"passed"} else "unmeasured"


def _gate_text(results: Sequence[GateResult]) -> str:
    """What failed comes first: its line is also the short summary's."""
    order = {"proven": 0, "failed": 0, "unmeasured": 1, "passed": 2}
    return "\n".join(result.text for result in sorted(results, key=lambda result: order[result.status]))


def _abstains(answer: str) -> bool:
    from pytest_himga.judge.abstention import abstains

    return abstains(answer)
