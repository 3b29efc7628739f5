"""What pytest shows of a question that went wrong: our text, in the shape that pytest's reports take."""

from __future__ import annotations

from copy import copy
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest

from pytest_himga.errors import HimgaError
from pytest_himga.report.failure import EvidenceTurn, failure_text
from pytest_himga.report.text import one_line

if TYPE_CHECKING:
    from pytest_himga.data.schema import Case
    from pytest_himga.engine.engine import Result

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
    """The failure text of a question."""
    covered, context = result.covered, result.context
    found = set(covered.found_refs) if covered else set()
    wanted = dict.fromkeys(case.question.evidence.turn_ids)
    turns = [
        EvidenceTurn(
            message.turn_id, message.role, message.content, session.date_str, message.turn_id in found
        )
        for session in case.sample.sessions
        for message in session.messages
        if message.turn_id is not None and message.turn_id in wanted
    ]
    order = list(wanted)
    turns.sort(key=lambda turn: order.index(turn.ref))
    return failure_text(
        result.record,
        question_date=case.date_str,
        evidence_turns=turns,
        excerpt=context.text if context else "",
        details=result.details,
    )
