"""The evidence judge: is all the evidence in the context? Deterministic and free.

Where ids came back they decide, and nothing else does. In plain text a turn is found if its words stand
in the context one after another (Unicode NFKC, case, white space and punctuation set aside; an image
caption may be missing). A turn of under 4 words, such as "Yes, sure!", counts only beside its speaker's
name or a neighbouring turn, because it would be found anywhere.

A memory that rewrites what it heard cannot be scored by text: if its non-empty contexts quote no turn of
the sample at all, its questions are unscored rather than wrong.

Where a dataset names whole sessions as evidence and no turn, a returned id of the session or of any of its
turns hits it. Plain text proves such a session only by holding all of it, as the whole history does: which
of its turns matters, nobody has said, and many a turn stands in several sessions. So a text that holds less
decides nothing, and the question is unscored.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

from pytest_himga.judge.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pytest_himga.data.schema import Case, Message, Sample
    from pytest_himga.memory.protocol import Context

#: Turns with fewer words than this are too common to be found by their words alone.
FEWEST_WORDS = 4
REWRITES = "the memory rewrites text: return Recalled with turn_ids, or judge answers"
SESSIONS_ONLY = (
    "the evidence is whole sessions, and plain text does not tell which it is from: "
    "return Recalled with session_ids or turn_ids, or judge answers"
)
#: Stands before a session's id for what its turns are evidence under; no dataset has ids like these.
_ANY_TURN = "any turn of "
_CAPTION = re.compile(r"^\[Image: .*?\]\s*", re.DOTALL)


@dataclass(frozen=True)
class Coverage:
    """Which evidence groups a context holds; ``refs`` are the groups' first members, in order.

    ``undecided`` counts groups of whole sessions that were not found and may be there all the same;
    ``of_sessions`` says that all groups are such.
    """

    refs: tuple[str, ...]
    found: tuple[bool, ...]
    undecided: int = 0
    of_sessions: bool = False

    @property
    def share(self) -> float:
        """Share of the groups that were found, 0..1; 0 where there are none."""
        return sum(self.found) / len(self.found) if self.found else 0.0

    @property
    def found_refs(self) -> list[str]:
        """The refs that were found."""
        return [ref for ref, found in zip(self.refs, self.found, strict=True) if found]


class EvidenceJudge:
    """Correct iff every evidence group is in the context; partial evidence is wrong, its share the score."""

    name = "evidence"

    def judge(self, case: Case, answer: str | None, context: Context) -> Verdict:  # noqa: ARG002 - reads no answer
        """``n/a`` without evidence or an answer to find; ``unscored`` where the memory rewrites text."""
        question = case.question
        if question.expects_abstention:
            return Verdict("n/a", reason="unanswerable: there is no evidence to find")
        if not question.evidence.groups:
            return Verdict("n/a", reason="the dataset names no evidence for this question")
        covered = coverage(case, context)
        found, total = sum(covered.found), len(covered.found)
        if covered.undecided:
            return Verdict("unscored", reason=SESSIONS_ONLY)
        if not found and is_in_doubt(context) and not quotes(case.sample, context):
            return Verdict("unscored", reason=REWRITES)
        kind = "session" if covered.of_sessions else "turn"
        reason = f"{found} of {total} evidence {kind}{'s' if total > 1 else ''} in the context"
        return Verdict("correct" if found == total else "wrong", covered.share, reason)


def coverage(case: Case, context: Context) -> Coverage:
    """Which evidence groups of ``case`` the context holds, by ids where it has them, else by text."""
    sample, groups = case.sample, case.question.evidence.groups
    refs = tuple(group[0] for group in groups)
    ranked, wanted = matchable(sample, groups, context)
    ids: set[str] = set().union(*ranked)
    texts = [context.text]
    if context.recalled is not None:
        texts = [r.text for r in context.recalled if not r.turn_ids]
    missing = {member for group in groups for member in group} - ids
    words = [w for text in texts if (w := _context_words(text))] if missing else []
    turns = dict(_evidence_turns(sample, missing)) if words else {}
    sessions = {session.session_id for session in sample.sessions}
    of_sessions = [sessions.issuperset(group) for group in groups]
    # Where ids came back, they tell of sessions better than any text.
    by_text = bool(words) and not context.has_ids
    found = tuple(
        any(member in ids or (member in turns and _found(turns[member], words)) for member in members)
        or (whole and by_text and any(_holds_session(sample, member, words) for member in group))
        for group, members, whole in zip(groups, wanted, of_sessions, strict=True)
    )
    undecided = sum(whole and by_text and not hit for whole, hit in zip(of_sessions, found, strict=True))
    return Coverage(refs, found, undecided, bool(refs) and all(of_sessions))


def matchable(
    sample: Sample, groups: Sequence[Sequence[str]], context: Context
) -> tuple[list[set[str]], list[Sequence[str]]]:
    """What was returned, best first, and what is wanted: ids such that a group is hit by a common one.

    A group of sessions alone is hit by any turn of theirs as well; a group with turns by these turns only,
    or by a session id that was returned as such.
    """
    sessions = [session.session_id for session in sample.sessions]
    known = set(sessions)
    ranked: list[set[str]] = [{*r.turn_ids, *r.session_ids} for r in context.recalled or ()]
    if not any(known.issuperset(group) for group in groups):
        return ranked, list(groups)
    for ids, inside in zip(ranked, context.sessions, strict=False):
        ids.update(_ANY_TURN + sessions[int(one[1:]) - 1] for one in inside)
    return ranked, [
        [*group, *(_ANY_TURN + one for one in group)] if known.issuperset(group) else group
        for group in groups
    ]


def is_in_doubt(context: Context) -> bool:
    """Whether it is open if this context's memory quotes turns at all: text, not empty, nothing known."""
    if context.verbatim is not None:
        return not context.verbatim
    return bool(context.text.strip()) and (context.recalled is None or not context.has_ids)


def quotes(sample: Sample, context: Context) -> bool:
    """Whether any turn of the sample stands in the context word for word."""
    words = [_context_words(context.text)]
    turns = _evidence_turns(sample, None)
    return any(_found(turn, words) for _, turn in turns)


def words_of(text: str) -> str:
    """The words of a text, each between single spaces, with a space at both ends; "" if it has none."""
    words = re.findall(r"[^\W_]+", unicodedata.normalize("NFKC", text).casefold())
    return f" {' '.join(words)} " if words else ""


@lru_cache(maxsize=4)
def _context_words(text: str) -> str:
    """Remembered, because a memory that returns its whole history returns the same text each time."""
    return words_of(text)


@dataclass(frozen=True)
class _Turn:
    """A turn with its neighbours, for the rule about short ones."""

    message: Message
    before: Message | None
    after: Message | None

    def wordings(self) -> Iterator[str]:
        """The word sequences that count as this turn."""
        for text in dict.fromkeys((self.message.content, _CAPTION.sub("", self.message.content))):
            own = _words(text)
            if len(own) >= FEWEST_WORDS:
                yield _spaced(own)
            elif own:
                yield from (_spaced(words) for words in self._beside(own))

    def _beside(self, own: list[str]) -> Iterator[list[str]]:
        speaker = _words(self.message.role)
        if speaker:
            yield [*speaker, *own]
        if self.before is not None and (before := _words(self.before.content)):
            yield [*before, *own]
            yield [*before, *speaker, *own]
        if self.after is not None and (after := _words(self.after.content)):
            yield [*own, *after]
            yield [*own, *_words(self.after.role), *after]


def _evidence_turns(sample: Sample, wanted: set[str] | None) -> Iterator[tuple[str, _Turn]]:
    """The sample's turns with their own ids (all of them where ``wanted`` is None)."""
    for s, session in enumerate(sample.sessions, start=1):
        # Blank turns are not fed, so they part no neighbours.
        turns = [(t, turn) for t, turn in enumerate(session.messages, start=1) if turn.content.strip()]
        for n, (t, message) in enumerate(turns):
            turn_id = message.turn_id or f"D{s}:{t}"
            if wanted is None or turn_id in wanted:
                before = turns[n - 1][1] if n else None
                after = turns[n + 1][1] if n + 1 < len(turns) else None
                yield turn_id, _Turn(message, before, after)


def _holds_session(sample: Sample, session_id: str, texts: list[str]) -> bool:
    """Whether every turn of a session of this id, of which there may be two, stands in the texts."""
    for session in sample.sessions:
        if session.session_id == session_id:
            alone = replace(sample, sessions=[session])
            turns = [turn for _, turn in _evidence_turns(alone, None) if _words(turn.message.content)]
            if turns and all(_found(turn, texts) for turn in turns):
                return True
    return False


def _found(turn: _Turn, texts: list[str]) -> bool:
    return any(wording in text for wording in turn.wordings() for text in texts)


def _words(text: str) -> list[str]:
    return words_of(text).split()


def _spaced(words: list[str]) -> str:
    return f" {' '.join(words)} "
