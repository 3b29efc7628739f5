"""Options, environment and ini: which one counts, where a path starts, and what a bad value says."""

from __future__ import annotations

import gzip
import json
import shutil
from operator import attrgetter
from typing import TYPE_CHECKING

import pytest

from pytest_himga.errors import HimgaError
from pytest_himga.llm.cache_setting import CacheSetting
from pytest_himga.models import ModelSettings
from pytest_himga.options import OPTIONS
from pytest_himga.settings import Settings, read_settings

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

#: Plugins that many have installed and no story here is about; without them a run takes half the time.
OTHERS = ("asyncio", "anyio", "cov", "syrupy", "rerunfailures", "hypothesispytest", "timeout")
INI = f"[pytest]\npythonpath = .\naddopts = {' '.join(f'-pno:{name}' for name in OTHERS)}\n"

SINCE_PYTEST_9 = pytest.mark.skipif(
    pytest.version_tuple < (9,), reason="pytest reads [tool.pytest] since version 9"
)


@pytest.fixture
def project(project):
    """The shared project, without the plugins that no story here is about."""
    project.pytester.makeini(INI)
    return project


@pytest.fixture
def settings(project) -> Callable[..., Settings]:
    """Reads settings as a run would, from arguments, ini lines and an environment."""

    def read(*arguments: str, ini: str = "", env: dict[str, str] | None = None) -> Settings:
        project.pytester.makeini(f"{INI}{ini}")
        dataset = [] if any("himga-dataset" in argument for argument in arguments) else ["demo-locomo"]
        config = project.pytester.parseconfig(
            *(f"--himga-dataset={name}" for name in dataset), "--himga-backend=null", *arguments
        )
        return read_settings(config, env or {})

    return read


def error_line(result: pytest.RunResult) -> str:
    """The one line of a usage error; there is no traceback and nothing else on stderr."""
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    lines = [line for line in result.errlines if line.strip()]
    assert len(lines) == 1, lines
    assert "Traceback" not in result.stdout.str()
    assert "INTERNALERROR" not in result.stdout.str()
    assert lines[0].startswith("ERROR: ")
    return lines[0].removeprefix("ERROR: ")


# -- which one counts --------------------------------------------------------------------------------


def test_the_defaults(settings, project):
    assert settings() == Settings(
        datasets=("demo-locomo",),
        root=project.path,
        base=project.path,
        backend="null",
        backend_options={},
        data_dir=None,
        samples=(),
        types=(),
        subset=None,
        locomo_labels="locomo",
        session_order="time",
        errata=(),
        errata_base=project.path,
        offline=False,
        allow=(),
        builtin_items=True,
        top_k=10,
        timeout=120.0,
        models=ModelSettings(cache=CacheSetting("on", None)),
        gates=("verdict",),
        gate_reason="no threshold is set",
        gate_asked_for=False,
        thresholds=(),
        max_unscored="0",
    )


#: Of each option that environment and ini know: its field, and three values with what they become.
VALUES = {
    "backend": ("backend", {"a": "a", "b": "b", "c": "c"}),
    "backend-option": ("backend_options", {"k=1": {"k": "1"}, "k=2": {"k": "2"}, "k=3": {"k": "3"}}),
    "data-dir": ("data_dir", {"/a": "/a", "/b": "/b", "/c": "/c"}),
    "samples": ("samples", {"a": ("a",), "b": ("b",), "c": ("c",)}),
    "types": ("types", {"a": ("a",), "b": ("b",), "c": ("c",)}),
    "subset": ("subset", {"1": "1", "2": "2", "3%": "3%"}),
    "locomo-labels": ("locomo_labels", {"himga": "himga", "locomo": "locomo", "": "locomo"}),
    "session-order": ("session_order", {"file": "file", "time": "time", "": "time"}),
    "errata": ("errata", {"a": ("a",), "b": ("b",), "c": ("c",)}),
    "allow": ("allow", {"unverified": ("unverified",), "unverified,unverified": ("unverified",), "": ()}),
    "items": ("builtin_items", {"off": False, "on": True, "": True}),
    "top-k": ("top_k", {"1": 1, "2": 2, "3": 3}),
    "timeout": ("timeout", {"1": 1.0, "2.5": 2.5, "3": 3.0}),
    "answerer": ("models.answerer", {"none": "none", "backend": "backend", "a:b": "a:b"}),
    "answer-profile": ("models.answer_profile.spec", {"a": "a", "b": "b", "c": "c"}),
    "judge": ("models.judge", {"a": "a", "b": "b", "c": "c"}),
    "judge-profile": ("models.judge_profile.spec", {"a": "a", "b": "b", "c": "c"}),
    "judge-votes": ("models.judge_votes", {"3": 3, "5": 5, "7": 7}),
    "cache": ("models.cache.mode", {"off": "off", "read": "read", "refresh": "refresh"}),
    "gate": ("gates", {"none": ("none",), "verdict": ("verdict",), "": ("verdict",)}),
    "max-unscored": ("max_unscored", {"1": "1", "2": "2", "3%": "3%"}),
}


def test_the_table_of_values_has_every_option():
    switches = {"offline", "judge-probe"}
    #: They are read where a model is asked: see test_model_settings.py.
    of_models = {"model", "base-url", "model-option", "judge-model", "judge-base-url", "judge-model-option"}
    assert {*VALUES, "min-score", *switches, *of_models} == {
        option.name for option in OPTIONS if not option.cli_only
    }


@pytest.mark.parametrize(
    ("text", "offline"), [("yes", True), ("1", True), ("ON", True), ("no", False), ("0", False)]
)
def test_a_switch_is_given_by_its_name_alone_or_as_yes_and_no(settings, text, offline):
    assert settings("--himga-offline").offline
    assert settings("--himga-offline", env={"HIMGA_OFFLINE": "no"}).offline
    assert settings(env={"HIMGA_OFFLINE": text}).offline == offline
    assert settings(ini=f"himga_offline = {text}\n").offline == offline


@pytest.mark.parametrize("name", VALUES)
def test_the_command_line_beats_the_environment_and_that_beats_the_ini(settings, project, name):
    field, values = VALUES[name]
    (cli, on_cli), (env, in_env), (ini, in_ini) = values.items()
    option = next(option for option in OPTIONS if option.name == name)

    def value(*arguments, **sources):
        if name == "backend":  # the fixture's own --himga-backend would stand on the command line
            project.pytester.makeini(f"{INI}{sources['ini']}")
            config = project.pytester.parseconfig("--himga-dataset=demo-locomo", *arguments)
            return read_settings(config, sources.get("env", {})).backend
        found = attrgetter(field)(settings(*arguments, **sources))
        return found if name != "data-dir" else str(found)

    ini_line = f"{option.ini} = {ini}\n"
    assert value(ini=ini_line) == in_ini
    assert value(ini=ini_line, env={option.variable: env}) == in_env
    assert value(f"{option.flag}={cli}", ini=ini_line, env={option.variable: env}) == on_cli


def test_a_threshold_counts_from_every_source(settings):
    ini = "himga_min_score =\n    0.5\n    temporal=0.4\n"

    assert [t.text for t in settings(ini=ini).thresholds] == ["0.5", "temporal=0.4"]
    assert [t.text for t in settings(ini=ini, env={"HIMGA_MIN_SCORE": "0.6"}).thresholds] == ["0.6"]
    assert [t.text for t in settings("--himga-min-score=0.7", ini=ini).thresholds] == ["0.7"]


def test_an_empty_variable_is_no_value(settings):
    read = settings(env={"HIMGA_TOP_K": "", "HIMGA_JUDGE": " ", "HIMGA_SAMPLES": ","})

    assert (read.top_k, read.models.judge, read.samples) == (10, None, ())


def test_the_dataset_never_comes_from_the_environment(project, monkeypatch):
    monkeypatch.setenv("HIMGA_DATASET", "demo")
    monkeypatch.setenv("HIMGA_BACKEND", "bm25")
    project.write("test_user.py", "def test_own():\n    pass\n")

    result = project.pytester.runpytest_inprocess()

    result.assert_outcomes(passed=1)
    assert "himga:" not in result.stdout.str()


def test_the_dataset_may_stand_in_addopts(project):
    project.pytester.makeini(f"{INI.rstrip()} --himga-dataset=mini.json --himga-backend=null\n")

    result = project.pytester.runpytest_inprocess("--co", "-q")

    result.stdout.fnmatch_lines(["9 tests collected in *"])


@pytest.mark.parametrize(
    "text",
    [
        "[tool.pytest.ini_options]\nhimga_backend = 'null'\nhimga_top_k = 3\nhimga_min_score = ['0.1', 'all=0.2']\n",
        pytest.param(
            "[tool.pytest]\nhimga_backend = 'null'\nhimga_top_k = '3'\nhimga_min_score = ['0.1', 'all=0.2']\n",
            marks=SINCE_PYTEST_9,
        ),
    ],
)
def test_pyproject_is_an_ini_file_too(project, text):
    (project.path / "tox.ini").unlink()
    project.write("pyproject.toml", text)

    config = project.pytester.parseconfig("--himga-dataset=demo-locomo")
    read = read_settings(config, {})

    assert (read.backend, read.top_k) == ("null", 3)
    assert [threshold.text for threshold in read.thresholds] == ["0.1", "all=0.2"]


# -- lists -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "ini", "env"),
    [
        (["--himga-samples=a,b,c"], "", {}),
        (["--himga-samples=a", "--himga-samples=b, c"], "", {}),
        (["--himga-samples", " a ,,b,", "--himga-samples=c", "--himga-samples=a"], "", {}),
        ([], "himga_samples = a, b, c\n", {}),
        ([], "himga_samples =\n    a\n    b,c\n", {}),
        ([], "", {"HIMGA_SAMPLES": "a,b,c"}),
        ([], "", {"HIMGA_SAMPLES": "a\nb\nc"}),
    ],
)
def test_a_list_is_repeated_or_has_commas_or_lines(settings, arguments, ini, env):
    assert settings(*arguments, ini=ini, env=env).samples == ("a", "b", "c")


def test_datasets_are_repeated_or_have_commas(settings):
    repeated = [
        "--himga-dataset=demo-locomo",
        "--himga-dataset=x=mini.json,mini.json",
        "--himga-dataset=demo-locomo",
    ]
    assert settings(*repeated).datasets == ("demo-locomo", "x=mini.json", "mini.json")


def test_an_option_of_the_backend_keeps_its_commas_and_equals_signs(settings):
    read = settings("--himga-backend-option=hosts=a,b", "--himga-backend-option=url = u?x=1")

    assert read.backend_options == {"hosts": "a,b", "url": "u?x=1"}


# -- where data are found ----------------------------------------------------------------------------


def collected(result: pytest.RunResult) -> list[str]:
    return list(dict.fromkeys(line.split("::")[0] for line in result.outlines if line.startswith("himga/")))


@pytest.fixture
def elsewhere(project) -> Path:
    """A folder beside the project's files with the mini data as ``mini.json``, ``.gz`` and in a folder."""
    folder = project.path / "data"
    (folder / "many").mkdir(parents=True)
    text = (project.path / "mini.json").read_text(encoding="utf-8")
    (project.path / "mini.json").unlink()
    (folder / "mini.json").write_text(text, encoding="utf-8")
    (folder / "packed.json.gz").write_bytes(gzip.compress(text.encode()))
    for number, record in enumerate(json.loads(text)):
        (folder / "many" / f"{number}.json").write_text(json.dumps(record), encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    ("dataset", "name"),
    [
        ("data/mini.json", "mini"),
        ("./data/mini.json", "mini"),
        ("data/packed.json.gz", "packed"),
        ("data/many", "many"),
        ("data/many/", "many"),
        ("small=data/many", "small"),
        ("My Data v1.5=data/mini.json", "My-Data-v1-5"),
    ],
)
def test_a_dataset_is_a_path_under_its_own_name_or_another(project, elsewhere, dataset, name):
    found = collected(project.run("--co", "-q", data=dataset))

    assert found == [f"himga/{name}/garden", f"himga/{name}/harbour"]


@pytest.mark.parametrize(
    ("dataset", "where"),
    [
        ("mini", "option"),
        ("packed", "option"),
        ("many", "environment"),
        ("mini", "ini"),
        ("other=mini", "ini"),
    ],
)
def test_a_dataset_is_a_name_in_the_data_folder(project, elsewhere, monkeypatch, dataset, where):
    arguments = [f"--himga-data-dir={elsewhere}"] if where == "option" else []
    if where == "environment":
        monkeypatch.setenv("HIMGA_DATA_DIR", str(elsewhere))
    if where == "ini":
        project.pytester.makeini(f"{INI}himga_data_dir = data\n")

    found = collected(project.run("--co", "-q", *arguments, data=dataset))

    name = dataset.partition("=")[0]
    assert found == [f"himga/{name}/garden", f"himga/{name}/harbour"]


def test_locomo_is_the_published_file_in_the_data_folder_and_no_other(project, elsewhere):
    shutil.copy(elsewhere / "mini.json", elsewhere / "locomo10.json")

    refused = error_line(project.run("--co", "-q", "--himga-data-dir=data", data="locomo"))
    accepted = project.run("--co", "-q", "--himga-data-dir=data", "--himga-allow=unverified", data="locomo")

    assert refused.startswith(f"locomo: {elsewhere}/locomo10.json is not the published file: its sha256 is ")
    assert collected(accepted) == ["himga/locomo/garden", "himga/locomo/harbour"]


def test_a_relative_path_starts_where_it_was_written(project, elsewhere, monkeypatch):
    """On the command line and in the environment in the current folder, in the ini in the root folder."""
    sub = project.path / "sub"
    sub.mkdir()
    monkeypatch.chdir(sub)

    assert collected(project.run("--co", "-q", data="../data/mini.json"))
    assert collected(project.run("--co", "-q", "--himga-data-dir=../data", data="mini"))
    monkeypatch.setenv("HIMGA_DATA_DIR", "../data")
    assert collected(project.run("--co", "-q", data="mini"))
    monkeypatch.delenv("HIMGA_DATA_DIR")
    project.pytester.makeini(f"{INI}himga_data_dir = data\n")
    assert collected(project.run("--co", "-q", data="mini"))
    assert error_line(project.run("--co", "-q", data="data/mini.json")).startswith(
        f"{sub}/data/mini.json: there is no such file or folder"
    )


@pytest.mark.parametrize("where", ["option", "environment", "ini"])
def test_a_tilde_is_the_home_folder(settings, project, monkeypatch, where):
    monkeypatch.setenv("HOME", str(project.path / "home"))
    read = {
        "option": lambda: settings("--himga-data-dir=~/data"),
        "environment": lambda: settings(env={"HIMGA_DATA_DIR": "~/data"}),
        "ini": lambda: settings(ini="himga_data_dir = ~/data\n"),
    }[where]()

    assert read.data_dir == project.path / "home" / "data"


def test_files_of_a_run_go_to_the_root_folder(project, elsewhere, monkeypatch):
    sub = project.path / "sub"
    sub.mkdir()
    monkeypatch.chdir(sub)

    project.run(data="../data/mini.json")

    assert (project.path / ".himga" / "runs").is_dir()
    assert not (sub / ".himga").exists()


# -- bad values --------------------------------------------------------------------------------------

_LLM = ("--himga-answerer=llm", "--himga-model=m", "--himga-base-url=http://127.0.0.1:9/v1")

#: Of each option: what was written, and how the error starts.
BAD = {
    "dataset": [
        (["--himga-dataset="], "--himga-dataset is empty: name a dataset, e.g. --himga-dataset=demo"),
        (["--himga-dataset=dmo"], "There is no dataset 'dmo': "),
        (["--himga-dataset=no/where.json"], "{path}/no/where.json: there is no such file or folder"),
        (["--himga-dataset=x="], "'x=' is not a dataset; write NAME=PATH with both"),
        (["--himga-dataset=mini.json,mini.json.gz"], "{path}/mini.json.gz: there is no such file or folder"),
        (["--himga-dataset=a=mini.json,a=demo-locomo"], "Two datasets would be called a in ids"),
    ],
    "backend": [
        (["--himga-backend="], "--himga-backend is missing: name the memory under test"),
        (["--himga-backend=bm52"], "--himga-backend=bm52 is no built-in or installed backend"),
        (["--himga-backend=no.such:Memory"], "--himga-backend=no.such:Memory: no module named 'no'"),
        (
            ["--himga-backend=json:loadz"],
            "--himga-backend=json:loadz: json has no 'loadz': did you mean load",
        ),
        (["--himga-backend=decimal:Decimal"], "--himga-backend=decimal:Decimal: Decimal has no "),
        (["--himga-backend=broken:Memory"], "--himga-backend=broken:Memory: importing broken failed: "),
    ],
    "backend-option": [
        (["--himga-backend-option=depth"], "--himga-backend-option=depth is not KEY=VALUE"),
        (["--himga-backend-option==3"], "--himga-backend-option==3 is not KEY=VALUE"),
        (["--himga-backend-option=depth=3"], "--himga-backend-option=depth=...: null takes no depth"),
    ],
    "data-dir": [
        (
            ["--himga-dataset=locmo", "--himga-data-dir=no/where"],
            "There is no dataset 'locmo': {path}/no/where (--himga-data-dir) or ",
        )
    ],
    "errata": [
        (
            ["--himga-errata=nowhere.toml"],
            "--himga-errata=nowhere.toml: there is no such file, and no shipped list",
        ),
        (["--himga-errata=mini.json"], "{path}/mini.json: holds [{"),
    ],
    "allow": [(["--himga-allow=unverifid"], "--himga-allow=unverifid is unknown; did you mean unverified?")],
    "session-order": [
        (["--himga-session-order=up"], "--himga-session-order=up is unknown; known: file, time")
    ],
    "samples": [
        (["--himga-samples=gardn"], "There is no sample 'gardn' in mini; did you mean garden?"),
        (["--himga-samples=garden,x"], "There is no sample 'x' in mini; known: garden, harbour"),
    ],
    "types": [
        (["--himga-types=temporl"], "There is no question type 'temporl' in mini; did you mean temporal")
    ],
    "subset": [
        ([f"--himga-subset={text}"], f"--himga-subset={text} is neither a count of at least 1")
        for text in ("0", "-1", "101%", "some")
    ],
    "locomo-labels": [
        (["--himga-locomo-labels=locom"], "--himga-locomo-labels=locom is unknown; did you mean locomo?")
    ],
    "items": [(["--himga-items=of"], "--himga-items=of is unknown; did you mean off?")],
    "top-k": [
        ([f"--himga-top-k={text}"], f"--himga-top-k={text} is not a whole number from 1")
        for text in ("0", "1.5", "ten")
    ],
    "timeout": [
        ([f"--himga-timeout={text}"], f"--himga-timeout={text} is not a number of seconds above 0")
        for text in ("0", "-1", "nan", "inf")
    ],
    "judge": [
        (["--himga-judge=evidnce"], "--himga-judge=evidnce is unknown; did you mean evidence?"),
        (["--himga-judge=lexical"], "--himga-judge=lexical judges answers, and backend null has no answer"),
        (["--himga-judge=no.such:Judge"], "--himga-judge=no.such:Judge: no module named 'no'"),
        (["--himga-judge=json:loads"], "--himga-judge=json:loads: it has no judge(case, answer, context)"),
    ],
    "answerer": [
        (["--himga-answerer=lm"], "--himga-answerer=lm is unknown; did you mean llm?"),
        (["--himga-answerer=backend"], "--himga-answerer=backend: backend null has no answer(question)"),
    ],
    "model": [(["--himga-answerer=llm"], "--himga-answerer=llm needs a model")],
    "judge-model": [(["--himga-judge=llm"], "--himga-judge=llm needs a model")],
    "base-url": [
        ([*_LLM, "--himga-base-url=ftp://x/v1"], "--himga-base-url: 'ftp://x/v1' is no http(s) URL")
    ],
    "judge-base-url": [
        ([*_LLM, "--himga-judge-base-url=x"], "--himga-judge-base-url: 'x' is no http(s) URL"),
    ],
    "model-option": [([*_LLM, "--himga-model-option=hot"], "--himga-model-option=hot is not KEY=VALUE")],
    "judge-model-option": [
        ([*_LLM, "--himga-judge-model-option=hot"], "--himga-judge-model-option=hot is not KEY=VALUE"),
    ],
    "answer-profile": [
        ([*_LLM, "--himga-answer-profile=strickt"], "--himga-answer-profile=strickt: no profile and no file"),
    ],
    "judge-profile": [
        ([*_LLM, "--himga-judge-profile=strickt"], "--himga-judge-profile=strickt: no profile and no file"),
    ],
    "judge-votes": [([*_LLM, "--himga-judge-votes=4"], "--himga-judge-votes=4 is even, so votes can tie")],
    "cache": [
        ([*_LLM, "--himga-cache=refesh"], "--himga-cache=refesh: refesh is unknown; did you mean refresh?")
    ],
    "gate": [
        (["--himga-gate=scor"], "--himga-gate=scor is unknown; did you mean score?"),
        (["--himga-gate=score"], "--himga-gate=score needs a threshold: add --himga-min-score, e.g. 0.7"),
        (["--himga-gate=none,verdict"], "--himga-gate=none,verdict: none cannot stand beside another gate"),
    ],
    "min-score": [
        (
            ["--himga-min-score=1.5"],
            "--himga-min-score=1.5: a minimum lies between 0 and 1, and 1.5 does not",
        ),
        (["--himga-min-score=high"], "--himga-min-score=high: high is not a number; write a value from 0"),
        (["--himga-min-score=nan"], "--himga-min-score=nan: nan is not a number; write a value from 0"),
        (
            ["--himga-min-score=temporl=0.5"],
            "--himga-min-score=temporl=0.5: no selected dataset has a number called temporl; did you mean temporal?",
        ),
        (
            ["--himga-min-score=othr:0.5"],
            "--himga-min-score=othr:0.5: dataset othr is not selected; known: mini",
        ),
    ],
    "max-unscored": [
        (["--himga-max-unscored=-1"], "--himga-max-unscored=-1: write a count of questions, such as 12, or"),
        (
            ["--himga-max-unscored=few"],
            "--himga-max-unscored=few: write a count of questions, such as 12, or",
        ),
        (
            ["--himga-max-unscored=101%"],
            "--himga-max-unscored=101%: more than all questions cannot be unscored",
        ),
        (["--himga-max-unscored=1.5"], "--himga-max-unscored=1.5: 1.5 is no whole number of questions"),
    ],
}


def test_the_table_of_bad_values_has_every_option():
    assert set(BAD) == {option.name for option in OPTIONS if not option.switch}


@pytest.mark.parametrize(
    ("arguments", "start"),
    [
        pytest.param(arguments, start, id=" ".join(arguments).replace("--himga-", ""))
        for rows in BAD.values()
        for arguments, start in rows
    ],
)
def test_a_bad_value_is_one_line_before_any_work(project, arguments, start):
    project.write("broken.py", "raise ZeroDivisionError('on import\\nof broken')\n")

    dataset = [] if any("dataset" in argument for argument in arguments) else ["--himga-dataset=mini.json"]
    line = error_line(project.pytester.runpytest_inprocess(*dataset, "--himga-backend=null", *arguments))

    assert line.startswith(start.replace("{path}", str(project.path)))
    assert not (project.path / ".himga").exists()


@pytest.mark.parametrize(
    ("ini", "env", "start"),
    [
        ("", {"HIMGA_TOP_K": "ten"}, "HIMGA_TOP_K=ten is not a whole number from 1"),
        ("himga_top_k = ten\n", {}, "himga_top_k = ten is not a whole number from 1"),
        ("", {"HIMGA_OFFLINE": "maybe"}, "HIMGA_OFFLINE=maybe is neither yes nor no"),
        ("himga_offline = x\n", {}, "himga_offline = x is neither yes nor no"),
        ("himga_allow = all\n", {}, "himga_allow = all is unknown; known: judge, unverified"),
        ("", {"HIMGA_ITEMS": "maybe"}, "HIMGA_ITEMS=maybe is unknown; known: off, on"),
        ("himga_gate = scor\n", {}, "himga_gate = scor is unknown; did you mean score?"),
        ("", {"HIMGA_BACKEND_OPTION": "depth"}, "HIMGA_BACKEND_OPTION=depth is not KEY=VALUE"),
    ],
)
def test_an_error_names_the_place_where_the_value_was_written(settings, ini, env, start):
    with pytest.raises(HimgaError) as caught:
        settings(ini=ini, env=env)

    assert str(caught.value).startswith(start)


@SINCE_PYTEST_9
def test_a_value_of_the_wrong_toml_type_is_a_sentence_too(project):
    (project.path / "tox.ini").unlink()
    project.write("pyproject.toml", "[tool.pytest]\nhimga_top_k = 3\n")

    assert "himga_top_k" in error_line(project.run())


def test_an_option_that_does_not_exist_is_pytests_own_error(project):
    result = project.run("--himga-datset=demo")

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "--himga-datset" in result.stderr.str()


@pytest.mark.parametrize("workers", [[], ["-n2"]])
def test_a_bad_value_is_said_once_with_workers_too(project, workers):
    result = project.run_apart(*workers, "--himga-top-k=ten")

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert (result.stdout.str() + result.stderr.str()).count("--himga-top-k=ten is not a whole number") == 1
