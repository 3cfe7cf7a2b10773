"""The commands that look after tables and fill them: what they print, and what bad input gets."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pyarrow as pa
import pytest

import penstock
from penstock.lake.maintain.compact import Compaction
from penstock.lake.managed_table import ManagedTable
from tests.fixtures.commands import json_of, run
from tests.fixtures.managed_tables import files_below, local, managed_table, reopened


@pytest.fixture
def table(tmp_path: Path) -> ManagedTable:
    made = managed_table(tmp_path, "app string, n bigint", ["app"])
    for i in range(3):
        made.append(pa.table({"app": [f"a{k:02d}" for k in range(20)], "n": pa.array([i] * 20, pa.int64())}))
    return made


def test_advise_for_people_and_for_machines(table: ManagedTable, tmp_path: Path) -> None:
    found = json_of(tmp_path, "advise", "web.t")
    assert (found["files"], found["partitions"], found["suggested"]["columns"]) == (60, 20, ["app"])
    assert found["opens"] == {"mean": 3.0, "most": 3, "scan": 60}
    done = run(tmp_path, "advise", "web.t")
    assert done.stdout == f"{table.advise()}\n"
    assert done.stderr == ""


def test_compact_expire_and_sweep_one_after_the_other(table: ManagedTable, tmp_path: Path) -> None:
    compacted = json_of(tmp_path, "compact", "web.t")
    assert (compacted["files_before"], compacted["files_after"]) == (60, 20)
    assert run(tmp_path, "compact", "web.t").stdout == "nothing to compact\n"
    time.sleep(0.002)
    expired = json_of(tmp_path, "expire", "web.t", "--older-than", "0 seconds", "--keep-last", "2")
    assert expired["snapshots"] == 2
    assert run(tmp_path, "expire", "web.t").stdout == "removed 0 snapshots and 0 files, 0 bytes\n"
    left = Path(local(table.table.metadata.location)) / "data" / "left.parquet"
    left.write_bytes(b"left")
    os.utime(left, (0, 0))
    done = run(tmp_path, "sweep", "web.t", "--dry-run")
    assert done.stdout == f"file://{left}\nwould remove 1 file that no snapshot has, 4 bytes\n"
    assert left.exists()
    swept = json_of(tmp_path, "sweep", "web.t", "--older-than", "2 hours")
    assert swept == {"files": 1, "bytes": 4, "dry_run": False, "paths": [f"file://{left}"]}
    assert (reopened(tmp_path).count(), left.exists()) == (60, False)


@pytest.mark.parametrize(
    ("done", "said"),
    [
        (Compaction(16, 4, 13, 1, manifests_before=14, manifests_after=1),
         "13 of 16 files became 1, 4 files in all; 14 manifests became 1"),
        (Compaction(1, 1, 1, 1, promoted=1, folded=1, manifests_before=1, manifests_after=1),
         "1 of 1 file became 1 (1 logical partition got files of its own, 1 logical partition shares files now), "
         "1 file in all"),
        (Compaction(200, 2, 200, 2, folded=200, manifests_before=1, manifests_after=1),
         "200 of 200 files became 2 (200 logical partitions share files now), 2 files in all"),
        (Compaction(3, 3, manifests_before=2, manifests_after=1), "2 manifests became 1"),
        (Compaction(3, 3, manifests_before=1, manifests_after=1), "nothing to compact"),
    ],
)  # fmt: skip
def test_what_a_compaction_did_is_said_without_what_it_did_not_do(done: Compaction, said: str) -> None:
    assert str(done) == said


def test_compact_takes_a_predicate(table: ManagedTable, tmp_path: Path) -> None:
    assert json_of(tmp_path, "compact", "web.t", "--where", "app = 'a01'")["rewritten"] == 3
    assert len(reopened(tmp_path).plan().files) == 58


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["advise", "web.nosuch"], "no table 'web.nosuch'"),
        (["compact", "web.t", "--where", "nosuch = 1"], "unknown column 'nosuch'"),
        (["expire", "web.t", "--older-than", "soon"], "'soon' is no age; write a number and a unit"),
        (["expire", "web.t", "--keep-last", "0"], "--keep-last is 0"),
        (["expire", "web.t", "--keep-last", "x"], "Invalid value for '--keep-last'"),
        (
            ["sweep", "web.t", "--older-than", "10 minutes"],
            "is not safe: writers that are running have files that no snapshot has yet; give 1 hour or more\n",
        ),
        (["advise", "some/path"], "some/path is a path; give the name of a table"),
        (
            ["expire", "web.t", "--catalog", "no-such"],
            "catalog 'no-such' cannot be opened: PyIceberg's configuration has no uri for it; "
            "describe it in .pyiceberg.yaml, or set PYICEBERG_CATALOG__NO_SUCH__URI\n",
        ),
        (["compact", "web.t", "extra", "--where", "app"], "(extra); put the predicate in quotes"),
        (["compact", "web.t", "extra"], "Got unexpected extra argument (extra)\n"),
    ],
)
def test_bad_input_is_one_clear_line_and_nothing_changes(
    table: ManagedTable, tmp_path: Path, words: list[str], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    before = files_below(tmp_path)
    done = run(tmp_path, *words)
    assert done.exit_code == 2
    assert said in done.stderr
    assert "Traceback" not in done.output
    assert files_below(tmp_path) == before


def test_a_hive_layout_is_not_looked_after(tmp_path: Path) -> None:
    (tmp_path / "h" / "app=a").mkdir(parents=True)
    pa.parquet.write_table(pa.table({"n": [1]}), tmp_path / "h" / "app=a" / "1.parquet")
    penstock.connect(tmp_path).register("web.h", penstock.hive(tmp_path / "h", "app string"))
    for words in (["advise", "web.h"], ["ingest", str(tmp_path / "h"), "web.h"]):
        done = run(tmp_path, *words)
        assert (done.exit_code, "web.h is a Hive layout, which Penstock does not write" in done.stderr) == (2, True)
