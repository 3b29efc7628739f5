"""The published LongMemEval oracle file and six instances of S: every figure that is known of them.

Skipped where the files are not. Ids are facts; no text of theirs stands here.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import re
import warnings
from collections import Counter
from itertools import groupby, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_himga.data.dates import parse_date
from pytest_himga.data.longmemeval import load_longmemeval, skim
from pytest_himga.data.schema import Brief, Case, QAPair, Sample, Session
from pytest_himga.judge.evidence import EvidenceJudge
from pytest_himga.memory.boundary import History, read_context
from pytest_himga.memory.protocol import Recalled

if TYPE_CHECKING:
    from datetime import datetime

SHA256 = "821a2034d219ab45846873dd14c14f12cfe7776e73527a483f9dac095d38620c"
TYPES = {
    "single_session_user": 70,
    "single_session_assistant": 56,
    "single_session_preference": 30,
    "temporal_reasoning": 133,
    "knowledge_update": 78,
    "multi_session": 133,
}
S_IDS = ["7e00a6cb", "18bc8abd", "gpt4_c27434e8_abs", "gpt4_2655b836", "71017276", "gpt4_4edbafa2"]


def real_file(name: str) -> Path:
    folder = Path(os.environ.get("HIMGA_TEST_DATA") or Path(__file__).parents[3] / "shared" / "data")
    path = folder / name
    if not path.is_file():
        pytest.skip(f"needs the real {name} in {folder} (or $HIMGA_TEST_DATA)")
    return path


def load(path: Path, order: str = "time") -> list[Sample]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # nothing in the real files needs mending
        return load_longmemeval(path, order)


@pytest.fixture(scope="module")
def oracle_file() -> Path:
    return real_file("longmemeval_oracle.json.gz")


@pytest.fixture(scope="module")
def s_file() -> Path:
    return real_file("longmemeval_s_cleaned.sample.json.gz")


@pytest.fixture(scope="module")
def oracle(oracle_file: Path) -> list[Sample]:
    """The oracle file by time, loaded once."""
    return load(oracle_file)


@pytest.fixture(scope="module")
def oracle_as_file(oracle_file: Path) -> list[Sample]:
    """The oracle file with its sessions as they stand."""
    return load(oracle_file, "file")


@pytest.fixture(scope="module")
def s_sample(s_file: Path) -> list[Sample]:
    """The six instances of S, by time."""
    return load(s_file)


def ask(sample: Sample) -> QAPair:
    (pair,) = sample.qa_pairs
    return pair


def kind(sample: Sample) -> str:
    return ask(sample).question_type.value


def dates(sample: Sample) -> list[datetime]:
    return [parse_date(session.date_str or "") for session in sample.sessions]


def asked(sample: Sample) -> datetime:
    return parse_date(sample.raw["question_date"])


def session_ids(sample: Sample) -> list[str]:
    return [session.session_id for session in sample.sessions]


def evidence_in_order(sample: Sample) -> list[str]:
    return [name for name in session_ids(sample) if name in ask(sample).evidence.session_ids]


def sessions_of(samples: list[Sample]) -> list[Session]:
    return [session for sample in samples for session in sample.sessions]


def starts_with_assistant(session: Session) -> bool:
    return session.messages[0].role == "assistant"


def repeats_a_role(session: Session) -> bool:
    return any(one.role == two.role for one, two in pairwise(session.messages))


def by_id(samples: list[Sample]) -> dict[str, Sample]:
    return {sample.sample_id: sample for sample in samples}


def verdict(sample: Sample, turn_ids: list[str]) -> str:
    case = Case.of("lme", "sample", sample, ask(sample))
    context, _ = read_context([Recalled("...", turn_ids=turn_ids)], History.of(sample), 10)
    return EvidenceJudge().judge(case, None, context).value


# -- the oracle file ---------------------------------------------------------------------------------


def test_it_is_that_file(oracle_file: Path) -> None:
    with gzip.open(oracle_file) as file:
        assert hashlib.file_digest(file, "sha256").hexdigest() == SHA256


def test_nothing_of_the_histories_is_lost(oracle: list[Sample]) -> None:
    sessions = sessions_of(oracle)
    assert len(oracle) == 500
    assert len(sessions) == 948
    assert len({session.session_id for session in sessions}) == 940
    assert sum(len(session.messages) for session in sessions) == 10_960
    assert Counter(len(sample.sessions) for sample in oracle) == {1: 176, 2: 250, 3: 41, 4: 19, 5: 11, 6: 3}
    turns = [sum(len(session.messages) for session in sample.sessions) for sample in oracle]
    assert (min(turns), max(turns)) == (2, 72)


def test_types_are_counted_by_their_names(oracle: list[Sample]) -> None:
    assert Counter(kind(sample) for sample in oracle) == TYPES


def test_the_order_is_in_blocks_of_one_type(oracle: list[Sample]) -> None:
    blocks = [(name, len(list(group))) for name, group in groupby(map(kind, oracle))]
    assert blocks == [
        ("temporal_reasoning", 60),
        ("multi_session", 62),
        ("knowledge_update", 78),
        ("single_session_preference", 30),
        ("single_session_assistant", 56),
        ("single_session_user", 70),
        ("temporal_reasoning", 73),
        ("multi_session", 71),
    ]


def test_every_question_has_an_id_and_a_name_of_its_own(oracle: list[Sample]) -> None:
    names = [sample.sample_id for sample in oracle]
    assert names == [ask(sample).question_id for sample in oracle]
    assert len(set(names)) == len({ask(sample).uid for sample in oracle}) == 500
    assert sum(bool(re.fullmatch(r"[0-9a-f]{8}(_abs)?", name)) for name in names) == 393
    assert sum(name.startswith("gpt4_") for name in names) == 107


def test_thirty_questions_cannot_be_answered(oracle: list[Sample]) -> None:
    unanswerable = [sample for sample in oracle if ask(sample).expects_abstention]
    assert len(unanswerable) == 30
    assert Counter(kind(sample) for sample in unanswerable) == {
        "multi_session": 12,
        "temporal_reasoning": 6,
        "knowledge_update": 6,
        "single_session_user": 6,
    }
    for sample in unanswerable:
        pair = ask(sample)
        assert (pair.gold, pair.trap) == (None, None)
        assert pair.answer  # an explanation
        assert pair.evidence.session_ids
        assert all("_abs" in name for name in pair.evidence.session_ids)  # a second leak
    known = {sample.sample_id for sample in oracle}
    without_twin = [s.sample_id for s in unanswerable if s.sample_id.removesuffix("_abs") not in known]
    assert without_twin == ["e5ba910e_abs"]


def test_golds_are_text_and_literal(oracle: list[Sample]) -> None:
    numbers = [sample for sample in oracle if isinstance(ask(sample).raw["answer"], int)]
    assert len(numbers) == 32
    assert Counter(map(kind, numbers)) == {
        "multi_session": 22,
        "temporal_reasoning": 8,
        "knowledge_update": 2,
    }
    found = by_id(oracle)
    assert (ask(found["0f05491a"]).gold, ask(found["a2f3aa27"]).gold) == ("120", "1300")
    for sample in oracle:
        pair = ask(sample)
        assert pair.answer == str(pair.raw["answer"])
        assert pair.gold == (None if pair.expects_abstention else pair.answer)
    texts = [ask(s).answer for s in oracle if isinstance(ask(s).raw["answer"], str)]
    assert len(texts) == 468
    assert sum(bool(re.fullmatch(r"\d+(\.\d+)?", text)) for text in texts) == 55
    assert sum("acceptable" in text for text in texts) == 36  # alternatives stay in
    rubrics = [ask(sample).answer for sample in oracle if kind(sample) == "single_session_preference"]
    assert max(map(len, rubrics)) == 604


def test_dates_have_one_shape_and_right_weekdays(oracle: list[Sample]) -> None:
    texts = [text for s in oracle for text in (s.raw["question_date"], *(x.date_str for x in s.sessions))]
    assert len(texts) == 1448
    days = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
    for text in texts:
        match = re.fullmatch(r"\d{4}/\d{2}/\d{2} \(([A-Z][a-z]{2})\) \d{2}:\d{2}", text)
        assert match
        assert match[1] == days[parse_date(text).weekday()]
        assert 2021 <= parse_date(text).year <= 2024


def test_every_marked_turn_is_a_group_and_no_other_is(oracle: list[Sample]) -> None:
    marked = Counter(
        (turn["role"], turn["has_answer"])
        for sample in oracle
        for turns in ask(sample).raw["haystack_sessions"]
        for turn in turns
    )
    assert sum(count for (_, mark), count in marked.items() if mark is False) == 10_064
    assert (marked["user", True], marked["assistant", True]) == (842, 54)
    assert sum(len(ask(sample).evidence.groups) for sample in oracle) == 896
    user_side = 0
    for sample in oracle:
        evidence = ask(sample).evidence
        assert evidence.groups == [[member] for member in evidence.turn_ids]
        places = [tuple(map(int, member[1:].split(":"))) for member in evidence.turn_ids]
        raw = ask(sample).raw
        kept = {
            (name, message["content"], message["role"])
            for name, turns in zip(raw["haystack_session_ids"], raw["haystack_sessions"], strict=True)
            for message in turns
            if message["has_answer"]
        }
        found = set()
        for s, t in places:
            message = sample.sessions[s - 1].messages[t - 1]
            found.add((sample.sessions[s - 1].session_id, message.content, message.role))
        assert found == kept
        user_side += any(role == "user" for _, _, role in found) and not ask(sample).expects_abstention
    assert user_side == 500 - 30 - 51


def test_every_answerable_question_has_evidence(oracle: list[Sample]) -> None:
    groups = {True: Counter[int](), False: Counter[int]()}
    for sample in oracle:
        groups[ask(sample).expects_abstention][len(ask(sample).evidence.groups)] += 1
    assert groups[True] == {0: 21, 1: 8, 2: 1}
    assert min(groups[False]) == 1
    in_vain = [
        session
        for sample in oracle
        if not ask(sample).expects_abstention
        for s, session in enumerate(sample.sessions, start=1)
        if not any(member.startswith(f"D{s}:") for member in ask(sample).evidence.turn_ids)
    ]
    assert len(in_vain) == 45


def test_the_evidence_is_found_by_who_returns_it_and_by_nobody_else(oracle: list[Sample]) -> None:
    verdicts = Counter(verdict(sample, ask(sample).evidence.turn_ids) for sample in oracle)
    assert verdicts == {"correct": 470, "n/a": 30}
    assert Counter(verdict(sample, []) for sample in oracle)["correct"] == 0


def test_34_histories_are_unsorted_and_all_temporal(
    oracle: list[Sample], oracle_as_file: list[Sample]
) -> None:
    unsorted = [sample for sample in oracle_as_file if dates(sample) != sorted(dates(sample))]
    assert Counter(map(kind, unsorted)) == {"temporal_reasoning": 34}
    assert all(dates(sample) == sorted(dates(sample)) for sample in oracle)
    pairs = list(zip(oracle, oracle_as_file, strict=True))
    assert sum(evidence_in_order(one) != evidence_in_order(two) for one, two in pairs) == 34
    for one, two in pairs:
        assert sorted(session_ids(one)) == sorted(session_ids(two))
        assert ask(one).uid == ask(two).uid
        assert len(ask(one).evidence.groups) == len(ask(two).evidence.groups)
        assert session_ids(two) == ask(two).evidence.session_ids == ask(two).raw["haystack_session_ids"]


def test_43_questions_have_a_session_after_their_minute_and_none_after_their_day(
    oracle: list[Sample],
) -> None:
    assert sum(any(date > asked(sample) for date in dates(sample)) for sample in oracle) == 43
    assert not any(date.date() > asked(sample).date() for sample in oracle for date in dates(sample))


def test_no_history_has_an_id_or_a_stamp_twice_here(oracle: list[Sample]) -> None:
    assert all(len(set(session_ids(sample))) == len(sample.sessions) for sample in oracle)
    assert all(len(set(dates(sample))) == len(sample.sessions) for sample in oracle)


def test_eight_sessions_are_shared_by_two_questions(oracle: list[Sample]) -> None:
    held: dict[str, list[Session]] = {}
    for session in sessions_of(oracle):
        held.setdefault(session.session_id, []).append(session)
    shared = [sessions for sessions in held.values() if len(sessions) > 1]
    assert len(shared) == 8
    for one, two in shared:
        assert [(m.role, m.content) for m in one.messages] == [(m.role, m.content) for m in two.messages]


def test_turns_do_not_come_in_pairs(oracle: list[Sample]) -> None:
    sessions = sessions_of(oracle)
    assert Counter(m.role for session in sessions for m in session.messages) == {
        "user": 5479,
        "assistant": 5481,
    }
    assert sum(map(starts_with_assistant, sessions)) == 5
    assert sum(map(repeats_a_role, sessions)) == 1
    assert sum(len(session.messages) % 2 for session in sessions) == 8
    assert all(m.turn_id is None for session in sessions for m in session.messages)


def test_nothing_that_marks_evidence_crosses_the_boundary(
    oracle: list[Sample], s_sample: list[Sample]
) -> None:
    for sample in (*oracle, *s_sample):
        fed = list(History.of(sample).sessions())
        assert [session.session_id for session in fed] == [f"s{n}" for n in range(1, len(fed) + 1)]
        own = {session.session_id for session in sample.sessions} | {sample.sample_id}
        for n, session in enumerate(fed, start=1):
            assert set(vars(session)) == {"session_id", "messages", "date_str", "title", "agent_id"}
            assert (session.title, session.agent_id) == (None, None)
            for message in session.messages:
                assert set(vars(message)) == {"role", "content", "turn_id", "date_str"}
                assert re.fullmatch(rf"D{n}:\d+", message.turn_id or "")
                assert message.role in ("user", "assistant")
                assert message.date_str == session.date_str
                assert message.content.strip() not in own


# -- skimming ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["oracle", "s_sample"])
def test_skimming_gives_what_reading_gives(name: str, request: pytest.FixtureRequest) -> None:
    samples: list[Sample] = request.getfixturevalue(name)
    for sample in samples:
        skimmed = skim(json.dumps(ask(sample).raw).encode())
        assert skimmed is not None
        brief = Brief.of(ask(sample))
        assert brief.refs or brief.expects_abstention
        brief.refs = []
        assert (skimmed.sample_id, skimmed.briefs) == (sample.sample_id, [brief])


# -- six instances of S ------------------------------------------------------------------------------


def test_the_six_instances_are_whole(s_sample: list[Sample]) -> None:
    assert [sample.sample_id for sample in s_sample] == S_IDS
    assert [len(sample.sessions) for sample in s_sample] == [62, 44, 47, 45, 49, 41]
    assert [sum(len(x.messages) for x in s.sessions) for s in s_sample] == [564, 436, 482, 465, 614, 460]
    assert [kind(sample) for sample in s_sample] == [
        "single_session_assistant",
        "knowledge_update",
        *["temporal_reasoning"] * 4,
    ]


def test_a_duplicate_session_id_is_two_sessions(s_sample: list[Sample]) -> None:
    twice = {
        sample.sample_id: [name for name, count in Counter(session_ids(sample)).items() if count > 1]
        for sample in s_sample
    }
    assert {name: len(found) for name, found in twice.items() if found} == {
        "18bc8abd": 1,
        "gpt4_c27434e8_abs": 1,
    }
    for name in ("18bc8abd", "gpt4_c27434e8_abs"):
        sample = by_id(s_sample)[name]
        one, two = (session for session in sample.sessions if session.session_id in twice[name])
        assert one.date_str != two.date_str
        assert [(m.role, m.content) for m in one.messages] == [(m.role, m.content) for m in two.messages]
        assert one.session_id not in ask(sample).evidence.session_ids  # filler


def test_a_stamp_is_no_key_either(s_sample: list[Sample]) -> None:
    shared = [sample.sample_id for sample in s_sample if len(set(dates(sample))) < len(sample.sessions)]
    assert shared == ["gpt4_2655b836", "gpt4_4edbafa2"]


def test_five_of_the_six_are_unsorted(s_sample: list[Sample], s_file: Path) -> None:
    as_file = load(s_file, "file")
    unsorted = [sample.sample_id for sample in as_file if dates(sample) != sorted(dates(sample))]
    assert unsorted == S_IDS[1:]
    assert all(dates(sample) == sorted(dates(sample)) for sample in s_sample)
    # disorder is inside a day only
    for sample in as_file:
        days = [date.date() for date in dates(sample)]
        assert days == sorted(days)
    pairs = zip(s_sample, as_file, strict=True)
    assert sum(evidence_in_order(one) != evidence_in_order(two) for one, two in pairs) == 3


def test_evidence_after_the_questions_minute_is_kept(s_sample: list[Sample]) -> None:
    late = {}
    for sample in s_sample:
        found = [
            s.session_id
            for s, date in zip(sample.sessions, dates(sample), strict=True)
            if date > asked(sample)
        ]
        if set(found) & set(ask(sample).evidence.session_ids):
            late[sample.sample_id] = found
        assert all(date.date() <= asked(sample).date() for date in dates(sample))
    assert list(late) == ["gpt4_c27434e8_abs", "gpt4_2655b836", "gpt4_4edbafa2"]


def test_a_blank_turn_is_kept_and_not_fed(s_sample: list[Sample]) -> None:
    blank = {
        sample.sample_id: [m for s in sample.sessions for m in s.messages if not m.content.strip()]
        for sample in s_sample
    }
    assert {name: len(found) for name, found in blank.items() if found} == {"gpt4_4edbafa2": 1}
    history = History.of(by_id(s_sample)["gpt4_4edbafa2"])
    assert history.blank_turns == 1
    assert sum(len(session.messages) for session in history.sessions()) == 459


def test_has_answer_is_absent_from_most_turns(s_sample: list[Sample]) -> None:
    marks = Counter(
        turn.get("has_answer", "absent")
        for sample in s_sample
        for turns in ask(sample).raw["haystack_sessions"]
        for turn in turns
    )
    assert marks == {"absent": 2897, False: 115, True: 9}
    assert [ask(sample).evidence.turn_ids for sample in s_sample] == [
        ["D36:2"],
        ["D17:3", "D44:1"],
        ["D44:1"],
        ["D21:3", "D38:1"],
        ["D49:1"],
        ["D17:1", "D39:1"],
    ]
    verdicts = [verdict(sample, ask(sample).evidence.turn_ids) for sample in s_sample]
    assert verdicts == ["correct", "correct", "n/a", "correct", "correct", "correct"]


def test_the_id_of_a_session_gives_the_evidence_away(s_sample: list[Sample]) -> None:
    for sample in s_sample:
        marked = {name for name in session_ids(sample) if name.startswith("answer_")}
        assert marked == set(ask(sample).evidence.session_ids)


def test_a_number_and_an_explanation_as_answers(s_sample: list[Sample]) -> None:
    number, refusal = (ask(by_id(s_sample)[name]) for name in ("71017276", "gpt4_c27434e8_abs"))
    assert (number.raw["answer"], number.answer, number.gold) == (4, "4", "4")
    assert (refusal.expects_abstention, refusal.gold, refusal.trap) == (True, None, None)
    assert len(refusal.answer) > 20


def test_sessions_begin_with_either_side(s_sample: list[Sample]) -> None:
    assert sum(map(starts_with_assistant, sessions_of(s_sample))) == 27


def test_oracle_and_s_agree_in_all_but_the_dates(oracle: list[Sample], s_sample: list[Sample]) -> None:
    def told(sample: Sample) -> dict[str, list[tuple[str, str]]]:
        return {
            session.session_id: [(m.role, m.content) for m in session.messages]
            for session in sample.sessions
            if session.session_id in ask(sample).evidence.session_ids
        }

    def facts(sample: Sample) -> tuple[Any, ...]:
        pair = ask(sample)
        return (pair.question, pair.answer, pair.uid, pair.question_type, set(pair.evidence.session_ids))

    for sample in s_sample:
        other = by_id(oracle)[sample.sample_id]
        assert facts(sample) == facts(other)
        assert told(sample) == told(other)
        assert sample.raw["question_date"] != other.raw["question_date"]
        assert not {s.date_str for s in other.sessions} & {
            s.date_str for s in sample.sessions if s.session_id in ask(sample).evidence.session_ids
        }
