"""What a server does, and what comes of it: requests made, outcome, sentence, usage."""

from __future__ import annotations

import asyncio

import pytest
from chat_story import FORMAT, FakeTime, as_it_is, question
from chat_story import stage as stage
from chat_story import story as story
from llm_server import (
    TOKENS_IN,
    TOKENS_OUT,
    LLMServer,
    body,
    cut,
    error,
    hang_up,
    refused,
    stall,
    status,
    text,
    torn,
)

from pytest_himga.errors import LLMError
from pytest_himga.llm.contract import Unreadable
from pytest_himga.llm.endpoint import Endpoint
from pytest_himga.llm.openai_chat import OpenAIChat
from pytest_himga.llm.prompt import ModelSpec
from pytest_himga.memory.protocol import Usage


def paid(calls: int = 1, *, told: int = 1, untold: int = 0) -> Usage:
    """The usage of so many calls, of which ``told`` brought token counts."""
    return Usage(calls, TOKENS_IN * told, TOKENS_OUT * told, retries=calls - 1, untold=untold)


def test_a_plain_question_is_one_request_with_nothing_that_nobody_set(story):
    told = story.tell(text("purple"))

    assert (told.value, told.usage, told.notes) == ("purple", paid(), [])
    (asked,) = told.asked
    assert asked.path == "/v1/chat/completions"
    assert sorted(asked.body) == ["messages", "model"]
    assert asked.body["messages"][0] == {"role": "system", "content": "Be short."}
    assert "Which colour?" in asked.prompt
    assert asked.headers["authorization"] == "Bearer sk-scripted-0123456789"


def test_the_users_parameters_and_the_format_are_sent_as_they_are(story):
    options = {"temperature": 0.0, "reasoning_effort": "low", "min_p": 0.05, "model": "another"}

    (asked,) = story.tell(options=options, asking=question(response_format=FORMAT)).asked

    assert asked.body["temperature"] == 0.0
    assert (asked.body["reasoning_effort"], asked.body["min_p"]) == ("low", 0.05)
    assert asked.body["model"] == "gpt-x"
    assert asked.body["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "verdict", "schema": FORMAT.schema, "strict": True},
    }


PARTS = [
    {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]},
    {"type": "text", "text": "pur"},
    "ple",
]


@pytest.mark.parametrize(
    ("content", "value"),
    [
        pytest.param("  purple\n", "purple", id="white space"),
        pytest.param("<think>yellow?</think>purple", "purple", id="reasoning"),
        pytest.param(PARTS, "purple", id="parts"),
        pytest.param("violet \ud800", "violet \\ud800", id="half a character"),
    ],
)
def test_the_reader_gets_text_and_nothing_else(story, content, value):
    assert story.tell(text(content)).value == value


@pytest.mark.parametrize("finish", [None, "eos", "end_turn", "tool_calls"])
def test_other_servers_have_other_names_for_an_ordinary_end(story, finish):
    assert story.tell(text("purple", finish=finish)).value == "purple"


#: What passes by itself: the act, then the answer of the server as usual.
PASSING = {
    "408": status(408),
    "409": status(409),
    "425": status(425),
    "429": status(429),
    "500": status(500),
    "503, a page": status(503, "<html><head><title>503 Busy</title></head></html>"),
    "529": status(529),
    "hangs up": hang_up,
    "breaks off": torn(40),
    "no HTTP": lambda handler: (handler.wfile.write(b"garbage\r\n\r\n"), handler.hang_up()),
    "not the gzip that it says": body(b"garbage", Content_Encoding="gzip"),
    "200 with an error": body(error("slow down", code=429)),
    "200 with an error's name": body(error("slow down", code="rate_limit_exceeded")),
    "200 with an error in the choice": body(
        {"choices": [{"error": {"message": "bad gateway", "code": "502"}}]}
    ),
}


@pytest.mark.parametrize("act", PASSING.values(), ids=PASSING)
def test_what_passes_by_itself_is_tried_again(story, act):
    told = story.tell(act, text("purple"))

    assert (told.value, told.usage, len(told.waits)) == ("purple", paid(2), 1)


#: What is final: the act, what the sentence must say, and the usage.
FINAL = {
    "400": (
        status(400, error("messages must not be odd")),
        "answered 400 Bad Request: messages must not",
        paid(told=0),
    ),
    "401": (
        status(401, error("no")),
        "answered 401 Unauthorized: no; check the key in HIMGA_API_KEY",
        paid(told=0),
    ),
    "403": (status(403, error("no")), "answered 403 Forbidden: no; check the key", paid(told=0)),
    "404": (status(404, error("what?")), "is there a model 'gpt-x', and does the base URL end", paid(told=0)),
    "402": (status(402, error("top up")), "answered 402 Payment Required: top up", paid(told=0)),
    "a redirect": (status(308, b"", Location="https://new/v1/x"), "points to https://new/v1/x", paid(told=0)),
    "no quota": (
        status(429, error("pay", code="insufficient_quota")),
        "Too Many Requests: pay",
        paid(told=0),
    ),
    "moderation": (
        status(403, error("input was flagged")),
        "a content filter kept the request",
        paid(told=0),
    ),
    "too long": (
        status(400, error("too long", code="context_length_exceeded", param="messages")),
        "longer than the context of gpt-x",
        paid(told=0),
    ),
    "too long in words": (
        status(400, error("This model's maximum context length is 9 tokens; reduce max_tokens")),
        "longer than the context of gpt-x",
        paid(told=0),
    ),
    "no JSON": (body("<p>hello\n you"), 'answered 200 with what is no JSON: "<p>hello you"', paid(told=0)),
    "nothing": (body(""), "answered 200 with an empty body", paid(told=0)),
    "a list": (body([]), "what is no completion", paid(told=0)),
    "no choices": (body({"choices": []}), "a completion without choices", paid(told=0)),
    "no message": (body({"choices": [{"text": "old"}]}), "a choice without a message", paid(told=0)),
    "content is a number": (text(7), "content is no text", paid()),
    "an error inside": (
        body({"error": "it broke"}),
        "answered 200 with an error inside: it broke",
        paid(told=0),
    ),
    "a final status inside": (
        body(error("no", code=401)),
        "200 with an error inside, 401 Unauthorized: no; check the key",
        paid(told=0),
    ),
    "a refusal": (refused("I would\nrather not"), 'gpt-x refused: "I would rather not"', paid()),
    "a filter": (text("pur", finish="content_filter"), "a content filter stopped the reply of gpt-x", paid()),
}


@pytest.mark.parametrize(("act", "sentence", "usage"), FINAL.values(), ids=FINAL)
def test_what_is_final_is_told_at_once(story, act, sentence, usage):
    told = story.tell(act)

    assert sentence in told.error
    assert "\n" not in told.error
    assert (told.value, told.usage, told.waits) == (None, usage, [])


#: Text that is no answer: what it says of itself.
SHORT = {
    "empty": (text(""), "the reply of gpt-x was empty"),
    "white": (text(" \n "), "the reply of gpt-x was empty"),
    "none": (text(None), "the reply of gpt-x was empty"),
    "reasoning": (text("<think>purple"), "the reply of gpt-x was nothing but reasoning"),
    "cut off": (cut('{"verdict": "correct"}'), "the reply of gpt-x was cut off at its token limit"),
    "cut off, other name": (text("purple", finish="max_tokens"), "was cut off at its token limit"),
}


@pytest.mark.parametrize(("act", "sentence"), SHORT.values(), ids=SHORT)
def test_a_reply_that_is_too_short_gets_one_larger_budget(story, act, sentence):
    saved = story.tell(act, text("purple"))
    lost = story.tell(act, act)

    assert (saved.value, saved.usage, saved.sent("max_tokens")) == ("purple", paid(2, told=2), [None, 4096])
    assert sentence in lost.error
    assert lost.error.endswith("also with a larger limit")
    assert (lost.value, lost.usage) == (None, paid(2, told=2))


@pytest.mark.parametrize("name", ["max_tokens", "max_completion_tokens"])
def test_the_larger_budget_is_four_times_the_users(story, name):
    told = story.tell(cut("pur"), text("purple"), options={name: 50})

    assert (told.value, told.sent(name)) == ("purple", [50, 200])


def test_where_nobody_set_a_budget_the_larger_one_is_four_times_what_was_used(story):
    long = {"prompt_tokens": 9, "completion_tokens": 16_000, "total_tokens": 16_009}

    told = story.tell(cut("pur", usage=long), text("purple"))

    assert (told.value, told.sent("max_tokens")) == ("purple", [None, 64_000])


def test_a_large_context_is_sent_whole_also_where_warnings_are_errors(story):
    """aiohttp warns of more than a megabyte in one piece, and this project's warnings are errors."""
    context = "tulips \U0001f337 " * 100_000
    story.server.reply = lambda body: f"{body['messages'][1]['content'].count('tulips')} tulips"

    told = story.tell(asking=question(context))

    assert (told.value, told.usage) == ("100000 tulips", paid())
    assert int(told.asked[0].headers["content-length"]) > 2**20
    assert told.asked[0].headers["authorization"] == "Bearer sk-scripted-0123456789"


def test_a_larger_budget_that_does_not_fit_is_told_with_what_came_before(story):
    told = story.tell(cut("pur"), status(400, error("maximum context length is 2048")))

    assert told.error.startswith("the reply of gpt-x was cut off at its token limit, and a second try")
    assert "longer than the context of gpt-x" in told.error
    assert told.usage == paid(2)


@pytest.mark.parametrize(
    "usage", [None, {}, [], {"prompt_tokens": 4}, {"prompt_tokens": True, "completion_tokens": -1}]
)
def test_a_reply_without_counts_is_untold(story, usage):
    assert story.tell(status(500), text("purple", usage=usage)).usage == paid(2, told=0, untold=1)


def test_what_the_reader_cannot_read_is_told_with_its_start(story):
    def picky(text: str) -> str:
        raise Unreadable("no verdict in the reply")

    chat = story.chat(pace=FakeTime().pace)
    told = story.ask(chat, text("well,\x1b[31m\n it \u202edepends" + " and so on" * 20), read=picky)

    assert told.error.startswith('no verdict in the reply: "well, [31m it depends and so on')
    assert told.error.endswith('..."')
    assert len(told.error) < 120
    assert told.usage == paid()


def test_a_servers_long_story_becomes_one_short_line(story):
    told = story.tell(status(400, error("oh\r\n" + "very " * 500)))

    assert "oh very very" in told.error
    assert len(told.error) < 300
    assert told.error.isprintable()


class OneCache:
    def __init__(self) -> None:
        self.texts: dict[str, str] = {}

    async def get(self, fingerprint: str) -> str | None:
        return self.texts.get(fingerprint)

    async def put(self, fingerprint: str, text: str, *, model: str, server: str) -> None:
        self.texts[fingerprint] = text


def test_a_text_that_was_read_is_not_asked_for_again(story):
    cache = OneCache()

    first = story.tell(text("<think>yellow</think>purple"), cache=cache)
    again = story.tell(cache=cache)

    assert (first.value, list(cache.texts.values())) == ("purple", ["purple"])
    assert (again.value, again.usage, again.asked) == ("purple", Usage(cached=1), [])


@pytest.mark.parametrize(
    "act", [status(400), cut("purple"), text(""), refused("no"), body(error("no", code="x"))]
)
def test_nothing_but_a_whole_reply_is_kept(story, act):
    cache = OneCache()

    assert story.tell(act, act, cache=cache).error
    assert cache.texts == {}


def test_what_no_reader_accepts_is_neither_kept_nor_taken_from_the_cache(story):
    def only_yes(text: str) -> str:
        if text != "yes":
            raise Unreadable("this is no yes")
        return text

    cache = OneCache()
    chat = story.chat(pace=FakeTime().pace, cache=cache)

    refused_now = story.ask(chat, text("no"), read=only_yes)
    assert (refused_now.error, cache.texts) == ('this is no yes: "no"', {})

    cache.texts[question().fingerprint(chat.spec)] = "an old no"
    asked_again = story.ask(chat, text("yes"), read=only_yes)
    assert (asked_again.value, asked_again.usage, [*cache.texts.values()]) == ("yes", paid(), ["yes"])


def test_offline_a_miss_is_told_and_no_call_is_made(story):
    told = story.tell(cache=OneCache(), offline=True)

    fingerprint = question().fingerprint(ModelSpec("gpt-x", story.server.url))
    assert told.error == f"not in the cache (request {fingerprint[:12]}), and --himga-offline makes no call"
    assert (told.usage, told.asked) == (Usage(), [])


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("http://127.0.0.1:{free}/v1", "refused the connection: is the server running there? (5 attempts)"),
        ("https://127.0.0.1:{plain}/v1", "cannot be talked to safely (TLS): "),
    ],
)
def test_a_server_that_cannot_be_reached_is_named(story, url, sentence):
    with LLMServer() as gone:
        free = gone.port
    url = url.format(free=free, plain=story.server.port)
    chat = OpenAIChat(ModelSpec("gpt-x", url), Endpoint(url), timeout=60, pace=FakeTime().pace)

    with pytest.raises(LLMError) as caught:
        story.runner.run(closing(chat))

    assert caught.value.message.startswith(f"{url} {sentence}")
    assert caught.value.usage == paid(5, told=0)


async def closing(chat: OpenAIChat) -> None:
    try:
        await chat.ask(question(), as_it_is)
    finally:
        await chat.close()


def test_each_event_loop_gets_a_client_of_its_own():
    with LLMServer() as server:
        chat = OpenAIChat(ModelSpec("gpt-x", server.url), Endpoint(server.url), timeout=60)
        for _ in range(2):
            asyncio.run(closing(chat))

        assert len(server.asked) == 2
        # Nobody invents a key for a server that has none.
        assert ["authorization" in asked.headers for asked in server.asked] == [False, False]


def test_many_at_a_time_use_one_client_and_stay_apart(story):
    chat = story.chat(pace=FakeTime().pace)
    story.server.reply = lambda body: body["messages"][1]["content"].splitlines()[1]

    async def many():
        return await asyncio.gather(*(chat.ask(question(f"q{n}"), as_it_is) for n in range(40)))

    assert [reply.value for reply in story.runner.run(many())] == [f"q{n}" for n in range(40)]


def test_a_cancelled_question_stays_cancelled(story):
    chat = story.chat(pace=FakeTime().pace)
    story.server.script[:] = [stall(5)]

    async def cancelled():
        task = asyncio.create_task(chat.ask(question(), as_it_is))
        await asyncio.sleep(0.005)
        task.cancel()
        await task

    with pytest.raises(asyncio.CancelledError) as caught:
        story.runner.run(cancelled())
    # No frame of a library is left in it: their locals hold the request's headers.
    frames = [str(entry.path) for entry in caught.traceback]
    assert caught.value.__context__ is None
    assert [path for path in frames if "aiohttp" in path or "openai/" in path or "httpx" in path] == []
