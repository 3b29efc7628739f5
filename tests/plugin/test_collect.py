"""Node ids: which there are, in which order, and that whatever was printed can be given back."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

#: Plugins that many have installed and no story here is about; without them a run takes half the time.
OTHERS = ("asyncio", "anyio", "cov", "syrupy", "rerunfailures", "hypothesispytest", "timeout")
INI = f"[pytest]\npythonpath = .\naddopts = {' '.join(f'-pno:{name}' for name in OTHERS)}\n"

GARDEN = [
    "himga/mini/garden::how-many-tulips-did-ada-plant-0767e5",
    "himga/mini/garden::what-is-the-name-of-ben-s-hedgehog-83804f",
    "himga/mini/garden::which-colour-were-the-tulips-beside-the--0cdbc0",
    "himga/mini/garden::when-did-the-tulips-come-up-9dec4a",
    "himga/mini/garden::what-is-ada-s-cat-called-5fcadd",
]
HARBOUR = [
    "himga/mini/harbour::which-ferry-sails-on-thursdays-6fd671",
    "himga/mini/harbour::what-did-dan-repaint-6a98d2",
    "himga/mini/harbour::would-dan-make-a-good-sailor-4faf1d",
    "himga/mini/harbour::what-hue-will-the-entrance-of-the-beacon-4ca38e",
]
PASSING = GARDEN[0]
#: What an id may be made of; a pytest plugin or a shell trips over anything else.
SAFE_ID = re.compile(r"himga/[A-Za-z0-9_-]{1,60}/[A-Za-z0-9_-]{1,60}::[a-z0-9-]{8,47}")


@pytest.fixture
def project(project):
    """The shared project, without the plugins that no story here is about."""
    project.pytester.makeini(INI)
    return project


def collected(result: pytest.RunResult) -> list[str]:
    """The ids that ``--co -q`` printed, those of the user's own tests too."""
    return [line for line in result.outlines if "::" in line and not line.startswith(("ERROR", " "))]


def ran(result: pytest.RunResult) -> list[str]:
    """The ids in front of an outcome that ``-v`` or ``-vv`` printed, without a sub-folder's ``../``."""
    outcome = re.compile(
        r"^(?:\[gw\d+\] \[ *\d+%\] [A-Z]+ )?(?:\.\./)*(\S+::\S+)(?: (?:PASSED|FAILED|SKIPPED|MISSED).*)?\s*$"
    )
    matches = [
        outcome.match(line) for line in result.outlines if not line.startswith(("FAILED", "himga:", " "))
    ]
    return [match[1] for match in matches if match]


def asking(texts: Sequence[str], sample: str = "s") -> list[dict]:
    """One sample that is asked ``texts``, all about its one turn."""
    turn = {"speaker": "Ada", "dia_id": "D1:1", "text": "I planted twelve tulips beside the pump."}
    return [
        {
            "sample_id": sample,
            "conversation": {
                "speaker_a": "Ada",
                "speaker_b": "Ben",
                "session_1_date_time": "9:15 am on 3 March, 2024",
                "session_1": [turn],
            },
            "qa": [
                {"question": text, "answer": "twelve", "evidence": ["D1:1"], "category": 4} for text in texts
            ],
        }
    ]


# -- which ids there are -----------------------------------------------------------------------------


def test_collect_only_prints_every_id_in_the_order_of_the_file(project):
    result = project.run("--co", "-q")

    assert result.ret == 0
    assert collected(result) == GARDEN + HARBOUR
    result.stdout.fnmatch_lines(["9 tests collected in *"])
    assert not result.stderr.str()


def test_several_datasets_come_in_the_order_in_which_they_were_asked_for(project):
    project.write_data("other", asking(["Who planted what?"]))

    result = project.run("--co", "-q", data="other.json,mini.json")

    assert collected(result) == ["himga/other/s::who-planted-what-31eec3", *GARDEN, *HARBOUR]


def test_the_users_own_tests_run_before_the_questions(project):
    project.write("test_user.py", "def test_own():\n    pass\n")

    assert collected(project.run("--co", "-q")) == ["test_user.py::test_own", *GARDEN, *HARBOUR]


def test_a_renamed_dataset_is_called_so_in_ids(project):
    result = project.run("--co", "-q", data="small=mini.json")

    assert collected(result)[0] == "himga/small/garden::how-many-tulips-did-ada-plant-0767e5"


def test_the_tree_of_collect_only_shows_samples_and_questions(project):
    result = project.run("--co")

    result.stdout.fnmatch_lines(
        [
            "*<SampleModule himga/mini/garden>",
            "*<QuestionItem how-many-tulips-did-ada-plant-0767e5>",
            "*<SampleModule himga/mini/harbour>",
        ]
    )


# -- ids that were printed can be given back ---------------------------------------------------------


@pytest.mark.parametrize("nodeid", [GARDEN[2], GARDEN[4], HARBOUR[0]])
def test_any_id_runs_exactly_that_question(project, nodeid):
    assert collected(project.run("--co", "-q", nodeid)) == [nodeid]


@pytest.mark.parametrize(
    ("argument", "expected"),
    [
        ("himga/mini", GARDEN + HARBOUR),
        ("himga/mini/", GARDEN + HARBOUR),
        ("himga/mini/garden", GARDEN),
        ("himga/mini/harbour/", HARBOUR),
        ("himga/mini::gate", GARDEN + HARBOUR),
        ("../../himga/mini/harbour", HARBOUR),
        ("./himga/mini/harbour", HARBOUR),
        (f"../{PASSING}", [PASSING]),
    ],
)
def test_a_prefix_of_an_id_runs_all_that_it_names(project, argument, expected):
    assert collected(project.run("--co", "-q", argument)) == expected


def test_several_ids_run_together_once_each_in_the_order_of_the_file(project):
    result = project.run("--co", "-q", HARBOUR[1], GARDEN[3], "himga/mini/harbour", HARBOUR[1])

    assert collected(result) == [GARDEN[3], *HARBOUR]


def test_one_dataset_of_two_can_be_named(project):
    project.write_data("other", asking(["Who planted what?"]))

    result = project.run("--co", "-q", "himga/other", data="mini.json,other.json")

    assert collected(result) == ["himga/other/s::who-planted-what-31eec3"]


@pytest.mark.parametrize("verbosity", ["-v", "-vv"])
def test_verbose_output_prints_the_ids_themselves(project, verbosity):
    assert ran(project.run(verbosity)) == GARDEN + HARBOUR


@pytest.mark.parametrize("verbosity", ["-v", "-vv"])
def test_from_a_sub_folder_the_printed_ids_can_be_given_back(project, monkeypatch, verbosity):
    (project.path / "tests" / "deep").mkdir(parents=True)
    monkeypatch.chdir(project.path / "tests" / "deep")

    result = project.run(verbosity, "../..", data="../../mini.json")
    printed = [word for line in result.outlines for word in line.split() if word.startswith("../../himga/")]
    again = project.run("-v", printed[0], data="../../mini.json")

    assert list(dict.fromkeys(word.removeprefix("../../") for word in printed)) == GARDEN + HARBOUR
    assert ran(again) == [PASSING]


def test_a_sub_folder_takes_the_ids_of_the_root_folder_too(project, monkeypatch):
    (project.path / "tests").mkdir()
    monkeypatch.chdir(project.path / "tests")

    assert ran(project.run("-v", PASSING, data="../mini.json")) == [PASSING]


def test_from_the_folder_above_the_printed_ids_can_be_given_back(project, monkeypatch):
    name = project.path.name
    monkeypatch.chdir(project.path.parent)
    options = ["-c", f"{name}/tox.ini"]

    printed = project.run("-v", *options, name, data=f"{name}/mini.json").outlines
    ours = [line.split()[0] for line in printed if line.startswith(f"{name}/himga/") and "PASSED" in line]
    again = project.run("-v", *options, ours[0], data=f"{name}/mini.json")

    assert [line.split()[0] for line in again.outlines if "PASSED" in line] == [f"{name}/{PASSING}"]


def test_the_short_summary_prints_ids_that_can_be_given_back(project):
    line = next(line for line in project.run("-rf").outlines if line.startswith("FAILED "))
    again = project.run("-v", line.split()[1])

    assert ran(again) == [HARBOUR[3]]
    assert again.ret == 1


def test_an_id_given_back_brings_the_same_verdict(project):
    again = project.run(HARBOUR[3])

    again.stdout.fnmatch_lines(
        ["wrong (evidence): 0 of 1 evidence turn in the context", "*1 failed in *"], consecutive=False
    )
    assert again.ret == 1
    assert [record["id"] for record in project.results()] == [HARBOUR[3]]


def test_junit_names_sample_and_question(project):
    project.run("--junitxml=junit.xml")

    text = (project.path / "junit.xml").read_text(encoding="utf-8")
    assert 'classname="himga.mini.garden" name="how-many-tulips-did-ada-plant-0767e5"' in text


# -- ids that match nothing --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("argument", "nearest"),
    [
        ("himga/mini/gardn", "did you mean himga/mini/garden?"),
        ("himga/mni", "did you mean himga/mini?"),
        (
            "himga/mini/harbour::what-did-dan-repant-6a98d2",
            "did you mean himga/mini/harbour::what-did-dan-repaint-6a98d2?",
        ),
        ("himga/mini/garden::what-did-dan-repaint-6a98d2", ""),
    ],
)
def test_an_id_that_matches_nothing_is_a_usage_error_with_the_nearest(project, argument, nearest):
    result = project.run(argument)

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    lines = [line for line in result.errlines if line]
    assert len(lines) == 1
    assert lines[0].startswith(f"ERROR: {argument}: no such question is selected; did you mean himga/mini")
    assert lines[0].endswith(nearest)
    assert not (project.path / ".himga").exists()


def test_an_id_outside_himgas_own_selection_is_a_usage_error(project):
    result = project.run("--himga-samples=garden", HARBOUR[0])

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: {HARBOUR[0]}: no such question is selected; *"])


def test_an_argument_too_long_for_a_file_name_is_a_usage_error_too(project):
    for argument in ("himga/mini/" + "a" * 300, "a" * 300):
        result = project.run(argument)

        assert result.ret == pytest.ExitCode.USAGE_ERROR
        assert "Traceback" not in result.stderr.str() + result.stdout.str()


def test_one_wrong_id_among_right_ones_is_still_an_error(project):
    result = project.run(PASSING, "himga/mini/nowhere")

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: himga/mini/nowhere: no such question is selected; *"])


def test_a_folder_called_himga_is_the_users_own(project):
    project.write("himga/test_mine.py", "def test_mine():\n    pass\n")

    assert collected(project.run("--co", "-q", "himga/test_mine.py")) == ["himga/test_mine.py::test_mine"]
    assert collected(project.run("--co", "-q", "himga/mini/garden")) == GARDEN


# -- positional arguments ----------------------------------------------------------------------------


@pytest.fixture
def two_files(project):
    project.write("tests/test_one.py", "def test_one():\n    pass\n")
    project.write("tests/test_two.py", "def test_two():\n    pass\n")
    return project


@pytest.mark.parametrize(
    ("arguments", "own", "questions"),
    [
        ([], ["one", "two"], True),
        (["."], ["one", "two"], True),
        (["tests"], ["one", "two"], True),
        (["tests/test_one.py"], ["one"], False),
        (["tests/test_one.py::test_one"], ["one"], False),
        (["tests/test_one.py", "tests/test_two.py::test_two"], ["one", "two"], False),
        (["tests/test_one.py", PASSING], ["one"], [PASSING]),
        ([PASSING, "tests/test_two.py::test_two"], ["two"], [PASSING]),
        (["tests", PASSING], ["one", "two"], [PASSING]),
        ([PASSING], [], [PASSING]),
    ],
)
def test_positional_arguments_decide_what_runs(two_files, arguments, own, questions):
    result = two_files.run("--co", "-q", *arguments)

    tests = [f"tests/test_{name}.py::test_{name}" for name in own]
    expected = questions if isinstance(questions, list) else GARDEN + HARBOUR if questions else []
    assert collected(result) == tests + expected
    assert result.ret == 0


def test_an_absolute_path_to_a_file_is_a_file(two_files):
    result = two_files.run("--co", "-q", str(two_files.path / "tests" / "test_one.py"))

    assert collected(result) == ["tests/test_one.py::test_one"]


def test_with_files_only_the_header_says_that_there_are_no_questions(two_files):
    result = two_files.run("tests/test_one.py")

    result.stdout.fnmatch_lines(["himga: mini: 9 questions in 2 samples; no built-in items, sha256 *"])
    result.stdout.fnmatch_lines(["*1 passed in *"])
    assert result.ret == 0


def test_items_off_leaves_the_users_own_tests(two_files):
    result = two_files.run("--co", "-q", "--himga-items=off")

    assert collected(result) == ["tests/test_one.py::test_one", "tests/test_two.py::test_two"]


def test_where_only_ids_are_named_no_test_of_the_user_is_imported(project):
    project.write("test_broken.py", "raise RuntimeError('should not be here')\n")
    project.write("tests/test_broken_too.py", "raise RuntimeError('should not be here')\n")

    result = project.run(PASSING)

    result.assert_outcomes(passed=1)
    assert result.ret == 0
    assert "should not be here" not in result.stdout.str()


# -- layouts -----------------------------------------------------------------------------------------

BACKEND_FIXTURE = """
import pytest
from pytest_himga.memory.bm25 import BM25Memory

@pytest.fixture(scope="module")
def mymem():
    return BM25Memory()
"""


@pytest.mark.parametrize(
    ("conftest", "testpaths", "arguments"),
    [
        ("conftest.py", "", []),
        ("conftest.py", "", ["tests"]),
        ("conftest.py", "", [PASSING]),
        ("conftest.py", "testpaths = tests", []),
        ("conftest.py", "testpaths = tests", [PASSING]),
        ("tests/conftest.py", "", ["tests"]),
        ("tests/conftest.py", "", ["tests", PASSING]),
        ("tests/conftest.py", "testpaths = tests", []),
        ("tests/conftest.py", "testpaths = tests", [PASSING]),
    ],
)
def test_a_conftest_is_heard_in_every_layout(project, conftest, testpaths, arguments):
    project.write("conftest.py", "")
    project.write("tests/test_user.py", "def test_own():\n    pass\n")
    project.write(conftest, BACKEND_FIXTURE)
    project.pytester.makeini(f"{INI}{testpaths}\n")

    result = project.run(*arguments, backend="mymem")

    own = 0 if arguments == [PASSING] else 1
    if PASSING in arguments:
        result.assert_outcomes(passed=1 + own)
    else:
        result.assert_outcomes(passed=6 + own, failed=1, skipped=2)


@pytest.mark.parametrize("testpaths", ["tests", "te*", "tests/unit tests"])
def test_ids_find_a_conftest_from_a_sub_folder_and_with_any_testpaths(project, monkeypatch, testpaths):
    project.write("tests/conftest.py", BACKEND_FIXTURE)
    project.write("tests/unit/test_user.py", "raise RuntimeError('should not be here')\n")
    project.pytester.makeini(f"{INI}testpaths = {testpaths}\n")

    if testpaths != "tests/unit tests":  # with two folders, none is the place of the items
        project.run(PASSING, backend="mymem").assert_outcomes(passed=1)
    monkeypatch.chdir(project.path / "tests")
    project.run(PASSING, data="../mini.json", backend="mymem").assert_outcomes(passed=1)


def test_a_fixture_of_module_scope_lives_for_one_sample(project):
    project.write(
        "conftest.py",
        """
import pytest

@pytest.fixture(scope="module", autouse=True)
def around(request):
    print("BEGIN", request.node.nodeid)
    yield
    print("END", request.node.nodeid)
""",
    )

    result = project.run("-s")

    # with -s a print may stand behind a progress letter
    told = re.findall(r"(BEGIN|END) (\S+)", result.stdout.str())
    assert told == [
        ("BEGIN", "himga/mini/garden"),
        ("END", "himga/mini/garden"),
        ("BEGIN", "himga/mini/harbour"),
        ("END", "himga/mini/harbour"),
    ]


def test_a_conftest_can_mark_a_question(project):
    project.write(
        "conftest.py",
        """
import pytest

def pytest_collection_modifyitems(items):
    for item in items:
        if item.name.startswith("what-hue"):
            item.add_marker(pytest.mark.xfail(reason="known gap"))
        if item.name.startswith("how-many"):
            item.add_marker(pytest.mark.skip(reason="under repair"))
""",
    )

    result = project.run("-rxs", GARDEN[0], GARDEN[1], HARBOUR[3])

    result.assert_outcomes(passed=1, xfailed=1, skipped=1)
    result.stdout.fnmatch_lines_random(
        [f"XFAIL {HARBOUR[3]} - known gap", "SKIPPED [[]1[]] himga/mini/garden*: under repair"]
    )
    # what was skipped was not measured
    assert result.ret == 6
    assert [record["reason"] for record in project.results()] == [
        "its setup was skipped: under repair",
        "1 of 1 evidence turn in the context",
        "0 of 1 evidence turn in the context",
    ]


# -- hostile data ------------------------------------------------------------------------------------

HOSTILE = {
    "very long": "why " * 1250,
    "not ascii": "Où était l'été passé à Zürich?",
    "brackets": "What about [this] or [that]?",
    "colons": "Is it a::b::c?",
    "at sign": "Who is @group@gw0?",
    "newline": "First line\nsecond line\r\n\tthird",
    "emoji only": "🌷🌷🌷",
    "leading dash": "--collect-only -k nothing",
    "slashes and dots": "../../etc/passwd ..\\..",
    "control characters": "nul \x00 and \x1b[31m escape",
    "lone surrogate": "half \ud83d a tulip",
    "percent": "100%s of %(name)d {braces}?",
    "quotes": "\"double\" 'single' `back` $HOME ; rm",
}


def test_hostile_questions_get_short_plain_ids_that_are_all_different(project):
    project.write_data("hostile", asking([*HOSTILE.values(), *HOSTILE.values()]))

    found = collected(project.run("--co", "-q", data="hostile.json"))

    assert len(found) == len(set(found)) == 2 * len(HOSTILE)
    assert [nodeid for nodeid in found if not SAFE_ID.fullmatch(nodeid)] == []


def test_each_hostile_question_runs_alone_by_its_id(project):
    project.write_data("hostile", asking(list(HOSTILE.values())))
    found = collected(project.run("--co", "-q", data="hostile.json"))

    for kind, nodeid in zip(HOSTILE, found, strict=True):
        result = project.run("-v", nodeid, data="hostile.json", backend="full-context")

        assert (kind, ran(result)) == (kind, [nodeid])
        assert (kind, result.ret) == (kind, 0)


def test_hostile_questions_pass_through_workers_and_junit(project):
    project.write_data("hostile", asking(list(HOSTILE.values())))

    result = project.run_apart("-n2", "--junitxml=junit.xml", data="hostile.json", backend="null")

    result.assert_outcomes(failed=len(HOSTILE))
    assert result.ret == 1
    assert len(ET.parse(project.path / "junit.xml").findall(".//testcase")) == len(HOSTILE)
    assert len(project.results()) == len(HOSTILE)


def test_a_sample_id_of_300_characters_with_slashes_and_dots_is_a_short_name(project):
    long = "../conv 1/../" + "x/" * 143 + "y"
    assert len(long) == 300
    project.write_data("odd", asking(["How many tulips?"], long) + asking(["How many tulips?"], f"{long}z"))

    found = collected(project.run("--co", "-q", data="odd.json"))

    assert len(set(found)) == 2
    assert all(SAFE_ID.fullmatch(nodeid) for nodeid in found)
    result = project.run("-v", found[1], data="odd.json", backend="full-context")
    assert ran(result) == [found[1]]
    result.assert_outcomes(passed=1)
    assert (project.path / ".himga").is_dir()
    assert project.results()[0]["sample"] == found[1].split("/")[2].split("::")[0]


def test_a_long_sample_id_can_be_selected_as_it_stands_in_the_file(project):
    project.write_data("odd", asking(["How many tulips?"], "a/b.c") + asking(["Who?"], "d"))

    found = collected(project.run("--co", "-q", "--himga-samples=a/b.c", data="odd.json"))

    assert found == ["himga/odd/a-b-c::how-many-tulips-9de322"]


# -- the same ids everywhere -------------------------------------------------------------------------


@pytest.mark.slow
def test_five_processes_with_random_hash_seeds_and_two_workers_agree(project):
    options = [
        "--himga-dataset=demo-locomo",
        "--himga-backend=null",
        "--co",
        "-q",
        "-p",
        "pytest_himga.plugin",
    ]
    alone = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    runs = [
        subprocess.Popen(
            [sys.executable, "-m", "pytest", *options],
            cwd=project.path,
            env={**alone, "PYTHONHASHSEED": seed},
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )
        for seed in ("random", "0", "1", "42", "4294967295")
    ]
    printed = [run.communicate()[0] for run in runs]
    parallel = project.run_apart("-n2", "-v", data="demo-locomo", backend="null")

    assert [run.returncode for run in runs] == [0] * 5
    assert len({re.sub(r"in \d.*s", "", text) for text in printed}) == 1
    ids = [line for line in printed[0].splitlines() if line.startswith("himga/demo-locomo/")]
    assert len(ids) == 66
    assert sorted(set(ran(parallel))) == sorted(ids)


def test_the_real_locomo_file_has_1986_unique_ids(project, real_locomo):
    found = collected(project.run("--co", "-q", data=f"locomo={real_locomo}"))

    assert len(found) == len(set(found)) == 1986
    assert [nodeid for nodeid in found if not SAFE_ID.fullmatch(nodeid)] == []
    samples = list(dict.fromkeys(nodeid.split("::")[0] for nodeid in found))
    names = [record["sample_id"] for record in json.loads(_text(real_locomo))]
    assert samples == [f"himga/locomo/{name}" for name in names]


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def test_the_bare_word_himga_is_every_question(project):
    result = project.run("--co", "-q", "himga", backend="null")

    result.stdout.fnmatch_lines(["9 tests collected in *"])


def test_an_id_with_the_folder_it_was_printed_with_runs_alone(project):
    """Called from above its root, pytest takes a lone id for no file and so the folder above for the root."""
    (project.path / "below").mkdir()

    result = project.run("--co", "-q", "below/himga/mini/harbour", backend="null")

    result.stdout.fnmatch_lines(["himga/mini/harbour::*", "4 tests collected in *"])
    assert project.run("below/himga/other/harbour", backend="null").ret == pytest.ExitCode.USAGE_ERROR
    assert project.run("nowhere/himga/mini/harbour", backend="null").ret == pytest.ExitCode.USAGE_ERROR
