"""An answerer of the user's own: what is taken for one, and what is said of what is none."""

from __future__ import annotations

import asyncio
import sys
from types import ModuleType

import pytest

from pytest_himga.answer import AnswerRequest
from pytest_himga.answer.resolve import ANSWERERS, OwnAnswerer, load_answerer, problem_of_answer
from pytest_himga.errors import SettingsError

REQUEST = AnswerRequest("Q?", None, None, "the context")


class Plain:
    def answer(self, request):
        return f"plain: {request.text}"


class Named(Plain):
    name = " my\nanswerer "


class Called:
    async def __call__(self, request):
        return f"called: {request.text}"


class NeedsKey:
    def __init__(self, key):
        self.key = key

    def answer(self, request):
        return self.key


class Fails:
    def __init__(self):
        raise OSError("no model\nhere")


class Exits:
    def __init__(self):
        sys.exit(3)


class BadName(Plain):
    name = 7


class Property(Plain):
    @property
    def name(self):
        raise RuntimeError("not ready")


class NoAnswer:
    pass


class NotCallable:
    answer = "twelve"


class TwoArguments:
    def answer(self, request, model):
        return model


def function(request):
    return f"function: {request.text}"


async def coroutine(request, *, model="small"):
    return f"{model}: {request.text}"


def no_argument():
    return Plain()


def needs_keyword(request, *, model):
    return model


@pytest.fixture(autouse=True)
def mine(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A module of the user's called ``mine``."""
    module = ModuleType("mine")
    module.__dict__.update(globals())
    module.instance = Named()
    module.number = 7
    monkeypatch.setitem(sys.modules, "mine", module)
    return module


@pytest.mark.parametrize(
    ("attribute", "name", "answer", "is_async"),
    [
        ("Plain", "mine:Plain", "plain: the context", False),
        ("Named", "my answerer", "plain: the context", False),
        ("instance", "my answerer", "plain: the context", False),
        ("function", "mine:function", "function: the context", False),
        ("coroutine", "mine:coroutine", "small: the context", True),
        ("Called", "mine:Called", "called: the context", True),
    ],
)
def test_classes_instances_and_functions_answer(
    attribute: str, name: str, answer: str, is_async: bool
) -> None:
    own = load_answerer(f"mine:{attribute}")
    assert (own.name, own.is_async) == (name, is_async)
    given = own.call(REQUEST)
    assert (asyncio.run(given) if is_async else given) == answer


@pytest.mark.parametrize(
    ("attribute", "problem"),
    [
        ("NeedsKey", "it must be callable without arguments: "),
        ("Fails", "making it failed: OSError: no model here"),
        ("Exits", "making it failed: SystemExit: 3"),
        ("BadName", "its name is no text; set the attribute `name` to a short one, or leave it out"),
        ("Property", "reading its name failed: RuntimeError: not ready"),
        ("NoAnswer", "it has no answer(request) method, and it is no function"),
        ("NotCallable", "it has no answer(request) method, and it is no function"),
        ("number", "it has no answer(request) method, and it is no function"),
        ("TwoArguments", "it is called with one argument, the request, and does not take that: "),
        ("no_argument", "it is called with one argument, the request, and does not take that: "),
        ("needs_keyword", "it is called with one argument, the request, and does not take that: "),
        ("functoin", "mine has no 'functoin': did you mean function"),
    ],
)
def test_what_cannot_answer_is_refused_in_one_sentence(attribute: str, problem: str) -> None:
    with pytest.raises(SettingsError) as caught:
        load_answerer(f"mine:{attribute}")
    text = str(caught.value)
    assert text.startswith(f"--himga-answerer=mine:{attribute}: {problem}")
    assert "\n" not in text


def test_ctrl_c_in_a_constructor_is_not_swallowed(mine: ModuleType) -> None:
    class Interrupted:
        def __init__(self):
            raise KeyboardInterrupt

    mine.Interrupted = Interrupted
    with pytest.raises(KeyboardInterrupt):
        load_answerer("mine:Interrupted")


def test_a_name_without_a_colon_is_compared_with_those_that_there_are() -> None:
    assert ANSWERERS == ("none", "llm", "backend")
    with pytest.raises(SettingsError) as caught:
        load_answerer("backnd")
    assert str(caught.value) == (
        "--himga-answerer=backnd is unknown; did you mean backend?; your own is package.module:attribute"
    )


def test_a_builtin_without_a_signature_is_taken_at_its_word(mine: ModuleType) -> None:
    mine.builtin = dict.fromkeys
    assert load_answerer("mine:builtin") == OwnAnswerer("mine:builtin", dict.fromkeys)


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("twelve", ""),
        ("0", ""),
        ("", "returned a text with nothing in it; return the answer, or raise"),
        (" \n", "returned a text with nothing in it; return the answer, or raise"),
        (None, "returned None; return a str"),
        (b"twelve", "returned a value of type bytes; return a str"),
        (12, "returned a value of type int; return a str"),
    ],
)
def test_an_answer_is_a_text_with_something_in_it(value: object, problem: str) -> None:
    assert problem_of_answer(value) == problem
