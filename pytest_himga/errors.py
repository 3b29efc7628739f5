"""Every error that himga raises on purpose, in one tree.

::

    HimgaError
    ├── SettingsError        an option, environment variable or ini value is wrong
    ├── DatasetError         a dataset cannot be found or read (also a ValueError)
    │   └── UnknownDataset   no dataset of that name
    ├── SelectionError       a filter names nothing, or leaves no question
    ├── BackendError         the memory under test broke its contract, raised or hung
    │   └── BackendTimeout   ... did not come back in time
    ├── LLMError             an answer or a verdict could not be got from a model's server
    └── NotApplicable        the memory under test cannot be asked this question, by its own design

``DatasetWarning`` is what a loader says about a defect that it could mend.

The first three end a run before any work, as one sentence (``pytest.UsageError``; the translation
happens in ``plugin.py``). A ``BackendError`` or an ``LLMError`` never ends a run: it makes questions
*unscored*, and ``NotApplicable`` makes one n/a.
"""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytest_himga.memory.protocol import Usage


class HimgaError(Exception):
    """Base of all; its text is a sentence that says what is wrong, where, and what to do."""


class SettingsError(HimgaError):
    """An option, environment variable or ini value that cannot be used."""


class DatasetError(HimgaError, ValueError):
    """A dataset that cannot be found or read; names file, sample, field and value."""


class UnknownDataset(DatasetError):
    """No dataset has this name, and no file or folder either."""


class SelectionError(HimgaError):
    """A filter that names nothing that exists, or that leaves no question."""


class BackendError(HimgaError):
    """The memory under test raised, hung or returned something that is not in its contract.

    ``stage`` is where it happened (``ingest``, ``retrieve``, ``answer`` or ``judge``; "" where it was not
    the memory: the sample could not be read); ``details`` is the backend's own traceback, without frames
    of pytest, asyncio or himga ("" if there is none).
    """

    def __init__(self, message: str, *, stage: str = "ingest", details: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.stage = stage
        self.details = details


class BackendTimeout(BackendError):
    """A call that did not come back in time; the memory cannot be used any further."""


class LLMError(HimgaError):
    """A model's server failed, refused, or replied with what cannot be used; the text is free of keys.

    ``usage`` is what the failed attempts have cost.
    """

    def __init__(self, message: str, *, usage: Usage | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.usage = usage


class NotApplicable(HimgaError):
    """A question that this memory cannot be asked, by its own design; ``reason`` is the text."""

    @property
    def reason(self) -> str:
        """What the memory lacks."""
        return str(self)


class DatasetWarning(UserWarning):
    """A defect in a dataset file that the loader could mend, with file, sample and value."""


def nearest(word: str, known: Iterable[str], *, most: int = 3) -> str:
    """The end of a sentence about an unknown ``word``: the nearest right names, or all of them.

    >>> nearest("temporl", ["temporal", "multi_hop"])
    'did you mean temporal?'
    """
    names = sorted(set(known))
    close = difflib.get_close_matches(word, names, n=most, cutoff=0.6)
    if close:
        return f"did you mean {' or '.join(close)}?"
    if not names:
        return "there is none"
    listed = ", ".join(names[:12]) + (", ..." if len(names) > 12 else "")
    return f"known: {listed}"
