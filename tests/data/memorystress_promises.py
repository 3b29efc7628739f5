"""What holds of every generated MemoryStress benchmark, as functions that assert it."""

from __future__ import annotations

import re
from collections import Counter
from datetime import datetime
from itertools import pairwise
from typing import TYPE_CHECKING

from pytest_himga.data.memorystress.integrity import problems
from pytest_himga.data.memorystress.wording import DIFFICULTIES, PATTERNS, REVERT, wording

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_himga.data.memorystress import BenchmarkData, ContradictionChain, Fact, Question, Session


class Told:
    """A benchmark, looked up by id."""

    def __init__(self, data: BenchmarkData) -> None:
        self.data = data
        self.facts: dict[str, Fact] = {fact.fact_id: fact for fact in data.facts}
        self.chains: dict[str, ContradictionChain] = {
            chain.chain_id: chain for chain in data.contradiction_chains
        }
        self.sessions: dict[str, Session] = {session.session_id: session for session in data.sessions}

    def is_said(self, content: str, session_id: str) -> bool:
        """Whether the user says it, word for word, in that session."""
        turns = self.sessions[session_id].turns
        return any(content in turn["content"] for turn in turns if turn["role"] == "user")

    def end(self, question: Question) -> int:
        """How many sessions come before the question."""
        return sum(session.phase <= question.phase_asked for session in self.data.sessions)

    def targets(self, question: Question) -> list[Fact]:
        return [self.facts[fact_id] for fact_id in question.target_fact_ids]

    def needed(self, question: Question) -> list[list[int]]:
        """Of each thing that must be known, the sessions (from 0) before the question that tell it."""
        if question.target_chain_id:
            telling = [[self.chains[question.target_chain_id].versions[-1]["session_id"]]]
        else:
            telling = [fact.mention_sessions for fact in self.targets(question)]
        places = [[self.sessions[one].session_index for one in sessions] for sessions in telling]
        return [[place for place in group if place < self.end(question)] for group in places]

    def agent_told(self, fact: Fact) -> str:
        return self.sessions[fact.session_planted].agent_id


def it_has_no_defect_that_a_loader_would_report(data: BenchmarkData) -> None:
    assert problems(data) == []


def ids_are_numbered_as_in_the_published_file(data: BenchmarkData) -> None:
    assert [one.fact_id for one in data.facts] == [f"F{n:03}" for n in range(1, len(data.facts) + 1)]
    assert [one.session_id for one in data.sessions] == [f"S{n:04}" for n in range(1, len(data.sessions) + 1)]
    assert [one.question_id for one in data.questions] == [
        f"Q{n:03}" for n in range(1, len(data.questions) + 1)
    ]
    chains = data.contradiction_chains
    assert [one.chain_id for one in chains] == [f"C{n:03}" for n in range(1, len(chains) + 1)]
    assert [one.session_index for one in data.sessions] == list(range(len(data.sessions)))


def every_fact_is_said_where_it_is_planted_and_mentioned(data: BenchmarkData) -> None:
    told = Told(data)
    planted = {fact_id: one for one in data.sessions for fact_id in one.planted_fact_ids}
    for fact in data.facts:
        assert all(told.is_said(fact.content, session_id) for session_id in fact.mention_sessions)
        assert fact.mention_count == len(fact.mention_sessions) == len(set(fact.mention_sessions))
        assert fact.mention_sessions[0] == fact.session_planted == planted[fact.fact_id].session_id
        assert sorted(fact.mention_sessions) == fact.mention_sessions
        session = told.sessions[fact.session_planted]
        assert (fact.phase_planted, fact.simulated_date) == (session.phase, session.simulated_date[:10])
        assert fact.recoverable
        assert 1 <= fact.importance <= 5
        assert fact.difficulty in DIFFICULTIES
    assert sum(len(one.planted_fact_ids) for one in data.sessions) == len(data.facts)


def every_version_is_said_when_its_chain_says(data: BenchmarkData) -> None:
    told = Told(data)
    for chain in data.contradiction_chains:
        fact = told.facts[chain.original_fact_id]
        assert fact.contradiction_chain == chain.chain_id
        first, *later = chain.versions
        assert (first["content"], first["session_id"]) == (fact.content, fact.session_planted)
        assert later
        for number, version in enumerate(chain.versions, start=1):
            session = told.sessions[version["session_id"]]
            assert version["version"] == number
            assert told.is_said(version["content"], session.session_id)
            assert (version["phase"], version["simulated_date"]) == (
                session.phase,
                session.simulated_date[:10],
            )
            assert session.agent_id == told.agent_told(fact)
        assert all(a["session_id"] < b["session_id"] for a, b in pairwise(chain.versions))
        assert len({version["content"] for version in chain.versions}) == len(chain.versions)
        assert chain.pattern in PATTERNS
    in_chains = [fact.fact_id for fact in data.facts if fact.contradiction_chain]
    assert sorted(in_chains) == sorted(one.original_fact_id for one in data.contradiction_chains)


def the_last_version_tells_the_ground_truth(data: BenchmarkData) -> None:
    for chain in data.contradiction_chains:
        assert chain.final_ground_truth
        assert chain.final_ground_truth in chain.versions[-1]["content"]
        if chain.pattern != REVERT:
            assert chain.final_ground_truth not in chain.versions[0]["content"]


def contradictions_are_asked_after_the_last_version_and_answered_by_it(data: BenchmarkData) -> None:
    told = Told(data)
    for question in data.questions:
        is_contradiction = question.question_type == "contradiction_resolution"
        assert is_contradiction == (question.target_chain_id is not None)
        if question.target_chain_id is None:
            assert all(fact.contradiction_chain is None for fact in told.targets(question))
            continue
        chain = told.chains[question.target_chain_id]
        assert question.target_fact_ids == [chain.original_fact_id]
        assert question.answer == chain.final_ground_truth
        assert question.phase_asked >= chain.versions[-1]["phase"]


def nothing_is_asked_before_it_is_told(data: BenchmarkData) -> None:
    told = Told(data)
    for question in data.questions:
        facts = told.targets(question)
        assert all(told.needed(question))
        assert question.phase_asked >= max(fact.phase_planted for fact in facts)
        assert question.target_fact_phase == facts[0].phase_planted


def recalled_answers_stand_in_the_fact(data: BenchmarkData) -> None:
    told = Told(data)
    for question in data.questions:
        if question.question_type not in ("contradiction_resolution", "temporal_ordering"):
            (fact,) = told.targets(question)
            assert question.answer
            assert str(question.answer) in fact.content
            assert str(question.answer) not in question.question


def types_fit_their_facts(data: BenchmarkData) -> None:
    told = Told(data)
    for question in data.questions:
        facts = told.targets(question)
        match question.question_type:
            case "single_mention_recall" | "temporal_ordering":
                assert all(fact.mention_count == 1 for fact in facts)
            case "preference_recall":
                assert [fact.category for fact in facts] == ["preference"]
            case "fact_recall":
                assert all(fact.category != "preference" for fact in facts)
        assert question.cold_start == (question.question_type == "cold_start_recall")
        assert question.scoring_dimensions[0] == "recall_at_age"
        assert question.difficulty in DIFFICULTIES


def orderings_name_what_was_planted_first(data: BenchmarkData) -> None:
    told = Told(data)
    for question in data.questions:
        if question.question_type == "temporal_ordering":
            one, other = told.targets(question)
            assert one.session_planted != other.session_planted
            earlier, later = sorted((one, other), key=lambda fact: fact.session_planted)
            assert question.answer == label_of(earlier)
            assert label_of(earlier) in question.question
            assert label_of(later) in question.question


def label_of(fact: Fact) -> str:
    """What a question calls the fact: the subject is read off its sentence."""
    (kind,) = (kind for kind in wording().kinds if [kind.name] == fact.tags)
    sentence = re.escape(kind.says).replace(r"\{s\}", "(?P<s>.+)").replace(r"\{v\}", ".+")
    match = re.fullmatch(sentence, fact.content)
    assert match
    return kind.label.format(s=match["s"])


def only_cross_agent_questions_cross_agents(data: BenchmarkData) -> None:
    told = Told(data)
    for fact in data.facts:
        agents = {told.sessions[one].agent_id for one in fact.mention_sessions}
        assert agents == {told.agent_told(fact)}
    for question in data.questions:
        tellers = {told.agent_told(fact) for fact in told.targets(question)}
        if question.question_type == "cross_agent_recall":
            assert tellers | {question.agent_scope} == {"agent_a", "agent_b"}
            assert question.agent_scope not in tellers
        else:
            assert tellers == {question.agent_scope}


def no_question_stands_twice(data: BenchmarkData) -> None:
    texts = [question.question for question in data.questions]
    assert [text for text, times in Counter(texts).items() if times > 1] == []
    assert all(text.endswith("?") for text in texts)


def ages_count_from_the_last_telling_to_the_checkpoint(data: BenchmarkData) -> None:
    told = Told(data)
    for question in data.questions:
        last = max(place for group in told.needed(question) for place in group)
        end = told.end(question)
        assert question.age_sessions == end - last
        assert 1 <= question.age_sessions <= len(data.sessions)
        dates = [datetime.fromisoformat(data.sessions[n].simulated_date) for n in (last, end - 1)]
        assert question.age_days == (dates[1] - dates[0]).days


def phases_cut_the_sessions_in_three(data: BenchmarkData) -> None:
    phases = [session.phase for session in data.sessions]
    assert phases == sorted(phases)
    assert set(phases) == {1, 2, 3}
    for number in (1, 2, 3):
        own = [session for session in data.sessions if session.phase == number]
        phase = data.phases[str(number)]
        assert phase["session_range"] == [own[0].session_index + 1, own[-1].session_index + 1]
        assert phase["date_range"] == [own[0].simulated_date[:10], own[-1].simulated_date[:10]]
    asked = [question.phase_asked for question in data.questions]
    assert asked == sorted(asked)
    assert set(asked) <= {1, 2, 3, 4}


def totals_are_those_of_the_content(data: BenchmarkData) -> None:
    assert data.version == "1.0"
    assert {name: data.stats[f"total_{name}"] for name in ("facts", "chains", "sessions", "questions")} == {
        "facts": len(data.facts),
        "chains": len(data.contradiction_chains),
        "sessions": len(data.sessions),
        "questions": len(data.questions),
    }


def sessions_are_talks_in_the_order_of_time(data: BenchmarkData) -> None:
    dates = [datetime.fromisoformat(session.simulated_date) for session in data.sessions]
    assert all(a < b for a, b in pairwise(dates))
    assert all(date.tzinfo is None for date in dates)
    assert {session.agent_id for session in data.sessions} == {"agent_a", "agent_b"}
    for session in data.sessions:
        roles = [turn["role"] for turn in session.turns]
        assert roles
        assert roles == ["user", "assistant"] * (len(roles) // 2)
        assert all(turn["content"].strip() for turn in session.turns)
        assert session.topic
        assert session.noise_level in ("low", "medium", "high")
        assert session.token_count_estimate > 0


def only_users_tell_and_only_where_it_is_written_down(data: BenchmarkData) -> None:
    """No assistant repeats a fact, and small talk does not tell one by chance to the other agent."""
    told = Told(data)
    versions = [version for chain in data.contradiction_chains for version in chain.versions[1:]]
    written = Counter(one for fact in data.facts for one in fact.mention_sessions)
    written.update(version["session_id"] for version in versions)
    contents = [fact.content for fact in data.facts] + [version["content"] for version in versions]
    assert len(set(contents)) == len(contents)
    for session_id, session in told.sessions.items():
        telling = [turn for turn in session.turns if any(content in turn["content"] for content in contents)]
        assert len(telling) == written[session_id]
        assert all(turn["role"] == "user" for turn in telling)


INVARIANTS: list[Callable[[BenchmarkData], None]] = [
    it_has_no_defect_that_a_loader_would_report,
    ids_are_numbered_as_in_the_published_file,
    every_fact_is_said_where_it_is_planted_and_mentioned,
    every_version_is_said_when_its_chain_says,
    the_last_version_tells_the_ground_truth,
    contradictions_are_asked_after_the_last_version_and_answered_by_it,
    nothing_is_asked_before_it_is_told,
    recalled_answers_stand_in_the_fact,
    types_fit_their_facts,
    orderings_name_what_was_planted_first,
    only_cross_agent_questions_cross_agents,
    no_question_stands_twice,
    ages_count_from_the_last_telling_to_the_checkpoint,
    phases_cut_the_sessions_in_three,
    totals_are_those_of_the_content,
    sessions_are_talks_in_the_order_of_time,
    only_users_tell_and_only_where_it_is_written_down,
]
