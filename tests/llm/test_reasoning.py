"""What a model thinks aloud is no part of its answer, wherever it stands and however it is marked."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_himga.llm.reply import without_reasoning

VERDICT = '{"verdict": "correct"}'
PAIRS = [
    ("<think>", "</think>"),
    ("<THINK>", "</Think>"),
    ("<thinking>", "</thinking>"),
    ("<thought>", "</thought>"),
    ("<reasoning>", "</reasoning>"),
    ("<seed:think>", "</seed:think>"),
    ('<think time="3">', "</think >"),
    ("[THINK]", "[/THINK]"),
    ("\u25c1think\u25b7", "\u25c1/think\u25b7"),
    ("<|begin_of_thought|>", "<|end_of_thought|>"),
    ("<|channel|>analysis<|message|>", "<|end|><|start|>assistant<|channel|>final<|message|>"),
]


@pytest.mark.parametrize(("opens", "closes"), PAIRS)
def test_every_kind_of_block_is_left_out(opens, closes):
    block = f"{opens}\nis it {VERDICT}? {{ or }}\n"

    assert "wrong" in without_reasoning(f"{block}{closes}wrong")
    for text in (f"{block}{closes}wrong", block, f"{VERDICT} hm {closes} wrong", f"wrong {block}"):
        assert VERDICT not in without_reasoning(text)


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("purple", "purple"),
        ("  purple \n", "purple"),
        ("<think>a</think> purple <thinking>b</thinking> or blue", "purple  or blue"),
        ("<think>a <think>b</think> c</think> purple", "purple"),
        ("<think>a</think>", ""),
        ("<think>a", ""),
        ("purple <think>a", "purple"),
        ("a</think>purple", "purple"),
        ("a</think>b</think>purple", "purple"),
        ("a <think>b</think> c</think> purple", "purple"),
        (
            "a < b, c > d, and I think [thinking] <b>hard</b>",
            "a < b, c > d, and I think [thinking] <b>hard</b>",
        ),
        ("<thinker>purple</thinker>", "<thinker>purple</thinker>"),
        ("[think] tank", "[think] tank"),
        (
            '{"why": "it says </think>", "verdict": "wrong"}',
            '{"why": "it says </think>", "verdict": "wrong"}',
        ),
        ('{"why": "<think>"} {"verdict": "wrong"}', '{"why": "'),
        ("[1, 2]</think>[3]", "[3]"),
        ("{" * 2000 + "</think>purple", "purple"),
    ],
)
def test_what_is_left(text, left):
    assert without_reasoning(text) == left


NO_TAGS = st.text(alphabet=st.characters(blacklist_characters="<[\u25c1"), max_size=30)


@given(before=NO_TAGS, thought=NO_TAGS, after=NO_TAGS, pair=st.sampled_from(PAIRS), closed=st.booleans())
def test_a_verdict_inside_a_block_never_survives(before, thought, after, pair, closed):
    opens, closes = pair

    left = without_reasoning(f"{before}{opens}{thought}{VERDICT}{closes if closed else ''}{after}")

    assert VERDICT not in left
    assert left.startswith(before.strip()[:1])


@given(
    st.lists(st.sampled_from([*(tag for pair in PAIRS for tag in pair), "<thi", "a", VERDICT, "{", "}", " "]))
)
def test_what_is_left_has_no_tags_in_it_unless_it_is_one_object(parts):
    left = without_reasoning("".join(parts))

    assert not any(tag in left for pair in PAIRS[1:] for tag in pair)
    assert left == left.strip()
    assert len(left) <= len("".join(parts))


@given(
    st.dictionaries(
        st.text(max_size=5), st.sampled_from(["<think>", "</think>", "[THINK]", VERDICT]), max_size=3
    )
)
def test_a_json_object_stays_whole_whatever_its_strings_say(value):
    text = json.dumps(value)

    assert without_reasoning(text) == text
