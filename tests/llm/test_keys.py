"""No key and no password is ever shown, also not if a server says it back in every way it can."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import traceback
from urllib.parse import quote, quote_plus

import pytest
from chat_story import FakeTime, as_it_is, question
from llm_server import LLMServer, body, completion, error, hang_up, status, text

from pytest_himga.errors import LLMError
from pytest_himga.llm.contract import Unreadable
from pytest_himga.llm.endpoint import Endpoint, read_endpoint
from pytest_himga.llm.openai_chat import OpenAIChat
from pytest_himga.llm.prompt import ModelSpec
from pytest_himga.llm.redact import Redactor
from pytest_himga.llm.retrying import Breaker

KEY = "sk-proj-Tulip0Pump1Hedge2hog3"
PASSWORD = 'p@ss /w"rd&pump'
PAIR = base64.b64encode(f"ada:{PASSWORD}".encode()).decode()

#: Every form in which a key or a password may come back.
SECRETS = (KEY, PASSWORD, "p%40ss%20/w%22", "p%40ss%20%2Fw", "p%40ss+%2Fw", 'p@ss /w\\"rd', PAIR, "Tulip0")


def echo(handler, act_of):
    """Do what is made of all that the request's headers said."""
    said = handler.asked.headers.get("authorization", "")
    plain = base64.b64decode(said[6:]).decode() if said.startswith("Basic ") else said
    secret = plain.partition(":")[2] or KEY
    act_of(
        f"{said} and {plain} and {secret} and {quote(secret)} and {quote(secret, safe='')} and {quote_plus(secret)}"
    )(handler)


ECHOES = {
    "an error": lambda said: status(401, error(f"bad key: {said}")),
    "an error's fields": lambda said: status(400, error("no", code=said, param=said)),
    "an error of another custom": lambda said: status(
        422, {"detail": [{"loc": ["body", said], "msg": said}]}
    ),
    "a page": lambda said: status(502, f"<title>{said}</title>"),
    "plain text": lambda said: status(500, said),
    "an error behind 200": lambda said: body({"error": {"message": said, "code": 403}}),
    "what is no JSON": lambda said: body(said),
    "what is no completion": lambda said: body([said]),
    "a redirect": lambda said: status(307, b"", Location=f"http://elsewhere/v1?key={said}"),
    "headers": lambda said: status(
        500, error("no"), X_Request_Id=said, Retry_After=said, Set_Cookie=f"k={said}"
    ),
    "a refusal": lambda said: text(None, refusal=said),
    "a reply": lambda said: text(f"The header was: {said}"),
    "a reply in parts": lambda said: body(completion([{"type": "text", "text": said}])),
    "a key masked halfway": lambda said: status(401, error(f"Incorrect key: {said[7:23]}****{said[-4:]}")),
    "the words beside the status": lambda said: (
        lambda handler: (
            handler.wfile.write(f"HTTP/1.1 500 {said}\r\nContent-Length: 0\r\n\r\n".encode()),
            handler.hang_up(),
        )
    ),
    "nothing": lambda said: hang_up,
}


@pytest.fixture(scope="module")
def told():
    """All that is to be seen of a run in which the server does every one of these: for a key and for a password."""
    told = {name: [] for name in ECHOES}
    with LLMServer() as server, asyncio.Runner() as runner:
        for endpoint in _endpoints(server):
            chat = OpenAIChat(ModelSpec("gpt-x", endpoint.server), endpoint, timeout=60, pace=FakeTime().pace)
            for name, act_of in ECHOES.items():
                chat.breaker = Breaker()
                server.script[:] = [lambda handler, act_of=act_of: echo(handler, act_of)] * 6
                told[name].append(_seen(runner, chat, endpoint))
            runner.run(chat.close())
    return told


def _endpoints(server):
    keys = {"HIMGA_API_KEY": KEY}
    with_password = f"http://ada:p%40ss%20%2Fw%22rd%26pump@127.0.0.1:{server.port}/v1"
    for url in (server.url, with_password):
        yield read_endpoint(url, keys, option="--himga-base-url", key_names=["HIMGA_API_KEY"])


class Seen(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.NOTSET)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines += [record.getMessage(), repr(record.args), repr(record.msg)]


def _seen(runner, chat, endpoint) -> str:
    log = Seen()
    root = logging.getLogger()
    loggers = [
        root,
        *(logging.getLogger(name) for name in ("openai", "httpx2", "httpx", "aiohttp", "asyncio")),
    ]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.DEBUG)
    root.addHandler(log)
    try:
        shown = runner.run(_ask(chat))
    finally:
        root.removeHandler(log)
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
    assert any("HTTP Request" in line for line in log.lines)
    parts = [chat, vars(chat), vars(chat.connection), endpoint, endpoint.redact, chat.breaker.given_up]
    return "\n".join([shown, *log.lines, *map(repr, parts)])


async def _ask(chat) -> str:
    def read(text: str) -> str:
        raise Unreadable(f"this is no verdict: {text}")

    try:
        await chat.ask(question(), read)
    except LLMError as error:
        assert error.__cause__ is None  # noqa: PT017  # pytest.raises would hide the traceback's own frames
        assert error.__context__ is None  # noqa: PT017  # as above
        whole = traceback.TracebackException.from_exception(error, capture_locals=True)
        return "".join(whole.format()) + repr(error) + repr(vars(error))
    raise AssertionError("the reader never reads")


@pytest.mark.parametrize("name", ECHOES)
def test_whatever_a_server_says_back_no_secret_is_seen(told, name):
    for seen in told[name]:
        assert "gpt-x" in seen
        assert [secret for secret in SECRETS if secret in seen] == []


def test_what_was_said_back_shows_that_it_was_said(told):
    for name in ("an error", "a page", "a refusal", "a reply", "a redirect", "the words beside the status"):
        assert all("***" in seen for seen in told[name]), name


def test_the_headers_are_what_they_should_be():
    with LLMServer() as server:
        for endpoint in _endpoints(server):
            chat = OpenAIChat(ModelSpec("gpt-x", endpoint.server), endpoint, timeout=60)
            assert asyncio.run(_closing(chat)) == "ok"

        sent = [asked.headers["authorization"] for asked in server.asked]
        assert sent == [f"Bearer {KEY}", f"Basic {PAIR}"]
        assert all(KEY not in json.dumps(asked.body) + asked.path for asked in server.asked)


async def _closing(chat):
    try:
        return (await chat.ask(question(), as_it_is)).value
    finally:
        await chat.close()


def test_an_endpoint_has_nothing_to_look_into():
    endpoint = Endpoint("http://here/v1", KEY)

    assert repr(endpoint) == "Endpoint('http://here/v1')"
    assert not hasattr(endpoint, "__dict__")
    assert not hasattr(endpoint.redact, "__dict__")


@pytest.mark.parametrize("placeholder", ["none", "EMPTY", "ollama"])
def test_a_placeholder_is_no_secret_in_an_answer_but_is_one_in_an_error(placeholder):
    redact = Redactor([placeholder])
    said = f"There is {placeholder}, nonetheless EMPTYish ollamas."

    assert redact.reply(said) == said
    assert redact.sentence(said) == said.replace(f" {placeholder},", " ***,")


def test_a_key_of_three_letters_hides_nothing():
    assert Redactor(["key"]).sentence("no key given") == "no key given"


@pytest.mark.parametrize(
    ("said", "clean"),
    [
        ("Incorrect API key provided: sk-pr*****hog3.", "Incorrect API key provided: ***"),
        ("key sk-proj-...hog3 is dead", "key *** is dead"),
        ("wait ... what", "wait ... what"),
        (f"x{KEY}y", "x***y"),
    ],
)
def test_a_key_that_a_server_masked_itself_is_masked_better(said, clean):
    assert Redactor([KEY]).sentence(said) == clean
