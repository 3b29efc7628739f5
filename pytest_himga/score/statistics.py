"""The two statistics that a summary needs: an interval for a share, a percentile of times."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

#: Two-sided 95 % of the normal distribution.
Z_95 = 1.959963984540054


def wilson(successes: int, n: int, z: float = Z_95) -> tuple[float, float]:
    """Wilson's score interval of ``successes`` in ``n``, both ends in 0..1 (95 % by default).

    It stays inside 0..1 and keeps a width at 0 of n and n of n, where the usual "plus or minus"
    shrinks to nothing and claims certainty (E. B. Wilson, JASA 22, 1927).

    Raises ValueError for ``n`` of 0: a share of nothing has no interval, and the caller prints ``-``.

    >>> "{:.3f} {:.3f}".format(*wilson(5, 10))
    '0.237 0.763'
    """
    if n < 1 or not 0 <= successes <= n:
        raise ValueError(f"no interval for {successes} of {n}: 0 <= successes <= n and n >= 1 are needed")
    share = successes / n
    spread = z * z / n
    middle = (share + spread / 2) / (1 + spread)
    half = z * math.sqrt(share * (1 - share) / n + spread / (4 * n)) / (1 + spread)
    # at the edges the formula gives the edge itself, but for the last bits of a float
    low = 0.0 if successes == 0 else max(0.0, middle - half)
    high = 1.0 if successes == n else min(1.0, middle + half)
    return low, high


def percentile(values: Iterable[float], q: float) -> float:
    """Take the ``q``-th percentile (0..100) by nearest rank: the least value that ``q`` % do not exceed.

    Nearest rank, not interpolation, so that the answer is a time that some call really took. Raises
    ValueError if there are no values.

    >>> percentile([30.0, 10.0, 20.0], 50)
    20.0
    """
    ordered = sorted(values)
    if not ordered:
        raise ValueError("no percentile of no values")
    if not 0 <= q <= 100:
        raise ValueError(f"a percentile lies between 0 and 100, and {q} does not")
    return ordered[max(0, math.ceil(q * len(ordered) / 100) - 1)]
