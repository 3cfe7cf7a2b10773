"""The demo, small: it runs as a program, its answers agree, and what it prints was measured."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.fixtures.processes import PENSTOCK


@pytest.mark.slow
def test_the_demo_runs_and_tells_what_it_measured(tmp_path: Path) -> None:
    home = tmp_path / "demo"
    given = [*PENSTOCK, "demo", "--rows", "1500", "--folder", str(home), "--json"]
    done = subprocess.run(given, capture_output=True, text=True, timeout=300, check=True)
    told = json.loads(done.stdout)
    alone, layout, plain, ours, compacted = told["tables"]
    assert alone["answers"] == layout["answers"] == plain["answers"] == ours["answers"] == compacted["answers"]
    assert all(answer for answer in alone["answers"])
    assert layout["files"] == alone["files"] > ours["files"] > compacted["files"]
    assert layout["files_opened"] <= alone["files_opened"]
    assert all(each["bytes_read"] > 0 for each in told["tables"])
    stream = told["stream"]
    assert 0 < stream["rows_that_reached_it"] < stream["rows_that_came"]
    assert Path(told["report"]).read_text().lower().startswith("<!doctype html>")
    assert home in Path(told["report"]).parents
