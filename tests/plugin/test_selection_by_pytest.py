"""Pytest's own ways to choose tests: they work on questions as on any other test."""

from __future__ import annotations

import re

import pytest

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
ALL = GARDEN + HARBOUR
#: The one that bm25 misses.
WRONG = HARBOUR[3]

#: A memory that finds everything but what the file ``forgets`` names.
FORGETFUL = """
from pathlib import Path
from pytest_himga import Recalled

class Memory:
    deterministic = True
    def __init__(self):
        self.turns = []
        self.forgets = Path("forgets").read_text(encoding="utf-8").split()
    def reset(self):
        self.turns.clear()
    def ingest(self, message):
        self.turns.append(Recalled(message.content, turn_ids=[message.turn_id]))
    def retrieve(self, query):
        words = query.lower().rstrip("?").split()
        return [] if set(self.forgets) & set(words) else self.turns
"""


@pytest.fixture
def project(project):
    """The shared project, without the plugins that no story here is about."""
    project.pytester.makeini(INI)
    return project


@pytest.fixture
def forgetful(project):
    """A project whose memory forgets questions that hold one of the words that are given."""
    project.write("mem.py", FORGETFUL)

    def forget(*words):
        project.write("forgets", " ".join(words))
        return project

    return forget


def listed(result: pytest.RunResult) -> list[str]:
    """The ids that ``--co -q`` printed."""
    return [line for line in result.outlines if "::" in line and not line.startswith("ERROR")]


def ran(result: pytest.RunResult) -> list[str]:
    """The ids in the order in which ``-v`` printed their outcomes."""
    outcome = re.compile(r"^(\S+::\S+) (?:PASSED|FAILED|SKIPPED|MISSED)")
    return [match[1] for line in result.outlines if (match := outcome.match(line))]


# -- keywords and marks ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("temporal", [GARDEN[3]]),
        ("single_hop", [GARDEN[0], GARDEN[1], HARBOUR[0], HARBOUR[1], HARBOUR[3]]),
        ("adversarial or open_domain", [GARDEN[4], HARBOUR[2]]),
        ("garden", GARDEN),
        ("mini", ALL),
        ("harbour and not single_hop", [HARBOUR[2]]),
        ("hedgehog", [GARDEN[1]]),
        ("himga", ALL),
        ("not mini", ["test_user.py::test_own"]),
    ],
)
def test_k_matches_type_sample_dataset_and_name(project, expression, expected):
    project.write("test_user.py", "def test_own():\n    pass\n")

    assert listed(project.run("--co", "-q", "-k", expression)) == expected


def test_k_matches_a_dataset_by_the_name_that_it_was_given(project):
    project.write_data("other", [])
    result = project.run("--co", "-q", "-k", "second", data="first=mini.json,second=mini.json")

    assert listed(result) == [nodeid.replace("/mini/", "/second/") for nodeid in ALL]


@pytest.mark.parametrize(
    ("expression", "expected"), [("himga", ALL), ("not himga", ["test_user.py::test_own"])]
)
def test_the_mark_tells_questions_from_other_tests(project, expression, expected):
    project.write("test_user.py", "def test_own():\n    pass\n")

    assert listed(project.run("--co", "-q", "--strict-markers", "-m", expression)) == expected


def test_deselect_takes_an_id_or_a_sample(project):
    assert listed(project.run("--co", "-q", f"--deselect={GARDEN[2]}")) == [
        nodeid for nodeid in ALL if nodeid != GARDEN[2]
    ]
    assert listed(project.run("--co", "-q", "--deselect=himga/mini/garden")) == HARBOUR


@pytest.mark.parametrize(
    "options", [["-k", "garden"], ["-m", "himga", "-k", "temporal"], [f"--deselect={WRONG}"]]
)
def test_a_selection_that_passes_is_green_and_said_to_be_partial(project, options):
    result = project.run(*options)

    assert result.ret == 0
    assert "note        only " in result.stdout.str()
    assert "9 selected questions were run" in result.stdout.str()


def test_nothing_selected_is_pytests_own_status(project):
    result = project.run("-k", "no_such_word")

    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED
    result.stdout.fnmatch_lines(["*9 deselected in *"])


# -- last failed and friends -------------------------------------------------------------------------


def test_lf_runs_the_failed_questions_alone(forgetful):
    project = forgetful("hedgehog", "repaint")
    assert project.run(backend="mem:Memory").ret == 1

    again = project.run("-v", "--lf", backend="mem:Memory")
    assert ran(again) == [GARDEN[1], HARBOUR[1]]
    assert again.ret == 1

    forgetful("repaint")
    assert ran(project.run("-v", "--lf", backend="mem:Memory")) == [GARDEN[1], HARBOUR[1]]
    assert ran(project.run("-v", "--lf", backend="mem:Memory")) == [HARBOUR[1]]


@pytest.mark.parametrize("folder", ["", "tests/"])
def test_lf_keeps_a_failed_question_when_ordinary_tests_failed_too(project, folder):
    project.write(f"{folder}test_bad.py", "def test_bad():\n    assert False\n")
    project.write(f"{folder}test_worse.py", "def test_worse():\n    assert False\ndef test_ok():\n    pass\n")
    project.write(f"{folder}test_good.py", "def test_good():\n    pass\n")
    project.run().assert_outcomes(passed=8, failed=3, skipped=2)

    again = project.run("--co", "-q", "--lf")

    assert listed(again) == [
        f"{folder}test_bad.py::test_bad",
        f"{folder}test_worse.py::test_worse",
        WRONG,
    ]


def test_lf_with_a_question_alone_leaves_ordinary_tests_out(project):
    project.write("test_good.py", "def test_good():\n    pass\n")
    project.run().assert_outcomes(passed=7, failed=1, skipped=2)

    assert ran(project.run("-v", "--lf")) == [WRONG]


def test_a_missed_question_is_in_nobodys_last_failed(project):
    project.run("--himga-min-score=0.1").assert_outcomes(passed=7, skipped=2)

    # nothing failed, so all run
    assert listed(project.run("--co", "-q", "--lf")) == ALL


def test_a_failed_gate_is_in_last_failed_and_does_no_harm(project):
    failed = project.run("--himga-min-score=0.99")
    assert failed.ret == 1
    failed.stdout.fnmatch_lines(["FAILED himga/mini::gate - *"])

    again = project.run("--himga-min-score=0.99", "--lf")

    # the gate's id is no item, so pytest finds nothing of it to select and runs all
    assert again.ret == 1
    again.stdout.fnmatch_lines(["FAILED himga/mini::gate - *"])


def test_ff_brings_the_sample_with_the_failure_to_the_front_and_keeps_it_whole(project):
    project.run()

    assert ran(project.run("-v", "--ff")) == [WRONG, *HARBOUR[:3], *GARDEN]


def test_nf_runs_everything(project):
    project.run(GARDEN[0])

    assert sorted(ran(project.run("-v", "--nf"))) == sorted(ALL)


def test_sw_stops_at_the_failure_and_goes_on_from_there(forgetful):
    project = forgetful("colour", "ferry")

    first = project.run("-v", "--sw", backend="mem:Memory")
    assert ran(first) == GARDEN[:3]
    assert first.ret != 0

    forgetful("ferry")
    second = project.run("-v", "--sw", backend="mem:Memory")
    assert ran(second) == [*GARDEN[2:], HARBOUR[0]]

    forgetful()
    third = project.run("-v", "--sw", backend="mem:Memory")
    assert ran(third) == HARBOUR
    assert third.ret == 0


# -- stopping early ----------------------------------------------------------------------------------


@pytest.mark.parametrize("option", ["-x", "--maxfail=1"])
def test_x_stops_at_the_first_wrong_question(forgetful, option):
    project = forgetful("hedgehog", "ferry")

    result = project.run("-v", option, backend="mem:Memory")

    assert ran(result) == GARDEN[:2]
    # a wrong answer is proof enough, whatever was not run
    assert result.ret == 1
    outcomes = {record["id"]: record["outcome"] for record in project.results()}
    assert list(outcomes) == ALL
    assert set(outcomes.values()) == {"passed", "failed", "missing"}


def test_maxfail_counts_questions(forgetful):
    project = forgetful("hedgehog", "ferry", "repaint")

    assert ran(project.run("-v", "--maxfail=2", backend="mem:Memory")) == [*GARDEN, HARBOUR[0]]


def test_x_does_not_stop_at_a_miss(forgetful):
    project = forgetful("hedgehog", "ferry")

    result = project.run("-v", "-x", "--himga-min-score=0.1", backend="mem:Memory")

    assert ran(result)[: len(ALL)] == ALL
    assert result.ret == 0


@pytest.mark.slow
def test_the_choice_is_the_same_with_workers(project):
    result = project.run_apart("-n2", "-v", "himga/mini/garden", HARBOUR[1])

    ids = re.findall(r"(?:PASSED|FAILED|SKIPPED) (himga/\S+)", result.stdout.str())
    assert sorted(set(ids)) == sorted([*GARDEN, HARBOUR[1]])
    result.assert_outcomes(passed=5, skipped=1)
    assert result.ret == 0
