"""From a model's reply to its final answer: what follows the last marker, bare of markdown."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_himga.answer.reading import final_answer
from pytest_himga.llm.contract import Unreadable


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        ("ANSWER: twelve tulips", "twelve tulips"),
        ("She planted them in March.\n\nANSWER: twelve tulips\n", "twelve tulips"),
        ("ANSWER: ten? No, that was Ben.\nANSWER: twelve", "twelve"),
        ("ANSWER:\ntwelve\nand a pump", "twelve\nand a pump"),
        ("twelve", "twelve"),
        ("  twelve\ntulips \n", "twelve\ntulips"),
        ("Answer: twelve", "Answer: twelve"),  # case counts
        ("REANSWER: twelve", "REANSWER: twelve"),
        ("**ANSWER:** twelve", "twelve"),
        ("**ANSWER**: twelve", "twelve"),
        ("**ANSWER: twelve**", "twelve"),
        ("**ANSWER: twelve** as she said", "twelve as she said"),
        ("**ANSWER:**twelve", "twelve"),
        ("**ANSWER:** **twelve**", "twelve"),
        ("**ANSWER**: **twelve**", "twelve"),
        ("**Final ANSWER:** twelve", "twelve"),
        ("**Final ANSWER: twelve**", "twelve"),
        ("***ANSWER:*** twelve", "twelve"),
        ("_ANSWER:_ twelve", "twelve"),
        ("__ANSWER__ : twelve", "twelve"),
        ("## ANSWER:\ntwelve", "twelve"),
        ("> ANSWER : twelve", "twelve"),
        ("`ANSWER:` twelve", "twelve"),
        ('"ANSWER:" twelve', "twelve"),
        ('"ANSWER: twelve"', "twelve"),
        ("```\nANSWER: twelve\n```", "twelve"),
        ("```text\nShe says twelve.\nANSWER: twelve\n```\n", "twelve"),
        ("ANSWER:\n```\ntwelve\n```", "twelve"),
        ("ANSWER: ```twelve```", "twelve"),
        ("```text\ntwelve\n```", "twelve"),
        ("ANSWER: `twelve`", "twelve"),
        ("ANSWER: ~~twelve~~", "twelve"),
        ("ANSWER: ***twelve***", "twelve"),
        ("ANSWER: **ten** and **twelve**", "**ten** and **twelve**"),
        ("ANSWER: 3 * 4", "3 * 4"),
        ("ANSWER: snake_case_name", "snake_case_name"),
        ("ANSWER:\n- twelve tulips\n- a pump", "- twelve tulips\n- a pump"),
        ("ANSWER:\n* twelve tulips\n* a pump", "* twelve tulips\n* a pump"),
        ('ANSWER: "twelve"', "twelve"),
        ("ANSWER: 'Ada's tulips'", "Ada's tulips"),
        ("ANSWER: \u201ctwelve\u201d", "twelve"),
        ("ANSWER: \u00abdouze\u00bb", "douze"),
        ('ANSWER: **"twelve"**', "twelve"),
        ('ANSWER: "**twelve**"', "twelve"),
        ('ANSWER: ""twelve""', '""twelve""'),
        ('ANSWER: "Bramble" and "Moss"', '"Bramble" and "Moss"'),
        ('ANSWER: the "Marigold"', 'the "Marigold"'),
        ("ANSWER: 0", "0"),
        ("ANSWER: \U0001f337", "\U0001f337"),
        ("ANSWER: {question}", "{question}"),
        ("ANSWER: Not mentioned in the memories.", "Not mentioned in the memories."),
    ],
)
def test_the_final_answer_of_a_reply(reply: str, answer: str) -> None:
    assert final_answer(reply, "ANSWER:") == answer


@pytest.mark.parametrize(
    "reply",
    [
        "ANSWER:",
        "She planted twelve.\nANSWER: \n",
        "ANSWER: twelve\nANSWER:",  # the last one counts, and holds nothing
        "**ANSWER:**",
        "**ANSWER:** ****",
        'ANSWER: ""',
        "ANSWER: ```\n```",
        "ANSWER: \u200b\u00a0",
        "```\nANSWER:\n```",
    ],
)
def test_a_reply_that_ends_with_its_marker_is_unreadable(reply: str) -> None:
    with pytest.raises(Unreadable, match=r"^nothing follows its last 'ANSWER:'$"):
        final_answer(reply, "ANSWER:")


@pytest.mark.parametrize("reply", ["", " \n", "***", '""', "```\n\n```"])
def test_a_reply_without_a_word_is_unreadable(reply: str) -> None:
    with pytest.raises(Unreadable, match=r"^there is no word in it$"):
        final_answer(reply, "ANSWER:")


@pytest.mark.parametrize("marker", ["ANSWER:", "Final answer :", "###", ":", "=> ", "A.*B:", "\u7b54\u6848:"])
def test_any_marker_is_taken_literally(marker: str) -> None:
    assert final_answer(f"A.B: ten\n{marker} ten\n{marker.strip()} twelve", marker.strip()) == "twelve"


@given(
    st.text(),
    st.text(st.characters(categories=["L", "N"]), min_size=1),
    st.sampled_from(["", "**", "_", "```"]),
)
def test_plain_words_behind_the_marker_come_back_whole(before: str, answer: str, mark: str) -> None:
    assert final_answer(f"{before}\n{mark}ANSWER:{mark} {answer}", "ANSWER:") == answer


@given(st.text(st.sampled_from("*_`\"' \n:~ANSWERx")))
def test_any_reply_is_read_or_refused(reply: str) -> None:
    try:
        answer = final_answer(reply, "ANSWER:")
    except Unreadable:
        return
    assert answer == answer.strip()
    assert _words(answer) in _words(reply)


def _words(text: str) -> str:
    return re.sub(r"""[*_`"'~\s]""", "", text)


@pytest.mark.timeout(5)
@pytest.mark.parametrize("run", ["*", "_", "`", '"', "ANSWER", "ANSWER:", "ANSWER ", "```", "** "])
def test_long_runs_of_marks_are_read_at_once(run: str) -> None:
    reply = f"{run * 20_000}\nANSWER: {run * 20_000} twelve"
    assert final_answer(reply, "ANSWER:").endswith("twelve")
