"""A memory or a judge that raises, hangs or misbehaves: unscored and named, never wrong, and the rest goes on."""

from __future__ import annotations

import json
import time

import pytest

#: Plugins that many have installed and no story here is about; without them a run takes half the time.
WITHOUT_OTHERS = [
    f"-pno:{name}"
    for name in ("asyncio", "anyio", "cov", "syrupy", "rerunfailures", "hypothesispytest", "timeout")
]
#: Far more than an answer takes here, far less than a person waits.
LIMIT = "--himga-timeout=0.2"
FERRY = "himga/mini/harbour::which-ferry-sails-on-thursdays-6fd671"

MEMORIES = """
import asyncio
import logging
import os
import sys
import threading
import time
import warnings

import pytest

from pytest_himga.memory import Recalled, Usage

FERRY = "Which ferry sails on Thursdays?"
SECONDS = 3.0


class Memory:
    def __init__(self):
        self.turns = []

    def reset(self):
        self.turns = []

    def ingest(self, message, session):
        self.turns.append(message)

    def retrieve(self, query):
        if query == FERRY:
            self.odd()
        return self.found()

    def found(self):
        return [Recalled(turn.content, turn_ids=[turn.turn_id]) for turn in self.turns]

    def odd(self):
        pass


class Async(Memory):
    async def reset(self):
        super().reset()

    async def ingest(self, message, session):
        super().ingest(message, session)

    async def retrieve(self, query):
        if query == FERRY:
            await self.odd()
        return self.found()

    async def odd(self):
        pass


# -- retrieve raises ------------------------------------------------------------------------------

class Secret(Exception):
    def __str__(self):
        raise RuntimeError("no words")

def wordy():
    error = ValueError("\\n2 fields are wrong:\\n  name is missing\\n  age is missing\\n")
    error.add_note("see the manual")
    raise error

def bare():
    assert False

def throw(error):
    raise error

RAISES = {
    "an error": lambda: throw(ConnectionError("the store is offline")),
    "a wordy error": wordy,
    "an error without words": lambda: throw(Secret()),
    "a bare assert": bare,
    "a skip": lambda: pytest.skip("not today"),
    "a failure": lambda: pytest.fail("not today"),
    "an exit": lambda: sys.exit("no key"),
    "the end of pytest": lambda: pytest.exit("enough"),
    "Ctrl-C": lambda: throw(KeyboardInterrupt()),
    "a stop": lambda: next(iter(())),
    "the end of a generator": lambda: throw(GeneratorExit()),
    "a cancellation": lambda: throw(asyncio.CancelledError()),
    "a timeout of its own": lambda: throw(TimeoutError("the server said so")),
    "a group": lambda: throw(ExceptionGroup("two things", [OSError("one"), OSError("two")])),
}


class Raises(Memory):
    def retrieve(self, query):
        if query in RAISES:
            RAISES[query]()
        return self.found()

class AsyncRaises(Async):
    async def retrieve(self, query):
        await asyncio.sleep(0)
        if query in RAISES:
            RAISES[query]()
        return self.found()

class Offline(Async):
    async def odd(self):
        raise ConnectionError("the store is offline")

class NoUsage(Memory):
    def usage(self):
        return None

class TextUsage(Memory):
    def usage(self):
        return Usage(calls="3")


# -- a call hangs ---------------------------------------------------------------------------------

class Hangs(Memory):
    def odd(self):
        time.sleep(SECONDS)

class AsyncHangs(Async):
    async def odd(self):
        await asyncio.sleep(SECONDS)

class BlocksTheLoop(Async):
    async def odd(self):
        time.sleep(SECONDS)

class ThreadHangs(Async):
    async def odd(self):
        await asyncio.to_thread(time.sleep, SECONDS)

class IngestHangs(Memory):
    def ingest(self, message, session):
        if "lighthouse" in message.content:
            time.sleep(SECONDS)
        super().ingest(message, session)

class AsyncIngestHangs(Async):
    async def ingest(self, message, session):
        if "lighthouse" in message.content:
            await asyncio.sleep(SECONDS)
        await super().ingest(message, session)

class SettleHangs(Memory):
    def settle(self):
        if "ferry" in self.turns[0].content:
            time.sleep(SECONDS)

class MakingHangs(Memory):
    made = 0
    def __init__(self):
        super().__init__()
        MakingHangs.made += 1
        if MakingHangs.made == 2:
            time.sleep(SECONDS)


# -- around the questions -------------------------------------------------------------------------

class MakingRaises(Memory):
    made = 0
    def __init__(self):
        super().__init__()
        MakingRaises.made += 1
        if MakingRaises.made == 2:
            raise PermissionError("no API key")

class ResetRaises(Memory):
    made = 0
    def reset(self):
        ResetRaises.made += 1
        if ResetRaises.made == 2:
            raise PermissionError("no API key")

class CloseRaises(Memory):
    def close(self):
        if "ferry" in self.turns[0].content:
            raise RuntimeError("the namespace is still there")

class AsyncCloseRaises(Async):
    async def close(self):
        if "ferry" in self.turns[0].content:
            raise RuntimeError("the namespace is still there")

class CloseHangs(Memory):
    def close(self):
        if "ferry" in self.turns[0].content:
            time.sleep(SECONDS)

class Talks(Memory):
    def odd(self):
        print("looking for the ferry")
        print("nothing on the quay", file=sys.stderr)
        logging.getLogger("quay").warning("the tide is low")
        raise ConnectionError("the store is offline")

class Threads(Memory):
    def __init__(self):
        super().__init__()
        for _ in range(5):
            threading.Thread(target=time.sleep, args=(0.3,)).start()

class Leaks(Memory):
    def odd(self):
        open(__file__)  # nobody closes it

class Warns(Memory):
    def odd(self):
        warnings.warn("the old way", DeprecationWarning)

class Moody(Memory):
    @property
    def version(self):
        raise OSError("the server does not say")
"""


@pytest.fixture
def run(project):
    """Runs the small project with one of the memories."""
    project.pytester.makeini("[pytest]\npythonpath = .\n")
    project.write("mems.py", MEMORIES)

    def run(memory: str, *args: str, apart: bool = False, data: str = "mini.json") -> pytest.RunResult:
        runner = project.run_apart if apart else project.run
        return runner(*WITHOUT_OTHERS, LIMIT, *args, backend=f"mems:{memory}", data=data)

    run.project = project
    return run


def asks(project, questions) -> None:
    """Write the dataset ``asks.json``: the harbour with these questions, and one more that is answered."""
    harbour = json.loads((project.path / "mini.json").read_text("utf-8"))[1]
    sound = harbour["qa"][0]
    harbour["qa"] = [*(sound | {"question": question} for question in questions), sound]
    project.write_data("asks", [harbour])


def keeps_the_promises(result: pytest.RunResult, project, unscored: int, of: int = 9) -> list[dict]:
    """What holds in every outage; the records that are unscored."""
    records = project.results()
    lost = [record for record in records if record["verdict"] == "unscored"]
    assert len(records) == of
    assert len(lost) == unscored
    # No number that was not measured, in the file or on the screen.
    assert all(record["score"] is None for record in lost)
    correct = sum(record["verdict"] == "correct" for record in records)
    wrong = sum(record["verdict"] == "wrong" for record in records)
    assert wrong == 0
    overall = next(
        line.split() for line in reversed(result.outlines) if line.startswith(("all ", "overall "))
    )
    score = f"{1:.4f}" if correct else "-"
    assert (overall[1], overall[2], overall[3]) == (str(of), str(correct) if correct else "-", score)
    (totals,) = project.run_json()["totals"].values()
    assert totals["all"] == (1.0 if correct else None)
    # Never green, never a traceback of pytest's or ours.
    assert result.ret == project.run_json()["exit"] == 6
    for noise in ("INTERNALERROR", "pytest_himga/", "concurrent/futures", "asyncio/"):
        assert noise not in result.stdout.str()
    assert result.outlines[-1].startswith(f"himga: not measured (exit status 6): {unscored} question")
    return lost


# -- retrieve raises ---------------------------------------------------------------------------------

RAISED = {
    "an error": "ConnectionError: the store is offline",
    "a wordy error": "ValueError: 2 fields are wrong:",
    "an error without words": "mems.Secret: <exception str() failed>",
    "a bare assert": "AssertionError",
    "a skip": "Skipped: not today",
    "a failure": "Failed: not today",
    "an exit": "SystemExit: no key",
    "the end of pytest": "_pytest.outcomes.Exit: enough",
    "Ctrl-C": "KeyboardInterrupt",
    "a stop": "StopIteration",
    "the end of a generator": "GeneratorExit",
    "a cancellation": "asyncio.exceptions.CancelledError",
    "a timeout of its own": "TimeoutError: the server said so",
    "a group": "ExceptionGroup: two things (2 sub-exceptions)",
}


@pytest.mark.parametrize("memory", ["Raises", "AsyncRaises"])
def test_whatever_retrieve_raises_costs_its_question_and_no_other(run, memory):
    asks(run.project, RAISED)

    result = run(memory, data="asks.json")

    lost = keeps_the_promises(result, run.project, unscored=len(RAISED), of=len(RAISED) + 1)
    expected = {what: f"retrieve() raised {error}" for what, error in RAISED.items()}
    if memory == "AsyncRaises":  # Python itself turns one into another inside a coroutine
        expected["a stop"] = "retrieve() raised RuntimeError: coroutine raised StopIteration"
    assert {record["question"]: record["reason"] for record in lost} == expected
    assert {record["stage"] for record in lost} == {"retrieve"}
    result.assert_outcomes(passed=1, errors=len(RAISED))


def test_the_last_line_says_what_was_not_measured_and_why(run):
    result = run("Offline")

    (lost,) = keeps_the_promises(result, run.project, unscored=1)
    assert lost["id"] == FERRY
    result.assert_outcomes(passed=6, skipped=2, errors=1)
    assert result.outlines[-1] == (
        "himga: not measured (exit status 6): 1 question unscored "
        f"(retrieve() raised ConnectionError: the store is offline): {FERRY}"
    )


def test_the_traceback_is_the_backends_own(run):
    result = run("Offline")

    result.stdout.fnmatch_lines(
        [
            "traceback",
            "  Traceback (most recent call last):",
            '    File "*mems.py", line *, in retrieve',
            "      await self.odd()",
            '    File "*mems.py", line *, in odd',
            '      raise ConnectionError("the store is offline")',
            "  ConnectionError: the store is offline",
        ],
        consecutive=True,
    )


@pytest.mark.parametrize(
    ("memory", "reason"),
    [
        ("NoUsage", "usage() returned None; return a Usage"),
        ("TextUsage", "usage() returned a Usage whose calls is '3'; give a number"),
    ],
)
def test_a_usage_that_is_none_is_not_counted_as_nothing(run, memory, reason):
    lost = keeps_the_promises(run(memory), run.project, unscored=9)

    assert {record["reason"] for record in lost} == {reason}


# -- a call hangs ------------------------------------------------------------------------------------

HANGS = {
    "Hangs": ("retrieve", "retrieve() did not come back within 0.2 s (--himga-timeout)"),
    "AsyncHangs": ("retrieve", "retrieve() did not come back within 0.2 s (--himga-timeout)"),
    "BlocksTheLoop": ("retrieve", "retrieve() did not come back within 0.2 s (--himga-timeout)"),
    "ThreadHangs": ("retrieve", "retrieve() did not come back within 0.2 s (--himga-timeout)"),
    "IngestHangs": ("ingest", "ingest() did not come back within 0.2 s (--himga-timeout)"),
    "AsyncIngestHangs": ("ingest", "ingest() did not come back within 0.2 s (--himga-timeout)"),
    "SettleHangs": ("ingest", "settle() did not come back within 1 s (5 times --himga-timeout)"),
    "MakingHangs": ("ingest", "MakingHangs() did not come back within 1 s (5 times --himga-timeout)"),
}


@pytest.mark.parametrize("memory", HANGS)
def test_a_call_that_hangs_is_named_and_costs_its_sample_once(run, memory):
    """It is waited for once, not once a question; the other sample is measured."""
    started = time.monotonic()
    result = run(memory)
    took = time.monotonic() - started

    stage, reason = HANGS[memory]
    lost = keeps_the_promises(result, run.project, unscored=4)
    assert {(r["sample"], r["stage"], r["reason"]) for r in lost} == {("harbour", stage, reason)}
    assert took < 2.9
    result.stdout.fnmatch_lines(["overall        8        4  1.0000   0.510-1.000         4       0    0"])


@pytest.mark.parametrize("memory", ["Hangs", "ThreadHangs"])
def test_a_hung_call_does_not_hold_the_end_of_the_run(run, memory):
    """Python waits at its exit for threads that are no daemons; ours are, the loop's own pool included."""
    run.project.write("mems.py", MEMORIES.replace("SECONDS = 3.0", "SECONDS = 60.0"))
    started = time.monotonic()

    result = run(memory, apart=True)

    assert time.monotonic() - started < 20
    keeps_the_promises(result, run.project, unscored=4)


# -- around the questions ----------------------------------------------------------------------------

AROUND = {
    "MakingRaises": "MakingRaises() raised PermissionError: no API key",
    "ResetRaises": "reset() raised PermissionError: no API key",
}


@pytest.mark.parametrize("memory", AROUND)
def test_a_memory_that_cannot_be_made_ready_costs_its_sample(run, memory):
    lost = keeps_the_promises(run(memory), run.project, unscored=4)

    assert {(r["sample"], r["stage"], r["reason"]) for r in lost} == {("harbour", "ingest", AROUND[memory])}


@pytest.mark.parametrize(
    ("memory", "sentence"),
    [
        ("CloseRaises", "close() raised RuntimeError: the namespace is still there"),
        ("AsyncCloseRaises", "close() raised RuntimeError: the namespace is still there"),
        ("CloseHangs", "close() did not come back within 0.2 s (--himga-timeout)"),
    ],
)
def test_a_memory_that_cannot_be_closed_is_an_error_and_takes_no_verdict_away(run, memory, sentence):
    """What it left behind may answer the next run, so it is no warning."""
    result = run(memory)

    assert result.ret == 1
    result.assert_outcomes(passed=7, skipped=2, errors=1)
    assert {record["verdict"] for record in run.project.results()} == {"correct", "n/a"}
    result.stdout.fnmatch_lines(
        ["*_ ERROR at teardown of himga/mini/harbour::what-hue-*", f"himga/mini/harbour: {sentence}"]
    )
    assert "During handling of the above" not in result.stdout.str()
    assert "pytest_himga/" not in result.stdout.str()


def test_what_a_memory_prints_and_logs_stands_with_its_question(run):
    result = run("Talks")

    keeps_the_promises(result, run.project, unscored=1)
    result.stdout.fnmatch_lines(
        [
            f"*_ ERROR at call of {FERRY} _*",
            "*- Captured stdout call -*",
            "looking for the ferry",
            "*- Captured stderr call -*",
            "nothing on the quay",
            "*- Captured log call -*",
            "WARNING  quay:mems.py:* the tide is low",
        ]
    )
    assert result.stdout.str().count("looking for the ferry") == 1


def test_threads_of_the_memory_are_its_own_business(run):
    result = run("Threads", apart=True)

    assert result.ret == 0
    result.assert_outcomes(passed=7, skipped=2)


def test_a_version_that_cannot_be_told_costs_nothing(run):
    assert run("Moody").ret == 0
    assert run.project.run_json()["backend"]["version"] is None


def test_a_warning_that_the_project_makes_an_error_is_the_memorys_error(run):
    (lost,) = keeps_the_promises(run("Warns", "-Werror"), run.project, unscored=1)
    assert lost["reason"] == "retrieve() raised DeprecationWarning: the old way"

    assert run("Warns", "-Wdefault").ret == 0


def test_a_leak_that_the_project_makes_an_error_fails_its_item_and_takes_no_verdict_away(run):
    result = run("Leaks", "-Werror", apart=True)

    assert result.ret == 1
    result.assert_outcomes(passed=6, failed=1, skipped=2)
    result.stdout.fnmatch_lines(["E       ResourceWarning: unclosed file *", f"FAILED {FERRY} - pyt*"])
    assert {record["verdict"] for record in run.project.results()} == {"correct", "n/a"}
    assert "INTERNALERROR" not in result.stdout.str()
    assert "pytest_himga/" not in result.stdout.str()


# -- the judge ---------------------------------------------------------------------------------------

JUDGES = """
import asyncio
import sys
import time

from pytest_himga.judge.verdict import Verdict

FERRY = "Which ferry sails on Thursdays?"


def offline():
    raise ConnectionError("the model is gone")


ODD = {
    "raises": offline,
    "exits": lambda: sys.exit(1),
    "returns nothing": lambda: None,
    "returns True": lambda: True,
    "maybe": lambda: Verdict("maybe", 0.5),
    "no score": lambda: Verdict("correct"),
    "a score above 1": lambda: Verdict("correct", 7),
    "a score that is no number": lambda: Verdict("correct", float("nan")),
    "an odd reason": lambda: Verdict("wrong", 0.0, reason=["because"]),
    "odd votes": lambda: Verdict("wrong", 0.0, votes=(1, 2)),
    "odd metrics": lambda: Verdict("correct", 1.0, metrics=(("f1", "high"),)),
    "odd usage": lambda: Verdict("correct", 1.0, usage={"tokens": 3}),
    "an odd abstention": lambda: Verdict("correct", 1.0, abstention="maybe"),
}


class Odd:
    name = "mine"

    def judge(self, case, answer, context):
        return ODD.get(case.question.question, lambda: Verdict("correct", 1.0))()


class Hangs:
    name = "mine"

    def judge(self, case, answer, context):
        if case.question.question == FERRY:
            time.sleep(3)
        return Verdict("correct", 1.0)


class AsyncHangs:
    name = "mine"

    async def judge(self, case, answer, context):
        if case.question.question == FERRY:
            await asyncio.sleep(3)
        return Verdict("correct", 1.0)


class Refuses:
    name = "mine"

    def judge(self, case, answer, context):
        if case.question.question == FERRY:
            return Verdict("unscored", None, "the model refused")
        return Verdict("correct", 1.0)
"""

GAVE = "the judge mine gave a Verdict whose"
JUDGED = {
    "raises": "judge() raised ConnectionError: the model is gone",
    "exits": "judge() raised SystemExit: 1",
    "returns nothing": "the judge mine returned None; return a Verdict",
    "returns True": "the judge mine returned a value of type bool; return a Verdict",
    "maybe": f"{GAVE} value is 'maybe'; expected one of correct, wrong, unscored, n/a",
    "no score": f"{GAVE} score is None; expected a number from 0 to 1",
    "a score above 1": f"{GAVE} score is 7; expected a number from 0 to 1",
    "a score that is no number": f"{GAVE} score is nan; expected a number from 0 to 1",
    "an odd reason": f"{GAVE} reason is ['because']; expected a text",
    "odd votes": f"{GAVE} votes is (1, 2); expected a tuple of texts",
    "odd metrics": f"{GAVE} metrics is (('f1', 'high'),); expected a tuple of pairs: a name, a number from 0 to 1",
    "odd usage": f"{GAVE} usage is {{'tokens': 3}}; expected a Usage, or None",
    "an odd abstention": f"{GAVE} abstention is 'maybe'; expected one of held, fell, other, or None",
}


def test_a_judge_that_gives_no_verdict_leaves_its_question_unscored(run):
    run.project.write("judges.py", JUDGES)
    asks(run.project, JUDGED)

    result = run("Memory", "--himga-judge=judges:Odd", data="asks.json")

    lost = keeps_the_promises(result, run.project, unscored=len(JUDGED), of=len(JUDGED) + 1)
    assert {record["question"]: record["reason"] for record in lost} == JUDGED
    assert {record["stage"] for record in lost} == {"judge"}
    # The memory did its part, and that was measured.
    assert all(record["context_chars"] for record in lost)


@pytest.mark.parametrize(
    ("judge", "stage", "reason"),
    [
        ("Hangs", "judge", "judge() did not come back within 0.2 s (--himga-timeout)"),
        ("AsyncHangs", "judge", "judge() did not come back within 0.2 s (--himga-timeout)"),
        ("Refuses", None, "the model refused"),
    ],
)
def test_a_judge_that_hangs_or_refuses_says_nothing_about_the_sample(run, judge, stage, reason):
    run.project.write("judges.py", JUDGES)

    result = run("Memory", f"--himga-judge=judges:{judge}")

    (lost,) = keeps_the_promises(result, run.project, unscored=1)
    assert (lost["id"], lost["stage"], lost["reason"]) == (FERRY, stage, reason)
    result.assert_outcomes(passed=8, errors=1)
