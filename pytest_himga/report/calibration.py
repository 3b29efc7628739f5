"""A judge's calibration as lines for a terminal, in ASCII and at most 100 columns."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from pytest_himga.report.table import NOTHING
from pytest_himga.report.text import one_line, plain
from pytest_himga.score.calibration import MOST_FALSE_ACCEPTS, MOST_FALSE_REJECTS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_himga.score.calibration import Calibration, Kind

WIDTH = 100
#: How many probes of each sort of mistake are named unless all are asked for.
MOST_NAMED = 5
#: Columns: of the label, and the least of a number.
_LABEL, _NUMBER = 36, 6
_HEADERS = ("n", "accepted", "rejected", "unscored", "n/a", "mistaken", "95% interval")


def calibration_lines(
    calibration: Calibration, judge: str, *, probes: str = "shipped", verbose: bool = False
) -> list[str]:
    """The table of one calibration: a row per kind, right answers first, and what it comes to.

    ``judge`` names the judge as reports do, ``probes`` says where the probes are from. ``verbose`` names
    every probe that went wrong.
    """
    kinds, right, wrong = calibration.kinds, calibration.right, calibration.wrong
    header = _row(f"judge {plain(judge)}", _HEADERS)
    rule = "-" * len(header)
    return [
        f"Calibration on {calibration.n:,} {one_line(plain(probes), WIDTH // 2)} probes",
        header,
        *_section(rule, [kind for kind in kinds if kind.right]),
        *_section(rule, [kind for kind in kinds if not kind.right]),
        *_section(rule, [right, wrong]),
        *_named("rejected although right", right, verbose),
        *_named("accepted although wrong", wrong, verbose),
        *textwrap.wrap(verdict_sentence(calibration), WIDTH, subsequent_indent="  ", break_on_hyphens=False),
    ]


def verdict_sentence(calibration: Calibration) -> str:
    """What the calibration comes to: fit for gating, or why not."""
    if not calibration.fit:
        known = "NOT fit" if calibration.standing == "unfit" else "NOT known to be fit"
        return f"{known} for gating: {plain(calibration.why)}"
    injected = "no injected answer accepted, " if calibration.injected.n else ""
    right, wrong = calibration.right, calibration.wrong
    return (
        f"fit for gating: {injected}false accepts {wrong.mistakes} of {wrong.measured} "
        f"(at most {MOST_FALSE_ACCEPTS} %), false rejects {right.mistakes} of {right.measured} "
        f"(at most {MOST_FALSE_REJECTS} %)"
    )


def _section(rule: str, kinds: list[Kind]) -> Iterator[str]:
    if kinds:
        yield rule
        yield from map(_kind_row, kinds)


def _kind_row(kind: Kind) -> str:
    interval = "{:.3f}-{:.3f}".format(*kind.interval) if kind.interval else NOTHING
    rate = NOTHING if kind.rate is None else f"{kind.rate:.3f}"
    counts = (kind.n, kind.accepted, kind.rejected, kind.unscored, kind.na)
    return _row(plain(kind.name), (*map(str, counts), rate, interval))


def _row(label: str, cells: tuple[str, ...]) -> str:
    numbers = (f"{cell:>{max(len(name), _NUMBER)}}" for cell, name in zip(cells, _HEADERS, strict=True))
    return f"{one_line(label, _LABEL):<{_LABEL}}{' '.join(['', *numbers])}"


def _named(label: str, kind: Kind, verbose: bool) -> list[str]:
    """The ids of the probes that went wrong; an id is never broken, so that it can be searched for."""
    ids = [plain(probe) for probe in kind.mistaken]
    if not ids:
        return []
    shown = ids if verbose else ids[:MOST_NAMED]
    more = f" and {len(ids) - len(shown):,} more (-v names all)" if len(ids) > len(shown) else ""
    return textwrap.wrap(
        f"{label}: {', '.join(shown)}{more}",
        WIDTH,
        subsequent_indent="  ",
        break_long_words=False,
        break_on_hyphens=False,
    )
