"""What the generator of MemoryStress data says: ``wording.toml``, typed.

The sentences lie in a file of their own because they are data: a new kind of fact is a new ``[[kinds]]``
there and nothing here.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

#: Patterns of a ``ContradictionChain``, in the order in which the generator goes round them.
UPDATE = "fact_update"
ACCUMULATE = "fact_accumulate"
REVERT = "fact_update_revert"
PARTIAL = "fact_partial_update"
PATTERNS = (UPDATE, ACCUMULATE, REVERT, PARTIAL)

#: How hard each of a kind's four questions is: the first uses the fact's own words, the last none of
#: them but the name of its subject.
DIFFICULTIES = ("easy", "medium", "medium", "hard")


@dataclass(frozen=True)
class Kind:
    """A kind of fact.

    ``about`` says which pool its subjects come from: person, project or recipe. ``asks`` are as many
    questions as there are ``DIFFICULTIES``, all of them fit for a fact that has changed. ``label`` names
    the fact without its value; ``chat`` sounds like the fact and tells nothing. A value is one of
    ``values``, or one of them and one of ``seconds`` as ``joined`` puts them together. ``changes`` has the
    sentence that tells a later version, for each pattern that suits the kind.
    """

    name: str
    category: str
    about: str
    says: str
    asks: tuple[str, ...]
    label: str
    chat: tuple[str, ...]
    values: tuple[str, ...]
    seconds: tuple[str, ...] = ("",)
    joined: str = "{a}"
    changes: dict[str, str] = field(default_factory=dict)

    def value(self, parts: tuple[str, str]) -> str:
        """One value in words."""
        return self.joined.format(a=parts[0], b=parts[1])


@dataclass(frozen=True)
class Wording:
    """All kinds of facts, and what is said around them.

    ``subjects`` has two lists for each pool (a subject is one of the first and one of the second);
    ``topics`` has those of each category, ``talk`` the sentences that stand around facts.
    """

    kinds: tuple[Kind, ...]
    subjects: dict[str, tuple[tuple[str, ...], tuple[str, ...]]]
    topics: dict[str, tuple[str, ...]]
    talk: dict[str, tuple[str, ...]]

    @property
    def categories(self) -> tuple[str, ...]:
        """The categories, in the order of the file."""
        return tuple(self.topics)


#: What a pool's names end in: "the Copper Lantern" alone would not be known for a project.
_ENDINGS = {"person": "", "project": " project", "recipe": ""}


def subject_name(about: str, first: str, second: str) -> str:
    """The name of a subject, as it stands in sentences."""
    return f"{first} {second}{_ENDINGS[about]}"


@cache
def wording() -> Wording:
    """The wording, read once."""
    raw = tomllib.loads((Path(__file__).parent / "wording.toml").read_text(encoding="utf-8"))
    lists = {name: _split(text) for name, text in raw["lists"].items()}
    return Wording(
        kinds=tuple(_kind(one, lists) for one in raw["kinds"]),
        subjects={
            about: (_split(first), _split(second)) for about, (first, second) in raw["subjects"].items()
        },
        topics={category: _split(text) for category, text in raw["topics"].items()},
        talk={name: tuple(sentences) for name, sentences in raw["talk"].items()},
    )


def _kind(raw: dict[str, Any], lists: dict[str, tuple[str, ...]]) -> Kind:
    own: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in raw.items()
    }
    for name in ("values", "seconds"):
        if name in raw:
            own[name] = lists[raw[name]]
    return Kind(**own)


def _split(text: str) -> tuple[str, ...]:
    return tuple(text.split(", "))
