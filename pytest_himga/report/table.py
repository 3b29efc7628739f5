"""Tables as wide as the terminal has room for, and the one of verdicts by type and by a dataset's other slices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from pytest_himga.report.text import Line, Style, one_line, plain

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pytest_himga.score.counts import Row
    from pytest_himga.score.summary import DatasetSummary

T = TypeVar("T")

#: What stands where nothing was measured.
NOTHING = "-"


@dataclass(frozen=True)
class Column(Generic[T]):
    """A column of numbers."""

    header: str
    cell: Callable[[T], str]


#: Which columns, and how many blanks between two of them.
Layout = tuple["Sequence[Column[T]]", int]


def grid(
    name: str,
    sections: Sequence[Sequence[T]],
    layouts: Sequence[Layout[T]],
    *,
    label: Callable[[T], str],
    style: Callable[[T], Style],
    width: int,
) -> list[Line]:
    """``name`` and the headers, then ``sections`` of rows, each below a rule; in the first layout that fits.

    In a terminal too narrow for all of them, the last is taken, and a label stands on a line of its own
    above its numbers.
    """
    rows = [row for section in sections for row in section]
    label_width = max(len(text) for text in (_flat(name), *(_flat(label(row)) for row in rows)))
    for columns, gap in layouts:
        widths = [max(len(c.header), *(len(c.cell(row)) for row in rows)) for c in columns]
        whole = label_width + sum(gap + w for w in widths)
        if whole <= width:
            break
    stacked = whole > width
    if stacked:
        label_width, gap = 0, 1
        whole = sum(widths) + len(widths) - 1

    def block(name: str, cells: Sequence[str], marked: Style) -> list[Line]:
        figures = [f"{cell:>{w}}" for cell, w in zip(cells, widths, strict=True)]
        above = [Line(one_line(name, width), marked)] if stacked else []
        return [
            *above,
            Line((" " * gap).join(figures if stacked else [f"{name:<{label_width}}", *figures]), marked),
        ]

    rule = Line("-" * min(whole, width))
    lines = block(_flat(name), [column.header for column in columns], "bold")
    for section in sections:
        lines.append(rule)
        for row in section:
            lines += block(_flat(label(row)), [column.cell(row) for column in columns], style(row))
    return lines


def _flat(text: str) -> str:
    return " ".join(plain(text).split())


# -- verdicts ----------------------------------------------------------------------------------------


def _if_measured(cell: Callable[[Row], object]) -> Callable[[Row], str]:
    return lambda row: str(cell(row)) if row.measured else NOTHING


def interval_cell(interval: tuple[float, float] | None) -> str:
    """A 95 % interval in its column."""
    return "{:.3f}-{:.3f}".format(*interval) if interval else NOTHING


_INTERVAL: Column[Row] = Column("95% interval", lambda row: interval_cell(row.interval))
_COLUMNS: tuple[Column[Row], ...] = (
    Column("n", lambda row: str(row.n)),
    Column("correct", _if_measured(lambda row: row.correct)),
    Column("score", lambda row: NOTHING if row.score is None else f"{row.score:.4f}"),
    _INTERVAL,
    Column("unscored", lambda row: str(row.unscored)),
    Column("missed", _if_measured(lambda row: row.wrong)),
    Column("n/a", lambda row: str(row.na)),
)
_NARROW = tuple(column for column in _COLUMNS if column is not _INTERVAL)
_LAYOUTS = ((_COLUMNS, 2), (_COLUMNS, 1), (_NARROW, 2), (_NARROW, 1))


def table_lines(summary: DatasetSummary, width: int) -> list[Line]:
    """A section each, between rules: the types; ``overall`` and its like; the dataset's own dimensions.

    ``missed`` are the wrong answers. In a narrow terminal the intervals are left out.
    """
    own = summary.dimensions.rows if summary.dimensions else ()
    sections = [section for section in (summary.types, summary.totals_rows, own) if section]

    def style(row: Row) -> Style:
        return "yellow" if row.unscored else "bold" if row is summary.overall else ""

    return grid(summary.dataset, sections, _LAYOUTS, label=lambda row: row.label, style=style, width=width)
