"""A shredded table in both modes, for all tests of this folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock import Shred
from penstock.lake.managed_table import ManagedTable
from tests.fixtures.shredding import (
    shredded_table,
)

MODES = ["move", "mirror"]


@pytest.fixture(params=MODES)
def mode(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def table(tmp_path: Path, mode: str) -> ManagedTable:
    return shredded_table(tmp_path, {"headers": Shred("a", "b", mode=mode)})
