"""The commands that look after tables and fill them: what they print, and what bad input gets."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner, Result

import penstock
from penstock.cli import ingest as ingesting
from penstock.cli.main import main
from penstock.errors import SchemaError, StorageError
from penstock.lake.maintain.compact import Compaction
from penstock.lake.managed_table import ManagedTable
from tests.fixtures.hive_writer import write_file
from tests.fixtures.managed_tables import files_below, local, managed_table, reopened, snapshot_ids


@pytest.fixture
def table(tmp_path: Path) -> ManagedTable:
    made = managed_table(tmp_path, "app string, n bigint", ["app"])
    for i in range(3):
        made.append(pa.table({"app": [f"a{k:02d}" for k in range(20)], "n": pa.array([i] * 20, pa.int64())}))
    return made


def run(root: Path, *words: str) -> Result:
    return CliRunner().invoke(main, [*words, "--warehouse", str(root)])


def told(root: Path, *words: str) -> Any:
    done = run(root, *words, "--json")
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def test_advise_for_people_and_for_machines(table: ManagedTable, tmp_path: Path) -> None:
    found = told(tmp_path, "advise", "web.t")
    assert (found["files"], found["partitions"], found["suggested"]["columns"]) == (60, 20, ["app"])
    assert found["opens"] == {"mean": 3.0, "most": 3, "scan": 60}
    done = run(tmp_path, "advise", "web.t")
    assert done.stdout == f"{table.advise()}\n"
    assert done.stderr == ""


def test_compact_expire_and_sweep_one_after_the_other(table: ManagedTable, tmp_path: Path) -> None:
    compacted = told(tmp_path, "compact", "web.t")
    assert (compacted["files_before"], compacted["files_after"]) == (60, 20)
    assert run(tmp_path, "compact", "web.t").stdout == "nothing to compact\n"
    time.sleep(0.002)
    expired = told(tmp_path, "expire", "web.t", "--older-than", "0 seconds", "--keep-last", "2")
    assert expired["snapshots"] == 2
    assert run(tmp_path, "expire", "web.t").stdout == "removed 0 snapshots and 0 files, 0 bytes\n"
    left = Path(local(table.table.metadata.location)) / "data" / "left.parquet"
    left.write_bytes(b"left")
    os.utime(left, (0, 0))
    done = run(tmp_path, "sweep", "web.t", "--dry-run")
    assert done.stdout == f"file://{left}\nwould remove 1 file that no snapshot has, 4 bytes\n"
    assert left.exists()
    swept = told(tmp_path, "sweep", "web.t", "--older-than", "2 hours")
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
    assert told(tmp_path, "compact", "web.t", "--where", "app = 'a01'")["rewritten"] == 3
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
        (["ingest", "nosuch.csv", "web.t"], "nosuch.csv does not exist"),
        (["ingest", "nosuch", "web.t"], "nosuch does not exist"),
        (["ingest", "a.csv", "web.t", "--mode", "replace"], "'replace' is not one of 'append', 'overwrite'"),
        (["ingest", "a.csv", "t"], "invalid table name 't'; write namespace.name"),
        (["ingest", "a.csv", "web.t", "--below", "1MB"], "--below is given without --coalesce"),
        (["ingest", "a.csv", "web.t", "--coalesce", "app", "--below", "much"], "'much' is no size"),
        (["ingest", "a.csv", "web.t", "--partition-by", "n"], "is partitioned by identity of app, not by n"),
        (["ingest", "a.csv", "web.t", "--coalesce", "app"], "web.t exists and has another rule of coalescing"),
    ],
)
def test_bad_input_is_one_clear_line_and_nothing_changes(
    table: ManagedTable, tmp_path: Path, words: list[str], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.csv").write_text("app,n\na,1\n")
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


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A source that is read without Spark: what Spark would give is Arrow's."""
    rows = pa.table({"app": ["a", "b", "b"], "n": pa.array([1, 2, 3], pa.int64())})
    monkeypatch.setattr("penstock.spark.session.session.session", lambda **_: None)
    monkeypatch.setattr(ingesting, "_read", lambda *_: rows)
    path = tmp_path / "rows.parquet"
    path.write_bytes(b"")
    return path


def test_ingest_makes_the_table_and_appends_to_it_afterwards(source: Path, tmp_path: Path) -> None:
    words = ["ingest", str(source), "new.t", "--partition-by", "app", "--coalesce", "app", "--below", "8MB"]
    first = told(tmp_path, *words)
    sizes = {"rows": 3, "files": 1, "bytes": first["bytes"], "total_rows": 3}
    assert first == {"table": "new.t", "made": True, "mode": "append", **sizes}
    made = penstock.connect(tmp_path).table("new.t")
    assert isinstance(made, ManagedTable)
    assert (made.coalesce, made.count()) == (penstock.Coalesce("app", below="8MB"), 3)
    assert first["bytes"] == sum(task.size for task in made.plan().files)
    done = run(tmp_path, *words)
    assert done.stdout == "3 rows in 1 file added to new.t, which has 6 rows now\n"
    assert made.refresh().count() == 6
    over = run(tmp_path, "ingest", str(source), "new.t", "--mode", "overwrite")
    assert over.stdout == "3 rows in 1 file written to new.t, in the place of all others\n"
    assert made.refresh().count() == 3
    assert len(snapshot_ids(made)) == 3
    new = run(tmp_path, "ingest", str(source), "new.u")
    assert new.stdout == "3 rows in 1 file added to new.u, which is new\n"
    assert told(tmp_path, "ingest", str(source), "new.u")["total_rows"] == 6


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

    monkeypatch.setattr(ingesting, "_read", fails)
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
             "f.snappy.parquet": "parquet", "g.ndjson.gz": "json"}  # fmt: skip
    assert {name: ingesting.kind_of(make(name)) for name in names} == names
    make("h/_SUCCESS")
    make("h/_x.csv")
    make("h/dt=1/app=a/part-0.parquet")
    assert ingesting.kind_of(str(tmp_path / "h")) == "parquet"
    make("i/readme.txt")
    with pytest.raises(StorageError, match="no Parquet, CSV or JSON file in"):
        ingesting.kind_of(str(tmp_path / "i"))


@pytest.mark.parametrize(
    ("names", "is_flat"),
    [(["a.parquet", "_x/b"], True), (["000000_0"], True), (["k=1/a.parquet"], False), (["a", "k=1/b"], False)],
)
def test_a_folder_of_files_only_has_no_levels(tmp_path: Path, names: list[str], is_flat: bool) -> None:
    for name in names:
        write_file(tmp_path / name)
    place = {"source": str(tmp_path), "storage": None, "source_partition_by": "auto"}
    assert ingesting._is_flat(place) is is_flat
    assert ingesting._is_flat({**place, "source": str(tmp_path / names[0])})
    assert not ingesting._is_flat({**place, "source_partition_by": "k int"})


def test_a_file_without_a_known_ending_is_parquet_by_its_first_bytes(tmp_path: Path) -> None:
    file = write_file(tmp_path / "t" / "_year=1" / "000000_0")
    (tmp_path / "t" / "a").mkdir()
    (tmp_path / "t" / "a" / "notes").write_bytes(b"P")
    os.mkfifo(tmp_path / "t" / "_pipe")
    os.mkfifo(tmp_path / "pipe.parquet")
    assert ingesting.kind_of(str(tmp_path / "t")) == "parquet"
    assert ingesting.kind_of(str(file)) == "parquet"
    with pytest.raises(StorageError, match="no Parquet, CSV or JSON file in"):
        ingesting.kind_of(str(tmp_path / "t" / "a" / "notes"))
    with pytest.raises(StorageError, match=r"pipe\.parquet is a pipe, socket or device; give a file"):
        ingesting.kind_of(str(tmp_path / "pipe.parquet"))
