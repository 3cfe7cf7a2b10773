"""`penstock ingest` with Spark: Parquet, CSV, JSON and Hive layouts become the same table."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import penstock
from penstock.cli.main import main
from tests.fixtures.format_writer import write_as
from tests.fixtures.managed_tables import bag, files_below
from tests.fixtures.variants import variants
from tests.spark.readers import has_avro

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
HIVE = ("hive", "hive without endings")
ROWS = [{"id": i, "app": f"app{i % 3}"} for i in range(12)]


def write(kind: str, root: Path) -> Path:
    rows = pa.Table.from_pylist(ROWS)
    if kind == "parquet":
        pq.write_table(rows, root / "rows.parquet")
        return root / "rows.parquet"
    if kind == "csv":
        pa.csv.write_csv(rows, root / "rows.csv")
    elif kind == "flat folder":
        pq.write_table(rows.slice(0, 5), root / "000000_0")
        pq.write_table(rows.slice(5), root / "b.parquet")
    elif kind == "json":
        (root / "rows.json").write_text("\n".join(map(json.dumps, ROWS)))
    else:
        for app in ("app0", "app1", "app2"):
            (root / f"app={app}").mkdir()
            part = pa.Table.from_pylist([row for row in ROWS if row["app"] == app]).select(["id"])
            pq.write_table(part, root / f"app={app}" / ("000000_0" if kind == HIVE[1] else "part-0.parquet"))
    return root


def ingest(warehouse: Path, source: Path, *more: str) -> Any:
    words = ["ingest", str(source), "web.t", "--warehouse", str(warehouse), *more, "--json"]
    done = CliRunner().invoke(main, words, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    "kind", variants(["csv", "flat folder", "hive", "parquet", "json", "hive without endings"], every_run=3)
)
def test_every_kind_of_source(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    (tmp_path / "source").mkdir()
    source = write(kind, tmp_path / "source")
    more = ["--source-partition-by", "app string"] if kind in HIVE else []
    done = ingest(tmp_path / "lake", source, "--partition-by", "app", "--coalesce", "app", *more)
    assert (done["made"], done["rows_added"], done["files_added"]) == (True, 12, 1)
    table = penstock.connect(tmp_path / "lake").table("web.t")
    typed = [{"id": int(row["id"]), "app": row["app"]} for row in table.arrow(columns=["id", "app"]).to_pylist()]
    assert bag(typed) == bag(ROWS)
    assert sorted(table.partitions()["app"].to_pylist()) == ["app0", "app1", "app2"]
    if kind == "hive":
        again = ingest(tmp_path / "lake", source, "--mode", "overwrite", *more)
        total = penstock.connect(tmp_path / "lake").table("web.t").count()
        assert (again["made"], again["rows_added"], again["rows_removed"], total) == (False, 12, 12, 12)


def test_hot_keys_of_maps(spark: SparkSession, tmp_path: Path) -> None:
    maps = pa.array([[("a,b", "1"), ("c", "x")], None, [("c", "y")]] * 5, pa.map_(pa.string(), pa.string()))
    pq.write_table(pa.table({"id": range(15), "h": maps, "g": maps}), tmp_path / "rows.parquet")
    done = ingest(tmp_path / "lake", tmp_path / "rows.parquet", "--shred", 'h=["a,b"]', "--shred", "g=auto")
    assert (done["made"], done["rows_added"]) == (True, 15)
    table = penstock.connect(tmp_path / "lake").table("web.t")
    assert [(s.key, s.name) for s in table.version.sidecars] == [
        ("a,b", "__map_shred_h_0"),
        ("a,b", "__map_shred_g_0"),
        ("c", "__map_shred_g_1"),
    ]
    assert table.arrow("h['a,b'] = '1'").num_rows == table.arrow("g['c'] = 'x'").num_rows == 5
    words = ["ingest", str(tmp_path / "rows.parquet"), "web.t", "--warehouse", str(tmp_path / "lake")]
    for more, said in (("h=c", "has other hot keys"), ("h", "names no keys"), ("h=", "names no keys")):
        failed = CliRunner().invoke(main, [*words, "--shred", more])
        assert failed.exit_code == 2
        assert said in failed.output
    assert penstock.connect(tmp_path / "lake").table("web.t").count() == 15


# CSV and JSON


CSV = """ts,v,name
2026-05-17 10:00:00,1.5,a
soon,2,b
2026-05-17,,"c,d"
1,2
2026-05-18T01:02:03Z,7,,extra
"""
JSON = """{"v": 1.5, "ts": "2026-05-17 10:00:00", "a": {"z": 1}}
{"ts": "soon", "v": 2}

not json
{"a": {"z": 3}, "ts": "2026-05-18", "b": 4}
"""
DAY = datetime(2026, 5, 17, tzinfo=UTC)


def failed(warehouse: Path, source: Path, *more: str) -> str:
    """The one line of an error; nothing has changed."""
    before = files_below(warehouse)
    done = CliRunner().invoke(main, ["ingest", str(source), "web.t", "--warehouse", str(warehouse), *more])
    assert (done.exit_code, done.stdout) == (2, "")
    assert files_below(warehouse) == before
    return done.stderr


def rows_of(warehouse: Path, order: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = penstock.connect(warehouse).table("web.t").arrow().sort_by(order).to_pylist()
    return rows


@pytest.fixture
def text(tmp_path: Path) -> dict[str, Path]:
    (tmp_path / "rows.csv").write_text(CSV)
    (tmp_path / "rows.json").write_text(JSON)
    return {"csv": tmp_path / "rows.csv", "json": tmp_path / "rows.json"}


def test_declared_types_of_csv_and_the_rows_that_do_not_fit(
    spark: SparkSession, text: dict[str, Path], tmp_path: Path
) -> None:
    aside = tmp_path / "bad.jsonl"
    declared = ["--schema", "name string, v double, ts timestamp"]  # in another order than in the header
    line = failed(tmp_path / "lake", text["csv"], *declared)
    assert line.startswith(f"Error: 3 of 5 rows of {text['csv']} do not fit, such as 'soon,2,b' in file:")
    assert line.endswith("; correct them, or keep them aside with --bad-rows FILE; nothing was written\n")
    done = ingest(tmp_path / "lake", text["csv"], *declared, "--bad-rows", str(aside))
    assert (done["rows_added"], done["bad_rows"], done["inferred_types"]) == (2, 3, {})
    assert rows_of(tmp_path / "lake", "ts") == [
        {"ts": DAY, "v": None, "name": "c,d"},
        {"ts": DAY.replace(hour=10), "v": 1.5, "name": "a"},
    ]
    kept = [json.loads(each) for each in aside.read_text().splitlines()]
    assert [row["row"] for row in kept] == ["soon,2,b", "1,2", "2026-05-18T01:02:03Z,7,,extra"]
    assert {row["file"] for row in kept} == {f"file:{text['csv']}"}
    assert {row["problem"] for row in kept} == {"another number of values, or one of another type"}
    assert not list(tmp_path.glob("*.tmp"))


def test_columns_that_are_not_declared_are_not_read_and_a_row_is_bad_all_the_same(
    spark: SparkSession, text: dict[str, Path], tmp_path: Path
) -> None:
    words = ["ingest", str(text["csv"]), "web.t", "--warehouse", str(tmp_path / "lake")]
    more = ["--schema", "name string not null", "--bad-rows", str(tmp_path / "bad.jsonl")]
    done = CliRunner().invoke(main, [*words, *more])
    assert done.exit_code == 0, done.output
    assert done.stderr == "note: columns that --schema does not name are not read: ts, v\n"
    assert "2 of 5 rows did not fit, and are kept in " in done.stdout
    assert [row["name"] for row in rows_of(tmp_path / "lake", "name")] == ["a", "b", "c,d"]


def test_a_null_in_a_required_column_does_not_fit(spark: SparkSession, text: dict[str, Path], tmp_path: Path) -> None:
    aside = tmp_path / "bad.jsonl"
    more = ["--schema", "ts string, v double not null", "--bad-rows", str(aside)]
    assert ingest(tmp_path / "lake", text["json"], *more)["rows_added"] == 2
    kept = [json.loads(each) for each in aside.read_text().splitlines()]
    assert kept[0]["row"] == "not json"
    assert (json.loads(kept[1]["row"]), kept[1]["problem"]) == ({"ts": "2026-05-18"}, "v is NULL")
    again = ingest(tmp_path / "lake", text["json"], "--bad-rows", str(aside), "--merge-schema")
    assert (again["rows_added"], again["bad_rows"]) == (2, 2), "as the table says"


def test_columns_of_json_keep_their_order_and_inferred_types_are_shown(
    spark: SparkSession, text: dict[str, Path], tmp_path: Path
) -> None:
    words = ["ingest", str(text["json"]), "web.t", "--warehouse", str(tmp_path / "lake")]
    done = CliRunner().invoke(main, [*words, "--bad-rows", str(tmp_path / "bad.jsonl")])
    assert done.exit_code == 0, done.output
    columns = "v double, ts string, a struct<z:bigint>, b bigint"
    assert done.stderr == f"note: types as found in {text['json']}; to be sure, declare them: --schema '{columns}'\n"
    assert penstock.connect(tmp_path / "lake").table("web.t").schema.names == ["v", "ts", "a", "b"]
    assert (tmp_path / "bad.jsonl").read_text().count("\n") == 1
    again = ingest(tmp_path / "lake", text["json"], "--schema", columns, "--bad-rows", str(tmp_path / "bad.jsonl"))
    assert (again["rows_added"], again["bad_rows"], again["inferred_types"]) == (3, 1, {})


def test_declared_columns_that_no_line_has_are_noted(
    spark: SparkSession, text: dict[str, Path], tmp_path: Path
) -> None:
    words = ["ingest", str(text["json"]), "web.t", "--warehouse", str(tmp_path / "lake"), "--json"]
    done = CliRunner().invoke(main, [*words, "--schema", "tz string, v double", "--bad-rows", str(tmp_path / "bad")])
    assert done.stderr == "note: columns of --schema that are NULL in all rows: tz\n"
    assert json.loads(done.stdout)["rows_added"] == 3


def test_without_a_schema_rows_get_the_types_of_the_table(
    spark: SparkSession, text: dict[str, Path], tmp_path: Path
) -> None:
    lake = penstock.connect(tmp_path / "lake")
    table = lake.create_table("web.t", "name string, v double, ts timestamp", ["day(ts)"])
    (tmp_path / "one.csv").write_text("ts,name,v\n2026-05-17 10:00:00,007,7\n")
    done = ingest(tmp_path / "lake", tmp_path / "one.csv")
    assert (done["rows_added"], done["inferred_types"]) == (1, {})
    assert table.refresh().arrow().to_pylist() == [{"name": "007", "v": 7.0, "ts": DAY.replace(hour=10)}]
    tokyo = ingest(tmp_path / "lake", tmp_path / "one.csv", "--timezone", "Asia/Tokyo", "--mode", "overwrite")
    assert tokyo["rows_removed"] == 1
    assert table.refresh().arrow()["ts"].to_pylist() == [DAY.replace(hour=1)]
    line = failed(tmp_path / "lake", text["csv"])
    assert line.startswith(f"Error: 3 of 5 rows of {text['csv']} do not fit")


def test_too_many_bad_rows_are_an_error_and_can_be_looked_at(
    spark: SparkSession, text: dict[str, Path], tmp_path: Path
) -> None:
    aside = tmp_path / "bad.jsonl"
    more = ["--schema", "ts timestamp, v double, name string", "--bad-rows", str(aside), "--max-bad-rows"]
    line = failed(tmp_path / "lake", text["csv"], *more, "2")
    assert line == (
        f"Error: 3 rows of {text['csv']} do not fit, more than --max-bad-rows 2; they are in {aside}; "
        "nothing was written\n"
    )
    assert aside.read_text().count("\n") == 3
    assert ingest(tmp_path / "lake", text["csv"], *more, "3")["bad_rows"] == 3


@pytest.mark.parametrize(
    ("names", "more", "message"),
    [
        (["none.csv"], [], "has no header; the first line of a CSV file names its columns"),
        (["a.csv"], ["--schema", "n int, apps string"], "has no column 'apps'; did you mean 'app'?"),
        (["a.csv", "b.csv"], [], ".csv is n, app, and not app, n; files of one source have the same columns"),
        (["twice.csv"], [], "twice.csv is n, n, and not n0, n1; files of one source have the same columns, each once"),
        (
            ["a.csv"],
            ["--schema", "n int, app map<string,string>"],
            "The CSV datasource doesn't support the column `app`",
        ),
        (["case.json"], [], "case.json cannot be read: The column `a` already exists"),
        (["pretty.json"], [], "(not one JSON object, or a value of another type)"),
        (["none.json"], [], "no line of "),
    ],
)
def test_bad_files_are_one_line(
    spark: SparkSession, tmp_path: Path, names: list[str], more: list[str], message: str
) -> None:
    texts = {
        "a.csv": "app,n\nx,1\n",
        "b.csv": "n,app\n1,x\n",
        "twice.csv": "n,n\n1,2\n",
        "case.json": '{"a": 1, "A": 2}\n',
        "pretty.json": '[\n  {"a": 1}\n]\n',
    }
    folder = tmp_path / "source"
    folder.mkdir()
    for name in names:
        (folder / name).write_text(texts.get(name, ""))
    line = failed(tmp_path / "lake", folder / names[0] if len(names) == 1 else folder, *more)
    assert line.startswith("Error: ")
    assert line.count("\n") == 1
    assert message in line


# Hive layouts, and rows of DataFrames


def test_nothing_but_notes_stands_on_stderr(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "source").mkdir()
    source = write("hive", tmp_path / "source")
    words = ["ingest", str(source), "web.t", "--warehouse", str(tmp_path / "lake")]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, done.output
    hint = 'to be sure, declare it: --source-partition-by "app string"'
    assert done.stderr == f"note: {source}: partitioned as one branch shows; {hint}\n"


@pytest.mark.slow
def test_a_layout_may_have_any_number_of_directories(spark: SparkSession, tmp_path: Path) -> None:
    """More than the 50,000 partitions and 10,000 List calls that a query may have; most are empty."""
    for i in range(50_001):
        (tmp_path / "source" / f"k={i}").mkdir(parents=True)
    for i in (7, 50_000):
        pq.write_table(pa.table({"id": [i]}), tmp_path / "source" / f"k={i}" / "a.parquet")
    words = ["ingest", str(tmp_path / "source"), "web.t", "--warehouse", str(tmp_path / "lake")]
    done = CliRunner().invoke(main, [*words, "--source-partition-by", "k int"])
    assert (done.exit_code, done.stderr) == (0, ""), done.output
    assert rows_of(tmp_path / "lake", "id") == [{"id": 7, "k": 7}, {"id": 50_000, "k": 50_000}]


def test_runs_of_dataframes_are_committed_once(spark: SparkSession, tmp_path: Path) -> None:
    table = penstock.connect(tmp_path / "lake").create_table("web.t", "id bigint, n bigint")
    rows = spark.createDataFrame(pa.table({"id": [1, 2], "n": [10, 20]}))
    writes = {
        "append": lambda: table.append(rows, run_id="append"),
        "upsert": lambda: table.upsert(rows.selectExpr("id + 1 AS id", "n"), "id", run_id="upsert"),
        "merge": lambda: table.merge(rows, "id", run_id="merge").when_matched_update({"n": "target.n * 2"}).execute(),
        "overwrite": lambda: table.overwrite(rows, "id = 1 OR id = 2", run_id="overwrite"),
    }
    for name, write_rows in writes.items():
        first = write_rows()
        assert first.snapshot_id is not None
        state = bag(table.refresh().arrow())
        again = write_rows()
        assert (again.already_committed, again.snapshot_id, again.rows_added) == (True, first.snapshot_id, 0), name
        assert bag(table.refresh().arrow()) == state


@pytest.mark.parametrize("kind", ["orc", "avro", "csv", "json", "text"])
def test_layouts_of_every_format(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    for app in ("app0", "app1", "app2"):
        path = tmp_path / "source" / f"app={app}" / "part-0"
        rows = pa.table({"id": [row["id"] for row in ROWS if row["app"] == app]})
        if kind == "text":
            path.parent.mkdir(parents=True)
            path.write_text("".join(f"{n}\n" for n in rows["id"].to_pylist()))
        else:
            write_as(kind, path, rows)
    text = kind in ("csv", "json")
    more = ["--format", kind, "--source-partition-by", "app string", *(["--schema", "id bigint"] if text else [])]
    if kind == "avro" and not has_avro(spark):
        pytest.skip("this Spark has no reader of Avro")
    done = ingest(tmp_path / "lake", tmp_path / "source", "--partition-by", "app", "--coalesce", "app", *more)
    assert (done["made"], done["rows_added"], done["files_added"]) == (True, 12, 1)
    table = penstock.connect(tmp_path / "lake").table("web.t")
    column = "value" if kind == "text" else "id"
    assert bag([{"id": int(row[column]), "app": row["app"]} for row in table.arrow().to_pylist()]) == bag(ROWS)


def test_options_of_files_are_sparks(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("1;a\n2;b\n")
    more = ["--option", "sep=;", "--option", "header=false", "--schema", "_c0 int, _c1 string"]
    assert ingest(tmp_path / "lake", tmp_path / "rows.csv", *more)["rows_added"] == 2
    rows = penstock.connect(tmp_path / "lake").table("web.t").arrow().to_pylist()
    assert sorted(row["_c1"] for row in rows) == ["a", "b"]
    assert "CSV files have no option 'sepp'; did you mean 'sep'?" in failed(
        tmp_path / "lake", tmp_path / "rows.csv", "--option", "sepp=;"
    )
