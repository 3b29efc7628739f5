"""What a calibration comes to: counted by hand, and whatever the verdicts were."""

from __future__ import annotations

import json
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_himga.judge.verdict import VERDICT_VALUES, Verdict
from pytest_himga.memory.protocol import Usage
from pytest_himga.score.calibration import (
    INJECTED,
    MOST_FALSE_ACCEPTS,
    MOST_FALSE_REJECTS,
    Calibration,
    Kind,
)
from pytest_himga.score.corrected import corrected_accuracy
from pytest_himga.score.statistics import wilson


@dataclass(frozen=True)
class Known:
    """All of a probe that is counted."""

    id: str
    kind: str
    right: bool


def calibration(*groups: tuple[str, bool, str]) -> Calibration:
    """From ``(kind, right, verdicts)``, a verdict a letter: c, w, u, n."""
    words = {"c": "correct", "w": "wrong", "u": "unscored", "n": "n/a"}
    return Calibration.of(
        (Known(f"{kind}-{number}", kind, right), Verdict(words[letter], reason="no server"))
        for kind, right, letters in groups
        for number, letter in enumerate(letters)
    )


NOTHING_TRIED = (
    "it was tried on no right answer that it applies to; it was tried on no wrong answer that it applies to"
)
PERFECT = (("right", True, "c" * 20), ("trap", False, "w" * 20))

groups = st.lists(
    st.tuples(
        st.sampled_from(["right", "trap", INJECTED]),
        st.booleans(),
        st.text(alphabet="cwun", max_size=30),
    ),
    max_size=6,
)


def test_a_kind_is_counted_by_verdict_and_names_what_went_wrong():
    found = calibration(("right", True, "ccwun"), ("trap", False, "wcw"))
    assert found.kinds == (
        Kind("right", True, accepted=2, rejected=1, unscored=1, na=1, mistaken=("right-2",)),
        Kind("trap", False, accepted=1, rejected=2, mistaken=("trap-1",)),
    )
    assert [kind.n for kind in found.kinds] == [5, 3]
    assert [kind.rate for kind in found.kinds] == [1 / 3, 1 / 3]
    assert found.wrong.interval == wilson(1, 3)
    assert found.counts() == {"accepted_right": 2, "right": 3, "accepted_wrong": 1, "wrong": 3}


def test_a_kind_without_a_verdict_has_no_rate():
    (kind,) = calibration(("right", True, "un")).kinds
    assert (kind.rate, kind.interval) == (None, None)


@pytest.mark.parametrize(
    ("groups", "standing", "why"),
    [
        (PERFECT, "fit", ""),
        # one false accept of 20 is 5 %, two false rejects of 20 are 10 %: at the limits
        ((("right", True, "c" * 18 + "ww"), ("trap", False, "w" * 19 + "c")), "fit", ""),
        ((*PERFECT[:1], ("trap", False, "w" * 19 + "cn")), "fit", ""),
        (
            (*PERFECT[:1], ("trap", False, "w" * 18 + "c")),
            "unfit",
            "it accepts 1 of 19 wrong answers, more than 5 %",
        ),
        (
            (("right", True, "c" * 17 + "www"), *PERFECT[1:]),
            "unfit",
            "it rejects 3 of 20 right answers, more than 10 %",
        ),
        (
            (*PERFECT, (INJECTED, False, "wwwcw")),
            "unfit",
            "1 of 5 injected answers talked it into a pass",
        ),
        (
            (*PERFECT, ("vague", False, "uw")),
            "unmeasured",
            "1 of 42 probes got no verdict (the first: no server)",
        ),
        (
            (("right", True, "uuu"), ("trap", False, "uu")),
            "unmeasured",
            "5 of 5 probes got no verdict (the first: no server)",
        ),
        # proven, whatever the missing verdict would have been
        (
            (*PERFECT[:1], ("trap", False, "wcccu")),
            "unfit",
            "it accepts 3 of 4 wrong answers, more than 5 %; 1 of 25 probes got no verdict (the first: no server)",
        ),
        # one false accept of 19, but it may have been one of 20
        (
            (*PERFECT[:1], ("trap", False, "w" * 18 + "cu")),
            "unmeasured",
            "1 of 40 probes got no verdict (the first: no server)",
        ),
        (PERFECT[:1], "unmeasured", "it was tried on no wrong answer that it applies to"),
        (
            (("right", True, "nn"), ("trap", False, "n")),
            "unmeasured",
            NOTHING_TRIED,
        ),
        ((), "unmeasured", NOTHING_TRIED),
    ],
)
def test_fit_or_why_not(groups, standing, why):
    found = calibration(*groups)
    assert (found.standing, found.why) == (standing, why)
    assert found.fit == (standing == "fit") == (not why)


def test_run_json_holds_the_rates():
    found = calibration(*PERFECT, (INJECTED, False, "cw"), ("vague", False, "u"))
    data = json.loads(json.dumps(found.as_json()))
    assert data["standing"] == "unfit"
    assert data["false_accepts"] == {"count": 1, "n": 22, "rate": 1 / 22, "interval": list(wilson(1, 22))}
    assert data["false_rejects"] == {"count": 0, "n": 20, "rate": 0.0, "interval": list(wilson(0, 20))}
    assert data["kinds"][2]["mistaken"] == ["injected-0"]
    assert data["silence"] == "no server"


def test_what_the_models_took_is_added_up():
    taken = [Usage(calls=2, tokens_in=5, tokens_out=1, retries=1), None, Usage(cached=1)]
    found = Calibration.of(
        (Known(str(n), "right", True), Verdict("correct", 1.0, usage=usage)) for n, usage in enumerate(taken)
    )
    assert found.usage == Usage(calls=2, tokens_in=5, tokens_out=1, retries=1, cached=1)
    assert found.as_json()["usage"] == found.usage.as_json()


def test_an_accuracy_is_corrected_by_its_counts():
    perfect = calibration(*PERFECT).counts()
    corrected = corrected_accuracy(7, 10, **perfect)
    assert corrected is not None
    assert corrected.value == pytest.approx(0.7)
    lenient = calibration(("right", True, "c" * 20), ("trap", False, "w" * 15 + "c" * 5)).counts()
    lower = corrected_accuracy(7, 10, **lenient)
    assert lower is not None
    assert lower.value == pytest.approx(0.6)


@settings(max_examples=50)
@given(groups)
def test_nothing_is_lost_and_nothing_is_counted_twice(groups):
    found = calibration(*groups)
    letters = "".join(verdicts for _, _, verdicts in groups)
    right, wrong = found.right, found.wrong
    assert found.n == len(letters) == right.n + wrong.n == sum(kind.n for kind in found.kinds)
    assert found.unscored == letters.count("u") == right.unscored + wrong.unscored
    # false accepts and true rejects are the wrong probes with a verdict; so it is with the right ones
    assert wrong.mistakes + wrong.rejected == wrong.measured == wrong.n - wrong.unscored - wrong.na
    assert right.mistakes + right.accepted == right.measured == right.n - right.unscored - right.na
    assert [len(kind.mistaken) for kind in found.kinds] == [kind.mistakes for kind in found.kinds]
    assert wrong.mistaken == tuple(name for kind in found.kinds if not kind.right for name in kind.mistaken)


@settings(max_examples=50)
@given(groups)
def test_what_is_fit_has_kept_every_rule(groups):
    found = calibration(*groups)
    assert json.loads(json.dumps(found.as_json(), allow_nan=False))["standing"] == found.standing
    if found.fit:
        assert found.unscored == found.injected.accepted == 0
        assert found.wrong.rate is not None
        assert found.right.rate is not None
        assert 100 * found.wrong.rate <= MOST_FALSE_ACCEPTS + 1e-9
        assert 100 * found.right.rate <= MOST_FALSE_REJECTS + 1e-9


@settings(max_examples=50)
@given(groups, st.sampled_from("cw"))
def test_what_is_proven_stays_so_whatever_the_missing_verdicts_are(groups, letter):
    found = calibration(*groups)
    if found.standing == "unfit":
        told = [(kind, right, verdicts.replace("u", letter)) for kind, right, verdicts in groups]
        assert calibration(*told).standing == "unfit"


def test_a_value_that_is_no_verdict_counts_as_none():
    found = Calibration.of([(Known("a", "right", True), Verdict("perhaps"))])  # type: ignore[arg-type] # a user's code
    assert (found.unscored, found.silence) == (1, "no reason was given")
    assert "perhaps" not in VERDICT_VALUES
