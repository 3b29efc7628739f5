"""What pytest shows of a question that went wrong: our text, in the shape that pytest's reports take."""

from __future__ import annotations

from copy import copy
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest

from pytest_himga.errors import DatasetError, HimgaError
from pytest_himga.report.failure import EvidenceTurn, failure_text
from pytest_himga.report.text import one_line

if TYPE_CHECKING:
    from collections.abc import Collection

    from pytest_himga.data.schema import Case
    from pytest_himga.engine.recording import Result

#: Characters of a reason that pytest shows on a line of its own (-rs).
LONGEST_REASON = 200


def not_applicable(result: Result) -> str:
    """Why a judge does not apply to a question, in one line."""
    return one_line(f"n/a: {result.record.reason}", LONGEST_REASON)


def failure_repr(text: str, where: str, *, line_only: bool = False) -> Any:
    """``text`` as pytest's representation of an exception; its first line is the short summary's message.

    ``line_only`` leaves the rest out: with ``--tb=line`` pytest prints ``where`` and that line by itself.
    Only pytest's own classes survive the way from an xdist worker as more than a string, and a plain
    string would be repeated whole in the short summary.
    """
    representation = copy(_representation())
    representation.reprtraceback = copy(representation.reprtraceback)
    entry = copy(representation.reprtraceback.reprentries[0])
    entry.lines = [] if line_only else [f"{text}\n"]
    representation.reprtraceback.reprentries = [entry]
    representation.reprcrash = copy(representation.reprcrash)
    representation.reprcrash.path, representation.reprcrash.lineno = where, 0
    representation.reprcrash.message = text.split("\n", 1)[0]
    return representation


@cache
def _representation() -> Any:
    """Made once: working out the place of a crash takes longer than asking a question."""
    try:
        raise HimgaError("template")
    except HimgaError as error:
        return pytest.ExceptionInfo.from_exception(error).getrepr(style="native")


def describe(case: Case, result: Result) -> str:
    """The failure text of a question; of one whose sample cannot be read, what is known without it."""
    covered, context = result.covered, result.context
    found = set(covered.found_refs) if covered else set()
    try:
        date, turns = case.date_str, _evidence_turns(case, found)
    except DatasetError:
        date, turns = None, []
    return failure_text(
        result.record,
        question_date=date,
        evidence_turns=turns,
        excerpt=context.text if context else "",
        details=result.details,
    )


def _evidence_turns(case: Case, found: Collection[str]) -> list[EvidenceTurn]:
    """The turns that the evidence names, in its order; a session shows with its first turn."""
    evidence = case.question.evidence
    wanted = dict.fromkeys([*(group[0] for group in evidence.groups), *evidence.turn_ids])
    turns: dict[str, EvidenceTurn] = {}
    for s, session in enumerate(case.sample.sessions, start=1):
        for t, message in enumerate(session.messages, start=1):
            for ref in (message.turn_id or f"D{s}:{t}", session.session_id):
                if ref in wanted and ref not in turns:
                    turns[ref] = EvidenceTurn(
                        ref, message.role, message.content, session.date_str, ref in found
                    )
    return [turns[ref] for ref in wanted if ref in turns]
