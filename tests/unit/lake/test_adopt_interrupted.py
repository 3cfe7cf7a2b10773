"""Adopting that is killed, fails, or is done twice at once: every file is in the table once."""

from __future__ import annotations

import datetime as dt
import multiprocessing
import shutil
import threading
import time
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import penstock
from penstock.errors import LakeError
from penstock.lake.adopt import adopt as adopting
from penstock.lake.commit.once import adoptions
from tests.fixtures.adopted_trees import (
    adopt_in_small_steps,
    ids,
    plain_tree,
    table_of,
    write,
)
from tests.fixtures.managed_tables import files_below, local, reachable
from tests.fixtures.processes import PATIENCE

NOW = dt.timedelta(0)
ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("kills", [5, pytest.param(40, marks=pytest.mark.slow)])
def test_adoption_that_was_killed_goes_on_and_adds_every_file_once(
    tmp_path: Path, tree: Path, monkeypatch: pytest.MonkeyPatch, kills: int
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    rows = plain_tree(tree, days=20, files=20, rows=1)
    processes = multiprocessing.get_context("forkserver")
    processes.set_forkserver_preload(["tests.fixtures.adopted_trees", "pyiceberg.catalog.sql", "pandas"])
    rng, states = Random(kills), set[int]()
    for number in range(kills):
        if number % 10 == 0:
            shutil.rmtree(tmp_path / "lake", ignore_errors=True)
        here, there = processes.Pipe(duplex=False)
        step = processes.Process(target=adopt_in_small_steps, args=(str(tmp_path / "lake"), str(tree), there))
        step.start()
        there.close()
        for _ in range(rng.randrange(10)):  # words: that it begins, and of each commit
            assert here.poll(PATIENCE)
            if here.recv() == "done":
                break
        time.sleep(rng.uniform(0, 0.2))
        step.kill()
        step.join(PATIENCE)
        lake = penstock.connect(tmp_path / "lake")
        found = ids(table_of(lake)) if lake.has_table("web.t") else []
        assert len(found) == len(set(found))
        states.add(len(found))
    assert states & set(range(1, len(rows))), "no kill came between two commits"
    lake.adopt(tree, "web.t", "dt date")
    table = table_of(lake)
    assert ids(table) == rows["id"].to_pylist()
    table.sweep(NOW, force=True)
    lists = {local(path) for path in adoptions(table.table.metadata)}
    own = {path for path in reachable(table) if Path(path).is_relative_to(tmp_path / "lake")}
    assert files_below(tmp_path / "lake") == own | lists
    assert lake.adopt(tree, "web.t").files == 0


def test_footers_that_were_read_are_not_read_again(
    lake: penstock.Lake, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain_tree(tree, days=3, files=2)
    real = pq.read_metadata
    opened: list[Any] = []
    monkeypatch.setattr(pq, "read_metadata", lambda source: opened.append(source) or real(source))
    with monkeypatch.context() as patch:
        patch.setattr(adopting.Adopting, "_make", _fails)
        with pytest.raises(LakeError, match="the catalog is gone"):
            lake.adopt(tree, "web.t", "dt date")
    assert len(opened) == 6
    assert lake.adopt(tree, "web.t", "dt date").files == 6
    assert len(opened) == 6
    write(tree / "dt=2026-01-01" / "part-000000.parquet", pa.table({"id": [7, 8, 9]}))
    lake.adopt(tree, "web.u", "dt date")
    assert sorted(table_of(lake, "web.u").arrow("dt = '2026-01-01'")["id"].to_pylist()) == [4, 5, 6, 7, 7, 8, 9]


def _fails(*_: Any) -> None:
    raise LakeError("the catalog is gone")


def test_two_that_adopt_one_tree_add_every_file_once(
    lake: penstock.Lake, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = plain_tree(tree, days=10, files=4)
    lake.create_table("web.t", "id bigint, dt date", ["dt"])
    monkeypatch.setattr(adopting, "_FILES_PER_COMMIT", 6)
    both, added = threading.Barrier(2), list[int]()
    real = adopting.read_footers

    def together(*arguments: Any) -> Any:
        found = real(*arguments)
        both.wait(PATIENCE)
        return found

    monkeypatch.setattr(adopting, "read_footers", together)
    workers = [threading.Thread(target=lambda: added.append(lake.adopt(tree, "web.t").files)) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(PATIENCE)
    assert (len(added), sum(added)) == (2, 40)
    assert ids(table_of(lake)) == rows["id"].to_pylist()
