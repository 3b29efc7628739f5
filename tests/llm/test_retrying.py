"""When to try again: waits, deadlines, what the server asks for, and when it is given up for all calls."""

from __future__ import annotations

import time

import pytest
from chat_story import FakeTime, question
from chat_story import stage as stage
from chat_story import story as story
from llm_server import error, hang_up, stall, status, text

from pytest_himga.llm.retrying import Pace, retry_after
from pytest_himga.memory.protocol import Usage

NOW = 1_700_000_000.0  # Tue, 14 Nov 2023 22:13:20 GMT


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0"}, 0.0),
        ({"retry-after": " 1.5 "}, 1.5),
        ({"retry-after-ms": "250", "retry-after": "7"}, 0.25),
        ({"retry-after-ms": "soon", "retry-after": "7"}, 7.0),
        ({"retry-after": "Tue, 14 Nov 2023 22:13:50 GMT"}, 30.0),
        ({"retry-after": "Tue, 14 Nov 2023 23:13:30 +0100"}, 10.0),
        ({"retry-after": "Tue, 14 Nov 2023 22:00:00 GMT"}, 0.0),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "a while"}, None),
        ({"retry-after": ""}, None),
    ],
)
def test_what_a_server_asks_for_is_read_in_every_form(headers, seconds):
    assert retry_after(headers, NOW) == seconds


def test_five_attempts_with_waits_that_double(story):
    acts = status(500), hang_up, status(503), status(429), status(502, error("the last one"))

    told = story.tell(*acts)

    assert told.error == f"{story.server.url} answered 502 Bad Gateway: the last one (5 attempts)"
    assert told.waits == [1.0, 2.0, 4.0, 8.0]  # half of the limits: chance is one half here
    assert told.usage == Usage(5, retries=4)


@pytest.mark.parametrize("chance", [0.0, 0.999])
def test_a_wait_of_ones_own_lies_between_none_and_the_limit(chance):
    pace = FakeTime(chance).pace

    waits = [pace.wait(failed, None, 600.0) for failed in (1, 2, 3, 4)]

    assert waits == pytest.approx([chance * limit for limit in (2, 4, 8, 16)])
    assert pace.wait(4, None, 1.0) <= 0.25


def test_a_server_is_waited_for_as_long_as_it_asks_and_a_little_more(story):
    told = story.tell(status(429, Retry_After="20"), status(503, Retry_After="0"), text("purple"))

    assert (told.value, told.waits) == ("purple", [21.0, 0.0])


def test_a_wait_beyond_what_is_left_gives_up_at_once(story):
    told = story.tell(status(429, error("slow down"), Retry_After="3600"), timeout=60)

    assert told.error.endswith("slow down; it asks to wait 3600 s, but a request may take 300 s in all")
    assert (told.waits, told.usage) == ([], Usage(1))


def test_all_attempts_together_end_at_the_deadline(story):
    told = story.tell(*[status(429, Retry_After="40")] * 5, timeout=20)

    assert told.waits == [42.0, 42.0]
    assert told.error.endswith("it asks to wait 40 s, but a request may take 100 s in all")


def test_the_last_attempt_has_no_more_time_than_is_left(story):
    time = FakeTime(chance=0.0)

    told = story.tell(status(503, Retry_After="149.98"), *[stall(5)] * 4, timeout=30, pace=time.pace)

    assert (told.error, time.waits[0]) == (
        f"{story.server.url} did not answer within what was left of 150 s (5 attempts)",
        149.98,
    )


def test_an_attempt_that_takes_too_long_is_given_up_and_another_one_made(story):
    began = time.perf_counter()

    told = story.tell(stall(5), text("purple"), timeout=0.2)

    assert (told.value, told.usage.retries) == ("purple", 1)
    assert time.perf_counter() - began < 3


def test_a_server_that_never_answers_is_told_as_that(story):
    told = story.tell(*[stall(5)] * 5, timeout=0.01)

    assert told.error == f"{story.server.url} did not answer within 0.01 s (5 attempts)"
    assert told.usage == Usage(5, retries=4)


@pytest.mark.parametrize(
    "act",
    [
        status(401),
        status(403),
        status(404),
        status(308, b"", Location="/v1/"),
        status(400, error("?", param="model")),
    ],
    ids=["401", "403", "404", "moved", "no such model"],
)
def test_what_no_call_can_do_better_ends_all_calls(story, act):
    chat = story.chat(pace=FakeTime().pace)

    first = story.ask(chat, act)
    later = [story.ask(chat, asking=question(f"q{n}")) for n in range(3)]

    assert first.usage == Usage(1)
    assert [told.error for told in later] == [first.error] * 3
    assert [(told.usage, told.asked) for told in later] == [(Usage(), [])] * 3


def test_a_dead_server_costs_less_and_less_and_then_nothing(story):
    chat = story.chat(pace=FakeTime().pace)
    story.server.reply = lambda _body: status(500, error("dead"))

    told = [story.ask(chat) for _ in range(12)]

    assert [one.usage.calls for one in told] == [5, 5, 5, *[1] * 7, 0, 0]
    assert told[9].error.endswith("dead; after 10 failed calls in a row no more are made")
    assert told[11].error == told[9].error


def test_one_good_answer_makes_up_for_all_failed_ones(story):
    chat = story.chat(pace=FakeTime().pace)
    dead = [status(500)] * 5

    for _ in range(3):
        assert story.ask(chat, *dead).usage.calls == 5
    assert story.ask(chat, text("purple")).value == "purple"
    assert story.ask(chat, *dead).usage.calls == 5


def test_a_server_that_turns_down_a_question_was_alive(story):
    chat = story.chat(pace=FakeTime().pace)
    dead = [status(500)] * 5

    calls = [
        story.ask(chat, *acts).usage.calls
        for acts in (dead, dead, [status(400)], dead, dead, dead, [hang_up])
    ]

    assert calls == [5, 5, 1, 5, 5, 5, 1]


@pytest.mark.parametrize("act", [status(400, error("odd")), text("", refusal="no")])
def test_a_server_that_turns_down_questions_is_not_dead(story, act):
    chat = story.chat(pace=FakeTime().pace)

    assert all(story.ask(chat, act).usage.calls == 1 for _ in range(12))
    assert story.ask(chat, text("purple")).value == "purple"


def test_without_money_ten_calls_are_enough_to_know(story):
    chat = story.chat(pace=FakeTime().pace)
    broke = status(429, error("no money", code="insufficient_quota"))

    assert [story.ask(chat, broke).usage.calls for _ in range(12)] == [1] * 10 + [0, 0]


def test_real_time_and_chance_are_what_a_run_uses():
    pace = Pace()

    assert 0 <= pace.wait(1, None, 600.0) <= 2
    assert pace.now() == pytest.approx(time.time(), abs=60)
