"""What is asked: datasets, their samples and questions. Works without pytest."""

from __future__ import annotations

from pytest_himga.data.catalog import load_dataset, open_dataset, split_names
from pytest_himga.data.dataset import Dataset
from pytest_himga.data.dates import parse_date
from pytest_himga.data.locomo import load_locomo
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
    "open_dataset",
    "parse_date",
    "select",
    "split_names",
]
