"""Kill -9 of Spark's driver and of its workers at random moments: the table is always in a state that was meant."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

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
@pytest.mark.parametrize("mode", managed_kills.MODES)
@pytest.mark.parametrize("kills", [35])
def test_a_worker_that_is_killed_costs_a_step_at_most(tmp_path: Path, kills: int, mode: str) -> None:
    process, counts = SparkProcess(config=managed_kills.SETTINGS, master="local[2,3]"), Counter[str]()
    try:
        for seed in range(kills):
            counts.update(process.ask(managed_kills.one_round, str(tmp_path), mode, seed))
            if _in_changes(counts) >= kills:
                break
    finally:
        process.close()
    print(f"{mode}: workers killed by step, steps that failed and states that are wrong: {dict(counts)}")
    assert _in_changes(counts) >= kills, counts
    assert counts["wrong"] == 0, counts
    swept_to_what_is_reachable(tmp_path)


def _in_changes(counts: Counter[str]) -> int:
    return sum(counts[kind] for kind in managed_kills.CHANGES)


@pytest.mark.slow
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("mode", managed_kills.MODES)
@pytest.mark.parametrize("kills", [15])
def test_a_driver_that_is_killed_leaves_a_committed_state(tmp_path: Path, kills: int, mode: str) -> None:
    rng = random.Random(f"{kills} {mode}")
    warehouse, journal = tmp_path / "lake", tmp_path / "journal"
    hits: Counter[str] = Counter()
    begin = tries = taken_place = 0
    while hits.total() < kills and tries < 4 * kills:
        tries += 1
        killed = _kill_in_a_change(rng, warehouse, journal, mode, begin)
        begin = managed_kills.STEPS.index(killed.kind) + rng.randint(0, 3)
        before, after = json.loads(journal.read_text().splitlines()[-1])
        state = sorted(map(list, managed_kills.state_of(managed_kills.open_table(warehouse)).items()))
        assert state in (before, after), f"try {tries} during {killed}"
        if killed.kind in managed_kills.CHANGES and not killed.is_done:
            hits[killed.kind] += 1
            taken_place += state == after
    print(f"{mode}: {hits.total()} kills of drivers in {tries} tries, {taken_place} after the commit: {dict(hits)}")
    assert hits.total() == kills
    assert len(hits) > 1 or kills < 5
    swept_to_what_is_reachable(warehouse)


class Killed(NamedTuple):
    """The step during or after which a program was killed."""

    kind: str
    is_done: bool


def _kill_in_a_change(rng: random.Random, warehouse: Path, journal: Path, mode: str, begin: int) -> Killed:
    """Run the program, and kill it and all below it at a random moment of a merge or an update, or just after it."""
    given = [sys.executable, "-m", "tests.spark.managed_kills", *map(str, (warehouse, journal, mode, begin))]
    program = subprocess.Popen(given, cwd=_ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert program.stdout is not None
    steps_left = rng.randint(1, 3)
    while steps_left:
        kind = program.stdout.readline().strip()
        assert kind, "the program ended by itself"
        steps_left -= kind in managed_kills.CHANGES
    time.sleep(rng.uniform(0, 1.2))
    below = managed_kills.descendants(program.pid)
    for pid in [program.pid, *below]:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
    program.wait(PATIENCE)
    after = program.stdout.read().split("\n")
    program.stdout.close()
    steps = [line for line in after if line in managed_kills.STEPS]
    return Killed(steps[-1] if steps else kind, after[-2:] == ["done", ""])
