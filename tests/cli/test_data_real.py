"""`himga data info` and `check` on the real files: the figures that are known of them. Skipped where they are not."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

FOLDER = Path(os.environ.get("HIMGA_TEST_DATA") or Path(__file__).parents[3] / "shared" / "data")

LOCOMO = {
    "samples": "10",
    "questions": "1,986",
    "without an answer": "0",
    "warnings": "3",
    "1 multi_hop": "282 282 0 0",
    "2 temporal": "321 321 0 0",
    "3 open_domain": "96 96 0 0",
    "4 single_hop": "841 841 0 0",
    "5 adversarial": "446 2 444 0",
    "all": "1,986 1,542 444 0",
}
ORACLE = {
    "samples": "500",
    "questions": "500",
    "without an answer": "0",
    "temporal_reasoning": "133 127 6 0",
    "multi_session": "133 121 12 0",
    "knowledge_update": "78 72 6 0",
    "single_session_user": "70 64 6 0",
    "single_session_assistant": "56 56 0 0",
    "single_session_preference": "30 30 0 0",
    "all": "500 470 30 0",
}
STRESS = {
    "samples": "1",
    "questions": "300",
    "warnings": "4",
    "fact_recall": "78 78 0 0",
    "preference_recall": "41 41 0 0",
    "contradiction_resolution": "50 50 0 0",
    "temporal_ordering": "36 36 0 0",
    "cross_agent_recall": "28 28 0 0",
    "cold_start_recall": "20 20 0 0",
    "single_mention_recall": "47 47 0 0",
    "all": "300 300 0 0",
    "checkpoint 1": "51 51 0 0",
    "checkpoint 2": "99 99 0 0",
    "checkpoint 3": "99 99 0 0",
    "checkpoint 4": "51 51 0 0",
    "cross-agent": "28 28 0 0",
    "cold-start": "20 20 0 0",
}
#: What only reading everything tells.
READ = {
    "locomo10.json": {
        "sessions": "272",
        "turns": "5,882, 0 of them blank",
        "evidence groups": "2,820",
        "without evidence": "4 (0 of them abstention)",
    },
    "longmemeval_oracle.json.gz": {
        "sessions": "948",
        "turns": "10,960, 0 of them blank",
        "session order": "as in the file; 34 samples are not in the order of time",
        "evidence groups": "896",
        "without evidence": "21 (21 of them abstention)",
        "warnings": "none",
    },
    "memorystress_full.json": {"sessions": "1,000", "warnings": "4"},
}
FILES = [
    ("locomo10.json", LOCOMO, "the published file of locomo"),
    ("longmemeval_oracle.json.gz", ORACLE, "the published file of longmemeval-oracle"),
    ("memorystress_full.json", STRESS, "no published dataset"),
]


def real(name: str) -> Path:
    path = FOLDER / name
    if not path.is_file():
        pytest.skip(f"needs the real {name} in {FOLDER} (or $HIMGA_TEST_DATA)")
    return path


def facts_of(out: str) -> dict[str, str]:
    """The facts and the rows of the table by their labels."""
    pairs = re.findall(r"^  (\S+(?: \S+)*?)  +(\S.*)$", out, re.MULTILINE)
    return {label: " ".join(text.split()) for label, text in pairs}


@pytest.mark.parametrize(("name", "expected", "standing"), FILES)
def test_info_has_the_known_counts(name: str, expected: dict[str, str], standing: str, himga) -> None:
    outcome = himga("data", "info", real(name))
    assert (outcome.status, outcome.err) == (0, "")
    found = facts_of(outcome.out)
    assert {label: found[label] for label in expected} == expected
    assert found["sha256"].endswith(f" ({standing})")


@pytest.mark.parametrize(("name", "expected", "standing"), FILES)
def test_a_check_reads_them_to_their_end(name: str, expected: dict[str, str], standing: str, himga) -> None:
    outcome = himga("data", "check", real(name), "--session-order=file")
    assert (outcome.status, outcome.err) == (0, "")
    found = facts_of(outcome.out)
    read = expected | READ[name]
    assert {label: found[label] for label in read} == read
    assert found["sha256"].endswith(f" ({standing})")


def test_the_defects_of_locomo_are_named_where_they_are(himga) -> None:
    out = himga("data", "info", real("locomo10.json")).out
    for place in ("'conv-42', qa[58]", "'conv-42', qa[88]", "'conv-47', qa[38]"):
        assert f"        sample {place}.evidence[" in out
