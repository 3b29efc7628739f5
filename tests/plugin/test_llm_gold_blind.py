"""What models are really sent in runs of the demo: an answerer has nothing to cheat with, a judge only what it needs.

Golds are words that questions, memories and our own prompts are made of too. So texts are not searched for
them alone: what is sent is the same, byte for byte, whatever the labels are.
"""

from __future__ import annotations

import importlib
import json
import re
from collections import defaultdict
from dataclasses import dataclass, replace
from itertools import cycle
from pathlib import Path

import pytest
from llm_server import LLMServer

import pytest_himga.data
from pytest_himga.answer.answer_profile import load_answer_profile
from pytest_himga.answer.assembly import NOTHING_FOUND, fields_of
from pytest_himga.answer.dates import human_date
from pytest_himga.answer.request import AnswerRequest
from pytest_himga.data.opening import open_dataset
from pytest_himga.data.schema import Case, QuestionType
from pytest_himga.judge.llm_profile import DEFAULT_PROFILES, load_judge_profile
from pytest_himga.judge.llm_prompt import messages_for, rules_key
from pytest_himga.memory.protocol import Context

# Imported here, because pytester forgets what a run imports.
for name in ("pytest_himga.engine.llms", "pytest_himga.answer.resolve", "pytest_himga.llm.openai_chat"):
    importlib.import_module(name)

DEMO = Path(pytest_himga.data.__file__).parent / "demo"
PARTS = ("demo-locomo", "demo-longmemeval", "demo-memorystress")
KEY = "sk-tulips-4711-hedgehog"
#: Questions of the demo, and how many of each dataset the smaller runs ask.
ALL, PART = 152, 10
#: A word that stands nowhere in the demo.
MARK = "zebra"
SAID = "a reply that says nothing"
REPLIES = {"answering": f"ANSWER: {SAID}", "judging": '{"reason": "so", "verdict": "CORRECT"}'}


# -- the runs ----------------------------------------------------------------------------------------


@dataclass
class Sent:
    """One request, cut up: the fenced texts by their tags, and all the rest as ``ours``."""

    headers: dict[str, str]
    body: dict
    blocks: dict[str, str]
    ours: str

    @classmethod
    def of(cls, messages: list[dict[str, str]], headers=None, body=None) -> Sent:
        text = "\n".join(f"{message['role']}: {message['content']}" for message in messages)
        (fence,) = set(re.findall(r"^<[a-z]+_([0-9a-f]{16})>$", text, re.MULTILINE))
        text = text.replace(fence, "FENCE")
        parts = re.split(r"<([a-z]+)_FENCE>\n(.*?)\n</\1_FENCE>", text, flags=re.DOTALL)
        blocks = dict(zip(parts[1::3], parts[2::3], strict=True))
        ours = "".join(f"{text}<{tag}>" for text, tag in zip(parts[::3], [*parts[1::3], "end"], strict=True))
        return cls(headers or {}, body or {}, blocks, ours)


class Runs:
    """Requests by the run's name and the model, in the order in which they came."""

    def __init__(self, server: LLMServer) -> None:
        self.server = server
        self.sent: dict[tuple[str, str], list[Sent]] = defaultdict(list)

    def make(self, project, name: str, dataset: str, backend: str, *args: str) -> None:
        self.server.asked.clear()
        models = ("--himga-answerer=llm", "--himga-model=answering", "--himga-judge-model=judging")
        options = (f"--himga-base-url={self.server.url}", "--himga-cache=off", "--himga-gate=none")
        result = project.run(*models, *options, *args, data=dataset, backend=backend)
        assert result.ret == 0
        for asked in self.server.asked:
            sent = Sent.of(asked.body["messages"], asked.headers, asked.body)
            self.sent[name, asked.body["model"]].append(sent)

    def answering(self, name: str) -> list[Sent]:
        return self.sent[name, "answering"]

    def judging(self, name: str) -> list[Sent]:
        return self.sent[name, "judging"]


@pytest.fixture(scope="module")
def made():
    with LLMServer(lambda body: REPLIES[body["model"]]) as server:
        yield Runs(server)


@pytest.fixture
def runs(made, project, monkeypatch) -> Runs:
    """The whole demo with bm25; a part of it with a memory that knows nothing, and with bm25 and other labels."""
    if not made.sent:
        monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
        monkeypatch.setenv("HIMGA_API_KEY", KEY)
        project.pytester.makeini("[pytest]\naddopts = -p pytest_himga.plugin -p no:cacheprovider\n")
        made.make(project, "bm25", "demo", "bm25")
        made.make(project, "null", "demo", "null", f"--himga-subset={PART}")
        names = []
        for family, relabel in RELABEL.items():
            whole = json.loads((DEMO / f"{family}.json").read_bytes())
            names.append(project.write_data(f"{MARK}-{family}", relabel(whole)).name)
        part = ("--himga-judge=lexical", f"--himga-subset={PART}")
        made.make(project, "other labels", ",".join(names), "bm25", *part)
    return made


@pytest.fixture(scope="module")
def cases() -> dict[str, list[Case]]:
    """The questions of the demo by their texts: the same text can be asked twice."""
    found = defaultdict(list)
    for part in PARTS:
        for case in open_dataset(part).cases():
            found[case.question.question].append(case)
    return found


# -- other labels ------------------------------------------------------------------------------------


def relabel_locomo(samples: list[dict]) -> list[dict]:
    categories = cycle([4, 1, 3, 2])
    for number, sample in enumerate(samples):
        sample["sample_id"] = f"{MARK}-{number}"
        for summaries in ("event_summary", "observation", "session_summary"):
            sample[summaries] = {MARK: MARK}
        sample["qa"] = [
            {"question": one["question"], "answer": MARK, "evidence": ["D1:1"], "category": next(categories)}
            for one in sample["qa"]
        ]
    return samples


def relabel_longmemeval(records: list[dict]) -> list[dict]:
    types = cycle(sorted({record["question_type"] for record in records}))
    for number, record in enumerate(records):
        record |= {"question_id": f"{MARK}_{number}", "question_type": next(types), "answer": MARK}
        record["haystack_session_ids"] = [f"{MARK}_{n}" for n, _ in enumerate(record["haystack_sessions"])]
        record["answer_session_ids"] = record["haystack_session_ids"][-1:]
        for turn in (turn for session in record["haystack_sessions"] for turn in session):
            turn["has_answer"] = not turn.get("has_answer")
    return records


def relabel_memorystress(whole: dict) -> dict:
    # What kind of question it is stays: it decides which instance is asked.
    for one in whole["questions"]:
        one |= {"answer": MARK, "answer_detail": MARK, "difficulty": MARK, "scoring_dimensions": [MARK]}
    for session in whole["sessions"]:
        session |= {"topic": MARK, "noise_level": MARK}
    return whole


RELABEL = {
    "locomo": relabel_locomo,
    "longmemeval": relabel_longmemeval,
    "memorystress": relabel_memorystress,
}


# -- the answerer ------------------------------------------------------------------------------------


def test_with_nothing_recalled_the_answerer_is_sent_the_question_and_its_date_alone(runs, cases):
    sent = runs.answering("null")

    assert len(sent) == 3 * PART
    for one in sent:
        dates = [human_date(case.date_str) for case in cases[one.blocks["question"]]]
        assert one.blocks.keys() == {"question", "date", "memories"}
        assert one.blocks["date"] in dates
        assert one.blocks["memories"] == NOTHING_FOUND


@pytest.mark.parametrize("name", ["null", "bm25", "other labels"])
def test_all_that_is_ours_is_the_same_for_every_question(runs, name):
    sent = runs.answering(name)
    (ours,) = {one.ours for one in sent}

    profile = load_answer_profile("strict", base=Path(), option="")
    request = AnswerRequest.of("Another question?", "2001-01-01", Context("x", ()), None, 10)
    assert ours == Sent.of(rendered(profile.messages(fields_of(request)))).ours
    assert {tuple(sorted(one.body)) for one in sent} == {("messages", "model")}
    same = [{key: value for key, value in one.headers.items() if key != "content-length"} for one in sent]
    assert all(headers == same[0] for headers in same)


def rendered(messages) -> list[dict[str, str]]:
    from pytest_himga.llm.prompt import ChatRequest

    return ChatRequest(tuple(messages)).rendered()


def test_what_was_recalled_is_what_was_said_and_when(runs, cases):
    lines = 0
    for one in runs.answering("bm25"):
        told = {
            re.sub("\n", "\n    ", f"- [{human_date(session.date_str)}] {turn.role}: {turn.content}")
            for case in cases[one.blocks["question"]]
            for session in case.history
            for turn in session.messages
        }
        memories = re.split(r"\n(?=- \[)", one.blocks["memories"])[1:]
        assert set(memories) <= told
        lines += len(memories)
    assert lines > 500


def test_other_labels_change_nothing_that_the_answerer_is_sent(runs):
    usual, other = runs.answering("bm25"), runs.answering("other labels")

    assert MARK not in json.dumps([one.body for one in other])
    assert [one for one in other if one.blocks not in [same.blocks for same in usual]] == []
    assert (len(usual), len(other)) == (ALL, 3 * PART)


# -- the judge ---------------------------------------------------------------------------------------


def test_the_judge_sees_gold_and_trap_in_their_own_places_only(runs, cases):
    seen = set()
    for one in runs.judging("bm25"):
        blocks, same = dict(one.blocks), cases[one.blocks["question"]]
        case = next(case for case in same if expected_of(case) == blocks)
        profile = load_judge_profile(DEFAULT_PROFILES[case.sample.dataset], base=Path(), option="")
        # The same prompt with another gold, trap, name and evidence has the same words of ours around.
        twin = Sent.of(rendered(messages_for(profile, marked(case), SAID)))
        assert one.ours == twin.ours
        assert [tag for tag, text in twin.blocks.items() if MARK in text] == [
            tag for tag in blocks if tag in ("gold", "trap", "detail", "explanation")
        ]
        seen |= blocks.keys()
    assert seen == {"question", "date", "gold", "trap", "answer", "detail", "explanation"}


def expected_of(case: Case) -> dict[str, str]:
    """What a judge may be shown of a question."""
    question, family = case.question, case.sample.dataset
    shown = {"question": question.question, "date": human_date(case.date_str), "gold": question.gold}
    if question.expects_abstention and family == "longmemeval":
        shown["explanation"] = question.answer
    if family == "memorystress":
        shown["detail"] = question.raw["answer_detail"]
    shown |= {"trap": question.trap, "answer": SAID}
    return {tag: text for tag, text in shown.items() if text}


def marked(case: Case) -> Case:
    """The same question with other labels, as far as they do not decide its rules."""
    question = case.question
    other = replace(
        question,
        question_id=MARK,
        answer=f"{MARK} answer",
        gold=question.gold and f"{MARK} gold",
        trap=question.trap and f"{MARK} trap",
        evidence=replace(question.evidence, turn_ids=[MARK], session_ids=[MARK], groups=[[MARK]]),
        raw={**question.raw, "answer_detail": f"{MARK} detail", "answer": MARK},
        uid=MARK,
    )
    sample = replace(case.sample, sample_id=MARK, qa_pairs=[other])
    assert rules_key(other, sample.dataset) == rules_key(question, sample.dataset)
    return Case.of(MARK, MARK, sample, other)


def test_the_judge_is_sent_the_same_whatever_the_memory_found(runs):
    with_nothing, with_memories = runs.judging("null"), runs.judging("bm25")

    told = [(one.ours, one.blocks) for one in with_memories]
    assert all((one.ours, one.blocks) in told for one in with_nothing)
    assert (len(with_memories), len(with_nothing)) == (ALL, 3 * PART)
    contexts = {one.blocks["memories"] for one in runs.answering("bm25")}
    assert len(contexts) > 100
    assert {tuple(sorted(one.body)) for one in with_memories} == {("messages", "model", "response_format")}
    assert len({json.dumps(one.body["response_format"]) for one in with_memories}) == 1


# -- both --------------------------------------------------------------------------------------------


def test_neither_is_told_types_names_ids_or_the_key(runs, cases):
    of_all = [case for same in cases.values() for case in same]
    names = {*PARTS, *(str(Path(part).stem) for part in PARTS), "demo", KEY, KEY[3:]}
    for case in of_all:
        question = case.question
        names |= {case.uid, case.id, case.sample_id, question.question_id}
        names |= {*question.evidence.turn_ids, *question.evidence.session_ids}
        names |= {session.session_id for session in case.history}
    names |= {type_.value for type_ in QuestionType if "_" in type_.value}
    names |= {name.replace("_", other) for name in names for other in ("-", " ")} | {
        "adversarial",
        "temporal",
    }
    # LoCoMo's ids of questions and sessions are bare numbers, as are steps, dates and amounts.
    forbidden = re.compile(
        rf"(?<!\w)(?:{'|'.join(re.escape(one) for one in names if not one.isdigit())})(?!\w)"
    )
    every = [*runs.answering("null"), *runs.answering("bm25"), *runs.judging("bm25")]
    # Why LongMemEval's questions cannot be answered is its own text, and may speak of any of this.
    texts = [one.ours for one in every]
    texts += [text for one in every for tag, text in one.blocks.items() if tag != "explanation"]
    lines = {line for text in texts for line in text.splitlines()}
    assert [line for line in lines if forbidden.search(line)] == []
    assert len(lines) > 500
    for one in every:
        assert KEY not in json.dumps(one.body)
        assert one.headers["authorization"] == f"Bearer {KEY}"


def test_both_are_told_when_the_question_is_asked(runs, cases):
    for answering, judging in zip(runs.answering("bm25"), runs.judging("bm25"), strict=True):
        assert answering.blocks["question"] == judging.blocks["question"]
        dates = {human_date(case.date_str) for case in cases[judging.blocks["question"]]}
        assert judging.blocks["date"] in dates
        assert answering.blocks["date"] == judging.blocks["date"]


# -- an answerer of the user's own -------------------------------------------------------------------

OWN = '''
import copy, dataclasses, gc, pickle, types
from pathlib import Path

from pytest_himga import Verdict
from pytest_himga.memory import Recalled

HERE = Path(__file__).parent
#: What leads out of the object into all that the process has.
BEYOND = (type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType, types.CodeType, types.FrameType)


def everything(*things):
    """All that can be reached from these, in every way of writing it down."""
    seen, todo = {id(thing): thing for thing in things}, list(things)
    while todo:
        found = [one for one in gc.get_referents(*todo) if id(one) not in seen and not isinstance(one, BEYOND)]
        todo = list({id(one): one for one in found}.values())
        seen |= {id(one): one for one in todo}
    return " ".join(repr(one) for one in seen.values())


def hear(name, *things):
    with (HERE / name).open("a", encoding="utf-8") as file:
        file.write(everything(*things) + "\\n")


def answer(request):
    hear("answerer.txt", request, pickle.dumps(request), copy.deepcopy(request), dataclasses.asdict(request))
    return "tulips"


class Async:
    name = "asking"
    async def answer(self, request):
        return answer(request)


class Memory:
    def __init__(self, scope):
        self.turns, self.scope = [], scope
    def reset(self): pass
    def ingest(self, message, session):
        self.turns.append(message)
        self.session = session
    def profile(self):
        return {"home": "Leiden", "told": list(self.turns)}
    def retrieve(self, query):
        return [Recalled(turn.content, turn_ids=[turn.turn_id], score=1) for turn in self.turns]


class Judge:
    name = "mine"
    def judge(self, case, answer, context):
        hear("judge.txt", case)
        return Verdict("correct", 1.0)
'''


def marked_records() -> list[dict]:
    """LoCoMo with the mark in each label."""
    turns = [
        {
            "speaker": "Ada",
            "dia_id": "D1:1",
            "text": "I planted tulips.",
            "blip_caption": "red",
            "query": MARK,
        },
        {"speaker": "Ben", "dia_id": "D1:2", "text": "Where?", "img_url": [MARK], "has_answer": MARK},
    ]
    chat = {"speaker_a": "Ada", "speaker_b": "Ben", "session_1_date_time": "9:15 am on 3 March, 2024"}
    qa = [
        {"question": "Which flower?", "answer": MARK, "evidence": ["D1:1"], "category": 4, "note": MARK},
        {"question": "Which tree?", "adversarial_answer": MARK, "evidence": ["D1:1"], "category": 5},
    ]
    labels = {"event_summary": {MARK: MARK}, "observation": {MARK: MARK}, "session_summary": {MARK: MARK}}
    return [{"sample_id": MARK, "conversation": chat | {"session_1": turns}, "qa": qa, **labels}]


@pytest.mark.parametrize("answerer", ["own:answer", "own:Async"])
def test_an_answerer_of_ones_own_finds_no_label_behind_its_request(project, monkeypatch, answerer):
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    project.pytester.makeini("[pytest]\npythonpath = .\naddopts = -p pytest_himga.plugin\n")
    project.write("own.py", OWN)
    project.write_data(f"{MARK}", marked_records())
    result = project.run(
        f"--himga-answerer={answerer}", "--himga-judge=own:Judge", data=f"{MARK}.json", backend="own:Memory"
    )

    assert result.ret == 0
    heard, control = (
        (project.path / f"{who}.txt").read_text(encoding="utf-8") for who in ("answerer", "judge")
    )
    for text in ("Which flower?", "Which tree?", "I planted tulips.", "9:15 am on 3 March, 2024", "Leiden"):
        assert text in heard
    assert MARK not in heard
    assert not [
        name for name in ("adversarial", "single_hop", "expects_abstention", "gold=") if name in heard
    ]
    # ... and it would have found one.
    assert control.count(MARK) > 5
