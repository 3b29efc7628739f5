"""The cache as a user meets it: what a change asks again, what is never kept, and a cache that is handed on.

The tables name the questions of the small dataset by a word of each: all nine of them, or the three that most
stories make do with.
"""

from __future__ import annotations

import itertools
import json
import re
import shutil
import socket
import sqlite3
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from llm_models import block, is_judge, verdict
from llm_server import LLMServer, body, cut, error, refused, status, text

import pytest_himga

NINE = "many hedgehog colour When cat ferry repaint sailor beacon"
WORDS = NINE.split()
#: The three: two of one sample, one of the other.
GARDEN = "When cat"
ALL = f"{GARDEN} ferry"
NONE = ""
#: That of them which the judge's default rules are for.
PLAIN = "ferry"
UNTOUCHED = (NONE, NONE)

USUAL = ".himga/cache/replies.sqlite3"
BACKEND = "recalling:Memory"
NEEDED = ("-p", "pytest_himga.plugin", "-p", "xdist.plugin")
#: Plugins of pytest's own that these stories do without: a run begins sooner.
WITHOUT = tuple(
    f"-pno:{name}"
    for name in (
        *("debugging", "doctest", "faulthandler", "junitxml", "legacypath", "logging", "pastebin"),
        *("setuponly", "setupplan", "stepwise", "unittest"),
    )
)
#: Recalls all turns, dated in their order, unless ``plan.json`` says otherwise.
MEMORY = """
import json
import os
from pathlib import Path

from pytest_himga.memory import Recalled

PLAN = json.loads((Path(__file__).parent / "plan.json").read_text(encoding="utf-8"))


class Memory:
    def __init__(self):
        self.turns = []

    def reset(self):
        self.turns = []

    def ingest(self, message):
        self.turns.append(message)

    def retrieve(self, query):
        if PLAN.get("dies_of", "nothing") in query:
            os._exit(1)
        if PLAN.get("finds_nothing_of", "nothing") in query:
            return []
        found = [
            Recalled(turn.content, [turn.turn_id], date_str=f"2024-03-{day:02}", score=PLAN.get("score"))
            for day, turn in enumerate(self.turns, start=1)
        ]
        return found[::-1] if PLAN.get("ranks_backwards") else found

    def profile(self):
        return PLAN.get("profile", {})
"""
#: The type of one question gets rules of its own in the judge's profile.
TEMPORAL = (
    '\ntemporal = [\n  "CORRECT if the day is that of the gold.",\n  "WRONG if it is another day.",\n]\n'
)


class Runs:
    """Runs in one project whose models are on the first of ``servers``; a test changes one thing between two runs."""

    def __init__(self, story: Any, monkeypatch: pytest.MonkeyPatch, *servers: LLMServer) -> None:
        self.story = story
        self.monkeypatch = monkeypatch
        self.data = "mini.json"
        self.project = story.project
        self.path: Path = story.path
        self.servers = servers
        self.server, self.other_server = servers[0], servers[-1]
        self.options: dict[str, str | None] = {
            "answerer": "llm",
            "model": "m",
            "base-url": self.server.url,
            "answer-profile": "answer.toml",
            "judge-profile": "judge.toml",
        }
        #: What the models say of the question with this word in it: a text, or an act of the server's.
        self.answers: dict[str, Any] = {}
        self.verdicts: dict[str, Any] = {}
        for server in servers:
            server.reply = self.reply
        for role in ("answer", "judge"):
            shipped = Path(pytest_himga.__file__).parent / role / "profiles" / "strict.toml"
            shutil.copy(shipped, self.path / f"{role}.toml")
        self.prompt("judge", "\nabstention = [", f"{TEMPORAL}\nabstention = [")
        self.project.write("recalling.py", MEMORY)
        self.plan: dict[str, Any] = {}
        self.memory()

    # -- a run ------------------------------------------------------------------------------------

    def run(self, *args: str, apart: bool = False) -> pytest.RunResult:
        """Pytest, with the options as they are now."""
        for server in self.servers:
            server.asked.clear()
        start = self.story.run_apart if apart else self.story.run
        return start(*WITHOUT, *self.arguments, *args, data=self.data, backend=BACKEND)

    def start(self, *args: str) -> subprocess.Popen:
        """The same in a process that nobody waits for."""
        given = self.project._args((*NEEDED, *self.arguments, *args), self.data, BACKEND)
        silent = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
        return self.project.pytester.popen([sys.executable, "-mpytest", *given], **silent)

    @property
    def arguments(self) -> tuple[str, ...]:
        given = {key: value for key, value in self.options.items() if value is not None}
        return tuple(f"--himga-{key}={value}" if value else f"--himga-{key}" for key, value in given.items())

    @property
    def calls(self) -> tuple[str, str]:
        """The questions that the last run asked for answers and for verdicts, each as often as it did."""
        bodies = [one for server in self.servers for one in server.bodies]
        answers = [word_of(one) for one in bodies if not is_judge(one)]
        verdicts = [word_of(one) for one in bodies if is_judge(one)]
        return in_order(answers), in_order(verdicts)

    def records(self) -> dict[str, dict]:
        """What ``results.jsonl`` says of each question."""
        return {word: one for one in self.project.results() for word in WORDS if word in one["question"]}

    def reply(self, request: dict[str, Any]) -> Any:
        word = word_of(request)
        if is_judge(request):
            return self.verdicts.get(word, verdict("CORRECT", f"{word} fits"))
        return self.answers.get(word, f"ANSWER: all about {word}")

    # -- what a user may change ---------------------------------------------------------------------

    def option(self, **options: str | None) -> None:
        """Set options, ``cache="read"``; None leaves one out, "" is a switch."""
        self.options |= {key.replace("_", "-"): value for key, value in options.items()}

    def prompt(self, role: str, old: str, new: str) -> None:
        """Rewrite what stands once in the profile of ``answer`` or ``judge``."""
        path = self.path / f"{role}.toml"
        before = path.read_text(encoding="utf-8")
        assert before.count(old) == 1
        path.write_text(before.replace(old, new), encoding="utf-8")

    def only(self, words: str) -> None:
        """Leave only the questions with these words in the data file."""
        samples = json.loads((self.path / "mini.json").read_text(encoding="utf-8"))
        for sample in samples:
            sample["qa"] = [
                one for one in sample["qa"] if any(word in one["question"] for word in words.split())
            ]
        self.project.write_data("mini", samples)

    def question(self, word: str, **fields: Any) -> None:
        """Rewrite fields of a question in the data file."""
        path = self.path / "mini.json"
        samples = json.loads(path.read_text(encoding="utf-8"))
        (found,) = (one for sample in samples for one in sample["qa"] if word in one["question"])
        found |= fields
        self.project.write_data("mini", samples)

    def memory(self, **plan: Any) -> None:
        """Let the memory do something else, see ``MEMORY``."""
        self.plan |= plan
        self.project.write("plan.json", json.dumps(self.plan))

    def erratum(self, ident: str, gold: str) -> None:
        entry = f'{{ id = "{ident}", gold = "{gold}", reason = "r" }}'
        self.project.write("errata.toml", f'source = "s"\nquestion = [{entry}]\n')
        self.option(errata="errata.toml")

    def rename(self, role: str, name: str) -> None:
        """Give a profile another file name."""
        (self.path / f"{role}.toml").rename(self.path / f"{name}.toml")
        self.option(**{f"{role}_profile": f"{name}.toml"})

    def ask_again(self, word: str, reply: str) -> None:
        """Make sure that a question is asked again, and that the model then says something else."""
        self.memory(finds_nothing_of=word)
        self.answers[word] = reply

    def server_by_environment(self) -> None:
        self.environment(OPENAI_BASE_URL=f"{self.options['base-url']}/")
        self.option(base_url=None)

    def password_in_url(self) -> None:
        self.option(base_url=self.server.url.replace("http://", "http://ada:secret@"))

    def environment(self, **variables: str) -> None:
        for name, value in variables.items():
            self.monkeypatch.setenv(name, value)

    def go_to_a_subfolder(self) -> None:
        """Begin the runs there, as an editor may."""
        folder = self.path / "sub"
        folder.mkdir()
        self.monkeypatch.chdir(folder)
        self.data = "../mini.json"
        self.option(
            **{f"{role}_profile": f"../{self.options[f'{role}-profile']}" for role in ("answer", "judge")}
        )

    def move(self, folder: Path) -> None:
        """To another checkout, which has all files but what git does not keep."""
        shutil.copytree(self.path, folder, ignore=shutil.ignore_patterns(".himga", "__pycache__"))
        self.monkeypatch.chdir(folder)
        self.path = self.project.path = folder

    # -- the file ------------------------------------------------------------------------------------

    @property
    def cache(self) -> Path:
        """Where replies are kept."""
        named = (self.options.get("cache") or "").rpartition(",")[2]
        return self.path / named / "replies.sqlite3" if named else self.path / USUAL

    def kept(self) -> int:
        """How many replies there are, in a file that is sound."""
        with closing(sqlite3.connect(self.cache)) as db:
            assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
            return db.execute("SELECT count(*) FROM replies").fetchone()[0]

    def forget(self, like: str) -> list[str]:
        """Take replies out, and tell their fingerprints."""
        with closing(sqlite3.connect(self.cache)) as db, db:
            rows = db.execute("DELETE FROM replies WHERE reply LIKE ? RETURNING fingerprint", [like])
            return [fingerprint for (fingerprint,) in rows.fetchall()]

    def spoil(self, reply: str) -> None:
        """Put another text in the place of all kept verdicts."""
        with closing(sqlite3.connect(self.cache)) as db, db:
            db.execute("UPDATE replies SET reply = ? WHERE reply LIKE '%CORRECT%'", [reply])


def word_of(request: dict[str, Any]) -> str:
    """The word of the dataset's question that a request is about, "" for any other question."""
    asked = block(request, "question") or ""
    return next((word for word in WORDS if word in asked), "")


def in_order(words: list[str]) -> str:
    return " ".join(sorted(words, key=WORDS.index))


def times(count: int, words: str) -> str:
    return in_order(words.split() * count)


def without(some: str, words: str) -> str:
    return in_order([word for word in words.split() if word not in some.split()])


@pytest.fixture(scope="module")
def servers(_models_imported_once: None) -> Iterator[tuple[LLMServer, LLMServer]]:
    with LLMServer() as one, LLMServer() as other:
        yield one, other


@pytest.fixture(scope="module")
def filled() -> dict[str, bytes]:
    """The cache that a first run fills: the same for all who begin with one, so it is filled once."""
    return {}


@pytest.fixture
def runs(story, servers, monkeypatch) -> Runs:
    """A project without a cache."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-this-test")
    return Runs(story, monkeypatch, *servers)


@pytest.fixture
def second(runs: Runs, filled: dict[str, bytes]) -> Runs:
    """A project of three questions after its first run, which has asked for everything once."""
    runs.only(ALL)
    if not filled:
        assert runs.run().ret == 0
        assert runs.calls == (ALL, ALL)
        filled["cache"] = runs.cache.read_bytes()
    runs.cache.parent.mkdir(parents=True, exist_ok=True)
    runs.cache.write_bytes(filled["cache"])
    return runs


# -- what changed -> calls made ------------------------------------------------------------------------

Change = Callable[[Runs], object]
#: What changes and how -> whose answers are asked for again, whose verdicts. The models say the same as before
#: unless that is what changes, so an answer that is asked for again needs no new verdict. What asks for nothing
#: is changed all at once, in this order.
CHANGES: list[tuple[str, Change, str, str]] = [
    ("nothing", lambda our: None, NONE, NONE),
    # prompts
    ("a word of the judge's prompt", lambda our: our.prompt("judge", "Decide one", "Find one"), NONE, ALL),
    ("a rule", lambda our: our.prompt("judge", "WRONG if it is vague", "WRONG if vague"), NONE, PLAIN),
    ("a rule of one type", lambda our: our.prompt("judge", "another day", "any other day"), NONE, "When"),
    ("a rule of abstention", lambda our: our.prompt("judge", "Nobody can", "None can"), NONE, "cat"),
    ("rules that no question has", lambda our: our.prompt("judge", "The gold is no", "It is no"), NONE, NONE),
    ("a comment in the judge's profile", lambda our: our.prompt("judge", "\n[rules]", "\n# !\n[rules]"), NONE, NONE),
    ("the judge's profile's name", lambda our: our.rename("judge", "our-judge"), NONE, NONE),
    ("a word of the answer's prompt", lambda our: our.prompt("answer", "Your rules:", "Rules:"), ALL, NONE),
    ("a comment in the answer's profile", lambda our: our.prompt("answer", "\nuser", "\n# !\nuser"), NONE, NONE),
    ("the answer's profile's name", lambda our: our.rename("answer", "our-answer"), NONE, NONE),
    # models
    ("both models", lambda our: our.option(model="n"), ALL, ALL),
    ("the model that answers", lambda our: our.option(model="n", judge_model="m"), ALL, NONE),
    ("the model that judges", lambda our: our.option(judge_model="n"), NONE, ALL),
    ("the server", lambda our: our.option(base_url=our.other_server.url), ALL, ALL),
    ("the server that judges", lambda our: our.option(judge_base_url=our.other_server.url), NONE, ALL),
    ("a parameter", lambda our: our.option(model_option="temperature=0"), ALL, NONE),
    ("a parameter of the judge's", lambda our: our.option(judge_model_option="temperature=0"), NONE, ALL),
    ("votes", lambda our: our.option(judge_votes="3"), NONE, times(2, ALL)),
    # how the models are reached
    ("the key", lambda our: our.environment(OPENAI_API_KEY="sk-another"), NONE, NONE),
    ("a password in the server's URL", lambda our: our.password_in_url(), NONE, NONE),
    ("where the server's URL is set", lambda our: our.server_by_environment(), NONE, NONE),
    ("the time limit", lambda our: our.option(timeout="99"), NONE, NONE),
    # data
    ("a gold", lambda our: our.question("ferry", answer="Dandelion"), NONE, "ferry"),
    ("a trap", lambda our: our.question("cat", adversarial_answer="Tom"), NONE, "cat"),
    ("a question's text", lambda our: our.question("ferry", question="Which ferry sails?"), "ferry", "ferry"),
    ("a question's evidence", lambda our: our.question("ferry", evidence=["D1:2"]), NONE, NONE),
    ("a question's type", lambda our: our.question("ferry", category=1), NONE, NONE),
    ("a question's type, and its rules", lambda our: our.question("ferry", category=2), NONE, "ferry"),
    ("the names of types", lambda our: our.option(locomo_labels="himga"), NONE, NONE),
    # the verdict by the published gold, which is told beside it, is there
    ("an erratum", lambda our: our.erratum("harbour/0", gold="Dandelion"), NONE, "ferry"),
    # what the memory says
    ("what is recalled", lambda our: our.memory(finds_nothing_of="ferry"), "ferry", NONE),
    ("scores", lambda our: our.memory(score=0.5), NONE, NONE),
    ("ranks, but not dates", lambda our: our.memory(ranks_backwards=True), NONE, NONE),
    ("what the memory knows of its user", lambda our: our.memory(profile={"home": "Delft"}), ALL, NONE),
    ("k, but nothing more is recalled", lambda our: our.option(top_k="20"), NONE, NONE),
    ("k, and less is recalled of one sample", lambda our: our.option(top_k="2"), GARDEN, NONE),
    # what the models say
    ("an answer", lambda our: our.ask_again("ferry", "ANSWER: no idea"), "ferry", "ferry"),
    ("thoughts before an answer", lambda our: our.ask_again("ferry", "Hm. ANSWER: all about ferry"), "ferry", NONE),
    # where
    ("the folder that pytest is started in", lambda our: our.go_to_a_subfolder(), NONE, NONE),
]  # fmt: skip


ASKING = [row for row in CHANGES if row[2:] != UNTOUCHED]
HARMLESS = {name: change for name, change, *asked in CHANGES if tuple(asked) == UNTOUCHED}


@pytest.mark.parametrize(
    ("change", "answers", "verdicts"), [row[1:] for row in ASKING], ids=[row[0] for row in ASKING]
)
def test_a_change_asks_again_for_what_it_touches_and_nothing_else(second, change, answers, verdicts):
    change(second)

    assert second.run().ret == 0
    assert second.calls == (answers, verdicts)


def test_what_touches_no_request_asks_for_nothing(second):
    for change in HARMLESS.values():
        change(second)

    assert second.run().ret == 0
    assert second.calls == UNTOUCHED, f"one of these: {', '.join(HARMLESS)}"
    assert len(HARMLESS) == 17
    # ... and with fewer questions
    second.option(samples="harbour")
    assert second.run().ret == 0
    assert second.calls == UNTOUCHED


#: What ``--himga-cache`` says in runs after the first, and what changes before each -> calls made.
MODES: list[tuple[str, list[tuple[str | None, Change | None, str, str]]]] = [
    ("read", [("read", None, NONE, NONE)]),
    ("off, refresh", [("off", None, ALL, ALL), ("refresh", None, ALL, ALL), (None, None, NONE, NONE)]),
    (
        "read, and something changes",
        [
            ("read", lambda our: our.question("ferry", answer="Dandelion"), NONE, "ferry"),
            ("read", None, NONE, "ferry"),
            (None, None, NONE, "ferry"),
            ("read", None, NONE, NONE),
        ],
    ),
    (
        "a folder",
        [
            ("kept", None, ALL, ALL),
            ("read,kept/replies.sqlite3", None, NONE, NONE),
            ("refresh,./kept", None, ALL, ALL),
            (None, None, NONE, NONE),
        ],
    ),
    ("a file", [("replies.db", None, ALL, ALL), ("read,replies.db", None, NONE, NONE)]),
]


@pytest.mark.parametrize("steps", [row[1] for row in MODES], ids=[row[0] for row in MODES])
def test_what_the_option_says_decides_what_is_used_and_kept(second, steps):
    for cache, change, answers, verdicts in steps:
        second.option(cache=cache)
        if change:
            change(second)
        assert second.run().ret == 0
        assert second.calls == (answers, verdicts)


# -- only what can be used is kept ---------------------------------------------------------------------

#: Replies with status 200 that are none, and a limit that passes: whose question -> what comes in its place.
FAULTS: dict[str, Callable[[str], Any]] = {
    "many": lambda reply: body(error("slow down")),
    "hedgehog": lambda reply: refused("I would rather not."),
    "colour": lambda reply: text(""),
    "When": cut,
    "cat": lambda reply: status(429, Retry_After="0"),
    "ferry": lambda reply: text(reply, finish="content_filter"),
    "repaint": lambda reply: text(f"<think>{reply}</think>"),
    "sailor": lambda reply: text("ANSWER:"),
}
FAULTY = " ".join(FAULTS)


@pytest.mark.parametrize("stage", ["answers", "verdicts"])
def test_what_went_wrong_once_is_asked_again_and_not_remembered(runs, stage):
    sound = {"answers": "ANSWER: a number", "verdicts": verdict("CORRECT")}[stage]
    getattr(runs, stage).update({word: act(sound) for word, act in FAULTS.items()})

    assert runs.run().ret == 6
    lost = [word for word, record in runs.records().items() if record["verdict"] == "unscored"]
    assert in_order(lost) == FAULTY
    assert runs.kept() == {"answers": 2, "verdicts": len(WORDS) + 1}[stage]

    getattr(runs, stage).clear()
    assert runs.run().ret == 0
    assert runs.calls == (FAULTY if stage == "answers" else NONE, FAULTY)
    assert runs.kept() == 2 * len(WORDS)


def test_a_kept_reply_that_is_no_verdict_any_more_is_asked_for_again(second):
    second.spoil(json.dumps({"reason": "a later version's", "verdict": "MAYBE"}))

    assert second.run().ret == 0
    assert second.calls == (NONE, ALL)
    second.run()
    assert second.calls == UNTOUCHED


# -- a cache that is handed on -------------------------------------------------------------------------


@pytest.fixture
def committed(second, monkeypatch, tmp_path) -> Runs:
    """A fresh checkout that brings its cache along, in a CI without a key."""
    second.option(cache="replies")
    second.cache.parent.mkdir()
    shutil.copy(second.path / USUAL, second.cache)
    second.move(tmp_path / "checkout")
    monkeypatch.delenv("OPENAI_API_KEY")
    second.option(cache="read,replies", offline="")
    return second


@pytest.fixture
def connections(monkeypatch) -> list[object]:
    """What this process would connect to, if it could."""
    found: list[object] = []

    def connect(_socket: socket.socket, address: object) -> None:
        found.append(address)
        raise ConnectionRefusedError(address)

    monkeypatch.setattr(socket.socket, "connect", connect)
    return found


def test_a_committed_cache_gives_the_same_run_without_key_and_server(committed, connections):
    before = committed.cache.read_bytes()
    committed.cache.chmod(0o444)
    committed.cache.parent.chmod(0o555)

    result = committed.run()
    committed.cache.parent.chmod(0o755)

    assert result.ret == 0
    records = committed.records()
    assert {record["verdict"] for record in records.values()} == {"correct"}
    assert {word: one["reason"] for word, one in records.items()} == {w: f"{w} fits" for w in ALL.split()}
    assert {tuple(record["cached"]) for record in records.values()} == {("answer", "judge")}
    assert connections == []
    assert [path.name for path in committed.cache.parent.iterdir()] == [committed.cache.name]
    assert committed.cache.read_bytes() == before
    assert "note " not in result.stdout.str()


@pytest.mark.parametrize(("kept", "stage"), [("%ferry fits%", "judge"), ("%all about ferry%", "answer")])
def test_a_miss_offline_is_unscored_and_names_the_request(committed, connections, kept, stage):
    (fingerprint,) = committed.forget(kept)

    result = committed.run()

    assert result.ret == 6
    records = committed.records()
    reason = f"not in the cache (request {fingerprint[:12]}), and --himga-offline makes no call"
    ferry = records.pop("ferry")
    assert (ferry["verdict"], ferry["stage"], ferry["reason"]) == ("unscored", stage, reason)
    assert {record["verdict"] for record in records.values()} == {"correct"}
    assert reason in result.outlines[-1]
    assert connections == []


# -- many at once --------------------------------------------------------------------------------------


@pytest.mark.slow
def test_two_runs_at_once_share_a_cache_and_ask_nothing_twice(runs):
    both = threading.Barrier(2, timeout=30)

    def reply(request: dict[str, Any]) -> Any:
        if word_of(request) == "many" and not is_judge(request):
            both.wait()
        return runs.reply(request)

    runs.server.reply = reply
    runs.environment(OPENAI_API_KEY="sk-of-the-other")
    with runs.start() as other:
        runs.environment(OPENAI_API_KEY="sk-of-this-test")
        assert runs.run().ret == 0
    assert other.returncode == 0

    asked = Counter(
        (one.headers["authorization"], is_judge(one.body), word_of(one.body)) for one in runs.server.asked
    )
    assert set(asked.values()) == {1}
    assert {(judge, word) for _, judge, word in asked} == set(itertools.product((False, True), WORDS))
    assert len({key for key, _, _ in asked}) == 2
    assert runs.kept() == 2 * len(WORDS)
    ours, theirs = (json.loads(path.read_text("utf-8")) for path in runs.path.glob(".himga/runs/*/run.json"))
    assert ours["totals"] == theirs["totals"]
    assert ours["totals"]["mini"]["overall"] == 1.0
    runs.server.reply = runs.reply
    runs.run()
    assert runs.calls == UNTOUCHED


def test_what_a_killed_process_has_paid_for_is_kept(runs):
    runs.memory(dies_of="When")
    assert runs.run(apart=True).ret != 0
    assert runs.calls == ("many hedgehog colour", "many hedgehog colour")

    runs.memory(dies_of="nothing")
    assert runs.run().ret == 0
    rest = without("many hedgehog colour", NINE)
    assert runs.calls == (rest, rest)


# -- what is said of it --------------------------------------------------------------------------------

HIT = {"calls": 0, "tokens_in": 0, "tokens_out": 0, "cost": 0.0, "cached": 1}
CALL = {"calls": 1, "tokens_in": 11, "tokens_out": 7, "cost": 0.0}


def test_hits_are_counted_and_cost_nothing(second):
    second.question("ferry", answer="Dandelion")

    lines = second.run().outlines

    assert "answers     3 from the cache" in lines
    assert "verdicts    1 call; 11 tokens in, 7 out; 2 from the cache" in lines
    # How fast a cache is says nothing of a model.
    assert [line.split()[0] for line in lines if re.match(r"(answer|judg)ing ", line)] == ["judging"]
    records = second.records()
    assert (records["ferry"]["cached"], records["ferry"]["usage"]) == (
        ["answer"],
        {"answer": HIT, "judge": CALL},
    )
    assert (records["cat"]["cached"], records["cat"]["usage"]) == (
        ["answer", "judge"],
        {"answer": HIT, "judge": HIT},
    )


def test_of_three_votes_one_may_come_from_the_cache(second):
    second.option(judge_votes="3")

    lines = second.run().outlines

    assert "verdicts    6 calls; 66 tokens in, 42 out; 3 from the cache" in lines
    ferry = second.records()["ferry"]
    assert ferry["cached"] == ["answer"]
    assert ferry["usage"]["judge"] == {
        "calls": 2,
        "tokens_in": 22,
        "tokens_out": 14,
        "cost": 0.0,
        "cached": 1,
    }


PLANNED = "himga: planned model calls: "
AT_MOST = f"{PLANNED}at most 6 (3 for answers, 3 for verdicts)"


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({"cache": "read"}, f"{AT_MOST}, fewer with what is in the cache"),
        ({"cache": "refresh"}, AT_MOST),
        ({"cache": "off"}, AT_MOST),
        ({"offline": ""}, f"{PLANNED}none, replies come from the cache alone"),
    ],
    ids=str,
)
def test_what_is_planned_depends_on_what_the_cache_may_do(second, options, line):
    second.option(**options)

    lines = second.run("-q").outlines

    assert [one for one in lines if one.startswith(PLANNED)] == [line]


def test_a_broken_cache_is_named_and_ends_no_run(runs):
    broken = bytes(range(256)) * 64
    runs.cache.parent.mkdir(parents=True)
    runs.cache.write_bytes(broken)

    result = runs.run()

    assert result.ret == 0
    assert runs.calls == (NINE, NINE)
    note = (
        f"note the cache {runs.cache} cannot be opened: it is no SQLite database (delete it, or name another with "
        "--himga-cache); replies are neither found nor kept"
    )
    assert unbroken(result.stdout.str()).count(unbroken(note)) == 1
    assert runs.cache.read_bytes() == broken


def unbroken(text: str) -> str:
    """Without white space: long paths are broken anywhere."""
    return "".join(text.split())
