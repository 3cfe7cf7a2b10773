"""`penstock adopt`: what it prints, and what bad input gets."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import penstock
from tests.fixtures.adopted_trees import PARTITION_BY, hard_tree, plain_tree
from tests.fixtures.commands import json_of, run


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    hard_tree(tmp_path / "tree")
    return tmp_path / "tree"


def test_adopt_for_people_again_and_for_machines(tree: Path, tmp_path: Path) -> None:
    command = [
        "adopt",
        str(tree),
        "--as",
        "web.t",
        "--partition-by",
        PARTITION_BY,
        "--coalesce",
        "app",
        "--below",
        "1MB",
    ]
    done = run(tmp_path, *command)
    made = "24 files with 120 rows adopted into web.t, which is new; 1 file without rows left out\n"
    assert (done.stdout, done.stderr, done.exit_code) == (made, "", 0)
    table = penstock.connect(tmp_path).writable_table("web.t")
    assert (table.count(), table.coalesce) == (120, penstock.Coalesce("app", below="1MB"))
    again = "no new file for web.t; 24 files adopted before; 1 file without rows left out\n"
    assert run(tmp_path, *command).stdout == again
    gone = sorted(tree.rglob("part*.parquet"))[0]
    gone.unlink()
    done = run(tmp_path, *command)
    assert done.stderr.startswith("note: 1 file of web.t vanished from the tree, such as ")
    found = json_of(tmp_path, *command)
    counts = {"table": "web.t", "made": False, "files": 0, "rows": 0, "bytes": 0, "known": 23, "empty": 1}
    assert found == {**counts, "vanished": [str(gone)], "changed": []}


def test_declared_layout_is_adopted_by_its_name(tmp_path: Path) -> None:
    plain_tree(tmp_path / "tree", days=2, files=1)
    penstock.connect(tmp_path).register("raw.events", penstock.hive(tmp_path / "tree", "dt date"))
    assert json_of(tmp_path, "adopt", "raw.events", "--as", "web.t")["rows"] == 8


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--as", "web.t", "--below", "1MB"], "--below is given without --coalesce; say which columns: --coalesce app"),
        (["--as", "t"], "invalid table name 't'; write namespace.name"),
        (["--as", "web.t", "--partition-by", "dt int, app string"], "cannot be read as int; declare it as string"),
        (["--as", "web.t", "--coalesce", "id"], "partitions of 'id' cannot share files"),
        ([], "Missing option '--as'"),
    ],
)
def test_bad_input_of_adopt_is_one_line(options: list[str], message: str, tree: Path, tmp_path: Path) -> None:
    done = run(tmp_path, "adopt", str(tree), *options)
    assert done.exit_code == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert penstock.connect(tmp_path).tables() == []


def test_file_that_does_not_fit_is_named(tree: Path, tmp_path: Path) -> None:
    odd = tree / "dt=2026-05-17" / "app=shop" / "odd.parquet"
    pq.write_table(pa.table({"id": ["x"]}), odd)
    done = run(tmp_path, "adopt", str(tree), "--as", "web.t", "--partition-by", PARTITION_BY)
    assert done.exit_code == 2
    assert f"file://{odd}: column id is " in done.stderr
    assert len(done.stderr.splitlines()) == 1
