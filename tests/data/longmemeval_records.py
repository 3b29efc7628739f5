"""Records in LongMemEval's format, made up for these tests, and how they are read there."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_himga.data.family import RawRecord, ReadOptions
from pytest_himga.data.longmemeval import read

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_himga.data.schema import Sample

Record = dict[str, Any]
FILE = Path("histories.json")


def turn(role: str, content: str, **marks: object) -> Record:
    """One turn; ``has_answer=True`` marks it as evidence."""
    return {"role": role, "content": content, **marks}


def record(*sessions: tuple[str, str | None, list[Record]], **fields: object) -> Record:
    """One record of sessions given as (id, date, turns)."""
    ids, dates, turns = ([session[part] for session in sessions] for part in range(3))
    return {
        "question_id": "5eed0001",
        "question_type": "single-session-user",
        "question": "What did I name the sourdough starter?",
        "answer": "Gustav",
        "question_date": "2023/06/09 (Fri) 12:00",
        "haystack_dates": dates,
        "haystack_session_ids": ids,
        "haystack_sessions": turns,
        "answer_session_ids": [name for name in ids if name.startswith("answer_")],
        **fields,
    }


def bakery(**fields: object) -> Record:
    """A good record: three sessions in the order of time, the evidence is one turn of the second."""
    return record(
        (
            "9c1f_2",
            "2023/06/02 (Fri) 08:15",
            [turn("user", "How long does rye need?"), turn("assistant", "About an hour.")],
        ),
        (
            "answer_77aa_1",
            "2023/06/03 (Sat) 21:40",
            [
                turn("user", "My sourdough starter is called Gustav now.", has_answer=True),
                turn("assistant", "A fine name for a starter.", has_answer=False),
            ],
        ),
        (
            "sharegpt_x_0",
            "2023/06/05 (Mon) 07:00",
            [turn("assistant", "Good morning!"), turn("user", "Plan my week.")],
        ),
        **fields,
    )


def read_one(data: Record, order: str = "time", number: int = 0) -> tuple[Sample, list[str]]:
    """The sample of a record, and what was said of it, without the file's name."""
    raw = RawRecord(data, number, FILE)
    sample = read(raw, ReadOptions(session_order=order))
    return sample, [text.removeprefix(f"{FILE}: sample ") for text in raw.warnings]


def put(data: Any, path: Sequence[str | int], value: object) -> None:
    """``data[a][b] = value`` for the path (a, b); ``...`` takes the field away."""
    *way, last = path
    for step in way:
        data = data[step]
    if value is ...:
        del data[last]
    else:
        data[last] = value
