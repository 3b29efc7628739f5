"""What a model does not take, in the llm room: learned from its 400s once, remembered for every later call."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pytest_himga.llm.fault import ErrorBody
    from pytest_himga.llm.prompt import ChatRequest, ModelSpec, ResponseFormat

_FORMAT = "response_format"
#: What servers took before there was json_schema, and some (llama-cpp-python's) take to this day.
_WITH_SCHEMA = "json_object with a schema"
#: How a parameter is sent: as it is called in the API, then otherwise, at last (None) not at all.
_LADDERS: dict[str, tuple[str | None, ...]] = {
    "max_tokens": ("max_tokens", "max_completion_tokens", None),
    _FORMAT: ("json_schema", _WITH_SCHEMA, "json_object", None),
}
_LIMIT = "max_tokens"
_LIMITS = ("max_tokens", "max_completion_tokens")
#: Servers complain of these words where they mean the format.
_FORMAT_WORDS = ("response_format", "json_schema", "json_object")
#: How chat templates (Gemma's, say) complain of a system message.
_NO_SYSTEM = re.compile(
    r"\bsystem\b.{0,20}\b(?:role|message|prompt)s?\b.{0,30}\b(?:not|n't|un)\s?(?:be )?(?:supported|allowed|accepted)"
    r"|\bonly user and assistant roles\b|\broles must alternate\b",
    re.IGNORECASE,
)
#: Never left out, whatever a server says of them.
_KEPT = ("model", "messages")
#: The budget of a second try: so many times the one that was too small, and where nobody set or told that
#: one, at least this many tokens.
_LARGER = 4
_LARGER_DEFAULT = 4096
#: What servers say of a limit that they know, but not so large a one.
_TOO_LARGE = re.compile(
    r"too (?:large|big|high|many)|at most|exceed|maximum|(?:less|greater|larger|no more) than",
    re.IGNORECASE,
)


class Adapting:
    """The parameters of one model's requests, as the model takes them.

    ``notes`` are sentences about what is not sent as the user set it, because it changes what is measured.
    """

    def __init__(self, spec: ModelSpec) -> None:
        self.notes: list[str] = []
        self._spec = spec
        self._rungs: dict[str, int] = {}
        self._no_system = False

    def body(self, request: ChatRequest, *, more_than: int | None = None) -> dict[str, Any]:
        """What is sent for ``request`` as things stand.

        ``more_than`` raises the limit of tokens: so many were too few (0 where they were not told).
        """
        options = {name: value for name, value in self._spec.options.items() if name not in _KEPT}
        if more_than is not None:
            name = self._limit_by_user or _LIMIT
            options[name] = _raised(options.get(name), more_than)
        sent = {now: value for name, value in options.items() if (now := self._now(name)) is not None}
        kind = self._now(_FORMAT)
        if request.response_format is not None and kind is not None:
            sent[_FORMAT] = _sent_format(kind, request.response_format)
        messages = _without_system(request.rendered()) if self._no_system else request.rendered()
        return {"model": self._spec.name, "messages": messages, **sent}

    @property
    def can_raise(self) -> bool:
        """Whether the model takes any limit of tokens."""
        return self._now(self._limit_by_user or _LIMIT) is not None

    def learn(self, said: ErrorBody, sent: dict[str, Any], *, raised: bool = False) -> bool:
        """Whether ``said`` names a parameter of ``sent`` that can be left out or sent otherwise; from now on it is.

        Several calls meet the same 400 at a time: only one whose form is still the present one changes it.
        Of a limit that was ``raised``, one that is too large teaches nothing: we made it so.
        """
        if _NO_SYSTEM.search(said.message) and any(one["role"] == "system" for one in sent["messages"]):
            if not self._no_system:
                self._no_system = True
                self.notes.append(
                    f"{self._spec.name} takes no system message: its text is sent at the head of the user's"
                )
            return True
        name = _named(said, [name for name in sent if name not in _KEPT])
        if name is None or (raised and name in _LIMITS and _TOO_LARGE.search(said.message)):
            return False
        key = _LIMIT if name in _LIMITS and name not in self._spec.options else name
        form = _form_of(sent[_FORMAT]) if key == _FORMAT else name
        if self._now(key) == form:
            self._rungs[key] = self._rungs.get(key, 0) + 1
            self._note(name, form, self._now(key))
        return True

    def _note(self, name: str, form: str, now: str | None) -> None:
        what = name if name == form else f"{name} {form}"
        then = "sent without it" if now is None else f"sent as {now}"
        self.notes.append(f"{self._spec.name} does not take {what}: {then}")

    @property
    def _limit_by_user(self) -> str | None:
        return next((name for name in _LIMITS if name in self._spec.options), None)

    def _now(self, key: str) -> str | None:
        """How ``key`` is sent now."""
        ladder = _LADDERS.get(key, (key, None))
        if key == _LIMIT and _LIMITS[1] in self._spec.options:
            ladder = (key, None)  # the other name is taken
        return ladder[min(self._rungs.get(key, 0), len(ladder) - 1)]


def _without_system(messages: list[dict[str, str]]) -> list[dict[str, str]]:
    """The same words with the system's at the head of the first message of the user's."""
    system = [one["content"] for one in messages if one["role"] == "system"]
    first, *rest = (one for one in messages if one["role"] != "system")
    return [{**first, "content": "\n\n".join([*system, first["content"]])}, *rest]


def _sent_format(kind: str, wanted: ResponseFormat) -> dict[str, Any]:
    schema = dict(wanted.schema)
    if kind == "json_schema":
        return {"type": kind, kind: {"name": wanted.name, "schema": schema, "strict": True}}
    return {"type": "json_object"} | ({"schema": schema} if kind == _WITH_SCHEMA else {})


def _form_of(sent: dict[str, Any]) -> str:
    """The step of the ladder that a format was sent as."""
    return _WITH_SCHEMA if "schema" in sent else str(sent["type"])


def _raised(limit: Any, used: int) -> int:
    """A limit above the user's; where there is none, above what the model's own or its server's let through."""
    if isinstance(limit, int) and limit > 0:
        return limit * _LARGER
    return max(used * _LARGER, _LARGER_DEFAULT)


def _named(said: ErrorBody, names: list[str]) -> str | None:
    """Which of ``names`` an error is about: what it says by field first, then in quotes, then as a word."""
    if said.about_context:
        return None
    fields = [re.split(r"[.\[]", said.param)[0], *map(_field, said.paths)]
    if named := _first(names, lambda name: fields.index(name) if name in fields else None):
        return named
    if any(name in fields for name in _KEPT):
        # Only a format is complained of as the messages': "they must contain the word json".
        names = [name for name in names if name == _FORMAT]
    elif any(map(_field, said.paths)):
        return None  # another place is named; what is quoted beside it is what stood there
    return _first_match(names, said.message, r"['\"`]{}(?:['\"`]|\.|\[)") or _first_match(
        names, said.message, r"(?<![\w-]){}(?![\w-])"
    )


def _field(path: tuple[str, ...]) -> str:
    """The parameter at the head of a path such as ``("body", "top_k")``."""
    return next((step for step in path if step != "body"), "")


def _first_match(names: Iterable[str], text: str, pattern: str) -> str | None:
    """The name that ``text`` has first, as ``pattern`` says."""

    def place(name: str) -> int | None:
        words = _FORMAT_WORDS if name == _FORMAT else (name,)
        any_of = "(?:" + "|".join(map(re.escape, words)) + ")"
        found = re.search(pattern.replace("{}", any_of), text)
        return found.start() if found else None

    return _first(names, place)


def _first(names: Iterable[str], place: Callable[[str], int | None]) -> str | None:
    places = [(at, name) for name in names if (at := place(name)) is not None]
    return min(places)[1] if places else None
