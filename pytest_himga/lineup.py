"""Who answers and who judges in this run, checked together with the backend and told to people and files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_himga.errors import SettingsError
from pytest_himga.models import SHOWN, answer_profile_of, judge_profile_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pytest_himga.data.schema import Case
    from pytest_himga.memory.resolve import Backend
    from pytest_himga.models import Model, ModelSettings

#: How to give a judge of answers something to judge.
_ADD = "add --himga-answerer=llm --himga-model=..., or give the backend an answer(question) method"


@dataclass(frozen=True)
class Llm:
    """A model in its role. ``profile`` names its prompt; the sha256 is that of what it tells a model."""

    role: str
    model: Model
    profile: str
    profile_sha256: str
    votes: int = 1

    @property
    def fingerprint(self) -> str:
        """The sha256 (hex) over prompt, model, server and parameters, shortened as it is printed."""
        return self.model.fingerprint(self.profile_sha256)[:SHOWN]

    def __str__(self) -> str:
        spec = self.model.spec
        options = "".join(f", {key}={value}" for key, value in spec.options.items())
        votes = f", {self.votes} votes" if self.votes > 1 else ""
        return f"{spec.name} at {spec.server}{options}, profile {self.profile}{votes}, fingerprint {self.fingerprint}"


@dataclass(frozen=True)
class Lineup:
    """``answerer`` and ``judge`` as asked for, None where the backend tells; ``notes`` are for the summary.

    ``judges`` has an ``Llm`` for each dataset whose answers a model judges.
    """

    answerer: str | None = None
    judge: str | None = None
    answering: Llm | None = None
    judges: Mapping[str, Llm] | None = None
    notes: tuple[str, ...] = ()

    def lines(self) -> list[str]:
        """What the header says of the models."""
        lines = [f"answerer: {self.answering}"] if self.answering else []
        told: dict[str, list[str]] = {}
        for dataset, llm in (self.judges or {}).items():
            told.setdefault(str(llm), []).append(dataset)
        for text, names in told.items():
            whose = f" of {', '.join(names)}" if len(told) > 1 else ""
            lines.append(f"judge{whose}: {text}")
        return lines

    def judge_of(self, dataset: str) -> Llm | None:
        """The model that judges the dataset's answers; None where none does."""
        return (self.judges or {}).get(dataset)

    def planned(self, cases: Iterable[Case]) -> str:
        """How many requests these questions take, as the end of a line; "" where no model is asked."""
        cases = list(cases)
        answers = len(cases) if self.answering else 0
        verdicts = sum(
            llm.votes * (2 if case.erratum is not None and case.erratum.gold is not None else 1)
            for case in cases
            if (llm := self.judge_of(case.dataset))
        )
        parts = [
            f"{count:,} {name}"
            for count, name in ((answers, "for answers"), (verdicts, "for verdicts"))
            if count
        ]
        total = answers + verdicts
        return f"at most {total:,} ({', '.join(parts)})" if total else ""

    @property
    def profiles(self) -> dict[str, str]:
        """The sha256 of each prompt in use, by ``answerer/NAME`` and ``judge/NAME``."""
        return {f"{llm.role}/{llm.profile}": llm.profile_sha256 for llm in self._all}

    @property
    def models(self) -> dict[str, Any]:
        """What ``run.json`` keeps of each model, by role: no key is in it."""
        found: dict[str, Any] = {}
        for llm in self._all:
            entry = found.setdefault(
                llm.role, {**llm.model.spec.as_json(), "votes": llm.votes, "fingerprints": {}}
            )
            entry["fingerprints"][llm.profile] = llm.model.fingerprint(llm.profile_sha256)
        return found

    @property
    def _all(self) -> list[Llm]:
        return [*([self.answering] if self.answering else []), *(self.judges or {}).values()]


def make_lineup(models: ModelSettings, backend: Backend, families: Mapping[str, str], top_k: int) -> Lineup:
    """Check and describe; ``families`` maps the datasets to theirs.

    Raises
    ------
    SettingsError
        Where a profile, an answerer or a judge cannot be loaded, and where a judge of answers would have
        none to judge.
    """
    _check_answerer(models, backend)
    _check_judge(models, backend)
    answering, notes = None, [models.idle] if models.idle else []
    if models.llm_answers and models.answer_model:
        profile = answer_profile_of(models)
        answering = Llm("answerer", models.answer_model, profile.name, profile.sha256)
        notes += [note] if (note := profile.note_for(top_k)) else []
    judges = {}
    if models.llm_judges and models.judge_model:
        for dataset, family in families.items():
            rules = judge_profile_of(models, family)
            judges[dataset] = Llm("judge", models.judge_model, rules.name, rules.sha256, models.judge_votes)
    return Lineup(models.answerer, models.judge, answering, judges, tuple(notes))


def _check_answerer(models: ModelSettings, backend: Backend) -> None:
    name = models.answerer
    if name is None or name in ("none", "llm"):
        return
    if name == "backend":
        if backend.answers is False:
            raise SettingsError(
                f"--himga-answerer=backend: backend {backend.name} has no answer(question); give it one, or take "
                "--himga-answerer=llm"
            )
        return
    from pytest_himga.answer.resolve import load_answerer

    load_answerer(name)


def _check_judge(models: ModelSettings, backend: Backend) -> None:
    from pytest_himga.judge.resolve import resolve_judge

    if models.judge is not None and models.judge != "llm":
        resolve_judge(models.judge)
    if models.judge_probe and models.judge in (None, "evidence"):
        raise SettingsError(
            "--himga-judge-probe tries a judge of answers: add --himga-judge=llm, lexical or a judge of your own"
        )
    if models.judge in ("lexical", "llm"):
        nobody = models.answerer == "none" or (models.answerer is None and backend.answers is False)
        if nobody:
            why = (
                "--himga-answerer=none"
                if models.answerer
                else f"backend {backend.name} has no answer(question)"
            )
            raise SettingsError(
                f"--himga-judge={models.judge} judges answers, and {why}, so nothing answers; {_ADD}"
            )
