"""Two models by rule, for a scripted server: one reads the memories, the other compares an answer with the gold."""

from __future__ import annotations

import json
import re
from typing import Any

from llm_server import Act, prompt

#: What answers "not mentioned" in so many words that any judge knows it.
REFUSAL = "Not mentioned in the memories."


def block(body: dict[str, Any], label: str) -> str | None:
    """What stands between the tags of this label; None if there are none."""
    found = re.search(rf"<({label}_[0-9a-f]+)>\n(.*?)\n</\1>", prompt(body), re.DOTALL)
    return found[2] if found else None


def is_judge(body: dict[str, Any]) -> bool:
    """Whether a request wants a verdict."""
    return block(body, "answer") is not None


def verdict(value: str, reason: str = "by rule") -> str:
    """A judge's reply."""
    return json.dumps({"reason": reason, "verdict": value})


def reads_and_compares(body: dict[str, Any]) -> str | Act:
    """Answers with all that was recalled, judged by whether the gold's words are in it."""
    if is_judge(body):
        return verdict("CORRECT" if _is_right(body) else "WRONG")
    memories = block(body, "memories") or ""
    told = [line.split("] ", 1)[-1] for line in memories.splitlines() if line.startswith("- [")]
    return f"Let me see.\nANSWER: {' '.join(told) or REFUSAL}"


def _is_right(body: dict[str, Any]) -> bool:
    answer, gold = block(body, "answer") or "", block(body, "gold")
    if gold is None:
        return answer == REFUSAL
    said = set(_words(answer))
    return all(word in said for word in _words(gold))


def _words(text: str) -> list[str]:
    # The garden's twelve tulips are 12 in the gold.
    return re.findall(r"\w+", text.lower().replace("twelve", "12"))
