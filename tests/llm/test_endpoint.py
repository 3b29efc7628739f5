"""Where a model is: base URLs as people write them, and keys from the environment only."""

from __future__ import annotations

import pytest

from pytest_himga.errors import SettingsError
from pytest_himga.llm.endpoint import read_endpoint

NAMES = ["HIMGA_JUDGE_API_KEY", "HIMGA_API_KEY", "OPENAI_API_KEY"]


def endpoint(url=None, /, need_key=True, **environ):
    return read_endpoint(url, environ, option="--himga-base-url", key_names=NAMES, need_key=need_key)


def authorization(endpoint):
    class Request:
        headers = {"Authorization": "Bearer of the library's own"}  # noqa: RUF012  # one request, one use

    return endpoint.authorize(Request()).headers.get("Authorization")


@pytest.mark.parametrize(
    ("url", "server"),
    [
        ("http://localhost:8000/v1", "http://localhost:8000/v1"),
        ("http://localhost:8000/v1/", "http://localhost:8000/v1"),
        (" https://Models.Example.org/api//\n", "https://models.example.org/api"),
        ("HTTP://localhost", "http://localhost"),
        ("http://[::1]:8000/v1", "http://[::1]:8000/v1"),
        ("http://ada:secret-pump@localhost/v1", "http://localhost/v1"),
        ("https://token-of-ada@localhost/v1", "https://localhost/v1"),
        ("https://ada:p@ss@localhost/v1", "https://localhost/v1"),
    ],
)
def test_a_base_url_loses_its_credentials_and_its_last_slash(url, server):
    assert endpoint(url).server == server


def test_without_a_base_url_the_environment_says_it_or_it_is_openai():
    assert endpoint(OPENAI_BASE_URL="http://here/v1/").server == "http://here/v1"
    assert endpoint("http://there/v1", OPENAI_BASE_URL="http://here/v1").server == "http://there/v1"
    assert endpoint(OPENAI_BASE_URL=" ", OPENAI_API_KEY="sk-0").server == "https://api.openai.com/v1"


WRONG = {
    "": "'' is no http(s) URL; write a base URL such as http://localhost:8000/v1",
    "localhost:8000/v1": "'localhost:8000/v1' is no http(s) URL",
    "ftp://localhost/v1": "'ftp://localhost/v1' is no http(s) URL",
    "http://local host/v1": "is no http(s) URL",
    "http:///v1": "names no host",
    "http://:8000/v1": "names no host",
    "http://localhost:0/v1": "names no host",
    "http://localhost:port/v1": "is no URL",
    "http://[::1/v1": "is no URL",
    "http://localhost/v1?api-version=1": "'http://localhost/v1' goes on with a query or a fragment",
    "http://localhost/v1#top": "'http://localhost/v1' goes on with a query or a fragment",
    "http://localhost/v1/chat/completions": "is a whole address; a base URL ends before it, like .../v1",
}


@pytest.mark.parametrize(("url", "sentence"), WRONG.items())
def test_what_is_no_base_url_is_told_with_what_to_write(url, sentence):
    with pytest.raises(SettingsError) as caught:
        endpoint(url)
    assert str(caught.value).startswith("--himga-base-url: ")
    assert sentence in str(caught.value)


def test_the_error_names_the_variable_that_holds_the_url():
    with pytest.raises(SettingsError, match=r"^OPENAI_BASE_URL: 'here' is no http"):
        endpoint(OPENAI_BASE_URL="here")


@pytest.mark.parametrize(
    "url",
    [
        "ada:pumpkin@localhost",
        "ftp://ada:pumpkin@localhost",
        "http://ada:pumpkin@localhost:x/v1",
        "http://ada:pump#kin@localhost/v1",
        "http://ada:pump/kin@localhost/v1",
        "http://ada:pump?kin@localhost/v1",
        "http://localhost/v1?key=pumpkin",
        "http://localhost/v1?mail=ada@home&key=pumpkin",
        "http://ada:pumpkin@/v1",
    ],
)
def test_no_error_shows_what_may_be_a_password(url):
    with pytest.raises(SettingsError) as caught:
        endpoint(url)
    assert "pump" not in str(caught.value)
    assert "kin" not in str(caught.value)


@pytest.mark.parametrize(
    ("environ", "header"),
    [
        ({}, None),
        ({"OPENAI_API_KEY": "sk-o"}, "Bearer sk-o"),
        ({"OPENAI_API_KEY": "sk-o", "HIMGA_API_KEY": "sk-h"}, "Bearer sk-h"),
        (
            {"OPENAI_API_KEY": "sk-o", "HIMGA_API_KEY": "sk-h", "HIMGA_JUDGE_API_KEY": " sk-j\n"},
            "Bearer sk-j",
        ),
        ({"HIMGA_JUDGE_API_KEY": "", "OPENAI_API_KEY": "sk-o"}, "Bearer sk-o"),
        ({"ANOTHER_KEY": "sk-a"}, None),
    ],
)
def test_the_first_key_that_is_set_is_sent_and_none_is_made_up(environ, header):
    assert authorization(endpoint("http://here/v1", **environ)) == header


@pytest.mark.parametrize(
    ("userinfo", "header"),
    [
        ("ada:pump", "Basic YWRhOnB1bXA="),
        ("ada:", "Basic YWRhOg=="),
        (":pump", "Basic OnB1bXA="),
        ("ada%40home:p%3Amp", "Basic YWRhQGhvbWU6cDptcA=="),
    ],
)
def test_a_base_urls_own_credentials_go_before_any_key(userinfo, header):
    assert authorization(endpoint(f"http://{userinfo}@here/v1", HIMGA_API_KEY="sk-h")) == header


def test_openai_itself_wants_a_key_unless_nothing_will_be_asked():
    with pytest.raises(SettingsError) as caught:
        endpoint()
    assert str(caught.value) == (
        "https://api.openai.com/v1 wants a key: set HIMGA_JUDGE_API_KEY or HIMGA_API_KEY or OPENAI_API_KEY in the "
        "environment, or --himga-base-url for a server that needs none"
    )
    assert authorization(endpoint(need_key=False)) is None


@pytest.mark.parametrize("key", ["sk hidden pump", "sk-p\u00fcmp", "sk\npump", "sk-\x00pump"])
def test_a_key_that_no_header_can_hold_is_told_without_showing_it(key):
    with pytest.raises(SettingsError, match=r"^HIMGA_API_KEY: a key has no spaces") as caught:
        endpoint("http://here/v1", HIMGA_API_KEY=key)
    assert "mp" not in str(caught.value)


def test_a_door_that_stays_shut_says_which_key_was_tried():
    assert endpoint("http://here/v1", HIMGA_API_KEY="sk-h").advice == "check the key in HIMGA_API_KEY"
    assert endpoint("http://ada:pump@here/v1").advice == "check the user and the password in --himga-base-url"
    assert endpoint("http://here/v1").advice.startswith("no key was sent: set HIMGA_JUDGE_API_KEY or ")


def test_what_the_library_adds_by_itself_may_be_said_back_but_is_not_shown():
    found = endpoint("http://gateway/v1", OPENAI_CUSTOM_HEADERS="X-Gateway-Key: open-sesame-1001\nX-Team: us")

    assert found.redact.sentence("bad key open-sesame-1001 of us") == "bad key *** of us"
