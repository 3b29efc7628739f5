"""A 400 that names a parameter is adapted to once per model; everything else stays as the user set it."""

from __future__ import annotations

import asyncio

import pytest
from chat_story import FORMAT, FakeTime, as_it_is, question
from chat_story import stage as stage
from chat_story import story as story
from llm_server import cut, error, status, text

from pytest_himga.llm.adapting import Adapting
from pytest_himga.llm.fault import error_of
from pytest_himga.llm.prompt import ModelSpec
from pytest_himga.llm.redact import Redactor

SET = {"temperature": 0.0, "max_tokens": 50, "top_p": 1, "stop": ["\n"]}

#: How servers say it: the body of a 400, and the parameter that it is about (None: about none of ours).
SAID = {
    "by field": (error("no", param="temperature", code="unsupported_parameter"), "temperature"),
    "by a path": (error("no", param="stop[0]"), "stop"),
    "by pydantic": (
        {"detail": [{"type": "extra_forbidden", "loc": ["body", "top_p"], "msg": "no"}]},
        "top_p",
    ),
    "by pydantic in words": (error("[{'type': 'extra_forbidden', 'loc': ('body', 'top_p')}]"), "top_p"),
    "by pydantic of the reply": (
        error("1 error: {'loc': ('response', 'str'), 'input': {'finish_reason': 'stop'}}"),
        None,
    ),
    "in quotes": (error("Unsupported value: 'temperature' does not support 0.0; stop here"), "temperature"),
    "in other quotes": ({"message": "`top_p` and `temperature` cannot both be set"}, "top_p"),
    "as a word": ({"error": "temperature is not supported with this model"}, "temperature"),
    "first one first": ({"detail": "top_p or temperature, not both"}, "top_p"),
    "the field wins": (error("'temperature' is fine", param="top_p"), "top_p"),
    "part of a word": (error("set max_tokens_to_sample or temperature_scale or non-stop"), None),
    "another's": (error("unknown field 'seed'", param="seed"), None),
    "of the messages": (error("stop using images", param="messages"), None),
    "of the model": (error("this model is not found; temperature is 20 C here", param="model"), None),
    "of the context": (error("maximum context length is 9, lower 'max_tokens'", param="max_tokens"), None),
    "of nothing": ({}, None),
}


@pytest.mark.parametrize(("said", "name"), SAID.values(), ids=SAID)
def test_a_parameter_is_found_as_it_is_named(said, name):
    adapting = Adapting(ModelSpec("gpt-x", "http://here/v1", SET))
    before = adapting.body(question())

    learned = adapting.learn(error_of(said, Redactor()), before)

    after = adapting.body(question())
    assert learned == (name is not None)
    assert set(before) - set(after) == ({name} if name else set())
    assert len(adapting.notes) == learned


def test_a_model_that_takes_nothing_is_asked_without_anything_in_the_end(story):
    def strict(body):
        for name in ("temperature", "max_tokens", "max_completion_tokens", "response_format"):
            if name in body:
                return status(400, error(f"Unsupported parameter: '{name}'", param=name))
        return text("purple")

    story.server.reply = strict
    chat = story.chat({"temperature": 0.0, "max_tokens": 50, "top_p": 1}, pace=FakeTime().pace)

    told = story.ask(chat, asking=question(response_format=FORMAT))
    again = story.ask(chat, asking=question(response_format=FORMAT))

    kinds = [(sent or {}).get("type") for sent in told.sent("response_format")]
    assert told.value == "purple"
    assert told.sent("temperature") == [0.0, *[None] * 6]
    assert told.sent("max_tokens") == [50, 50, *[None] * 5]
    assert told.sent("max_completion_tokens") == [None, None, 50, None, None, None, None]
    assert kinds == ["json_schema"] * 4 + ["json_object", "json_object", None]
    assert told.sent("top_p") == [1] * 7
    assert (told.usage.calls, told.usage.retries) == (7, 6)
    # It is remembered, and told once.
    assert len(again.asked) == 1
    assert chat.notes == [
        "gpt-x does not take temperature: sent without it",
        "gpt-x does not take max_tokens: sent as max_completion_tokens",
        "gpt-x does not take max_completion_tokens: sent without it",
        "gpt-x does not take response_format json_schema: sent as json_object with a schema",
        "gpt-x does not take response_format json_object with a schema: sent as json_object",
        "gpt-x does not take response_format json_object: sent without it",
    ]


@pytest.mark.parametrize(
    "words",
    [
        "json_schema is not supported by this model",
        "'messages' must contain the word 'json' to use 'response_format' of type 'json_object'",
        "response_format.type: Input should be 'text'",
    ],
)
def test_a_format_is_complained_of_in_many_words(story, words):
    act = status(422, error(words, param="messages"))

    told = story.tell(act, act, act, text("purple"), asking=question(response_format=FORMAT))

    kinds = [(sent or {}).get("type") for sent in told.sent("response_format")]
    assert (told.value, kinds) == ("purple", ["json_schema", "json_object", "json_object", None])


#: As llama-cpp-python's server answers what it does not take, and as llama.cpp's own did.
FAILED_OVER_A_FORMAT = {
    "pydantic": "1 validation error:\n  {'type': 'literal_error', 'loc': ('body', 'response_format', 'type'), "
    "'msg': \"Input should be 'text' or 'json_object'\", 'input': 'json_schema'}",
    "words": 'response_format type must be one of "text" or "json_object", but got: json_schema',
}


@pytest.mark.parametrize("words", FAILED_OVER_A_FORMAT.values(), ids=FAILED_OVER_A_FORMAT)
def test_a_server_that_fails_over_a_format_gets_the_one_that_it_takes(story, words):
    act = status(500, error(words, type="internal_server_error", param=None, code=None))

    told = story.tell(act, text("purple"), asking=question(response_format=FORMAT))

    assert (told.value, told.usage.calls) == ("purple", 2)
    assert told.sent("response_format")[1] == {"type": "json_object", "schema": FORMAT.schema}
    assert told.notes == [
        "gpt-x does not take response_format json_schema: sent as json_object with a schema"
    ]


def test_a_server_that_just_fails_is_asked_the_same_again(story):
    act = status(500, error("the temperature of the machine is too high"))

    told = story.tell(act, text("purple"), options={"temperature": 0.0})

    assert (told.value, told.sent("temperature"), told.notes) == ("purple", [0.0, 0.0], [])


def test_both_limits_of_the_users_are_left_out_one_by_one(story):
    def neither(body):
        name = next((name for name in ("max_tokens", "max_completion_tokens") if name in body), None)
        return status(400, error("no", param=name)) if name else text("purple")

    story.server.reply = neither
    told = story.tell(options={"max_tokens": 5, "max_completion_tokens": 6})

    assert (told.value, len(told.asked)) == ("purple", 3)


def test_a_larger_budget_goes_by_the_name_that_the_model_takes(story):
    unknown = status(400, error("use max_completion_tokens", param="max_tokens"))

    told = story.tell(text(""), unknown, text("purple"))

    assert (told.value, told.sent("max_completion_tokens")) == ("purple", [None, None, 4096])


@pytest.mark.parametrize("options", [{"max_tokens": 5000}, {"max_completion_tokens": 5000}, {}])
@pytest.mark.parametrize(
    "words",
    [
        "{} is too large: 20000. This model supports at most 16384 completion tokens",
        "{}: 20000 > 8192, which is the maximum allowed number of output tokens",
        "{}: Input should be less than or equal to 8192",
    ],
)
def test_that_a_larger_budget_is_too_large_says_nothing_about_the_users_own(story, words, options):
    name = next(iter(options), "max_tokens")
    chat = story.chat(options, pace=FakeTime().pace)

    lost = story.ask(chat, cut("pur"), status(400, error(words.format(name), param=name)))
    next_one = story.ask(chat, text("purple"))

    assert lost.error.startswith("the reply of gpt-x was cut off at its token limit, and a second try")
    assert len(lost.asked) == 2
    assert next_one.sent(name) == [options.get(name)]
    assert chat.notes == []


def test_a_model_without_any_limit_gets_no_second_try(story):
    unknown = (
        status(400, error("no", param="max_tokens")),
        status(400, error("no", param="max_completion_tokens")),
    )

    told = story.tell(*unknown, text(""), options={"max_tokens": 5})

    assert told.error == "the reply of gpt-x was empty, and the model takes no other limit"
    assert len(told.asked) == 3


@pytest.mark.parametrize("number", [400, 422])
def test_a_400_that_stays_after_everything_is_final(story, number):
    act = status(number, error("temperature is odd"))

    told = story.tell(act, act, options={"temperature": 0.0})

    assert "temperature is odd" in told.error
    assert (told.sent("temperature"), told.usage.calls) == ([0.0, None], 2)


def test_calls_that_meet_the_same_400_together_adapt_once(story):
    def strict(body):
        return status(400, error("no", param="max_tokens")) if "max_tokens" in body else text("purple")

    story.server.reply = strict
    story.server.asked.clear()
    chat = story.chat({"max_tokens": 50}, pace=FakeTime().pace)

    async def many():
        return await asyncio.gather(*(chat.ask(question(f"q{n}"), as_it_is) for n in range(12)))

    assert [reply.value for reply in story.runner.run(many())] == ["purple"] * 12
    assert chat.notes == ["gpt-x does not take max_tokens: sent as max_completion_tokens"]
    assert all("max_tokens" in body or "max_completion_tokens" in body for body in story.server.bodies)


def test_what_the_model_takes_is_behind_status_200_too(story):
    told = story.tell(status(200, error("no", param="top_k", code=400)), text("purple"), options={"top_k": 3})

    assert (told.value, told.sent("top_k")) == ("purple", [3, None])


@pytest.mark.parametrize(
    "words",
    [
        "System role not supported",
        "Error rendering the template: system messages are not supported.",
        "A system prompt cannot be accepted... the system prompt is not allowed here",
        "Conversation roles must alternate user/assistant/user/assistant/...",
        "Only user and assistant roles are supported!",
    ],
)
def test_a_model_without_a_system_role_gets_its_words_in_the_users_message(story, words):
    def reply(body):
        if body["messages"][0]["role"] == "system":
            return status(400, {"object": "error", "message": words, "code": 400})
        return text("fine")

    story.server.reply = reply
    chat = story.chat({"temperature": 0.0}, pace=FakeTime().pace)

    told, again = story.ask(chat), story.ask(chat)

    assert (told.value, again.value) == ("fine", "fine")
    sent = [*told.sent("messages"), *again.sent("messages")]
    assert [[message["role"] for message in messages] for messages in sent] == [
        ["system", "user"],
        ["user"],
        ["user"],
    ]
    assert sent[1][0]["content"].startswith("Be short.\n\n<question_")
    assert told.sent("temperature") == [0.0, 0.0]
    assert chat.notes == ["gpt-x takes no system message: its text is sent at the head of the user's"]
