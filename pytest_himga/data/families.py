"""The formats that can be read, in the data room: one row for each, in the order in which they are tried."""

from __future__ import annotations

from pytest_himga.data.locomo import LOCOMO
from pytest_himga.data.longmemeval import LONGMEMEVAL
from pytest_himga.data.memorystress.reader import MEMORYSTRESS

FAMILIES = {family.name: family for family in (LOCOMO, LONGMEMEVAL, MEMORYSTRESS)}
