"""The whole text of a prompt of each profile, in `prompts/`, so that a change of wording is seen in review.

``python tests/judge/test_llm_wording.py`` writes them anew.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from judged_cases import case, prompt

from pytest_himga.data.schema import QuestionType

FOLDER = Path(__file__).parent / "prompts"
PROMPTS = {
    "strict": ("strict", case(), "She bought a kiln."),
    "strict-abstention": ("strict", case(gold=None, trap="a kiln", category=5), "That was never mentioned."),
    "lenient": ("lenient", case("Yes; she says so", category=3), "Probably."),
    "lenient-evidence": ("lenient-evidence", case(evidence=[["D1:1"], ["D2:1"]]), "An oven."),
    "longmemeval": (
        "longmemeval",
        case("42 weeks", family="longmemeval", type_=QuestionType.TEMPORAL_REASONING),
        "41 weeks",
    ),
    "longmemeval-abstention": (
        "longmemeval",
        case(gold=None, family="longmemeval", answer="A kiln was never spoken of."),
        "You did not tell me.",
    ),
    "memorystress": (
        "memorystress",
        case(
            "Lisbon",
            family="memorystress",
            type_=QuestionType.CONTRADICTION_RESOLUTION,
            raw={"answer_detail": "On 1 May the user said: Porto. On 2 June the user said: Lisbon."},
        ),
        "Porto",
    ),
    "memorystress-ordering": (
        "memorystress",
        case("the port", family="memorystress", type_=QuestionType.TEMPORAL_ORDERING),
        "The port came up first.",
    ),
}


@pytest.mark.parametrize("name", PROMPTS)
def test_the_wording_of(name):
    expected = (FOLDER / f"{name}.txt").read_text(encoding="utf-8")
    assert f"{prompt(*PROMPTS[name])}\n" == expected


if __name__ == "__main__":
    for one, arguments in PROMPTS.items():
        (FOLDER / f"{one}.txt").write_text(f"{prompt(*arguments)}\n", encoding="utf-8")
