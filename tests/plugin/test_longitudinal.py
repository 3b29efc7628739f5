"""A benchmark that asks in mid-history: whatever pytest makes of the items, nothing is heard too early or twice."""

from __future__ import annotations

import json
import re

import pytest

from pytest_himga.data.identity import uid_of

pytestmark = pytest.mark.timeout(120)  # a hanging run is what some of these are about

#: Writes down what it had heard, and as whom it was asked. ``actions.json`` says for a word of the question
#: what it does beside: ``miss``, ``raise`` or ``die``.
MEMORY = '''
import json
import os
from pathlib import Path

from pytest_himga import Recalled

HERE = Path(__file__).parent


class Store:
    """No agents and no restarts."""

    fresh = False

    def __init__(self, scope, days=None):
        self.scope = scope
        self.days = [] if days is None else days

    def reset(self):
        self.days.clear()

    def ingest_session(self, session):
        self.days.append(session)

    def retrieve(self, query, agent=None):
        with (HERE / "heard.txt").open("a", encoding="utf-8") as file:
            file.write(json.dumps([self.scope, query, len(self.days), agent, self.fresh]) + "\\n")
        actions = json.loads((HERE / "actions.json").read_text(encoding="utf-8"))
        action = next((actions[word] for word in actions if word in query), "")
        if action == "die":
            os._exit(1)
        if action == "raise":
            raise ConnectionError("the store is offline")
        if action == "miss":
            return []
        return [Recalled("a day", [turn.turn_id for turn in day.messages]) for day in self.days]


class Memory(Store):
    """Agents share it, and it can be reopened."""

    def as_agent(self, agent_id):
        return View(self, agent_id)

    def reopen(self):
        fresh = Memory(self.scope, self.days)
        fresh.fresh = True
        return fresh


class View:
    def __init__(self, memory, agent):
        self.memory = memory
        self.agent = agent
        self.ingest_session = memory.ingest_session

    def retrieve(self, query):
        return self.memory.retrieve(query, agent=self.agent)
'''

#: Word, phase, type; the file has them in this order, which is not that of their checkpoints. Two sessions
#: a phase bring a word each.
ASKED = [
    ("plum", 3, "fact_recall"),
    ("amber", 1, "fact_recall"),
    ("hazel", 4, "single_mention_recall"),
    ("birch", 2, "cross_agent_recall"),
    ("olive", 3, "cold_start_recall"),
    ("cedar", 1, "preference_recall"),
    ("maple", 2, "fact_recall"),
]
WORDS = ["amber", "cedar", "maple", "birch", "olive", "plum"]
#: How many sessions each question may have heard.
DUE = {word: min(2 * phase, 6) for word, phase, _ in ASKED}


def text_of(word: str) -> str:
    return f"Who spoke of the {word} door?"


def word_of(question: str) -> str:
    """The word of one of our questions, and any other question as it is."""
    match = re.search(r"the (\w+) door", question)
    return match[1] if match else question


def benchmark(name: str = "main") -> dict:
    """Three phases of two sessions, seven questions; ``hazel`` is about what ``plum`` is about."""
    told = {word: word for word in WORDS} | {"hazel": "plum"}
    return {
        "sample_id": name,
        "facts": [
            {
                "fact_id": f"F-{word}",
                "content": f"The {word} door was painted by somebody called {word.title()}.",
                "category": "event",
                "phase_planted": 1 + n // 2,
                "session_planted": f"S{n}",
                "simulated_date": "2024-03-01",
                "importance": 3,
                "mention_count": 1,
            }
            for n, word in enumerate(WORDS)
        ],
        "contradiction_chains": [],
        "sessions": [
            {
                "session_id": f"S{n}",
                "session_index": n,
                "phase": 1 + n // 2,
                "simulated_date": f"2024-03-0{n + 1}T09:30:00",
                "topic": "doors",
                "agent_id": "agent_b" if n % 2 else "agent_a",
                "turns": [
                    {
                        "role": "user",
                        "content": f"The {word} door was painted by somebody called {word.title()}.",
                    },
                    {"role": "assistant", "content": "I shall remember that."},
                ],
            }
            for n, word in enumerate(WORDS)
        ],
        "questions": [
            {
                "question_id": f"Q-{word}",
                "question": text_of(word),
                "target_fact_ids": [f"F-{told[word]}"],
                "answer": told[word].title(),
                "phase_asked": phase,
                "question_type": kind,
                "agent_scope": "agent_a",
                "cold_start": kind == "cold_start_recall",
            }
            for word, phase, kind in ASKED
        ],
    }


class Long:
    """The project of these stories: ``long.json``, a memory that keeps a diary, and what the diary says."""

    def __init__(self, story) -> None:
        self.project = story.project
        self.story = story
        self.project.write("diary.py", MEMORY)
        self.project.write_data("long", benchmark())
        story.memory_does()

    def run(self, *args: str, backend: str = "diary:Memory", apart: bool = False, data: str = "long.json"):
        runner = self.story.run_apart if apart else self.story.run
        return runner(*args, backend=backend, data=data)

    @staticmethod
    def id_of(word: str, sample: str = "main") -> str:
        kind = next(kind for asked, _, kind in ASKED if asked == word)
        return f"himga/long/{sample}::{uid_of(text_of(word), kind, 0)}"

    def diary(self) -> list[list]:
        """Each retrieve: scope, word of the question, sessions heard, asking agent, fresh or not."""
        path = self.project.path / "heard.txt"
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        found = [json.loads(line) for line in lines]
        return [[scope, word_of(query), *rest] for scope, query, *rest in found]

    def heard(self) -> dict[str, int]:
        """How many sessions were heard for each question; every one was asked once."""
        words = [word for _, word, *_ in self.diary()]
        assert len(words) == len(set(words)), "asked twice"
        return {word: heard for _, word, heard, *_ in self.diary()}

    def scopes(self) -> int:
        """How many memories were fed."""
        return len({scope for scope, *_ in self.diary()})

    def clear(self) -> None:
        (self.project.path / "heard.txt").unlink()

    def verdicts(self) -> dict[str, str]:
        return {word_of(record["question"]): record["verdict"] for record in self.project.results()}


@pytest.fixture
def long(story) -> Long:
    """See ``Long``."""
    return Long(story)


def only(*words: str) -> dict[str, int]:
    return {word: DUE[word] for word in words}


# -- the whole ------------------------------------------------------------------------------------------


def test_each_question_is_asked_at_its_checkpoint_by_its_agent_and_the_history_fed_once(long):
    result = long.run()
    assert result.ret == 0
    assert long.heard() == DUE
    assert long.scopes() == 1
    assert long.verdicts() == dict.fromkeys(DUE, "correct")
    assert {word: (agent, fresh) for _, word, _, agent, fresh in long.diary()} == {
        **dict.fromkeys(DUE, ("agent_a", False)),
        "olive": ("agent_a", True),
    }
    result.stdout.no_fnmatch_line("*warning*")
    result.stdout.no_fnmatch_line("*fed more than once*")
    result.stdout.fnmatch_lines(["cross-agent *", "cold-start *"])


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_random_order_changes_nothing(long, seed):
    result = long.run("-v", "-p", "randomly", f"--randomly-seed={seed}")
    result.stdout.fnmatch_lines([f"Using --randomly-seed={seed}"])
    assert result.ret == 0
    assert long.heard() == DUE
    assert long.scopes() == 1
    result.stdout.no_fnmatch_line("*fed more than once*")


def test_random_order_is_another_order_than_that_of_the_file(long):
    orders = set()
    for seed in (1, 2, 3):
        result = long.run("-v", "-p", "randomly", f"--randomly-seed={seed}")
        orders.add(tuple(re.findall(r"who-spoke-of-the-(\w+)-door-\w+ PASSED", result.stdout.str())))
    assert len(orders) > 1
    assert all(sorted(order) == sorted(DUE) for order in orders)


@pytest.mark.parametrize("backend", ["null", "full-context", "bm25", "oracle"])
def test_the_controls_run_on_it(long, backend):
    result = long.run("--himga-gate=none", backend=backend)
    assert result.ret == 0
    verdicts = set(long.verdicts().values())
    assert verdicts == ({"wrong"} if backend == "null" else {"correct"})


def test_what_nobody_can_know_is_a_group_of_its_own_and_fails_no_run(long):
    data = benchmark()
    for fact in data["facts"]:
        fact["recoverable"] = fact["fact_id"] != "F-cedar"
    long.project.write_data("long", data)
    long.story.memory_does(cedar="miss")
    result = long.run()
    assert result.ret == 0
    result.stdout.fnmatch_lines([f"MISSED {long.id_of('cedar')} - *", "overall *6 *", "unrecoverable *1 *0*"])
    totals = long.project.run_json()["totals"]["long"]
    assert (totals["overall"], totals["unrecoverable"], totals["checkpoint-1"]) == (1.0, 0.0, 1.0)


@pytest.mark.parametrize(
    ("threshold", "status"),
    [("checkpoint-3=0.6", 1), ("checkpoint-3=0.5", 0), ("slope=-0.3", 0), ("cold-start=1,cross-agent=1", 0)],
)
def test_the_dimensions_can_be_gated(long, threshold, status):
    long.story.memory_does(plum="miss")
    assert long.run(f"--himga-min-score={threshold}").ret == status


# -- parts of it ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("word", list(DUE))
def test_a_single_id_is_fed_up_to_its_checkpoint(long, word):
    result = long.run("--himga-gate=verdict", long.id_of(word))
    assert result.ret == 0
    assert long.heard() == only(word)


def test_a_part_by_k_is_fed_up_to_the_last_checkpoint_it_needs(long):
    assert long.run("-k", "maple or amber").ret == 0
    assert long.heard() == only("amber", "maple")
    assert long.scopes() == 1


def test_ids_in_any_order_are_fed_once(long):
    assert long.run(*map(long.id_of, ["hazel", "maple", "cedar"])).ret == 0
    assert long.heard() == only("hazel", "maple", "cedar")
    assert long.scopes() == 1


def test_x_stops_at_the_first_miss_and_what_was_asked_heard_no_more_than_it_may(long):
    long.story.memory_does(amber="miss")
    result = long.run("-x")
    assert result.ret == 1
    asked = long.heard()
    assert asked == only("amber")  # first in the order of the checkpoints, though not of the file
    assert {word: verdict for word, verdict in long.verdicts().items() if verdict != "unscored"} == {
        "amber": "wrong",
    }


def test_lf_asks_what_failed_at_its_own_checkpoint(long):
    long.story.memory_does(cedar="miss", maple="raise", hazel="miss")
    assert long.run().ret == 1
    long.clear()
    long.story.memory_does()
    result = long.run("--lf")
    assert result.ret == 0
    assert long.heard() == only("cedar", "maple", "hazel")
    assert long.scopes() == 1


def test_stepwise_goes_on_in_the_order_of_the_checkpoints_and_passes_nothing_by(long):
    long.story.memory_does(maple="miss")
    assert long.run("--sw").ret == 2
    assert long.heard() == only("amber", "cedar", "birch", "maple")
    long.clear()
    long.story.memory_does()
    assert long.run("--sw").ret == 0
    assert long.heard() == only("maple", "plum", "olive", "hazel")


def test_an_outage_on_the_way_is_that_questions_alone(long):
    long.story.memory_does(cedar="raise")
    result = long.run()
    assert result.ret == 6
    assert long.verdicts() == dict.fromkeys(DUE, "correct") | {"cedar": "unscored"}
    result.stdout.fnmatch_lines(
        [f"*_ ERROR at call of {long.id_of('cedar')} _*", "unscored at retrieve: retrieve() raised *offline"]
    )


# -- in parallel ----------------------------------------------------------------------------------------


@pytest.fixture
def two_histories(long):
    """The same history twice, as the samples ``main`` and ``other`` of one dataset."""
    folder = long.project.path / "long"
    folder.mkdir()
    for name in ("main", "other"):
        (folder / f"{name}.json").write_text(json.dumps(benchmark(name)), encoding="utf-8")
    return long


@pytest.mark.slow
@pytest.mark.parametrize("order", [(), ("-p", "randomly", "--randomly-seed=5")], ids=["file", "random"])
def test_two_workers_feed_each_history_once(two_histories, monkeypatch, order):
    monkeypatch.delenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD")
    quick = ("-pno:asyncio", "-pno:hypothesispytest", "-pno:syrupy", "-pno:cov", "-pno:rerunfailures")
    result = two_histories.project.run_apart("-n2", *quick, *order, backend="diary:Memory", data="long")
    assert result.ret == 0
    diary = two_histories.diary()
    assert sorted(word for _, word, *_ in diary) == sorted([*DUE, *DUE])
    assert {(word, heard) for _, word, heard, *_ in diary} == set(DUE.items())
    assert two_histories.scopes() == 2
    result.stdout.no_fnmatch_line("*fed more than once*")


def test_a_worker_that_dies_loses_one_question_and_no_other_is_asked_twice(two_histories):
    """In the file's order: what its forerunner had asked and what killed it is past for the new worker."""
    for name in ("main", "other"):
        data = benchmark(name)
        data["questions"].sort(key=lambda question: question["phase_asked"])
        if name == "other":
            for question in data["questions"]:
                question["question"] = question["question"].replace("spoke of", "told of")
        path = two_histories.project.path / "long" / f"{name}.json"
        path.write_text(json.dumps(data), encoding="utf-8")
    two_histories.project.write("actions.json", json.dumps({"spoke of the maple": "die"}))
    result = two_histories.run("-n2", data="long", apart=True)
    assert result.ret == 6
    diary = two_histories.diary()
    assert sorted(word for _, word, *_ in diary) == sorted([*DUE, *DUE])
    assert {(word, heard) for _, word, heard, *_ in diary} == set(DUE.items())
    lost = [record for record in two_histories.project.results() if record["verdict"] != "correct"]
    assert [(record["verdict"], record["question"]) for record in lost] == [("unscored", text_of("maple"))]
    result.stdout.fnmatch_lines(["note *fed more than once: long/main"])


# -- what a memory cannot be asked ----------------------------------------------------------------------


def test_without_agents_and_restarts_two_questions_are_skipped_with_their_reasons(long):
    result = long.run("-rs", backend="diary:Store")
    assert result.ret == 0
    assert long.heard() == only("plum", "amber", "hazel", "cedar", "maple")
    assert long.verdicts() == dict.fromkeys(DUE, "correct") | {"birch": "n/a", "olive": "n/a"}
    lines = "\n".join(result.outlines)
    assert "n/a: the backend has no as_agent(agent_id), so it cannot be asked as another agent" in lines
    assert "n/a: the backend has no reopen(), so no fresh instance over the same store can be asked" in lines
    result.stdout.fnmatch_lines(["*5 passed, 2 skipped in*"])
    na = [record for record in long.project.results() if record["verdict"] == "n/a"]
    assert [(record["context"], record["recalled"], record["score"]) for record in na] == [
        (None, None, None)
    ] * 2


def test_where_all_is_not_applicable_the_last_line_says_why(long):
    result = long.run("--himga-types=cross_agent_recall", backend="diary:Store")
    assert result.ret == 6
    assert result.outlines[-1] == (
        "himga: not measured (exit status 6): every question is n/a (the backend has no as_agent(agent_id), so it "
        "cannot be asked as another agent), so nothing was measured"
    )


OWN_TESTS = """
def test_context(himga_case, himga_context):
    assert len(himga_context.recalled) == len(himga_case.history)

def test_answer(himga_answer):
    assert himga_answer is None

def test_verdict(himga_verdict):
    assert himga_verdict.value == "correct"

def test_memory(himga_case, himga_memory):
    assert len(himga_memory.instance.days) == len(himga_case.history)
    assert len(himga_memory.retrieve("the sea?")) == len(himga_case.history)
"""


def test_own_tests_see_their_checkpoint_and_are_skipped_like_the_items(long):
    long.project.write("test_own.py", OWN_TESTS)
    result = long.run("-rs", "test_own.py", backend="diary:Store")
    # two questions cannot be asked, by three of the tests; the live memory is there for all
    result.stdout.fnmatch_lines(["*22 passed, 6 skipped in*"])
    assert result.ret == 0
    asked = [(word, heard) for _, word, heard, *_ in long.diary() if word in DUE]
    assert sorted(asked) == sorted(only("plum", "amber", "hazel", "cedar", "maple").items())


def test_tests_that_only_look_at_the_live_memory_make_nobody_ask_on_the_way(long):
    long.project.write("test_own.py", "def test_memory" + OWN_TESTS.split("def test_memory")[1])
    result = long.run("test_own.py")
    result.stdout.fnmatch_lines(["*7 passed in*"])
    assert {word for _, word, *_ in long.diary()} == {"the sea?"}


# -- data that cannot be read ---------------------------------------------------------------------------

SPOILS = """
from pathlib import Path

def pytest_collection_finish(session):
    path = Path(__file__).parent / "long.json"
    path.write_text(path.read_text(encoding="utf-8").replace('"S3"', '"S_three"'), encoding="utf-8")
"""


@pytest.mark.parametrize("own", [False, True], ids=["items", "own tests"])
def test_a_file_that_changes_under_a_run_makes_its_questions_unscored_in_a_sentence(long, own):
    long.project.write("conftest.py", SPOILS)
    if own:
        more = "\n\ndef test_case(himga_case):\n    assert himga_case.question.gold\n"
        long.project.write("test_own.py", OWN_TESTS + more)
    result = long.run(*(["test_own.py"] if own else []))
    assert result.ret == 6
    assert set(long.verdicts().values()) == {"unscored"}
    (reason,) = {record["reason"] for record in long.project.results()}
    assert "long.json" in reason
    assert "chang" in reason
    assert {record["stage"] for record in long.project.results()} == {None}
    text = result.stdout.str() + result.stderr.str()
    assert "INTERNALERROR" not in text
    assert "Traceback" not in text
    assert long.diary() == []
    result.stdout.fnmatch_lines([f"*{7 * (5 if own else 1)} error*"])
