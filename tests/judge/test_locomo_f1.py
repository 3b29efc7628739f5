"""The F1 is LoCoMo's own, to the last digit.

``locomo_f1_reference.json`` holds ``[prediction, gold, category, F1]``: pairs in our own wording, scored
once by the authors' code.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nltk.stem.porter import PorterStemmer
from nltk.stem.snowball import EnglishStemmer

from pytest_himga.judge import locomo_f1 as module
from pytest_himga.judge.locomo_f1 import before_semicolon, locomo_f1, tokens_of

REFERENCE = json.loads((Path(__file__).parent / "locomo_f1_reference.json").read_text(encoding="utf-8"))
any_text = st.text(st.characters())


def test_every_reference_pair_scores_what_the_authors_code_scored():
    off = [
        (prediction, gold, category, official, ours)
        for prediction, gold, category, official in REFERENCE
        if abs((ours := locomo_f1(prediction, gold, category)) - official) > 1e-9
    ]
    assert off == []


def test_the_reference_pairs_cover_every_category_and_more_than_all_or_nothing():
    assert len(REFERENCE) >= 300
    assert {category for _, _, category, _ in REFERENCE} == {1, 2, 3, 4, 5}
    assert sum(0 < official < 1 for *_, official in REFERENCE) > 100


@pytest.mark.parametrize(
    "other",
    [
        PorterStemmer(PorterStemmer.ORIGINAL_ALGORITHM),
        PorterStemmer(PorterStemmer.MARTIN_EXTENSIONS),
        EnglishStemmer(),
    ],
    ids=["porter-1980", "porter-martin", "snowball"],
)
def test_the_reference_pairs_would_notice_another_stemmer(other, monkeypatch):
    monkeypatch.setattr(module, "_stem", other.stem)
    assert any(abs(locomo_f1(p, g, category) - official) > 1e-9 for p, g, category, official in REFERENCE)


@pytest.mark.parametrize(
    ("prediction", "gold", "category", "expected"),
    [
        ("kiln", "kiln, violin", 1, 0.5),
        ("violin, kiln", "kiln, violin", 1, 1.0),
        ("kiln", "kiln; it was a gift", 3, 1.0),
        ("kiln", "kiln; it was a gift", 4, 0.4),
        ("that is Not Mentioned", "whatever", 5, 1.0),
        ("no idea", "no idea", 5, 0.0),
    ],
)
def test_each_category_has_its_own_rule(prediction, gold, category, expected):
    assert locomo_f1(prediction, gold, category) == pytest.approx(expected)


@pytest.mark.parametrize("category", [0, 6, -1])
def test_a_category_that_locomo_does_not_have_is_an_error(category):
    with pytest.raises(ValueError, match=f"no category {category}"):
        locomo_f1("kiln", "kiln", category)


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("The Kilns, and an ovens' door", ["kiln", "oven", "door"]),
        ("pet-friendly", ["petfriendli"]),
        ("PC,Switch", ["pcswitch"]),
        ("A, AND the!", []),
    ],
)
def test_tokens_have_no_case_no_ascii_punctuation_and_no_articles(text, tokens):
    assert tokens_of(text) == tokens


def test_only_the_first_semicolon_cuts():
    assert before_semicolon(" kiln ; a; b") == "kiln"
    assert before_semicolon("kiln") == "kiln"


@given(any_text, any_text, st.integers(1, 5))
def test_a_score_is_between_nothing_and_all_for_any_text(prediction, gold, category):
    assert 0.0 <= locomo_f1(prediction, gold, category) <= 1.0


@given(any_text, any_text)
def test_the_plain_f1_does_not_care_which_side_is_the_gold(one, other):
    assert locomo_f1(one, other, 4) == pytest.approx(locomo_f1(other, one, 4))


def test_a_stemmer_that_recurses_too_deep_leaves_the_word_as_it_is(monkeypatch):
    class Deep:
        def stem(self, word):
            raise RecursionError

    monkeypatch.setattr(module, "_stemmer", Deep)
    assert tokens_of("yyyyyyyyyyyyyyyyyyyyyyyyy-deep") == ["yyyyyyyyyyyyyyyyyyyyyyyyydeep"]
    module._stem.cache_clear()
