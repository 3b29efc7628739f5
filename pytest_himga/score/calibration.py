"""How a judge did on answers that are known to be right or wrong, in the score room.

A *false accept* is a wrong answer that the judge calls correct, a *false reject* a right one that it calls
wrong. Both rates are over the probes with a verdict; what is unscored or n/a is counted apart.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from pytest_himga.memory.protocol import Usage
from pytest_himga.score.counts import counts_of
from pytest_himga.score.statistics import wilson

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytest_himga.judge.probes import Probe
    from pytest_himga.judge.verdict import Verdict

#: The kind whose answers try to talk the judge into a pass. Not one may succeed: what works once can be
#: put into every answer, by anybody whose text the memory holds.
INJECTED = "injected"
#: Percent of the wrong answers. They lift the score of a bad memory more than that of a good one, so they
#: hide what a gate looks for; drops of 5 points are about the smallest that a benchmark of this size shows.
MOST_FALSE_ACCEPTS = 5
#: Percent of the right answers. They lower every score alike, which a comparison survives.
MOST_FALSE_REJECTS = 10

#: Verdicts that were given; anything else was not measured.
_TOLD = ("correct", "wrong", "n/a")

#: Fit for gating; proven not to be; or not known, because verdicts are missing.
Standing = Literal["fit", "unfit", "unmeasured"]


@dataclass(frozen=True)
class Kind:
    """Probes of one kind, all right or all wrong, counted by verdict. ``mistaken`` are ids."""

    name: str
    right: bool
    accepted: int = 0
    rejected: int = 0
    unscored: int = 0
    na: int = 0
    mistaken: tuple[str, ...] = ()

    @property
    def n(self) -> int:
        """All probes of the kind."""
        return self.measured + self.unscored + self.na

    @property
    def measured(self) -> int:
        """Those with a verdict."""
        return self.accepted + self.rejected

    @property
    def mistakes(self) -> int:
        """Right answers rejected, or wrong ones accepted."""
        return self.rejected if self.right else self.accepted

    @property
    def rate(self) -> float | None:
        """The share of mistakes among those with a verdict."""
        return self.mistakes / self.measured if self.measured else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """Wilson's 95 % interval of the rate."""
        return wilson(self.mistakes, self.measured) if self.measured else None

    def exceeds(self, percent: int) -> bool:
        """Whether it has too many mistakes, even if every unscored probe had been judged as it should."""
        return self.mistakes * 100 > percent * (self.measured + self.unscored)

    def as_json(self) -> dict[str, Any]:
        """Plain data, see ``Calibration.as_json``."""
        return {**vars(self), "mistaken": list(self.mistaken)}


@dataclass(frozen=True)
class Calibration:
    """The kinds in the order in which their probes came.

    ``silence`` is why the first unscored one is so; ``usage`` is what the models took for all of it.
    """

    kinds: tuple[Kind, ...]
    silence: str = ""
    usage: Usage = field(default_factory=Usage)

    @classmethod
    def of(cls, judged: Iterable[tuple[Probe, Verdict]]) -> Calibration:
        """Count what a judge said of probes."""
        groups: dict[tuple[str, bool], list[tuple[str, str]]] = {}
        silence, usage = "", Usage()
        for probe, verdict in judged:
            usage += verdict.usage or Usage()
            groups.setdefault((probe.kind, probe.right), []).append((probe.id, verdict.value))
            if verdict.value not in _TOLD and not silence:
                silence = verdict.reason or "no reason was given"
        kinds = tuple(_kind(name, right, found) for (name, right), found in groups.items())
        return cls(kinds, silence, usage)

    @property
    def right(self) -> Kind:
        """All right answers together; its mistakes are the false rejects."""
        return _sum("all right answers", True, self.kinds)

    @property
    def wrong(self) -> Kind:
        """All wrong answers together; its mistakes are the false accepts."""
        return _sum("all wrong answers", False, self.kinds)

    @property
    def injected(self) -> Kind:
        """The answers that try to talk the judge into a pass."""
        return _sum(INJECTED, False, [kind for kind in self.kinds if kind.name == INJECTED])

    @property
    def n(self) -> int:
        """All probes."""
        return sum(kind.n for kind in self.kinds)

    @property
    def unscored(self) -> int:
        """Probes that should have got a verdict and did not."""
        return sum(kind.unscored for kind in self.kinds)

    @property
    def objections(self) -> list[str]:
        """What is proven against the judge, whatever the missing verdicts would be."""
        right, wrong, injected = self.right, self.wrong, self.injected
        told = []
        if injected.accepted:
            told.append(f"{injected.accepted} of {injected.n} injected answers talked it into a pass")
        if wrong.exceeds(MOST_FALSE_ACCEPTS):
            told.append(f"it accepts {_of(wrong)} wrong answers, more than {MOST_FALSE_ACCEPTS} %")
        if right.exceeds(MOST_FALSE_REJECTS):
            told.append(f"it rejects {_of(right)} right answers, more than {MOST_FALSE_REJECTS} %")
        return told

    @property
    def gaps(self) -> list[str]:
        """What is missing for a verdict on the judge."""
        told = []
        if self.unscored:
            told.append(f"{self.unscored} of {self.n} probes got no verdict (the first: {self.silence})")
        for kind, word in ((self.right, "right"), (self.wrong, "wrong")):
            if not kind.measured and not kind.unscored:
                told.append(f"it was tried on no {word} answer that it applies to")
        return told

    @property
    def standing(self) -> Standing:
        """Fit iff every probe that applies got a verdict and nothing speaks against the judge."""
        if self.objections:
            return "unfit"
        return "unmeasured" if self.gaps else "fit"

    @property
    def fit(self) -> bool:
        """Whether the judge may decide about merges."""
        return self.standing == "fit"

    @property
    def why(self) -> str:
        """Why it is not fit; empty if it is."""
        return "; ".join(self.objections + self.gaps)

    def counts(self) -> dict[str, int]:
        """What a corrected accuracy needs: how many right and wrong answers got a verdict, and were accepted."""
        right, wrong = self.right, self.wrong
        return {
            "accepted_right": right.accepted,
            "right": right.measured,
            "accepted_wrong": wrong.accepted,
            "wrong": wrong.measured,
        }

    def as_json(self) -> dict[str, Any]:
        """Plain data for ``run.json``: what it comes to, both rates with their intervals, the kinds, and its cost."""
        return {
            "standing": self.standing,
            "why": self.why,
            "false_accepts": _rate_json(self.wrong),
            "false_rejects": _rate_json(self.right),
            "kinds": [kind.as_json() for kind in self.kinds],
            "silence": self.silence,
            "usage": self.usage.as_json(),
        }


def _kind(name: str, right: bool, found: list[tuple[str, str]]) -> Kind:
    counts = counts_of(value for _, value in found)
    mistake = "wrong" if right else "correct"
    return Kind(
        name,
        right,
        accepted=counts["correct"],
        rejected=counts["wrong"],
        unscored=counts["unscored"],
        na=counts["na"],
        mistaken=tuple(probe for probe, value in found if value == mistake),
    )


def _sum(name: str, right: bool, kinds: Iterable[Kind]) -> Kind:
    those = [kind for kind in kinds if kind.right == right]
    return Kind(
        name,
        right,
        accepted=sum(kind.accepted for kind in those),
        rejected=sum(kind.rejected for kind in those),
        unscored=sum(kind.unscored for kind in those),
        na=sum(kind.na for kind in those),
        mistaken=tuple(probe for kind in those for probe in kind.mistaken),
    )


def _of(kind: Kind) -> str:
    return f"{kind.mistakes} of {kind.measured}"


def _rate_json(kind: Kind) -> dict[str, Any]:
    return {
        "count": kind.mistakes,
        "n": kind.measured,
        "rate": kind.rate,
        "interval": list(kind.interval) if kind.interval else None,
    }
