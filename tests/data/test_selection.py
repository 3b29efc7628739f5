"""Which questions a run asks, and that it asks the same ones tomorrow."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_himga.data import Case, Dataset, QuestionType, select
from pytest_himga.data.dataset import StoredSamples
from pytest_himga.data.family import ReadOptions
from pytest_himga.data.identity import order_of, slug_of_name, uid_of
from pytest_himga.data.indexed import Index, IndexedSample, OpenedIndex
from pytest_himga.data.locomo import LABELS, LOCOMO, type_labels
from pytest_himga.data.schema import Brief
from pytest_himga.data.selection import Subset, parse_subset
from pytest_himga.errors import SelectionError

if TYPE_CHECKING:
    import random

TYPES = list(type_labels())


def dataset(name: str, samples: dict[str, list[tuple[str, int]]]) -> Dataset:
    """A dataset of (question, category) pairs by sample."""
    path, options = Path(f"{name}.json"), ReadOptions()
    found = [
        IndexedSample(
            sample_id,
            0,
            0,
            0,
            [
                Brief(uid_of(text, category, 0), str(n), text, LABELS["locomo"][category].value)
                for n, (text, category) in enumerate(questions)
            ],
        )
        for sample_id, questions in samples.items()
    ]
    opened = OpenedIndex(Index("", "locomo", "", False, [], found), [path], [path])
    return Dataset(
        name=name,
        family="locomo",
        path=path,
        options=options,
        opened=opened,
        stored=StoredSamples(opened, LOCOMO, options),
        sample_names=[slug_of_name(sample_id) for sample_id in samples],
        type_labels=type_labels(),
    )


@pytest.fixture
def town() -> Dataset:
    """Two samples; the second one's id is no slug."""
    return dataset("town", {"inn": [("a", 1), ("b", 2), ("c", 4)], "old/mill": [("d", 2), ("e", 5)]})


@pytest.fixture
def port() -> Dataset:
    """One sample, whose id the town has too."""
    return dataset("port", {"inn": [("f", 2), ("g", 3)]})


def asked(cases: list[Case]) -> str:
    """The questions' letters, in order."""
    return "".join(case.brief.question for case in cases)


# -- samples and types -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("samples", "types", "letters"),
    [
        ([], [], "abcdefg"),
        (["inn"], [], "abcfg"),
        (["old/mill"], [], "de"),
        (["old-mill"], [], "de"),
        (["town/inn"], [], "abc"),
        (["town/old/mill"], [], "de"),
        (["town/old-mill", "port/inn"], [], "defg"),
        (["port/inn", "town/inn"], [], "abcfg"),  # the files' order, not the filter's
        ([], ["temporal"], "bdf"),
        ([], ["single-hop", "open_domain"], "cg"),
        ([], ["2"], "bdf"),
        ([], ["5 adversarial"], "e"),
        ([], ["Multi-Hop"], "a"),
        (["inn"], ["2", "3"], "bfg"),
    ],
)
def test_filters_narrow_and_keep_the_order(
    samples: list[str], types: list[str], letters: str, town: Dataset, port: Dataset
) -> None:
    assert asked(select([town, port], samples=samples, types=types)) == letters


def test_a_case_carries_its_names(town: Dataset) -> None:
    case = select([town], samples=["old/mill"])[0]
    assert (case.dataset, case.sample_name, town.sample_ids[1]) == ("town", "old-mill", "old/mill")
    assert case.id == f"himga/town/old-mill::{uid_of('d', 2, 0)}"


def test_a_number_follows_the_labels(town: Dataset) -> None:
    town.type_labels = type_labels("himga")
    for brief in town.opened.index.samples[0].briefs:
        brief.type = LABELS["himga"][{"a": 1, "b": 2, "c": 4}[brief.question]].value
    assert asked(select([town], types=["1"])) == asked(select([town], types=["single_hop"])) == "a"


def test_a_type_needs_to_be_known_to_one_dataset_only(town: Dataset) -> None:
    other = dataset("other", {"s": [("z", 1)]})
    other.type_labels = {"multi_session": "multi_session"}
    other.opened.index.samples[0].briefs[0].type = QuestionType.MULTI_SESSION.value
    assert asked(select([town, other], types=["multi-session"])) == "z"
    assert asked(select([town, other], types=["temporal"])) == "bd"


@pytest.mark.parametrize(
    ("samples", "types", "sentence"),
    [
        (["in"], [], "There is no sample 'in' in town, port; did you mean inn?"),
        (
            ["town/mill"],
            [],
            "There is no sample 'town/mill' in town, port; did you mean town/old-mill or town/inn?",
        ),
        (["zzz"], [], "There is no sample 'zzz' in town, port; known: inn, old-mill"),
        ([""], [], "There is no sample '' in town, port; known: inn, old-mill"),
        ([], ["temporl"], "There is no question type 'temporl' in town, port; did you mean temporal?"),
        (
            [],
            ["6"],
            (
                "There is no question type '6' in town, port; "
                "known: adversarial, multi_hop, open_domain, single_hop, temporal"
            ),
        ),
        (
            ["old/mill"],
            ["3", "multi-hop"],
            (
                "No question is left: town, port has none with samples old/mill and types 3, multi-hop; "
                "widen the selection"
            ),
        ),
    ],
)
def test_a_filter_that_finds_nothing_is_one_sentence(
    samples: list[str], types: list[str], sentence: str, town: Dataset, port: Dataset
) -> None:
    with pytest.raises(SelectionError) as caught:
        select([town, port], samples=samples, types=types)
    assert str(caught.value) == sentence


def test_no_question_at_all() -> None:
    with pytest.raises(SelectionError, match=r"^No question is left: empty has none$"):
        select([dataset("empty", {"s": []})], subset="10%")


def test_two_datasets_of_one_name(town: Dataset) -> None:
    with pytest.raises(SelectionError) as caught:
        select([town, dataset("town", {"s": [("a", 1)]})])
    assert str(caught.value) == (
        "Two datasets would be called town in ids (town.json and town.json); rename one with NAME=PATH"
    )


# -- subsets -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "subset"),
    [
        ("200", Subset(count=200)),
        (" 7 ", Subset(count=7)),
        ("10%", Subset(share=Fraction(1, 10))),
        ("2.5 %", Subset(share=Fraction(1, 40))),
        ("100%", Subset(share=Fraction(1))),
    ],
)
def test_a_subset_is_a_count_or_a_share(text: str, subset: Subset) -> None:
    assert parse_subset(text) == subset


@pytest.mark.parametrize(
    "text",
    [
        "",
        "0",
        "-3",
        "0%",
        "0.0%",
        "101%",
        "100.1%",
        "10.5",
        "ten",
        "%",
        "1e3",
        "\u0663",
        "10%%",
        pytest.param("9" * 5000, id="digits"),
    ],
)
def test_any_other_subset_is_one_sentence(text: str, town: Dataset) -> None:
    for attempt in (lambda: parse_subset(text), lambda: select([town], subset=text)):
        with pytest.raises(SelectionError) as caught:
            attempt()
        quoted = repr(text) if len(text) < 70 else repr(text)[:77] + "..."
        assert str(caught.value) == (
            f"The subset {quoted} is neither a count of at least 1 (200) nor a share up to 100% (10%)"
        )


@pytest.mark.parametrize(("available", "size"), [(1986, 199), (4, 1), (15, 2), (25, 3), (1000, 100)])
def test_a_share_is_rounded_and_never_to_none(available: int, size: int) -> None:
    assert parse_subset("10%").size(available) == size


def crowd(counts: list[int], name: str = "crowd") -> Dataset:
    """So many questions of each category, spread over two samples."""
    questions = [
        (f"q{category}-{n}", category) for category, count in enumerate(counts, 1) for n in range(count)
    ]
    return dataset(name, {"s1": questions[::2], "s2": questions[1::2]})


def by_type(cases: list[Case]) -> dict[str, int]:
    """How many of each type."""
    return dict(Counter(case.brief.type for case in cases))


@pytest.mark.parametrize(
    ("counts", "subset", "shares"),
    [
        ([282, 321, 96, 841, 446], "10%", [28, 32, 10, 84, 45]),  # exact 28.3 32.2 9.6 84.3 44.7
        ([282, 321, 96, 841, 446], "200", [28, 32, 10, 85, 45]),
        ([100, 100, 1, 100, 100], "5", [1, 1, 1, 1, 1]),
        ([97, 1, 1, 1, 0], "10", [7, 1, 1, 1, 0]),
        ([90, 5, 5, 0, 0], "2", [2, 0, 0, 0, 0]),
        ([10, 10, 10, 10, 10], "3", [1, 1, 1, 0, 0]),
        ([1, 2, 3, 0, 0], "1000", [1, 2, 3, 0, 0]),
        ([1, 2, 3, 0, 0], "100%", [1, 2, 3, 0, 0]),
    ],
)
def test_a_subset_keeps_the_proportions(counts: list[int], subset: str, shares: list[int]) -> None:
    expected = {name: share for name, share in zip(TYPES, shares, strict=True) if share}
    assert by_type(select([crowd(counts)], subset=subset)) == expected


def test_a_subset_is_taken_of_each_dataset_and_of_what_the_filters_leave() -> None:
    both = [crowd([20, 0, 0, 0, 0], "left"), crowd([0, 40, 40, 0, 0], "right")]
    assert Counter(case.dataset for case in select(both, subset="10")) == {"left": 10, "right": 10}
    assert Counter(case.dataset for case in select(both, subset="10%", types=["2"])) == {"right": 4}


COUNTS = st.lists(st.integers(0, 25), min_size=5, max_size=5).filter(any)


@settings(max_examples=40)
@given(COUNTS, st.integers(1, 130))
def test_a_subset_is_exact_in_order_and_first_by_hash(counts: list[int], size: int) -> None:
    everything = select([crowd(counts)])
    chosen = select([crowd(counts)], subset=str(size))
    ids = {case.id for case in chosen}
    assert len(chosen) == min(size, len(everything))
    assert [case.id for case in chosen] == [case.id for case in everything if case.id in ids]
    taken = by_type(chosen)
    for name, available in by_type(everything).items():
        ordered = sorted(
            (case for case in everything if case.brief.type == name),
            key=lambda case: order_of(case.sample_name, case.uid),
        )
        assert {case.id for case in ordered[: taken.get(name, 0)]} == ids & {case.id for case in ordered}
        assert taken.get(name, 0) <= available
        if size >= len(by_type(everything)):
            assert taken[name] >= 1


@settings(max_examples=40)
@given(COUNTS, st.integers(1, 130), st.randoms(use_true_random=False))
def test_the_file_s_order_does_not_change_a_subset(
    counts: list[int], size: int, shuffle: random.Random
) -> None:
    still, moved = crowd(counts), crowd(counts)
    for sample in moved.opened.index.samples:
        shuffle.shuffle(sample.briefs)
    moved.opened.index.samples.reverse()
    moved.sample_names.reverse()
    chosen = [{case.id for case in select([data], subset=str(size))} for data in (still, moved)]
    assert chosen[0] == chosen[1]


@settings(max_examples=40)
@given(st.integers(1, 60), st.integers(1, 60), st.integers(1, 30))
def test_more_data_of_a_type_only_squeezes_in(before: int, more: int, size: int) -> None:
    """Of the questions that were there before, those still chosen are a first part of the old choice."""
    old = [case.id for case in select([crowd([before, 0, 0, 0, 0])], subset=str(size))]
    grown = crowd([before, 0, 0, 0, 0])
    more_of_it = crowd([before + more, 0, 0, 0, 0], "new").opened.index.samples[0].briefs
    grown.opened.index.samples[0].briefs += more_of_it[(before + 1) // 2 :]
    new = {case.id for case in select([grown], subset=str(size))}
    known = {case.id for case in select([crowd([before, 0, 0, 0, 0])])}
    assert new & known <= set(old)
    assert len(new) == min(size, len(grown.cases()))
