"""The boundary: what a memory is shown, and what is accepted from it.

A memory gets turns, speakers, dates and the question, and nothing else: no gold, type, evidence or
label, and no id of the dataset (LongMemEval's session ids mark the evidence). It gets fresh copies with
neutral ids, ``D<session>:<turn>`` and ``s<n>``, both counted from 1 in the order of the history; what it
returns is mapped back. Blank turns stay in the ``Sample``, are not fed, and are counted.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING

from pytest_himga.data.files import shown
from pytest_himga.data.schema import Message, Sample, Session
from pytest_himga.errors import BackendError
from pytest_himga.memory.protocol import Context, Recalled

if TYPE_CHECKING:
    from pytest_himga.data.schema import EvidenceRef

#: The default of ``Recalled``: there is one empty tuple.
_NO_IDS: tuple[str, ...] = ()


@dataclass(frozen=True)
class History:
    """One sample's sessions as they cross the boundary, and the way back from neutral ids."""

    sample: Sample
    turn_ids: Mapping[str, str]
    session_ids: Mapping[str, str]
    blank_turns: int

    @classmethod
    def of(cls, sample: Sample) -> History:
        """The history of ``sample``. A turn without an id of its own keeps the neutral one."""
        turns: dict[str, str] = {}
        sessions: dict[str, str] = {}
        blank = 0
        for s, session in enumerate(sample.sessions, start=1):
            sessions[f"s{s}"] = session.session_id
            for t, message in enumerate(session.messages, start=1):
                neutral = f"D{s}:{t}"
                turns[neutral] = message.turn_id or neutral
                blank += not message.content.strip()
        return cls(sample, turns, sessions, blank)

    def sessions(self, first: int = 0, end: int | None = None) -> Iterator[Session]:
        """Fresh neutral copies of the sessions ``first`` to ``end`` (0-based, ``end`` excluded)."""
        for s, session in enumerate(self.sample.sessions[first:end], start=first + 1):
            messages = [
                Message(message.role, message.content, f"D{s}:{t}", message.date_str or session.date_str)
                for t, message in enumerate(session.messages, start=1)
                if message.content.strip()
            ]
            yield Session(f"s{s}", messages, session.date_str)

    def evidence_ids(self, evidence: EvidenceRef) -> list[str]:
        """The neutral ids of what the evidence groups name, each once: turns, or sessions where no turn is.

        A session id that the history has twice names both sessions: the file says no more.
        """
        found: dict[str, None] = {}
        for group in evidence.groups:
            named = [one for member in group for one in self._named.get(member, ())]
            turns = [one for one in named if one[0] == "D"]
            found |= dict.fromkeys(turns or named)
        return list(found)

    def evidence_sessions(self, evidence: EvidenceRef, until: int) -> list[str]:
        """The neutral ids of the sessions that the evidence stands in, each once.

        Those beyond ``until`` (a count of sessions) were not heard. They are left out, unless there is
        no other: then the evidence cannot be found, and that must show.
        """
        sessions = list(dict.fromkeys(_session_of(one) for one in self.evidence_ids(evidence)))
        return [one for one in sessions if int(one[1:]) <= until] or sessions

    @cached_property
    def _named(self) -> Mapping[str, list[str]]:
        """The neutral ids behind each of the dataset's own; a turn comes before a session of that id."""
        turns: dict[str, list[str]] = {}
        sessions: dict[str, list[str]] = {}
        for found, ids in ((turns, self.turn_ids), (sessions, self.session_ids)):
            for neutral, own in ids.items():
                found.setdefault(own, []).append(neutral)
        return sessions | turns


def read_context(returned: object, history: History, top_k: int) -> tuple[Context, int]:
    """The context that a memory's ``retrieve`` returned, and how many things it returned (0 for text).

    A list longer than ``top_k`` is cut; text never is.

    Raises
    ------
    BackendError
        For anything that is not text or a sequence of ``Recalled`` with ids that ``ingest`` was given.
    """
    if isinstance(returned, str):
        return Context(returned), 0
    if not isinstance(returned, Sequence) or isinstance(returned, bytes | bytearray | memoryview):
        raise _broken(f"returned {_kind_of(returned)}; return a str or a list of Recalled")
    first = islice(returned, top_k)  # a slice is more than every sequence can do (deque)
    read = [_read_recalled(n, item, history) for n, item in enumerate(first)]
    recalled = tuple(item for item, _ in read)
    text = "\n".join(item.text for item in recalled)
    return Context(text, recalled, sessions=tuple(sessions for _, sessions in read)), len(returned)


def _read_recalled(n: int, item: object, history: History) -> tuple[Recalled, frozenset[str]]:
    """One thing with the dataset's own ids, and the neutral ids of the sessions that it stands in."""
    if not isinstance(item, Recalled):
        raise _broken(
            f"returned a list whose item {n} is {_kind_of(item)}; wrap it: Recalled(text, turn_ids=[...])"
        )
    if not isinstance(item.text, str):
        raise _broken(f"returned a Recalled whose text is {_kind_of(item.text)} (item {n}); text is a str")
    turns = _ordered("turn_ids", item.turn_ids, history.turn_ids, n)
    sessions = _ordered("session_ids", item.session_ids, history.session_ids, n)
    recalled = Recalled(
        item.text,
        tuple([history.turn_ids[one] for one in turns]),
        tuple([history.session_ids[one] for one in sessions]),
        item.date_str,
        _number(item.score),
    )
    return recalled, frozenset([*map(_session_of, turns), *sessions])


def _session_of(neutral: str) -> str:
    """The neutral id of the session of a turn, ``s3`` of ``D3:5``; a session's own stays as it is."""
    return neutral if neutral[0] == "s" else f"s{neutral[1 : neutral.index(':')]}"


def _number(score: object) -> float | None:
    """A score of any numeric type (numpy's too) as a float; None if it is no finite number."""
    try:
        number = float(score)  # type: ignore[arg-type] # whatever a backend put there
    except (TypeError, ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _ordered(field: str, ids: object, known: Mapping[str, str], n: int) -> Sequence[str]:
    """The neutral ids in their order; an id that was never given out is a broken contract."""
    if ids is None or ids is _NO_IDS:
        return ()
    if type(ids) is list:  # what nearly every backend gives, many times a question
        with suppress(TypeError):
            if all(map(known.__contains__, ids)):
                return ids
    if isinstance(ids, str) or not isinstance(ids, Sequence | set | frozenset):
        raise _broken(f"returned a Recalled whose {field} is {_kind_of(ids)} (item {n}); give a list of ids")
    unknown = [one for one in ids if not isinstance(one, str) or one not in known]
    if unknown:
        first = next(iter(known), "D1:1")
        raise _broken(
            f"returned a Recalled with an id that was never ingested: {field} has {shown(unknown[0])} (item {n}); "
            f"give back the ids that ingest() got, such as {first!r}, or none"
        )
    # A set comes in the order of the hash seed; the history's order is the same in every run.
    return ids if isinstance(ids, Sequence) else [one for one in known if one in ids]


def _kind_of(value: object) -> str:
    if value is None:
        return "None"
    if isinstance(value, bytes):
        return "bytes"
    if inspect.isasyncgen(value):
        return "an async generator"
    if inspect.isgenerator(value):
        return "a generator"
    name = type(value).__name__
    return f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"


def _broken(what: str) -> BackendError:
    return BackendError(f"retrieve() {what}", stage="retrieve")
