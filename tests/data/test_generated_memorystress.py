"""Generated MemoryStress data: everything asked was told before, to the right agent, and can be read off.

What the published generator gets wrong is a test of its own each.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_himga.data.family import RawRecord, ReadOptions
from pytest_himga.data.memorystress import (
    BenchmarkData,
    generate,
    load_benchmark,
    load_memorystress,
)
from pytest_himga.data.memorystress.generator import MOST_FACTS, MOST_SESSIONS
from pytest_himga.data.memorystress.reader import TYPES, read
from pytest_himga.data.memorystress.telling import Dice, Teller, Timeline
from pytest_himga.data.memorystress.wording import DIFFICULTIES, PATTERNS, REVERT, UPDATE, wording
from pytest_himga.data.schema import Message, Sample

# Without it a broken promise would be an AssertionError that shows no value.
pytest.register_assert_rewrite("memorystress_promises")

from memorystress_promises import INVARIANTS  # noqa: E402 - rewritten only if it is registered before

if TYPE_CHECKING:
    from collections.abc import Callable

#: Of `generate(seed=1, facts=12, sessions=20, questions=30)`, see the test that uses it.
PINNED = "06bc0fae462e5dd01390b5a5d08855d8393489116104a36f058d251de08b81d5"


@pytest.fixture(scope="module")
def published_size() -> BenchmarkData:
    """As large as the published file."""
    return generate(seed=7, facts=583, sessions=1000, questions=300)


@pytest.mark.parametrize("holds", INVARIANTS, ids=lambda holds: holds.__name__)
def test_at_the_published_size(published_size: BenchmarkData, holds: Callable[[BenchmarkData], None]) -> None:
    holds(published_size)


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_at_any_size(data: st.DataObject) -> None:
    facts = data.draw(st.integers(1, 60))
    made = generate(
        seed=data.draw(st.integers(-5, 2**40)),
        facts=facts,
        sessions=data.draw(st.integers(3, 60)),
        questions=data.draw(st.integers(1, 4 * facts)),
    )
    for holds in INVARIANTS:
        holds(made)
    assert_evidence_is_told_in_time(sample_of(made))


@pytest.mark.parametrize(
    ("facts", "sessions", "questions"),
    [(1, 3, 1), (1, 3, 4), (2, 3, 8), (3, 4, 3), (400, 3, 1600), (1, 500, 4), (130, 40, 520)],
)
def test_at_the_limits(facts: int, sessions: int, questions: int) -> None:
    data = generate(3, facts, sessions, questions)
    assert (len(data.facts), len(data.sessions), len(data.questions)) == (facts, sessions, questions)
    for holds in INVARIANTS:
        holds(data)


# -- variety -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(25))
def test_four_facts_and_seven_questions_have_all_seven_types(seed: int) -> None:
    for sessions in (3, 4, 30):
        data = generate(seed, 4, sessions, 7)
        assert {question.question_type for question in data.questions} == set(TYPES)


@pytest.mark.parametrize("seed", range(8))
def test_a_thousand_sessions_have_all_ages_and_checkpoints(seed: int) -> None:
    data = generate(seed, facts=40, sessions=1000, questions=40)
    ages = [question.age_sessions for question in data.questions]
    assert any(age < 100 for age in ages)
    assert any(100 <= age < 500 for age in ages)
    assert any(500 <= age <= 1000 for age in ages)
    assert {question.phase_asked for question in data.questions} == {1, 2, 3, 4}


def test_everything_there_is_occurs_at_the_published_size(published_size: BenchmarkData) -> None:
    facts, questions = published_size.facts, published_size.questions
    assert {fact.category for fact in facts} == {kind.category for kind in wording().kinds}
    assert {tag for fact in facts for tag in fact.tags} == {kind.name for kind in wording().kinds}
    assert {fact.importance for fact in facts} == {1, 2, 3, 4, 5}
    assert {fact.mention_count for fact in facts} == {1, 2, 3}
    assert {chain.pattern for chain in published_size.contradiction_chains} == set(PATTERNS)
    assert {len(chain.versions) for chain in published_size.contradiction_chains} == {2, 3}
    assert {question.difficulty for question in questions} == {"easy", "medium", "hard"}
    assert {session.noise_level for session in published_size.sessions} == {"low", "medium", "high"}
    phases = Counter(question.phase_asked for question in questions)
    assert all(30 <= phases[phase] <= 120 for phase in (1, 2, 3, 4))
    # most sessions are short, and agents are kept for a while
    lengths = Counter(len(session.turns) for session in published_size.sessions)
    assert sum(lengths[length] for length in (2, 4, 6)) > 850
    changes = sum(a.agent_id != b.agent_id for a, b in pairwise(published_size.sessions))
    assert 250 < changes < 420


def test_the_last_checkpoint_asks_for_what_is_a_thousand_sessions_old() -> None:
    """The published metrics lose an age of exactly 1000: it must be possible to have one."""
    ages = {
        question.age_sessions
        for seed in range(5)
        for question in generate(seed, facts=600, sessions=1000, questions=900).questions
    }
    assert max(ages) == 1000


def test_no_kind_of_fact_comes_twice_about_one_subject() -> None:
    for facts in range(1, 260, 3):
        for sessions in (3, 40):
            dice = Dice(facts)
            timeline = Timeline.of(dice, sessions)
            told = Teller(dice, wording(), timeline, facts).tell(facts)
            assert len(told) == facts
            assert len({(one.kind.name, one.subject) for one in told}) == facts


# -- bad arguments -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("facts", "sessions", "questions", "said"),
    [
        (0, 10, 1, "facts is 0; it can be 1 to 60000"),
        (MOST_FACTS + 1, 10, 1, "facts is 60001; it can be 1 to 60000"),
        (5, 2, 1, "sessions is 2; it can be 3 to 1000000"),
        (5, MOST_SESSIONS + 1, 1, "sessions is 1000001; it can be 3 to 1000000"),
        (5, 10, 0, "questions is 0; it can be 1 to 20: 5 facts carry 4 questions each"),
        (5, 10, 21, "questions is 21; it can be 1 to 20: 5 facts carry 4 questions each"),
        (1, 10, 5, "questions is 5; it can be 1 to 4: 1 fact carries 4 questions each"),
    ],
)
def test_what_cannot_be_made_is_said_with_its_limits(
    facts: int, sessions: int, questions: int, said: str
) -> None:
    with pytest.raises(ValueError, match=f"^{said}"):
        generate(1, facts, sessions, questions)


# -- the same bytes everywhere -----------------------------------------------------------------------

DIGEST = """
import hashlib, json
from pytest_himga.data.memorystress import generate
text = json.dumps(generate(seed=1, facts=12, sessions=20, questions=30).to_dict())
print(hashlib.sha256(text.encode()).hexdigest())
"""


def test_the_same_seed_gives_the_same_bytes_on_every_machine() -> None:
    """A changed digest means that everybody's generated questions change, and their baselines with them:
    change it only together with the wording or the plan of the generator.
    """
    text = json.dumps(generate(seed=1, facts=12, sessions=20, questions=30).to_dict())
    assert hashlib.sha256(text.encode()).hexdigest() == PINNED


@pytest.mark.parametrize("hash_seed", ["0", "4242"])
def test_no_hash_seed_reaches_the_data(hash_seed: str) -> None:
    here = subprocess.run(
        [sys.executable, "-c", DIGEST],
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        check=True,
    )
    assert here.stdout.strip() == PINNED


def test_another_seed_gives_other_data() -> None:
    one, other = generate(1, 10, 20, 10), generate(2, 10, 20, 10)
    assert one == generate(1, 10, 20, 10)
    assert {fact.content for fact in one.facts} != {fact.content for fact in other.facts}


def test_it_goes_through_a_file_without_loss(tmp_path: Path, published_size: BenchmarkData) -> None:
    path = tmp_path / "made.json"
    published_size.save(path)
    assert load_benchmark(path) == published_size


# -- as the runner reads it --------------------------------------------------------------------------


def sample_of(data: BenchmarkData) -> Sample:
    """The sample that the reader makes of it; nothing is warned of."""
    record = RawRecord(data.to_dict(), 0, Path("made.json"))
    sample = read(record, ReadOptions())
    assert record.warnings == []
    return sample


def assert_evidence_is_told_in_time(sample: Sample) -> None:
    """Every group has a turn that quotes, and nothing of it comes after the checkpoint."""
    ids = {session.session_id: place for place, session in enumerate(sample.sessions)}
    for question in sample.qa_pairs:
        assert question.evidence.groups
        assert question.asked_after is not None
        if question.question_type in ("contradiction_resolution", "temporal_ordering"):
            assert len(question.evidence.groups) == 2
        for group in question.evidence.groups:
            turns = [member for member in group if member.startswith("D")]
            assert turns
            places = [int(turn[1:].partition(":")[0]) - 1 for turn in turns]
            places += [ids[member] for member in group if member not in turns]
            assert max(places) < question.asked_after
            roles = {
                sample.sessions[int(session) - 1].messages[int(turn) - 1].role
                for session, turn in (member[1:].split(":") for member in turns)
            }
            assert roles == {"user"}


def test_the_runner_reads_it_without_a_warning(tmp_path: Path, published_size: BenchmarkData) -> None:
    path = tmp_path / "made.json"
    published_size.save(path)
    (sample,) = load_memorystress(path)  # a warning would be an error here
    assert [len(sample.sessions), len(sample.qa_pairs)] == [1000, 300]
    assert_evidence_is_told_in_time(sample)


def test_a_search_for_words_finds_some_of_it_and_forgets_with_age(published_size: BenchmarkData) -> None:
    """Neither so easy that every memory passes nor so hard that none does: BM25 over turns, 10 at a time."""
    from pytest_himga.memory.bm25 import BM25Memory

    sample = sample_of(published_size)
    memory, fed = BM25Memory(), 0
    found: dict[str, list[bool]] = {}
    for question in sorted(sample.qa_pairs, key=lambda one: one.asked_after or 0):
        for place in range(fed, question.asked_after or 0):
            for n, turn in enumerate(sample.sessions[place].messages, start=1):
                memory.ingest(Message(turn.role, turn.content, f"D{place + 1}:{n}"))
        fed = question.asked_after or 0
        context = {turn for one in memory.retrieve(question.question, k=10) for turn in one.turn_ids}
        hit = all(context.intersection(group) for group in question.evidence.groups)
        for name in ("all", question.question_type.value, f"checkpoint {question.facets['checkpoint']}"):
            found.setdefault(name, []).append(hit)
    share = {name: sum(hits) / len(hits) for name, hits in found.items()}
    assert 0.45 < share["all"] < 0.75
    assert share["checkpoint 1"] > share["checkpoint 2"] > share["checkpoint 4"] > 0.2
    # the outdated version is the one that sounds like the question
    assert 0.1 < share["contradiction_resolution"] < share["fact_recall"] < 1


# -- the wording -------------------------------------------------------------------------------------


def test_every_kind_of_fact_has_what_the_generator_needs() -> None:
    for kind in wording().kinds:
        assert len(set(kind.asks)) == len(DIFFICULTIES)
        assert all("{s}" in text and "{v}" not in text for text in (*kind.asks, *kind.chat, kind.label))
        assert all("{s}" in text and "{v}" in text for text in (kind.says, *kind.changes.values()))
        assert set(kind.changes) <= set(PATTERNS)
        assert UPDATE in kind.changes or REVERT not in kind.changes  # a revert takes back an update
        assert len(set(kind.values)) == len(kind.values) >= 7
        assert kind.about in wording().subjects
    assert all(any(pattern in kind.changes for kind in wording().kinds) for pattern in PATTERNS)
    assert len({kind.name for kind in wording().kinds}) == len(wording().kinds)


def test_nothing_but_a_fact_tells_a_value() -> None:
    words = wording()
    around = [text for sentences in words.talk.values() for text in sentences]
    for kind in words.kinds:
        values = [kind.value((first, second)) for first in kind.values for second in kind.seconds]
        for text in (*kind.asks, *kind.chat, *around):
            assert [value for value in values if value in text] == []


def test_the_first_facts_are_about_three_different_things() -> None:
    """Else two facts, which is what a small benchmark has, could not be told apart by their subject."""
    words = wording()
    firsts = [
        next(kind for kind in words.kinds if kind.category == category) for category in words.categories[:3]
    ]
    assert len({kind.about for kind in firsts}) == 3
    assert firsts[0].category == "preference"
