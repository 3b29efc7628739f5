"""``--himga-judge-probe``: the judge is tried on known answers before a suite is paid for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_himga.judge.probes import shipped_probes
from pytest_himga.report.calibration import calibration_lines, verdict_sentence
from pytest_himga.report.spending import spending
from pytest_himga.score.gate import NOT_MEASURED

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_himga.lineup import Llm
    from pytest_himga.run import Run
    from pytest_himga.score.calibration import Calibration


def probe_judges(run: Run, write: Callable[[str], None], *, verbosity: int, width: int) -> str:
    """Try the judges of the run's datasets, each once, and tell with ``write``; kept in ``run.calibrations``.

    Returns why the run must not go on, "" if it may.
    """
    found: dict[str, Calibration] = {}
    complaints: dict[str, None] = {}
    for dataset in dict.fromkeys(case.dataset for case in run.cases):
        llm = run.lineup.judge_of(dataset)
        judge = str(llm) if llm else str(run.lineup.judge)
        if judge not in found:
            found[judge] = _tried(run, dataset, llm, write, verbosity=verbosity, width=width)
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


def _tried(
    run: Run, dataset: str, llm: Llm | None, write: Callable[[str], None], *, verbosity: int, width: int
) -> Calibration:
    """Try one judge; with ``-q`` only what it comes to is told."""
    probes, quiet = shipped_probes(), verbosity < 0
    name = f"llm:{llm.profile}" if llm else str(run.lineup.judge)
    if llm:
        if not quiet:
            write(f"himga: judge: {llm}")
        planned = run.settings.models.planned_line(
            f"at most {len(probes) * llm.votes}", offline=run.settings.offline
        )
        write(f"himga: probe of the judge: {planned}")
    calibration = run.engine.try_judge(dataset, probes)
    if quiet:
        write(f"himga: judge {name}: {verdict_sentence(calibration)}")
    else:
        for line in calibration_lines(calibration, name, verbose=verbosity > 0, width=width):
            write(line)
    if spent := spending(calibration.usage):
        write(f"himga: probe of the judge: {spent}")
    return calibration
