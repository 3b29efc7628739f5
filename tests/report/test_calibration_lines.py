"""The table of a calibration, as people see it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_himga.report.calibration import NARROWEST, WIDEST, calibration_lines
from pytest_himga.score.calibration import INJECTED, Calibration, Kind


def printed(*kinds: Kind, **options) -> str:
    lines = calibration_lines(Calibration(kinds, "no server"), "llm:strict", **options)
    return "\n".join(["", *lines, ""])


def test_a_judge_that_is_fit():
    assert printed(
        Kind("right", True, accepted=19, rejected=1, mistaken=("right-loom",)),
        Kind("wrong date", False, rejected=20, na=2),
        Kind(INJECTED, False, rejected=6),
    ) == (
        """
Calibration on 48 shipped probes
judge llm:strict    n  accepted  rejected  unscored  n/a  mistaken  95% interval
--------------------------------------------------------------------------------
right              20        19         1         0    0     0.050   0.009-0.236
--------------------------------------------------------------------------------
wrong date         22         0        20         0    2     0.000   0.000-0.161
injected            6         0         6         0    0     0.000   0.000-0.390
--------------------------------------------------------------------------------
all right answers  20        19         1         0    0     0.050   0.009-0.236
all wrong answers  28         0        26         0    2     0.000   0.000-0.129
rejected although right: right-loom
fit for gating: no injected answer accepted, false accepts 0 of 26 (at most 5 %), false rejects 1 of
  20 (at most 10 %)
"""
    )


def test_a_judge_that_is_not():
    assert printed(
        Kind("right", True, accepted=3, unscored=1),
        Kind(
            "trap",
            False,
            accepted=7,
            mistaken=tuple(f"conv-{n}/what-about-the-lighthouse/trap" for n in range(7)),
        ),
        Kind(INJECTED, False, unscored=2),
        probes="lighthouse",
    ) == (
        """
Calibration on 13 lighthouse probes
judge llm:strict   n  accepted  rejected  unscored  n/a  mistaken  95% interval
-------------------------------------------------------------------------------
right              4         3         0         1    0     0.000   0.000-0.561
-------------------------------------------------------------------------------
trap               7         7         0         0    0     1.000   0.646-1.000
injected           2         0         0         2    0         -             -
-------------------------------------------------------------------------------
all right answers  4         3         0         1    0     0.000   0.000-0.561
all wrong answers  9         7         0         2    0     1.000   0.646-1.000
accepted although wrong: conv-0/what-about-the-lighthouse/trap,
  conv-1/what-about-the-lighthouse/trap, conv-2/what-about-the-lighthouse/trap,
  conv-3/what-about-the-lighthouse/trap, conv-4/what-about-the-lighthouse/trap and 2 more (-v names
  all)
NOT fit for gating: it accepts 7 of 7 wrong answers, more than 5 %; 3 of 13 probes got no verdict
  (the first: no server)
"""
    )


ALL_COUNTED = "n  accepted  rejected  unscored  n/a  mistaken  95% interval"


@pytest.mark.parametrize(
    ("width", "na", "columns"),
    [
        (120, 0, ALL_COUNTED),
        (98, 0, ALL_COUNTED),
        (97, 0, "n accepted rejected unscored n/a mistaken 95% interval"),
        # nothing was left out of the rates, so the columns that say so go first
        (80, 0, "n accepted rejected mistaken 95% interval"),
        (80, 1, "n accepted rejected unscored n/a mistaken"),
        (70, 0, "n  accepted  rejected  mistaken"),
        (70, 1, "n accepted rejected mistaken"),
        (40, 0, "n accepted rejected mistaken"),
        (1, 0, "n accepted rejected mistaken"),
    ],
)
def test_a_narrow_terminal_gets_fewer_columns(width, na, columns):
    refusals = Kind("a refusal of an answerable question", False, rejected=10, na=na)
    lines = calibration_lines(
        Calibration((Kind("right", True, accepted=10), refusals)), "llm:strict", width=width
    )
    assert max(map(len, lines)) <= max(width, NARROWEST)
    header, rule = lines[1:3] if lines[1].endswith(columns) else lines[2:4]
    assert header.split("llm:strict")[-1].strip() == columns
    assert set(rule) == {"-"}
    rows = [line.split() for line in lines if line.startswith("a refusal of")]
    assert " ".join(rows[0]).startswith("a refusal of an answerable question")
    numbers = rows[0][6:] or lines[lines.index("a refusal of an answerable question") + 1].split()
    assert [one for one in numbers if one.isdigit()][:3] == [str(10 + na), "0", "10"]


def test_verbose_names_all():
    names = tuple(f"probe-{n}" for n in range(9))
    text = printed(Kind("right", True, rejected=9, mistaken=names), verbose=True)
    assert f"rejected although right: {', '.join(names)}" in " ".join(text.split())


texts = st.text(st.characters(), max_size=60)


@settings(max_examples=40)
@given(
    texts,
    texts,
    st.lists(
        st.builds(
            Kind,
            texts,
            st.booleans(),
            *[st.integers(0, 9_999)] * 4,
            mistaken=st.lists(st.text("abc-/", max_size=90), max_size=7).map(tuple),
        ),
        max_size=5,
    ),
    st.integers(1, 130),
)
def test_whatever_it_is_told_of_it_stays_in_ascii_and_in_its_columns(judge, probes, kinds, width):
    lines = calibration_lines(Calibration(tuple(kinds), probes), judge, probes=probes[:20], width=width)
    for line in lines:
        assert line.isascii()
        assert line.isprintable()
        # The id of a probe is never broken.
        assert len(line) <= min(max(width, NARROWEST), WIDEST) or any(len(word) > 40 for word in line.split())
