"""``himga data``: what was found out about datasets, as lines of text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_himga.commands.data_census import Count, History, census_of
from pytest_himga.commands.data_finding import OWN_LICENCE, Here, published_with
from pytest_himga.commands.data_warnings import warning_lines
from pytest_himga.commands.output import flat
from pytest_himga.data.families import FAMILIES
from pytest_himga.data.files import is_gzip

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pytest_himga.data.dataset import Dataset
    from pytest_himga.data.published import Published

_COLUMN = 19
_ORDERS = {"time": "by time stamp", "file": "as in the file"}


def table(header: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    """Columns as wide as they need to be, set left; the last is not padded."""
    everything = [tuple(flat(cell) for cell in row) for row in (header, *rows)]
    widths = [max(map(len, column)) for column in zip(*everything, strict=True)]
    for row in everything:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def portrait(here: Here, sha256: str, warnings: Sequence[str], history: History | None) -> Iterator[str]:
    """Everything that is known of a dataset; ``history`` only where its samples were decoded."""
    dataset, census = here.dataset, census_of(here.dataset)
    yield dataset.name
    yield _fact("path", str(dataset.path))
    yield _fact("format", dataset.family)
    yield _fact("size", _size(dataset))
    yield _fact("sha256", f"{sha256} ({_standing(here.claim, sha256)})")
    yield from _terms(here, sha256)
    yield _fact("samples", _n(len(dataset.sample_names)))
    if history is not None:
        yield from _history_lines(dataset, history)
    yield _fact("questions", _n(census.everything.questions))
    yield _fact("without an answer", _n(census.unanswered))
    if history is not None:
        yield _fact("evidence groups", _n(history.groups))
        unproven = f" ({_n(history.unproven_abstention)} of them abstention)" if history.unproven else ""
        yield _fact("without evidence", _n(history.unproven) + unproven)
    yield _fact("warnings", _warnings(dataset, warnings, history))
    for line in warning_lines(warnings, dataset.opened.paths):
        yield f"    {line}"
    yield ""
    yield from _counts(census.types, [census.everything], census.rounds)


def verdict(here: Here, sha256: str) -> str:
    """What a check that found nothing broken comes to."""
    published = published_with(sha256)
    if published is not None:
        outcome = f"the digest is that of {published.name}"
    elif here.claim is None:
        outcome = "it is no published dataset, so there is no digest to compare with"
    elif here.claim.sha256 is None:
        outcome = f"no digest of {here.claim.name} is published to compare with"
    else:
        outcome = f"it is not the published file of {here.claim.name}"
    return f"{here.dataset.name}: everything can be read; {outcome}"


# -- parts -------------------------------------------------------------------------------------------


def _fact(label: str, text: str) -> str:
    return f"  {label:<{_COLUMN}}{text}"


def _n(number: int) -> str:
    return f"{number:,}"


def _size(dataset: Dataset) -> str:
    stored = sum(state.size for state in dataset.opened.index.files)
    text = f"{_n(stored)} bytes"
    if any(is_gzip(file) for file in dataset.opened.paths):
        text += f" packed, {_n(sum(file.stat().st_size for file in dataset.opened.data))} unpacked"
    if len(dataset.opened.paths) > 1:
        text += f" in {_n(len(dataset.opened.paths))} files"
    return text


def _standing(claim: Published | None, sha256: str) -> str:
    """What the digest says of the data."""
    same = published_with(sha256)
    if claim is not None and claim.sha256 is None:
        return f"unverified: no digest of {claim.name} is published"
    if claim is not None and claim.sha256 != sha256:
        other = f", but that of {same.name}" if same else ""
        return f"not the published file of {claim.name}{other}; its sha256 is {claim.sha256}"
    return f"the published file of {same.name}" if same else "no published dataset"


def _terms(here: Here, sha256: str) -> Iterator[str]:
    published = published_with(sha256) or here.claim
    if published is not None:
        limit = ", for non-commercial use only" if published.non_commercial else ""
        yield _fact("licence", published.licence + limit)
        yield _fact("citation", published.citation)
        if published.note:
            yield _fact("note", published.note)
    elif here.is_own:
        yield _fact("licence", f"{OWN_LICENCE}; part of this package")


def _history_lines(dataset: Dataset, history: History) -> Iterator[str]:
    yield _fact("sessions", _n(history.sessions))
    yield _fact("turns", f"{_n(history.turns)}, {_n(history.blank)} of them blank")
    order = dataset.session_order
    if order is not None:
        unsorted = "" if order == "time" else f"; {_unsorted(history)}"
        yield _fact("session order", _ORDERS[order] + unsorted)
    elif history.unsorted:
        yield _fact("session order", _unsorted(history))


def _unsorted(history: History) -> str:
    samples = "1 sample is" if history.unsorted == 1 else f"{_n(history.unsorted)} samples are"
    return f"{samples} not in the order of time"


def _warnings(dataset: Dataset, warnings: Sequence[str], history: History | None) -> str:
    unread = FAMILIES[dataset.family].skim is not None and history is None
    return (_n(len(warnings)) if warnings else "none") + (
        "; turns were not looked at (--full, or himga data check)" if unread else ""
    )


def _counts(*sections: Sequence[Count]) -> Iterator[str]:
    """The counts as a table, a rule before each section."""
    counts = [count for section in sections for count in section]
    label_width = max(len("type"), *(len(flat(count.label)) for count in counts))
    header = ("questions", "answerable", "abstention", "unrecoverable")
    lines = [f"  {'type':<{label_width}}  {'  '.join(header)}"]
    for section in sections:
        if section:
            lines.append("  " + "-" * (len(lines[0]) - 2))
        for count in section:
            numbers = (count.questions, count.answerable, count.abstention, count.unrecoverable)
            cells = (f"{_n(number):>{len(name)}}" for number, name in zip(numbers, header, strict=True))
            lines.append(f"  {flat(count.label):<{label_width}}  {'  '.join(cells)}")
    yield from lines
