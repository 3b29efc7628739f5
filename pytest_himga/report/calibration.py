"""A judge's calibration as lines for a terminal, in ASCII."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from pytest_himga.report.table import NOTHING, Column, grid, interval_cell
from pytest_himga.report.text import one_line, plain
from pytest_himga.score.calibration import MOST_FALSE_ACCEPTS, MOST_FALSE_REJECTS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_himga.report.table import Layout
    from pytest_himga.score.calibration import Calibration, Kind

#: Columns of a terminal: wider lines are harder to read, and below the least nothing readable comes out.
WIDEST, NARROWEST = 100, 40
#: How many probes of each sort of mistake are named unless all are asked for.
MOST_NAMED = 5

_COUNTS: tuple[Column[Kind], ...] = (
    Column("n", lambda kind: str(kind.n)),
    Column("accepted", lambda kind: str(kind.accepted)),
    Column("rejected", lambda kind: str(kind.rejected)),
)
_UNMEASURED: tuple[Column[Kind], ...] = (
    Column("unscored", lambda kind: str(kind.unscored)),
    Column("n/a", lambda kind: str(kind.na)),
)
_RATE: Column[Kind] = Column("mistaken", lambda kind: NOTHING if kind.rate is None else f"{kind.rate:.3f}")
_INTERVAL: Column[Kind] = Column("95% interval", lambda kind: interval_cell(kind.interval))


def calibration_lines(
    calibration: Calibration,
    judge: str,
    *,
    probes: str = "shipped",
    verbose: bool = False,
    width: int = WIDEST,
) -> list[str]:
    """The table of one calibration: a row per kind, right answers first, and what it comes to.

    ``judge`` names the judge as reports do, ``probes`` says where the probes are from. ``verbose`` names
    every probe that went wrong. Lines are at most ``width`` (40 to 100) columns, but for those ids.
    """
    width = min(max(width, NARROWEST), WIDEST)
    kinds, right, wrong = calibration.kinds, calibration.right, calibration.wrong
    sections = [
        [kind for kind in kinds if kind.right],
        [kind for kind in kinds if not kind.right],
        [right, wrong],
    ]
    table = grid(
        f"judge {judge}",
        [section for section in sections if section],
        _layouts([right, wrong]),
        label=lambda kind: kind.name,
        style=lambda _: "",
        width=width,
    )
    return [
        one_line(f"Calibration on {calibration.n:,} {one_line(plain(probes), width // 2)} probes", width),
        *(line.text for line in table),
        *_named("rejected although right", right, verbose, width),
        *_named("accepted although wrong", wrong, verbose, width),
        *textwrap.wrap(verdict_sentence(calibration), width, subsequent_indent="  ", break_on_hyphens=False),
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


def _layouts(sums: Sequence[Kind]) -> list[Layout[Kind]]:
    """The intervals are what such small numbers need most, so columns without a count go before them."""
    everything = (*_COUNTS, *_UNMEASURED, _RATE, _INTERVAL)
    measured = (*_COUNTS, _RATE, _INTERVAL)
    whole = not any(kind.unscored or kind.na for kind in sums)
    layouts: list[Layout[Kind]] = [(everything, 2), (everything, 1)]
    if whole:
        layouts += [(measured, 2), (measured, 1), ((*_COUNTS, _RATE), 2)]
    else:
        layouts += [((*_COUNTS, *_UNMEASURED, _RATE), 1)]
    return [*layouts, ((*_COUNTS, _RATE), 1)]


def _named(label: str, kind: Kind, verbose: bool, width: int) -> list[str]:
    """The ids of the probes that went wrong; an id is never broken, so that it can be searched for."""
    ids = [plain(probe) for probe in kind.mistaken]
    if not ids:
        return []
    shown = ids if verbose else ids[:MOST_NAMED]
    more = f" and {len(ids) - len(shown):,} more (-v names all)" if len(ids) > len(shown) else ""
    return textwrap.wrap(
        f"{label}: {', '.join(shown)}{more}",
        width,
        subsequent_indent="  ",
        break_long_words=False,
        break_on_hyphens=False,
    )
