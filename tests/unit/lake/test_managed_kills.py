"""A writer that is killed at any moment leaves a committed state, and files that sweep removes."""

from __future__ import annotations

import datetime as dt
import json
import multiprocessing
import time
from pathlib import Path
from random import Random

import pytest

from penstock import Coalesce
from tests.fixtures.managed_tables import files_below, managed_table, reachable, reopened, snapshot_ids
from tests.fixtures.managed_writers import Row, write_until_killed
from tests.fixtures.processes import PATIENCE

# Imported once, so that a writer starts in a moment.
PRELOADED = ["tests.fixtures.managed_writers", "pyiceberg.catalog.sql", "sqlalchemy.dialects.sqlite", "pandas"]
ROOT = Path(__file__).parents[3]


def state_of(root: Path) -> list[Row]:
    found = reopened(root).arrow()
    return sorted(zip(found["id"].to_pylist(), found["app"].to_pylist(), strict=True))


def allowed(journal: Path) -> tuple[list[list[Row]], str | None]:
    """The states that the journal leaves open, and what was going on."""
    lines = [json.loads(line) for line in journal.read_text().splitlines()]
    told = [[tuple(row) for row in line.get("is", line.get("becomes"))] for line in lines]
    return (told[-2:], lines[-1]["by"]) if "becomes" in lines[-1] else (told[-1:], None)


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
@pytest.mark.parametrize("kills", [6, pytest.param(50, marks=pytest.mark.slow)])
def test_after_kills_the_table_has_always_had_a_committed_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kills: int, mode: str
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    processes = multiprocessing.get_context("forkserver")
    processes.set_forkserver_preload(PRELOADED)
    lake = tmp_path / "lake"
    table = managed_table(lake, "id bigint, app string", ["app"], coalesce=Coalesce("app", values=["a", "b", "c"]))
    table.set_properties({f"write.{command}.mode": mode for command in ("delete", "update", "merge")})
    rng = Random(mode)
    interrupted: dict[str, int] = {}
    taken_place = 0
    for seed in range(1, 4 * kills):
        if sum(interrupted.values()) == kills:
            break
        journal = tmp_path / f"journal {seed}"
        here, there = processes.Pipe(duplex=False)
        process = processes.Process(target=write_until_killed, args=(str(lake), str(journal), seed, there), daemon=True)
        process.start()
        there.close()
        assert here.poll(PATIENCE), "the writer did not start"
        assert here.recv() == "ready"
        time.sleep(rng.uniform(0, 0.4))
        process.kill()
        process.join(PATIENCE)
        assert process.exitcode == -9, "the writer ended by itself"
        states, doing = allowed(journal)
        if doing is not None:  # else no write was running
            interrupted[doing] = interrupted.get(doing, 0) + 1
        rows = state_of(lake)
        assert rows in states, f"kill {seed} during {doing}"
        taken_place += doing is not None and rows == states[-1]
        here.close()
    assert sum(interrupted.values()) == kills
    assert len(interrupted) > (3 if kills == 50 else 1), interrupted
    assert taken_place < kills, "no kill came before a commit"
    table.refresh()
    for snapshot_id in snapshot_ids(table):
        table.at(snapshot_id).arrow()
    final = state_of(lake)
    assert reachable(table) <= files_below(lake)
    table.sweep(older_than=dt.timedelta(0), force=True)
    assert files_below(lake) == reachable(table)
    assert state_of(lake) == final
    table.compact()
    assert state_of(lake) == final
