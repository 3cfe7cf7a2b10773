"""Kill -9 of Spark's driver and of its workers at random moments: the table is always in a state that was meant."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.fixtures.managed_tables import files_below, reachable
from tests.fixtures.processes import PATIENCE
from tests.interop.spark_process import SparkProcess
from tests.spark import managed_kills

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="workers are found through /proc")
_ROOT = Path(__file__).parents[2]


def swept_to_what_is_reachable(warehouse: Path) -> None:
    table = managed_kills.open_table(warehouse)
    table.sweep(older_than="0 seconds", force=True)
    assert files_below(warehouse) == reachable(table)


@pytest.mark.slow
@pytest.mark.parametrize("kills", [100])
def test_a_worker_that_is_killed_costs_a_step_at_most(tmp_path: Path, kills: int) -> None:
    process = SparkProcess(config=managed_kills.SETTINGS, master="local[2,3]")
    try:
        told = process.ask(managed_kills.while_workers_die, str(tmp_path), kills, kills)
    finally:
        process.close()
    assert told["killed"] >= kills, told
    assert told["wrong"] == 0, told
    swept_to_what_is_reachable(tmp_path)


@pytest.mark.slow
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("kills", [50])
def test_a_driver_that_is_killed_leaves_a_committed_state(tmp_path: Path, kills: int) -> None:
    journal, rng = tmp_path / "journal", random.Random(kills)
    warehouse = tmp_path / "lake"
    seen = set()
    for _ in range(kills):
        _kill_after(rng, warehouse, journal)
        ids = managed_kills.ids_of(managed_kills.open_table(warehouse))
        states = [[], *(json.loads(line) for line in journal.read_text().splitlines())]
        assert ids in states
        assert len(ids) == len(set(ids))
        seen.add(len(ids))
    assert len(seen) > 1 or kills < 5
    swept_to_what_is_reachable(warehouse)


def _kill_after(rng: random.Random, warehouse: Path, journal: Path) -> None:
    """Run the program, and kill it and all below it at a random moment of one of its steps."""
    given = [sys.executable, "-m", "tests.spark.managed_kills", str(warehouse), str(journal)]
    program = subprocess.Popen(given, cwd=_ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert program.stdout is not None
    for _ in range(rng.randint(1, 5)):
        assert program.stdout.readline() == "step\n"
    time.sleep(rng.uniform(0, 1.5))
    below = managed_kills.descendants(program.pid)
    for pid in [program.pid, *below]:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
    program.wait(PATIENCE)
    program.stdout.close()
