"""The user's own tests that ask for a himga fixture: one run for each question, counted once."""

from __future__ import annotations

import re
from collections import Counter

import pytest

#: Plugins that many have installed and no story here is about; without them a run takes half the time.
OTHERS = ("asyncio", "anyio", "cov", "syrupy", "rerunfailures", "hypothesispytest", "timeout")
INI = f"[pytest]\npythonpath = .\naddopts = {' '.join(f'-pno:{name}' for name in OTHERS)}\n"

GARDEN = [
    "mini/garden/how-many-tulips-did-ada-plant-0767e5",
    "mini/garden/what-is-the-name-of-ben-s-hedgehog-83804f",
    "mini/garden/which-colour-were-the-tulips-beside-the--0cdbc0",
    "mini/garden/when-did-the-tulips-come-up-9dec4a",
    "mini/garden/what-is-ada-s-cat-called-5fcadd",
]
HARBOUR = [
    "mini/harbour/which-ferry-sails-on-thursdays-6fd671",
    "mini/harbour/what-did-dan-repaint-6a98d2",
    "mini/harbour/would-dan-make-a-good-sailor-4faf1d",
    "mini/harbour/what-hue-will-the-entrance-of-the-beacon-4ca38e",
]
#: What bm25 does not find.
WRONG = HARBOUR[3]
VERDICT_TEST = """
def test_memory(himga_verdict):
    assert himga_verdict.value == "correct", himga_verdict.reason
"""

#: Writes down whenever it is fed; finds everything; answers "green" to everything.
MEMORY = """
from pathlib import Path
from pytest_himga import Recalled

class Memory:
    deterministic = True
    version = "7"
    def __init__(self):
        self.turns = []
    def note(self, *words):
        with Path("log.txt").open("a", encoding="utf-8") as log:
            print(*words, file=log)
    def reset(self):
        self.turns.clear()
        self.note("reset")
    def ingest(self, message, session):
        self.turns.append(Recalled(message.content, turn_ids=[message.turn_id]))
        if len(self.turns) == 1:
            self.note("fed", message.content.split()[1])
    def retrieve(self, query):
        return self.turns

class Answering(Memory):
    def answer(self, question):
        return "green"

class AsyncMemory:
    def __init__(self):
        self.inner = Memory()
    async def reset(self):
        self.inner.reset()
    async def ingest(self, message, session):
        self.inner.ingest(message, session)
    async def retrieve(self, query):
        return self.inner.retrieve(query)

class Broken(Memory):
    def retrieve(self, query):
        if "tulips" in query:
            raise ConnectionError("the store is down")
        return self.turns

class BrokenForOthers(Memory):
    def retrieve(self, query):
        if query == "boom":
            raise ConnectionError("the store is down")
        return self.turns

class Unfeedable(Memory):
    def ingest(self, message, session):
        raise ConnectionError("the store is down")
"""


@pytest.fixture
def project(project):
    """The shared project, without the plugins that no story here is about."""
    project.pytester.makeini(INI)
    return project


@pytest.fixture
def own(project):
    """Writes the user's tests and runs them, without built-in items unless asked for."""
    project.write("mem.py", MEMORY)

    def run(text: str, *arguments: str, apart: bool = False, backend: str = "bm25", items: str = "off"):
        project.write("test_user.py", text)
        runner = project.run_apart if apart else project.run
        return runner(f"--himga-items={items}", *arguments, backend=backend)

    run.project = project
    return run


def outcomes(result: pytest.RunResult) -> dict[str, str]:
    """Outcomes by the text in brackets, as ``-v`` prints them."""
    line_of = re.compile(r"^test_user\.py::\S*\[(\S+)\] ([A-Z]+)")
    return {match[1]: match[2] for line in result.outlines if (match := line_of.match(line))}


def fed(project) -> list[str]:
    """A word for each time that a sample was fed: ``planted`` is garden, ``ferry`` is harbour."""
    lines = (project.path / "log.txt").read_text(encoding="utf-8").splitlines()
    return [line.removeprefix("fed ") for line in lines if line.startswith("fed")]


# -- each fixture ------------------------------------------------------------------------------------


def test_himga_case_is_the_question_and_its_sample(own):
    result = own(
        """
def test_case(himga_case):
    assert himga_case.question.question.endswith("?")
    assert himga_case.question in himga_case.sample.qa_pairs
    assert himga_case.sample.dataset == "locomo"
    assert himga_case.sample.sample_id in ("garden", "harbour")
"""
    )

    result.assert_outcomes(passed=9)
    assert result.ret == 0


def test_himga_memory_is_fed_and_answers_any_query(own):
    result = own(
        """
import mem

def test_memory(himga_memory, himga_case):
    assert isinstance(himga_memory.instance, mem.Memory)
    turns = sum(len(session.messages) for session in himga_case.sample.sessions)
    assert len(himga_memory.retrieve("anything at all")) == turns
    assert len(himga_memory.instance.turns) == turns
""",
        backend="mem:Memory",
    )

    result.assert_outcomes(passed=9)


def test_himga_memory_waits_for_an_async_memory(own):
    result = own(
        """
def test_memory(himga_memory):
    assert himga_memory.retrieve("anything")[0].text
""",
        backend="mem:AsyncMemory",
    )

    result.assert_outcomes(passed=9)


def test_himga_context_is_what_came_back_with_the_datasets_own_ids(own):
    result = own(
        """
def test_context(himga_context, himga_case):
    assert himga_context.recalled[0].turn_ids == ["D1:1"] or himga_context.recalled[0].turn_ids == ("D1:1",)
    assert himga_context.text.startswith(himga_context.recalled[0].text)
    assert himga_context.recalled[0].text == himga_case.sample.sessions[0].messages[0].content
""",
        backend="mem:Memory",
    )

    result.assert_outcomes(passed=9)


@pytest.mark.parametrize(("backend", "answer"), [("bm25", None), ("mem:Answering", "green")])
def test_himga_answer_is_the_backends_own_or_none(own, backend, answer):
    result = own(f"def test_answer(himga_answer):\n    assert himga_answer == {answer!r}\n", backend=backend)

    result.assert_outcomes(passed=9)


def test_himga_verdict_is_the_verdict(own):
    result = own(VERDICT_TEST, "-v")

    assert outcomes(result) == {
        **dict.fromkeys(GARDEN[:4], "PASSED"),
        GARDEN[4]: "SKIPPED",
        HARBOUR[0]: "PASSED",
        HARBOUR[1]: "PASSED",
        HARBOUR[2]: "SKIPPED",
        WRONG: "FAILED",
    }
    result.stdout.fnmatch_lines(["E *AssertionError: 0 of 1 evidence turn in the context"])
    assert result.ret == 1


def test_himga_judge_judges_an_answer_of_the_users_own(own):
    result = own(
        """
def test_judged(himga_judge, himga_case, himga_context):
    gold = himga_case.question.gold
    if gold is None:
        return
    assert himga_judge.name == "lexical"
    assert himga_judge.judge(himga_case, f"I believe it was {gold}.", himga_context).value == "correct"
    assert himga_judge.judge(himga_case, "a very different thing", himga_context).value == "wrong"
""",
        backend="mem:Answering",
    )

    result.assert_outcomes(passed=9)
    assert result.ret == 0


def test_himga_judge_is_evidence_where_nothing_answers(own):
    result = own("def test_judge(himga_judge):\n    assert himga_judge.name == 'evidence'\n")

    result.assert_outcomes(passed=9)


def test_all_six_together_agree(own):
    result = own(
        """
def test_all(himga_case, himga_memory, himga_context, himga_answer, himga_judge, himga_verdict):
    again = himga_judge.judge(himga_case, himga_answer, himga_context)
    assert again.value == himga_verdict.value
    assert himga_memory.instance.turns
""",
        backend="mem:Answering",
    )

    result.assert_outcomes(passed=9)


# -- ids and order -----------------------------------------------------------------------------------


def test_ids_hold_dataset_sample_and_uid(own):
    result = own(VERDICT_TEST, "--co", "-q")

    assert result.outlines[:9] == [f"test_user.py::test_memory[{key}]" for key in GARDEN + HARBOUR]


def test_an_own_tests_id_can_be_given_back(own):
    result = own(VERDICT_TEST, "-v", f"test_user.py::test_memory[{HARBOUR[1]}]", items="on")

    assert outcomes(result) == {HARBOUR[1]: "PASSED"}
    result.assert_outcomes(passed=1)


def test_own_tests_stand_together_by_sample_with_the_built_in_items(own):
    result = own(
        "def test_plain():\n    pass\n" + VERDICT_TEST + "\ndef test_case(himga_case):\n    pass\n",
        "--co",
        "-q",
        items="on",
    )

    order = [
        "plain" if "plain" in line else re.search("garden|harbour", line)[0]
        for line in result.outlines
        if "::" in line
    ]
    assert order == ["plain"] + ["garden"] * 15 + ["harbour"] * 12


def test_own_tests_run_in_their_samples_unit_on_one_worker(own):
    result = own(
        VERDICT_TEST + "\ndef test_case(himga_memory):\n    pass\n",
        "-n2",
        apart=True,
        items="on",
        backend="mem:Memory",
    )

    # nobody was fed twice, so own tests and items of a sample met on one worker
    assert sorted(fed(own.project)) == ["ferry", "planted"]
    result.assert_outcomes(passed=7 + 7 + 9, skipped=4)
    assert "fed more than once" not in result.stdout.str()
    assert result.ret == 0


def test_own_tests_can_be_parametrized_further(own):
    result = own(
        """
import pytest

@pytest.mark.parametrize("word", ["a", "b"])
@pytest.mark.parametrize("number", [1, 2])
def test_more(himga_verdict, himga_case, word, number):
    assert himga_case.sample.sample_id in ("garden", "harbour")
""",
        "-v",
        backend="mem:Memory",
    )

    result.assert_outcomes(passed=28, skipped=8)
    assert len(outcomes(result)) == 36
    assert fed(own.project) == ["planted", "ferry"]
    assert Counter(record["verdict"] for record in own.project.results()) == {"correct": 7, "n/a": 2}


def test_own_tests_in_a_class_with_fixtures_of_the_user(own):
    result = own(
        """
import pytest

@pytest.fixture
def case(himga_case):
    return himga_case

class TestMemory:
    def test_gold(self, case):
        assert case.question.question

    class TestDeeper:
        def test_verdict(self, himga_verdict, case):
            assert himga_verdict.value == "correct"
""",
        backend="mem:Memory",
    )

    result.assert_outcomes(passed=9 + 7, skipped=2)
    assert fed(own.project) == ["planted", "ferry"]


def test_a_user_fixture_that_asks_for_himga_on_demand_gets_a_sentence(own):
    result = own("def test_lazy(request):\n    request.getfixturevalue('himga_case')\n")

    result.assert_outcomes(failed=1)
    assert "KeyError" not in result.stdout.str()
    assert result.ret == 1


# -- counting ----------------------------------------------------------------------------------------


def test_each_question_counts_once_however_many_tests_ask_it(own):
    result = own(VERDICT_TEST + VERDICT_TEST.replace("test_memory", "test_again"), items="on")

    result.stdout.fnmatch_lines(
        ["overall        8        6  0.8571*", "all            9        6  0.8571*"], consecutive=False
    )
    assert len(own.project.results()) == 9
    result.assert_outcomes(passed=18, failed=3, skipped=6)


def test_the_memory_is_fed_once_though_tests_and_items_ask_it(own):
    own(VERDICT_TEST + "\ndef test_more(himga_memory):\n    pass\n", items="on", backend="mem:Memory")

    assert fed(own.project) == ["planted", "ferry"]


def test_own_tests_alone_bring_the_summary_and_the_files(own):
    result = own(VERDICT_TEST, "--himga-min-score=0.5")

    # the wrong one is the user's own assertion: failed, whatever the gate says
    result.stdout.fnmatch_lines(["himga: mini: 9 questions in 2 samples; no built-in items, sha256 *"])
    result.stdout.fnmatch_lines(["all            9        6  0.8571*"])
    assert [record["outcome"] for record in own.project.results()] == [
        "passed",
        "passed",
        "passed",
        "passed",
        "skipped",
        "passed",
        "passed",
        "skipped",
        "failed",
    ]
    assert result.ret == 1


def test_a_test_that_is_content_with_a_wrong_answer_passes(own):
    result = own("def test_memory(himga_verdict):\n    assert himga_verdict.value in ('correct', 'wrong')\n")

    result.assert_outcomes(passed=7, skipped=2)
    assert own.project.results()[8]["verdict"] == "wrong"
    assert own.project.results()[8]["outcome"] == "passed"
    assert result.ret == 0


def test_the_gate_counts_own_tests_that_ask_for_the_verdict(own):
    fine = "def test_memory(himga_verdict):\n    pass\n"

    assert own(fine, "--himga-min-score=0.8").ret == 0
    assert own(fine, "--himga-min-score=0.9").ret == 1


def test_own_tests_that_want_no_verdict_measure_nothing(own):
    result = own("def test_case(himga_case):\n    pass\n")

    result.assert_outcomes(passed=9)
    assert "overall" not in result.stdout.str()
    assert result.ret == 0
    assert not (own.project.path / ".himga").exists()


def test_a_gate_over_tests_that_want_no_verdict_is_not_measured(own):
    result = own("def test_case(himga_case):\n    pass\n", "--himga-min-score=0.1")

    assert result.ret == 6


# -- outcomes ----------------------------------------------------------------------------------------


def test_without_a_dataset_a_test_is_skipped_with_the_reason(own):
    names = ["case", "memory", "context", "answer", "verdict", "judge"]
    tests = [f"def test_{name}(himga_{name}):\n    pass\n" for name in names]
    own.project.write("test_user.py", "\n".join(tests) + "\ndef test_plain():\n    pass\n")

    result = own.project.pytester.runpytest_inprocess("-rs", "-p", "no:randomly")

    result.assert_outcomes(passed=1, skipped=6)
    reasons = [line.partition(": ")[2] for line in result.outlines if line.startswith("SKIPPED ")]
    assert reasons == ["no --himga-dataset: there are no questions to ask"] * 6
    assert result.ret == 0


def test_a_question_that_is_not_applicable_is_skipped_with_the_judges_reason(own):
    result = own(VERDICT_TEST, "-rs", "-k", GARDEN[4].rsplit("/", 1)[1])

    result.stdout.fnmatch_lines(["SKIPPED * n/a: *"])
    result.assert_outcomes(skipped=1)


@pytest.mark.parametrize("fixture", ["himga_verdict", "himga_context", "himga_answer"])
def test_an_unscored_question_is_an_error_and_no_failure(own, fixture):
    result = own(f"def test_it({fixture}):\n    pass\n", "-v", backend="mem:Broken")

    judged = fixture == "himga_verdict"
    result.assert_outcomes(errors=3, passed=4 if judged else 6, skipped=2 if judged else 0)
    assert "ConnectionError: the store is down" in result.stdout.str()
    assert "pytest_himga/" not in result.stdout.str()
    assert result.ret == 6
    assert "3 questions unscored" in result.outlines[-1]


@pytest.mark.parametrize("fixture", ["himga_memory", "himga_verdict", "himga_context"])
def test_a_memory_that_cannot_be_fed_is_an_error_and_no_failure(own, fixture):
    result = own(f"def test_it({fixture}):\n    pass\n", backend="mem:Unfeedable")

    result.assert_outcomes(errors=9)
    assert result.ret == 6


def test_tolerated_unscored_questions_are_skipped(own):
    result = own(VERDICT_TEST, "-rs", "--himga-max-unscored=3", backend="mem:Broken")

    result.assert_outcomes(passed=4, skipped=5)
    result.stdout.fnmatch_lines(
        ["SKIPPED * unscored*: retrieve() raised ConnectionError: the store is down*"]
    )
    assert result.ret == 0


def test_an_outage_inside_the_test_itself_is_unscored_too(own):
    result = own(
        "def test_it(himga_memory):\n    himga_memory.retrieve('boom')\n", backend="mem:BrokenForOthers"
    )

    assert "ConnectionError: the store is down" in result.stdout.str()
    assert "pytest_himga/" not in result.stdout.str()
    assert result.ret == 6


def test_an_outage_and_a_failed_assertion_together_are_a_failure(own):
    result = own(
        VERDICT_TEST + "\ndef test_mine():\n    assert 1 == 2\n",
        backend="mem:Broken",
    )

    result.assert_outcomes(errors=3, failed=1, passed=4, skipped=2)
    assert result.ret == 1


def test_the_users_own_failing_assertion_is_a_failure(own):
    result = own(
        "def test_it(himga_verdict, himga_case):\n    assert 'ferry' not in himga_case.question.question\n",
        backend="mem:Memory",
    )

    result.assert_outcomes(passed=6, failed=1, skipped=2)
    assert result.ret == 1


def test_an_own_xfail_is_the_users_business(own):
    result = own(
        """
import pytest

@pytest.mark.xfail(reason="not yet", strict=False)
def test_it(himga_verdict):
    assert himga_verdict.value == "correct"
""",
    )

    result.assert_outcomes(xpassed=6, xfailed=1, skipped=2)
    assert result.ret == 0


def test_an_expected_failure_of_the_users_is_no_miss_whatever_its_reason_says(own):
    result = own(
        """
import pytest

@pytest.mark.xfail(reason="missed: a known gap")
def test_memory(himga_verdict):
    assert himga_verdict.value == "correct"
"""
    )

    result.assert_outcomes(skipped=2, xfailed=1, xpassed=6)
    assert [record["outcome"] for record in own.project.results() if record["verdict"] == "wrong"] == [
        "skipped"
    ]


FAILING_JUDGE = """
from pathlib import Path

class Judge:
    name = "failing"

    def judge(self, case, answer, context):
        with Path("judged.txt").open("a", encoding="utf-8") as file:
            file.write(case.question.uid + "\\n")
        raise ConnectionError("the judge is offline")
"""


def test_a_judge_that_fails_is_asked_once_a_question(project):
    project.write("judges.py", FAILING_JUDGE)
    project.write("test_mine.py", "def test_verdict(himga_verdict):\n    pass\n")

    result = project.run("--himga-judge=judges:Judge", "--himga-samples=harbour", backend="null")

    assert result.ret == 6
    asked = (project.path / "judged.txt").read_text(encoding="utf-8").split()
    assert len(asked) == len(set(asked)) == 4


FLAKY_MEMORY = """
class Memory:
    def reset(self): pass
    def ingest(self, message): pass
    def retrieve(self, query):
        if query == "an odd question":
            raise ConnectionError("the store is offline")
        return []
"""


@pytest.mark.parametrize("order", ["", "-p reversed_order"])
def test_an_outage_in_an_own_test_counts_whichever_item_comes_first(project, order):
    project.write("flaky.py", FLAKY_MEMORY)
    project.write("reversed_order.py", "def pytest_collection_modifyitems(items):\n    items.reverse()\n")
    project.write(
        "test_mine.py", "def test_odd(himga_memory):\n    himga_memory.retrieve('an odd question')\n"
    )

    result = project.run(
        "--himga-samples=harbour", "--himga-gate=none", *order.split(), backend="flaky:Memory"
    )

    assert result.ret == 6
    assert {record["verdict"] for record in project.results()} == {"unscored"}
