"""Which questions a run asks: by sample, by type, and a stratified subset.

A selection is a property of the data alone: the same questions on every worker, with every hash seed,
and whatever the order of the file.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from pytest_himga.data.files import shown
from pytest_himga.data.identity import order_of
from pytest_himga.errors import SelectionError, nearest

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_himga.data.dataset import Dataset
    from pytest_himga.data.schema import Case


@dataclass(frozen=True)
class Subset:
    """How many questions of each dataset to ask: a ``count``, or a ``share`` in 0..1 of those it has."""

    count: int | None = None
    share: Fraction | None = None

    def size(self, available: int) -> int:
        """Return how many of ``available`` questions; a share is rounded, but never to none."""
        if self.share is None:
            return min(self.count or 0, available)
        return min(max(1, int(available * self.share + Fraction(1, 2))), available)


def parse_subset(text: str) -> Subset:
    """Read ``200`` or ``10%``; anything else is a ``SelectionError``."""
    match = re.fullmatch(
        r"(?:(?P<count>\d{1,9})|(?P<share>\d{1,3}(?:\.\d{1,6})?)\s*%)", text.strip(), re.ASCII
    )
    if match and match["count"] and int(match["count"]) > 0:
        return Subset(count=int(match["count"]))
    if match and match["share"] and 0 < (share := Fraction(match["share"]) / 100) <= 1:
        return Subset(share=share)
    raise SelectionError(
        f"The subset {shown(text)} is neither a count of at least 1 (200) nor a share up to 100% (10%)"
    )


def select(
    datasets: Sequence[Dataset],
    *,
    samples: Sequence[str] = (),
    types: Sequence[str] = (),
    subset: str | None = None,
) -> list[Case]:
    """Select the questions that pass every filter, in the order of the datasets and their files.

    ``samples`` are ids as in the file, their slugs, or ``DATASET/SAMPLE``; ``types`` are names, with
    hyphens or underscores, or LoCoMo's numbers; ``subset`` takes that many, per dataset, of what the
    other two leave. A name that is nowhere, or nothing left, is a ``SelectionError``.
    """
    wanted = None if subset is None else parse_subset(subset)
    _check_names(datasets)
    in_samples = _sample_filter(datasets, samples)
    of_types = _type_filter(datasets, types)
    chosen: list[Case] = []
    for dataset in datasets:
        cases = [
            case
            for case in dataset.cases()
            if (not samples or case.sample_name in in_samples[dataset.name])
            and (not types or case.brief.type in of_types[dataset.name])
        ]
        chosen += cases if wanted is None else _stratified(cases, wanted, list(dataset.type_labels))
    if not chosen:
        raise SelectionError(_nothing(datasets, samples, types))
    return chosen


def _check_names(datasets: Sequence[Dataset]) -> None:
    by_name: dict[str, Dataset] = {}
    for dataset in datasets:
        if (first := by_name.setdefault(dataset.name, dataset)) is not dataset:
            raise SelectionError(
                f"Two datasets would be called {dataset.name} in ids ({first.path} and {dataset.path}); "
                "rename one with NAME=PATH"
            )


def _sample_filter(datasets: Sequence[Dataset], samples: Sequence[str]) -> Mapping[str, set[str]]:
    """Map each dataset's name to the slugs of the samples asked for."""
    wanted: dict[str, set[str]] = defaultdict(set)
    if not samples:
        return wanted
    homes: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for dataset in datasets:
        for slug, sample_id in zip(dataset.sample_names, dataset.sample_ids, strict=True):
            for name in {slug, sample_id}:
                homes[name].append((dataset.name, slug))
                homes[f"{dataset.name}/{name}"].append((dataset.name, slug))
    for name in samples:
        if name not in homes:
            known = [slug for dataset in datasets for slug in dataset.sample_names]
            if name.partition("/")[0] in {dataset.name for dataset in datasets}:
                known = [f"{dataset.name}/{slug}" for dataset in datasets for slug in dataset.sample_names]
            raise SelectionError(
                f"There is no sample {shown(name)} in {_listed(datasets)}; {nearest(name, known)}"
            )
        for dataset_name, slug in homes[name]:
            wanted[dataset_name].add(slug)
    return wanted


def _type_filter(datasets: Sequence[Dataset], types: Sequence[str]) -> Mapping[str, set[str]]:
    """Map each dataset's name to the question types asked for that its family knows."""
    wanted: dict[str, set[str]] = defaultdict(set)
    for name in types:
        spelled = re.sub(r"[-\s]+", "_", name.strip().lower())
        found = False
        for dataset in datasets:
            for known, label in dataset.type_labels.items():
                number = label.removesuffix(known).strip()
                if spelled in {known, number, f"{number}_{known}"} - {""}:
                    wanted[dataset.name].add(known)
                    found = True
        if not found:
            names = [known for dataset in datasets for known in dataset.type_labels]
            raise SelectionError(
                f"There is no question type {shown(name)} in {_listed(datasets)}; {nearest(spelled, names)}"
            )
    return wanted


def _stratified(cases: list[Case], wanted: Subset, type_order: list[str]) -> list[Case]:
    by_type: dict[str, list[Case]] = {name: [] for name in type_order}
    for case in cases:
        by_type.setdefault(case.brief.type, []).append(case)
    counts = {name: len(members) for name, members in by_type.items() if members}
    seats = _apportioned(counts, wanted.size(len(cases)))
    kept: set[str] = set()
    for name, seat_count in seats.items():
        ordered = sorted(by_type[name], key=lambda case: order_of(case.sample_name, case.uid))
        kept.update(case.id for case in ordered[:seat_count])
    return [case for case in cases if case.id in kept]


def _apportioned(counts: Mapping[str, int], size: int) -> dict[str, int]:
    """Share out ``size``, at most the sum of ``counts``, by largest remainder.

    Each type gets one if ``size`` allows. Ties go to the larger type, then to the one listed first, so
    that no file order decides.
    """
    total = sum(counts.values())
    seats = {name: size * count // total for name, count in counts.items()}
    left = size - sum(seats.values())
    by_remainder = sorted(counts, key=lambda name: (-(size * counts[name] % total), -counts[name]))
    for name in by_remainder[:left]:
        seats[name] += 1
    if size >= len(counts):
        for name in counts:
            if seats[name] == 0:
                # from the type that is furthest above its exact share of those that can spare one
                rich = max(
                    (other for other in counts if seats[other] > 1),
                    key=lambda other: (seats[other] * total - size * counts[other], seats[other]),
                )
                seats[rich] -= 1
                seats[name] = 1
    return seats


def _nothing(datasets: Sequence[Dataset], samples: Sequence[str], types: Sequence[str]) -> str:
    filters = [
        f"{kind} {', '.join(names)}" for kind, names in (("samples", samples), ("types", types)) if names
    ]
    if not filters:
        return f"No question is left: {_listed(datasets)} has none"
    return (
        f"No question is left: {_listed(datasets)} has none with {' and '.join(filters)}; widen the selection"
    )


def _listed(datasets: Sequence[Dataset]) -> str:
    return ", ".join(dataset.name for dataset in datasets) or "no dataset"
