"""The accuracy behind a judge that errs, in the score room: what it is once the judge's errors are taken out.

A judge accepts right answers at a rate ``Se`` and rejects wrong ones at a rate ``Sp``, both measured on probes.
If a share ``p`` of its verdicts is "correct", the share ``a`` that really is fulfils ``p = a Se + (1 - a)(1 - Sp)``,
so ``a = (p + Sp - 1) / (Se + Sp - 1)`` (W. J. Rogan and B. Gladen, Am J Epidemiol 107, 1978). That holds as
far as the judge errs on a run's answers as often as on the probes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from pytest_himga.score.statistics import Z_95


@dataclass(frozen=True)
class Corrected:
    """An accuracy and its 95 % interval, all in 0..1; ``low <= value <= high``."""

    value: float
    low: float
    high: float


def corrected_accuracy(
    correct: int, n: int, *, accepted_right: int, right: int, accepted_wrong: int, wrong: int
) -> Corrected | None:
    """The true accuracy that ``correct`` of ``n`` verdicts stand for.

    Of ``right`` probes with a right answer the judge accepted ``accepted_right``, of ``wrong`` ones with a
    wrong answer ``accepted_wrong``. None if one of the three was not measured, and if the judge tells right
    from wrong no better than chance: then its verdicts carry nothing that could be corrected.

    Raises
    ------
    ValueError
        For counts that no measurement gives.
    """
    counts = {"verdicts": (correct, n), "right": (accepted_right, right), "wrong": (accepted_wrong, wrong)}
    for name, (part, whole) in counts.items():
        if not 0 <= part <= whole:
            raise ValueError(f"{name}: {part} of {whole} is no count: 0 <= part <= whole is needed")
    if not (n and right and wrong):
        return None
    # In whole numbers: Se + Sp <= 1, without the last bits of a float.
    if accepted_right * wrong <= accepted_wrong * right:
        return None
    sensitivity, specificity = accepted_right / right, 1 - accepted_wrong / wrong
    value = _inside((correct / n + specificity - 1) / (sensitivity + specificity - 1))
    low, high = _interval(correct, n, accepted_right, right, wrong - accepted_wrong, wrong)
    return Corrected(value, min(low, value), max(high, value))


def _interval(
    correct: int, n: int, accepted: int, right: int, rejected: int, wrong: int
) -> tuple[float, float]:
    """The 95 % interval of Zs. Lang and J. Reiczigel (Prev Vet Med 113, 13-22, 2014).

    Each share is first drawn to the middle (by z^2/2 successes in z^2 more trials for the observed one, one
    success in two for the rates), so that 0 and 1 keep a width. The variance is the delta method's for
    three shares that were measured apart: with J = Se + Sp - 1, the slopes of ``a`` are 1/J in p, -a/J in Se
    and (1 - a)/J in Sp. ``shift`` is theirs too: the ratio is skewed, and the middle makes up for it.
    """
    z2 = Z_95 * Z_95
    observed = (correct + z2 / 2) / (n + z2)
    sensitivity, specificity = (accepted + 1) / (right + 2), (rejected + 1) / (wrong + 2)
    margin = sensitivity + specificity - 1
    if margin <= 0:  # so few probes that the judge may be as good as chance: nothing is known
        return 0.0, 1.0
    middle = (observed + specificity - 1) / margin
    of_observed = observed * (1 - observed) / (n + z2)
    of_sensitivity = sensitivity * (1 - sensitivity) / (right + 2)
    of_specificity = specificity * (1 - specificity) / (wrong + 2)
    shift = 2 * z2 * (middle * of_sensitivity - (1 - middle) * of_specificity)
    spread = of_observed + middle**2 * of_sensitivity + (1 - middle) ** 2 * of_specificity
    half = Z_95 * math.sqrt(spread) / margin
    # Ours: verdicts that these rates hardly allow would else have an interval that lies outside 0..1, of
    # which a single point would be left, as if that were certain.
    middle = _inside(middle + shift)
    return _inside(middle - half), _inside(middle + half)


def _inside(share: float) -> float:
    return min(max(share, 0.0), 1.0)
