"""From the name after ``--himga-answerer`` to an answerer of the user's own."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_himga.errors import SettingsError, nearest
from pytest_himga.loading import load_attribute, one_line

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_himga.answer.request import AnswerRequest

#: No answer, a model's, the memory's own.
ANSWERERS = ("none", "llm", "backend")
_MISSING = object()


@dataclass(frozen=True)
class OwnAnswerer:
    """An answerer of the user's. ``call`` may be sync or async, and may return or raise anything."""

    name: str
    call: Callable[[AnswerRequest], Any]

    @property
    def is_async(self) -> bool:
        """Whether ``call`` gives a coroutine, as far as can be told without calling it."""
        return inspect.iscoroutinefunction(self.call) or inspect.iscoroutinefunction(
            getattr(self.call, "__call__", None)  # noqa: B004 - whether it is callable is known
        )


def load_answerer(name: str) -> OwnAnswerer:
    """The answerer at ``package.module:attribute``.

    That is a class (called without arguments) or an instance with ``answer(request)``, or a function of
    one argument. Its attribute ``name`` is what reports call it, else the path.

    Raises
    ------
    SettingsError
        If there is none, it cannot be made, or it does not take exactly one argument.
    """
    option = f"--himga-answerer={name}"
    if ":" not in name:
        raise SettingsError(
            f"{option} is unknown; {nearest(name, ANSWERERS)}; your own is package.module:attribute"
        )
    target = load_attribute(name, option)
    if inspect.isclass(target):
        target = _made(target, option)
    call = _attribute(target, "answer", option)
    if call is _MISSING:
        call = target
    if not callable(call):
        raise SettingsError(f"{option}: it has no answer(request) method, and it is no function")
    _check_call(call, option)
    return OwnAnswerer(_name_of(target, name, option), call)


def _made(kind: type, option: str) -> Any:
    try:
        return kind()
    except KeyboardInterrupt:
        raise
    except TypeError as error:
        raise SettingsError(f"{option}: it must be callable without arguments: {error}") from error
    except BaseException as error:  # a sys.exit() in it is no reason to end pytest without a word
        raise SettingsError(f"{option}: making it failed: {one_line(error)}") from error


def _attribute(target: Any, attribute: str, option: str) -> Any:
    try:
        return getattr(target, attribute, _MISSING)
    except Exception as error:
        raise SettingsError(f"{option}: reading its {attribute} failed: {one_line(error)}") from error


def _check_call(call: Callable[..., Any], option: str) -> None:
    try:
        signature = inspect.signature(call)
    except (TypeError, ValueError):  # a builtin or an extension type without a signature
        return
    try:
        signature.bind(_MISSING)
    except TypeError as error:
        raise SettingsError(
            f"{option}: it is called with one argument, the request, and does not take that: {error}"
        ) from None


def _name_of(target: Any, path: str, option: str) -> str:
    name = _attribute(target, "name", option)
    if name is _MISSING:
        return path
    if not isinstance(name, str) or not name.strip():
        raise SettingsError(
            f"{option}: its name is no text; set the attribute `name` to a short one, or leave it out"
        )
    return " ".join(name.split())


def problem_of_answer(value: object) -> str:
    """Why what an answerer of the user's returned is no answer, as the end of a sentence; empty if it is one.

    A blank text is none: what a model's server gives when it fails would else count as a wrong answer.
    """
    if isinstance(value, str):
        return "" if value.strip() else "returned a text with nothing in it; return the answer, or raise"
    kind = "None" if value is None else f"a value of type {type(value).__name__}"
    return f"returned {kind}; return a str"
