"""What the summary says of models: calls, tokens, votes, times, and the accuracy without the judge's errors."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_himga.memory.protocol import Usage
from pytest_himga.report.spending import spending
from pytest_himga.report.terminal import DatasetReport, Provenance, summary_lines
from pytest_himga.score.calibration import INJECTED, Calibration, Kind
from pytest_himga.score.record import Record
from pytest_himga.score.summary import summarise

JUDGED = Provenance("0" * 64, 3, "bm25", "llm:strict", 10, "0.1.0", models={"judge": "m at http://h/v1"})
TOLD = Usage(calls=1, tokens_in=11, tokens_out=7)
HIT = Usage(cached=1)


def question(verdict: str = "correct", *, ms: float = 5.0, votes: str = "c", **usage: Usage) -> Record:
    """One question that took ``ms`` in each stage; ``usage`` is by stage."""
    words = {"c": "correct", "w": "wrong", "u": "unscored"}
    base: dict[str, Any] = dict.fromkeys(["id", "dataset", "sample", "uid", "reason", "judge"], "x")
    return Record(
        **base,
        type="temporal",
        expects_abstention=False,
        verdict=verdict,
        score={"correct": 1.0, "wrong": 0.0}.get(verdict),
        votes=[words[vote] for vote in votes],
        ms=dict.fromkeys(usage, ms),
        usage={stage: used.as_json() for stage, used in usage.items()},
    )


def facts(*records: Record, calibration: Calibration | None = None, width: int = 100) -> dict[str, str]:
    """The summary's labelled lines by their labels."""
    summary = summarise("tiny", records, type_labels={}, top_k=10)
    report = DatasetReport(summary, JUDGED, (), calibration)
    lines = summary_lines([report], gate="none", gate_reason="asked for", gate_set=True, width=width)
    told: dict[str, str] = {}
    label = ""
    for text in (line.text for line in lines):
        label = text[:12].strip() or label
        told[label] = f"{told.get(label, '')} {text[12:].strip()}".strip()
    return told


@pytest.mark.parametrize(
    ("spent", "text"),
    [
        (Usage(), ""),
        (TOLD, "1 call; 11 tokens in, 7 out"),
        (HIT, "1 from the cache"),
        (TOLD + HIT, "1 call; 11 tokens in, 7 out; 1 from the cache"),
        (
            Usage(1200, 13_000, 2_000, cached=4_000),
            "1200 calls; 13,000 tokens in, 2,000 out; 4,000 from the cache",
        ),
        (Usage(3, 22, 14, retries=1), "3 calls (1 retry); 22 tokens in, 14 out"),
        (Usage(4, 22, 14, retries=2), "4 calls (2 retries); 22 tokens in, 14 out"),
        (Usage(3, 22, 14, untold=1), "3 calls; 22 tokens in, 14 out (1 told none)"),
        # a number that was not told is not printed as 0
        (Usage(2, untold=2), "2 calls; tokens - (the server told none)"),
        (Usage(5, untold=2, retries=3), "5 calls (3 retries); tokens - (the server told none)"),
        (Usage(5, retries=4), "5 calls (4 retries); tokens - (the server told none)"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_was_spent(spent, text):
    assert spending(spent) == text


def test_each_stage_has_its_own_sum_and_the_times_of_those_that_asked():
    told = facts(
        question(ms=10, answer=TOLD, judge=HIT),
        question(ms=20, answer=TOLD, judge=TOLD + Usage(2, retries=2)),
        question(ms=0.1, answer=HIT, judge=HIT),
    )
    assert told["answers"] == "2 calls; 22 tokens in, 14 out; 1 from the cache"
    assert told["verdicts"] == "3 calls (2 retries); 11 tokens in, 7 out; 2 from the cache"
    # What a cache took says nothing of a model.
    assert told["answering"].startswith("p50 1")
    assert told["judging"] == "p50 20 ms, p95 20 ms"
    assert told["judge"] == "m at http://h/v1"


def test_without_models_nothing_is_said_of_them():
    told = facts(question())
    assert not {"answers", "verdicts", "votes", "answering", "judging", "corrected"} & told.keys()


def test_replies_from_the_cache_alone_have_no_times():
    told = facts(question(answer=HIT, judge=HIT))
    assert (told["answers"], told["verdicts"]) == ("1 from the cache", "1 from the cache")
    assert not {"answering", "judging"} & told.keys()


@pytest.mark.parametrize(
    ("votes", "text"),
    [
        (("ccc", "www", "c"), "0 of 2 questions with several votes were not unanimous"),
        (("ccw", "www", "ccu"), "2 of 3 questions with several votes were not unanimous"),
        (("ccw",), "1 of 1 question with several votes were not unanimous"),
    ],
)
def test_votes_that_differ_are_counted(votes, text):
    assert facts(*[question(votes=one) for one in votes])["votes"] == text


# -- corrected ---------------------------------------------------------------------------------------


def tried(*, right: tuple[int, int], wrong: tuple[int, int], unscored: int = 0) -> Calibration:
    """A judge that accepted so many of so many right answers and of so many wrong ones."""
    kinds = (
        Kind("right", True, accepted=right[0], rejected=right[1] - right[0], unscored=unscored),
        Kind("wrong date", False, accepted=wrong[0], rejected=wrong[1] - wrong[0]),
    )
    return Calibration(kinds, "no server")


SIX_OF_TEN = [*[question()] * 6, *[question("wrong")] * 4]


@pytest.mark.parametrize(
    ("calibration", "records", "text"),
    [
        (
            tried(right=(20, 20), wrong=(0, 20)),
            SIX_OF_TEN,
            "overall 0.6000 (95% interval 0.",
        ),
        # p = 0.6 of a Se = 0.9 and a 1 - Sp = 0.1 is (0.6 - 0.1) / 0.8
        (
            tried(right=(18, 20), wrong=(2, 20)),
            SIX_OF_TEN,
            "overall 0.6250 (95% interval 0.",
        ),
        (
            tried(right=(10, 20), wrong=(10, 20)),
            SIX_OF_TEN,
            (
                "- for the judge's errors on 40 probes (accepts 10 of 20 wrong answers, rejects 10 of 20 right ones); "
                "that is no better than chance"
            ),
        ),
        (
            tried(right=(19, 19), wrong=(0, 20), unscored=1),
            SIX_OF_TEN,
            "- (the judge's errors are not known: 1 of 40 probes got no verdict (the first: no server))",
        ),
        (
            tried(right=(0, 0), wrong=(0, 0), unscored=9),
            SIX_OF_TEN,
            "- (the judge's errors are not known: 9 of 9 probes got no verdict (the first: no server))",
        ),
        (
            tried(right=(20, 20), wrong=(0, 20)),
            [question("unscored")],
            "- for the judge's errors on 40 probes (accepts 0 of 20 wrong answers, rejects 0 of 20 right ones)",
        ),
    ],
)
def test_the_accuracy_without_the_judges_errors(calibration, records, text):
    told = facts(*records, calibration=calibration)["corrected"]
    assert told.startswith(text)
    if "interval" in text:
        assert told.endswith(" right ones)")
        assert "errors on 40 probes" in told


def test_what_does_not_apply_is_no_probe_that_was_measured():
    kinds = (Kind("right", True, accepted=9, na=3), Kind(INJECTED, False, rejected=6, na=1))
    told = facts(*SIX_OF_TEN, calibration=Calibration(kinds))["corrected"]
    assert "errors on 15 probes (accepts 0 of 6 wrong answers, rejects 0 of 9 right ones)" in told
