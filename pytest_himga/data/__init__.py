"""What is asked: datasets, their samples and questions. Works without pytest."""

from __future__ import annotations

from pytest_himga.data.dataset import Dataset
from pytest_himga.data.dates import parse_date
from pytest_himga.data.locomo import load_locomo
from pytest_himga.data.longmemeval import load_longmemeval
from pytest_himga.data.memorystress.reader import load_memorystress
from pytest_himga.data.opening import load_dataset, open_dataset, split_names
from pytest_himga.data.schema import Case, EvidenceRef, Message, QAPair, QuestionType, Sample, Session
from pytest_himga.data.selection import select

__all__ = [
    "Case",
    "Dataset",
    "EvidenceRef",
    "Message",
    "QAPair",
    "QuestionType",
    "Sample",
    "Session",
    "load_dataset",
    "load_locomo",
    "load_longmemeval",
    "load_memorystress",
    "open_dataset",
    "parse_date",
    "select",
    "split_names",
]
