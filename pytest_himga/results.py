"""What a settled run says of itself: its numbers, notes for their reader, and the files it leaves."""

from __future__ import annotations

import platform
import re
from typing import TYPE_CHECKING, Any

from pytest_himga import __version__
from pytest_himga.controller import named
from pytest_himga.report.calibration import verdict_sentence
from pytest_himga.report.run_folder import run_document
from pytest_himga.report.terminal import DatasetReport, Provenance
from pytest_himga.report.text import counted

if TYPE_CHECKING:
    from pytest_himga.controller import Controller
    from pytest_himga.data.dataset import Dataset
    from pytest_himga.report.run_folder import DatasetEntry

#: Backend options whose value is nobody's business: run.json may end up as a CI artefact.
_SECRET = re.compile(r"key|token|secret|passw|pwd|credential|auth", re.IGNORECASE)
#: What may stand before the host of an address: a user and a password.
_USERINFO = re.compile(r"://\S*@")


def reports_of(controller: Controller) -> list[DatasetReport]:
    """The numbers of each dataset that was asked anything, with its gates."""
    datasets = {dataset.name: dataset for dataset in controller.run.datasets}
    return [
        DatasetReport(
            summary,
            Provenance(
                sha256=datasets[name].sha256,
                items=summary.all.n,
                backend=controller.run.backend.name,
                judge=judge_name(controller, name),
                models={
                    llm.role: str(llm)
                    for llm in (controller.run.lineup.answering, controller.run.lineup.judge_of(name))
                    if llm
                },
                top_k=controller.run.settings.top_k,
                plugin_version=__version__,
                backend_version=controller.tally.backend_version,
                errata=datasets[name].errata_label,
                session_order=datasets[name].session_order,
                unverified=bool(datasets[name].unverified),
            ),
            [gate for gate in controller.gate_results if gate.dataset == name],
            controller.run.calibrations.get(name),
        )
        for name, summary in controller.summaries.items()
    ]


def judge_name(controller: Controller, dataset: str | None = None) -> str:
    """The judge that gave the verdicts of a dataset, or of all (several by commas); ``-`` where none did."""
    records = (record for record in controller.records if dataset in (None, record.dataset))
    return ",".join(dict.fromkeys(record.judge for record in records if record.judge)) or "-"


def notes_of(controller: Controller) -> list[str]:
    """What a reader of the numbers must know."""
    tally, top_k = controller.tally, controller.run.settings.top_k
    notes = []
    if tally.returned > top_k:
        notes.append(
            f"retrieve() returned up to {tally.returned} things; only the first {top_k} count (--himga-top-k)"
        )
    again = sorted(sample for sample, scopes in tally.scopes.items() if len(scopes) > 1)
    if again:
        notes.append(f"fed more than once: {', '.join(again)}")
    notes += [dataset.unverified for dataset in controller.run.datasets if dataset.unverified]
    if blank := sum(tally.blank_turns.values()):
        notes.append(f"{counted(blank, 'blank turn')} {'was' if blank == 1 else 'were'} not fed")
    if controller.partial and controller.asked_anything:
        notes.append(controller.partial)
    # What is beyond the allowance has been shown as errors; what is within it, and what was never run,
    # is named nowhere else.
    notes += named("unscored", [] if controller.too_many_unscored else controller.asked_in_vain)
    notes += named("not run", controller.not_run)
    notes += [*_doubts(controller), *controller.run.lineup.notes, *tally.notes]
    if controller.run.folder.problem:
        notes.append(controller.run.folder.problem)
    return notes


def _doubts(controller: Controller) -> dict[str, None]:
    """What the probes have against the judges whose verdicts stand here all the same."""
    calibrations = controller.run.calibrations
    judged = [name for name in controller.summaries if name in calibrations and not calibrations[name].fit]
    whose = {name: f"the judge of {name}" if len(calibrations) > 1 else "the judge" for name in judged}
    return dict.fromkeys(f"{whose[name]} is {verdict_sentence(calibrations[name])}" for name in judged)


def write_results(controller: Controller) -> None:
    """``results.jsonl``; what cannot be written becomes a note."""
    if controller.asked_anything:
        controller.run.folder.write_results(controller.records)


def write_run(controller: Controller, exit_status: int) -> None:
    """``run.json``, and room for it among the newest runs."""
    if controller.asked_anything:
        controller.run.folder.write_run(_document(controller, exit_status))
        controller.run.folder.prune()


def _document(controller: Controller, exit_status: int) -> dict[str, Any]:
    settings, run, tally = controller.run.settings, controller.run, controller.tally
    options = {
        key: "***" if _SECRET.search(key) else _USERINFO.sub("://***@", value)
        for key, value in settings.backend_options.items()
    }
    return run_document(
        run=run.run_id,
        plugin=__version__,
        python=platform.python_version(),
        datasets=[_dataset_entry(controller, dataset) for dataset in run.datasets],
        backend={"name": run.backend.name, "version": tally.backend_version, "options": options},
        k=settings.top_k,
        answerer=run.lineup.answerer or ("backend" if tally.answers else "none"),
        judge=judge_name(controller),
        profiles=run.lineup.profiles,
        models=run.lineup.models,
        judge_probe={name: found.as_json() for name, found in run.calibrations.items()},
        settings=settings.as_json(),
        totals={name: summary.totals() for name, summary in controller.summaries.items()},
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
            for gate in controller.gate_results
        ],
        exit_status=exit_status,
    )


def _dataset_entry(controller: Controller, dataset: Dataset) -> DatasetEntry:
    settings, summary = controller.run.settings, controller.summaries.get(dataset.name)
    return {
        "name": dataset.name,
        "family": dataset.family,
        "sha256": dataset.sha256,
        "labels": dataset.labels,
        "errata": dataset.errata.as_json() if dataset.errata else None,
        "session_order": dataset.session_order,
        "unverified": dataset.unverified or None,
        "selection": {
            "samples": list(settings.samples),
            "types": list(settings.types),
            "subset": settings.subset,
        },
        "items": summary.all.n if summary else 0,
    }
