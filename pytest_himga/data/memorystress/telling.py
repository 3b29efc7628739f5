"""The generator's first half: when sessions are held, and what a user tells in which of them.

Everything that is told has one listener: the agent of the session where a fact is planted also hears
its repetitions and every later version. So each fact can be asked of that agent, and is a cross-agent
question for the other one.
"""

from __future__ import annotations

import random
from bisect import bisect_left
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, TypeVar

from pytest_himga.data.memorystress.wording import ACCUMULATE, PARTIAL, PATTERNS, REVERT, UPDATE, subject_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pytest_himga.data.memorystress.wording import Kind, Wording

T = TypeVar("T")

AGENTS = ("agent_a", "agent_b")
#: Phase 1 is the first 10 % of the sessions, phase 2 goes up to 50 %, phase 3 is the rest: the published
#: split. Questions of phase 4 are asked when all is over.
_FIRST_PHASES = (0.1, 0.5)
#: In which phases facts are planted, over and over: a fifth of them in the first tenth of the sessions,
#: so that something old is there to be asked for.
_PLANTED_IN = (1, 2, 3, 2, 3)
#: A fact in so many is one that changes (published: 40 of 583; more of them give the rare patterns a chance).
FACTS_PER_CHAIN = 8
#: How many subjects a pool has. So few that each is spoken of again and again: what a search has to tell
#: apart is many turns about one person. Yet enough for each kind to go round its pool and not come back:
#: with a few hundred facts a kind takes one in fifteen of them at most, with many one in twenty.
_FACTS_PER_SUBJECT = 14
_SESSIONS_PER_SUBJECT = 40
_FEWEST_SUBJECTS = 8
_START = datetime(2024, 1, 1, 8, tzinfo=UTC)


class Dice:
    """Chance that falls alike on every Python: only ``random()`` itself is promised to stay the same."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed).random  # noqa: S311 - reproducible on purpose

    def below(self, end: int) -> int:
        """A number from 0 to ``end`` - 1."""
        return int(self._random() * end)

    def chance(self, share: float) -> bool:
        """True in that share of the throws."""
        return self._random() < share

    def pick(self, items: Sequence[T]) -> T:
        """One of the items."""
        return items[self.below(len(items))]

    def shuffled(self, items: Iterable[T], first: int | None = None) -> list[T]:
        """The items in another order, or only the first few of that order."""
        mixed = list(items)
        for place in range(len(mixed) if first is None else min(first, len(mixed))):
            other = place + self.below(len(mixed) - place)
            mixed[place], mixed[other] = mixed[other], mixed[place]
        return mixed[:first]

    def some(self, items: Sequence[int], count: int, first: int, end: int) -> list[int]:
        """``count`` different ones of ``items[first:end]`` (all, if there are fewer), in their order."""
        count = min(count, end - first)
        chosen: set[int] = set()
        while len(chosen) < count:
            chosen.add(first + self.below(end - first))
        return [items[place] for place in sorted(chosen)]


@dataclass(frozen=True)
class Timeline:
    """When and with whom: parallel lists by session, from 0.

    ``ends[p - 1]`` is how many sessions come before the questions of phase ``p``, 1 to 4; ``held_by`` are
    the sessions of each agent.
    """

    agents: list[str]
    dates: list[datetime]
    ends: tuple[int, int, int, int]
    held_by: dict[str, list[int]]

    @classmethod
    def of(cls, dice: Dice, sessions: int) -> Timeline:
        """A timeline; both agents occur, the first one twice, however short it is."""
        agents, dates, now = [], [], _START
        agent = AGENTS[0]
        for number in range(sessions):
            # The first three take turns; later on a user stays with an agent for three sessions or so.
            if 0 < number < len(AGENTS) + 1 or (number > len(AGENTS) and dice.chance(1 / 3)):
                agent = AGENTS[1 - AGENTS.index(agent)]
            agents.append(agent)
            dates.append(now)
            now += timedelta(minutes=180 + dice.below(541))
        first, second = (round(share * sessions) for share in _FIRST_PHASES)
        first = max(first, 1)
        second = max(second, first + 1)
        held_by = {one: [n for n, agent in enumerate(agents) if agent == one] for one in AGENTS}
        return cls(agents, dates, (first, second, sessions, sessions), held_by)

    def phase(self, session: int) -> int:
        """The phase of a session, 1 to 3."""
        return 1 + (session >= self.ends[0]) + (session >= self.ends[1])

    def day(self, session: int) -> str:
        """The ISO date of a session."""
        return self.dates[session].date().isoformat()


@dataclass
class Told:
    """A fact on its way through the sessions.

    A fact that stays has one of ``values`` and ``contents`` and is told in every one of ``sessions``, the
    first time to plant it. One that changes (``pattern``) has a value, a content and a session for each
    of its versions.
    """

    kind: Kind
    subject: str
    agent: str
    sessions: list[int]
    values: list[str]
    contents: list[str]
    importance: int
    pattern: str = ""

    @property
    def known_from(self) -> int:
        """The session after which it can be asked: its planting, or its last version."""
        return self.sessions[-1] if self.pattern else self.sessions[0]

    @property
    def name(self) -> str:
        """Its subject, as it is called in the middle of a sentence."""
        return self.subject if self.kind.about == "person" else f"the {self.subject}"

    @property
    def label(self) -> str:
        """What it is called without giving it away."""
        return self.kind.label.format(s=self.subject)


class Teller:
    """Makes up what is told."""

    def __init__(self, dice: Dice, words: Wording, timeline: Timeline, facts: int) -> None:
        self._dice, self._words, self._timeline = dice, words, timeline
        sessions = timeline.ends[-1]
        enough = max(_FEWEST_SUBJECTS, facts // _FACTS_PER_SUBJECT, sessions // _SESSIONS_PER_SUBJECT)
        #: The subjects of each pool; small talk is about the same ones.
        self.subjects: dict[str, list[str]] = {}
        for about, (first, second) in words.subjects.items():
            order = dice.shuffled(range(len(first) * len(second)), enough)
            self.subjects[about] = [
                subject_name(about, first[n // len(second)], second[n % len(second)]) for n in order
            ]
        # Each kind goes round the subjects of its pool from a place of its own, so none comes twice.
        self._next = {kind.name: dice.below(len(self.subjects[kind.about])) for kind in words.kinds}
        self._by_category = [
            [kind for kind in words.kinds if kind.category == category] for category in words.categories
        ]

    def tell(self, facts: int) -> list[Told]:
        """So many facts, in the order in which they are planted."""
        chains = max(facts // FACTS_PER_CHAIN, 1) if facts > 1 else 0
        told = [self._lasting(number) for number in range(facts - chains)]
        told += [self._changing(number) for number in range(chains)]
        return sorted(told, key=lambda one: one.sessions[0])

    def _lasting(self, number: int) -> Told:
        dice, ends = self._dice, self._timeline.ends
        kinds = self._by_category[number % len(self._by_category)]
        kind = kinds[number // len(self._by_category) % len(kinds)]
        phase = _PLANTED_IN[number % len(_PLANTED_IN)]
        start = ends[phase - 2] if phase > 1 else 0
        planted = start + dice.below(ends[phase - 1] - start)
        # What matters is repeated. The first three facts are not: told in three phases to two agents and
        # about three pools, they have a pair whose order can be asked for, however few facts there are.
        importance = 1 + dice.below(5 if number > 2 else 2)
        agent = self._timeline.agents[planted]
        held = self._timeline.held_by[agent]
        again = dice.some(held, dice.below(importance) // 2, bisect_left(held, planted + 1), len(held))
        subject, value = self._subject(kind), kind.value(self._parts(kind))
        content = kind.says.format(s=subject, v=value)
        return Told(kind, subject, agent, [planted, *again], [value], [content], importance)

    def _changing(self, number: int) -> Told:
        dice = self._dice
        agent = dice.pick(AGENTS)
        # Half of them have changed for the last time before phase 3, so that phase 2 can ask for them.
        horizon = self._timeline.ends[1] if dice.chance(0.5) else self._timeline.ends[2]
        possible = bisect_left(self._timeline.held_by[agent], horizon)
        if possible < 2:  # only where there are a handful of sessions; the first agent always has two
            agent, possible = AGENTS[0], len(self._timeline.held_by[AGENTS[0]])
        pattern = PATTERNS[number % len(PATTERNS)]
        if pattern == REVERT and possible < 3:
            pattern = UPDATE
        count = 3 if pattern == REVERT or dice.chance(0.4) else 2
        sessions = dice.some(self._timeline.held_by[agent], count, 0, possible)
        kinds = [kind for kind in self._words.kinds if pattern in kind.changes]
        kind = kinds[number // len(PATTERNS) % len(kinds)]
        subject, values = self._subject(kind), self._versions(kind, pattern, len(sessions))
        sentences = [kind.says, *[kind.changes[pattern]] * (len(sessions) - 1)]
        if pattern == REVERT:
            sentences[1] = kind.changes[UPDATE]
        contents = [
            sentence.format(s=subject, v=value) for sentence, value in zip(sentences, values, strict=True)
        ]
        return Told(kind, subject, agent, sessions, values, contents, 3 + dice.below(3), pattern)

    def _versions(self, kind: Kind, pattern: str, count: int) -> list[str]:
        """The values of a fact's versions, in order."""
        if pattern == REVERT:
            first, second = self._different(kind, 2)
            return [first, second, first]
        if pattern == ACCUMULATE:
            every = self._different(kind, count)
            return [_listed(every[: n + 1]) for n in range(count)]
        if pattern == PARTIAL:
            return self._partly_different(kind, count)
        return self._different(kind, count)

    def _different(self, kind: Kind, count: int) -> list[str]:
        values: list[str] = []
        while len(values) < count:
            value = kind.value(self._parts(kind))
            if value not in values:
                values.append(value)
        return values

    def _partly_different(self, kind: Kind, count: int) -> list[str]:
        parts = list(self._parts(kind))
        seen = [tuple(parts)]
        side = self._dice.below(2)
        while len(seen) < count:
            parts[side] = self._dice.pick((kind.values, kind.seconds)[side])
            if tuple(parts) not in seen:
                seen.append(tuple(parts))
                side = 1 - side
        return [kind.value((first, second)) for first, second in seen]

    def _parts(self, kind: Kind) -> tuple[str, str]:
        return self._dice.pick(kind.values), self._dice.pick(kind.seconds)

    def _subject(self, kind: Kind) -> str:
        pool = self.subjects[kind.about]
        place = self._next[kind.name]
        self._next[kind.name] = place + 1
        return pool[place % len(pool)]


def _listed(values: list[str]) -> str:
    return values[0] if len(values) == 1 else f"{', '.join(values[:-1])} and {values[-1]}"
