"""A reply's body, in the llm room: read strictly, and its text freed of what the model thought aloud."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pytest_himga.llm.fault import Fault, body_fault
from pytest_himga.llm.prompt import sound
from pytest_himga.llm.redact import one_line
from pytest_himga.memory.protocol import Usage

if TYPE_CHECKING:
    from pytest_himga.llm.fault import Whom

#: How much of a reply a sentence quotes.
_QUOTED = 80
_CUT_BY = frozenset({"length", "max_tokens"})
_COUNTS = ("prompt_tokens", "completion_tokens")

_NAMES = r"(?:\w+:)?(?:think(?:ing)?|thoughts?|reason(?:ing)?|reflection|scratchpad)"
#: What opens and what closes a block of reasoning, by the models' own customs: XML-like tags of several
#: names, Mistral's brackets, Kimi's triangles, and the channels of gpt-oss where a server passes them on.
_TAG = re.compile(
    rf"(?P<opens><\s*{_NAMES}(?:\s[^<>]*)?>|\[(?-i:THINK|THINKING|REASONING)\]|\u25c1think\u25b7"
    r"|<\|begin_of_thought\|>|<\|channel\|>\s*(?:analysis|commentary)\b)"
    rf"|<\s*/\s*{_NAMES}\s*>|\[/(?-i:THINK|THINKING|REASONING)\]|\u25c1/think\u25b7"
    r"|<\|end_of_thought\|>|<\|channel\|>\s*final\b[^<]*(?:<\|constrain\|>[^<]*)?<\|message\|>",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Completion:
    """A completion as it came. ``text`` is without reasoning, and may be empty.

    ``cut`` says that the token limit ended it; ``thought`` that there was reasoning and nothing else.
    """

    text: str
    cut: bool
    thought: bool
    spent: Usage


def without_reasoning(text: str) -> str:
    """``text`` without its blocks of reasoning, and without white space around it.

    A block that is never closed takes everything from its tag on with it, and a closing tag that nothing
    opened everything before it (some chat templates open the block themselves). A text that is one JSON
    object is left as it is: what looks like a tag in there is part of a string.
    """
    text = text.strip()
    if _TAG.search(text) is None or _is_object(text):
        return text
    kept: list[str] = []
    depth = start = 0
    for tag in _TAG.finditer(text):
        if tag["opens"]:
            if depth == 0:
                kept.append(text[start : tag.start()])
            depth += 1
        elif depth == 0:
            kept.clear()
        else:
            depth -= 1
        start = tag.end()
    return "".join([*kept, text[start:] if depth == 0 else ""]).strip()


def _is_object(text: str) -> bool:
    if not text.startswith("{"):
        return False
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def quoted(text: str) -> str:
    """The start of a model's text, as a sentence shows it."""
    return f'"{one_line(text, _QUOTED)}"'


def read_body(content: bytes, whom: Whom) -> Completion | Fault:
    """What stands in the body of an answer with status 200."""
    try:
        body = json.loads(content)
    except (ValueError, RecursionError):
        start = quoted(whom.redact.sentence(content[:2000].decode("utf-8", "replace")))
        return _strange(whom, f"what is no JSON: {start}" if content.strip() else "an empty body")
    if not isinstance(body, dict):
        return _strange(whom, f"what is no completion: {quoted(whom.redact.sentence(json.dumps(body)))}")
    choices = body.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    if error := body.get("error") or (isinstance(first, dict) and first.get("error")):
        return body_fault(whom, error)
    if first is None:
        return _strange(whom, "a completion without choices")
    message = first.get("message") if isinstance(first, dict) else None
    if not isinstance(message, dict):
        return _strange(whom, "a choice without a message")
    return _read_choice(message, first.get("finish_reason"), _spent(body.get("usage")), whom)


def _strange(whom: Whom, what: str) -> Fault:
    return Fault(f"{whom.server} answered 200 with {what}")


def _read_choice(message: dict[str, Any], finish: Any, spent: Usage, whom: Whom) -> Completion | Fault:
    content = _content(message.get("content"))
    if content is None:
        return replace(_strange(whom, "a message whose content is no text"), spent=spent)
    if refusal := message.get("refusal"):
        words = quoted(whom.redact.sentence(str(refusal)))
        return Fault(f"{whom.model} refused: {words}", spent=spent)
    if finish == "content_filter":
        return Fault(f"a content filter stopped the reply of {whom.model}", spent=spent)
    if finish == "error":
        return Fault(f"{whom.server} ended the reply with an error", passing=True, outage=True, spent=spent)
    content = sound(whom.redact.reply(content))
    text = without_reasoning(content)
    return Completion(text, finish in _CUT_BY, thought=bool(content.strip()) and not text, spent=spent)


def _content(content: Any) -> str | None:
    """The text of a message, which may come in parts; None if it is something else."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return None
    texts = [part if isinstance(part, str) else _text_of(part) for part in content]
    return None if None in texts else "".join(text or "" for text in texts)


def _text_of(part: Any) -> str | None:
    """The text of a part; of parts of another kind (reasoning, say) there is none to read."""
    if not isinstance(part, dict):
        return None
    if part.get("type", "text") not in ("text", "output_text"):
        return ""
    text = part.get("text")
    return text if isinstance(text, str) else None


def _spent(usage: Any) -> Usage:
    """One call with its tokens; untold unless both counts are there."""
    counts = [usage.get(name) for name in _COUNTS] if isinstance(usage, dict) else [None]
    told = [count for count in counts if type(count) is int and count >= 0]
    return Usage(1, *told) if len(told) == len(_COUNTS) else Usage(1, untold=1)
