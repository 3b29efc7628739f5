"""The run's exit status: 1 for a proven failure, 6 for what was not measured, pytest's own otherwise."""

from __future__ import annotations

import pytest

NOT_MEASURED = "himga: not measured (exit status 6): "
OFFLINE = "retrieve() raised ConnectionError: the store is offline"


def last(result: pytest.RunResult) -> str:
    """The very last line of the output."""
    return result.outlines[-1]


@pytest.fixture
def with_own_tests(story):
    """A project that also has two ordinary tests, one of which fails."""
    story.project.write(
        "test_own.py", "def test_right():\n    pass\n\n\ndef test_wrong():\n    assert 1 == 2\n"
    )
    return story


# -- 0, 1 and 6 -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("actions", "args", "status"),
    [
        # all is well
        ({}, [], 0),
        ({}, ["--himga-min-score=1"], 0),
        # one is wrong
        ({"ferry": "miss"}, [], 1),
        ({"ferry": "miss"}, ["--himga-gate=none"], 0),
        ({"ferry": "miss"}, ["--himga-min-score=0.85"], 0),
        ({"ferry": "miss"}, ["--himga-min-score=0.86"], 1),
        ({"ferry": "miss"}, ["--himga-gate=verdict,score", "--himga-min-score=0.85"], 1),
        # one is unscored
        ({"ferry": "raise"}, [], 6),
        ({"ferry": "raise"}, ["--himga-gate=none"], 6),
        ({"ferry": "raise"}, ["--himga-min-score=0.5"], 6),
        ({"ferry": "raise"}, ["--himga-max-unscored=1"], 0),
        ({"ferry": "raise"}, ["--himga-max-unscored=15%"], 0),
        ({"ferry": "raise"}, ["--himga-max-unscored=14%"], 6),
        ({"ferry": "raise"}, ["--himga-max-unscored=1", "--himga-min-score=1"], 0),
        # one is unscored and one is wrong: 1 if that is proof, 6 if it is not
        ({"ferry": "raise", "hedgehog": "miss"}, [], 1),
        ({"ferry": "raise", "hedgehog": "miss"}, ["--himga-gate=none"], 6),
        ({"ferry": "raise", "hedgehog": "miss"}, ["--himga-min-score=0.86"], 1),
        ({"ferry": "raise", "hedgehog": "miss"}, ["--himga-min-score=0.85"], 6),
        ({"ferry": "raise", "hedgehog": "miss"}, ["--himga-gate=verdict,score", "--himga-min-score=0.5"], 1),
        ({"ferry": "raise", "hedgehog": "miss"}, ["--himga-max-unscored=1"], 1),
        ({"ferry": "raise", "hedgehog": "miss"}, ["--himga-max-unscored=1", "--himga-min-score=0.83"], 0),
        ({"ferry": "raise", "hedgehog": "miss"}, ["--himga-max-unscored=1", "--himga-min-score=0.84"], 1),
    ],
)
def test_what_was_measured_decides(story, actions, args, status):
    story.memory_does(**actions)
    result = story.run(*args)
    assert result.ret == status
    assert last(result).startswith(NOT_MEASURED) is (status == 6)
    assert story.project.run_json()["exit"] == status


@pytest.mark.parametrize(
    ("actions", "args"),
    [
        ({}, []),
        ({}, ["--himga-min-score=0.5"]),
        ({"ferry": "raise"}, []),
        ({"ferry": "raise"}, ["--himga-min-score=0.5"]),
        ({"ferry": "raise"}, ["--himga-max-unscored=5"]),
    ],
)
def test_an_ordinary_test_that_fails_is_1_whatever_is_unscored(with_own_tests, actions, args):
    with_own_tests.memory_does(**actions)
    result = with_own_tests.run(*args)
    assert result.ret == 1
    assert not last(result).startswith("himga:")


def test_ordinary_tests_that_pass_do_not_hide_what_is_unscored(with_own_tests):
    with_own_tests.memory_does(ferry="raise")
    result = with_own_tests.run("--deselect", "test_own.py::test_wrong")
    assert result.ret == 6
    assert last(result) == (
        f"{NOT_MEASURED}1 question unscored ({OFFLINE} (31 letters asked)): {with_own_tests.FERRY}"
    )


def test_the_last_line_names_three_questions_and_counts_the_rest(story):
    story.memory_does(**dict.fromkeys(("tulips", "hedgehog", "ferry"), "raise"))
    result = story.run()
    assert last(result) == (
        f"{NOT_MEASURED}5 questions unscored: {story.TULIPS}, {story.HEDGEHOG}, {story.COLOUR} and 2 more"
    )


def test_an_allowance_for_all_is_no_measurement(story):
    words = ("tulips", "hedgehog", "ferry", "repaint", "entrance", "cat", "sailor")
    story.memory_does(**dict.fromkeys(words, "raise"))
    result = story.run("--himga-max-unscored=100%")
    assert result.ret == 6
    assert last(result) == f"{NOT_MEASURED}every question is unscored, so nothing was measured"


@pytest.mark.parametrize("wrong", [True, False])
@pytest.mark.parametrize("flags", [["-q"], ["-qq", "--tb=no", "-rN"], ["--no-summary"], ["-v"]])
def test_flags_that_quieten_pytest_change_neither_status_nor_last_line(story, wrong, flags):
    story.memory_does(ferry="raise", **({"hedgehog": "miss"} if wrong else {}))
    result = story.run(*flags)
    assert result.ret == (1 if wrong else 6)
    assert last(result).startswith(NOT_MEASURED) is not wrong


# -- pytest's own -----------------------------------------------------------------------------------


def test_an_interrupt_is_2(story):
    story.memory_does(tulips="raise")
    story.project.write(
        "conftest.py",
        "def pytest_runtest_setup(item):\n    if 'ferry' in item.name:\n        raise KeyboardInterrupt\n",
    )
    result = story.run_apart("--himga-min-score=0.5")
    assert result.ret == 2
    assert "::gate" not in result.stdout.str()
    run = story.project.run_json()
    assert (run["exit"], run["gates"]) == (2, [])
    assert [r["outcome"] for r in story.project.results() if r["sample"] == "harbour"] == ["missing"] * 4


def test_an_internal_error_is_3(story):
    story.project.write(
        "conftest.py",
        "def pytest_runtest_logreport(report):\n    if 'ferry' in report.nodeid:\n        raise ValueError('ouch')\n",
    )
    result = story.run_apart()
    assert result.ret == 3
    result.stdout.fnmatch_lines(["INTERNALERROR*ValueError: ouch"])
    assert story.project.run_json()["exit"] == 3


@pytest.mark.parametrize("args", [["--himga-gate=veredict"], ["--no-such-flag"], ["no_such_folder"]])
def test_a_usage_error_is_4(story, args):
    assert story.run(*args).ret == 4
    assert not (story.path / ".himga").exists()


@pytest.mark.parametrize("args", [["-k", "nothing_is_called_so"], ["-k", "nothing", "--himga-min-score=0.5"]])
def test_nothing_left_is_5(story, args):
    result = story.run(*args)
    assert result.ret == 5
    assert "not measured (" not in result.stdout.str()


def test_a_status_that_somebody_else_chose_stands(story):
    story.memory_does(ferry="raise")
    story.project.write(
        "conftest.py",
        "import pytest\n\n@pytest.hookimpl(trylast=True)\ndef pytest_sessionfinish(session):\n"
        "    session.exitstatus = 42\n",
    )
    assert story.run().ret == 42


def test_a_failure_that_another_plugin_adds_at_the_end_is_1(story):
    story.memory_does(ferry="raise", hedgehog="raise")
    story.project.write(
        "conftest.py",
        "import pytest\n\n@pytest.hookimpl(trylast=True)\ndef pytest_sessionfinish(session):\n"
        "    session.exitstatus |= 1\n",
    )
    assert story.run("--himga-max-unscored=2").ret == 1


# -- runs that stop early ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("actions", "flags", "status", "not_run"),
    [
        ({"hedgehog": "miss"}, ["-x"], 1, 7),
        ({"hedgehog": "raise"}, ["-x"], 6, 7),
        ({"hedgehog": "raise", "colour": "miss"}, ["--maxfail=2"], 1, 6),
        ({"hedgehog": "raise", "colour": "raise"}, ["--maxfail=2", "--himga-min-score=0.9"], 6, 6),
    ],
)
def test_a_run_that_stops_early_has_no_gate_and_names_what_was_not_run(
    story, actions, flags, status, not_run
):
    story.memory_does(**actions)
    result = story.run(*flags)
    assert result.ret == status
    assert "::gate" not in result.stdout.str()
    text = " ".join(result.stdout.str().split())
    assert f"note {not_run} questions not run (the run stopped early): himga/mini/garden::" in text
    assert "hint " not in text
    assert [r["outcome"] for r in story.project.results()].count("missing") == not_run
    if status == 6:
        assert f"; {not_run} questions not run (the run stopped early): himga/mini/garden::" in last(result)


def test_questions_within_the_allowance_do_not_stop_a_run(story):
    story.memory_does(hedgehog="raise", colour="raise")
    result = story.run("-x", "--himga-max-unscored=2")
    assert result.ret == 0


# -- in company -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("actions", "status"),
    [({"ferry": "raise"}, 6), ({"ferry": "raise", "hedgehog": "miss"}, 1), ({}, 0)],
)
def test_other_plugins_that_look_at_the_exit_status_do_not_change_it(story, monkeypatch, actions, status):
    monkeypatch.delenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD")
    for name in ("syrupy", "pytest_cov", "pytest_rerunfailures"):
        pytest.importorskip(name)
    story.memory_does(**actions)
    story.project.pytester.makeini(
        "[pytest]\npythonpath = .\nasyncio_default_fixture_loop_scope = function\n"
    )
    story.project.write("test_own.py", "def test_snapshot(snapshot):\n    assert 1 == snapshot\n")
    story.project.run("--snapshot-update", "test_own.py", backend="mem:Memory")
    result = story.project.run(
        "--cov=mem", "--cov-report=", "--reruns=1", "-pno:hypothesispytest", backend="mem:Memory"
    )
    assert result.ret == status
    assert last(result).startswith(NOT_MEASURED) is (status == 6)
    assert len(story.project.results()) == 9


def test_too_little_coverage_is_a_failure_even_beside_unscored_questions(story):
    pytest.importorskip("pytest_cov")
    story.memory_does(ferry="raise")
    result = story.run("-p", "pytest_cov", "--cov=mem", "--cov-report=", "--cov-fail-under=100")
    assert result.ret == 1


def test_a_question_that_is_right_when_it_is_asked_again_is_right(story):
    pytest.importorskip("pytest_rerunfailures")
    story.project.write(
        "flaky.py",
        "from mem import Memory\n\nclass Flaky(Memory):\n    calls = 0\n\n    def retrieve(self, query):\n"
        "        Flaky.calls += 1\n        if Flaky.calls == 2:\n            raise TimeoutError('busy')\n"
        "        return super().retrieve(query)\n",
    )
    result = story.run("-p", "pytest_rerunfailures", "--reruns=1", backend="flaky:Flaky")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["*7 passed, 2 skipped, 1 rerun in*"])
    assert len(story.project.results()) == 9
    assert "unscored" not in story.verdicts().values()


def test_collect_only_is_0_and_leaves_nothing_behind(story):
    result = story.run("--co", "-q", "--himga-min-score=1")
    assert result.ret == 0
    assert not (story.path / ".himga").exists()
    assert "himga: " not in result.stdout.str()


# -- a gate that no question reached ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "status"),
    [
        (["--himga-min-score=0.5", "-k", "test_right"], 6),
        (["-k", "test_right"], 0),
        (["--himga-min-score=0.5", "-k", "no_such_word"], 5),
        (["--himga-min-score=0.5", "test_own.py::test_right"], 0),
    ],
)
def test_a_threshold_over_questions_that_were_all_left_out(with_own_tests, args, status):
    """Deselecting the benchmark does not pass its gate; naming only files leaves himga out altogether."""
    result = with_own_tests.run(*args)
    assert result.ret == status
    if status == 6:
        assert last(result) == (
            f"{NOT_MEASURED}himga/mini::gate: gate not evaluated: only 0 of 9 selected questions were run "
            "(-k, -m, ids, --lf, --deselect or --himga-items)"
        )
    quiet = "himga: no question was judged in this run, so its gate was not applied"
    assert (quiet in result.outlines) == ("test_own.py::test_right" in args)
