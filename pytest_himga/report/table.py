"""The table of verdicts by type, and by the dataset's other slices, as wide as the terminal has room for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_himga.report.text import Line, Style, one_line, plain

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pytest_himga.score.counts import Row
    from pytest_himga.score.summary import DatasetSummary

#: What stands where nothing was measured.
NOTHING = "-"


@dataclass(frozen=True)
class _Column:
    header: str
    cell: Callable[[Row], str]


def _if_measured(cell: Callable[[Row], object]) -> Callable[[Row], str]:
    return lambda row: str(cell(row)) if row.measured else NOTHING


def _interval(row: Row) -> str:
    return "{:.3f}-{:.3f}".format(*row.interval) if row.interval else NOTHING


_INTERVAL = _Column("95% interval", _interval)
_COLUMNS = (
    _Column("n", lambda row: str(row.n)),
    _Column("correct", _if_measured(lambda row: row.correct)),
    _Column("score", lambda row: NOTHING if row.score is None else f"{row.score:.4f}"),
    _INTERVAL,
    _Column("unscored", lambda row: str(row.unscored)),
    _Column("missed", _if_measured(lambda row: row.wrong)),
    _Column("n/a", lambda row: str(row.na)),
)
_NARROW = tuple(column for column in _COLUMNS if column is not _INTERVAL)
#: The layouts, best first: which columns, and how many blanks between two of them.
_LAYOUTS = ((_COLUMNS, 2), (_COLUMNS, 1), (_NARROW, 2), (_NARROW, 1))


def table_lines(summary: DatasetSummary, width: int) -> list[Line]:
    """A section each, between rules: the types; ``overall`` and its like; the dataset's own dimensions.

    ``missed`` are the wrong answers. In a terminal too narrow even without the interval, a label stands on
    a line of its own above its numbers.
    """
    own = summary.dimensions.rows if summary.dimensions else ()
    sections = [section for section in (summary.types, summary.totals_rows, own) if section]
    rows = [row for section in sections for row in section]
    name = plain(summary.dataset)
    label_width = max(len(text) for text in (name, *(plain(row.label) for row in rows)))
    for columns, gap in _LAYOUTS:
        widths = _widths(columns, rows)
        whole = label_width + sum(gap + w for w in widths)
        if whole <= width:
            break
    stacked = whole > width
    if stacked:
        label_width, gap = 0, 1
        whole = sum(widths) + len(widths) - 1

    def numbers(cells: Sequence[str], label: str) -> str:
        figures = [f"{cell:>{w}}" for cell, w in zip(cells, widths, strict=True)]
        return (" " * gap).join(figures if stacked else [f"{label:<{label_width}}", *figures])

    def block(label: str, cells: Sequence[str], style: Style) -> list[Line]:
        above = [Line(one_line(label, width), style)] if stacked else []
        return [*above, Line(numbers(cells, label), style)]

    rule = Line("-" * min(whole, width))
    lines = block(name, [column.header for column in columns], "bold")
    for section in sections:
        lines.append(rule)
        for row in section:
            style: Style = "yellow" if row.unscored else "bold" if row is summary.overall else ""
            lines += block(plain(row.label), [column.cell(row) for column in columns], style)
    return lines


def _widths(columns: Sequence[_Column], rows: Sequence[Row]) -> list[int]:
    return [max(len(c.header), *(len(c.cell(row)) for row in rows)) for c in columns]
