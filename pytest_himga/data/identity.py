"""Names that stay the same: slugs for ids and paths, and a question's uid.

pytest's ``-v`` and JUnit turn a dot into ``::`` or split on it, a slash would open a folder, and ``::``
ends a file name: so ids are made of ``[A-Za-z0-9_-]`` only.
"""

from __future__ import annotations

import hashlib
import json
import re

#: Longest slug of a dataset or sample; a longer name keeps its head and gets 6 hex of its hash, so
#: that two long names do not become one.
LONGEST_NAME = 60
QUESTION_SLUG = 40


def slug_of_name(name: str) -> str:
    """``name`` as it stands in ids and paths: ``[A-Za-z0-9_-]``, at most 60 characters, never empty."""
    slug = re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-")
    if not slug:
        return f"x-{_hex(name)}"
    if len(slug) > LONGEST_NAME:
        return f"{slug[: LONGEST_NAME - 7]}-{_hex(name)}"
    return slug


def uid_of(question: str, raw_type: object, twin: int) -> str:
    """A question's stable identity inside its sample.

    First 40 characters of an ``[a-z0-9-]`` slug of the question, a dash, 6 hex of sha256 over the JSON
    ``[raw type id, question as in the file, which twin it is]``. It does not move when questions are
    added or reordered, labels switched or a gold corrected. ``twin`` counts from 0 the questions of
    one sample that share text and raw type.
    """
    slug = re.sub(r"[^a-z0-9]+", "-", question.lower()).strip("-")[:QUESTION_SLUG] or "q"
    return f"{slug}-{_hex(json.dumps([raw_type, question, twin]))}"


def order_of(sample: str, uid: str) -> str:
    """The sort key that subsets go by: a hash of the question's identity, unlike any file's order."""
    return hashlib.sha256(f"{sample}/{uid}".encode("utf-8", "backslashreplace")).hexdigest()


def _hex(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:6]
