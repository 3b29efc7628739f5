"""``himga calibrate``: the judge that a command line asks for, the probes to try it on, and the trying."""

from __future__ import annotations

import importlib.util
import os
import sys
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from pytest_himga.commands.output import tell
from pytest_himga.data.opening import Access, open_dataset, split_names
from pytest_himga.data.progress import terminal_progress
from pytest_himga.data.selection import parse_subset, select
from pytest_himga.engine.background import Background
from pytest_himga.engine.calibrating import AT_ONCE, calibrate
from pytest_himga.engine.judging import Judging, is_llm
from pytest_himga.engine.llms import Llms
from pytest_himga.errors import DatasetError, SelectionError, SettingsError
from pytest_himga.judge.probes import SHIPPED, SHIPPED_FAMILY, dataset_probes, shipped_probes
from pytest_himga.judge.resolve import resolve_judge
from pytest_himga.lineup import Llm
from pytest_himga.memory.protocol import Context
from pytest_himga.models import judge_profile_of, read_models
from pytest_himga.options import DATA_ALLOWANCES, DEFAULT_TIMEOUT, LABELS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import TracebackType

    from pytest_himga.commands.source import CommandSource
    from pytest_himga.data.dataset import Dataset
    from pytest_himga.data.schema import Case
    from pytest_himga.judge.probes import Probe
    from pytest_himga.judge.verdict import Judge, Verdict
    from pytest_himga.models import ModelSettings
    from pytest_himga.score.calibration import Calibration


# -- what is asked for -------------------------------------------------------------------------------


def _open_datasets(source: CommandSource, given: Sequence[str]) -> list[tuple[Dataset, list[Case]]]:
    """The datasets of the ``--from-dataset``s, each with the questions that ``--subset`` leaves.

    A ``SettingsError`` says whatever is wrong with them: nothing is measured then, which is not the judge's fault.
    """
    names = dict.fromkeys(name for text in given for name in split_names(text))
    subset = source.one("subset")
    access = _access(source)
    labels = source.choice("locomo-labels", LABELS)
    try:
        if subset is not None:
            parse_subset(subset)
        datasets = [open_dataset(name, labels=labels, access=access) for name in names]
        return [(dataset, select([dataset], subset=subset)) for dataset in datasets]
    except (DatasetError, SelectionError) as error:
        raise SettingsError(str(error)) from None


def _access(source: CommandSource) -> Access:
    allowed = source.choices("allow", DATA_ALLOWANCES)
    folder = source.one("data-dir")
    with suppress(RuntimeError):  # ~somebody, who has no home here
        folder = folder and str(Path(folder).expanduser())
    return Access(
        data_dir=Path(folder).absolute() if folder else None,
        offline=source.switch("offline"),
        allow_unverified="unverified" in allowed,
        announce=tell,
        progress=terminal_progress(sys.stderr),
    )


def _models(source: CommandSource) -> ModelSettings:
    """Who judges; ``SettingsError`` where it is nobody that could be tried."""
    name = source.one("judge")
    if name is None:
        raise SettingsError(
            "no judge is named: add --judge=lexical, --judge=llm or --judge=package.module:attribute"
        )
    if name == "evidence":
        raise SettingsError(
            f"{source.written('judge', name)} judges no answers: it looks for the evidence in what a memory returned; "
            "try lexical, llm or a judge of your own"
        )
    _check_importable(name, source.written("judge", name))
    models = read_models(source, os.environ)
    if not models.llm_judges:
        resolve_judge(name)  # before a dataset is downloaded for it
    return models


def _check_importable(name: str, written: str) -> None:
    """A judge of the user's may lie in the current folder, where ``himga`` as a script does not look."""
    module, colon, _ = name.partition(":")
    if not colon or not module:
        return
    if (here := str(Path.cwd())) not in sys.path:
        sys.path.insert(0, here)
    top = module.partition(".")[0]
    if not top or importlib.util.find_spec(top) is None:
        raise SettingsError(
            f"{written}: no module named {top!r} is in the current folder or installed; go to the folder "
            "that it lies in, or set PYTHONPATH"
        )


# -- the bench ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Sheet:
    """Probes from one ``source`` and the judge that is tried on them; ``llm`` tells of its model, if it has one."""

    source: str
    judge: Judge
    probes: list[Probe]
    llm: Llm | None = None

    def as_json(self) -> dict[str, Any]:
        """Plain data: what was tried on what."""
        entry: dict[str, Any] = {"probes": self.source, "judge": self.judge.name}
        if self.llm:
            entry |= {
                "model": self.llm.model.spec.as_json(),
                "votes": self.llm.votes,
                "profile_sha256": self.llm.profile_sha256,
                "fingerprint": self.llm.model.fingerprint(self.llm.profile_sha256),
            }
        return entry


class Bench:
    """A judge, ready to be tried on the shipped probes and on those of ``datasets``; a context that ends it.

    Raises ``SettingsError`` for a judge or a dataset that is not there.
    """

    def __init__(self, source: CommandSource, datasets: Sequence[str] = ()) -> None:
        self._models = _models(source)
        self._chosen = _open_datasets(source, datasets)
        self._background = Background()
        self._offline = source.switch("offline")
        timeout = source.number("timeout", DEFAULT_TIMEOUT)
        self._llms = Llms(
            self._models,
            timeout=timeout,
            offline=self._offline,
            cache_folder=Path.cwd() / ".himga" / "cache",
        )
        self._families = {SHIPPED: SHIPPED_FAMILY}
        self._families |= {dataset.name: dataset.family for dataset, _ in self._chosen}
        self._judging = Judging(self._models, self._families, self._llms, self._background, timeout)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._llms.close()
        self._background.close()

    @cached_property
    def sheets(self) -> list[Sheet]:
        """The shipped probes, once for each judge that the datasets get; then the probes of each dataset."""
        shipped: dict[str, Sheet] = {}
        for name in [dataset.name for dataset, _ in self._chosen] or [SHIPPED]:
            sheet = self._sheet("shipped", name, shipped_probes())
            shipped.setdefault(str(sheet.llm or sheet.judge.name), sheet)
        return [*shipped.values(), *self._of_datasets()]

    def _of_datasets(self) -> Iterator[Sheet]:
        for dataset, cases in self._chosen:
            yield self._sheet(dataset.name, dataset.name, list(dataset_probes(cases)))

    def _sheet(self, source: str, dataset: str, probes: list[Probe]) -> Sheet:
        judge, llm = self._judging.of(dataset), None
        assert judge is not None  # noqa: S101 - for the type checker: without a name we are not here
        if self._models.llm_judges and self._models.judge_model:
            rules = judge_profile_of(self._models, self._families[dataset])
            llm = Llm("judge", self._models.judge_model, rules.name, rules.sha256, self._models.judge_votes)
        return Sheet(source, judge, probes, llm)

    @property
    def planned(self) -> str:
        """How many calls of a model all this takes; "" if there is no model."""
        calls = sum(len(sheet.probes) * sheet.llm.votes for sheet in self.sheets if sheet.llm)
        return self._models.planned_line(f"at most {calls:,}", offline=self._offline) if calls else ""

    def calibrate(self, sheet: Sheet) -> Calibration:
        """Try the judge on the probes of one sheet."""

        async def ask(probe: Probe) -> Verdict:
            return await self._judging.ask(sheet.judge, probe.case, probe.answer, Context(""))

        try:
            return calibrate(ask, sheet.probes, at_once=AT_ONCE if is_llm(sheet.judge) else 1)
        except DatasetError as error:
            raise SettingsError(str(error)) from None

    @property
    def notes(self) -> list[str]:
        """What a reader must know of how the models were asked."""
        return self._llms.notes
