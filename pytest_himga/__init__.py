"""pytest-himga: tells on each pull request whether an LLM agent's memory got worse, and where."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
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

if not TYPE_CHECKING:  # a type checker would take every name for granted

    def __getattr__(name: str) -> object:
        """Import a public name when it is first asked for.

        pytest imports this package in every project that has it installed; the rooms that the names live in
        would make up three quarters of that time.
        """
        if name in __all__:
            from importlib import import_module

            for room in ("data.schema", "judge.verdict", "memory.protocol"):
                module = import_module(f"{__name__}.{room}")
                if hasattr(module, name):
                    return getattr(module, name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
