"""A JSON object as a dataclass, without loss: what all parts of MemoryStress' container have in common.

A field without a default is required, a field that nobody knows is kept in ``extra`` and written back.
Only the kinds of values are checked here; whether ids resolve is ``integrity``'s business.
"""

from __future__ import annotations

from dataclasses import MISSING, fields
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

from pytest_himga.data.files import shown
from pytest_himga.errors import DatasetError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

#: What an error calls data that did not come from a file.
NO_FILE = "MemoryStress data"


class Record:
    """The base of dataclasses (``eq=False``) whose fields are those of a JSON object.

    Two records are equal if their fields and their ``extra`` are. A field is annotated with a kind of
    ``_KINDS``, or with a list of records.
    """

    #: How an error calls one of the kind, and the field that tells one from another.
    kind: ClassVar[str] = ""
    id_field: ClassVar[str] = ""

    @property
    def extra(self) -> dict[str, Any]:
        """The fields of the file that the format does not know; ``dataclasses.asdict`` leaves them out."""
        # Not a dataclass field: a field would be written into the file under its own name.
        extra: dict[str, Any] = self.__dict__.setdefault("_extra", {})
        return extra

    @classmethod
    def from_dict(cls, data: dict[str, Any], file: Path | str = NO_FILE, place: str = "") -> Self:
        """Make the record of a JSON object; ``file`` and ``place`` say in errors where it stands.

        Raises ``DatasetError`` for a required field that is missing and a value of the wrong kind, naming
        file, object, field and value. Lists and objects are taken over, not copied.
        """
        known = _known_fields(cls)
        for name, known_field in known.items():
            problem = _problem(data, name, known_field)
            if problem:
                where = cls._called(data, place)
                raise DatasetError(f"{file}: {where}{problem}")
        record = cls(**{name: data[name] for name in known if name in data})
        record.extra.update({name: value for name, value in data.items() if name not in known})
        return record

    def to_dict(self) -> dict[str, Any]:
        """Give a JSON object with all fields, those with their default too, and the unknown ones last."""
        own = {name: _plain(getattr(self, name)) for name in _known_fields(type(self))}
        return {**own, **_plain(self.extra), **own}

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Record) or type(self) is not type(other):
            return NotImplemented
        names = _known_fields(type(self))
        return self.extra == other.extra and all(getattr(self, n) == getattr(other, n) for n in names)

    __hash__ = None  # type: ignore[assignment]  # mutable, like any dataclass that is compared

    @classmethod
    def _called(cls, data: dict[str, Any], place: str) -> str:
        own_id = data.get(cls.id_field)
        if isinstance(own_id, str):
            return f"{cls.kind} {shown(own_id)}, "
        place = place or cls.kind
        return f"{place}, " if place else ""


def _plain(value: Any) -> Any:
    """A copy of a value as JSON has it, records as objects."""
    if isinstance(value, Record):
        return value.to_dict()
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list) else value


# -- kinds of values ---------------------------------------------------------------------------------


class _Kind(NamedTuple):
    """A kind of value, in words and as a test; ``of`` is the test of a list's items."""

    words: str
    fits: Callable[[Any], bool]
    of: Callable[[Any], bool] | None = None


class _KnownField(NamedTuple):
    kind: _Kind
    required: bool


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_object(value: Any) -> bool:
    return isinstance(value, dict)


def _is_list(value: Any) -> bool:
    return isinstance(value, list)


_OBJECTS = _Kind("a list of objects", _is_list, _is_object)
#: By the annotation of the field, as it stands in the class.
_KINDS = {
    "str": _Kind("a text", _is_text),
    "int": _Kind("a whole number", _is_whole),
    "bool": _Kind("true or false", lambda value: isinstance(value, bool)),
    "str | None": _Kind("a text or null", lambda value: value is None or _is_text(value)),
    # the published questions were written by a model, which answers "how many" with a number
    "str | int | float": _Kind(
        "a text or a number", lambda value: _is_text(value) or _is_whole(value) or isinstance(value, float)
    ),
    "list[str]": _Kind("a list of texts", _is_list, _is_text),
    "dict[str, Any]": _Kind("an object", _is_object),
    "list[dict[str, Any]]": _OBJECTS,
}


_FIELDS: dict[type, dict[str, _KnownField]] = {}


def _known_fields(kind: type[Record]) -> dict[str, _KnownField]:
    """Give the fields of one of the dataclasses by name, worked out once each."""
    if kind not in _FIELDS:
        _FIELDS[kind] = {
            # what is not in the table is a list of other records
            one.name: _KnownField(
                _KINDS.get(str(one.type), _OBJECTS),
                one.default is MISSING and one.default_factory is MISSING,
            )
            for one in fields(kind)  # type: ignore[arg-type]  # every kind of record is a dataclass
        }
    return _FIELDS[kind]


def _problem(data: dict[str, Any], name: str, known: _KnownField) -> str:
    """Say which field is wrong and how; "" if it is right."""
    expected = f"expected {known.kind.words}"
    if name not in data:
        return f"field {name}: missing; {expected}" if known.required else ""
    value, of = data[name], known.kind.of
    if not known.kind.fits(value):
        return f"field {name}: is {shown(value)}; {expected}"
    if of is not None:
        for n, item in enumerate(value):
            if not of(item):
                return f"field {name}[{n}]: is {shown(item)}; {expected}"
    return ""
