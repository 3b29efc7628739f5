"""What ``--himga-min-score`` says: ``[DATASET:][NAME=]VALUE``, and ``--himga-max-unscored``.

``0.7`` is a minimum for ``overall``, ``temporal=60%`` for a type, ``locomo:recall@5=0.4`` for a number of
one dataset. Values are fractions, never floats: 0.7 means seven tenths. Only ``slope`` may be negative: a
fall that is put up with.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING

from pytest_himga.errors import SettingsError, nearest
from pytest_himga.score.dimensions import COST, SLOPE
from pytest_himga.score.summary import CONTEXT_TOKENS, FALSE_REFUSAL, OVERALL

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

_OPTION = "--himga-min-score"
_NUMBER = re.compile(r"[+-]?([0-9]{1,15}(\.[0-9]{0,30})?|\.[0-9]{1,30})")
#: Numbers that get worse as they grow.
_NO_MINIMUM = (CONTEXT_TOKENS, FALSE_REFUSAL, COST)


@dataclass(frozen=True)
class Threshold:
    """The least that the number ``name`` may be; ``dataset`` None means every dataset that has it.

    ``value`` is in 0..1, for ``slope`` in -1..1; ``text`` is what the user wrote.
    """

    dataset: str | None
    name: str
    value: Fraction
    text: str


@dataclass(frozen=True)
class Allowance:
    """How many questions may stay unscored: ``count``, or a ``share`` of all of them."""

    count: int = 0
    share: Fraction | None = None

    def of(self, total: int) -> int:
        """Count the allowance among ``total`` questions; a share is rounded down."""
        return self.count if self.share is None else int(self.share * total)


def parse_threshold(text: str) -> Threshold:
    """Read ``[DATASET:][NAME=]VALUE``; VALUE is 0..1, or 0..100 with a percent sign (both from -1 for slope).

    The name is only known to be right when the datasets are: see ``check_thresholds``. Raises
    SettingsError.
    """
    where = f"{_OPTION}={text}"
    front, equals, number = text.strip().rpartition("=")
    if not equals:
        dataset, _, number = number.rpartition(":")
        name = OVERALL
    else:
        dataset, _, name = front.rpartition(":")
    dataset, name, number = dataset.strip(), name.strip(), number.strip()
    if (":" in text and not dataset) or not name or not number:
        raise SettingsError(
            f"{where}: a part is empty; write [DATASET:][NAME=]VALUE, such as 0.7, temporal=0.6 or "
            "locomo:recall@5=0.4"
        )
    if refused := next((worse for worse in _NO_MINIMUM if _same(worse, name)), None):
        raise SettingsError(
            f"{where}: {refused} is better the lower it is, so it cannot have a minimum; it is printed in "
            "the summary and kept in run.json"
        )
    least = -1 if _same(SLOPE, name) else 0
    return Threshold(dataset or None, name, _share(number, where, text, least), text.strip())


def check_thresholds(
    thresholds: Sequence[Threshold], names_by_dataset: Mapping[str, Collection[str]]
) -> dict[str, list[Threshold]]:
    """Sort the thresholds by the dataset that they apply to, with the name as the dataset spells it.

    ``names_by_dataset`` holds what each selected dataset can measure (``summary.known_names``). Hyphens,
    underscores and case of a name do not matter. A threshold without a dataset applies to those that have
    the name. Raises SettingsError for a dataset that is not selected, and for a name that none has.
    """
    found: dict[str, list[Threshold]] = {dataset: [] for dataset in names_by_dataset}
    for threshold in thresholds:
        where = f"{_OPTION}={threshold.text}"
        wanted = list(names_by_dataset) if threshold.dataset is None else [threshold.dataset]
        if threshold.dataset is not None and threshold.dataset not in names_by_dataset:
            raise SettingsError(
                f"{where}: dataset {threshold.dataset} is not selected; "
                f"{nearest(threshold.dataset, names_by_dataset)}"
            )
        known = [name for dataset in wanted for name in names_by_dataset[dataset] if name not in _NO_MINIMUM]
        if not any(_same(threshold.name, name) for name in known):
            holder = "no selected dataset has" if threshold.dataset is None else f"{threshold.dataset} has no"
            number = "a number" if threshold.dataset is None else "number"
            raise SettingsError(
                f"{where}: {holder} {number} called {threshold.name}; {_right_name(threshold.name, known)}"
            )
        for dataset in wanted:
            for name in names_by_dataset[dataset]:
                if _same(threshold.name, name):
                    found[dataset].append(replace(threshold, dataset=dataset, name=name))
    return found


def parse_allowance(text: str) -> Allowance:
    """Read ``--himga-max-unscored``: a count (``12``) or a share of all questions (``2%``).

    Raises SettingsError.
    """
    where = f"--himga-max-unscored={text}"
    number = text.strip()
    if re.fullmatch(r"[0-9]{1,15}", number):
        return Allowance(count=int(number))
    digits = number.removesuffix("%").rstrip()
    if not _NUMBER.fullmatch(digits) or Fraction(digits) < 0:
        raise SettingsError(
            f"{where}: write a count of questions, such as 12, or a share of them, such as 2%"
        )
    value = Fraction(digits)
    if not number.endswith("%"):
        meant = f"; for a share of the questions write {decimal(value * 100)}%" if value < 1 else ""
        raise SettingsError(f"{where}: {number} is no whole number of questions{meant}")
    if value > 100:
        raise SettingsError(f"{where}: more than all questions cannot be unscored; the most is 100%")
    return Allowance(share=value / 100)


def allowed_unscored(text: str, total: int) -> int:
    """How many of ``total`` questions the setting ``text`` lets be unscored."""
    return parse_allowance(text).of(total)


def decimal(value: Fraction) -> str:
    """Print a fraction that has a finite decimal expansion, in full.

    >>> decimal(Fraction(7, 10)), decimal(Fraction(1))
    ('0.7', '1')
    """
    digits = next((d for d in range(400) if (value * 10**d).denominator == 1), None)
    if digits is None:
        return str(float(value))
    whole = str(int(abs(value) * 10**digits)).rjust(digits + 1, "0")
    sign = "-" if value < 0 else ""
    return sign + (f"{whole[:-digits]}.{whole[-digits:]}" if digits else whole)


def _share(number: str, where: str, text: str, least: int) -> Fraction:
    """The minimum that ``number`` says, in ``least`` (0, or -1 for a slope) .. 1."""
    percent = number.endswith("%")
    digits = number.removesuffix("%").rstrip()
    if not _NUMBER.fullmatch(digits):
        raise SettingsError(
            f"{where}: {number} is not a number; write a value from {least} to 1, such as "
            f"{'-0.05, or -5%' if least else '0.7, or 70%'}"
        )
    value = Fraction(digits) / (100 if percent else 1)
    if least <= value <= 1:
        return value
    limits = f"{least * 100}% and 100%" if percent else f"{least} and 1"
    sentence = (
        f"{where}: a minimum{f' of {SLOPE}' if least else ''} lies between {limits}, and {number} does not"
    )
    if not percent and least * 100 <= value <= 100:
        rest = text.strip().removesuffix(number)
        sentence += f"; did you mean {rest}{decimal(value / 100)}?"
    raise SettingsError(sentence)


def _right_name(name: str, known: Sequence[str]) -> str:
    """End the sentence: for a wrong depth the right ones, else the nearest names."""
    stem, at, _ = name.casefold().partition("@")
    depths = [other for other in dict.fromkeys(known) if at and other.startswith(f"{stem}@")]
    if depths:
        return f"it is measured as {', '.join(depths)}"
    return nearest(name.casefold(), known)


def _same(one: str, other: str) -> bool:
    return _plain(one) == _plain(other)


def _plain(name: str) -> str:
    return name.casefold().replace("_", "-")
