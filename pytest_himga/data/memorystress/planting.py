"""Where MemoryStress' facts stand in its sessions: what reader and integrity checks both ask.

The file says in which sessions a fact was planted and mentioned, never in which turn. Where the sessions
quote their facts, the turn is found by its words; where a model wrote them in its own words it cannot be,
and the session is all that is known.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytest_himga.data.memorystress.model import (
        BenchmarkData,
        ContradictionChain,
        Fact,
        Question,
        Session,
    )

#: The checkpoint that comes after everything and brings no session of its own.
LAST_CHECKPOINT = 4


class Planting:
    """The sessions of a benchmark in the order in which they are fed, and what stands in them.

    ``sessions`` are those with turns, by phase, then ``session_index``, then their place in the file.
    ``facts`` and ``chains`` are by id; of two with one id the first counts.
    """

    def __init__(self, data: BenchmarkData) -> None:
        ordered = sorted(data.sessions, key=lambda session: (session.phase, session.session_index))
        self.sessions: list[Session] = [session for session in ordered if session.turns]
        self.facts: dict[str, Fact] = {fact.fact_id: fact for fact in reversed(data.facts)}
        self.chains: dict[str, ContradictionChain] = {
            chain.chain_id: chain for chain in reversed(data.contradiction_chains)
        }
        self.places: dict[str, list[int]] = {}
        for place, session in enumerate(self.sessions):
            self.places.setdefault(session.session_id, []).append(place)
        self._words: dict[int, list[str]] = {}

    def asked_after(self, question: Question) -> int:
        """Count the sessions that come before the question: those of the phases up to its own."""
        if question.phase_asked >= LAST_CHECKPOINT:
            return len(self.sessions)
        return bisect_right(self.sessions, question.phase_asked, key=lambda session: session.phase)

    @cached_property
    def is_quoted(self) -> bool:
        """Whether the sessions quote their facts: at least half of them stand word for word where planted.

        Only then does it mean something that a fact is not found.
        """
        placed = [fact for fact in self.facts.values() if fact.session_planted in self.places]
        found = sum(self.stands_in(fact.content, fact.session_planted) for fact in placed)
        return bool(placed) and 2 * found >= len(placed)

    def stands_in(self, content: str, session_id: str) -> bool:
        """Whether the words of ``content`` stand in a turn of a session of this id."""
        return any(self._quoting(content, place) for place in self.places.get(session_id, ()))

    def stands_anywhere(self, content: str) -> bool:
        """Whether the words of ``content`` stand in a turn of any session."""
        wanted = _words(content)
        return bool(wanted) and wanted in self._everything

    @cached_property
    def _everything(self) -> str:
        return "|".join(words for place in range(len(self.sessions)) for words in self._words_of(place))

    def is_planted(self, content: str, session_ids: Iterable[str]) -> bool:
        """Whether ``content`` was said in one of the sessions, as far as can be told."""
        known = [one for one in session_ids if one in self.places]
        return any(self.stands_in(content, one) for one in known) if self.is_quoted else bool(known)

    def agents_told(self, fact: Fact) -> set[str]:
        """The agents of the sessions in which the file says that the fact was planted or mentioned."""
        places = (place for one in self.known_sessions_of(fact) for place in self.places[one])
        return {self.sessions[place].agent_id for place in places}

    def known_sessions_of(self, fact: Fact) -> list[str]:
        """The ids of those of a fact's sessions that exist and have turns."""
        return [one for one in sessions_of(fact) if one in self.places]

    # -- evidence ------------------------------------------------------------------------------------

    def groups(self, question: Question) -> list[list[str]]:
        """The evidence of a question: a group per target fact, and one for its chain's last version.

        A member is a turn, ``D<session>:<turn>``, counted from 1 in ``sessions`` (the id that the boundary
        gives a turn without one), or a session id of the file. Where sessions quote their facts, these are
        the turns that do, then the ids of their sessions; a fact that is nowhere quoted was never planted
        and has no group, because nothing could hit it. Where they do not, the sessions alone are known,
        except for a fact that all its sessions happen to quote. Sessions after the question's checkpoint
        are no evidence.
        """
        before = self.asked_after(question)
        facts = [self.facts[one] for one in dict.fromkeys(question.target_fact_ids) if one in self.facts]
        groups = [self._group(fact.content, sessions_of(fact), before) for fact in facts]
        chain = self.chains.get(question.target_chain_id or "")
        if chain is not None:
            last = self._last_version(
                chain, before, is_asked=chain.original_fact_id in question.target_fact_ids
            )
            if set(last) not in map(set, groups):
                groups.append(last)
        return [group for group in groups if group]

    def _last_version(self, chain: ContradictionChain, before: int, *, is_asked: bool) -> list[str]:
        """The group of the last planted version; none if that is the original, which ``is_asked`` itself."""
        for number, version in reversed(list(enumerate(chain.versions))):
            if number == 0 and is_asked:
                break
            if group := self._group(version_text(version), [version_session(version)], before):
                return group
        return []

    def _group(self, content: str, session_ids: Iterable[str], before: int) -> list[str]:
        places = [place for one in session_ids for place in self.places.get(one, ()) if place < before]
        quoting = {place: self._quoting(content, place) for place in places}
        if self.is_quoted:
            places = [place for place in places if quoting[place]]
        turns: list[str] = []
        # A turn in the group says that text can decide, so a session that may say it otherwise allows none.
        if all(quoting.values()) or self.is_quoted:
            turns = [self._turn_id(place, turn) for place in places for turn in quoting[place]]
        return list(dict.fromkeys([*turns, *(self.sessions[place].session_id for place in places)]))

    # -- words ---------------------------------------------------------------------------------------

    @staticmethod
    def _turn_id(place: int, turn: int) -> str:
        return f"D{place + 1}:{turn + 1}"

    def _quoting(self, content: str, place: int) -> list[int]:
        """The turns of a session, from 0, in which the words of ``content`` stand one after another."""
        wanted = _words(content)
        return [turn for turn, words in enumerate(self._words_of(place)) if wanted and wanted in words]

    def _words_of(self, place: int) -> list[str]:
        if place not in self._words:
            self._words[place] = [_words(turn.get("content")) for turn in self.sessions[place].turns]
        return self._words[place]


def sessions_of(fact: Fact) -> list[str]:
    """The ids of the sessions in which the file says that a fact was planted or mentioned."""
    return [one for one in dict.fromkeys([fact.session_planted, *fact.mention_sessions]) if one]


def version_text(version: dict[str, Any]) -> str:
    """What a chain's version says; "" where it says nothing."""
    content = version.get("content")
    return content if isinstance(content, str) else ""


def version_session(version: dict[str, Any]) -> str:
    """The id of the session in which a chain's version was planted; "" where there is none."""
    session_id = version.get("session_id")
    return session_id if isinstance(session_id, str) else ""


def _words(text: object) -> str:
    """The words of a text, each between single spaces, so that "#1" is not found in "#12"."""
    if not isinstance(text, str):
        return ""
    words = re.findall(r"[^\W_]+", unicodedata.normalize("NFKC", text).casefold())
    return f" {' '.join(words)} " if words else ""
