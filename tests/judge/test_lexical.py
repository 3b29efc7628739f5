"""The lexical judge, told by what a person would say of each answer."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_himga.data.schema import Case, QAPair, QuestionType, Sample
from pytest_himga.judge.abstention import abstains
from pytest_himga.judge.lexical import LexicalJudge
from pytest_himga.judge.locomo_f1 import locomo_f1
from pytest_himga.judge.verdict import VERDICT_VALUES, Verdict
from pytest_himga.memory.protocol import Context

TYPES = {
    1: QuestionType.MULTI_HOP,
    2: QuestionType.TEMPORAL,
    3: QuestionType.OPEN_DOMAIN,
    4: QuestionType.SINGLE_HOP,
    5: QuestionType.ADVERSARIAL,
}
any_text = st.text(st.characters())


def verdict(answer, gold=None, *, category=4, trap=None, family="locomo", type_=None) -> Verdict:
    """What the judge says; no gold means that abstaining is right."""
    question = QAPair(
        "0",
        "What did Priya buy?",
        gold if gold is not None else trap or "",
        type_ or TYPES[category],
        raw={"category": category},
        expects_abstention=gold is None,
        trap=trap,
        gold=gold,
    )
    case = Case.of(family, "one", Sample("one", family, [], [question]), question)
    return LexicalJudge().judge(case, answer, Context(""))


@pytest.mark.parametrize(
    ("answer", "gold", "value"),
    [
        ("a kiln", "kiln", "correct"),
        ("I think that she finally bought herself a kiln for the shed", "kiln", "correct"),
        ("an oven", "kiln", "wrong"),
        ("red kiln", "a blue kiln", "correct"),  # F1 0.5: half of the words are shared
        ("red", "a rather large blue kiln", "wrong"),
        ("pet friendly flats", "pet-friendly flats", "correct"),
        ("some pet-friendly flats in Leiden by the harbour", "pet friendly flats", "correct"),
        ("a tuba and a cello in the attic of her old flat", "Tuba,Cello", "correct"),
        ("They were rowing in his own little boat", "Theywere rowing in hisown littleboat", "correct"),
        ("Priya\u2019s mother", "Priya's mother", "correct"),
        ("low impact exercise", "low\u200bimpact exercise", "correct"),
        ("kiln", "the", "wrong"),
        ("The.", "the", "correct"),
        ("", "kiln", "wrong"),
        ("  \n", "kiln", "wrong"),
    ],
)
def test_words(answer, gold, value):
    assert verdict(answer, gold).value == value


@pytest.mark.parametrize(
    ("answer", "gold", "value"),
    [
        ("2023-05-07", "7 May 2023", "correct"),
        ("She left on the 7th of May, 2023, early in the morning.", "7 May 2023", "correct"),
        ("8 May 2023", "7 May 2023", "wrong"),
        ("May 2023", "7 May 2023", "wrong"),
        ("16 April 2021", "16April, 2021", "correct"),
        ("the week before April 16, 2021", "The week before 16April, 2021.", "correct"),
        ("16 April 2021", "The week before 16April, 2021.", "wrong"),
        ("2022", "2022", "correct"),
        ("in 2021", "in 2022", "wrong"),
        ("3", "three", "correct"),
        ("She has three kilns", "3", "correct"),
        ("two months", "two weeks", "wrong"),
        ("5 decades", "nearly five decades", "correct"),
        ("1", "one", "correct"),
        ("one", "1", "correct"),
        ("2 times", "twice", "correct"),
        ("Chess 4", "Chess 3", "wrong"),
        ("1250 tulips", "1,250 tulips", "correct"),
    ],
)
def test_numbers_and_dates_must_all_be_there(answer, gold, value):
    assert verdict(answer, gold, category=2).value == value


@pytest.mark.parametrize(
    ("answer", "gold", "value"),
    [
        ("Yes, she does", "Yes", "correct"),
        ("yeah", "yes", "correct"),
        ("Well, yes", "Yes", "correct"),
        ("Likely yes", "Yes", "correct"),
        ("No", "Yes", "wrong"),
        ("No, yes is what Bram said", "Yes", "wrong"),
        ("She does", "Yes", "wrong"),
        ("No, she would not", "Likely no", "correct"),
        ("Probably not", "No", "correct"),
        ("Yes, likely", "Likely no", "wrong"),
        ("No, there is no mention of a move", "No", "correct"),
        ("No, Bram rows and Priya skis", "No, Bram rows and Priya skis.", "correct"),
        ("Yes, Bram rows and Priya skis", "No, Bram rows and Priya skis.", "wrong"),
        ("no more than 12", "likely no more than 12", "correct"),
        ("No longer rowing", "no longer rowing", "correct"),
    ],
)
def test_yes_and_no_must_agree(answer, gold, value):
    assert verdict(answer, gold).value == value


def test_an_open_question_is_judged_by_what_stands_before_the_semicolon():
    gold = "Porto; since she speaks Portuguese"
    assert verdict("Porto", gold, category=3).value == "correct"
    assert verdict("Porto", gold, category=3).score == 1.0
    assert verdict("Porto", gold, category=4).value == "wrong"
    assert verdict(gold, gold, category=3).value == "correct"
    assert verdict("; why not", "; why not", category=3).value == "correct"


def test_a_list_is_scored_part_by_part():
    half = verdict("kiln", "kiln, violin", category=1)
    assert (half.value, half.score) == ("correct", 0.5)
    assert verdict("kiln", "kiln, violin, harbour", category=1).value == "wrong"
    assert verdict("harbour and violin and kiln", "kiln, violin, harbour", category=1).value == "correct"


@pytest.mark.parametrize("answer", ["I don't know.", "Not mentioned in the conversation", "N/A"])
def test_abstaining_from_a_question_with_an_answer_is_a_refusal(answer):
    refused = verdict(answer, "a kiln")
    assert refused.value == "wrong"
    assert refused.reason.endswith("refused to answer")
    assert refused.abstention is None


def test_where_the_gold_itself_abstains_so_may_the_answer():
    assert verdict("I don't know", "Not mentioned").value == "correct"


@pytest.mark.parametrize(
    ("answer", "value", "how", "reason"),
    [
        ("Not mentioned.", "correct", "held", "abstained, as it should"),
        ("There is no information that she bought a kiln", "correct", "held", "abstained, as it should"),
        ("She bought a kiln", "wrong", "fell", "fell for the trap"),
        (
            "She bought a boat",
            "wrong",
            "other",
            "neither abstained nor fell for the trap: it says something else",
        ),
        ("", "wrong", "other", "the answer is empty, which does not say that it abstains"),
    ],
)
def test_an_unanswerable_question_can_be_met_in_three_ways(answer, value, how, reason):
    met = verdict(answer, trap="a kiln", category=5)
    assert met == Verdict(value, 1.0 if value == "correct" else 0.0, reason, abstention=how)


def test_without_a_trap_there_is_nothing_to_fall_for():
    met = verdict("a kiln", family="longmemeval", type_=QuestionType.MULTI_SESSION)
    assert (met.value, met.abstention, met.reason) == ("wrong", "other", "did not abstain")


def test_an_adversarial_question_with_an_answer_is_scored_by_it_and_names_the_trap():
    fell = verdict("Yes", "No", category=5, trap="Yes")
    assert (fell.value, fell.score, fell.abstention) == ("wrong", 0.0, None)
    assert fell.reason == "F1 0.00; it says yes where the gold says no; fell for the trap"
    assert verdict("No, she did not", "No", category=5, trap="Yes").value == "correct"
    assert "trap" not in verdict("Perhaps", "No", category=5, trap="Yes").reason


def test_no_answer_is_unscored_and_a_rubric_or_an_empty_gold_does_not_apply():
    assert verdict(None, "kiln").value == "unscored"
    assert "nothing produced an answer" in verdict(None, "kiln").reason
    assert verdict(None, trap="kiln", category=5).value == "unscored"
    assert verdict("x", "likes kilns", type_=QuestionType.SINGLE_SESSION_PREFERENCE).value == "n/a"
    assert verdict("x", "  ").value == "n/a"


def test_the_score_is_the_official_f1_of_the_category_and_of_a_plain_one_elsewhere():
    answer, gold = "violin", "kiln, violin"
    assert verdict(answer, gold, category=1).metrics == (("f1", 0.5),)
    assert verdict(answer, gold, category=1).score == locomo_f1(answer, gold, 1)
    plain = verdict(answer, gold, category=1, family="longmemeval", type_=QuestionType.MULTI_SESSION)
    assert plain.score == locomo_f1(answer, gold, 4)
    assert verdict("no", "no", category=5, trap="yes").score == 1.0


@pytest.mark.parametrize(
    ("answer", "gold", "reason"),
    [
        ("on 8 May 2023", "7 May 2023", "F1 0.57; the gold's date 7 May 2023 is not in the answer"),
        ("two weeks", "three weeks", "F1 0.50; the gold's number 3 weeks is not in the answer"),
        ("a boat", "a kiln", "F1 0.00; under 0.5, and not all words of the gold are in the answer"),
        ("", "a kiln", "F1 0.00; the answer is empty"),
        ("kiln", "a kiln", "F1 1.00"),
    ],
)
def test_the_reason_is_one_short_sentence_for_a_person(answer, gold, reason):
    assert verdict(answer, gold).reason == reason


@given(any_text, any_text, st.none() | any_text, st.integers(1, 5), st.booleans())
def test_any_text_gets_a_verdict_from_the_closed_set(answer, gold, trap, category, answerable):
    judged = verdict(answer, gold if answerable else None, category=category, trap=trap)
    assert judged.value in VERDICT_VALUES
    assert judged.score is None or 0.0 <= judged.score <= 1.0
    assert judged.reason.isascii()
    assert judged.reason.isprintable()


@given(any_text.filter(lambda text: re.search(r"\w", text)), st.integers(1, 5))
def test_the_gold_itself_is_always_a_correct_answer(gold, category):
    judged = verdict(gold, gold, category=category, trap="a trap")
    if gold.strip() and not abstains(gold):
        assert judged.value == "correct", judged


FRAGMENTS = [
    "yes", "No", "likely", "7 May 2023", "before", "2 weeks", "one", "May", "; ", ", ", ". ", "kiln",
    "pet-friendly", "the", "a", "and", "not", "unknown", "1,250", "16April", "\u200b", "\u2019s", "(", "but",
    "in", "2022", "twenty-", "first",
]  # fmt: skip


@given(st.lists(st.sampled_from(FRAGMENTS), min_size=1), st.sampled_from(["", " "]), st.integers(1, 5))
def test_a_gold_made_of_what_the_rules_look_for_is_its_own_answer_too(parts, glue, category):
    gold = glue.join(parts)
    judged = verdict(gold, gold, category=category)
    if re.search(r"\w", gold) and not abstains(gold):
        assert judged.value == "correct", judged


def real_cases():
    folder = Path(os.environ.get("HIMGA_TEST_DATA", "")) if os.environ.get("HIMGA_TEST_DATA") else None
    path = (folder or Path(__file__).parents[2].parent / "shared" / "data") / "locomo10.json"
    if not path.is_file():
        pytest.skip(f"the real LoCoMo file is not there: {path}")
    for sample in json.loads(path.read_text(encoding="utf-8")):
        yield [
            (q["category"], str(q["answer"]) if "answer" in q else None, q.get("adversarial_answer"))
            for q in sample["qa"]
        ]


def test_on_the_real_file_no_gold_is_rejected_and_hardly_any_other_gold_accepted():
    rejected, accepted, tried = [], 0, 0
    for questions in real_cases():
        golds = [(category, gold) for category, gold, _ in questions if gold is not None]
        for n, (category, gold) in enumerate(golds):
            if verdict(gold, gold, category=category).value != "correct":
                rejected.append(n)
            other = golds[(n + len(golds) // 2) % len(golds)][1]
            if other.lower().strip(" .") != gold.lower().strip(" ."):
                tried += 1
                accepted += verdict(other, gold, category=category).value == "correct"
    assert rejected == []
    assert tried > 1500
    assert accepted / tried < 0.01


def test_on_the_real_file_every_trap_is_a_fall_unless_it_abstains():
    traps = [trap for questions in real_cases() for _, gold, trap in questions if gold is None]
    met = [verdict(trap, trap=trap, category=5).abstention for trap in traps]
    assert len(traps) == 444
    assert met.count("fell") == 442  # two "traps" of the file are abstentions
    assert met.count("held") == 2
