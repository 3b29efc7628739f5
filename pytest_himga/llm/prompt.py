"""What is sent to a model, in the llm room: messages whose untrusted parts are fenced, and their fingerprint.

A fence is a tag whose name ends in random hex that is drawn for each call, so that no text can close it.
The fingerprint of a request is made before a fence is drawn: it is the same for the same question.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Goes into every fingerprint: a change of how requests are made or replies are read asks everything again.
PROTOCOL_VERSION = 1
#: Random bytes of a fence.
_FENCE_BYTES = 8


class Mark(Enum):
    """Stands in a message for what is only known when it is sent."""

    FENCE = "the hex that this call's tags end in"


@dataclass(frozen=True)
class Fenced:
    """A text of a stranger's inside a tag of its own, ``<answer_5f3a...>``; ``label`` is ``[a-z_]+``."""

    label: str
    text: str


Part = str | Fenced | Mark


@dataclass(frozen=True)
class ChatMessage:
    """One message; its content is its parts on end."""

    role: Literal["system", "user"]
    parts: tuple[Part, ...]


@dataclass(frozen=True)
class ResponseFormat:
    """What a reply must look like: the JSON schema ``schema``, called ``name`` (``[a-z_]+``)."""

    name: str
    schema: Mapping[str, Any]


@dataclass(frozen=True)
class ModelSpec:
    """A model as it is asked for. ``server`` is the base URL without credentials and without a last slash.

    ``options`` are the parameters that the user set, by their names in the API (``temperature``, ...);
    no other is ever sent.
    """

    name: str
    server: str
    options: Mapping[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Plain data, for fingerprints and ``run.json``."""
        return {"model": self.name, "server": self.server, "options": dict(self.options)}


@dataclass(frozen=True)
class ChatRequest:
    """One question to a model. ``vote`` (from 1) tells apart requests that are otherwise the same."""

    messages: tuple[ChatMessage, ...]
    response_format: ResponseFormat | None = None
    vote: int = 1

    def rendered(self) -> list[dict[str, str]]:
        """The messages as they are sent, with a fence that is drawn now."""
        fence = secrets.token_hex(_FENCE_BYTES)
        return [
            {"role": message.role, "content": "".join(_render(part, fence) for part in message.parts)}
            for message in self.messages
        ]

    def fingerprint(self, model: ModelSpec) -> str:
        """The sha256 (hex) over everything that decides the reply but the fence."""
        parts = [[message.role, *map(_plain, message.parts)] for message in self.messages]
        wanted = self.response_format
        return digest(
            {
                "protocol": PROTOCOL_VERSION,
                "messages": parts,
                # As text: models write the properties in the order in which a schema has them.
                "format": [wanted.name, json.dumps(wanted.schema)] if wanted else None,
                "vote": self.vote,
                **model.as_json(),
            }
        )


def digest(value: Any) -> str:
    """The sha256 (hex) of plain data as canonical JSON."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    # Not with JSON's own escapes: two lone surrogates on end look there like the one character they are not.
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _render(part: Part, fence: str) -> str:
    if isinstance(part, str):
        return sound(part)
    if isinstance(part, Mark):
        return fence
    tag = f"{part.label}_{fence}"
    return f"<{tag}>\n{sound(part.text)}\n</{tag}>"


def _plain(part: Part) -> Any:
    if isinstance(part, Fenced):
        return {"label": part.label, "text": part.text}
    return {"mark": part.name} if isinstance(part, Mark) else part


def sound(text: str) -> str:
    r"""``text`` without lone surrogates, which no UTF-8 holds: they are written out as ``\udXXX``."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode("utf-8")
