"""An empty lake, and where a tree of files that is not its own may lie."""

from __future__ import annotations

from pathlib import Path

import pytest

import penstock


@pytest.fixture
def lake(tmp_path: Path) -> penstock.Lake:
    return penstock.connect(tmp_path / "lake")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return tmp_path / "tree"
