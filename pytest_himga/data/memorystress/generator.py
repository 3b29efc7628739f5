"""Answerable data in MemoryStress' format, made from a seed: for demos, scale tests, and who has no file.

The published generator plants no update of a fact that changes, takes the answers of contradiction
questions from the outdated version, asks the agent that was told the fact itself "across agents", and
repeats question texts. Here everything that a question needs was said by a user, word for word, in a
session before its checkpoint; the answer can be read off it; and no question stands twice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_himga.data.memorystress.asking import QUESTIONS_PER_FACT, Asker, Entry
from pytest_himga.data.memorystress.model import BenchmarkData, ContradictionChain, Fact, Session
from pytest_himga.data.memorystress.telling import Dice, Teller, Timeline
from pytest_himga.data.memorystress.wording import wording

if TYPE_CHECKING:
    from pytest_himga.data.memorystress.telling import Told
    from pytest_himga.data.memorystress.wording import Wording

#: One for each phase.
FEWEST_SESSIONS = 3
#: Beyond, the simulated dates would leave the four-digit years one day.
MOST_SESSIONS = 1_000_000
#: Beyond, a kind of fact would run out of people to be about.
MOST_FACTS = 60_000
#: Share of noisy sessions by phase, as (low, medium): the rest is high.
_NOISE = {1: (0.8, 1.0), 2: (0.3, 0.9), 3: (0.1, 0.4)}
_PHASES = {
    "1": "Getting to know each other: short sessions, little noise",
    "2": "Everyday life: more talk about the same people and things, the first facts change",
    "3": "Under load: most sessions are noise, facts go on changing",
}


def generate(seed: int, facts: int, sessions: int, questions: int) -> BenchmarkData:
    """Make a benchmark; the same arguments give the same bytes on every Python, in every process.

    ``facts`` go from 1 to 60,000, ``sessions`` from 3 to 1,000,000 (three phases, one session each at
    least), ``questions`` from 1 to four times ``facts``: that many every set of facts can carry with all
    texts different. One fact in eight changes: it becomes a chain whose versions are all planted, and is
    asked for only after the last one.

    Two facts or more have a chain; four facts and seven questions have all seven types; 40 facts, 1,000
    sessions and 40 questions have all three age groups. Many facts in few sessions make the sessions longer
    than the usual two to six turns. Time and memory grow with the sum of the three numbers.

    Raises
    ------
    ValueError
        For numbers outside these limits.
    """
    _check(facts, sessions, questions)
    dice, words = Dice(seed), wording()
    timeline = Timeline.of(dice, sessions)
    teller = Teller(dice, words, timeline, facts)
    told = teller.tell(facts)
    entries = _written_down(told, timeline, dice)
    chains = [entry.chain for entry in entries if entry.chain is not None]
    asked = Asker(dice, words, timeline, entries).ask(questions)
    return BenchmarkData(
        phases=_phases(timeline),
        stats={
            "total_facts": facts,
            "total_sessions": sessions,
            "total_questions": questions,
            "total_chains": len(chains),
            "seed": seed,
            "generator": "pytest-himga",
        },
        facts=[entry.fact for entry in entries],
        contradiction_chains=chains,
        sessions=_Talk(dice, words, timeline, teller.subjects).sessions(entries),
        questions=asked,
    )


def _check(facts: int, sessions: int, questions: int) -> None:
    carriers = "1 fact carries" if facts == 1 else f"{facts} facts carry"
    limits = {
        "facts": (facts, 1, MOST_FACTS, ""),
        "sessions": (sessions, FEWEST_SESSIONS, MOST_SESSIONS, ""),
        "questions": (
            questions,
            1,
            QUESTIONS_PER_FACT * facts,
            f": {carriers} {QUESTIONS_PER_FACT} questions each; ask for fewer, or for more facts",
        ),
    }
    for name, (value, fewest, most, why) in limits.items():
        if not fewest <= value <= most:
            raise ValueError(f"{name} is {value}; it can be {fewest} to {most}{why}")


def _phases(timeline: Timeline) -> dict[str, Any]:
    starts = (0, *timeline.ends)
    return {
        number: {
            "session_range": [start + 1, end],
            "date_range": [timeline.day(start), timeline.day(end - 1)],
            "description": description,
        }
        for (number, description), start, end in zip(_PHASES.items(), starts, timeline.ends, strict=False)
    }


def _session_id(session: int) -> str:
    return f"S{session + 1:04}"


def _written_down(told: list[Told], timeline: Timeline, dice: Dice) -> list[Entry]:
    """Facts and chains as records, numbered in the order in which they are planted."""
    entries: list[Entry] = []
    chains = 0
    for number, one in enumerate(told, start=1):
        planted = one.sessions[0]
        mentioned = one.sessions[:1] if one.pattern else one.sessions
        fact = Fact(
            fact_id=f"F{number:03}",
            content=one.contents[0],
            category=one.kind.category,
            phase_planted=timeline.phase(planted),
            session_planted=_session_id(planted),
            simulated_date=timeline.day(planted),
            importance=one.importance,
            mention_count=len(mentioned),
            mention_sessions=[_session_id(session) for session in mentioned],
            tags=[one.kind.name],
            difficulty="hard" if one.pattern else "easy" if len(mentioned) > 1 else "medium",
        )
        chain = None
        if one.pattern:
            chains += 1
            fact.contradiction_chain = f"C{chains:03}"
            chain = _chain(fact, one, timeline)
        entries.append(Entry(one, fact, chain, wording=dice.below(QUESTIONS_PER_FACT)))
    return entries


def _chain(fact: Fact, told: Told, timeline: Timeline) -> ContradictionChain:
    versions = [
        {
            "version": number,
            "content": content,
            "session_id": _session_id(session),
            "simulated_date": timeline.day(session),
            "phase": timeline.phase(session),
        }
        for number, (content, session) in enumerate(zip(told.contents, told.sessions, strict=True), start=1)
    ]
    chain_id = fact.contradiction_chain or ""
    return ContradictionChain(chain_id, fact.fact_id, versions, told.values[-1], told.pattern)


class _Talk:
    """Writes the sessions: what is told, in frames, among small talk about the same people and things."""

    def __init__(
        self, dice: Dice, words: Wording, timeline: Timeline, subjects: dict[str, list[str]]
    ) -> None:
        self._dice, self._words, self._talk = dice, words, words.talk
        self._timeline, self._subjects = timeline, subjects

    def sessions(self, entries: list[Entry]) -> list[Session]:
        """All sessions; every content stands in a user's turn of its own."""
        count = self._timeline.ends[-1]
        told: list[list[tuple[str, str, Told]]] = [[] for _ in range(count)]
        planted: list[list[str]] = [[] for _ in range(count)]
        for entry in entries:
            one = entry.told
            planted[one.sessions[0]].append(entry.fact.fact_id)
            for n, session in enumerate(one.sessions):
                frames = "frames" if n == 0 else "news" if one.pattern else "again"
                told[session].append((frames, one.contents[n if one.pattern else 0], one))
        return [self._session(number, told[number], planted[number]) for number in range(count)]

    def _session(self, number: int, told: list[tuple[str, str, Told]], planted: list[str]) -> Session:
        dice = self._dice
        noise, small_talk = self._noise(self._timeline.phase(number))
        exchanges = [self._exchange(*one) for one in told]
        for _ in range(small_talk if told else max(small_talk, 1)):
            exchanges.insert(dice.below(len(exchanges) + 1), self._small_talk())
        turns = [
            {"role": role, "content": content}
            for exchange in exchanges
            for role, content in zip(("user", "assistant"), exchange, strict=True)
        ]
        category = told[0][2].kind.category if told else dice.pick(self._words.categories)
        return Session(
            session_id=_session_id(number),
            session_index=number,
            phase=self._timeline.phase(number),
            simulated_date=self._timeline.dates[number].isoformat()[:19],  # the format has no zone
            topic=dice.pick(self._words.topics[category]),
            agent_id=self._timeline.agents[number],
            turns=turns,
            planted_fact_ids=planted,
            noise_level=noise,
            # four characters a token, as tokenizers of English come out on average
            token_count_estimate=sum(len(turn["content"]) for turn in turns) // 4,
        )

    def _noise(self, phase: int) -> tuple[str, int]:
        """How noisy a session is, and with how many exchanges of small talk."""
        low, medium = _NOISE[phase]
        if self._dice.chance(low):
            return "low", self._dice.below(2)
        if self._dice.chance((medium - low) / (1 - low)):
            return "medium", 1
        return "high", 1 + self._dice.below(2)

    def _exchange(self, frames: str, content: str, told: Told) -> tuple[str, str]:
        dice, talk = self._dice, self._talk
        said = dice.pick(talk[frames]) + content + dice.pick(talk["tails"])
        return said, dice.pick(talk["replies_told"]).format(s=told.name)

    def _small_talk(self) -> tuple[str, str]:
        dice, talk = self._dice, self._talk
        said = dice.pick(talk["chatter"])
        if dice.chance(0.75):
            kind = dice.pick(self._words.kinds)
            said = dice.pick(kind.chat).format(s=dice.pick(self._subjects[kind.about]))
        return said, dice.pick(talk["replies_chat"])
