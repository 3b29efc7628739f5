"""A secret is found in whatever way it was written, and what is around it stays what it was."""

from __future__ import annotations

import html
import json
import logging
import sys
import time
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_himga.llm.connection import _NoSecrets
from pytest_himga.llm.redact import Redactor

SECRET = "sk/of+4711tulips\"&%\\<\u00e9'\U0001f337 x"


def escaped(text: str) -> str:
    r"""As ``\u0073\u006b``, in UTF-16 as JSON wants it."""
    units = text.encode("utf-16-be").hex()
    return "".join(f"\\u{units[n : n + 4]}" for n in range(0, len(units), 4))


WAYS = {
    "as it is": str,
    "in a URL": quote,
    "in a URL, each character that can be": lambda text: quote(text, safe=""),
    "in a URL in small letters": lambda text: quote(text, safe="").lower(),
    "in a form": quote_plus,
    "in a URL in a URL": lambda text: quote(quote(text)),
    "in JSON": json.dumps,
    "in JSON that keeps letters": lambda text: json.dumps(text, ensure_ascii=False),
    "in JSON that spares slashes": lambda text: json.dumps(text).replace("/", "\\/"),
    "in JSON, each character": escaped,
    "in JSON in JSON in JSON": lambda text: json.dumps(json.dumps(json.dumps(text))),
    "in a page": html.escape,
    "in a page, each character": lambda text: "".join(f"&#{ord(char)};" for char in text),
    "in a page in a page": lambda text: html.escape(html.escape(text)),
    "in JSON in a page": lambda text: html.escape(json.dumps(text)),
    "in JSON in a URL": lambda text: quote(json.dumps(text)),
    "in a page in JSON": lambda text: json.dumps(html.escape(text)),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_secret_is_replaced_in_whatever_way_it_is_written(way):
    secret = SECRET.replace("\\", "") if "page, each" in way else SECRET
    said = f"key: {WAYS[way](secret)}."
    clean = Redactor([secret]).reply(said)

    assert "***" in clean
    assert not [part for part in ("4711", "sk", "&lt;", "u003c", "00e9", "x.") if part in clean]


PRINTABLE = st.characters(codec="utf-8", exclude_characters="\\", exclude_categories=["C"])


@settings(deadline=None, max_examples=20)
@given(st.text(PRINTABLE, min_size=8, max_size=20))
def test_json_that_holds_a_secret_stays_json(secret):
    said = {"reason": f"{secret} said {escaped(secret)}", "verdict": "CORRECT"}
    clean = json.loads(Redactor([secret]).reply(json.dumps(said)))

    assert clean["verdict"] == "CORRECT"
    assert secret not in clean["reason"]


@settings(deadline=None)
@given(st.text(max_size=60))
def test_a_text_without_the_secret_stays_as_it_is(text):
    assert Redactor(["sk-of-the-answerer"]).sentence(text) == text


def test_a_server_cannot_keep_us_busy():
    redact = Redactor(["a\\\\\\\\\\\\bcdefghi", "\\" * 12, "sk-sk-sk-sk-x"])
    said = "\\" * 20_000 + "a" + "\\" * 20_000 + "sk-" * 20_000

    started = time.process_time()
    assert redact.sentence(said) == said
    assert time.process_time() - started < 2


def test_a_logged_exception_is_freed_of_the_secret_and_of_the_request_that_it_holds():
    try:
        raise ValueError("Redirect location: http://elsewhere?key=sk-of-the-answerer")
    except ValueError:
        record = logging.LogRecord("httpx", logging.DEBUG, "f.py", 1, "met %s", ("it",), sys.exc_info())
    for redact in (Redactor(["sk-of-another-one"]), Redactor(["sk-of-the-answerer"])):
        assert _NoSecrets(redact).filter(record)

    told = logging.Formatter().format(record)
    assert told.startswith("met it\nTraceback")
    assert told.endswith("key=***")
    assert record.exc_info is None
