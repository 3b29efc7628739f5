"""What a person reads about one question that went wrong: at most 25 lines, and none of pytest's insides.

The first line says it all, for the short summary; below stand what was asked and expected, what was
answered and why that is the verdict, which evidence the memory brought back, and the beginning of what it
brought. Whatever the texts hold, they are cleaned, and no text can push another one out.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_himga.report.text import clean, labelled, one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_himga.score.record import Record

#: Most lines of one failure: what fits on a laptop's screen beside pytest's own.
MOST_LINES = 25
#: Columns, where the caller knows no better; and the fewest that a line with labels can do with.
WIDTH = 100
NARROWEST = 40

#: Most lines of each part. All of them together leave 7 lines to what was retrieved.
_QUESTION, _GOLD, _ANSWER, _VERDICT, _EVIDENCE = 2, 2, 3, 3, 5
#: With a traceback to show, evidence matters less.
_EVIDENCE_BESIDE_TRACEBACK = 3
#: Where the text beside a label starts, as in the summary.
_COLUMN = 12
_INDENT = 2
#: Characters of a long text that are looked at: many times what fits.
_FAR = 20_000
#: Below this width a turn's own words are worth more than its date.
_ROOM_FOR_DATE = 80
_BLANK = "(blank)"
_ABSTENTION = {
    "held": "abstained",
    "fell": "fell for the trap",
    "other": "neither abstained nor fell for the trap",
}


@dataclass(frozen=True)
class EvidenceTurn:
    """One evidence turn as it is shown: whether the context holds it, and the raw date of its session."""

    ref: str
    speaker: str
    text: str
    date: str | None
    found: bool


def headline(record: Record, width: int = WIDTH) -> str:
    """Say in one line of at most ``width`` columns what the verdict is and why.

    ``wrong (evidence): 1 of 2 evidence turns in the context``, ``unscored at retrieve: RuntimeError: boom``.
    """
    if record.verdict == "unscored" and record.stage:
        what = f"unscored at {record.stage}"
    else:
        what = f"{record.verdict} ({record.judge})" if record.judge else record.verdict
    why = record.reason if record.reason.strip() else _ABSTENTION.get(record.abstention or "", "")
    if record.verdict == "wrong" and record.why_apart:
        why = f"{why}; {record.why_apart}" if why else record.why_apart
    return one_line(f"{what}: {why}" if why else what, max(width, NARROWEST))


def failure_text(
    record: Record,
    *,
    question_date: str | None,
    evidence_turns: Sequence[EvidenceTurn],
    excerpt: str,
    details: str = "",
    width: int = WIDTH,
) -> str:
    r"""Tell of a wrong, missed or unscored question in at most 25 lines of at most ``width`` columns.

    ``question_date`` is the date at which it was asked, if one is known; ``excerpt`` the beginning of the
    context (or all of it); ``details`` the backend's own traceback, of which the end is shown instead of
    the context where the question is unscored. Lines are parted by ``\n``; the last has none.
    """
    width = max(width, NARROWEST)
    traceback = details if record.verdict == "unscored" and details.strip() else ""
    lines = [
        headline(record, width),
        *_field("question", record.question, _QUESTION, width),
        *_field("type", record.type, 1, width),
        *(_field("date", question_date, 1, width) if question_date else []),
        *_expected(record, width),
        *_field("answer", _answer(record), _ANSWER, width),
        *_field("verdict", _verdict(record), _VERDICT, width),
        *_evidence(record, evidence_turns, _EVIDENCE_BESIDE_TRACEBACK if traceback else _EVIDENCE, width),
    ]
    room = MOST_LINES - len(lines)
    lines += _traceback(traceback, room, width) if traceback else _retrieved(record, excerpt, room, width)
    return "\n".join(lines)


def _field(label: str, text: str, most: int, width: int) -> list[str]:
    rows = _rows(text, width - _COLUMN, most)
    return [f"{'' if n else label:<{_COLUMN}}{row}" for n, row in enumerate(rows)]


def _rows(text: str, room: int, most: int) -> list[str]:
    """Put ``text`` into one to ``most`` lines of at most ``room`` columns, its own line breaks dropped."""
    flat = one_line(text, room * most) or _BLANK
    if len(flat) <= room:  # the usual case; wrapping costs ten times as much
        return [flat]
    return labelled("", flat, width=room, column=0, most=most)


def _expected(record: Record, width: int) -> list[str]:
    if record.expects_abstention:
        trap = f"; trap: {record.trap}" if record.trap else ""
        return _field("expects", f"no answer (unanswerable){trap}", _GOLD, width)
    return _field("gold", "(none)" if record.gold is None else record.gold, _GOLD, width)


def _answer(record: Record) -> str:
    return "(nothing produced one)" if record.answer is None else record.answer


def _verdict(record: Record) -> str:
    says = f"{record.verdict} by {record.judge}" if record.judge else record.verdict
    if record.verdict == "unscored" and record.stage:
        says = f"unscored at {record.stage}"
    notes = [says]
    if record.score is not None:
        notes.append(f"score {record.score:.3g}")
    if (
        len(record.votes) > 1 and "votes" not in record.reason.partition(":")[0]
    ):  # our LLM's reasons tell them
        notes.append("votes: " + " and ".join(f"{n} {vote}" for vote, n in Counter(record.votes).items()))
    if record.abstention in _ABSTENTION:
        notes.append(_ABSTENTION[record.abstention])
    if record.outcome == "missed":
        notes.append(record.why_apart or "tolerated by the gate")
    return ", ".join(notes) + (f": {record.reason}" if record.reason.strip() else "")


def _evidence(record: Record, turns: Sequence[EvidenceTurn], most: int, width: int) -> list[str]:
    # A memory that was never asked has neither found a turn nor missed one.
    known = record.verdict != "unscored" or record.context_chars is not None
    rest: Sequence[EvidenceTurn] = ()
    if len(turns) > most:
        missing_first = sorted(turns, key=lambda turn: turn.found)
        turns, rest = missing_first[: most - 1], missing_first[most - 1 :]
    each = 1 if rest else max(most // max(len(turns), 1), 1)
    rows = [row for turn in turns for row in _turn(turn, known, each, width)]
    if rest:
        found = f", {sum(turn.found for turn in rest)} found" if known else ""
        rows.append(f"+ {len(rest)} more{found}")
    return [f"{'' if n else 'evidence':<{_COLUMN}}{row}" for n, row in enumerate(rows)]


def _turn(turn: EvidenceTurn, known: bool, most: int, width: int) -> list[str]:
    mark = ("found      " if turn.found else "not found  ") if known else ""
    room = width - _COLUMN - len(mark)
    date = f" ({one_line(turn.date, 30)})" if turn.date and width >= _ROOM_FOR_DATE else ""
    who = f"{one_line(turn.ref, 24)}{date} {one_line(turn.speaker, 24)}"
    first, *rest = _rows(f"{who}: {turn.text}", room, most)
    return [mark + first, *(" " * len(mark) + row for row in rest)]


def _retrieved(record: Record, excerpt: str, room: int, width: int) -> list[str]:
    """Show the first lines of the context; where they are few, each may take several lines here."""
    if not excerpt and not record.context_chars:
        never_asked = record.verdict == "unscored" and record.context_chars is None
        return _field("retrieved", "(not measured)" if never_asked else "nothing", 1, width)
    total = len(excerpt) if record.context_chars is None else record.context_chars
    total_said = f"{total:,} character{'' if total == 1 else 's'}"
    beginning = excerpt[:_FAR]
    lines = [line for line in clean(beginning).split("\n") if line.strip()]
    if not lines:
        return _field(
            "retrieved", f"{total_said}, {'blank' if total <= len(beginning) else 'not shown'}", 1, width
        )
    room -= 1  # the label's line
    more = total > len(beginning) or len(lines) > room
    if more:
        room -= 1
    each = max(room // len(lines), 1)
    rows = [row for line in lines[:room] for row in _rows(line, width - _INDENT, each)]
    if more and (len(lines) > 1 or not rows[-1].endswith("...")):
        rows.append("...")
    return [f"{'retrieved':<{_COLUMN}}{total_said}:", *(" " * _INDENT + row for row in rows)]


def _traceback(details: str, room: int, width: int) -> list[str]:
    """Show the end of a traceback, which is where the cause stands; indentation is kept."""
    end = details[-_FAR:]
    lines = [line.rstrip() for line in clean(end).expandtabs(4).split("\n") if line.strip()]
    room -= 1  # the label's line
    whole = len(end) == len(details) and len(lines) <= room
    rows = [" " * _INDENT + _without_middle(line, width - _INDENT) for line in lines[-room:]]
    return [f"{'traceback':<{_COLUMN}}{'' if whole else 'its last lines:'}".rstrip(), *rows]


def _without_middle(line: str, width: int) -> str:
    """Cut a line of a traceback where it says least: the middle of a path, not the line number."""
    if len(line) <= width:
        return line
    head = (width - 3) // 3
    return f"{line[:head]}...{line[len(line) - (width - 3 - head) :]}"
