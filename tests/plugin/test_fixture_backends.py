"""A memory that a fixture of the user makes: for each sample, for the whole run, or as a factory."""

from __future__ import annotations

import pytest

#: Plugins that many have installed and no story here is about; without them a run takes half the time.
OTHERS = ("asyncio", "anyio", "cov", "syrupy", "rerunfailures", "hypothesispytest", "timeout")
INI = f"[pytest]\npythonpath = .\naddopts = {' '.join(f'-pno:{name}' for name in OTHERS)}\n"

PASSING = "himga/mini/garden::how-many-tulips-did-ada-plant-0767e5"

#: Writes down what happens to each instance; finds everything.
MEMORY = """
from pathlib import Path
from pytest_himga import Recalled

LOG = Path(__file__).with_name("log.txt")

def note(*words):
    with LOG.open("a", encoding="utf-8") as log:
        print(*words, file=log)

class Memory:
    deterministic = True
    def __init__(self):
        self.turns = []
        note("made")
    def reset(self):
        self.turns.clear()
        note("reset")
    def ingest(self, message):
        if not self.turns:
            note("fed", message.content.split()[1])
        self.turns.append(Recalled(message.content, turn_ids=[message.turn_id]))
    def retrieve(self, query):
        return self.turns
    def close(self):
        note("closed")

class AsyncMemory:
    deterministic = True
    def __init__(self):
        self.inner = Memory()
    async def reset(self):
        self.inner.reset()
    async def ingest(self, message):
        self.inner.ingest(message)
    async def retrieve(self, query):
        return self.inner.retrieve(query)
"""

HEAD = """
import pytest
from mem import AsyncMemory, Memory, note
"""


@pytest.fixture
def project(project):
    """The shared project, without the plugins that no story here is about."""
    project.pytester.makeini(INI)
    return project


@pytest.fixture
def run(project):
    """Runs the questions with the fixture ``mymem`` of the conftest that is given."""
    project.write("mem.py", MEMORY)

    def run(conftest: str, *arguments: str, apart: bool = False, where: str = "conftest.py"):
        project.write(where, HEAD + conftest)
        runner = project.run_apart if apart else project.run
        return runner(*arguments, backend="mymem")

    run.project = project
    return run


def log(run) -> list[str]:
    """What happened to the memories, in order; ``planted`` is garden and ``ferry`` is harbour."""
    path = run.project.path / "log.txt"
    return path.read_text(encoding="utf-8").splitlines() if path.exists() else []


def error_line(result: pytest.RunResult) -> str:
    """The one sentence of a usage error, wherever it stands; there is no traceback."""
    text = f"{result.stdout.str()}\n{result.stderr.str()}"
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "Traceback" not in text
    assert "INTERNALERROR" not in text
    lines = [line for line in text.splitlines() if "--himga-backend=" in line]
    assert len(lines) == 1, lines
    return lines[0].removeprefix("ERROR: ")


# -- scopes ------------------------------------------------------------------------------------------


def test_with_module_scope_each_sample_gets_its_own(run):
    result = run(
        """
@pytest.fixture(scope="module")
def mymem():
    note("set up")
    yield Memory()
    note("torn down")
"""
    )

    result.assert_outcomes(passed=7, skipped=2)
    assert result.ret == 0
    assert log(run) == [
        *["set up", "made", "reset", "fed planted", "torn down"],
        *["set up", "made", "reset", "fed ferry", "torn down"],
    ]


def test_with_session_scope_one_serves_a_sample_at_a_time_and_is_reset_before_each(run):
    result = run(
        """
@pytest.fixture(scope="session")
def mymem():
    yield Memory()
    note("torn down")
"""
    )

    result.assert_outcomes(passed=7, skipped=2)
    # an instance from a fixture is closed by its fixture, not by us
    assert log(run) == ["made", "reset", "fed planted", "reset", "fed ferry", "torn down"]


def test_package_scope_will_do(run):
    result = run('@pytest.fixture(scope="package")\ndef mymem():\n    return Memory()\n')

    result.assert_outcomes(passed=7, skipped=2)
    assert log(run) == ["made", "reset", "fed planted", "reset", "fed ferry"]


@pytest.mark.parametrize(
    ("scope", "value"),
    [
        ("module", "Memory"),
        ("session", "Memory"),
        ("session", "lambda: Memory()"),
        ("session", "lambda scope: Memory()"),
    ],
)
def test_a_factory_is_called_once_for_each_sample(run, scope, value):
    result = run(f'@pytest.fixture(scope="{scope}")\ndef mymem():\n    return {value}\n')

    result.assert_outcomes(passed=7, skipped=2)
    assert log(run) == ["made", "reset", "fed planted", "closed", "made", "reset", "fed ferry", "closed"]


@pytest.mark.parametrize("own_tests", [False, True], ids=["items", "own tests too"])
@pytest.mark.parametrize("scope", ["module", "session"])
def test_what_a_factory_made_is_closed_before_the_fixture_is_torn_down(run, scope, own_tests):
    if own_tests:
        run.project.write("test_user.py", "def test_it(himga_context):\n    pass\n")

    result = run(
        f"""
@pytest.fixture(scope="{scope}")
def mymem():
    database = {{"open": True}}
    class Stored(Memory):
        def close(self):
            assert database["open"], "the database is gone"
            super().close()
    yield Stored
    database["open"] = False
    note("torn down")
"""
    )

    result.assert_outcomes(passed=7 + 9 * own_tests, skipped=2)
    assert log(run)[-2:] == ["closed", "torn down"]
    assert log(run).count("closed") == log(run).count("made")


def test_a_memory_outlives_what_an_own_test_made_of_it(run):
    run.project.write(
        "test_user.py",
        "import pytest\n"
        "@pytest.fixture\n"
        "def borrowed(himga_memory):\n"
        "    yield himga_memory.instance\n"
        "    assert himga_memory.instance.turns\n"
        "def test_it(borrowed):\n"
        "    pass\n",
    )

    result = run('@pytest.fixture(scope="session")\ndef mymem():\n    return Memory\n')

    result.assert_outcomes(passed=7 + 9, skipped=2)
    assert log(run) == ["made", "reset", "fed planted", "closed", "made", "reset", "fed ferry", "closed"]


def test_a_factory_takes_options(run):
    result = run(
        """
@pytest.fixture(scope="session")
def mymem():
    def make(depth: int = 1):
        note("depth", depth + 1)
        return Memory()
    return make
""",
        "--himga-backend-option=depth=4",
    )

    result.assert_outcomes(passed=7, skipped=2)
    assert log(run)[0] == "depth 5"


def test_an_instance_takes_no_options(run):
    result = run(
        '@pytest.fixture(scope="module")\ndef mymem():\n    return Memory()\n',
        "--himga-backend-option=depth=4",
    )

    assert result.ret == 6
    assert (
        "mymem is an instance, not a factory; only a class or a function takes options" in result.stdout.str()
    )


def test_an_async_memory_from_a_fixture(run):
    result = run('@pytest.fixture(scope="module")\ndef mymem():\n    return AsyncMemory()\n')

    result.assert_outcomes(passed=7, skipped=2)
    assert log(run) == ["made", "reset", "fed planted", "made", "reset", "fed ferry"]


def test_an_async_fixture_under_pytest_asyncio(run):
    run.project.pytester.makeini(
        INI.replace("-pno:asyncio", "") + "asyncio_default_fixture_loop_scope = function\n"
    )

    result = run(
        """
import asyncio, pytest_asyncio

@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def mymem():
    await asyncio.sleep(0)
    yield AsyncMemory()
    note("torn down")
"""
    )

    result.assert_outcomes(passed=7, skipped=2)
    assert log(run) == ["made", "reset", "fed planted", "reset", "fed ferry", "torn down"]


def test_a_fixture_may_ask_for_other_fixtures(run):
    result = run(
        """
@pytest.fixture(scope="session")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("store")

@pytest.fixture(scope="module")
def mymem(place):
    assert place.is_dir()
    return Memory()
"""
    )

    result.assert_outcomes(passed=7, skipped=2)


@pytest.mark.slow
def test_each_worker_has_a_session_of_its_own(run):
    result = run('@pytest.fixture(scope="session")\ndef mymem():\n    return Memory()\n', "-n2", apart=True)

    result.assert_outcomes(passed=7, skipped=2)
    assert sorted(word for word in log(run) if word.startswith("fed")) == ["fed ferry", "fed planted"]
    assert result.ret == 0


def test_the_name_goes_into_the_provenance(run):
    result = run('@pytest.fixture(scope="module")\ndef mymem():\n    return Memory()\n')

    result.stdout.fnmatch_lines(["himga: backend mymem, judge told by the backend, k 10"])
    assert "backend mymem, judge" in result.stdout.str().replace("\n            ", " ")
    assert run.project.run_json()["backend"] == {"name": "mymem", "version": None, "options": {}}


# -- where the fixture lies --------------------------------------------------------------------------


@pytest.mark.parametrize("arguments", [[], [PASSING]])
def test_a_fixture_in_the_conftest_of_the_one_folder_of_tests(run, arguments):
    run.project.pytester.makeini(f"{INI}testpaths = tests\n")

    result = run(
        '@pytest.fixture(scope="module")\ndef mymem():\n    return Memory()\n',
        *arguments,
        where="tests/conftest.py",
    )

    assert result.ret == 0
    assert result.parseoutcomes()["passed"] == (1 if arguments else 7)


def test_a_fixture_that_own_tests_see_and_the_built_in_items_do_not_is_a_usage_error(run):
    run.project.write("tests/test_user.py", "def test_it(himga_verdict):\n    pass\n")
    fixture = '@pytest.fixture(scope="module")\ndef mymem():\n    return Memory()\n'

    result = run(fixture, where="tests/conftest.py")

    sentence = (
        "--himga-backend=mymem is no built-in or installed backend and no fixture that the built-in items "
    )
    assert error_line(result).startswith(f"{sentence}can see; ")
    assert log(run) == []
    assert run(fixture, "tests", where="tests/conftest.py").ret == 0
    assert run(fixture, "--himga-items=off", where="tests/conftest.py").ret == 0


def test_a_test_that_does_not_see_the_fixture_which_the_items_see_is_named(run):
    fixture = '@pytest.fixture(scope="module")\ndef mymem():\n    return Memory()\n'
    run.project.write("other/test_user.py", "def test_it(himga_verdict):\n    pass\n")
    run.project.write("here/test_seeing.py", f"{HEAD}{fixture}def test_it(himga_verdict):\n    pass\n")

    result = run("", "--himga-items=off")

    assert "no fixture that other/test_user.py::test_it can see; " in error_line(result)


def test_a_fixture_that_asks_for_one_that_is_not_there_is_named(run):
    result = run('@pytest.fixture(scope="module")\ndef mymem(database):\n    return Memory()\n')

    assert result.ret == 6
    assert {record["reason"] for record in run.project.results()} == {
        "its setup failed: fixture 'database' not found"
    }


def test_a_fixture_of_an_installed_plugin(run):
    run.project.write(
        "myplugin.py", HEAD + '@pytest.fixture(scope="module")\ndef mymem():\n    return Memory()\n'
    )

    result = run("", "-p", "myplugin")

    result.assert_outcomes(passed=7, skipped=2)


# -- what cannot be used -----------------------------------------------------------------------------

WRONG = {
    "function scope": (
        "@pytest.fixture\ndef mymem():\n    return Memory()\n",
        (
            "--himga-backend=mymem: the fixture has function scope, and a memory must outlive one question; write "
            '@pytest.fixture(scope="module") (one memory for each sample) or scope="session"'
        ),
    ),
    "class scope": (
        '@pytest.fixture(scope="class")\ndef mymem():\n    return Memory()\n',
        (
            "--himga-backend=mymem: the fixture has class scope, and a memory must outlive one question; write "
            '@pytest.fixture(scope="module") (one memory for each sample) or scope="session"'
        ),
    ),
    "params": (
        '@pytest.fixture(scope="module", params=[1, 2])\ndef mymem(request):\n    return Memory()\n',
        "--himga-backend=mymem: the fixture has params; write one fixture for each backend, without params",
    ),
    "missing": (
        "",
        (
            "--himga-backend=mymem is no built-in or installed backend and no fixture that the built-in items can see; "
            "known: bm25, full-context, null, oracle; your own is package.module:attribute, or a fixture in a "
            "conftest.py in the root directory, or in the one folder that is named (pytest tests, or testpaths)"
        ),
    ),
}


@pytest.mark.parametrize("kind", WRONG)
def test_a_fixture_that_cannot_hold_a_memory_is_a_usage_error(run, kind):
    conftest, sentence = WRONG[kind]

    result = run(conftest)

    assert error_line(result) == sentence
    assert log(run) == []
    assert not (run.project.path / ".himga").exists()


@pytest.mark.parametrize("kind", ["function scope", "missing"])
def test_the_usage_error_is_said_once_with_workers_too(run, kind):
    conftest, sentence = WRONG[kind]

    result = run(conftest, "-n2", apart=True)

    assert error_line(result).endswith(sentence)
    assert not (run.project.path / ".himga").exists()


def test_the_usage_error_comes_for_own_tests_too(run):
    run.project.write("test_user.py", "def test_it(himga_verdict):\n    pass\n")

    result = run(WRONG["function scope"][0], "--himga-items=off")

    assert error_line(result) == WRONG["function scope"][1]


def test_collect_only_tells_of_the_usage_error_as_well(run):
    assert error_line(run(WRONG["params"][0], "--co", "-q")) == WRONG["params"][1]


def test_a_fixture_nobody_asks_is_not_looked_for(run):
    run.project.write("test_user.py", "def test_plain():\n    pass\n")

    result = run("", "test_user.py")

    result.assert_outcomes(passed=1)
    assert result.ret == 0


# -- what fails while it runs ------------------------------------------------------------------------

FAILING = {
    "raises": ('raise ConnectionError("no server")', "ConnectionError: no server"),
    "skips": ('pytest.skip("no server today")', "no server today"),
    "fails": ('pytest.fail("no server")', "no server"),
    "yields no memory": ("return 3", "int has no ingest() and no retrieve() and no reset()"),
    "yields nothing": ("return None", "NoneType has no ingest() and no retrieve() and no reset()"),
}


@pytest.mark.parametrize(
    ("kind", "items"),
    [*((kind, "on") for kind in FAILING), ("raises", "off"), ("skips", "off"), ("fails", "off")],
)
def test_a_fixture_that_brings_no_memory_leaves_its_questions_unscored(run, kind, items):
    body, reason = FAILING[kind]
    run.project.write("test_user.py", "def test_it(himga_verdict):\n    pass\n")

    result = run(
        f'@pytest.fixture(scope="module")\ndef mymem():\n    {body}\n',
        f"--himga-items={items}",
        *(["test_user.py"] if items == "off" else ["himga/mini"]),
    )

    assert result.ret == 6
    assert result.outlines[-1].startswith("himga: not measured (exit status 6): 9 questions unscored")
    assert {record["verdict"] for record in run.project.results()} == {"unscored"}
    assert reason in run.project.results()[0]["reason"]
    assert "failed" not in result.parseoutcomes()
    assert "/pytest_himga/" not in result.stdout.str()


def test_other_fixtures_of_the_users_own_tests_fail_as_ever(run):
    run.project.write(
        "test_user.py",
        """
import pytest

@pytest.fixture
def broken():
    raise ValueError("mine")

def test_it(himga_case, broken):
    pass
""",
    )

    result = run('@pytest.fixture(scope="module")\ndef mymem():\n    return Memory()\n', "test_user.py")

    result.assert_outcomes(errors=9)
    assert result.ret == 1


def test_a_fixture_that_fails_for_one_sample_leaves_the_other_measured(run):
    result = run(
        """
@pytest.fixture(scope="module")
def mymem(request):
    if "harbour" in request.node.nodeid:
        raise ConnectionError("no server")
    return Memory()
"""
    )

    verdicts = [record["verdict"] for record in run.project.results()]
    assert verdicts == ["correct"] * 4 + ["n/a"] + ["unscored"] * 4
    assert result.ret == 6


def test_tolerated_a_fixture_that_skips_is_not_measured_all_the_same(run):
    result = run(
        '@pytest.fixture(scope="module")\ndef mymem():\n    pytest.skip("no server")\n',
        "--himga-max-unscored=100%",
    )

    # all may be unscored, but then nothing was measured
    assert result.ret == 6


def test_a_teardown_that_raises_is_an_error_of_its_own(run):
    result = run(
        """
@pytest.fixture(scope="session")
def mymem():
    yield Memory()
    raise ValueError("on the way out")
"""
    )

    result.assert_outcomes(passed=7, skipped=2, errors=1)
    assert result.ret == 1


# -- together with the user's own tests --------------------------------------------------------------


def test_own_tests_and_items_share_a_memory_of_session_scope(run):
    run.project.write("test_user.py", "def test_it(himga_memory):\n    assert himga_memory.instance.turns\n")

    result = run('@pytest.fixture(scope="session")\ndef mymem():\n    return Memory()\n')

    result.assert_outcomes(passed=7 + 9, skipped=2)
    assert log(run) == ["made", "reset", "fed planted", "reset", "fed ferry"]


def test_own_tests_have_a_module_of_their_own_and_the_summary_says_what_that_costs(run):
    run.project.write(
        "test_user.py", "def test_it(himga_verdict):\n    assert himga_verdict.value == 'correct'\n"
    )

    result = run('@pytest.fixture(scope="module")\ndef mymem():\n    return Memory()\n')

    result.assert_outcomes(passed=7 + 7, skipped=2 + 2)
    assert "note        fed more than once: mini/garden, mini/harbour" in result.stdout.str()


def test_own_tests_alone_feed_a_memory_of_module_scope_once_a_sample(run):
    run.project.write(
        "test_user.py",
        "def test_it(himga_memory):\n    pass\n\ndef test_more(himga_verdict):\n    pass\n",
    )

    result = run('@pytest.fixture(scope="module")\ndef mymem():\n    return Memory()\n', "test_user.py")

    result.assert_outcomes(passed=9 + 7, skipped=2)
    assert [word for word in log(run) if word.startswith("fed")] == ["fed planted", "fed ferry"]


def test_an_own_test_may_ask_for_the_fixture_itself(run):
    run.project.write(
        "test_user.py",
        "def test_it(himga_memory, mymem):\n    assert himga_memory.instance is mymem\n\n"
        "def test_without(mymem):\n    assert mymem\n",
    )

    result = run('@pytest.fixture(scope="session")\ndef mymem():\n    return Memory()\n', "test_user.py")

    result.assert_outcomes(passed=9 + 1)
    assert result.ret == 0
