"""The keys of what himga keeps on pytest's config and items, and of what xdist's processes tell each other.

Imported by every pytest run: stays light.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pytest_himga.engine.recording import Result
    from pytest_himga.run import Run

#: The himga run of this process; not there where none was asked for.
RUN: pytest.StashKey[Run] = pytest.StashKey()
#: The result that an item brought and its report has not carried away yet.
RESULT: pytest.StashKey[Result] = pytest.StashKey()
#: Set on a user's test that has run before: a rerun must ask again.
ASKED: pytest.StashKey[bool] = pytest.StashKey()
#: The item that comes after one that is being torn down, None if there is none.
NEXT: pytest.StashKey[pytest.Item | None] = pytest.StashKey()
#: The fixture that runs a user's test once for each question.
CASE_FIXTURE = "himga_case"
#: Under this key the controller sends each xdist worker plain data (in its ``workerinput``).
CHANNEL = "himga"
#: Under this key a worker tells the controller (in its ``workeroutput``) why it could not start.
USAGE_ERROR = "himga_usage_error"
