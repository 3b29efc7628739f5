"""What pytest's terminal shows of a run: header, shortened failures, misses, summary, and the last line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_himga.options import only_lists
from pytest_himga.report.terminal import WIDEST, summary_lines
from pytest_himga.report.text import Line, counted, one_line
from pytest_himga.results import notes_of, reports_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pytest_himga.collect import Wanted
    from pytest_himga.controller import Controller
    from pytest_himga.run import Run

#: Failures of a dataset that are shown in full; more would push the summary out of sight.
SHOWN_IN_FULL = 10


class Display:
    """Writes to pytest's terminal reporter, where there is one."""

    def __init__(self, config: Any, controller: Controller) -> None:
        self._config = config
        self._controller = controller
        #: A warning for the header, "" if there is none.
        self.note = ""
        self._failures: Failures | None = None
        self._told = False

    def header(self) -> list[str]:
        """The lines below pytest's own header."""
        from pytest_himga.collect import WANTED

        wanted = self._config.stash[WANTED]
        return header_lines(self._controller.run, wanted, self.note, self._config.option.verbose)

    def probe_judges(self) -> None:
        """Try the judges where that was asked for; ends the session if one is not fit."""
        run = self._controller.run
        if not run.settings.models.judge_probe or only_lists(self._config.option):
            return
        import pytest

        from pytest_himga.probing import probe_judges
        from pytest_himga.score.gate import NOT_MEASURED

        reporter = self._config.pluginmanager.getplugin("terminalreporter")
        write = reporter.write_line if reporter is not None else print
        width = _width_of(reporter) if reporter is not None else WIDEST
        if complaint := probe_judges(run, write, verbosity=self._config.option.verbose, width=width):
            pytest.exit(complaint, returncode=NOT_MEASURED)

    def planned(self, nodeids: Iterable[str]) -> None:
        """Say how many requests to models are planned, before the first one; also with ``-q``."""
        reporter = self._config.pluginmanager.getplugin("terminalreporter")
        run = self._controller.run
        if self._told or reporter is None or only_lists(self._config.option):
            return
        self._told = True
        ids = set(nodeids)
        if planned := run.lineup.planned(case for case in run.cases if case.id in ids):
            reporter.ensure_newline()
            settings = run.settings
            line = settings.models.planned_line(planned, offline=settings.offline)
            reporter.write_line(f"himga: {line}")

    def shorten(self, reporter: Any) -> None:
        """Before pytest prints FAILURES and ERRORS."""
        self._failures = Failures(reporter, self._controller.run)
        self._failures.shorten()

    def summary(self, reporter: Any, exit_status: int) -> None:
        """After them."""
        hidden = self._failures.restore() if self._failures else []
        if only_lists(self._config.option):
            return
        write_summary(reporter, self._controller, hidden)
        idle = not self._controller.asked_anything and not self._controller.unmeasured()
        if idle and exit_status < 2 and self._controller.run.settings.gate_asked_for:
            text = "himga: no question was judged in this run, so its gate was not applied"
            reporter.write_line(text, yellow=True)

    def last_line(self, text: str) -> None:
        """The very last line, also with ``-q``."""
        reporter = self._config.pluginmanager.getplugin("terminalreporter")
        if text and reporter is not None:
            reporter.write_line(text, red=True)


def header_lines(run: Run, wanted: Wanted, note: str, verbosity: int) -> list[str]:
    """What is about to be measured, by what, and which gate will decide."""
    settings, answers = run.settings, run.backend.answers
    lines = []
    for dataset in run.datasets:
        cases = [case for case in run.cases if case.dataset == dataset.name]
        samples = len({case.sample_name for case in cases})
        items = "" if wanted.builtin else "; no built-in items"
        asked = f"{counted(len(cases), 'question')} in {counted(samples, 'sample')}"
        lines.append(f"himga: {dataset.name}: {asked}{items}, sha256 {dataset.sha256[:12]}")
        if dataset.warnings:
            count = len(dataset.warnings)
            told = "" if verbosity > 0 else f"; -v lists {'it' if count == 1 else 'them'}"
            lines.append(f"himga: {dataset.name}: {counted(count, 'warning')} from the data{told}")
            if verbosity > 0:
                lines += [f"  {one_line(text, 400)}" for text in dataset.warnings]
    lineup = run.lineup
    by_code = lineup.answerer not in (None, "none", "backend")
    answers = by_code or (False if lineup.answerer == "none" else answers)
    default = "told by the backend" if answers is None else "lexical" if answers else "evidence"
    answerer = f", answerer {lineup.answerer}" if lineup.answerer else ""
    judge = lineup.judge or default
    lines.append(f"himga: backend {run.backend.name}{answerer}, judge {judge}, k {settings.top_k}")
    lines += [f"himga: {line}" for line in lineup.lines()]
    lines.append(f"himga: gate {', '.join(settings.gates)} ({settings.gate_reason})")
    if note:
        lines.append(f"himga: warning: {note}")
    return lines


class Failures:
    """Keeps all but the first failures of each dataset out of pytest's FAILURES and ERRORS sections.

    They stay counted, and one line each in the short summary. The reporter's lists are changed while it
    prints those sections and put back, in the order of the datasets, before it prints anything else.
    """

    CATEGORIES = ("failed", "error")

    def __init__(self, reporter: Any, run: Run) -> None:
        self._stats = reporter.stats
        self._all_in_full = reporter.verbosity > 0
        self._run = run
        self._whole: dict[str, list[Any]] = {}

    def shorten(self) -> None:
        """Before pytest prints its sections."""
        for category in self.CATEGORIES:
            reports = self._stats.get(category, [])
            places = self._run.places
            ours = sorted((r for r in reports if r.nodeid in places), key=lambda r: places[r.nodeid])
            others = [report for report in reports if report.nodeid not in places]
            if not ours:
                continue
            self._whole[category] = [*ours, *others]
            if not self._all_in_full:
                self._stats[category] = [*_first_of_each_dataset(ours, self._run), *others]

    def restore(self) -> list[str]:
        """After that; a line for what was left out."""
        lines = []
        for category, reports in self._whole.items():
            hidden = len(reports) - len(self._stats[category])
            self._stats[category] = reports
            if hidden:
                word = "failures" if category == "failed" else "errors"
                lines.append(
                    f"{hidden} more {word} have one line each in the short summary; -v shows all in full"
                )
        return lines


def _first_of_each_dataset(reports: Sequence[Any], run: Run) -> Iterator[Any]:
    shown: dict[str, int] = {}
    for report in reports:
        dataset = run.by_id[report.nodeid].dataset
        shown[dataset] = shown.get(dataset, 0) + 1
        if shown[dataset] <= SHOWN_IN_FULL:
            yield report


def write_summary(reporter: Any, controller: Controller, hidden: Sequence[str]) -> None:
    """The misses, then the numbers."""
    for text in hidden:
        reporter.write_line(text)
    if not controller.asked_anything:
        return
    misses = _missed_lines(reporter, controller)
    if misses:
        reporter.write_sep("=", "himga: missed", yellow=True)
        for text in misses:
            reporter.write_line(text)
    reporter.write_sep("=", "himga")
    settings = controller.run.settings
    for line in summary_lines(
        reports_of(controller),
        gate=", ".join(settings.gates),
        gate_reason=settings.gate_reason,
        # A threshold that was read off half a run is one that a whole run may not pass.
        gate_set=bool(settings.thresholds) or settings.gate_asked_for or not controller.whole,
        notes=notes_of(controller),
        width=_width_of(reporter),
    ):
        _write(reporter, line)


def _missed_lines(reporter: Any, controller: Controller) -> list[str]:
    """One line for each miss; with ``-v`` or ``-rA`` all of them, with ``-vv`` in full."""
    run = controller.run
    reports = sorted(reporter.stats.get("missed", []), key=lambda report: run.places[report.nodeid])
    # As typed: pytest turns "A" into the letters of its own categories.
    everything = reporter.verbosity > 0 or not {"A", "m"}.isdisjoint(reporter.config.option.reportchars)
    shown = reports if everything else list(_first_of_each_dataset(reports, run))
    lines = []
    for report in shown:
        headline = str(report.wasxfail).removeprefix("missed: ")
        lines.append(f"MISSED {report.nodeid} - {headline}")
        if reporter.verbosity > 1:
            lines += [*str(report.longrepr).splitlines()[1:], ""]
    if len(shown) < len(reports):
        lines.append(f"{len(reports) - len(shown)} more; -v lists all, -vv shows them in full")
    return lines


def _width_of(reporter: Any) -> int:
    width: int = reporter._tw.fullwidth  # noqa: SLF001 - the reporter has no public way to tell its width
    return width


def _write(reporter: Any, line: Line) -> None:
    reporter.write_line(line.text, **({line.style: True} if line.style else {}))
