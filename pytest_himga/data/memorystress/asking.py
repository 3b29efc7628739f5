"""The generator's second half: questions that the sessions before them answer.

A question is asked when all that it needs has been told: for a fact that changes, its last version.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from dataclasses import dataclass
from itertools import combinations, cycle, islice
from typing import TYPE_CHECKING

from pytest_himga.data.memorystress.model import Question
from pytest_himga.data.memorystress.telling import AGENTS
from pytest_himga.data.memorystress.wording import DIFFICULTIES
from pytest_himga.data.schema import QuestionType

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_himga.data.memorystress.model import ContradictionChain, Fact
    from pytest_himga.data.memorystress.telling import Dice, Timeline, Told
    from pytest_himga.data.memorystress.wording import Wording

#: How many questions every fact can carry whatever else is asked: one for each of its kind's wordings.
QUESTIONS_PER_FACT = len(DIFFICULTIES)
LAST_PHASE = 4
#: Phases and types, over and over: roughly the shares of the published file (51, 99, 99 and 51 of 300
#: in the four phases). Each type is among the first seven, so that a handful of questions has them all.
_PHASES = (1, 2, 3, 2, 3, 4)
_TYPES = (
    QuestionType.FACT_RECALL,
    QuestionType.CONTRADICTION_RESOLUTION,
    QuestionType.TEMPORAL_ORDERING,
    QuestionType.SINGLE_MENTION_RECALL,
    QuestionType.PREFERENCE_RECALL,
    QuestionType.CROSS_AGENT_RECALL,
    QuestionType.COLD_START_RECALL,
    QuestionType.FACT_RECALL,
    QuestionType.CONTRADICTION_RESOLUTION,
    QuestionType.FACT_RECALL,
    QuestionType.SINGLE_MENTION_RECALL,
    QuestionType.CONTRADICTION_RESOLUTION,
    QuestionType.FACT_RECALL,
    QuestionType.PREFERENCE_RECALL,
    QuestionType.CROSS_AGENT_RECALL,
    QuestionType.FACT_RECALL,
    QuestionType.SINGLE_MENTION_RECALL,
    QuestionType.CONTRADICTION_RESOLUTION,
    QuestionType.TEMPORAL_ORDERING,
)
_CHANGING, _PREFERENCE, _ONCE, _REPEATED = "changing", "preference", "once", "repeated"
#: Which facts suit a type; an ordering takes two of those that were told once.
_SUITED = {
    QuestionType.FACT_RECALL: (_REPEATED, _ONCE),
    QuestionType.CONTRADICTION_RESOLUTION: (_CHANGING,),
    QuestionType.SINGLE_MENTION_RECALL: (_ONCE,),
    QuestionType.PREFERENCE_RECALL: (_PREFERENCE,),
    QuestionType.CROSS_AGENT_RECALL: (_ONCE, _REPEATED, _PREFERENCE),
    QuestionType.COLD_START_RECALL: (_ONCE, _REPEATED, _PREFERENCE),
}
_DIMENSIONS = {
    QuestionType.CONTRADICTION_RESOLUTION: "contradiction_resolution",
    QuestionType.CROSS_AGENT_RECALL: "cross_agent_recall",
    QuestionType.COLD_START_RECALL: "cold_start_recovery",
}
#: Up to so many facts all pairs are looked at; beyond, a throw of the dice finds a new one soon.
_FEW = 12
_THROWS = 20


@dataclass
class Entry:
    """A fact as it is written down; of its kind's questions, ``wording`` comes first, ``asked`` are used."""

    told: Told
    fact: Fact
    chain: ContradictionChain | None
    wording: int
    asked: int = 0

    @property
    def suits(self) -> str:
        """What kind of fact it is to a question."""
        if self.chain is not None:
            return _CHANGING
        if self.fact.category == "preference":
            return _PREFERENCE
        return _ONCE if self.fact.mention_count == 1 else _REPEATED


class Asker:
    """Makes up questions about ``entries``; each of a fact's wordings is used once."""

    def __init__(self, dice: Dice, words: Wording, timeline: Timeline, entries: Sequence[Entry]) -> None:
        self._dice, self._talk, self._timeline = dice, words.talk, timeline
        #: Facts with wordings to spare, by what they suit and the phase from which they are known.
        self._free: dict[tuple[str, int], deque[Entry]] = {}
        for entry in dice.shuffled(entries):
            key = entry.suits, timeline.phase(entry.told.known_from)
            self._free.setdefault(key, deque()).append(entry)
        self._told_once = [one for one in entries if one.chain is None and one.fact.mention_count == 1]
        self._told_at = [one.told.sessions[0] for one in self._told_once]
        self._compared: set[tuple[str, str]] = set()

    def ask(self, count: int) -> list[Question]:
        """So many questions, at most ``QUESTIONS_PER_FACT`` for each fact, by the phase that asks them."""
        phases = self._dice.shuffled(islice(cycle(_PHASES), count))
        types = islice(cycle(_TYPES), count)
        asked = [self._question(kind, phase) for kind, phase in zip(types, phases, strict=True)]
        asked.sort(key=lambda question: question.phase_asked)
        for number, question in enumerate(asked, start=1):
            question.question_id = f"Q{number:03}"
        return asked

    def _question(self, wanted: QuestionType, phase: int) -> Question:
        """A question of the type wanted at that phase, else a later one, else another type."""
        for kind in dict.fromkeys((wanted, *_SUITED)):
            for later in range(phase, LAST_PHASE + 1):
                question = (
                    self._ordering(later)
                    if kind is QuestionType.TEMPORAL_ORDERING
                    else self._recall(kind, later)
                )
                if question is not None:
                    return question
        # Nothing is left that is known from `phase` on only if nothing is left at all.
        raise AssertionError("every fact's questions are used up")

    def _recall(self, kind: QuestionType, phase: int) -> Question | None:
        entry = self._take(kind, phase)
        if entry is None:
            return None
        told, wording = entry.told, (entry.wording + entry.asked) % QUESTIONS_PER_FACT
        entry.asked += 1
        text = told.kind.asks[wording].format(s=told.subject)
        if entry.chain is not None:
            text = text.removesuffix("?") + self._dice.pick(self._talk["latest"])
        question = self._made([entry], kind, phase, text, told.values[-1])
        question.difficulty = DIFFICULTIES[wording]
        return question

    def _take(self, kind: QuestionType, phase: int) -> Entry | None:
        """A fact that suits and is known at that phase; the one that was asked longest ago."""
        ready = [
            known
            for known in range(1, min(phase, LAST_PHASE - 1) + 1)
            if any(self._free.get((suited, known)) for suited in _SUITED[kind])
        ]
        if not ready:
            return None
        known = self._dice.pick(ready)
        line = self._dice.pick(
            [queue for suited in _SUITED[kind] if (queue := self._free.get((suited, known)))]
        )
        entry = line.popleft()
        if entry.asked + 1 < QUESTIONS_PER_FACT:
            line.append(entry)
        return entry

    def _ordering(self, phase: int) -> Question | None:
        pair = self._pair(bisect_left(self._told_at, self._timeline.ends[phase - 1]))
        if pair is None:
            return None
        earlier, later = pair
        self._compared.add((earlier.fact.fact_id, later.fact.fact_id))
        first, second = pair if self._dice.chance(0.5) else (later, earlier)
        text = self._dice.pick(self._talk["orderings"]).format(a=first.told.label, b=second.told.label)
        question = self._made(
            [earlier, later], QuestionType.TEMPORAL_ORDERING, phase, text, earlier.told.label
        )
        question.difficulty = "hard"
        return question

    def _pair(self, known: int) -> tuple[Entry, Entry] | None:
        """Two of the first ``known`` facts that were told once, the earlier one first."""
        if known <= _FEW:
            pairs = self._dice.shuffled(combinations(range(known), 2))
        else:
            throws = [(self._dice.below(known), self._dice.below(known)) for _ in range(_THROWS)]
            pairs = [(min(pair), max(pair)) for pair in throws]
        for one, other in pairs:
            earlier, later = self._told_once[one], self._told_once[other]
            if (
                earlier.told.sessions[0] < later.told.sessions[0]
                and earlier.told.agent == later.told.agent
                and earlier.told.subject != later.told.subject
                and (earlier.fact.fact_id, later.fact.fact_id) not in self._compared
            ):
                return earlier, later
        return None

    def _made(self, entries: list[Entry], kind: QuestionType, phase: int, text: str, answer: str) -> Question:
        end = self._timeline.ends[phase - 1]
        last = max(session for entry in entries for session in entry.told.sessions if session < end)
        first = entries[0]
        scope = first.told.agent
        if kind is QuestionType.CROSS_AGENT_RECALL:
            scope = AGENTS[1 - AGENTS.index(scope)]
        dimension = _DIMENSIONS.get(kind)
        return Question(
            question_id="",
            question=text,
            target_fact_ids=[entry.fact.fact_id for entry in entries],
            target_chain_id=first.chain.chain_id if first.chain else None,
            answer=answer,
            answer_detail=" ".join(self._told_in_short(entry.told) for entry in entries),
            phase_asked=phase,
            target_fact_phase=first.fact.phase_planted,
            # Counted as the published file does: the session that told it last is the first of them, so
            # that a fact of session 1 is 1,000 sessions old after session 1,000.
            age_sessions=end - last,
            age_days=(self._timeline.dates[end - 1] - self._timeline.dates[last]).days,
            question_type=kind.value,
            scoring_dimensions=["recall_at_age", *([dimension] if dimension else []), "cost_efficiency"],
            agent_scope=scope,
            cold_start=kind is QuestionType.COLD_START_RECALL,
        )

    def _told_in_short(self, told: Told) -> str:
        """What the judge is told of a fact."""
        said = [
            f"On {self._timeline.day(session)} the user said: {content}"
            for session, content in zip(told.sessions, told.contents, strict=False)
        ]
        return " ".join(said) + (" The last word holds." if told.pattern else "")
