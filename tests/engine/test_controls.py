"""The reference backends on every shape of evidence: turns, whole sessions, twins, agents and restarts."""

from __future__ import annotations

from dataclasses import replace

import pytest
from agent_memories import (
    A_AND_B,
    Shared,
    Store,
    told,
)

from pytest_himga.data.schema import EvidenceRef
from pytest_himga.memory.protocol import Recalled


@pytest.mark.parametrize(
    ("backend", "verdict"),
    [("null", "wrong"), ("full-context", "correct"), ("bm25", None), ("oracle", "correct")],
)
def test_the_controls_can_be_asked_everything(lab, sample, backend, verdict):
    asks = {"cold_start": True, "as_agent": "b", "cross_agent": True, "asked_after": 2}
    sample = told(sample, agents=A_AND_B, q0=asks, q1=asks, q2={"as_agent": "c"})
    records = lab(backend, sample=sample).records()
    assert {record.verdict for record in records} <= ({verdict} if verdict else {"correct", "wrong"})
    assert len([record for record in records if record.verdict == "correct"]) >= (backend != "null")


def by_sessions(sample, *groups):
    """The sample, the evidence of each question being these groups of session ids."""
    return replace(
        sample,
        qa_pairs=[
            replace(question, evidence=EvidenceRef(groups=groups[n]))
            for n, question in enumerate(sample.qa_pairs)
        ],
    )


def test_the_oracle_finds_whole_sessions_and_only_those_that_were_heard(lab, sample):
    sample = by_sessions(sample, [["1"]], [["5", "2"], ["1"]], [["2"], ["D5:1"]], [["5"]])
    sample.qa_pairs[3].asked_after = 2
    bench = lab("oracle", sample=sample, expect=False, top_k=1)
    bench.cases = bench.cases[::-1]
    bench.engine.expect(bench.cases)
    records = bench.records()[::-1]
    assert [record.verdict for record in records] == ["correct", "correct", "correct", "wrong"]
    assert [record.reason for record in records] == [
        "1 of 1 evidence session in the context",
        "2 of 2 evidence sessions in the context",
        "2 of 2 evidence turns in the context",
        "0 of 1 evidence session in the context",
    ]
    assert [record.metrics["recall@1"] for record in records] == [1.0, 1.0, 1.0, 0.0]
    assert [record.metrics["session-recall@1"] for record in records] == [1.0, 1.0, 1.0, 0.0]


def test_the_oracle_does_not_mix_up_questions_of_one_text(lab, sample):
    for question in sample.qa_pairs:
        question.question = "And then?"
    records = lab("oracle", sample=sample).records()
    assert [record.verdict for record in records] == ["correct"] * 4
    assert [record.recalled[0]["turns"] for record in records] == [
        ["D1:1"],
        ["D2:1"],
        ["D5:1"],
        ["D1:1", "D5:1"],
    ]


def test_the_oracle_finds_turns_that_have_no_id_of_their_own(lab, sample):
    for session in sample.sessions:
        for turn in session.messages:
            turn.turn_id = None
    sample = by_sessions(sample, [["D1:1"]], [["D2:1", "D2:2"]], [["D3:1"]], [["D1:1"], ["D3:2"]])
    assert [record.verdict for record in lab("oracle", sample=sample).records()] == ["correct"] * 4


def test_a_session_is_hit_by_its_turns_as_well_as_by_its_id(lab, sample):
    """A memory that returns turns, as bm25 does, is measured on a dataset that names sessions."""
    sample = by_sessions(sample, [["1"]], [["2"]], [["5"]], [["2"], ["5"]])
    records = lab("bm25", sample=sample).records()
    assert [record.verdict for record in records] == ["correct", "correct", "wrong", "wrong"]
    assert records[0].metrics["recall@1"] == records[0].metrics["session-recall@1"] == 1.0


def test_session_recall_counts_sessions_where_two_have_one_id(lab, sample):
    sample.sessions[1].session_id = sample.sessions[0].session_id = "twin"
    for session in sample.sessions:
        for turn in session.messages:
            turn.turn_id = None
    sample = by_sessions(sample, [["D1:1"]], [["D2:1"]], [["D1:1"], ["D1:2"], ["D3:1"]], [["twin"]])

    class First(Shared):
        def retrieve(self, query):
            return [Recalled("x", session_ids=["s1"]), Recalled("y", ["D3:2"])]

    records = lab(lambda: First(Store()), sample=sample, top_k=2).records()
    assert [(r.metrics["session-recall@1"], r.metrics["session-recall@2"]) for r in records] == [
        (1.0, 1.0),
        (0.0, 0.0),
        (0.5, 1.0),
        (0.5, 0.5),
    ]
