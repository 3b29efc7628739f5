"""What a memory may return, and what it is told when it returns something else."""

from __future__ import annotations

from collections import UserList, deque
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from pytest_himga.data.schema import Message, Sample, Session
from pytest_himga.errors import BackendError
from pytest_himga.memory.boundary import History, read_context
from pytest_himga.memory.protocol import Context, Recalled

SESSION = Session("9", [Message("Ada", f"turn {n}", f"X{n}") for n in range(1, 16)])
HISTORY = History.of(Sample("x", "locomo", [SESSION], []))


def read(returned: object, top_k: int = 10) -> Context:
    return read_context(returned, HISTORY, top_k)[0]


# -- what is right --------------------------------------------------------------------------------


def test_text_is_taken_as_it_is_and_never_cut():
    text = "Ada: turn 1\n" * 500
    assert read_context(text, HISTORY, 1) == (Context(text), 0)
    assert not Context(text).has_ids


def test_a_list_becomes_texts_and_own_ids_in_its_order():
    context = read([Recalled("b", ["D1:2"], ["s1"], "3 March", 0.9), Recalled("a", ("D1:1",)), Recalled("c")])
    assert context.text == "b\na\nc"
    assert context.recalled == (
        Recalled("b", ("X2",), ("9",), "3 March", 0.9),
        Recalled("a", ("X1",)),
        Recalled("c"),
    )
    assert context.has_ids


@pytest.mark.parametrize("kind", [list, tuple, deque, UserList], ids=lambda kind: kind.__name__)
def test_any_sequence_will_do(kind):
    context, returned = read_context(kind([Recalled("a", ["D1:1"]), Recalled("b")]), HISTORY, 1)
    assert context.recalled == (Recalled("a", ("X1",)),)
    assert returned == 2


def test_an_empty_list_is_an_answer_and_it_has_ids():
    context, returned = read_context([], HISTORY, 10)
    assert (context, returned) == (Context("", ()), 0)
    assert context.has_ids


def test_a_list_longer_than_k_is_cut_and_its_length_is_told():
    context, returned = read_context([Recalled(f"t{n}") for n in range(12)], HISTORY, 5)
    assert context.text == "t0\nt1\nt2\nt3\nt4"
    assert len(context.recalled) == 5
    assert returned == 12


def test_what_is_cut_off_is_not_even_looked_at():
    assert read([Recalled("fine"), "not a Recalled"], top_k=1).text == "fine"


@pytest.mark.parametrize("ids", [None, (), [], set()])
def test_no_ids_can_be_said_in_several_ways(ids):
    assert read([Recalled("a", ids, ids)]).recalled == (Recalled("a"),)


def test_a_set_of_ids_comes_out_in_the_order_of_the_history():
    ids = {f"D1:{n}" for n in (12, 3, 7, 1, 15)}
    assert read([Recalled("a", turn_ids=ids)]).recalled[0].turn_ids == ("X1", "X3", "X7", "X12", "X15")


def test_numpy_text_is_text():
    assert read([Recalled(np.str_("a"), [np.str_("D1:1")])]).recalled == (Recalled("a", ("X1",)),)


@pytest.mark.parametrize(
    ("score", "kept"),
    [
        (0.25, 0.25),
        (1, 1.0),
        (np.float32(0.5), 0.5),
        (np.float64(0.5), 0.5),
        (np.int64(3), 3.0),
        (np.array(0.5), 0.5),
        (Decimal("0.5"), 0.5),
        (Fraction(1, 2), 0.5),
        (None, None),
        (float("nan"), None),
        (np.float32("nan"), None),
        (float("inf"), None),
        (-np.inf, None),
        (10**400, None),
        ("high", None),
        ([], None),
        (np.array([0.5, 0.6]), None),
    ],
    ids=lambda value: repr(value)[:30],
)
def test_a_score_is_a_finite_float_or_nothing(score, kept):
    number = read([Recalled("a", score=score)]).recalled[0].score
    assert number == kept
    assert number is None or type(number) is float


# -- what is wrong --------------------------------------------------------------------------------


def generator():
    yield Recalled("a")


async def async_generator():
    yield Recalled("a")


@pytest.mark.parametrize(
    ("returned", "sentence"),
    [
        (None, "retrieve() returned None; return a str or a list of Recalled"),
        (b"text", "retrieve() returned bytes; return a str or a list of Recalled"),
        (bytearray(b"t"), "retrieve() returned a bytearray; return a str or a list of Recalled"),
        (memoryview(b"t"), "retrieve() returned a memoryview; return a str or a list of Recalled"),
        ({"results": []}, "retrieve() returned a dict; return a str or a list of Recalled"),
        ({Recalled("a")}, "retrieve() returned a set; return a str or a list of Recalled"),
        (42, "retrieve() returned an int; return a str or a list of Recalled"),
        (Recalled("a"), "retrieve() returned a Recalled; return a str or a list of Recalled"),
        (np.array(["a"]), "retrieve() returned a ndarray; return a str or a list of Recalled"),
        (generator(), "retrieve() returned a generator; return a str or a list of Recalled"),
        (async_generator(), "retrieve() returned an async generator; return a str or a list of Recalled"),
        (map(str, "a"), "retrieve() returned a map; return a str or a list of Recalled"),
        (
            ["just text"],
            "retrieve() returned a list whose item 0 is a str; wrap it: Recalled(text, turn_ids=[...])",
        ),
        (
            [Recalled("a"), None],
            "retrieve() returned a list whose item 1 is None; wrap it: Recalled(text, turn_ids=[...])",
        ),
        (
            [Recalled("a"), {"text": "b"}],
            "retrieve() returned a list whose item 1 is a dict; wrap it: Recalled(text, turn_ids=[...])",
        ),
        (
            [Recalled(None)],
            "retrieve() returned a Recalled whose text is None (item 0); text is a str",
        ),
        (
            [Recalled("a"), Recalled(b"b")],
            "retrieve() returned a Recalled whose text is bytes (item 1); text is a str",
        ),
        (
            [Recalled("a", turn_ids="D1:1")],
            "retrieve() returned a Recalled whose turn_ids is a str (item 0); give a list of ids",
        ),
        (
            [Recalled("a", session_ids="s1")],
            "retrieve() returned a Recalled whose session_ids is a str (item 0); give a list of ids",
        ),
        (
            [Recalled("a", turn_ids=7)],
            "retrieve() returned a Recalled whose turn_ids is an int (item 0); give a list of ids",
        ),
        (
            [Recalled("a", turn_ids=np.array(["D1:1", "D1:2"]))],
            "retrieve() returned a Recalled whose turn_ids is a ndarray (item 0); give a list of ids",
        ),
        (
            [Recalled("a", turn_ids=(n for n in ["D1:1"]))],
            "retrieve() returned a Recalled whose turn_ids is a generator (item 0); give a list of ids",
        ),
        (
            [Recalled("a"), Recalled("b", turn_ids=["D1:1", "X2"])],
            (
                "retrieve() returned a Recalled with an id that was never ingested: turn_ids has 'X2' (item 1); "
                "give back the ids that ingest() got, such as 'D1:1', or none"
            ),
        ),
        (
            [Recalled("a", session_ids=["9"])],
            (
                "retrieve() returned a Recalled with an id that was never ingested: session_ids has '9' (item 0); "
                "give back the ids that ingest() got, such as 's1', or none"
            ),
        ),
        (
            [Recalled("a", turn_ids=[None])],
            (
                "retrieve() returned a Recalled with an id that was never ingested: turn_ids has None (item 0); "
                "give back the ids that ingest() got, such as 'D1:1', or none"
            ),
        ),
        (
            [Recalled("a", turn_ids=[["D1:1"]])],
            (
                "retrieve() returned a Recalled with an id that was never ingested: turn_ids has ['D1:1'] (item 0); "
                "give back the ids that ingest() got, such as 'D1:1', or none"
            ),
        ),
    ],
    ids=lambda value: None if isinstance(value, str) else type(value).__name__,
)
def test_anything_else_is_one_sentence_that_says_what_to_do(returned, sentence):
    with pytest.raises(BackendError) as caught:
        read(returned)
    assert str(caught.value) == sentence
    assert caught.value.stage == "retrieve"


def test_an_un_awaited_coroutine_is_named_too():
    async def late():
        return "text"

    coroutine = late()
    with pytest.raises(
        BackendError, match=r"retrieve\(\) returned a coroutine; return a str or a list of Recalled"
    ):
        read(coroutine)
    coroutine.close()


def test_a_history_without_turns_still_gives_a_sentence():
    with pytest.raises(BackendError, match="give back the ids that ingest"):
        read_context([Recalled("a", ["D1:1"])], History.of(Sample("x", "locomo", [], [])), 10)
