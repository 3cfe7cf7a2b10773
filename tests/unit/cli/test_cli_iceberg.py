"""The commands on Iceberg tables: by name, by metadata file, at a snapshot; none of them starts Spark."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner, Result
from pyiceberg.table import Table

import penstock
from penstock.cli.main import main
from tests.fixtures.iceberg_tables import append_by_hand, write_iceberg


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Table:
    monkeypatch.setenv("PENSTOCK_CACHE_DIR", str(tmp_path / "cache"))
    made = write_iceberg(tmp_path, pa.table({"id": [1, 2, 3], "app": ["a", "b", "b"]}), ["app"])
    made.manage_snapshots().create_tag(made.current_snapshot().snapshot_id, "first").commit()
    append_by_hand(made, pa.table({"id": [4], "app": ["a"]}))
    return made


def run(*words: str) -> Result:
    return CliRunner().invoke(main, list(words))


def test_explain_tells_manifests_and_files_by_name_and_by_metadata_file(table: Table, tmp_path: Path) -> None:
    for place in (["web.t", "--warehouse", str(tmp_path)], [table.metadata_location]):
        done = run("explain", *place, "--where", "app = 'b'")
        assert done.exit_code == 0, done.output
        assert "manifests   1 of 2 kept" in done.output
        assert "files       1 of 3 kept" in done.output


def test_explain_for_machines_tells_the_partition_of_each_file(table: Table, tmp_path: Path) -> None:
    done = run("explain", "web.t", "--warehouse", str(tmp_path), "--where", "app = 'b'", "--json")
    found = json.loads(done.output)
    assert (found["manifests"]["kept"], found["files"]["kept"]) == (1, 1)
    (task,) = found["tasks"]
    assert task["verdict"] == "KEEP_WHOLE"
    assert task["partition"] == {
        "app": {"value": "b", "source": "app", "transform": "identity", "lower": "b", "upper": "b\0"}
    }
    assert task["logical"] is None


def test_a_snapshot_is_named_by_its_id_or_by_a_tag(table: Table, tmp_path: Path) -> None:
    first = str(table.metadata.snapshots[0].snapshot_id)
    for snapshot in (first, "first"):
        done = run("explain", "web.t", "--warehouse", str(tmp_path), "--snapshot", snapshot)
        assert "files       2 of 2 kept" in done.output
    done = run("explain", "web.t", "--warehouse", str(tmp_path), "--snapshot", "nosuch")
    assert done.exit_code == 2
    assert "has no tag or branch 'nosuch'; tags and branches: first, main" in done.stderr


def test_partitions_tells_rows_files_and_the_last_change(table: Table, tmp_path: Path) -> None:
    done = run("partitions", "web.t", "--warehouse", str(tmp_path), "--json")
    found = {row["app"]: row for row in json.loads(done.output)}
    assert (found["a"]["rows"], found["a"]["files"], found["b"]["rows"], found["b"]["files"]) == (2, 2, 2, 1)
    assert all(row["last_change"] and row["deletes"] == 0 for row in found.values())
    _, head, _, *rows, _ = run("partitions", "web.t", "--warehouse", str(tmp_path)).output.splitlines()
    assert [name.strip() for name in head.strip("┃").split("┃")] == ["app", "rows", "files", "bytes", "last change"]
    assert len(rows) == len(found)


def test_tables_are_listed_one_a_line(table: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    penstock.connect(tmp_path).create_table("web.a", "n int")
    assert run("tables", "--warehouse", str(tmp_path)).stdout == "web.a\nweb.t\n"
    monkeypatch.setenv("PENSTOCK_WAREHOUSE", str(tmp_path))
    assert json.loads(run("tables", "--json").stdout) == ["web.a", "web.t"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["explain", "web.nosuch"], "no table 'web.nosuch'"),
        (["partitions", "nosuch.t"], "no table 'nosuch.t'"),
        (["explain", "web.t", "--where", "nosuch = 1"], "unknown column 'nosuch'"),
        (["explain", "web.t", "--catalog", "nosuch"], "or set PYICEBERG_CATALOG__NOSUCH__URI"),
        (["explain", "nosuch/v1.metadata.json"], "does not exist"),
    ],
)
def test_bad_input_is_one_clear_error(table: Table, tmp_path: Path, words: list[str], said: str) -> None:
    done = run(*words, "--warehouse", str(tmp_path))
    assert done.exit_code == 2
    assert said in done.stderr
    assert "Traceback" not in done.output


def test_a_warehouse_that_is_not_there_is_said_and_not_made(tmp_path: Path) -> None:
    done = run("explain", "web.t", "--warehouse", str(tmp_path / "nowhere"))
    assert done.exit_code == 2
    assert f"there is no warehouse {tmp_path / 'nowhere'}; " in done.stderr
    assert "--warehouse FOLDER" in done.stderr
    assert not (tmp_path / "nowhere").exists()
    (tmp_path / "nowhere").mkdir()
    done = run("explain", "web.t", "--warehouse", str(tmp_path / "nowhere"))
    assert f"no table 'web.t' in {tmp_path / 'nowhere'}; there are: none" in done.stderr
