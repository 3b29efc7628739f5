"""pytest-himga: tells on each pull request whether an LLM agent's memory got worse, and where."""

from pytest_himga.data.schema import Case, EvidenceRef, Message, QAPair, QuestionType, Sample, Session
from pytest_himga.judge.verdict import Judge, Verdict
from pytest_himga.memory.protocol import Context, Memory, Recalled, Usage

__version__ = "0.1.0"

__all__ = [
    "Case",
    "Context",
    "EvidenceRef",
    "Judge",
    "Memory",
    "Message",
    "QAPair",
    "QuestionType",
    "Recalled",
    "Sample",
    "Session",
    "Usage",
    "Verdict",
    "__version__",
]
