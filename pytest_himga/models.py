"""Which models answer and judge: read from options and environment, checked before any work.

``ModelSettings`` is part of ``Settings``; the ``calibrate`` command makes one from its own arguments. A key
is never in it as text: it stays in the ``Endpoint``, which shows it to nobody.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_himga.errors import SettingsError
from pytest_himga.llm.cache_setting import CacheSetting, parse_cache
from pytest_himga.llm.prompt import PROTOCOL_VERSION, ModelSpec, digest, sound

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_himga.answer.answer_profile import AnswerProfile
    from pytest_himga.judge.llm_profile import JudgeProfile
    from pytest_himga.llm.endpoint import Endpoint
    from pytest_himga.option_source import OptionSource

#: Environment variables that may hold the key, the first that is set.
ANSWER_KEYS = ("HIMGA_API_KEY", "OPENAI_API_KEY")
JUDGE_KEYS = ("HIMGA_JUDGE_API_KEY", *ANSWER_KEYS)
#: Who gives one of these wants to open the server, and headers and files would show it.
_NO_PARAMETER = re.compile(r"api.?key|authori[sz]ation|bearer|passw|secret|credential|headers", re.IGNORECASE)
#: What is for an LLM alone that answers, and for one that judges. The others are for both.
_OF_ANSWERER = ("answer-profile", "model-option")
_OF_JUDGE = ("judge-model", "judge-base-url", "judge-model-option", "judge-profile", "judge-votes")
_OF_BOTH = ("model", "base-url")
#: Hex digits of a fingerprint that are printed.
SHOWN = 12


@dataclass(frozen=True)
class Model:
    """One model on one server."""

    spec: ModelSpec
    endpoint: Endpoint

    def fingerprint(self, profile_sha256: str) -> str:
        """The sha256 (hex) over prompt text, model, server and parameters: what decides a reply."""
        return digest({"protocol": PROTOCOL_VERSION, "profile": profile_sha256, **self.spec.as_json()})


@dataclass(frozen=True)
class ProfileChoice:
    """A profile as it was asked for: its name or path, the folder for a relative path, the option as written."""

    spec: str
    base: Path
    option: str


@dataclass(frozen=True)
class ModelSettings:
    """Who answers and who judges. ``answerer`` and ``judge`` are None where the backend tells.

    ``idle`` is a sentence about what was typed for a model that this run does not have, "" if nothing was.
    """

    answerer: str | None = None
    judge: str | None = None
    answer_model: Model | None = None
    judge_model: Model | None = None
    answer_profile: ProfileChoice | None = None
    judge_profile: ProfileChoice | None = None
    judge_votes: int = 1
    judge_probe: bool = False
    cache: CacheSetting = field(default_factory=lambda: CacheSetting("on", None))
    idle: str = ""

    @property
    def llm_answers(self) -> bool:
        """Whether an LLM answers."""
        return self.answerer == "llm"

    @property
    def llm_judges(self) -> bool:
        """Whether an LLM judges."""
        return self.judge == "llm"

    def planned_line(self, planned: str, *, offline: bool) -> str:
        """What a person reads before the first call; ``planned`` is "at most 18", say."""
        if offline:
            return "planned model calls: none, replies come from the cache alone"
        fewer = ", fewer with what is in the cache" if self.cache.reads else ""
        return f"planned model calls: {planned}{fewer}"


def read_models(source: OptionSource, environ: Mapping[str, str]) -> ModelSettings:
    """Who answers and judges.

    Raises
    ------
    SettingsError
        For the first value that cannot be used; for an LLM without a model, or without a key where its
        server is OpenAI's own (but not if nothing will be asked, ``--himga-offline``).
    """
    answerer, judge = source.one("answerer"), source.one("judge")
    if judge is None and answerer == "llm":
        judge = "llm"
    return ModelSettings(
        answerer=answerer,
        judge=judge,
        answer_model=_answer_model(source, environ) if answerer == "llm" else None,
        judge_model=_judge_model(source, environ) if judge == "llm" else None,
        answer_profile=_profile(source, "answer-profile"),
        judge_profile=_profile(source, "judge-profile"),
        judge_votes=_votes(source),
        judge_probe=source.switch("judge-probe"),
        cache=_cache(source, needed="llm" in (answerer, judge)),
        idle=_idle(source, answers=answerer == "llm", judges=judge == "llm"),
    )


def _idle(source: OptionSource, *, answers: bool, judges: bool) -> str:
    """What a shell or an ini file says for all runs may well be of no use to one; what was typed is a slip."""
    idle = [
        *([] if answers or judges else _OF_BOTH),
        *([] if answers else _OF_ANSWERER),
        *([] if judges else _OF_JUDGE),
    ]
    typed = ", ".join(f"--himga-{name}" for name in idle if source.typed(name))
    if not typed:
        return ""
    nobody, add = "no model answers or judges", "--himga-answerer=llm or --himga-judge=llm"
    if answers:
        nobody, add = "no model judges", "--himga-judge=llm"
    elif judges:
        nobody, add = "no model answers", "--himga-answerer=llm"
    return f"of no use here: {typed}; {nobody} in this run (add {add})"


def _answer_model(source: OptionSource, environ: Mapping[str, str]) -> Model:
    name = source.one("model")
    if not name:
        raise SettingsError(
            "--himga-answerer=llm needs a model: add --himga-model, e.g. --himga-model=gpt-4o-mini"
        )
    return _model(source, environ, name, "model-option", "base-url", ANSWER_KEYS)


def _judge_model(source: OptionSource, environ: Mapping[str, str]) -> Model:
    name = source.one("judge-model") or source.one("model")
    if not name:
        raise SettingsError(
            "--himga-judge=llm needs a model: add --himga-judge-model, e.g. --himga-judge-model=gpt-4o-mini"
        )
    url_option = "judge-base-url" if source.one("judge-base-url") else "base-url"
    return _model(source, environ, name, "judge-model-option", url_option, JUDGE_KEYS)


def _model(
    source: OptionSource,
    environ: Mapping[str, str],
    name: str,
    options: str,
    url_option: str,
    keys: Sequence[str],
) -> Model:
    from pytest_himga.llm.endpoint import read_endpoint

    if not name.isprintable():
        raise SettingsError(
            f"--himga-model, --himga-judge-model: {name!r} has line breaks or bytes that are no text"
        )
    endpoint = read_endpoint(
        source.one(url_option),
        environ,
        option=f"--himga-{url_option}",
        key_names=keys,
        need_key=not source.switch("offline"),
    )
    parameters = {key: _plain(text) for key, text in source.pairs(options).items()}
    for key in ("model", "messages", "response_format", "stream", "n"):
        if key in parameters:
            raise SettingsError(
                f"{source.written(options, f'{key}=...')}: {key} is himga's own to send; leave it out"
            )
    for key in filter(_NO_PARAMETER.search, parameters):
        raise SettingsError(
            f"{source.written(options, f'{key}=...')}: this would be sent and shown as a parameter like any other; "
            f"a key is taken from the environment ({' or '.join(keys)}), and no headers can be set"
        )
    for key, value in parameters.items():
        if sound(told := json.dumps({key: value}, ensure_ascii=False)) != told:
            raise SettingsError(f"{source.written(options, f'{key}=...')}: this has bytes that are no text")
    return Model(ModelSpec(name, endpoint.server, parameters), endpoint)


def _plain(text: str) -> Any:
    """A parameter as JSON (0, 0.2, true, {"effort": "low"}), or as the text that it is."""
    try:
        return json.loads(text, parse_constant=str)
    except (ValueError, RecursionError):
        return text


def _profile(source: OptionSource, name: str) -> ProfileChoice | None:
    spec = source.one(name)
    return ProfileChoice(spec, source.base(name), source.written(name, spec)) if spec else None


def _cache(source: OptionSource, *, needed: bool) -> CacheSetting:
    words = source.words("cache")
    written = source.written("cache", ",".join(words))
    setting = parse_cache(words, base=source.base("cache"), option=written)
    if needed and source.switch("offline") and not setting.reads:
        raise SettingsError(
            f"{written} looks for no reply, and offline no call is made, so no model could say anything; "
            "leave out one of the two"
        )
    return setting


def _votes(source: OptionSource) -> int:
    votes: int = source.number("judge-votes", 1, whole=True)
    if votes % 2 == 0:
        raise SettingsError(
            f"{source.written('judge-votes', str(votes))} is even, so votes can tie; take {votes - 1} or {votes + 1}"
        )
    return votes


def answer_profile_of(models: ModelSettings) -> AnswerProfile:
    """The profile of the LLM that answers; ``SettingsError`` if it cannot be read."""
    from pytest_himga.answer.answer_profile import load_answer_profile

    chosen = models.answer_profile or ProfileChoice("strict", Path(), "--himga-answer-profile=strict")
    return load_answer_profile(chosen.spec, base=chosen.base, option=chosen.option)


def judge_profile_of(models: ModelSettings, family: str) -> JudgeProfile:
    """The profile of the LLM that judges a dataset of this family; ``SettingsError`` if it cannot be read."""
    from pytest_himga.judge.llm_profile import DEFAULT_PROFILES, load_judge_profile

    name = DEFAULT_PROFILES[family]
    chosen = models.judge_profile or ProfileChoice(name, Path(), f"--himga-judge-profile={name}")
    return load_judge_profile(chosen.spec, base=chosen.base, option=chosen.option)
