"""What a backend raised, as a ``BackendError`` whose sentence and traceback are about the backend alone."""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
import traceback
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_himga import lane
from pytest_himga.errors import BackendError
from pytest_himga.memory import boundary

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Folders and files whose frames say nothing about the backend.
_MACHINERY = {
    *(Path(module).parent for module in (__file__, asyncio.__file__, concurrent.futures.__file__)),
    *(Path(module) for module in (boundary.__file__, lane.__file__, threading.__file__)),
}


def failed(name: str, error: BaseException, stage: str) -> BackendError:
    """A backend's own exception as a ``BackendError`` with its traceback as text."""
    return BackendError(f"{name} raised {_summary(error)}", stage=stage, details=own_traceback(error))


def own_traceback(error: BaseException) -> str:
    """The traceback of ``error`` and of what led to it, without the frames that are ours or Python's machinery."""
    told = traceback.TracebackException.from_exception(error)
    for part in _chain(told):
        part.stack[:] = [frame for frame in part.stack if not _is_machinery(frame.filename)]
    return "".join(told.format())


def _chain(told: traceback.TracebackException) -> Iterator[traceback.TracebackException]:
    """The error, its causes, and the members of its groups; each comes once, cycles are cut already."""
    yield told
    for part in (told.__cause__, told.__context__, *(told.exceptions or ())):
        if part is not None:
            yield from _chain(part)


def _is_machinery(filename: str) -> bool:
    file = Path(filename)
    return file.parent in _MACHINERY or file in _MACHINERY


def _summary(error: BaseException) -> str:
    """The type and the first lines of the message: an error of an HTTP client or a validator is long."""
    told = traceback.TracebackException(type(error), error, None)
    told.__notes__ = []  # they would come last, where the message is looked for
    lines = [line for line in list(told.format_exception_only())[-1].splitlines() if line.strip()]
    if not lines:
        return type(error).__name__
    more = len(lines) > 1 and lines[0].rstrip().endswith(":")
    return " ".join(line.strip() for line in lines[: 2 if more else 1])
