"""What LongMemEval's file does to a careless reader, trap by trap, told with records of our own."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from longmemeval_records import Record, bakery, read_one, record, turn

from pytest_himga.data.identity import uid_of
from pytest_himga.data.longmemeval import KEYS, LONGMEMEVAL, load_longmemeval, type_labels
from pytest_himga.data.schema import Case, EvidenceRef, Message, QAPair, QuestionType, Sample, Session
from pytest_himga.errors import DatasetError, DatasetWarning
from pytest_himga.judge.evidence import EvidenceJudge
from pytest_himga.memory.boundary import History, read_context
from pytest_himga.memory.protocol import Recalled

Write = Callable[..., Path]

MORNING, NOON, EVENING = (f"2023/06/01 (Thu) {hour}" for hour in ("08:00", "12:30", "22:16"))


def ids(sample: Sample) -> list[str]:
    return [session.session_id for session in sample.sessions]


def only_question(sample: Sample) -> QAPair:
    (pair,) = sample.qa_pairs
    return pair


def verdict(sample: Sample, *turn_ids: str) -> tuple[str, str]:
    """What the evidence judge says of a memory that gives back turns by the ids that it was fed."""
    case = Case.of("lme", "sample", sample, only_question(sample))
    context, _ = read_context([Recalled("...", turn_ids=list(turn_ids))], History.of(sample), 10)
    found = EvidenceJudge().judge(case, None, context)
    return found.value, found.reason


# -- a good record -----------------------------------------------------------------------------------


def test_a_good_record_is_taken_over_whole() -> None:
    data = bakery()
    sample, said = read_one(data)
    first, second, third = data["haystack_dates"]
    assert said == []
    assert sample == Sample(
        sample_id="5eed0001",
        dataset="longmemeval",
        sessions=[
            Session(
                "9c1f_2",
                [
                    Message("user", "How long does rye need?", date_str=first),
                    Message("assistant", "About an hour.", date_str=first),
                ],
                first,
            ),
            Session(
                "answer_77aa_1",
                [
                    Message("user", "My sourdough starter is called Gustav now.", date_str=second),
                    Message("assistant", "A fine name for a starter.", date_str=second),
                ],
                second,
            ),
            Session(
                "sharegpt_x_0",
                [
                    Message("assistant", "Good morning!", date_str=third),
                    Message("user", "Plan my week.", date_str=third),
                ],
                third,
            ),
        ],
        qa_pairs=[
            QAPair(
                question_id="5eed0001",
                question="What did I name the sourdough starter?",
                answer="Gustav",
                question_type=QuestionType.SINGLE_SESSION_USER,
                evidence=EvidenceRef(["D2:1"], ["answer_77aa_1"], [["D2:1"]]),
                raw=data,
                gold="Gustav",
                uid=uid_of("What did I name the sourdough starter?", "single-session-user", 0),
            )
        ],
        raw={"question_date": "2023/06/09 (Fri) 12:00"},
    )


def test_the_original_record_is_kept_and_not_copied() -> None:
    data = bakery()
    sample, _ = read_one(data)
    assert only_question(sample).raw is data
    assert "haystack_sessions" not in sample.raw


def test_a_question_knows_when_it_is_asked() -> None:
    sample, _ = read_one(bakery())
    case = Case.of("lme", "sample", sample, only_question(sample))
    assert case.date_str == "2023/06/09 (Fri) 12:00"


def test_the_family_says_what_it_is() -> None:
    assert (LONGMEMEVAL.name, LONGMEMEVAL.keys, LONGMEMEVAL.id_field) == ("longmemeval", KEYS, "question_id")
    assert sorted(KEYS) == ["haystack_sessions", "question", "question_id"]
    assert list(type_labels("himga").items()) == [
        (name, name)
        for name in (
            "single_session_user",
            "single_session_assistant",
            "single_session_preference",
            "temporal_reasoning",
            "knowledge_update",
            "multi_session",
        )
    ]


# -- files -------------------------------------------------------------------------------------------


def test_a_list_one_record_gzip_and_a_folder_read_alike(write: Write, tmp_path: Path) -> None:
    samples = load_longmemeval(write([bakery()], "list.json"))
    packed = tmp_path / "packed.json.gz"
    packed.write_bytes(gzip.compress(json.dumps([bakery()]).encode()))
    write(bakery(), "folder/a.json")
    assert [sample.sample_id for sample in samples] == ["5eed0001"]
    assert samples == load_longmemeval(str(write(bakery(), "one.json")))
    assert samples == load_longmemeval(packed) == load_longmemeval(tmp_path / "folder")


def test_a_question_with_and_without_abs_are_two_samples(write: Write) -> None:
    samples = load_longmemeval(write([bakery(), bakery(question_id="5eed0001_abs"), bakery(question_id=7)]))
    assert [sample.sample_id for sample in samples] == ["5eed0001", "5eed0001_abs", "7"]


def test_two_samples_of_one_id_name_both_files(write: Write, tmp_path: Path) -> None:
    first, second = write(bakery(), "d/a.json"), write(bakery(), "d/b.json")
    with pytest.raises(DatasetError) as caught:
        load_longmemeval(tmp_path / "d")
    assert str(caught.value).startswith(f"{second}: sample '5eed0001', field question_id: ")
    assert str(first) in str(caught.value)


def test_warnings_are_dataset_warnings_that_name_the_file(write: Write) -> None:
    path = write([bakery(question_type="trivia")])
    with pytest.warns(DatasetWarning) as caught:
        load_longmemeval(path)
    assert [str(warning.message) for warning in caught] == [
        (
            f"{path}: sample '5eed0001', field question_type: 'trivia' is no type of LongMemEval; "
            "counted as single_session_user"
        )
    ]


# -- the order of sessions ---------------------------------------------------------------------------


def dated(*dates: str | None, **fields: object) -> Record:
    """One session per date, named a, b, c, ... in the file's order; each says its name."""
    return record(
        *((name, date, [turn("user", name)]) for name, date in zip("abcdefgh", dates, strict=False)),
        **fields,
    )


@pytest.mark.parametrize(
    ("dates", "by_time"),
    [
        ((EVENING, MORNING, NOON), "bca"),
        ((MORNING, NOON, EVENING), "abc"),
        ((NOON, NOON, MORNING, NOON), "cabd"),  # equal stamps stay as in the file
        (("2023/06/01 (Thu) 09:00", "2023/06/01 (Thu) 10:00", "2023/05/31 (Wed) 23:00"), "cab"),
        (("2023/06/01 (Mon) 09:00", "2023/06/01 (Fri) 08:00"), "ba"),  # the weekday says nothing
    ],
)
def test_sessions_come_by_time_or_as_in_the_file(dates: tuple[str, ...], by_time: str) -> None:
    data = dated(*dates)
    sorted_sample, said = read_one(data)
    assert "".join(ids(sorted_sample)) == by_time
    # the three parallel lists stay together
    assert [(s.session_id, s.date_str, s.messages[0].content) for s in sorted_sample.sessions] == [
        (name, data["haystack_dates"]["abcd".index(name)], name) for name in by_time
    ]
    as_file, said_again = read_one(data, order="file")
    assert ids(as_file) == data["haystack_session_ids"]
    assert said == said_again == []


@pytest.mark.parametrize(
    ("dates", "by_time"),
    [
        ((EVENING, None, MORNING), "cab"),  # goes with the one before it
        ((EVENING, None, None, MORNING), "dabc"),
        ((None, EVENING, MORNING), "acb"),  # nothing before it: it stays first
        ((EVENING, MORNING, None, MORNING), "bcda"),
    ],
)
def test_a_session_without_a_date_stays_behind_its_predecessor(
    dates: tuple[str | None, ...], by_time: str
) -> None:
    sample, said = read_one(dated(*dates))
    assert "".join(ids(sample)) == by_time
    assert said == [
        f"'5eed0001', field haystack_dates[{number}]: missing; its session is fed without a date, "
        "right behind the one before it"
        for number, date in enumerate(dates)
        if date is None
    ]
    undated = [session for session in sample.sessions if session.date_str is None]
    assert len(undated) == dates.count(None)
    assert {message.date_str for session in undated for message in session.messages} == {None}


def test_equal_stamps_stay_as_in_the_file_whatever_the_ids() -> None:
    names = ["zoo", "apple", "mill"]
    sample, _ = read_one(record(*((name, NOON, [turn("user", name)]) for name in names)))
    assert ids(sample) == names


@given(st.lists(st.sampled_from([MORNING, NOON, EVENING, None]), min_size=1, max_size=8))
def test_ordering_loses_nothing_and_sorts_what_has_a_date(dates: list[str | None]) -> None:
    sample, _ = read_one(dated(*dates))
    assert sorted(ids(sample)) == list("abcdefgh"[: len(dates)])
    stamps = [session.date_str for session in sample.sessions if session.date_str]
    assert stamps == sorted(stamps)


def moved_house() -> Record:
    """An update whose time stamps contradict the file: the new flat is dated hours before the old one."""
    return record(
        (
            "answer_b0_1",
            EVENING,
            [
                turn("user", "We moved to a flat in Lindow Street.", has_answer=True),
                turn("assistant", "Nice."),
            ],
        ),
        ("filler_4", NOON, [turn("user", "Name three rivers.")]),
        (
            "answer_b0_2",
            MORNING,
            [turn("user", "Ah."), turn("user", "We moved again, to Quay Road.", has_answer=True)],
        ),
        question="Where do I live?",
        answer="Quay Road",
        question_type="knowledge-update",
    )


def test_a_sorted_feed_can_make_the_gold_look_stale_so_the_order_can_be_chosen() -> None:
    by_time, _ = read_one(moved_house(), "time")
    as_file, _ = read_one(moved_house(), "file")

    def last_told(sample: Sample) -> str:
        told = [m.content for s in History.of(sample).sessions() for m in s.messages if "moved" in m.content]
        return told[-1]

    assert "Lindow Street" in last_told(by_time)  # the flat that was left is what the memory hears last
    assert "Quay Road" in last_told(as_file)
    assert only_question(by_time).gold == only_question(as_file).gold == "Quay Road"
    assert only_question(by_time).uid == only_question(as_file).uid


def test_evidence_goes_where_its_session_goes() -> None:
    by_time, _ = read_one(moved_house(), "time")
    as_file, _ = read_one(moved_house(), "file")
    assert only_question(by_time).evidence == EvidenceRef(
        ["D1:2", "D3:1"], ["answer_b0_1", "answer_b0_2"], [["D1:2"], ["D3:1"]]
    )
    assert only_question(as_file).evidence == EvidenceRef(
        ["D1:1", "D3:2"], ["answer_b0_1", "answer_b0_2"], [["D1:1"], ["D3:2"]]
    )
    for sample in (by_time, as_file):
        assert verdict(sample, *only_question(sample).evidence.turn_ids)[0] == "correct"


def test_another_order_is_refused() -> None:
    with pytest.raises(DatasetError, match=r"^There is no session order 'tiem'; did you mean time\?$"):
        read_one(bakery(), "tiem")


# -- sessions after the question ---------------------------------------------------------------------


def test_nothing_is_dropped_because_its_minute_lies_after_the_question() -> None:
    sample, said = read_one(dated(MORNING, EVENING, question_date=NOON))
    assert ids(sample) == ["a", "b"]
    assert said == []


def test_a_session_of_a_later_day_is_kept_aloud() -> None:
    data = dated("2023/06/02 (Fri) 00:01", MORNING, "2023/07/01 (Sat) 09:00", question_date=EVENING)
    sample, said = read_one(data)
    assert ids(sample) == ["b", "a", "c"]
    assert said == [
        "'5eed0001', field haystack_dates: [0], [2] after the day of the question, 2023-06-01; kept"
    ]


# -- sessions and turns ------------------------------------------------------------------------------


def test_two_sessions_with_one_id_stay_two_with_their_own_dates() -> None:
    same = [turn("user", "Tell me about kites."), turn("assistant", "They fly.")]
    data = record(
        ("ultrachat_9", NOON, same), ("x_1", NOON, [turn("user", "Hi.")]), ("ultrachat_9", EVENING, same)
    )
    sample, said = read_one(data)
    assert [(session.session_id, session.date_str) for session in sample.sessions] == [
        ("ultrachat_9", NOON),
        ("x_1", NOON),
        ("ultrachat_9", EVENING),
    ]
    fed = list(History.of(sample).sessions())
    assert [session.session_id for session in fed] == ["s1", "s2", "s3"]
    assert said == []


def test_a_session_without_turns_is_left_out_aloud_and_its_evidence_too() -> None:
    data = bakery()
    data["haystack_sessions"][0] = []
    data["answer_session_ids"] = ["9c1f_2", "answer_77aa_1"]
    sample, said = read_one(data)
    assert ids(sample) == ["answer_77aa_1", "sharegpt_x_0"]
    assert only_question(sample).evidence == EvidenceRef(["D1:1"], ["answer_77aa_1"], [["D1:1"]])
    assert said == ["'5eed0001', field haystack_sessions[0]: the session has no messages; it is left out"]


def test_an_id_that_an_empty_session_shares_is_still_evidence() -> None:
    data = bakery()
    data["haystack_sessions"][0] = []
    data["haystack_session_ids"][0] = "answer_77aa_1"
    sample, _ = read_one(data)
    assert only_question(sample).evidence.session_ids == ["answer_77aa_1"]


@pytest.mark.parametrize(
    "roles",
    [
        ["assistant", "user"],
        ["user"],
        ["user", "user", "assistant"],
        ["system", "tool", "Grandma"],
        ["assistant", "assistant", "user", "user", "user"],
    ],
)
def test_turns_are_not_paired(roles: list[str]) -> None:
    turns = [turn(role, f"words {n}") for n, role in enumerate(roles)]
    sample, said = read_one(record(("s", NOON, turns)))
    assert [(m.role, m.content, m.turn_id) for m in sample.sessions[0].messages] == [
        (role, f"words {n}", None) for n, role in enumerate(roles)
    ]
    assert said == []


@pytest.mark.parametrize("blank", ["", " ", "\n\t"])
def test_a_blank_turn_is_kept_counted_and_not_fed(blank: str) -> None:
    turns = [turn("user", blank), turn("assistant", blank), turn("user", "It was teal.", has_answer=True)]
    sample, said = read_one(record(("s", NOON, turns)))
    assert [message.content for message in sample.sessions[0].messages] == [blank, blank, "It was teal."]
    assert only_question(sample).evidence.groups == [["D1:3"]]
    (fed,) = History.of(sample).sessions()
    assert [(message.turn_id, message.content) for message in fed.messages] == [("D1:3", "It was teal.")]
    assert said == []


def test_a_blank_turn_cannot_be_evidence() -> None:
    turns = [turn("user", " ", has_answer=True), turn("user", "It was teal.", has_answer=True)]
    sample, said = read_one(record(("s", NOON, turns)))
    assert only_question(sample).evidence.groups == [["D1:2"]]
    assert said == [
        (
            "'5eed0001', field haystack_sessions[0][0]: holds the answer and is blank, so it is not fed; "
            "it is no evidence"
        )
    ]


# -- evidence ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mark", "counts"),
    [(True, True), (False, False), (None, False), (1, False), ("true", False), ("", False), ([True], False)],
)
def test_only_a_true_has_answer_marks_a_turn(mark: object, counts: bool) -> None:
    sample, said = read_one(record(("s", NOON, [turn("user", "It was teal.", has_answer=mark)])))
    assert only_question(sample).evidence.groups == ([["D1:1"]] if counts else [])
    assert said == []


def test_assistant_turns_are_evidence_too() -> None:
    turns = [turn("user", "Which hostel?"), turn("assistant", "The Heron.", has_answer=True)]
    sample, _ = read_one(record(("s", NOON, turns)))
    assert only_question(sample).evidence.groups == [["D1:2"]]


def two_marked() -> Sample:
    return read_one(
        record(
            ("q_1", MORNING, [turn("user", "Hello."), turn("user", "I ran four miles.", has_answer=True)]),
            ("q_2", NOON, [turn("user", "Bye.")]),
            ("q_1", EVENING, [turn("user", "And six more.", has_answer=True), turn("user", "Phew.")]),
        )
    )[0]


@pytest.mark.parametrize(
    ("returned", "value"),
    [
        (["D1:2", "D3:1"], "correct"),
        (["D3:1", "D1:1", "D1:2", "D2:1"], "correct"),
        (["D1:2"], "wrong"),
        (["D1:1", "D3:2"], "wrong"),  # the right sessions and the wrong turns
    ],
)
def test_every_marked_turn_is_a_group_that_must_be_returned(returned: list[str], value: str) -> None:
    assert only_question(two_marked()).evidence.groups == [["D1:2"], ["D3:1"]]
    assert verdict(two_marked(), *returned)[0] == value


def test_the_sessions_of_the_evidence_follow_from_its_turns() -> None:
    groups = only_question(two_marked()).evidence.groups
    assert [f"s{member[1:].split(':')[0]}" for (member,) in groups] == ["s1", "s3"]
    fed = {session.session_id: session.messages for session in History.of(two_marked()).sessions()}
    assert all(any(m.turn_id == member for m in fed[f"s{member[1:].split(':')[0]}"]) for (member,) in groups)


def test_evidence_sessions_are_those_of_the_file() -> None:
    sample, said = read_one(bakery(answer_session_ids=["sharegpt_x_0", "answer_77aa_1", "elsewhere"]))
    assert only_question(sample).evidence.session_ids == ["sharegpt_x_0", "answer_77aa_1", "elsewhere"]
    assert only_question(sample).evidence.groups == [["D2:1"]]
    assert said == []


# -- abstention --------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["multi-session", "temporal-reasoning", "knowledge-update"])
def test_abstention_is_told_by_the_id_and_is_no_type(kind: str) -> None:
    explanation = "You never said so. You named the bread and not the knife."
    sample, said = read_one(bakery(question_id="5eed0001_abs", question_type=kind, answer=explanation))
    pair = only_question(sample)
    assert pair.question_type.value == kind.replace("-", "_")
    assert (pair.expects_abstention, pair.gold, pair.trap) == (True, None, None)
    assert pair.answer == explanation
    assert pair.question_id == sample.sample_id == "5eed0001_abs"
    assert said == []


@pytest.mark.parametrize("name", ["abs_5eed", "5eed_abs_1", "5eed-abs", "5eedabs", "5eed_ABS"])
def test_abs_elsewhere_in_an_id_means_nothing(name: str) -> None:
    sample, _ = read_one(bakery(question_id=name))
    pair = only_question(sample)
    assert (pair.expects_abstention, pair.gold) == (False, "Gustav")


def test_a_session_id_with_abs_in_it_means_nothing() -> None:
    data = bakery()
    data["haystack_session_ids"][1] = "answer_77aa_abs_1"
    assert not only_question(read_one(data)[0]).expects_abstention


def test_retrieval_is_not_scored_where_nothing_can_be_found() -> None:
    sample, _ = read_one(bakery(question_id="5eed0001_abs"))
    assert only_question(sample).evidence.groups == [["D2:1"]]  # some real ones have marked turns
    assert verdict(sample, "D2:1") == ("n/a", "unanswerable: there is no evidence to find")


# -- golds, types, names -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (120, "120"),
        (0, "0"),
        (-3, "-3"),
        (2.5, "2.5"),
        ("1300", "1300"),
        (" Gustav ", " Gustav "),
        ("9 days. 10 days (counting the first) would do as well.", ...),
        ("They would like advice on rye, and not on cake.\nNo shop names.", ...),
    ],
)
def test_a_gold_is_text_and_literal(raw: object, text: object) -> None:
    sample, said = read_one(bakery(answer=raw))
    pair = only_question(sample)
    assert pair.answer == pair.gold == (raw if text is ... else text)
    assert pair.raw["answer"] == raw
    assert said == []


@pytest.mark.parametrize("kind", list(type_labels()))
@pytest.mark.parametrize("separator", ["-", "_"])
def test_types_are_read_with_hyphens_and_with_underscores(kind: str, separator: str) -> None:
    raw = kind.replace("_", separator)
    sample, said = read_one(bakery(question_type=raw))
    assert only_question(sample).question_type.value == kind
    assert only_question(sample).uid == uid_of("What did I name the sourdough starter?", raw, 0)
    assert said == []


@pytest.mark.parametrize(
    "raw", ["trivia", "abstention", "multi_hop", "", "Multi-Session", 4, ["multi-session"]]
)
def test_an_unknown_type_is_counted_as_single_session_user_aloud(raw: object) -> None:
    sample, said = read_one(bakery(question_type=raw))
    assert only_question(sample).question_type is QuestionType.SINGLE_SESSION_USER
    assert said == [
        f"'5eed0001', field question_type: {raw!r} is no type of LongMemEval; counted as single_session_user"
    ]


def test_a_uid_outlives_a_corrected_gold_another_order_and_other_sessions() -> None:
    uid = only_question(read_one(bakery())[0]).uid
    other = bakery(answer="Gustav II", question_id="other", question_date=None)
    other["haystack_sessions"][0].append(turn("user", "More."))
    assert only_question(read_one(other, "file")[0]).uid == uid
    assert only_question(read_one(bakery(question="Who?"))[0]).uid != uid


# -- the boundary ------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", ["time", "file"])
def test_no_mark_of_the_evidence_crosses_the_boundary(order: str) -> None:
    data = bakery(
        question_id="leakid_abs",
        question_type="temporal-reasoning",
        answer="LEAKGOLD",
        answer_session_ids=["answer_leak_abs_1"],
    )
    data["haystack_session_ids"] = ["leak_noise", "answer_leak_abs_1", "leak_noise"]
    sample, _ = read_one(data, order)
    fed = list(History.of(sample).sessions())
    assert [session.session_id for session in fed] == ["s1", "s2", "s3"]
    assert [m.turn_id for session in fed for m in session.messages] == [
        "D1:1", "D1:2", "D2:1", "D2:2", "D3:1", "D3:2",
    ]  # fmt: skip
    shown = repr(fed) + repr([vars(m) for session in fed for m in session.messages])
    for secret in ("leak", "LEAK", "_abs", "answer_", "has_answer", "temporal", "reasoning"):
        assert secret not in shown
    # a message has these fields and no other, and a marked turn looks like any other
    assert {frozenset(vars(m)) for session in fed for m in session.messages} == {
        frozenset({"role", "content", "turn_id", "date_str"})
    }


def test_no_message_of_a_sample_carries_a_mark() -> None:
    sample, _ = read_one(moved_house())
    assert "has_answer" not in repr(sample.sessions)
