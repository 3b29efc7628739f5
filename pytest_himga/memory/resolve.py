"""From the name after ``--himga-backend`` to something that makes memories.

Looked up in this order: built in, entry points of the group ``pytest_himga.backends``,
``package.module:attribute``, a fixture of that name (which only a running collection can see).
"""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib import metadata
from types import UnionType
from typing import TYPE_CHECKING, Any, Literal, Union, get_args, get_origin

from pytest_himga.errors import SettingsError, nearest
from pytest_himga.loading import load_attribute

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

BUILT_IN = {
    "null": "pytest_himga.memory.reference:NullMemory",
    "full-context": "pytest_himga.memory.reference:FullContextMemory",
    "bm25": "pytest_himga.memory.bm25:BM25Memory",
    "oracle": "pytest_himga.memory.reference:OracleMemory",
}
ENTRY_POINTS = "pytest_himga.backends"
REQUIRED = ("retrieve", "reset")
Origin = Literal["built in", "entry point", "attribute", "fixture"]


@dataclass(frozen=True)
class Backend:
    """A backend by name. ``target`` is a factory or one instance; None until its fixture has run."""

    name: str
    origin: Origin
    target: Any = None
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_factory(self) -> bool:
        """A class, or a callable without ``retrieve``: called once per sample."""
        return inspect.isclass(self.target) or (
            callable(self.target) and not hasattr(self.target, "retrieve")
        )

    @property
    def answers(self) -> bool | None:
        """Whether it answers questions by itself; None where only an instance can tell."""
        if self.target is None or (self.is_factory and not inspect.isclass(self.target)):
            return None
        return callable(getattr(self.target, "answer", None))

    def with_target(self, target: object) -> Backend:
        """The same backend, now that its fixture's value is known."""
        return replace(self, target=target)

    def check(self) -> None:
        """Refuse, before any work, a target that cannot be a memory or does not take the options."""
        if self.target is None:
            return
        if not self.is_factory or inspect.isclass(self.target):
            problem = missing_methods(self.target)
            if problem:
                raise SettingsError(f"--himga-backend={self.name}: {problem}")
        if self.is_factory:
            self._check_call()
        elif self.options:
            raise SettingsError(
                f"--himga-backend-option={next(iter(self.options))}=...: {self.name} is an instance, not a factory; "
                "only a class or a function takes options"
            )

    def _check_call(self) -> None:
        arguments = self.arguments("himga-check")
        for name, p in self._parameters.items():
            if (
                name not in arguments
                and p.default is p.empty
                and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
            ):
                raise SettingsError(
                    f"--himga-backend={self.name}: {_name_of(self.target)}() cannot be called without {name}; "
                    f"add --himga-backend-option={name}=..."
                )

    @cached_property
    def _parameters(self) -> Mapping[str, inspect.Parameter]:
        """The factory's parameters, read once: of a class without any, Python works them out from a text."""
        try:
            return dict(inspect.signature(self.target).parameters)
        except (TypeError, ValueError):  # a builtin or an extension type without a signature
            return {}

    def arguments(self, scope: str) -> dict[str, Any]:
        """What the factory is called with: ``scope`` and the options, as far as its signature takes them.

        An option is converted to the type of the parameter's annotation or default (int, float, bool).

        Raises
        ------
        SettingsError
            For an option that the factory does not take or that does not convert.
        """
        parameters = self._parameters
        takes_all = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
        named = {n: p for n, p in parameters.items() if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
        arguments: dict[str, Any] = {}
        for key, text in self.options.items():
            if key == "scope":
                raise SettingsError(
                    "--himga-backend-option=scope=...: himga gives each memory its own scope; leave it out"
                )
            if key in named:
                arguments[key] = _convert(self.name, key, text, named[key])
            elif takes_all:
                arguments[key] = text
            else:
                known = [name for name in named if name != "scope"]
                right = nearest(key, known) if known else "it takes no option at all"
                raise SettingsError(f"--himga-backend-option={key}=...: {self.name} takes no {key}: {right}")
        if "scope" in named or takes_all:
            arguments["scope"] = scope
        return arguments


def resolve_backend(name: str, options: Mapping[str, str]) -> Backend:
    """The backend called ``name``; ``origin`` is ``fixture`` for a plain name that nothing else has.

    Raises
    ------
    SettingsError
        If the module, the attribute or the entry point cannot be loaded, or is no memory.
    """
    backend = _resolve(name, options)
    backend.check()
    return backend


def _resolve(name: str, options: Mapping[str, str]) -> Backend:
    if name in BUILT_IN:
        return Backend(name, "built in", _load(name, BUILT_IN[name]), options)
    for entry_point in metadata.entry_points(group=ENTRY_POINTS, name=name):
        path = f"{entry_point.module}:{entry_point.attr}"
        return Backend(name, "entry point", _load(name, path), options)
    if ":" in name:
        return Backend(name, "attribute", _load(name, name), options)
    return Backend(name, "fixture", None, options)


def _load(name: str, path: str) -> Any:
    return load_attribute(path, f"--himga-backend={name}")


def known_backends() -> list[str]:
    """The names that need neither a module path nor a fixture."""
    return [*BUILT_IN, *(entry_point.name for entry_point in metadata.entry_points(group=ENTRY_POINTS))]


def missing_methods(target: object) -> str:
    """What ``target`` lacks to be a memory, as the end of a sentence; empty if it lacks nothing."""
    missing = [f"{name}()" for name in REQUIRED if not callable(getattr(target, name, None))]
    if not any(callable(getattr(target, name, None)) for name in ("ingest", "ingest_session")):
        missing.insert(0, "ingest()")
    if not missing:
        return ""
    kind = _name_of(target if isinstance(target, type) else type(target))
    return f"{kind} has no {' and no '.join(missing)}; a memory has ingest, retrieve and reset"


def _convert(backend: str, key: str, text: str, parameter: inspect.Parameter) -> Any:
    converters: dict[str, Callable[[str], Any]] = {"int": int, "float": float, "bool": _boolean}
    types = _types_of(parameter)
    wanted = next((name for name in types if name in converters), None)
    if wanted is None or "str" in types:
        return text
    try:
        return converters[wanted](text)
    except ValueError:
        raise SettingsError(f"--himga-backend-option={key}={text}: {backend} takes {wanted} there") from None


def _types_of(parameter: inspect.Parameter) -> list[str]:
    """The names of the types that the parameter takes: ``int | None`` gives both, ``list[int]`` itself."""
    annotation = parameter.annotation
    if annotation is parameter.empty:
        return [] if parameter.default is parameter.empty else [type(parameter.default).__name__]
    if isinstance(annotation, str):
        inner = re.sub(r"^(?:typing\.)?Optional\[(.*)\]$", r"\1", annotation)
        return [name.strip() for name in inner.split("|")]
    members = get_args(annotation) if get_origin(annotation) in (Union, UnionType) else (annotation,)
    return [_name_of(member) for member in members]


def _name_of(target: object) -> str:
    name = getattr(target, "__name__", None)
    return name if isinstance(name, str) else type(target).__name__


def _boolean(text: str) -> bool:
    values = {
        "1": True,
        "true": True,
        "yes": True,
        "on": True,
        "0": False,
        "false": False,
        "no": False,
        "off": False,
    }
    try:
        return values[text.lower()]
    except KeyError:
        raise ValueError(text) from None
