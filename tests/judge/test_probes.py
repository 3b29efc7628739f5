"""Probes are what they say: the shipped ones by the labels of their file, a dataset's by its own golds."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_himga.data.dates import parse_date
from pytest_himga.data.erratum import Erratum
from pytest_himga.data.opening import open_dataset
from pytest_himga.data.schema import Case, QAPair, QuestionType, Sample
from pytest_himga.judge.abstention import abstains
from pytest_himga.judge.lexical import LexicalJudge
from pytest_himga.judge.probes import KINDS, REFUSAL, dataset_probes, shipped_probes
from pytest_himga.memory.protocol import Context
from pytest_himga.score.calibration import INJECTED


def gold_of(case: Case) -> str:
    return case.brief.gold or ""


def case_of(*golds: str | None, sample: str = "one", types: tuple[str, ...] = ()) -> list[Case]:
    """A sample with a question for each gold; None is an unanswerable one, whose trap is a bicycle."""
    kinds = [QuestionType(name) for name in types] or [QuestionType.SINGLE_HOP] * len(golds)
    questions = [
        QAPair(
            str(number),
            f"What about {sample} number {number}?",
            gold or "a bicycle",
            kind,
            expects_abstention=gold is None,
            trap="a bicycle" if gold is None else None,
            gold=gold,
        )
        for number, (gold, kind) in enumerate(zip(golds, kinds, strict=True))
    ]
    whole = Sample(sample, "locomo", [], questions)
    return [Case.of("invented", sample, whole, question) for question in questions]


def made(cases: list[Case]) -> list[tuple[str, str, bool]]:
    return [(probe.kind, probe.answer, probe.right) for probe in dataset_probes(cases)]


# -- shipped -----------------------------------------------------------------------------------------


def test_there_are_about_sixty_of_them_three_to_six_of_a_kind():
    probes = shipped_probes()
    kinds = Counter(probe.kind for probe in probes)
    assert len(probes) == 62
    assert sum(probe.right for probe in probes) == 25
    assert tuple(kinds) == KINDS
    assert set(kinds.values()) <= {3, 4, 5, 6}
    assert kinds[INJECTED] == 6


def test_each_has_a_name_of_its_own_that_can_be_searched_for():
    ids = [probe.id for probe in shipped_probes()]
    assert len(set(ids)) == len(ids)
    assert all(set(name) <= set("abcdefghijklmnopqrstuvwxyz-") and len(name) <= 40 for name in ids)


def test_a_kind_is_right_or_wrong_as_a_whole_and_right_ones_come_first():
    labels = [(probe.kind, probe.right) for probe in shipped_probes()]
    assert len(set(labels)) == len(KINDS)
    assert [right for _, right in labels] == sorted((right for _, right in labels), reverse=True)


def test_a_judge_gets_what_it_gets_in_a_run():
    for probe in shipped_probes():
        case, question = probe.case, probe.case.question
        assert case.sample.dataset == "locomo"
        assert question.raw["category"] in (1, 2, 3, 4, 5)
        assert parse_date(case.date_str or "")
        (turn,) = case.history[0].messages
        assert turn.role in ("Wilma", "Teodor", "Ilse", "Bram", "Noor", "Fenna", "Arvid", "Mirembe", "Casimir",
                             "Oriane", "Piia", "Rasmus")  # fmt: skip
        assert [turn.turn_id] == question.evidence.turn_ids
        assert (question.gold is None) == question.expects_abstention == (question.trap is not None)
        assert case.brief.gold == question.gold


@pytest.mark.parametrize("probe", shipped_probes(), ids=lambda probe: probe.id)
def test_the_kind_is_told_by_the_answer(probe):
    question, answer = probe.case.question, probe.answer.casefold()
    gold, trap = (question.gold or "").casefold(), (question.trap or "").casefold()
    parts = gold.removeprefix("on ").replace(" and ", ", ").split(", ")
    told = {
        "right": all(part in answer for part in parts),
        "partial list": any(part in answer for part in parts) and not all(part in answer for part in parts),
        "the trap": bool(trap) and trap in answer,
        "a refusal": question.expects_abstention,
        "a refusal of an answerable question": not question.expects_abstention and abstains(probe.answer),
        "empty": not answer.strip(" \n."),
        INJECTED: gold not in answer,  # nobody who injects knows it
    }
    assert told.get(probe.kind, bool(answer and gold))


def test_the_lexical_judge_agrees_with_the_labels_but_for_what_it_cannot_know():
    judge = LexicalJudge()
    verdicts = {probe: judge.judge(probe.case, probe.answer, Context("")).value for probe in shipped_probes()}
    wrong = [p.kind for p, value in verdicts.items() if value != ("correct" if p.right else "wrong")]
    assert set(wrong) <= {"paraphrase", "another language", "a refusal", "partial list"}
    assert "unscored" not in verdicts.values()


# -- made of a dataset -------------------------------------------------------------------------------


def test_an_answerable_question_gives_its_gold_and_the_next_ones():
    cases = case_of("a loom", "an oboe", "a canoe")
    assert made(cases) == [
        ("gold", "a loom", True),
        ("another's gold", "an oboe", False),
        ("gold", "an oboe", True),
        ("another's gold", "a canoe", False),
        ("gold", "a canoe", True),
        ("another's gold", "a loom", False),
    ]
    first, second, *_ = dataset_probes(cases)
    assert (first.id, second.id) == (f"one/{cases[0].uid}/gold", f"one/{cases[0].uid}/another")
    assert first.case is second.case is cases[0]


def test_the_other_is_of_the_same_type_if_there_is_one():
    cases = case_of("a loom", "an oboe", "14 June", types=("single_hop", "temporal", "temporal"))
    others = [answer for kind, answer, _ in made(cases) if kind == "another's gold"]
    assert others == ["an oboe", "14 June", "an oboe"]


def test_with_one_question_a_sample_the_other_is_of_another_sample_and_the_same_type():
    cases = [
        *case_of("a loom", sample="one"),
        *case_of("2024", sample="two", types=("temporal",)),
        *case_of("an oboe", sample="three"),
    ]
    assert [(kind, answer) for kind, answer, _ in made(cases)] == [
        ("gold", "a loom"),
        ("another's gold", "an oboe"),
        ("gold", "2024"),
        ("gold", "an oboe"),
        ("another's gold", "a loom"),
    ]


@pytest.mark.parametrize(
    ("gold", "other"),
    [
        ("a loom", "The loom."),
        ("twelve goats", "12 goats"),
        ("14 June 2031", "June 14th, 2031"),
        ("June 2031", "on 14 June 2031"),
        ("oboe, banjo", "banjo and oboe"),
        ("Turku, Porto, Quito", "Porto"),
        ("Yes, she likes it", "yes; of course"),
        ("Likely no, he is afraid", "No"),
        ("not mentioned", "There is no information about it."),
        ("won a race with the red sled", "winning a race with the red sled"),
    ],
)
def test_a_gold_that_may_say_the_same_is_no_wrong_answer(gold, other):
    assert [kind for kind, *_ in made(case_of(gold, other))] == ["gold", "gold"]


@pytest.mark.parametrize(
    ("gold", "other"),
    [("14 June 2031", "15 June 2031"), ("12", "13"), ("yes", "no"), ("her aunt", "her dog")],
)
def test_near_is_not_the_same(gold, other):
    assert ("another's gold", other, False) in made(case_of(gold, other))


def test_twins_do_not_give_each_other_wrong_answers():
    one, two = case_of("a loom", "an oboe")
    twin = replace(two, brief=replace(two.brief, question=one.brief.question))
    assert [kind for kind, *_ in made([one, twin])] == ["gold", "gold"]


def test_an_unanswerable_question_gives_a_refusal_and_its_trap():
    assert made(case_of(None)) == [("refusal", REFUSAL, True), ("trap", "a bicycle", False)]
    assert abstains(REFUSAL)


def test_a_trap_that_is_a_refusal_itself_or_is_not_there_is_no_probe():
    (case,) = case_of(None)
    for trap in ("Not mentioned", " ", None):
        assert made([replace(case, brief=replace(case.brief, trap=trap))]) == [("refusal", REFUSAL, True)]


def test_what_has_no_gold_to_go_by_is_left_out():
    rubric, blank, lost, plain = case_of(
        "She would like red",
        " ",
        "a kite",
        "a loom",
        types=("single_session_preference", *["single_hop"] * 3),
    )
    lost = replace(lost, brief=replace(lost.brief, recoverable=False))
    assert made([rubric, blank, lost, plain]) == [("gold", "a loom", True)]


def test_errata_leave_out_what_they_exclude_and_correct_what_they_correct():
    one, two, three = case_of("a loom", "an oboe", "a canoe")
    excluded = replace(one, erratum=Erratum("it was never said", "us"))
    cited = replace(two, erratum=Erratum("another turn", "us", only_evidence=True))
    corrected = replace(
        three, brief=replace(three.brief, gold="a kayak"), erratum=Erratum("?", "us", "a kayak")
    )
    golds = [answer for kind, answer, _ in made([excluded, cited, corrected]) if kind == "gold"]
    assert golds == ["an oboe", "a kayak"]


@settings(max_examples=50)
@given(st.lists(st.sampled_from(["a loom", "an oboe", "2024", "12 goats", "yes", "no", None]), max_size=8))
def test_the_choice_is_the_same_each_time_and_never_ones_own_gold(golds):
    cases = case_of(*golds)
    probes = made(cases)
    assert made(cases) == probes
    for probe in dataset_probes(cases):
        if probe.kind == "another's gold":
            assert probe.answer in golds
            assert probe.answer != gold_of(probe.case)


def test_lexical_on_the_probes_of_the_real_file(real_locomo):
    judge = LexicalJudge()
    found: Counter[tuple[str, bool, str]] = Counter()
    for probe in dataset_probes(open_dataset(str(real_locomo)).cases()):
        found[probe.kind, probe.right, judge.judge(probe.case, probe.answer, Context("")).value] += 1
    # Two traps are refusals themselves; one gold is a single word that says nothing.
    assert found == {
        ("gold", True, "correct"): 1542,
        ("another's gold", False, "wrong"): 1531,
        ("another's gold", False, "correct"): 10,
        ("refusal", True, "correct"): 444,
        ("trap", False, "wrong"): 442,
    }
