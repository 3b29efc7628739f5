"""What himga keeps on pytest's config and items, under typed keys. Imported by every pytest run: stays light."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pytest_himga.engine.engine import Result
    from pytest_himga.run import Run

#: The himga run of this process; not there where none was asked for.
RUN: pytest.StashKey[Run] = pytest.StashKey()
#: The result that an item brought and its report has not carried away yet.
RESULT: pytest.StashKey[Result] = pytest.StashKey()
#: Set on a user's test that has run before: a rerun must ask again.
ASKED: pytest.StashKey[bool] = pytest.StashKey()
#: The fixture that runs a user's test once for each question.
CASE_FIXTURE = "himga_case"
