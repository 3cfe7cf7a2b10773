"""`penstock ingest` without Spark: what it checks first, what it prints, and runs that are started again."""

from __future__ import annotations

import os
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner

import penstock
from penstock.cli.ingest_source import IngestSource
from penstock.cli.main import main
from penstock.errors import SchemaError, StorageError
from penstock.lake.managed_table import ManagedTable
from tests.fixtures.commands import json_of, run
from tests.fixtures.hive_writer import write_file
from tests.fixtures.managed_tables import files_below, managed_table, reopened, snapshot_ids


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A source that is read without Spark: what Spark would give is Arrow's."""
    rows = pa.table({"app": ["a", "b", "b"], "n": pa.array([1, 2, 3], pa.int64())})
    monkeypatch.setattr("penstock.spark.session.session.session", lambda **_: None)
    monkeypatch.setattr(IngestSource, "frame", lambda *_: rows)
    monkeypatch.setattr("penstock.spark.session.tasks.progress_of_tasks", lambda *_: nullcontext())
    path = tmp_path / "rows.parquet"
    path.write_bytes(b"")
    return path


def test_ingest_makes_the_table_and_appends_to_it_afterwards(source: Path, tmp_path: Path) -> None:
    words = ["ingest", str(source), "new.t", "--partition-by", "app", "--coalesce", "app", "--below", "8MB"]
    first = json_of(tmp_path, *words)
    made = penstock.connect(tmp_path).table("new.t")
    assert isinstance(made, ManagedTable)
    size = sum(task.size for task in made.plan().files)
    assert first == {
        "table": "new.t",
        "made": True,
        "mode": "append",
        "run_id": None,
        "total_rows": 3,
        "bad_rows": 0,
        "inferred_types": {},
        "already_committed": False,
        "retries": 0,
        "rows_added": 3,
        "rows_updated": 0,
        "rows_removed": 0,
        "files_added": 1,
        "files_removed": 0,
        "bytes_added": size,
        "bytes_removed": 0,
        "snapshot_id": snapshot_ids(made)[-1],
    }
    assert (made.coalesce, made.count()) == (penstock.Coalesce("app", below="8MB"), 3)
    done = run(tmp_path, *words)
    assert made.refresh().count() == 6
    assert done.stdout.splitlines() == [
        "3 rows in 1 file added to new.t, which has 6 rows now",
        f"snapshot {snapshot_ids(made)[-1]}: {size:,} bytes added, 0 removed",
    ]
    over = run(tmp_path, "ingest", str(source), "new.t", "--mode", "overwrite")
    first_line = "new.t: 3 rows added, 6 rows removed, 1 file written, 2 files removed; 3 rows in all"
    assert over.stdout.splitlines()[0] == first_line
    assert made.refresh().count() == 3
    assert len(snapshot_ids(made)) == 3
    new = run(tmp_path, "ingest", str(source), "new.u")
    assert new.stdout.splitlines()[0] == "3 rows in 1 file added to new.u, which is new"
    assert json_of(tmp_path, "ingest", str(source), "new.u")["total_rows"] == 6


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_a_column_that_a_source_does_not_have_is_said_before_spark_is_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    def starts(**_: Any) -> None:
        raise AssertionError("Spark was started")

    monkeypatch.setattr("penstock.spark.session.session.session", starts)
    file = tmp_path / "h" / "app=a" / "1.parquet"
    file.parent.mkdir(parents=True)
    pa.parquet.write_table(pa.table({"n": [1], "app": ["a"]}), file)
    source = str(file if kind == "file" else tmp_path / "h")
    before = files_below(tmp_path)
    done = run(tmp_path, "ingest", source, "new.t", "--partition-by", "n, ap")
    assert (done.exit_code, done.stderr) == (2, "Error: --partition-by 'ap': no column 'ap'; did you mean 'app'?\n")
    assert files_below(tmp_path) == before
    with pytest.raises(AssertionError, match="Spark was started"):
        CliRunner().invoke(
            main,
            ["ingest", source, "new.t", "--partition-by", "n, app", "--warehouse", str(tmp_path)],
            catch_exceptions=False,
        )


def test_a_table_that_nothing_could_be_written_to_is_taken_away(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: Any, **__: Any) -> None:
        raise SchemaError("the rows do not fit")

    monkeypatch.setattr(ManagedTable, "append", fails)
    done = run(tmp_path, "ingest", str(source), "new.t", "--partition-by", "app")
    assert (done.exit_code, done.stderr) == (2, "Error: the rows do not fit\n")
    assert penstock.connect(tmp_path).tables() == []
    assert not list(tmp_path.rglob("*.metadata.json"))


def test_what_spark_says_of_a_source_is_one_line(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any) -> None:
        raise RuntimeError("[PATH] cannot be read\n\tat org.apache.spark")

    monkeypatch.setattr(IngestSource, "frame", fails)
    done = run(tmp_path, "ingest", str(source), "new.t")
    assert done.exit_code == 2
    assert f"the source {source} cannot be opened: [PATH] cannot be read at org.apache.spark" in done.stderr
    assert done.stderr.count("\n") == 1


def test_the_kind_of_a_source_is_found(tmp_path: Path) -> None:
    def make(name: str) -> str:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"")
        return str(path)

    names = {"a.parquet": "parquet", "b.csv": "csv", "c.csv.gz": "csv", "d.JSON": "json", "e.jsonl": "json",
             "f.snappy.parquet": "parquet", "g.ndjson.gz": "json",
             "k.avro": "avro", "l.orc": "orc", "m.txt.gz": "text"}  # fmt: skip
    assert {name: IngestSource(make(name)).kind for name in names} == names
    make("h/_SUCCESS")
    make("h/_x.csv")
    make("h/dt=1/app=a/part-0.parquet")
    assert IngestSource(str(tmp_path / "h")).kind == "parquet"
    make("j/README.txt")
    make("j/z.csv")
    assert IngestSource(str(tmp_path / "j")).kind == "csv"
    make("i/readme.md")
    with pytest.raises(StorageError, match="no Parquet, ORC, Avro, CSV, JSON or text file in"):
        IngestSource(str(tmp_path / "i")).check()


@pytest.mark.parametrize(
    ("names", "is_flat"),
    [(["a.parquet", "_x/b"], True), (["000000_0"], True), (["k=1/a.parquet"], False), (["a", "k=1/b"], False)],
)
def test_a_folder_of_files_only_has_no_levels(tmp_path: Path, names: list[str], is_flat: bool) -> None:
    for name in names:
        write_file(tmp_path / name)
    assert IngestSource(str(tmp_path)).is_flat is is_flat
    assert IngestSource(str(tmp_path / names[0])).is_flat
    assert not IngestSource(str(tmp_path), partition_by="k int").is_flat


def test_a_file_without_a_known_ending_is_parquet_by_its_first_bytes(tmp_path: Path) -> None:
    file = write_file(tmp_path / "t" / "_year=1" / "000000_0")
    (tmp_path / "t" / "a").mkdir()
    (tmp_path / "t" / "a" / "notes").write_bytes(b"P")
    os.mkfifo(tmp_path / "t" / "_pipe")
    os.mkfifo(tmp_path / "pipe.parquet")
    assert IngestSource(str(tmp_path / "t")).kind == "parquet"
    assert IngestSource(str(file)).kind == "parquet"
    with pytest.raises(StorageError, match="no Parquet, ORC, Avro, CSV, JSON or text file in"):
        IngestSource(str(tmp_path / "t" / "a" / "notes")).check()
    with pytest.raises(StorageError, match=r"pipe\.parquet is a pipe, socket or device; give a file"):
        IngestSource(str(tmp_path / "pipe.parquet")).check()


# Modes, and runs that are started again


def test_modes_replace_what_they_say(source: Path, tmp_path: Path) -> None:
    table = managed_table(tmp_path, "app string, n bigint", ["app"])
    table.append(pa.table({"app": ["a", "c", "c"], "n": [9, 9, 8]}))
    done = json_of(tmp_path, "ingest", str(source), "web.t", "--mode", "dynamic")
    assert (done["rows_added"], done["rows_removed"], done["total_rows"]) == (3, 1, 5)
    done = json_of(tmp_path, "ingest", str(source), "web.t", "--mode", "replace-where", "--where", "app < 'c'")
    assert (done["rows_added"], done["rows_removed"], done["total_rows"]) == (3, 3, 5)
    done = json_of(tmp_path, "ingest", str(source), "web.t", "--mode", "upsert", "--on", "app, n")
    assert (done["rows_added"], done["rows_updated"], done["total_rows"]) == (0, 3, 5)
    assert sorted(reopened(tmp_path).arrow()["n"].to_pylist()) == [1, 2, 3, 8, 9]


def test_rows_outside_of_what_they_replace_are_refused(source: Path, tmp_path: Path) -> None:
    table = managed_table(tmp_path, "app string, n bigint", ["app"])
    table.append(pa.table({"app": ["a"], "n": [9]}))
    before = files_below(tmp_path)
    done = run(tmp_path, "ingest", str(source), "web.t", "--mode", "replace-where", "--where", "app = 'a'")
    assert done.exit_code == 2
    assert done.stderr.startswith("Error: 2 of the rows do not match app = 'a', which says what they replace; ")
    assert files_below(tmp_path) == before


@pytest.mark.parametrize("mode", ["append", "overwrite", "dynamic", "replace-where", "upsert"])
def test_a_run_is_committed_once_and_spark_is_not_started_for_it_again(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    more = {"replace-where": ["--where", "TRUE"], "upsert": ["--on", "n"]}.get(mode, [])
    words = ["ingest", str(source), "web.t", "--mode", mode, *more, "--run-id", "night 1"]
    first = json_of(tmp_path, *words)
    assert (first["rows_added"], first["already_committed"]) == (3, False)

    def starts(**_: Any) -> None:
        raise AssertionError("Spark was started")

    monkeypatch.setattr("penstock.spark.session.session.session", starts)
    before = files_below(tmp_path)
    again = json_of(tmp_path, *words)
    assert (again["already_committed"], again["snapshot_id"], again["rows_added"]) == (True, first["snapshot_id"], 0)
    done = run(tmp_path, *words)
    known = f"run night 1 was committed already by snapshot {first['snapshot_id']} of web.t; nothing changed\n"
    assert (done.exit_code, done.stdout) == (0, known)
    assert files_below(tmp_path) == before


def test_a_run_of_another_process_that_is_faster_is_seen_when_this_one_commits(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["ingest", str(source), "web.t", "--run-id", "night"]
    read = IngestSource.frame

    def slow(self: IngestSource, spark: Any) -> Any:
        monkeypatch.setattr(IngestSource, "frame", read)
        rows = read(self, spark)
        managed_table(tmp_path, rows.schema).append(rows, run_id="night")
        return rows

    monkeypatch.setattr(IngestSource, "frame", slow)
    done = json_of(tmp_path, *words)
    assert (done["already_committed"], done["made"], done["total_rows"]) == (True, False, 3)


def test_columns_are_added_to_the_table_when_asked_for(source: Path, tmp_path: Path) -> None:
    managed_table(tmp_path, "app string")
    refused = run(tmp_path, "ingest", str(source), "web.t")
    assert refused.exit_code == 2
    assert "not in the table: n; append with --merge-schema to change the table, or select" in refused.stderr
    assert json_of(tmp_path, "ingest", str(source), "web.t", "--merge-schema")["rows_added"] == 3
    assert reopened(tmp_path).schema.names == ["app", "n"]


def test_a_branch_is_written_apart(source: Path, tmp_path: Path) -> None:
    table = managed_table(tmp_path, "app string, n bigint")
    table.append(pa.table({"app": ["a"], "n": [9]}))
    table.create_branch("audit")
    done = json_of(tmp_path, "ingest", str(source), "web.t", "--branch", "audit")
    assert (done["total_rows"], reopened(tmp_path).count()) == (4, 1)


# Bad input


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nosuch.csv", "web.t"], "nosuch.csv does not exist; check the path"),
        (["nosuch", "web.t"], "nosuch does not exist; check the path"),
        (["a.csv", "web.t", "--mode", "replace"], "'replace' is not one of 'append', 'overwrite', 'dynamic', "),
        (["a.csv", "t"], "invalid table name 't'; write namespace.name"),
        (["a.csv", "web.t", "--below", "1MB"], "--below is given without --coalesce"),
        (["a.csv", "web.t", "--coalesce", "app", "--below", "much"], "'much' is no size"),
        (["a.csv", "web.t", "--partition-by", "n"], "is partitioned by identity of app, not by n"),
        (["a.csv", "web.t", "--coalesce", "app"], "web.t exists and has another rule of coalescing"),
        (["a.csv", "web.t", "--run-id", ""], "invalid --run-id ''; give a text of 1 to 200 characters"),
        (["a.csv", "web.t", "--run-id", "x" * 201], "; give a text of 1 to 200 characters"),
        (["a.csv", "web.t", "--where", "n = 1"], "--where is given without --mode replace-where; add --mode"),
        (["a.csv", "web.t", "--mode", "replace-where"], "--mode replace-where is given without --where; add --where"),
        (["a.csv", "web.t", "--mode", "replace-where", "--where", "m = 1"], "unknown column 'm'"),
        (["a.csv", "web.t", "--mode", "upsert"], "--mode upsert is given without --on; add --on id"),
        (["a.csv", "web.t", "--schema", "n tmestamp"], "unknown type 'tmestamp'; did you mean timestamp?"),
        (["a.csv", "web.t", "--schema", ""], "the schema '' has no columns; write: name type"),
        (
            ["a.parquet", "web.t", "--schema", "n int"],
            "--schema declares the types of CSV and JSON, and a.parquet is Parq",
        ),
        (
            ["a.csv", "web.t", "--mode", "dynamic", "--merge-schema"],
            "--merge-schema is given with --mode dynamic; it is",
        ),
        (["a.csv", "web.t", "--max-bad-rows", "3"], "--max-bad-rows is given without --bad-rows"),
        (["a.csv", "web.t", "--bad-rows", "no/such/file"], "the folder of --bad-rows no/such/file does not exist"),
        (["a.csv", "web.t", "--memory", "lots"], "invalid --memory 'lots'; write a whole number and a unit, 512m or"),
        (
            ["a.csv", "web.t", "--memory", "64m"],
            "invalid --memory '64m'; write a whole number and a unit, 512m or more",
        ),
        (["a.csv", "web.t", "--master", "bogus"], "invalid --master 'bogus'; write local[*], local[4], yarn, spark://"),
        (["a.csv", "web.t", "--master", "local[0]"], "invalid --master 'local[0]'; write local[*]"),
        (["a.csv", "web.t", "--branch", "audit"], "web.t has no branch 'audit'; there are: main"),
        (["a.csv", "web.new", "--branch", "audit"], "no table 'web.new', and so no branch 'audit'"),
        (["a.csv", "web.new", "--schema", "n int", "--partition-by", "m"], "--partition-by 'm': no column 'm'"),
        (["a.csv", "web.t", "--catalog", "nosuch"], "catalog 'nosuch' cannot be opened: PyIceberg's configuration has"),
        (["a.csv", "web.t", "--timezone", "Mars/Phobos"], "unknown time zone 'Mars/Phobos'"),
    ],
)
def test_bad_input_is_one_clear_line_without_spark_and_nothing_changes(
    tmp_path: Path, words: list[str], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def starts(**_: Any) -> None:
        raise AssertionError("Spark was started")

    monkeypatch.setattr("penstock.spark.session.session.session", starts)
    managed_table(tmp_path, "app string, n bigint", ["app"]).append(pa.table({"app": ["a"], "n": [1]}))
    (tmp_path / "a.csv").write_text("app,n\na,1\n")
    (tmp_path / "a.parquet").write_bytes(b"")
    monkeypatch.chdir(tmp_path)
    before = files_below(tmp_path)
    done = run(tmp_path, "ingest", *words)
    assert done.exit_code == 2, done.output
    assert message in done.stderr
    assert "Traceback" not in done.output
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("Error: ")]
    assert line
    assert files_below(tmp_path) == before


def test_a_warehouse_that_cannot_be_made_is_one_line(source: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = run(tmp_path / "file" / "lake", "ingest", str(source), "web.t")
    place = tmp_path / "file" / "lake"
    message = f"Error: the warehouse {place} cannot be made: Not a directory; check the path and its permissions\n"
    assert (done.exit_code, done.stderr) == (2, message)


def test_all_directories_of_a_layout_may_be_listed(tmp_path: Path) -> None:
    write_file(tmp_path / "k=1" / "a.parquet")
    layout = IngestSource(str(tmp_path), partition_by="k int").layout()
    assert {layout.limits.warn_partitions, layout.limits.max_partitions, layout.max_lists} == {sys.maxsize}


def test_advice_about_partitions_names_the_option_of_the_source(tmp_path: Path) -> None:
    write_file(tmp_path / "k=1" / "a.parquet")
    with pytest.warns(penstock.PenstockWarning, match='declare it: source_partition_by="k bigint"'):
        IngestSource(str(tmp_path)).layout()
