"""``--himga-judge-probe``: the judge is tried on known answers before a suite is paid for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_himga.judge.probes import shipped_probes
from pytest_himga.report.calibration import calibration_lines, verdict_sentence
from pytest_himga.score.gate import NOT_MEASURED

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_himga.run import Run
    from pytest_himga.score.calibration import Calibration


def probe_judges(run: Run, write: Callable[[str], None], *, verbosity: int) -> str:
    """Try the judges of the run's datasets, each once, and tell with ``write``; kept in ``run.calibrations``.

    Returns why the run must not go on, "" if it may.
    """
    probes = shipped_probes()
    found: dict[str, Calibration] = {}
    complaints: dict[str, None] = {}
    for dataset in dict.fromkeys(case.dataset for case in run.cases):
        llm = run.lineup.judge_of(dataset)
        judge = str(llm) if llm else str(run.lineup.judge)
        if judge not in found:
            if llm:
                write(f"himga: planned model calls of the probe: at most {len(probes) * llm.votes}")
            found[judge] = run.engine.try_judge(dataset, probes)
            _tell(found[judge], llm.model.spec.name if llm else judge, write, verbosity)
        run.calibrations[dataset] = found[judge]
        if not found[judge].fit:
            complaints[f"the judge {judge} is {verdict_sentence(found[judge])}"] = None
    if not complaints or "judge" in run.settings.allow:
        return ""
    unfit = any(calibration.standing == "unfit" for calibration in found.values())
    advice = "Take another judge, model or profile" if unfit else "Mend that"
    return (
        f"himga: no question was asked (exit status {NOT_MEASURED}): {'; '.join(complaints)}. "
        f"{advice}, or add --himga-allow=judge"
    )


def _tell(calibration: Calibration, judge: str, write: Callable[[str], None], verbosity: int) -> None:
    """The whole table, or with ``-q`` only what it comes to."""
    if verbosity < 0:
        write(f"himga: judge {judge}: {verdict_sentence(calibration)}")
        return
    for line in calibration_lines(calibration, judge, verbose=verbosity > 0):
        write(line)
