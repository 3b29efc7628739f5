"""Which models answer and judge: where each option counts, defaults of one for the other, and what is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_himga.errors import SettingsError
from pytest_himga.settings import read_settings

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_himga.models import ModelSettings

KEY = {"OPENAI_API_KEY": "sk-of-this-test"}
LLM = ("--himga-answerer=llm", "--himga-model=small")


@pytest.fixture
def models(project) -> Callable[..., ModelSettings]:
    """Reads settings as a run would, and gives the part about models."""

    def read(*arguments: str, ini: str = "", env: dict[str, str] | None = None) -> ModelSettings:
        project.pytester.makeini(f"[pytest]\n{ini}")
        given = ["--himga-dataset=demo-locomo", "--himga-backend=null", *arguments]
        return read_settings(project.pytester.parseconfig(*given), KEY if env is None else env).models

    return read


def test_an_llm_that_answers_is_judged_by_the_same_model_unless_another_is_named(models):
    found = models(*LLM)

    assert found.judge == "llm"
    assert found.answer_model.spec.as_json() == {
        "model": "small",
        "server": "https://api.openai.com/v1",
        "options": {},
    }
    assert found.judge_model.spec == found.answer_model.spec


def test_answerer_and_judge_can_be_different_models_on_different_servers(models):
    found = models(
        *LLM,
        "--himga-base-url=http://one.test:8000/v1/",
        "--himga-judge-model=large",
        "--himga-judge-base-url=https://two.test/v1",
        "--himga-model-option=temperature=0.2",
        "--himga-judge-model-option=temperature=0",
        "--himga-judge-model-option=reasoning_effort=low",
        env={"HIMGA_API_KEY": "key-of-one", "HIMGA_JUDGE_API_KEY": "key-of-two"},
    )

    assert found.answer_model.spec.as_json() == {
        "model": "small",
        "server": "http://one.test:8000/v1",
        "options": {"temperature": 0.2},
    }
    assert found.judge_model.spec.as_json() == {
        "model": "large",
        "server": "https://two.test/v1",
        "options": {"temperature": 0, "reasoning_effort": "low"},
    }
    assert "key-of" not in repr(found)


def test_a_judge_alone_takes_its_own_model_and_the_server_of_the_environment(models):
    env = {"OPENAI_BASE_URL": "http://local.test/v1"}
    found = models("--himga-judge=llm", "--himga-judge-model=large", env=env)

    assert found.answer_model is None
    assert (found.judge_model.spec.name, found.judge_model.spec.server) == ("large", "http://local.test/v1")


@pytest.mark.parametrize(
    ("name", "field"),
    [
        ("model", "answer_model.spec.name"),
        ("base-url", "answer_model.spec.server"),
        ("judge-model", "judge_model.spec.name"),
        ("judge-base-url", "judge_model.spec.server"),
    ],
)
def test_the_command_line_beats_the_environment_and_that_beats_the_ini(models, name, field):
    ini = f"himga_{name.replace('-', '_')} = http://ini/v1\nhimga_answerer = llm\nhimga_model = m\n"
    if name == "model":
        ini = "himga_model = http://ini/v1\nhimga_answerer = llm\n"
    env = {f"HIMGA_{name.replace('-', '_').upper()}": "http://env/v1", **KEY}

    def found(*arguments: str, env: dict[str, str]) -> str:
        value = models(*arguments, ini=ini, env=env)
        for part in field.split("."):
            value = getattr(value, part)
        return value

    assert found(env=KEY) == "http://ini/v1"
    assert found(env=env) == "http://env/v1"
    assert found(f"--himga-{name}=http://cli/v1", env=env) == "http://cli/v1"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0),
        ("0.7", 0.7),
        ("true", True),
        ("low", "low"),
        ('{"effort": "low"}', {"effort": "low"}),
        ("NaN", "NaN"),
    ],
)
def test_a_parameter_is_json_or_the_text_that_it_is(models, text, value):
    found = models(*LLM, f"--himga-model-option=key={text}")

    assert found.answer_model.spec.options == {"key": value}


BOTH = ["--himga-judge=llm", "--himga-model=small", "--himga-base-url=http://x/v1"]


@pytest.mark.parametrize(
    ("arguments", "idle", "add"),
    [
        (
            ["--himga-model=small", "--himga-judge-votes=3"],
            "--himga-model, --himga-judge-votes; no model answers or judges",
            "--himga-answerer=llm or --himga-judge=llm",
        ),
        (
            [*LLM, "--himga-judge=lexical", "--himga-judge-profile=lenient"],
            "--himga-judge-profile; no model judges",
            "--himga-judge=llm",
        ),
        (
            [*BOTH, "--himga-answer-profile=a"],
            "--himga-answer-profile; no model answers",
            "--himga-answerer=llm",
        ),
    ],
)
def test_what_was_typed_for_a_model_that_nobody_asks_is_told(models, arguments, idle, add):
    assert models(*arguments).idle == f"of no use here: {idle} in this run (add {add})"


@pytest.mark.parametrize(
    "arguments", [[], BOTH, [*LLM, "--himga-judge-votes=3", "--himga-answer-profile=benchmark"]]
)
def test_what_a_model_is_asked_with_is_of_use(models, arguments):
    assert models(*arguments).idle == ""


def test_what_a_shell_or_an_ini_file_says_for_all_runs_is_not(models):
    found = models(ini="himga_model = small\nhimga_judge_votes = 3\n", env={"HIMGA_BASE_URL": "http://x/v1"})

    assert found.idle == ""


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--himga-answerer=llm"], "--himga-answerer=llm needs a model: add --himga-model, "),
        (["--himga-judge=llm"], "--himga-judge=llm needs a model: add --himga-judge-model, "),
        ([*LLM, "--himga-judge-votes=2"], "--himga-judge-votes=2 is even, so votes can tie; take 1 or 3"),
        ([*LLM, "--himga-judge-votes=0"], "--himga-judge-votes=0 is not a whole number from 1"),
        ([*LLM, "--himga-model-option=temperature"], "--himga-model-option=temperature is not KEY=VALUE"),
        (
            [*LLM, "--himga-model-option=messages=[]"],
            "--himga-model-option=messages=...: messages is himga's own to send; leave it out",
        ),
        (
            ["--himga-answerer=llm", "--himga-model=a\udcff"],
            "--himga-model, --himga-judge-model: 'a\\udcff' has line breaks or bytes that are no text",
        ),
        (
            [*LLM, "--himga-model-option=user=\udcff"],
            "--himga-model-option=user=...: this has bytes that are no text",
        ),
        (
            [*LLM, '--himga-model-option=user=["\\ud800"]'],
            "--himga-model-option=user=...: this has bytes that are no text",
        ),
        ([*LLM, "--himga-base-url=local"], "--himga-base-url: 'local' is no http(s) URL"),
        ([*LLM, "--himga-cache=refesh"], "--himga-cache=refesh"),
        (
            [*LLM, "--himga-cache=off", "--himga-offline"],
            "--himga-cache=off looks for no reply, and offline no call is made, so no model could say anything; ",
        ),
        (
            [*LLM, "--himga-cache=refresh,kept", "--himga-offline"],
            "--himga-cache=refresh,kept looks for no reply, and offline no call is made",
        ),
    ],
)
def test_what_cannot_be_used_is_refused_in_a_sentence(models, arguments, sentence):
    with pytest.raises(SettingsError) as caught:
        models(*arguments)

    assert str(caught.value).startswith(sentence)


def test_openais_own_server_needs_a_key_but_not_where_nothing_is_asked(models):
    with pytest.raises(SettingsError) as caught:
        models(*LLM, env={})

    assert "HIMGA_API_KEY" in str(caught.value)
    assert "OPENAI_API_KEY" in str(caught.value)
    assert models(*LLM, "--himga-offline", "--himga-cache=read", env={}).llm_answers
    assert models(*LLM, "--himga-base-url=http://127.0.0.1:9/v1", env={}).llm_answers


def test_where_no_model_is_asked_the_cache_may_be_off_offline(models):
    found = models("--himga-cache=off", "--himga-offline")

    assert (found.cache.mode, found.judge) == ("off", None)


@pytest.mark.parametrize(
    ("arguments", "backend", "sentence"),
    [
        (
            ["--himga-judge=llm", "--himga-model=m", "--himga-base-url=http://127.0.0.1:9/v1"],
            "bm25",
            (
                "--himga-judge=llm judges answers, and backend bm25 has no answer(question), so nothing answers; "
                "add --himga-answerer=llm --himga-model=..., or give the backend an answer(question) method"
            ),
        ),
        (
            ["--himga-judge=lexical", "--himga-answerer=none"],
            "bm25",
            (
                "--himga-judge=lexical judges answers, and --himga-answerer=none, so nothing answers; "
                "add --himga-answerer=llm --himga-model=..., or give the backend an answer(question) method"
            ),
        ),
        (
            ["--himga-answerer=backend"],
            "bm25",
            "--himga-answerer=backend: backend bm25 has no answer(question); give it one, or take --himga-answerer=llm",
        ),
        (
            ["--himga-answerer=lm"],
            "bm25",
            "--himga-answerer=lm is unknown; did you mean llm?; your own is package.module:attribute",
        ),
        (["--himga-answerer=no.such:Thing"], "bm25", "--himga-answerer=no.such:Thing: no module named 'no'"),
        (
            ["--himga-answerer=llm", "--himga-model=m", "--himga-answer-profile=strikt"],
            "bm25",
            "--himga-answer-profile=strikt: no profile and no file of that name; did you mean strict?",
        ),
        (
            ["--himga-answerer=llm", "--himga-model=m", "--himga-judge-profile=lenent"],
            "bm25",
            "--himga-judge-profile=lenent: no profile and no file of that name; did you mean lenient",
        ),
    ],
)
def test_what_does_not_fit_together_ends_the_run_before_any_work(
    project, monkeypatch, arguments, backend, sentence
):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-this-test")
    result = project.run(*arguments, backend=backend)

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert f"ERROR: {sentence}" in result.stderr.str()
