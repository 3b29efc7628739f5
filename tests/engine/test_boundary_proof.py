"""The proof: a memory that records everything it is given never receives a label of the dataset."""

from __future__ import annotations

import json

import pytest

from pytest_himga.data.locomo import load_locomo
from pytest_himga.data.schema import EvidenceRef, Message, QAPair, QuestionType, Sample, Session
from pytest_himga.memory.protocol import Recalled

#: Stands in every field that no memory may see; the tests look for it, in any case and any spelling.
SECRET = "zebra-secret"
SECRETS = ["zebra", "secret"]


class Recorder:
    """Keeps the text of all that it was ever given; ``everything`` outlives the instances."""

    def __init__(self, scope, everything, *, sessions=False, answers=False):
        self.everything = everything
        self.hear(scope)
        if sessions:
            self.ingest_session = self.hear
        if answers:
            self.answer = lambda question: self.hear(question) or "an answer"

    def hear(self, *things, **more):
        self.everything.extend(deep_text(thing) for thing in (*things, more))

    def ingest(self, message, session):
        self.hear(message, session)

    def retrieve(self, query, **more):
        self.hear(query, more)
        return [Recalled("Ada: I planted twelve tulips.", turn_ids=["D1:1"], session_ids=["s1"])]

    def reset(self, *args):
        self.hear(*args)

    def close(self, *args):
        self.hear(*args)


def deep_text(thing) -> str:
    """Every attribute of ``thing`` and of what it holds, also those that ``repr`` would leave out."""
    if isinstance(thing, dict):
        return " ".join(f"{deep_text(key)} {deep_text(value)}" for key, value in thing.items())
    if isinstance(thing, list | tuple | set):
        return " ".join(map(deep_text, thing))
    if hasattr(thing, "__dict__"):
        return f"{thing!r} {deep_text(vars(thing))}"
    return repr(thing)


def marked_sample() -> Sample:
    """The secret stands in every label: ids, titles, types' raw names, gold, trap, evidence, raw."""
    turns = [
        Message("Ada", "I planted twelve tulips.", f"{SECRET}-turn-1"),
        Message("Ben", "  ", f"{SECRET}-turn-2"),
        Message("Ben", "Where are they?", f"{SECRET}-turn-3"),
    ]
    for turn in turns:
        turn.has_answer = SECRET  # what a loader of LongMemEval might leave on a turn
    last = Message("Ada", "By the pump.", f"{SECRET}-turn-4", "2 May")
    sessions = [
        Session(f"answer_{SECRET}_1", turns, "1 May", title=SECRET, agent_id=SECRET),
        Session(f"answer_{SECRET}_2", [last], title=SECRET, agent_id=SECRET),
    ]
    question = QAPair(
        f"{SECRET}-question",
        "How many tulips?",
        SECRET,
        QuestionType.ADVERSARIAL,
        EvidenceRef([f"{SECRET}-turn-1"], [f"answer_{SECRET}_1"], [[f"{SECRET}-turn-1"]]),
        {"answer": SECRET, "evidence": [SECRET], "category": SECRET, "query": SECRET},
        trap=SECRET,
        gold=SECRET,
        uid=f"{SECRET}-uid",
        as_agent=SECRET,
        facets={"checkpoint": SECRET},
    )
    raw = {
        "event_summary": SECRET,
        "observation": SECRET,
        "session_summary": SECRET,
        "answer_session_ids": [SECRET],
    }
    return Sample(f"{SECRET}-sample", "locomo", sessions, [question], "Ada", "Ben", raw)


@pytest.mark.parametrize("sessions", [False, True], ids=["ingest", "ingest_session"])
@pytest.mark.parametrize("answers", [False, True], ids=["retrieves", "answers"])
def test_no_label_crosses_the_boundary(lab, sessions, answers):
    everything = []
    bench = lab(
        lambda scope: Recorder(scope, everything, sessions=sessions, answers=answers), sample=marked_sample()
    )
    (record,) = bench.records()

    heard = " ".join(everything).casefold()
    for text in (
        "i planted twelve tulips.",
        "where are they?",
        "by the pump.",
        "ada",
        "ben",
        "1 may",
        "2 may",
    ):
        assert text in heard
    assert "how many tulips?" in heard
    assert "himga-run-" in heard  # the scope
    assert [secret for secret in SECRETS if secret in heard] == []
    assert "adversarial" not in heard
    assert record.verdict in ("correct", "wrong")
    assert record.recalled[0]["turns"] == [f"{SECRET}-turn-1"]
    assert record.recalled[0]["sessions"] == [f"answer_{SECRET}_1"]


def test_a_locomo_file_with_marked_labels_keeps_them_to_itself(lab, tmp_path):
    record = {
        "sample_id": SECRET,
        "conversation": {
            "speaker_a": "Ada",
            "speaker_b": "Ben",
            "session_1_date_time": "9:15 am on 3 March, 2024",
            "session_1": [
                {
                    "speaker": "Ada", "dia_id": "D1:1", "text": "I planted tulips.", "blip_caption": "a red flower",
                    "query": SECRET, "img_url": [f"https://{SECRET}"], "re-download": SECRET, "has_answer": SECRET,
                }
            ],
        },
        "qa": [
            {"question": "Which flower?", "answer": SECRET, "evidence": ["D1:1"], "category": 4, "note": SECRET},
            {"question": "Which tree?", "adversarial_answer": SECRET, "evidence": ["D1:1"], "category": 5},
        ],
        "event_summary": {"events_session_1": {"Ada": [SECRET]}},
        "observation": {"session_1_observation": {"Ada": [[SECRET, "D1:1"]]}},
        "session_summary": {"session_1_summary": SECRET},
    }  # fmt: skip
    path = tmp_path / "marked.json"
    path.write_text(json.dumps([record]), encoding="utf-8")
    (sample,) = load_locomo(path)
    everything = []
    lab(lambda scope: Recorder(scope, everything, answers=True), sample=sample).results()

    heard = " ".join(everything).casefold()
    assert "[image: a red flower] i planted tulips." in heard
    assert "which tree?" in heard
    assert [secret for secret in SECRETS if secret in heard] == []


def test_the_scope_tells_neither_sample_nor_question_and_is_new_each_time(lab):
    scopes = []

    class Scoped(Recorder):
        def __init__(self, scope):
            scopes.append(scope)
            super().__init__(scope, [])

    lab(Scoped, sample=marked_sample()).results()
    bench = lab(Scoped, sample=marked_sample())
    bench.results()
    bench.results()
    assert len(scopes) == 3
    assert not any(secret in scope for scope in scopes for secret in SECRETS)
    assert scopes[1] != scopes[2]


@pytest.mark.filterwarnings("ignore::pytest_himga.errors.DatasetWarning")
def test_the_real_file_keeps_its_labels_to_itself(lab, real_locomo):
    """Golds may be said in the chats; what is only in the labels, ids and raw records must not be heard."""
    sample = min(load_locomo(real_locomo), key=lambda sample: len(sample.qa_pairs))
    everything = []
    lab(lambda scope: Recorder(scope, everything), sample=sample).results()

    chat = " ".join(
        f"{session.date_str} {turn.role} {turn.content}"
        for session in sample.sessions
        for turn in session.messages
    )
    questions = " ".join(question.question for question in sample.qa_pairs)
    unsaid = [
        text
        for question in sample.qa_pairs
        for text in (question.gold, question.trap)
        if text and len(text) > 12 and text not in chat and text not in questions
    ]
    summaries = [
        text for text in sample.raw["session_summary"].values() if isinstance(text, str) and text not in chat
    ]
    heard = " ".join(everything)
    assert len(unsaid) > 20
    assert len(summaries) > 10
    assert [text for text in (*unsaid, *summaries, sample.sample_id) if text in heard] == []
    assert [question.uid for question in sample.qa_pairs if question.uid in heard] == []
