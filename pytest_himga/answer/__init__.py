"""CONTEXT->ANSWER: what an answerer is shown, the profiles of prompts, and the answerers."""

from pytest_himga.answer.request import AnswerRequest, RecalledMemory

__all__ = ["AnswerRequest", "RecalledMemory"]
