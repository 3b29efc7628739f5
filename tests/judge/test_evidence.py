"""The evidence judge: which contexts hold the evidence, which do not, and which cannot be told."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pytest_himga.data.schema import Case, EvidenceRef, Message, QAPair, QuestionType, Sample, Session
from pytest_himga.judge.evidence import (
    REWRITES,
    SESSIONS_ONLY,
    EvidenceJudge,
    coverage,
    is_in_doubt,
    quotes,
    words_of,
)
from pytest_himga.judge.verdict import Verdict
from pytest_himga.memory.boundary import History, read_context
from pytest_himga.memory.protocol import Context, Recalled
from pytest_himga.memory.reference import FullContextMemory, NullMemory

SESSIONS = [
    Session(
        "1",
        [
            Message("Ada", "I planted twelve tulips beside the old pump.", "D1:1"),
            Message("Ben", "Yes, sure!", "D1:2"),
            Message("Ada", "[Image: a red wheelbarrow] Look what I found today", "D1:3"),
            Message("Ben", "[Image: a heron]", "D1:4"),
        ],
        "1 May",
    ),
    Session(
        "2",
        [
            Message("Ben", "Caf\u00e9 Stra\u00dfe: it's 5\u00bd km -- or \u2460 hour, isn't it?", "D2:1"),
            Message("Ada", "Yes, sure!", "D2:2"),
        ],
        "2 May",
    ),
]
SAMPLE = Sample("garden", "locomo", SESSIONS, [])


def case(*groups: str | list[str], sample: Sample = SAMPLE, **more) -> Case:
    """A question whose evidence groups these are; a group of one may be written as its only member."""
    lists = [[group] if isinstance(group, str) else group for group in groups]
    evidence = EvidenceRef([member for group in lists for member in group], groups=lists)
    question = QAPair("0", "?", "an answer", QuestionType.SINGLE_HOP, evidence, **more)
    return Case.of("mini", "garden", replace(sample, qa_pairs=[question]), question)


def judged(context: str | list[Recalled] | Context, *groups: str | list[str], **more) -> Verdict:
    if isinstance(context, list):
        context = Context("\n".join(item.text for item in context), tuple(context))
    elif isinstance(context, str):
        context = Context(context)
    return EvidenceJudge().judge(case(*groups, **more), None, context)


def found(text: str, turn_id: str) -> bool:
    """Whether a memory that is known to quote returned this turn."""
    return coverage(case(turn_id), Context(text)).found == (True,)


# -- by ids ---------------------------------------------------------------------------------------


def test_all_evidence_by_ids_is_correct():
    verdict = judged([Recalled("x", ("D1:1",)), Recalled("y", ("D9:9", "D2:1"))], "D1:1", "D2:1")
    assert verdict == Verdict("correct", 1.0, "2 of 2 evidence turns in the context")


def test_some_evidence_is_wrong_with_its_share_as_score():
    verdict = judged([Recalled("x", ("D1:1",))], "D1:1", "D2:1", "D2:2")
    assert (verdict.value, verdict.score) == ("wrong", pytest.approx(1 / 3))
    assert verdict.reason == "1 of 3 evidence turns in the context"


def test_no_evidence_is_wrong_with_score_0():
    assert judged([Recalled("x", ("D1:2",))], "D1:1") == Verdict(
        "wrong", 0.0, "0 of 1 evidence turn in the context"
    )


def test_the_answer_is_not_read():
    context = Context("", (Recalled("x", ("D1:1",)),))
    for answer in (None, "", "wrong", "an answer"):
        assert EvidenceJudge().judge(case("D1:1"), answer, context).value == "correct"


@pytest.mark.parametrize(
    ("ids", "value"), [(["a"], "correct"), (["b"], "correct"), (["a", "b"], "correct"), (["c"], "wrong")]
)
def test_any_member_of_a_group_hits_it(ids, value):
    assert judged([Recalled("x", tuple(ids))], ["a", "b"]).value == value


def test_every_group_must_be_hit():
    verdict = judged([Recalled("x", ("b", "a"))], ["a", "b"], ["c", "d"])
    assert (verdict.value, verdict.score) == ("wrong", 0.5)


def test_session_ids_hit_groups_of_sessions():
    assert judged([Recalled("x", session_ids=("s-7",))], ["s-6", "s-7"]).value == "correct"
    assert judged([Recalled("x", session_ids=("s-5",))], ["s-6", "s-7"]).value == "wrong"


def test_where_ids_came_back_they_decide_and_not_the_text():
    text = SESSIONS[0].messages[0].content
    assert judged([Recalled(text, ("D1:2",))], "D1:1").value == "wrong"


def test_things_without_ids_are_read_beside_things_with_them():
    mixed = [Recalled("x", ("D1:1",)), Recalled(f"Ben said: {SESSIONS[1].messages[0].content}")]
    assert judged(mixed, "D1:1", "D2:1").value == "correct"
    wrong_way_round = [Recalled(SESSIONS[1].messages[0].content, ("D1:1",)), Recalled("nothing")]
    assert judged(wrong_way_round, "D1:1", "D2:1").score == 0.5


def test_a_thing_with_a_session_id_only_is_read_for_its_turns():
    said = Recalled(SESSIONS[0].messages[0].content, session_ids=("1",))
    assert judged([said], "D1:1").value == "correct"


def test_evidence_is_not_pieced_together_from_two_things():
    halves = [Recalled("I planted twelve tulips"), Recalled("beside the old pump. Yes, sure!")]
    assert not coverage(case("D1:1"), Context("", tuple(halves))).found[0]


# -- by text --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "I planted twelve tulips beside the old pump.",
        "- Ada (1 May): I planted twelve tulips beside the old pump. Lovely.",
        "I PLANTED twelve\n\ttulips\u00a0beside the old pump",
        "i planted, twelve tulips; beside 'the' old-pump!!!",
        "**I planted** _twelve_ tulips beside the old pump",
        "\uff29 planted twelve tulips beside the old pump",
    ],
)
def test_a_turn_is_found_whatever_case_punctuation_and_white_space_became_of_it(text):
    assert found(text, "D1:1")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "I planted twelve tulips beside the pump.",
        "I planted twelve tulips. It was beside the old pump.",
        "Ada planted twelve tulips beside the old pump.",
        "pump old the beside tulips twelve planted I",
        "I planted twelve tulips beside the old pumpkin.",
        "Hi planted twelve tulips beside the old pump.",
    ],
)
def test_a_turn_that_is_rephrased_cut_or_part_of_longer_words_is_not(text):
    assert not found(text, "D1:1")


@pytest.mark.parametrize(
    "text",
    [
        "caf\u00e9 stra\u00dfe it's 5\u00bd km or \u2460 hour isn't it",
        "CAFE\u0301 STRASSE IT'S 51\u20442 KM OR 1 HOUR ISN'T IT",
        "Caf\u00e9 Strasse: it\u2019s 5\u00bd km \u2014 or 1 hour, isn\u2019t it?",
    ],
)
def test_unicode_forms_of_one_text_are_one_text(text):
    assert found(text, "D2:1")


def test_a_caption_may_be_missing_but_its_text_may_not():
    assert found("[Image: a red wheelbarrow] Look what I found today", "D1:3")
    assert found("a red wheelbarrow: look, what I found today", "D1:3") is True
    assert found("Look what I found today", "D1:3")
    assert not found("[Image: a red wheelbarrow]", "D1:3")


def test_a_turn_that_is_only_an_image_is_found_by_its_caption():
    assert not found("a heron", "D1:4")
    assert found("Ben: [Image: a heron]", "D1:4")


@pytest.mark.parametrize(
    ("text", "turn_id"),
    [
        ("Ben: Yes, sure!", "D1:2"),
        ("I planted twelve tulips beside the old pump. Yes, sure!", "D1:2"),
        ("I planted twelve tulips beside the old pump.\nBen: Yes, sure!", "D1:2"),
        ("Yes, sure! [Image: a red wheelbarrow] Look what I found today", "D1:2"),
        ("Yes, sure!\nAda: [Image: a red wheelbarrow] Look what I found today", "D1:2"),
        ("Ada: yes sure", "D2:2"),
    ],
)
def test_a_short_turn_counts_beside_its_speaker_or_a_neighbour(text, turn_id):
    (other,) = {"D1:2", "D2:2"} - {turn_id}
    assert found(text, turn_id)
    assert not found(text, other), "the other turn of these words is somebody else's"


@pytest.mark.parametrize(
    "text", ["Yes, sure!", "Cleo: Yes, sure!", "Ada: Yes, sure!", "Ben: Oh. Yes, sure!", "Yes, sure! - Ben"]
)
def test_a_short_turn_alone_or_beside_somebody_else_does_not(text):
    assert not found(text, "D1:2")


def test_four_words_are_enough_and_three_are_not():
    sample = Sample(
        "x",
        "locomo",
        [Session("1", [Message("A", "one two three", "t3"), Message("B", "one two three four", "t4")])],
        [],
    )
    context = Context("one two three four")
    assert coverage(case("t3", "t4", sample=sample), context).found == (False, True)


def test_a_blank_turn_between_two_others_does_not_part_them():
    """It is not fed, so a memory that quotes the history puts the others next to each other."""
    turns = [Message("A", "Where did you go?", "t1"), Message("B", "  ", "t2"), Message("B", "Rome.", "t3")]
    sample = Sample("x", "locomo", [Session("1", turns)], [])
    assert coverage(case("t3", sample=sample), Context("Where did you go? Rome.")).found == (True,)


def test_a_turn_without_an_id_of_its_own_is_found_under_its_neutral_one():
    sample = Sample("x", "longmemeval", [Session("s", [Message("user", "My cat is called Moss.")])], [])
    assert coverage(case("D1:1", sample=sample), Context("my cat is called moss")).found == (True,)


def test_evidence_that_names_no_turn_is_never_found_and_breaks_nothing():
    assert judged("I planted twelve tulips beside the old pump.", "D1:1", "D7:7").score == 0.5


def test_words():
    assert words_of("Caf\u00e9, it's_fine! 5\u00bd") == " caf\u00e9 it s fine 51 2 "
    assert words_of(" \n?! \U0001f389") == ""


# -- what cannot be judged --------------------------------------------------------------------------


def test_an_unanswerable_question_is_not_applicable():
    verdict = judged("I planted twelve tulips beside the old pump.", "D1:1", expects_abstention=True)
    assert verdict == Verdict("n/a", None, "unanswerable: there is no evidence to find")


def test_a_question_without_evidence_is_not_applicable():
    assert judged("anything") == Verdict("n/a", None, "the dataset names no evidence for this question")


@pytest.mark.parametrize(
    "context", ["Ada likes gardens.", [Recalled("Ada likes gardens."), Recalled("Ben agrees.")]]
)
def test_a_context_that_quotes_no_turn_at_all_is_unscored(context):
    assert judged(context, "D1:1") == Verdict("unscored", None, REWRITES)
    assert REWRITES == "the memory rewrites text: return Recalled with turn_ids, or judge answers"


@pytest.mark.parametrize("context", ["", " \n", [], [Recalled("")]])
def test_an_empty_context_is_a_miss(context):
    assert judged(context, "D1:1") == Verdict("wrong", 0.0, "0 of 1 evidence turn in the context")


def test_a_context_that_quotes_any_turn_is_a_miss_and_not_rewriting():
    text = SESSIONS[1].messages[0].content
    assert judged(text, "D1:1").value == "wrong"
    assert quotes(SAMPLE, Context(text))


def test_one_context_without_a_quotation_in_a_memory_that_is_known_to_quote_is_a_miss():
    assert judged(Context("Ada likes gardens.", verbatim=True), "D1:1").value == "wrong"
    assert judged(Context("Ada likes gardens.", verbatim=False), "D1:1").value == "unscored"


def test_ids_leave_no_doubt_even_if_the_text_is_rewritten():
    assert judged([Recalled("Ada likes gardens.", ("D1:2",))], "D1:1").value == "wrong"
    assert judged([Recalled("Ada likes gardens.", ("D1:1",))], "D1:1").value == "correct"
    assert not is_in_doubt(Context("x", (Recalled("x", ("D1:1",)), Recalled("y"))))


# -- whole sessions as evidence ------------------------------------------------------------------------


def returned(*things: tuple[list[str], list[str]], text: str = "x", sample: Sample = SAMPLE) -> Context:
    """What a memory returned, given by neutral turn ids and session ids, as it comes over the boundary."""
    items = [Recalled(text, turns, sessions) for turns, sessions in things]
    return read_context(items, History.of(sample), 10)[0]


@pytest.mark.parametrize(
    ("turns", "sessions", "value"),
    [
        ([], ["s1"], "correct"),
        (["D1:3"], [], "correct"),
        (["D2:1"], ["s1"], "correct"),
        ([], ["s2"], "wrong"),
        (["D2:1"], [], "wrong"),
    ],
)
def test_a_session_is_hit_by_its_id_and_by_any_of_its_turns(turns, sessions, value):
    verdict = judged(returned((turns, sessions)), ["1"])
    assert verdict.value == value
    assert verdict.reason.endswith("of 1 evidence session in the context")


def test_where_a_turn_is_named_beside_its_session_another_turn_of_it_does_not_do():
    assert judged(returned((["D1:1"], [])), ["D1:1", "1"]).value == "correct"
    assert judged(returned((["D1:3"], [])), ["D1:1", "1"]).value == "wrong"
    assert judged(returned(([], ["s1"])), ["D1:1", "1"]).value == "correct"


def test_two_sessions_of_one_id_are_one_where_the_file_names_no_turn():
    twins = replace(SAMPLE, sessions=[replace(session, session_id="twin") for session in SESSIONS])
    for sessions in (["s1"], ["s2"]):
        assert judged(returned(([], sessions), sample=twins), ["twin"], sample=twins).value == "correct"


FIRST, SECOND = ("\n".join(turn.content for turn in session.messages) for session in SESSIONS)


def test_text_proves_a_session_by_holding_all_of_it():
    assert judged(full_context(SAMPLE), ["1"], ["2"]) == Verdict(
        "correct", 1.0, "2 of 2 evidence sessions in the context"
    )
    assert judged(f"Ada and Ben. {FIRST}", ["1"]).value == "correct"


@pytest.mark.parametrize(
    "text", ["Ada likes gardens.", SESSIONS[0].messages[0].content, SECOND, SECOND + FIRST.split("\n", 1)[1]]
)
def test_text_that_holds_less_than_a_session_decides_nothing(text):
    for context in (text, [Recalled(text)], Context(text, verbatim=True)):
        assert judged(context, ["1"]) == Verdict("unscored", None, SESSIONS_ONLY)
    assert SESSIONS_ONLY == (
        "the evidence is whole sessions, and plain text does not tell which it is from: "
        "return Recalled with session_ids or turn_ids, or judge answers"
    )


@pytest.mark.parametrize("context", ["", " \n", []])
def test_an_empty_context_holds_no_session(context):
    assert judged(context, ["1"]) == Verdict("wrong", 0.0, "0 of 1 evidence session in the context")


def test_one_group_that_text_cannot_decide_leaves_the_question_open():
    assert judged(SESSIONS[1].messages[0].content, ["D2:1"], ["1"]).value == "unscored"
    assert judged(SESSIONS[1].messages[0].content, ["D2:1", "2"], ["D1:1", "1"]).score == 0.5


def test_ids_decide_of_sessions_whatever_the_text_holds():
    assert judged([Recalled(FIRST, ("D2:1",))], ["1"]).value == "wrong"
    assert judged([Recalled("x", ("D2:1",)), Recalled(FIRST)], ["1"]).value == "wrong"


def test_a_turn_without_words_does_not_keep_a_session_from_being_whole():
    sample = replace(
        SAMPLE, sessions=[replace(SESSIONS[0], messages=[*SESSIONS[0].messages, Message("Ada", "!")])]
    )
    assert judged(FIRST, ["1"], sample=sample).value == "correct"
    wordless = replace(SAMPLE, sessions=[Session("1", [Message("Ada", "!")])])
    assert judged("some text", ["1"], sample=wordless).value == "unscored"


# -- invariants -------------------------------------------------------------------------------------

speakers = st.sampled_from(["Ada", "Ben", "user", "assistant", "\u5c0f\u660e", "Dr. O'Neil"])
has_words = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30).filter(words_of)
contents = has_words | st.sampled_from(
    ["Yes!", "[Image: a cat]", "[Image: a cat] Look!", "one two three four five", "..Hm.."]
)
histories = st.lists(
    st.lists(st.tuples(speakers, contents | st.sampled_from(["", " "])), min_size=1, max_size=4),
    min_size=1,
    max_size=3,
)


def sample_of(history) -> Sample:
    sessions = [
        Session(f"{s}", [Message(who, text, f"D{s}:{t}") for t, (who, text) in enumerate(turns, 1)], "1 May")
        for s, turns in enumerate(history, 1)
    ]
    return Sample("made", "locomo", sessions, [])


def full_context(sample: Sample) -> str:
    memory = FullContextMemory()
    for session in History.of(sample).sessions():
        memory.ingest_session(session)
    return memory.retrieve("")


@given(histories, st.data())
def test_the_whole_history_always_holds_all_evidence_and_nothing_holds_none(history, data):
    sample = sample_of(history)
    ids = [turn.turn_id for session in sample.sessions for turn in session.messages if turn.content.strip()]
    assume(ids)
    evidence = data.draw(st.lists(st.sampled_from(ids), min_size=1, max_size=3, unique=True))
    everything = judged(full_context(sample), *evidence, sample=sample)
    assert (everything.value, everything.score) == ("correct", 1.0)
    nothing = judged(NullMemory().retrieve(""), *evidence, sample=sample)
    assert (nothing.value, nothing.score) == ("wrong", 0.0)


@given(
    st.lists(st.sampled_from("abcdef"), max_size=8),
    st.lists(st.lists(st.sampled_from("abcdef"), min_size=1, max_size=3), min_size=1, max_size=4),
)
def test_the_score_is_the_share_of_groups_that_the_ids_hit(returned, groups):
    verdict = judged([Recalled("x", (one,)) for one in returned], *groups)
    hit = [any(member in returned for member in group) for group in groups]
    assert verdict.score == sum(hit) / len(hit)
    assert (verdict.value == "correct") is all(hit)


@given(st.text(max_size=60), st.text(max_size=60))
def test_more_context_never_loses_evidence(before, after):
    text = f"{before}\nAda: I planted twelve tulips beside the old pump.\n{after}"
    assert found(text, "D1:1")
