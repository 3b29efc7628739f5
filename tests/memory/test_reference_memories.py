"""The controls of every run: null, full-context, oracle and bm25."""

from __future__ import annotations

import logging

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_himga.data.schema import Message, Session
from pytest_himga.memory.bm25 import BM25Memory
from pytest_himga.memory.protocol import Recalled
from pytest_himga.memory.reference import FullContextMemory, NullMemory, OracleMemory


def fed(memory, *texts: str, speaker: str = "Ada"):
    memory.reset()
    for n, text in enumerate(texts, 1):
        memory.ingest(Message(speaker, text, f"D1:{n}", "3 March"))
    return memory


def found(memory, query: str, k: int = 10) -> list[str]:
    return [one for r in memory.retrieve(query, k=k) for one in r.turn_ids]


# -- null, full-context, oracle -------------------------------------------------------------------


def test_null_remembers_nothing():
    assert fed(NullMemory(), "I planted tulips.").retrieve("tulips?") == []


def test_full_context_returns_everything_with_dates_and_speakers():
    memory = FullContextMemory()
    memory.reset()
    memory.ingest_session(Session("s1", [Message("Ada", "Tulips!"), Message("Ben", "Where?")], "3 March"))
    memory.ingest_session(Session("s2", [Message("Ada", "There.")]))
    assert memory.retrieve("anything") == "[3 March]\nAda: Tulips!\nBen: Where?\n\n[no date]\nAda: There."
    memory.reset()
    assert memory.retrieve("anything") == ""


def test_oracle_returns_exactly_what_was_revealed_as_one_thing():
    memory = fed(OracleMemory(), "I planted tulips.", "It rained.", "They are purple.")
    memory.reveal("What colour?", ["D1:1", "D1:3"])
    assert memory.retrieve("What colour?") == [
        Recalled("[3 March]\nAda: I planted tulips.\nAda: They are purple.", turn_ids=["D1:1", "D1:3"])
    ]


def test_oracle_knows_nothing_that_was_not_revealed_or_not_heard():
    memory = fed(OracleMemory(), "I planted tulips.")
    assert memory.retrieve("What colour?") == []
    memory.reveal("What colour?", ["D7:7"])
    assert memory.retrieve("What colour?") == []
    memory.reveal("Which flower?", ["D1:1"])
    memory.reset()
    assert memory.retrieve("Which flower?") == []


def test_oracle_returns_whole_sessions_too():
    memory = OracleMemory()
    days = [
        Session(f"s{s}", [Message("Ada", text, f"D{s}:{t}") for t, text in enumerate(texts, 1)])
        for s, texts in enumerate([["Tulips!", "Twelve."], ["Rain."]], 1)
    ]
    for day in days:
        for message in day.messages:
            memory.ingest(message, day)
    memory.reveal("What?", ["D2:1", "s1", "s9"])
    assert memory.retrieve("What?") == [
        Recalled("Ada: Rain.\nAda: Tulips!\nAda: Twelve.", turn_ids=["D2:1"], session_ids=("s1",))
    ]
    memory.reset()
    memory.reveal("What?", ["s1"])
    assert memory.retrieve("What?") == []


@pytest.mark.parametrize("kind", [NullMemory, FullContextMemory, BM25Memory, OracleMemory])
def test_agents_share_the_store_and_a_reopened_one_lies_over_it(kind):
    memory = kind()
    memory.reset()
    day = Session("s1", [Message("Ada", "I planted tulips.", "D1:1")], "3 March")
    one = memory.as_agent("a")
    if hasattr(one, "ingest_session"):
        one.ingest_session(day)
    else:
        one.ingest(day.messages[0])
    if kind is OracleMemory:
        memory.reveal("tulips", ["D1:1"])
    fresh = memory.reopen()
    assert fresh is not memory
    assert type(fresh) is kind
    expected = memory.retrieve("tulips")
    assert bool(expected) is (kind is not NullMemory)
    assert memory.as_agent("b").retrieve("tulips") == fresh.retrieve("tulips") == expected
    assert fresh.as_agent("b").retrieve("tulips") == expected


# -- bm25 -----------------------------------------------------------------------------------------


def test_bm25_finds_words_and_their_inflections():
    memory = fed(
        BM25Memory(), "The ferry sails at dawn.", "I painted a door.", "Two ferries were painting the sea."
    )
    assert found(memory, "painting ferry")[0] == "D1:3"
    assert set(found(memory, "painting ferry")) == {"D1:1", "D1:2", "D1:3"}
    assert found(memory, "door") == ["D1:2"]


def test_bm25_returns_turns_as_a_reader_would_quote_them():
    (hit,) = fed(BM25Memory(), "I planted tulips.").retrieve("tulips")
    assert (hit.text, hit.turn_ids, hit.date_str) == ("Ada: I planted tulips.", ["D1:1"], "3 March")
    assert hit.score > 0
    assert type(hit.score) is float


def test_bm25_finds_by_speaker_and_by_caption():
    memory = fed(BM25Memory(), "[Image: a heron on a boat] Look!", "Nothing here.")
    assert found(memory, "heron") == ["D1:1"]
    assert found(memory, "Ada") == ["D1:2", "D1:1"]  # the shorter turn is more about her


@pytest.mark.parametrize("texts", [(), ("the and of it",), ("the", "of", "..."), ("!?",), ("🎉",)])
@pytest.mark.parametrize("query", ["tulips", "the of", "", "?!", "🎉"])
def test_bm25_with_nothing_to_index_or_nothing_to_ask_finds_nothing(texts, query):
    assert fed(BM25Memory(), *texts, speaker="").retrieve(query) == []


@pytest.mark.parametrize("query", ["", "  ", "the of and", "zeppelin", "?", "kraken zeppelin"])
def test_bm25_with_a_query_without_known_words_finds_nothing(query):
    assert fed(BM25Memory(), "I planted tulips.", "They are purple.").retrieve(query) == []


def test_bm25_with_some_unknown_words_finds_by_the_others():
    memory = fed(BM25Memory(), "I planted tulips.", "They are purple.")
    assert found(memory, "zeppelin tulips kraken") == ["D1:1"]


def test_bm25_leaves_ties_in_the_order_of_the_history():
    memory = fed(BM25Memory(), *["I planted tulips."] * 12, "Rain.")
    assert found(memory, "tulips") == [f"D1:{n}" for n in range(1, 11)]
    assert found(memory, "tulips", k=3) == ["D1:1", "D1:2", "D1:3"]
    assert found(memory, "tulips", k=99) == [f"D1:{n}" for n in range(1, 13)]


def test_bm25_hears_what_comes_after_it_was_asked():
    memory = fed(BM25Memory(), "I planted tulips.")
    assert found(memory, "heron") == []
    memory.ingest(Message("Ben", "A heron came by.", "D2:1"))
    assert found(memory, "heron") == ["D2:1"]
    memory.reset()
    assert memory.retrieve("heron") == []


def test_bm25_does_without_ids():
    memory = BM25Memory()
    memory.ingest(Message("Ada", "I planted tulips."))
    assert memory.retrieve("tulips")[0].turn_ids == []


def test_bm25_takes_its_parameters_and_tells_its_version():
    import bm25s

    long = "tulips " + "and many other words about weather " * 5
    plain, flat = (fed(BM25Memory(b=b), "tulips", long).retrieve("tulips") for b in (0.75, 0.0))
    assert plain[0].score > plain[1].score
    assert flat[0].score == pytest.approx(flat[1].score)
    assert BM25Memory().version == f"bm25s {bm25s.__version__}"


def test_bm25_says_nothing(caplog, capfd):
    caplog.set_level(logging.DEBUG)
    fed(BM25Memory(), "I planted tulips.", "They are purple.").retrieve("tulips")
    assert caplog.text == ""
    assert capfd.readouterr() == ("", "")


words = st.sampled_from(["tulip", "heron", "door", "the", "ferry", "ferries", "?", "🎉", "purple"])
texts = st.lists(st.lists(words, max_size=5).map(" ".join), max_size=8)


@settings(deadline=None, max_examples=40)
@given(texts, st.lists(words, max_size=3).map(" ".join))
def test_two_instances_of_bm25_say_the_same(history, query):
    one, two = (fed(BM25Memory(), *history).retrieve(query) for _ in range(2))
    assert one == two
    scores = [hit.score for hit in one]
    assert scores == sorted(scores, reverse=True)
    assert all(score > 0 for score in scores)
