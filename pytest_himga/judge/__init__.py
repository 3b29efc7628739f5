"""ANSWER->VERDICT: what a verdict is, and the deterministic judges."""

from pytest_himga.judge.verdict import Judge, Verdict

__all__ = ["Judge", "Verdict"]
