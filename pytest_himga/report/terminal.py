"""The summary at the end of a run, as lines of text: numbers in, lines out, no terminal in sight.

Times stand on lines of their own (``retrieve``, ``ingest``): all other lines are the same with any number
of workers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pytest_himga.report.spending import spending
from pytest_himga.report.table import NOTHING, table_lines
from pytest_himga.report.text import Line, Style, counted, labelled, one_line, plain
from pytest_himga.score.corrected import corrected_accuracy
from pytest_himga.score.gate import GateResult, GateStatus, suggested_threshold
from pytest_himga.score.measurements import MEAN_SCORE
from pytest_himga.score.retrieval import metric_ks

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pytest_himga.score.calibration import Calibration
    from pytest_himga.score.dimensions import Dimensions
    from pytest_himga.score.summary import DatasetSummary

__all__ = ["DatasetReport", "Line", "Provenance", "Style", "summary_lines"]

#: Below this nothing readable comes out; a narrower terminal wraps by itself.
NARROWEST = 40
#: Wider lines are harder to read, not easier.
WIDEST = 100
#: Where the text of a labelled line starts: the longest label and two blanks.
_COLUMN = 12
#: Width of a number with four decimals.
_FIGURE = 6
#: Reasons for n/a that are told before the rest is counted, and characters of one.
_REASONS, _LONGEST_REASON = 3, 200
_ASKED_FOR = {"answer": "answers", "judge": "verdicts"}
_DOING = {"answer": "answering", "judge": "judging"}
_GATE: dict[GateStatus, tuple[str, Style]] = {
    "passed": ("passed", "green"),
    "failed": ("FAILED", "red"),
    "proven": ("FAILED", "red"),
    "unmeasured": ("UNMEASURED", "yellow"),
}


@dataclass(frozen=True)
class Provenance:
    """What the numbers of one dataset hang on: if any of it differs, they cannot be compared.

    ``errata`` names those that are active; ``session_order`` is shown unless it is the default, ``time``;
    ``unverified`` says that the data has another sha256 than the one that is published, or none is known;
    ``models`` tell of those that answered and judged, by role.
    """

    sha256: str
    items: int
    backend: str
    judge: str
    top_k: int
    plugin_version: str
    backend_version: str | None = None
    errata: str | None = None
    session_order: str | None = None
    unverified: bool = False
    models: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class DatasetReport:
    """One dataset's numbers, where they come from, and how its gates came out."""

    summary: DatasetSummary
    provenance: Provenance
    gates: Sequence[GateResult] = ()
    calibration: Calibration | None = None


def summary_lines(
    datasets: Sequence[DatasetReport],
    *,
    gate: str,
    gate_reason: str,
    gate_set: bool,
    notes: Sequence[str] = (),
    width: int = 80,
) -> list[Line]:
    """Write the whole summary, at most ``width`` (40 to 100) characters wide, in ASCII.

    ``gate`` and ``gate_reason`` name the active gate modes and why they are active. Unless ``gate_set``,
    the last line tells how to set a minimum that this run would pass.
    """
    width = min(max(width, NARROWEST), WIDEST)
    lines: list[Line] = []
    for report in datasets:
        lines += [*_dataset_lines(report, width), Line("")]
    lines += _fact("gate", f"{gate} ({gate_reason})", width)
    for result in (result for report in datasets for result in report.gates):
        word, style = _GATE[result.status]
        lines += _fact(word, f"{result.dataset}: {result.text}", width, style)
    for note in notes:
        lines += _fact("note", note, width, "yellow")
    if not gate_set:
        lines += _fact("hint", _hint(datasets, width), width)
    return lines


def _dataset_lines(report: DatasetReport, width: int) -> Iterator[Line]:
    summary = report.summary
    yield from table_lines(summary, width)
    yield Line("")
    if summary.na_reasons:
        yield from _fact("n/a", _not_applicable(summary.na_reasons), width)
    if summary.excluded.n or summary.corrected:
        yield from _fact("errata", _errata(summary), width)
    if summary.dimensions:
        yield from _dimensions(summary.dimensions, width)
    if told := summary.abstention.told:
        row = summary.abstention
        known = "" if told == row.n else f" ({told} of {row.n} could be told)"
        met = f"held {row.held}, fell for the trap {row.fell}, other {row.other}{known}"
        yield from _fact("abstention", met, width)
    if refusals := summary.false_refusals:
        text = f"{refusals.value:.4f} of the answerable questions ({refusals.count} of {refusals.n})"
        yield from _fact("refused", text, width)
    yield from _retrieval(summary, width)
    named = (("F1", "f1"), ("mean score", MEAN_SCORE))
    scores = [(label, summary.metrics[name]) for label, name in named if name in summary.metrics]
    if scores:
        text = ", ".join(
            f"{label} {mean.value:.4f} ({counted(mean.n, 'question')})" for label, mean in scores
        )
        yield from _fact("scores", text, width)
    if report.calibration:
        yield from _fact("corrected", _corrected(summary, report.calibration), width)
    yield from _context(summary, width)
    yield from _models(summary, width)
    yield from _times(summary, width)
    for role, model in report.provenance.models.items():
        yield from _fact(role, model, width)
    yield from _fact("provenance", _provenance(report), width)


def _not_applicable(reasons: Sequence[tuple[str, int]]) -> str:
    told = [
        f"{count}: {one_line(reason, _LONGEST_REASON) or 'no reason given'}"
        for reason, count in reasons[:_REASONS]
    ]
    if rest := sum(count for _, count in reasons[_REASONS:]):
        told.append(f"and {rest} more for other reasons")
    return "; ".join(told)


def _errata(summary: DatasetSummary) -> str:
    told = [f"{counted(summary.excluded.n, 'question')} excluded"] if summary.excluded.n else []
    if summary.corrected:
        told.append(f"{counted(summary.corrected, 'question')} judged by a corrected gold")
    return f"{', '.join(told)}; as published counts them as the dataset has them"


def _dimensions(dimensions: Dimensions, width: int) -> Iterator[Line]:
    """What the rows of the table do not say: how the curve goes, and what a correct answer cost."""
    if dimensions.slope is not None:
        over = counted(len(dimensions.measured), "checkpoint")
        slope = f"{float(dimensions.slope):z.4f} a checkpoint (least squares over {over})"
        yield from _fact("slope", slope, width)
    elif dimensions.curve:
        yield from _fact("slope", f"{NOTHING} (it takes two checkpoints with a verdict)", width)
    if cost := dimensions.cost:
        each = NOTHING if cost.per_correct is None else _cost(cost.per_correct)
        yield from _fact(
            "cost", f"{each} a correct answer ({_cost(cost.total)} in all, {cost.correct} correct)", width
        )


def _retrieval(summary: DatasetSummary, width: int) -> Iterator[Line]:
    """Give a small table of recall, hit, nDCG and session recall by depth; or running text where it does not fit."""
    ks = metric_ks(summary.top_k)
    measured = {name: mean for name, mean in summary.metrics.items() if name == "mrr" or "@" in name}
    if not measured:
        yield from _fact("retrieval", f"{NOTHING} (no ids came back for a question with evidence)", width)
        return

    def figure(name: str) -> str:
        return f"{measured[name].value:.4f}" if name in measured else NOTHING

    counts = sorted({mean.n for mean in measured.values()})
    over = str(counts[0]) if len(counts) == 1 else f"{counts[0]}-{counts[-1]}"
    kinds = [("recall", "recall"), ("hit", "hit"), ("nDCG", "ndcg")]
    if any(name.startswith("session-recall@") for name in measured):
        kinds.append(("session", "session-recall"))
    table = {label: [figure(f"{kind}@{k}") for k in ks] for label, kind in kinds}
    gap = next((gap for gap in (2, 1) if _COLUMN + (_FIGURE + gap) * len(ks) - gap <= width), 0)
    if not gap:
        facts = [
            f"{label}@{k} {cell}" for label, cells in table.items() for k, cell in zip(ks, cells, strict=True)
        ]
        yield from _fact("retrieval", f"{', '.join(facts)}, MRR {figure('mrr')}; questions {over}", width)
        return
    whole = {"retrieval": [f"@{k}" for k in ks]}
    whole |= {f"  {label}": cells for label, cells in table.items()}
    whole |= {"  MRR": [figure("mrr")], "  questions": [over]}
    for label, cells in whole.items():
        yield Line(label.ljust(_COLUMN) + (" " * gap).join(f"{cell:>{_FIGURE}}" for cell in cells))


def _context(summary: DatasetSummary, width: int) -> Iterator[Line]:
    chars, empty = summary.context_chars, summary.empty_contexts
    if chars is None or empty is None or summary.context_tokens is None:
        yield from _fact("context", NOTHING, width)
        return
    text = (
        f"{chars.value:,.0f} characters, ~{summary.context_tokens:,.0f} tokens (characters / 4); "
        f"empty {empty.count} of {empty.n}"
    )
    yield from _fact("context", text, width, "yellow" if empty.count == empty.n else "")


def _corrected(summary: DatasetSummary, calibration: Calibration) -> str:
    """``overall`` as it would be if the judge erred on these answers as it does on its probes, taken out."""
    wrong, right, row = calibration.wrong, calibration.right, summary.overall
    if calibration.gaps:
        return f"{NOTHING} (the judge's errors are not known: {calibration.gaps[0]})"
    told = right.measured + wrong.measured
    errors = (
        f"the judge's errors on {told} probes (accepts {wrong.mistakes} of {wrong.measured} wrong answers, "
        f"rejects {right.mistakes} of {right.measured} right ones)"
    )
    found = corrected_accuracy(row.correct, row.measured, **calibration.counts())
    if found:
        return f"overall {found.value:.4f} (95% interval {found.low:.3f}-{found.high:.3f}) for {errors}"
    return f"{NOTHING} for {errors}" + ("; that is no better than chance" if row.measured else "")


def _models(summary: DatasetSummary, width: int) -> Iterator[Line]:
    """What the models were asked, and how the votes went."""
    for stage, spent in summary.spent.items():
        yield from _fact(_ASKED_FOR[stage], spending(spent), width)
    if votes := summary.votes:
        text = f"{votes.split} of {counted(votes.n, 'question')} with several votes were not unanimous"
        yield from _fact("votes", text, width)


def _times(summary: DatasetSummary, width: int) -> Iterator[Line]:
    """Print times short enough never to wrap: one line each, whatever the clock said."""
    times = summary.times
    for stage, spent in summary.spent.items():
        if spent.p50 is not None and spent.p95 is not None:
            yield from _fact(_DOING[stage], f"p50 {_time(spent.p50)}, p95 {_time(spent.p95)}", width)
    if times.retrieve_p50 is not None and times.retrieve_p95 is not None:
        yield from _fact(
            "retrieve", f"p50 {_time(times.retrieve_p50)}, p95 {_time(times.retrieve_p95)}", width
        )
    if times.ingest_mean is not None and times.ingest_most is not None:
        joint = " a sample, at most" if width > NARROWEST + _COLUMN else ", most"
        yield from _fact("ingest", f"{_time(times.ingest_mean)}{joint} {_time(times.ingest_most)}", width)


def _provenance(report: DatasetReport) -> str:
    summary, source = report.summary, report.provenance
    fed = "" if summary.samples_fed == summary.samples else f" ({summary.samples_fed} fed)"
    version = f" {source.backend_version}" if source.backend_version else ""
    errata = [f"errata {source.errata}"] if source.errata else []
    order = [f"session order {source.session_order}"] if source.session_order not in (None, "time") else []
    facts = (
        f"{summary.dataset} sha256 {source.sha256[:12]}{' (UNVERIFIED)' if source.unverified else ''}",
        *errata,
        *order,
        counted(source.items, "item"),
        f"{counted(summary.samples, 'sample')}{fed}",
        f"backend {source.backend}{version}",
        f"judge {source.judge}",
        f"k {source.top_k}",
        f"pytest-himga {source.plugin_version}",
    )
    return ", ".join(facts)


def _hint(datasets: Sequence[DatasetReport], width: int) -> str:
    found = [(r.summary.dataset, suggested_threshold(r.summary)) for r in datasets]
    measured = [(dataset, score) for dataset, score in found if score is not None]
    if not measured:
        return (
            "nothing above 0 was measured that a gate could hold; one is set with, say, "
            "--himga-min-score=0.70"
        )
    values = [score if len(datasets) == 1 else f"{dataset}:{score}" for dataset, score in measured]
    option = f"--himga-min-score={','.join(values)}"
    if len(option) > width - _COLUMN:  # an option that is broken at the end of a line cannot be copied
        option = " ".join(f"--himga-min-score={value}" for value in values)
    return f"to fail a run that scores below this one, add {option}"


def _fact(label: str, text: str, width: int, style: Style = "") -> list[Line]:
    return [Line(line, style) for line in labelled(label, plain(text), width=width, column=_COLUMN)]


def _cost(amount: float) -> str:
    """Four decimals, or as many as show four digits: a small model's answer costs millionths."""
    decimals = 4 if amount >= 1 else min(3 - math.floor(math.log10(amount)), 12)
    return f"{amount:.{decimals}f}"


def _time(ms: float) -> str:
    """Milliseconds in the unit that a person would say them in."""
    if ms < 10:
        return f"{ms:.2f} ms"
    if ms < 1000:
        return f"{ms:.0f} ms"
    return f"{ms / 1000:.1f} s" if ms < 120_000 else f"{ms / 60_000:.1f} min"
