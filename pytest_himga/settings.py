"""Settings: command line, environment and ini become one frozen object, checked before any work.

``--himga-NAME`` on the command line beats ``HIMGA_NAME`` in the environment, that beats ``himga_name``
in the ini file, and that beats the default. ``--himga-dataset`` counts on the command line only (addopts
included), so that no shell variable hijacks a test run. Lists take a repeated option, commas, or lines.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_himga.errors import SelectionError, SettingsError, nearest
from pytest_himga.option_source import OptionSource
from pytest_himga.options import (
    ALLOWANCES,
    DEFAULT_TIMEOUT,
    DEFAULT_TOP_K,
    GATE_MODES,
    ITEMS,
    LABELS,
    OPTIONS,
    SESSION_ORDERS,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pytest

    from pytest_himga.models import ModelSettings
    from pytest_himga.score.record import Record
    from pytest_himga.score.thresholds import Threshold


def _no_models() -> ModelSettings:
    from pytest_himga.models import ModelSettings

    return ModelSettings()


@dataclass(frozen=True)
class Settings:
    """All that a run was asked to do, checked. Paths are absolute."""

    datasets: tuple[str, ...]
    root: Path
    base: Path
    backend: str = "null"
    backend_options: Mapping[str, str] = field(default_factory=dict)
    data_dir: Path | None = None
    samples: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    subset: str | None = None
    locomo_labels: str = "locomo"
    session_order: str = "time"
    errata: tuple[str, ...] = ()
    errata_base: Path | None = None
    offline: bool = False
    allow: tuple[str, ...] = ()
    builtin_items: bool = True
    top_k: int = DEFAULT_TOP_K
    timeout: float = DEFAULT_TIMEOUT
    models: ModelSettings = field(default_factory=_no_models)
    gates: tuple[str, ...] = ("verdict",)
    gate_reason: str = ""
    gate_asked_for: bool = False
    thresholds: tuple[Threshold, ...] = ()
    max_unscored: str = "0"

    def tolerates_wrong(self, record: Record) -> bool:
        """Whether this wrong answer is *missed* rather than failed."""
        return "verdict" not in self.gates or bool(record.why_apart)

    @property
    def tolerates_unscored(self) -> bool:
        """Whether an unscored question is skipped rather than an error."""
        from pytest_himga.score.thresholds import parse_allowance

        allowance = parse_allowance(self.max_unscored)
        return bool(allowance.count or allowance.share)

    def as_json(self) -> dict[str, Any]:
        """What ``run.json`` keeps under ``settings``: asked-for values without paths of the machine."""
        return {
            "samples": list(self.samples),
            "types": list(self.types),
            "subset": self.subset,
            "items": "on" if self.builtin_items else "off",
            "timeout": self.timeout,
            "gate": list(self.gates),
            "min_score": [threshold.text for threshold in self.thresholds],
            "max_unscored": self.max_unscored,
            "offline": self.offline,
            "allow": list(self.allow),
        }


def read_settings(config: pytest.Config, environ: Mapping[str, str] | None = None) -> Settings:
    """The settings of this run.

    Raises
    ------
    SettingsError
        For the first value that cannot be used, naming the option and the nearest right spelling.
    """
    source = _Source(config, os.environ if environ is None else environ)
    from pytest_himga.data.opening import split_names
    from pytest_himga.models import read_models
    from pytest_himga.score.thresholds import parse_allowance

    base = source.base("dataset")
    datasets = tuple(
        dict.fromkeys(name for text in config.option.himga_dataset for name in split_names(text, base=base))
    )
    if not datasets:
        raise SettingsError("--himga-dataset is empty: name a dataset, e.g. --himga-dataset=demo")
    backend = source.one("backend")
    if not backend:
        raise SettingsError(
            "--himga-backend is missing: name the memory under test, e.g. --himga-backend=bm25, "
            "--himga-backend=package.module:YourMemory or a fixture's name"
        )
    subset = source.one("subset")
    if subset is not None:
        _check_subset(source, subset)
    max_unscored = source.one("max-unscored") or "0"
    parse_allowance(max_unscored)
    thresholds = source.thresholds()
    gates, reason, asked = _gates(source, thresholds)
    data_dir = source.one("data-dir")
    return Settings(
        datasets=datasets,
        root=config.rootpath,
        base=base,
        backend=backend,
        backend_options=source.pairs("backend-option"),
        data_dir=source.base("data-dir") / Path(data_dir).expanduser() if data_dir else None,
        samples=source.words("samples"),
        types=source.words("types"),
        subset=subset,
        locomo_labels=source.choice("locomo-labels", LABELS),
        session_order=source.choice("session-order", SESSION_ORDERS),
        errata=source.words("errata"),
        errata_base=source.base("errata"),
        offline=source.switch("offline"),
        allow=source.choices("allow", ALLOWANCES),
        builtin_items=source.choice("items", ITEMS) == "on",
        top_k=source.number("top-k", DEFAULT_TOP_K, whole=True),
        timeout=source.number("timeout", DEFAULT_TIMEOUT),
        models=read_models(source, source.environ),
        gates=gates,
        gate_reason=reason,
        gate_asked_for=asked,
        thresholds=thresholds,
        max_unscored=max_unscored,
    )


def _check_subset(source: _Source, subset: str) -> None:
    from pytest_himga.data.selection import parse_subset

    try:
        parse_subset(subset)
    except SelectionError:
        written = source.written("subset", subset)
        raise SettingsError(
            f"{written} is neither a count of at least 1 (200) nor a share up to 100% (10%)"
        ) from None


def _gates(source: _Source, thresholds: Sequence[Threshold]) -> tuple[tuple[str, ...], str, bool]:
    """Gate modes, why they are active, and whether a person asked for them."""
    asked = source.words("gate")
    for mode in asked:
        if mode not in GATE_MODES:
            raise SettingsError(f"{source.written('gate', mode)} is unknown; {nearest(mode, GATE_MODES)}")
    if "none" in asked and len(asked) > 1:
        written = source.written("gate", ",".join(asked))
        raise SettingsError(f"{written}: none cannot stand beside another gate")
    if "score" in asked and not thresholds:
        written = source.written("gate", "score")
        raise SettingsError(f"{written} needs a threshold: add --himga-min-score, e.g. 0.7")
    if asked:
        unused = "; the thresholds are not applied" if thresholds and "score" not in asked else ""
        return asked, f"asked for{unused}", asked != ("none",)
    if thresholds:
        return ("score",), "a threshold is set", True
    return ("verdict",), "no threshold is set", False


class _Source(OptionSource):
    """Reads one option from command line, environment and ini, in that order."""

    def __init__(self, config: pytest.Config, environ: Mapping[str, str]) -> None:
        self.config = config
        self.environ = environ
        self.options = {option.name: option for option in OPTIONS}

    def texts(self, name: str) -> list[str]:
        """What was written where it counts."""
        value, _ = self._raw(name)
        return [value] if isinstance(value, str) else list(value or [])

    def base(self, name: str) -> Path:
        """The root directory for what stands in the ini file, else the current folder."""
        _, where = self._raw(name)
        return self.config.rootpath if where == "ini" else Path(self.config.invocation_params.dir)

    def written(self, name: str, text: str) -> str:
        """As an option, a variable or a line of the ini file."""
        option = self.options[name]
        _, where = self._raw(name)
        places = {"env": f"{option.variable}={text}", "ini": f"{option.ini} = {text}"}
        return places.get(where, f"{option.flag}={text}")

    def thresholds(self) -> tuple[Threshold, ...]:
        """The least scores."""
        from pytest_himga.score.thresholds import parse_threshold

        return tuple(parse_threshold(word) for word in self.words("min-score"))

    def _raw(self, name: str) -> tuple[str | list[str] | None, str]:
        """The value and where it stands: ``cli``, ``env``, ``ini`` or ``default``."""
        option = self.options[name]
        value = getattr(self.config.option, option.ini)
        if value is not None:
            return value, "cli"
        if option.cli_only:
            return None, "default"
        if option.variable in self.environ:
            return self.environ[option.variable], "env"
        value = self.config.getini(option.ini)
        return (value, "ini") if value else (None, "default")
