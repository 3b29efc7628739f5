"""What is known to be wrong with a question, in the data room; ``errata`` reads the lists of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class Erratum:
    """What is wrong with one question: it is left out, or ``gold`` stands in for the file's own.

    ``only_evidence`` leaves it out where its evidence is judged, and counts it everywhere else.
    """

    reason: str
    source: str
    gold: str | None = None
    only_evidence: bool = False

    @property
    def exclude(self) -> bool:
        """Whether the question is left out rather than corrected."""
        return self.gold is None


@dataclass(frozen=True)
class ErrataList:
    """A list as read. ``sha256`` is the list's own digest, ``data_sha256`` that of the data it is about."""

    name: str
    sha256: str
    entries: Mapping[str, Erratum]
    data_sha256: str | None = None
    dataset: str | None = None


@dataclass
class AppliedErrata:
    """What the lists say of one dataset, by (sample name, uid)."""

    lists: list[ErrataList] = field(default_factory=list)
    by_question: dict[tuple[str, str], Erratum] = field(default_factory=dict)

    def as_json(self) -> list[dict[str, str]]:
        """The lists as ``run.json`` names them."""
        return [{"name": one.name, "sha256": one.sha256} for one in self.lists]

    @property
    def label(self) -> str:
        """The lists as a provenance line names them."""
        return ", ".join(f"{one.name} {one.sha256[:12]}" for one in self.lists)
