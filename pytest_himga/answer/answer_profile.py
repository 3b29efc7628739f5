"""Profiles of the answerer, in the answer room: which prompt a model answers with.

The fields of a profile are ``question``, ``date``, ``memories`` and ``profile``, which are fenced, and
``marker`` and ``k``, which are ours. ``date`` and ``profile`` may be missing, which drops the paragraphs
that need them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_himga.data.files import shown
from pytest_himga.errors import SettingsError, nearest
from pytest_himga.llm.profile import Paragraph, fill, paragraphs_of, read_profile
from pytest_himga.llm.prompt import ChatMessage

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

KIND = "answer"
SHIPPED = ("strict", "benchmark")
DEFAULT_MARKER = "ANSWER:"
#: Keys of the file; all but the kind and the user's message may be left out.
_KEYS = ("kind", "description", "marker", "published_k", "system", "user")
_TRUSTED = ("marker", "k")
_FIELDS = ("question", "date", "memories", "profile", *_TRUSTED)
#: Not every question has these.
_OPTIONAL = frozenset({"date", "profile"})
_LONGEST_MARKER = 40


@dataclass(frozen=True)
class AnswerProfile:
    """A profile that was read and checked. ``sha256`` is that of what it tells a model.

    ``marker`` is what the final answer follows in a reply; ``published_k`` is the k of the published
    numbers that the profile is meant to be compared with, if there are any.
    """

    name: str
    sha256: str
    description: str
    marker: str
    system: tuple[Paragraph, ...]
    user: tuple[Paragraph, ...]
    published_k: int | None = None

    def messages(self, fields: Mapping[str, str | None]) -> tuple[ChatMessage, ...]:
        """The messages for one question; ``fields`` are all but the marker."""
        filled = {**fields, "marker": self.marker}
        system = fill(self.system, filled, trusted=_TRUSTED)
        user = fill(self.user, filled, trusted=_TRUSTED)
        return (*([ChatMessage("system", system)] if system else []), ChatMessage("user", user))

    def note_for(self, k: int) -> str | None:
        """What to say of a run with this k, if its numbers are not like the published ones."""
        if self.published_k in (None, k):
            return None
        return f"published numbers with this kind of prompt use k {self.published_k}, this run k {k}"


def load_answer_profile(spec: str, *, base: Path, option: str) -> AnswerProfile:
    """A shipped profile or a file of the user's; ``option`` is the option as it was written.

    Raises
    ------
    SettingsError
        If there is none, or it is none of an answerer, or it leaves something out.
    """
    read = read_profile(spec, package="pytest_himga.answer", base=base, option=option)
    data, where = read.data, read.where
    _check_kind(data, where)
    for key in data:
        if key not in _KEYS:
            raise SettingsError(f"{where}: {key} is unknown; {nearest(key, _KEYS)}")
    system = (
        paragraphs_of(data["system"], known=_FIELDS, where=f"{where}: system") if "system" in data else ()
    )
    user = paragraphs_of(data.get("user"), known=_FIELDS, where=f"{where}: user")
    _check_shown((*system, *user), where)
    return AnswerProfile(
        read.name,
        read.sha256,
        _description(data, where),
        _marker(data, where),
        system,
        user,
        _published_k(data, where),
    )


def _check_kind(data: Mapping[str, Any], where: str) -> None:
    kind = data.get("kind")
    if kind == KIND:
        return
    if kind is None:
        raise SettingsError(
            f'{where}: it does not say what it is for; write kind = "{KIND}" at its top, '
            "so that no profile of a judge is taken for one of an answerer"
        )
    raise SettingsError(
        f'{where}: this is a profile of kind {shown(kind)}, and an answerer needs one of kind "{KIND}"; '
        f"give another one: {', '.join(SHIPPED)}, or a path to a .toml file"
    )


def _check_shown(paragraphs: tuple[Paragraph, ...], where: str) -> None:
    """What every model must be shown has to stand in a paragraph that no question can be without."""
    always = {
        name
        for paragraph in paragraphs
        if not _OPTIONAL & {*paragraph.fields, paragraph.only_with}
        for name in paragraph.fields
    }
    somewhere = {name for paragraph in paragraphs for name in paragraph.fields}
    for name in ("question", "memories"):
        if name in always:
            continue
        if name in somewhere:
            raise SettingsError(
                f"{where}: {{{name}}} stands only in paragraphs that are left out where there is no date or no "
                "profile; write it into a paragraph of its own"
            )
        raise SettingsError(
            f"{where}: {{{name}}} stands nowhere, so no model would see it; write it into user"
        )


def _description(data: Mapping[str, Any], where: str) -> str:
    description = data.get("description", "")
    if not isinstance(description, str):
        raise SettingsError(f"{where}: description is {shown(description)}; write a text")
    return description


def _marker(data: Mapping[str, Any], where: str) -> str:
    marker = data.get("marker", DEFAULT_MARKER)
    right = isinstance(marker, str) and marker.strip() and marker.isprintable()
    if not right or len(marker) > _LONGEST_MARKER:
        raise SettingsError(
            f"{where}: marker is {shown(marker)}; write what the final answer follows, one line of at most "
            f'{_LONGEST_MARKER} characters, such as "{DEFAULT_MARKER}"'
        )
    return str(marker).strip()


def _published_k(data: Mapping[str, Any], where: str) -> int | None:
    k = data.get("published_k")
    if k is None or (isinstance(k, int) and not isinstance(k, bool) and k >= 1):
        return k
    raise SettingsError(f"{where}: published_k is {shown(k)}; write a whole number from 1")
