"""From the name on the command line to a memory: where it is looked up, and how it is made."""

from __future__ import annotations

import functools
import importlib
import re
import sys
from textwrap import dedent, indent
from typing import Optional

import pytest

from pytest_himga.errors import SettingsError
from pytest_himga.judge.resolve import resolve_judge
from pytest_himga.loading import load_attribute
from pytest_himga.memory.bm25 import BM25Memory
from pytest_himga.memory.reference import FullContextMemory, NullMemory, OracleMemory
from pytest_himga.memory.resolve import Backend, known_backends, missing_methods, resolve_backend


class Plain:
    """Takes nothing, offers the least that a memory has."""

    def ingest(self, message):
        pass

    def retrieve(self, query):
        return []

    def reset(self):
        pass


class Answering(Plain):
    def answer(self, question):
        return ""


@pytest.fixture
def module(tmp_path, monkeypatch):
    """Write a module that can be imported for this test only."""
    written = []

    def write(source: str, name: str = "their_memory") -> str:
        (tmp_path / f"{name}.py").write_text(dedent(source), encoding="utf-8")
        written.append(name)
        return name

    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield write
    for name in written:
        sys.modules.pop(name, None)


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Install a package that announces backends; as pip would leave it, but for this test only."""

    def write(entry_points: str) -> None:
        info = tmp_path / "their_memory-1.0.dist-info"
        info.mkdir(exist_ok=True)
        (info / "METADATA").write_text(
            "Metadata-Version: 2.1\nName: their-memory\nVersion: 1.0\n", encoding="utf-8"
        )
        (info / "entry_points.txt").write_text(f"[pytest_himga.backends]\n{entry_points}\n", encoding="utf-8")
        importlib.invalidate_caches()

    monkeypatch.syspath_prepend(tmp_path)
    return write


MEMORY = """
    class Memory:
        def ingest(self, message): ...
        def retrieve(self, query): return []
        def reset(self): ...

    def make(scope): return Memory()

    ready = Memory()
    number = 3
"""


def refused(name: str, **options: str) -> str:
    with pytest.raises(SettingsError) as caught:
        resolve_backend(name, options)
    return str(caught.value)


# -- where it is looked up ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("null", NullMemory),
        ("full-context", FullContextMemory),
        ("bm25", BM25Memory),
        ("oracle", OracleMemory),
    ],
)
def test_the_reference_backends_are_built_in(name, kind):
    backend = resolve_backend(name, {})
    assert (backend.origin, backend.target, backend.is_factory) == ("built in", kind, True)
    assert backend.answers is False


def test_an_installed_package_announces_its_backend(module, install):
    module(MEMORY)
    install("theirs = their_memory:Memory")
    backend = resolve_backend("theirs", {})
    assert (backend.origin, backend.target.__name__) == ("entry point", "Memory")
    assert "theirs" in known_backends()


@pytest.mark.parametrize("value", ["their_memory:Memory [fast]", "their_memory : Memory"])
def test_an_entry_point_may_be_written_in_every_way_that_packaging_allows(module, install, value):
    module(MEMORY)
    install(f"theirs = {value}")
    assert resolve_backend("theirs", {}).target.__name__ == "Memory"


def test_an_entry_point_that_cannot_be_loaded_says_so(install):
    install("theirs = gone_with_the_wind:Memory")
    assert refused("theirs").startswith("--himga-backend=theirs: no module named 'gone_with_the_wind'")


def test_a_built_in_name_cannot_be_hijacked_by_a_package(module, install):
    module(MEMORY)
    install("bm25 = their_memory:Memory")
    assert resolve_backend("bm25", {}).target is BM25Memory


@pytest.mark.parametrize(
    ("attribute", "is_factory"),
    [("Memory", True), ("make", True), ("ready", False)],
    ids=["class", "function", "instance"],
)
def test_module_and_attribute(module, attribute, is_factory):
    module(MEMORY)
    backend = resolve_backend(f"their_memory:{attribute}", {})
    assert (backend.origin, backend.is_factory) == ("attribute", is_factory)
    assert backend.target is getattr(sys.modules["their_memory"], attribute)


def test_an_attribute_of_an_attribute(module):
    module("class Outer:\n" + indent(dedent(MEMORY), "    "))
    assert resolve_backend("their_memory:Outer.Memory", {}).target.__qualname__ == "Outer.Memory"


def test_a_plain_name_that_nothing_else_has_is_a_fixture():
    assert resolve_backend("my_memory", {"k1": "2"}) == Backend("my_memory", "fixture", None, {"k1": "2"})
    assert resolve_backend("my_memory", {}).answers is None


# -- what can be wrong with a name ----------------------------------------------------------------


def test_a_module_that_does_not_exist():
    assert refused("no_such_module_here:Memory") == (
        "--himga-backend=no_such_module_here:Memory: no module named 'no_such_module_here'; if it lies in the "
        "project, put `pythonpath = .` (or the folder it lies in) into the pytest ini file"
    )


def test_a_module_that_imports_one_that_does_not_exist(module):
    module("import another_missing_thing\n")
    assert refused("their_memory:Memory") == (
        "--himga-backend=their_memory:Memory: importing their_memory failed: ModuleNotFoundError: "
        "No module named 'another_missing_thing'"
    )


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("raise RuntimeError('no key\\nin the environment')", "RuntimeError: no key in the environment"),
        ("1/0", "ZeroDivisionError: division by zero"),
        ("import sys; sys.exit(3)", "SystemExit: 3"),
        ("def broken(:", "SyntaxError: invalid syntax"),
        ("import pytest; pytest.skip('not here', allow_module_level=True)", "Skipped: not here"),
    ],
)
def test_a_module_that_raises_when_it_is_imported(module, source, said):
    module(source)
    message = refused("their_memory:Memory")
    assert message.startswith(f"--himga-backend=their_memory:Memory: importing their_memory failed: {said}")
    assert "\n" not in message


def test_an_interrupt_during_import_is_the_users(module):
    module("raise KeyboardInterrupt")
    with pytest.raises(KeyboardInterrupt):
        resolve_backend("their_memory:Memory", {})


def test_an_attribute_that_does_not_exist_names_the_nearest(module):
    module(MEMORY)
    assert refused("their_memory:Memry") == (
        "--himga-backend=their_memory:Memry: their_memory has no 'Memry': did you mean Memory?"
    )


@pytest.mark.parametrize("name", ["their_memory:", ":Memory", ":", "..x:Memory", "a b:c"])
def test_half_a_name_is_one_sentence(module, name):
    module(MEMORY)
    message = refused(name)
    assert message.startswith(f"--himga-backend={name}: ")
    assert "\n" not in message


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("class Memory: ...", "Memory has no ingest() and no retrieve() and no reset()"),
        (
            "class Memory:\n    def ingest(self, m): ...\n    def retrieve(self, q): ...\n",
            "Memory has no reset()",
        ),
        (
            "class Memory:\n    def ingest_session(self, s): ...\n    def reset(self): ...\n",
            "Memory has no retrieve()",
        ),
    ],
)
def test_a_class_that_is_no_memory_is_refused_before_any_work(module, source, problem):
    module(source)
    assert refused("their_memory:Memory") == (
        f"--himga-backend=their_memory:Memory: {problem}; a memory has ingest, retrieve and reset"
    )


def test_a_thing_that_is_neither_memory_nor_factory_is_refused(module):
    module(MEMORY)
    assert refused("their_memory:number") == (
        "--himga-backend=their_memory:number: int has no ingest() and no retrieve() and no reset(); "
        "a memory has ingest, retrieve and reset"
    )


def test_ingest_session_alone_is_enough():
    class Sessions:
        def ingest_session(self, session): ...
        def retrieve(self, query): ...
        def reset(self): ...

    assert missing_methods(Sessions) == ""
    assert missing_methods(Sessions()) == ""


# -- options and scope ----------------------------------------------------------------------------


def made_with(factory, scope="scope-1", **options: str) -> dict:
    return Backend("mine", "attribute", factory, options).arguments(scope)


def typed(
    k: int,
    b: float,
    fast: bool,
    name: str,
    maybe: int | None,
    old: Optional[float],  # noqa: UP045 - people write it
    many: list[int],
    either: int | str,
): ...


def by_default(k=10, b=0.75, fast=False, name="x", nothing=None): ...


@pytest.mark.parametrize(
    ("factory", "option", "text", "value"),
    [
        (typed, "k", "12", 12),
        (typed, "b", "1e-3", 0.001),
        (typed, "b", "2", 2.0),
        (typed, "fast", "yes", True),
        (typed, "fast", "Off", False),
        (typed, "name", "12", "12"),
        (typed, "maybe", "3", 3),
        (typed, "old", "3", 3.0),
        (typed, "many", "3", "3"),
        (typed, "either", "3", "3"),
        (by_default, "k", "12", 12),
        (by_default, "b", "0.5", 0.5),
        (by_default, "fast", "true", True),
        (by_default, "name", "a=b, c", "a=b, c"),
        (by_default, "nothing", "7", "7"),
    ],
)
def test_an_option_becomes_what_the_parameter_says(factory, option, text, value):
    made = made_with(factory, **{option: text})
    assert made == {option: value}
    assert type(made[option]) is type(value)


def test_annotations_that_are_real_types_and_not_text_mean_the_same():
    def factory(k, b, fast, maybe, old, many): ...

    factory.__annotations__ = {
        "k": int, "b": float, "fast": bool, "maybe": int | None, "old": Optional[float], "many": list[int]  # noqa: UP045
    }  # fmt: skip
    assert made_with(factory, k="1", b="1", fast="1", maybe="1", old="1", many="1") == {
        "k": 1, "b": 1.0, "fast": True, "maybe": 1, "old": 1.0, "many": "1"
    }  # fmt: skip


@pytest.mark.parametrize(
    ("option", "text", "wanted"),
    [("k", "many", "int"), ("b", "much", "float"), ("fast", "maybe", "bool"), ("maybe", "no", "int")],
)
def test_an_option_that_does_not_convert_is_refused(option, text, wanted):
    with pytest.raises(SettingsError) as caught:
        made_with(typed, **{option: text})
    assert str(caught.value) == f"--himga-backend-option={option}={text}: mine takes {wanted} there"


def test_an_option_that_nobody_takes_names_the_nearest():
    with pytest.raises(
        SettingsError, match=r"^--himga-backend-option=fats=\.\.\.: mine takes no fats: did you mean fast\?$"
    ):
        made_with(typed, fats="1")


def test_a_class_without_parameters_takes_no_option():
    message = refused("null", k="3")
    assert message == "--himga-backend-option=k=...: null takes no k: it takes no option at all"


def test_the_options_of_bm25_are_numbers():
    assert resolve_backend("bm25", {"k1": "0.9"}).arguments("s") == {"k1": 0.9}
    assert refused("bm25", kk="1") == "--himga-backend-option=kk=...: bm25 takes no kk: known: b, k1"


def test_scope_is_passed_where_it_is_taken():
    assert made_with(lambda scope: None) == {"scope": "scope-1"}
    assert made_with(lambda *, scope="": None) == {"scope": "scope-1"}
    assert made_with(lambda: None) == {}
    assert made_with(Plain) == {}


def test_a_factory_with_keyword_arguments_gets_everything_as_text():
    assert made_with(lambda **kwargs: None, anything="1") == {"anything": "1", "scope": "scope-1"}
    assert made_with(lambda k=1, **rest: None, k="2", z="3") == {"k": 2, "z": "3", "scope": "scope-1"}


def test_the_scope_is_ours_to_give():
    with pytest.raises(
        SettingsError, match=r"^--himga-backend-option=scope=\.\.\.: himga gives each memory its own scope"
    ):
        Backend("mine", "attribute", lambda scope: None, {"scope": "mine"}).arguments("scope-1")


def test_a_partial_is_a_factory_like_any_other():
    def make(scope, k: int = 1): ...

    assert made_with(functools.partial(make, k=4), k="5") == {"scope": "scope-1", "k": 5}


def test_a_callable_without_a_signature_is_called_without_arguments():
    assert made_with(dict.fromkeys) == {} or made_with(type) == {}


def test_a_parameter_that_nothing_fills_is_a_usage_error_and_no_outage():
    def make(url, key, scope): ...

    backend = Backend("mine", "attribute", make, {"key": "k"})
    with pytest.raises(SettingsError) as caught:
        backend.check()
    assert str(caught.value) == (
        "--himga-backend=mine: make() cannot be called without url; add --himga-backend-option=url=..."
    )


def test_an_instance_takes_no_options():
    with pytest.raises(SettingsError) as caught:
        Backend("mine", "attribute", Plain(), {"k": "1"}).check()
    assert str(caught.value) == (
        "--himga-backend-option=k=...: mine is an instance, not a factory; only a class or a function takes options"
    )


# -- what its target is ---------------------------------------------------------------------------


def test_an_instance_that_can_be_called_is_still_an_instance():
    class Callable(Plain):
        def __call__(self): ...

    assert not Backend("mine", "fixture", Callable()).is_factory


@pytest.mark.parametrize(
    ("target", "answers"),
    [(Plain, False), (Answering, True), (Plain(), False), (Answering(), True), (lambda: Answering(), None)],
)
def test_whether_it_answers_is_known_where_it_can_be(target, answers):
    assert Backend("mine", "attribute", target).answers is answers


def test_a_fixtures_value_is_checked_when_it_is_there():
    backend = resolve_backend("mine", {})
    assert backend.with_target(Plain).is_factory
    assert not backend.with_target(Plain()).is_factory
    with pytest.raises(SettingsError, match=re.escape("--himga-backend=mine: str has no ingest()")):
        backend.with_target("text").check()


# -- the same for judges, and the loader under both -------------------------------------------------


def test_a_judge_by_name_class_or_instance(module):
    module(
        "class Mine:\n    name = 'mine'\n    def judge(self, case, answer, context): ...\n\nready = Mine()\n"
    )
    assert resolve_judge("evidence").name == "evidence"
    assert resolve_judge("lexical").name == "lexical"
    assert resolve_judge("their_memory:Mine").name == "mine"
    assert resolve_judge("their_memory:ready") is sys.modules["their_memory"].ready


@pytest.mark.parametrize(
    ("name", "source", "said"),
    [
        (
            "evidnce",
            "",
            "--himga-judge=evidnce is unknown; did you mean evidence?; your own is package.module:attribute",
        ),
        (
            "their_memory:J",
            "class J: name = 'x'",
            "--himga-judge=their_memory:J: it has no judge(case, answer, context) method",
        ),
        (
            "their_memory:J",
            "class J:\n    def judge(self, case, answer, context): ...",
            "--himga-judge=their_memory:J: it has no name; set the attribute `name` to a short text",
        ),
        (
            "their_memory:J",
            "class J:\n    def __init__(self, model): ...",
            (
                "--himga-judge=their_memory:J: it must be callable without arguments: "
                "J.__init__() missing 1 required positional argument: 'model'"
            ),
        ),
        (
            "their_memory:J",
            "class J:\n    def __init__(self): raise OSError('no key')",
            "--himga-judge=their_memory:J: making it failed: OSError: no key",
        ),
    ],
)
def test_a_judge_that_is_none_is_refused(module, name, source, said):
    module(source)
    with pytest.raises(SettingsError) as caught:
        resolve_judge(name)
    assert str(caught.value) == said


def test_the_loader_says_which_option_it_was(module):
    module("x = 1\n")
    assert load_attribute("their_memory:x", "--himga-thing=y") == 1
    with pytest.raises(SettingsError, match=r"^--himga-thing=y: their_memory has no 'z'"):
        load_attribute("their_memory:z", "--himga-thing=y")
