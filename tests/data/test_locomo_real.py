"""The published LoCoMo file: every figure that is known of it. Skipped where the file is not."""

from __future__ import annotations

import time
from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from pytest_himga.data import Case, Dataset, load_locomo, open_dataset, parse_date, select
from pytest_himga.errors import DatasetWarning

if TYPE_CHECKING:
    from pathlib import Path

SHA256 = "79fa87e90f04081343b8c8debecb80a9a6842b76a7aa537dc9fdf651ea698ff4"
SESSIONS = [19, 19, 32, 29, 29, 28, 31, 30, 25, 30]
TURNS = [419, 369, 663, 629, 680, 675, 689, 681, 509, 568]
QUESTIONS = [199, 105, 193, 260, 242, 158, 190, 239, 196, 204]
#: sample number -> (earlier, later) places of questions with one text
TWINS = {
    "conv-30": [(61, 95)],
    "conv-48": [
        (16, 89), (25, 90), (42, 91), (58, 92), (61, 93), (62, 94),
        (63, 95), (67, 96), (69, 97), (72, 98), (74, 99),
    ],
}  # fmt: skip


@pytest.fixture(scope="module")
def locomo(real_locomo: Path) -> Dataset:
    """The file, opened once."""
    return open_dataset(f"locomo={real_locomo}")


@pytest.fixture(scope="module")
def cases(locomo: Dataset) -> list[Case]:
    """Its questions."""
    return locomo.cases()


def at(locomo: Dataset, sample: str, number: int) -> Case:
    """One question by its place in the file."""
    return next(
        case
        for case in locomo.cases()
        if case.sample_name == sample and case.question.question_id == str(number)
    )


def test_it_is_that_file(locomo: Dataset, real_locomo: Path) -> None:
    assert locomo.sha256 == SHA256
    assert (locomo.name, locomo.family, locomo.path) == ("locomo", "locomo", real_locomo)
    assert open_dataset("locomo", data_dir=real_locomo.parent) == locomo


def test_nothing_of_the_history_is_lost(locomo: Dataset) -> None:
    assert [len(sample.sessions) for sample in locomo.samples] == SESSIONS
    assert [sum(len(session.messages) for session in sample.sessions) for sample in locomo.samples] == TURNS
    assert (sum(SESSIONS), sum(TURNS)) == (272, 5882)
    for sample in locomo.samples:
        assert [session.session_id for session in sample.sessions] == [
            str(n) for n in range(1, len(sample.sessions) + 1)
        ]


def test_nothing_of_the_questions_is_lost(locomo: Dataset, cases: list[Case]) -> None:
    assert [len(sample.qa_pairs) for sample in locomo.samples] == QUESTIONS
    assert len(cases) == 1986
    counts = Counter(case.question.question_type.value for case in cases)
    assert {label: counts[name] for name, label in locomo.type_labels.items()} == {
        "1 multi_hop": 282,
        "2 temporal": 321,
        "3 open_domain": 96,
        "4 single_hop": 841,
        "5 adversarial": 446,
    }


def test_every_question_has_a_name_of_its_own(cases: list[Case]) -> None:
    assert len({(case.sample_name, case.question.uid) for case in cases}) == 1986
    assert len({case.id for case in cases}) == 1986


def test_the_twelve_twin_pairs_stay_two(locomo: Dataset) -> None:
    pairs = [
        (at(locomo, sample, a), at(locomo, sample, b)) for sample, both in TWINS.items() for a, b in both
    ]
    assert len(pairs) == 12
    for first, second in pairs:
        assert first.question.question == second.question.question
        assert first.question.uid != second.question.uid


def test_evidence_is_normalised(locomo: Dataset, cases: list[Case]) -> None:
    assert sum(len(case.question.evidence.turn_ids) for case in cases) == 2820
    assert all(
        case.question.evidence.groups == [[turn] for turn in case.question.evidence.turn_ids]
        for case in cases
    )
    without = [(c.sample_name, c.question.question_id) for c in cases if not c.question.evidence.turn_ids]
    assert without == [("conv-26", "30"), ("conv-26", "46"), ("conv-50", "39"), ("conv-50", "42")]
    for case in cases:
        turns = {message.turn_id for session in case.sample.sessions for message in session.messages}
        assert set(case.question.evidence.turn_ids) <= turns


@pytest.mark.parametrize(
    ("sample", "number", "turn_ids"),
    [
        ("conv-26", 37, ["D8:6", "D9:17"]),
        ("conv-43", 18, ["D11:26"]),
        ("conv-49", 31, ["D9:1", "D4:4", "D4:6"]),
        ("conv-49", 38, ["D22:1", "D22:2", "D9:10", "D9:11"]),
        ("conv-49", 46, ["D21:18", "D21:22", "D11:15", "D11:19"]),
        ("conv-50", 69, ["D30:5"]),
        ("conv-42", 88, ["D1:18", "D1:20"]),
        ("conv-47", 38, ["D18:1", "D18:7"]),
    ],
)
def test_each_malformed_reference_is_read(
    sample: str, number: int, turn_ids: list[str], locomo: Dataset
) -> None:
    found = at(locomo, sample, number).question.evidence.turn_ids
    assert [turn for turn in found if turn in turn_ids] == turn_ids
    assert len(found) == len(set(found))


def test_three_references_are_lost_and_said_to_be(locomo: Dataset, real_locomo: Path) -> None:
    assert locomo.warnings == [
        f"{real_locomo}: sample '{sample}', field qa[{number}].evidence[{position}]: {value!r} "
        "names no turn; it is left out"
        for sample, number, position, value in [
            ("conv-42", 58, 6, "D10:19"),
            ("conv-42", 88, 1, "D"),
            ("conv-47", 38, 0, "D4:36"),
        ]
    ]
    with pytest.warns(DatasetWarning) as caught:
        samples = load_locomo(real_locomo)
    assert [str(warning.message) for warning in caught] == locomo.warnings
    assert samples == locomo.samples


def test_answers_are_text(locomo: Dataset) -> None:
    for number, answer in {1: "2022", 26: "2022", 49: "2022", 72: "2022", 40: "2", 75: "3"}.items():
        question = at(locomo, "conv-26", number).question
        assert (question.answer, question.gold) == (answer, answer)
        assert question.raw["answer"] == int(answer)


def test_traps_are_no_golds(locomo: Dataset, cases: list[Case]) -> None:
    refused = [case.question for case in cases if case.question.expects_abstention]
    assert len(refused) == 444
    assert all(q.gold is None and q.trap and q.answer == q.trap for q in refused)
    answered = [case.question for case in cases if not case.question.expects_abstention]
    assert all(question.gold for question in answered)
    real = [question for question in answered if question.trap is not None]
    assert [(q.question_id, q.answer, q.gold, q.trap) for q in real] == [
        ("167", "Yes", "No", "Yes"),
        ("178", "Yes", "No", "Yes"),
    ]


def test_dates_are_read_and_strictly_increase(locomo: Dataset) -> None:
    dates = [[parse_date(session.date_str or "") for session in sample.sessions] for sample in locomo.samples]
    assert all(a < b for sample in dates for a, b in pairwise(sample))
    assert (dates[0][0].isoformat(), len(dates[0])) == ("2023-05-08T13:56:00+00:00", 19)
    midnight = [
        parse_date(session.date_str)
        for sample in locomo.samples
        for session in sample.sessions
        if session.date_str and session.date_str.startswith("12:09 am")
    ]
    assert midnight
    assert all((moment.hour, moment.minute) == (0, 9) for moment in midnight)


def test_captions_are_in_and_search_texts_are_out(locomo: Dataset) -> None:
    captions = [
        sum(
            message.content.startswith("[Image: ")
            for session in sample.sessions
            for message in session.messages
        )
        for sample in locomo.samples
    ]
    assert captions == [116, 72, 131, 119, 164, 156, 109, 142, 92, 125]
    assert all(
        set(sample.raw) == {"event_summary", "observation", "session_summary"} for sample in locomo.samples
    )


def test_himga_s_labels_rename_types_and_nothing_else(
    locomo: Dataset, cases: list[Case], real_locomo: Path
) -> None:
    renamed = open_dataset(f"locomo={real_locomo}", labels="himga")
    assert [case.id for case in renamed.cases()] == [case.id for case in cases]
    counts = Counter(case.question.question_type.value for case in renamed.cases())
    assert [counts[name] for name in renamed.type_labels] == [282, 321, 96, 841, 446]
    subset = [[case.id for case in select([data], subset="10%")] for data in (locomo, renamed)]
    assert subset[0] == subset[1]


def test_a_subset_is_proportional(locomo: Dataset) -> None:
    counts = Counter(case.question.question_type.value for case in select([locomo], subset="10%"))
    assert [counts[name] for name in locomo.type_labels] == [28, 32, 10, 84, 45]


def test_opening_it_is_quick(real_locomo: Path) -> None:
    """About 0.08 s where it was written; the bound leaves room for a busy machine, not for a second parse."""
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        select([open_dataset(str(real_locomo))])
        seconds.append(time.perf_counter() - start)
    assert min(seconds) < 0.3
