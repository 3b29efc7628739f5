"""The numbers of one dataset: verdicts and measurements of many questions, added up.

Accuracy is correct / (correct + wrong). Each question stands in one group: ``overall`` (and the row of its
type) if it can be answered, ``abstention`` if it cannot, ``unrecoverable`` if the dataset itself says that
nobody can know the answer, ``excluded`` if an erratum excludes it; ``all`` holds them all. What was not
measured is None, never 0.
Sums of floats are exact (``math.fsum``), so that no number depends on the order in which workers finished.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING

from pytest_himga.score.counts import (
    AbstentionRow,
    Measured,
    Row,
    Share,
    Spent,
    Times,
    Votes,
    counts_of,
    row_of,
)
from pytest_himga.score.dimensions import COST, SLOPE, Dimensions, dimension_names, dimensions_of
from pytest_himga.score.measurements import (
    false_refusals_of,
    mean_of,
    metric_names,
    metrics_of,
    spent_of,
    times_of,
    votes_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any

    from pytest_himga.score.record import Record

OVERALL, ALL, ABSTENTION = "overall", "all", "abstention"
UNRECOVERABLE, EXCLUDED, AS_PUBLISHED = "unrecoverable", "excluded", "as-published"
CONTEXT_TOKENS, FALSE_REFUSAL = "context-tokens", "false-refusal"
#: What a token is reckoned at, in characters: no tokenizer is at hand that would suit every model.
CHARACTERS_A_TOKEN = 4


def known_names(
    types: Iterable[str],
    top_k: int,
    *,
    facets: Iterable[Mapping[str, Any]] = (),
    unrecoverable: bool = False,
    errata: bool = False,
) -> list[str]:
    """Every name that a number of a dataset with these types can have, in the order of reports.

    ``facets`` are those of its answerable, recoverable questions; ``unrecoverable`` says that it has
    questions whose answer nobody can know, ``errata`` that some are active for it.
    """
    types = list(types)
    own = [*types, *dimension_names(facets, types)]
    return _names(own, top_k, unrecoverable=unrecoverable, errata=errata)


def _names(own: Iterable[str], top_k: int, *, unrecoverable: bool, errata: bool) -> list[str]:
    groups = [OVERALL, *([AS_PUBLISHED] if errata else []), ALL, ABSTENTION]
    groups += [UNRECOVERABLE] if unrecoverable else []
    return list(dict.fromkeys([*groups, *own, *metric_names(top_k), CONTEXT_TOKENS, FALSE_REFUSAL]))


@dataclass(frozen=True)
class DatasetSummary:
    """All numbers of one dataset.

    ``types`` are rows of answerable questions, in the order of the labels. ``metrics`` (``f1``,
    ``recall@5``, ``mean-score``, ...) are means over the questions of ``overall``. ``as_published`` is
    ``overall`` without errata, None where none are active: the excluded ones counted in, and by their
    published golds those that have a corrected one (``corrected`` of them). ``context_chars`` and
    ``empty_contexts`` are over every question for which the memory returned something, if only "".
    ``na_reasons`` count why questions are n/a, most frequent first. ``type_names`` holds all types of the
    dataset, with or without questions here.
    """

    dataset: str
    top_k: int
    type_names: tuple[str, ...]
    types: tuple[Row, ...]
    overall: Row
    as_published: Row | None
    corrected: int
    abstention: AbstentionRow
    unrecoverable: Row
    excluded: Row
    all: Row
    dimensions: Dimensions | None
    na_reasons: tuple[tuple[str, int], ...]
    metrics: Mapping[str, Measured]
    false_refusals: Share | None
    context_chars: Measured | None
    empty_contexts: Share | None
    times: Times
    samples: int
    samples_fed: int
    #: What the models were asked, by stage (``answer``, ``judge``).
    spent: Mapping[str, Spent] = field(default_factory=dict)
    votes: Votes | None = None

    @property
    def totals_rows(self) -> tuple[Row, ...]:
        """``overall`` and the groups beside it that have questions; ``all`` if there are any."""
        published = () if self.as_published is None else (self.as_published,)
        beside = tuple(row for row in (self.abstention, self.unrecoverable, self.excluded) if row.n)
        return (self.overall, *published, *beside, *((self.all,) if beside else ()))

    def row(self, name: str) -> Row | None:
        """Find the row of counts called ``name``; None if ``name`` is no accuracy, or has no question."""
        groups = (
            self.overall,
            self.as_published,
            self.all,
            self.abstention,
            self.unrecoverable,
            self.excluded,
        )
        rows = (*groups, *self.types, *(self.dimensions.rows if self.dimensions else ()))
        return next((row for row in rows if row is not None and row.name == name), None)

    @property
    def context_tokens(self) -> float | None:
        """Mean tokens of a context, reckoned as characters / 4."""
        return None if self.context_chars is None else self.context_chars.value / CHARACTERS_A_TOKEN

    def names(self) -> list[str]:
        """Every name that ``totals`` has."""
        names = _names(
            [*self.type_names, *(self.dimensions.names if self.dimensions else ())],
            self.top_k,
            unrecoverable=bool(self.unrecoverable.n),
            errata=self.as_published is not None,
        )
        return list(dict.fromkeys([*names, *self.metrics]))

    def totals(self) -> dict[str, float | None]:
        """Every number by its name; None where it was not measured."""
        return {name: self._total(name) for name in self.names()}

    def exact(self, name: str) -> Fraction | None:
        """Give the share called ``name`` as a gate compares it: accuracies exact, means at 9 decimals.

        None if nothing was measured for it, or if it is not a number where more is better.
        """
        if name == SLOPE and self.dimensions:
            return self.dimensions.slope
        if row := self.row(name):
            return row.accuracy
        return self.metrics[name].exact if name in self.metrics else None

    def exact_bound(self, name: str) -> Fraction | None:
        """Give the best that ``exact(name)`` could have been, had no question been left unscored.

        Every unscored question counts as correct, or as 1.0; for ``slope`` as what makes it rise most.
        None if there is nothing to count, or if ``name`` is not a number where more is better.
        """
        if name == SLOPE and self.dimensions:
            return self.dimensions.slope_bound
        if row := self.row(name):
            return row.bound
        if name in self.metrics:
            return self.metrics[name].bound
        return Fraction(1) if self.overall.unscored and name in metric_names(self.top_k) else None

    def bound(self, name: str) -> float | None:
        """``exact_bound(name)`` as a float."""
        best = self.exact_bound(name)
        return None if best is None else float(best)

    def _total(self, name: str) -> float | None:
        if name == CONTEXT_TOKENS:
            return self.context_tokens
        if name == FALSE_REFUSAL:
            return None if self.false_refusals is None else self.false_refusals.value
        if name == COST and self.dimensions:
            return self.dimensions.cost.per_correct if self.dimensions.cost else None
        if name in self.metrics:
            return self.metrics[name].value
        value = self.exact(name)
        return None if value is None else float(value)


def summarise(
    dataset: str,
    records: Sequence[Record],
    *,
    type_labels: Mapping[str, str],
    top_k: int,
    abstains: Callable[[str], bool] | None = None,
    errata: bool = False,
) -> DatasetSummary:
    """Add up the ``records`` of one dataset, one for each question (lost ones are ``unscored``).

    ``type_labels`` maps each type to what tables call it, in their order; a type that it lacks is called
    by its own name and comes last. ``abstains`` tells whether an answer is a refusal; without it there is
    no false-refusal rate. ``errata`` says that some are active, though none may concern these questions.
    """
    groups: dict[str, list[Record]] = {name: [] for name in (OVERALL, ABSTENTION, UNRECOVERABLE, EXCLUDED)}
    for record in records:
        groups[_group(record)].append(record)
    scored = groups[OVERALL]
    labels = dict(type_labels) | {r.type: r.type for r in records if r.type not in type_labels}
    by_type: dict[str, list[Record]] = {name: [] for name in labels}
    for record in scored:
        by_type[record.type].append(record)
    chars = [r.context_chars for r in records if r.context_chars is not None]
    errata = errata or any(r.errata is not None for r in records)
    return DatasetSummary(
        dataset=dataset,
        top_k=top_k,
        type_names=tuple(labels),
        types=tuple(_row(name, found, labels[name]) for name, found in by_type.items() if found),
        overall=_row(OVERALL, scored),
        as_published=_as_published(records) if errata else None,
        corrected=sum(r.errata is not None and not r.excluded for r in records),
        abstention=_abstention(groups[ABSTENTION]),
        unrecoverable=_row(UNRECOVERABLE, groups[UNRECOVERABLE]),
        excluded=_row(EXCLUDED, groups[EXCLUDED]),
        all=_row(ALL, records),
        dimensions=dimensions_of(scored, records),
        na_reasons=_na_reasons(records),
        metrics=metrics_of(scored),
        false_refusals=false_refusals_of(scored, abstains),
        context_chars=Measured(mean_of(chars), len(chars)) if chars else None,
        empty_contexts=Share(chars.count(0), len(chars)) if chars else None,
        times=times_of(records),
        samples=len({r.sample for r in records}),
        samples_fed=len({r.sample for r in records if "ingest" in r.ms}),
        spent={stage: spent for stage in ("answer", "judge") if (spent := spent_of(records, stage))},
        votes=votes_of(records),
    )


def _group(record: Record) -> str:
    """The one group that a question stands in, beside ``all``."""
    if record.excluded:
        return EXCLUDED
    if record.expects_abstention:
        return ABSTENTION
    return OVERALL if record.recoverable else UNRECOVERABLE


def _row(name: str, records: Sequence[Record], label: str = "") -> Row:
    return row_of(name, label or name, (record.verdict for record in records))


def _as_published(records: Sequence[Record]) -> Row:
    """``overall`` as if there were no errata."""
    answerable = (r for r in records if not r.expects_abstention and r.recoverable)
    return row_of(AS_PUBLISHED, "as published", map(_published_verdict, answerable))


def _published_verdict(record: Record) -> str:
    """The verdict under the published gold; "", which is unscored, where the record lacks it."""
    if record.errata is None or record.excluded:
        return record.verdict
    return record.errata.get("verdict") or ""


def _abstention(records: Sequence[Record]) -> AbstentionRow:
    met = [r.abstention for r in records if r.verdict in ("correct", "wrong")]
    how = {value: met.count(value) for value in ("held", "fell", "other")}
    return AbstentionRow(ABSTENTION, ABSTENTION, **counts_of(r.verdict for r in records), **how)


def _na_reasons(records: Sequence[Record]) -> tuple[tuple[str, int], ...]:
    """Each distinct reason with its count; in an order that does not depend on that of the records."""
    found = Counter(record.reason for record in records if record.verdict == "n/a")
    return tuple(sorted(found.items(), key=lambda item: (-item[1], item[0])))
