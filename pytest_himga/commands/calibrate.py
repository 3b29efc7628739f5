"""``himga calibrate``: a judge is tried on answers that are known to be right or wrong, before it counts.

Exit status: 0 fit for gating; 1 not fit; 2 a command line, an environment or a dataset that cannot be used;
6 not measured: probes got no verdict. The options are those of pytest without ``himga-``, and their
``HIMGA_`` variables count here too.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_himga.errors import SettingsError
from pytest_himga.options import DEFAULT_TIMEOUT, LABELS

if TYPE_CHECKING:
    import argparse

    from pytest_himga.commands.bench import Sheet
    from pytest_himga.score.calibration import Calibration

FIT, UNFIT, UNMEASURED = 0, 1, 6


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    judge = parser.add_argument_group("the judge")
    judge.add_argument("--judge", metavar="NAME", help="lexical, llm or package.module:attribute")
    judge.add_argument(
        "--judge-profile",
        metavar="NAME|FILE",
        help="rules of the LLM, as for pytest (default: by the dataset)",
    )
    judge.add_argument("--judge-model", metavar="NAME", help="model of the LLM")
    judge.add_argument("--judge-base-url", metavar="URL", help="its OpenAI-compatible server")
    judge.add_argument(
        "--judge-model-option",
        metavar="KEY=VALUE",
        action="append",
        help="a parameter that is sent along, e.g. temperature=0",
    )
    judge.add_argument("--judge-votes", metavar="K", help="ask the LLM K times (odd), the majority counts")
    judge.add_argument(
        "--cache", metavar="off|read|refresh|PATH", action="append", help="the LLM's replies, as for pytest"
    )
    judge.add_argument(
        "--timeout", metavar="SECONDS", help=f"limit for one call of the judge (default {DEFAULT_TIMEOUT:g})"
    )
    data = parser.add_argument_group("probes beside the shipped ones")
    data.add_argument(
        "--from-dataset",
        metavar="NAME|PATH",
        action="append",
        help="also golds, golds of other questions, and traps of this dataset",
    )
    data.add_argument("--subset", metavar="N|N%", help="only so many of its questions")
    data.add_argument("--data-dir", metavar="DIR", help="folder that datasets are looked up in")
    data.add_argument("--locomo-labels", choices=LABELS, help="names of LoCoMo's categories, as for pytest")
    data.add_argument("--allow", metavar="unverified", help="accept data that are not the published ones")
    parser.add_argument(
        "--offline",
        action="store_const",
        const="yes",
        help="open no connection: no download, and replies from the cache only",
    )
    parser.add_argument("--json", metavar="FILE", help="also write the counts and rates to FILE")
    parser.add_argument("-v", "--verbose", action="store_true", help="name every probe that went wrong")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print a table for each set of probes; the exit status says what they come to."""
    from pytest_himga.commands.bench import Bench
    from pytest_himga.commands.output import say, tell
    from pytest_himga.commands.source import CommandSource
    from pytest_himga.memory.protocol import Usage
    from pytest_himga.report.calibration import WIDEST, calibration_lines
    from pytest_himga.report.spending import spending

    source, width = CommandSource(arguments, os.environ), shutil.get_terminal_size((WIDEST, 24)).columns
    if arguments.json and not Path(arguments.json).absolute().parent.is_dir():
        raise SettingsError(f"--json={arguments.json}: there is no such folder; make it first")
    calibrations: list[tuple[Sheet, Calibration]] = []
    with Bench(source, arguments.from_dataset or ()) as bench:
        if planned := bench.planned:
            tell(planned)
        for sheet in bench.sheets:
            calibration = bench.calibrate(sheet)
            if calibrations:
                say()
            if sheet.llm:
                say(f"judge: {sheet.llm}")
            for line in calibration_lines(
                calibration, sheet.judge.name, probes=sheet.source, verbose=arguments.verbose, width=width
            ):
                say(line)
            calibrations.append((sheet, calibration))
    if spent := spending(sum((calibration.usage for _, calibration in calibrations), Usage())):
        tell(f"verdicts: {spent}")
    for note in bench.notes:
        tell(note)
    if arguments.json:
        _write(arguments.json, calibrations)
    return _status([calibration for _, calibration in calibrations])


def _status(calibrations: list[Calibration]) -> int:
    """What is proven against a judge counts, whatever is missing beside it."""
    standings = {calibration.standing for calibration in calibrations}
    if "unfit" in standings:
        return UNFIT
    return UNMEASURED if "unmeasured" in standings else FIT


def _write(name: str, calibrations: list[tuple[Sheet, Calibration]]) -> None:
    import json

    from pytest_himga import __version__

    entries = [{**sheet.as_json(), **calibration.as_json()} for sheet, calibration in calibrations]
    content = {"v": 1, "plugin": __version__, "calibrations": entries}
    try:
        Path(name).write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    except (OSError, ValueError) as error:
        raise SettingsError(f"--json={name} cannot be written: {getattr(error, 'strerror', error)}") from None
