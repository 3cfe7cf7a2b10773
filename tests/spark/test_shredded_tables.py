"""Shredded tables in Spark against tables with plain maps: the same rows, and only the columns that a query needs.

The corpus runs over a table that Penstock wrote, and over one whose files differ: other hot keys, none, and rows that
another engine appended. What its scans read is taken from their physical plans.
"""

from __future__ import annotations

import datetime as dt
import random
import re
import shutil
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import penstock
from penstock.errors import PenstockError
from penstock.lake.managed_table import ManagedTable
from penstock.lake.write import changed_files
from penstock.spark.scan.shredded_map import rule_failures
from tests.fixtures.spark_settings import INTERPRETED
from tests.spark.hot_keys_corpus import COLD, HOT, QUERIES, READS, rows_of

pytestmark = pytest.mark.spark
SETTINGS = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.maxMetadataStringLength": "100000",
    **INTERPRETED,
    "spark.sql.session.timeZone": "UTC",
}
COLUMNS = "id bigint, g int, headers map<string,string>"
Rows = list[dict[str, Any]]


def make_rows(count: int, first: int, holes: bool = True) -> Rows:
    """Maps of hot and cold keys; with holes there are explicit nulls, empty maps and no maps."""
    rng = random.Random(first)
    rows: Rows = []
    for i in range(first, first + count):
        headers = {k: f"v{rng.randrange(6)}" for k in HOT + COLD if rng.random() < 0.6}
        if holes:
            headers = {k: None if rng.random() < 0.2 else v for k, v in headers.items()}  # type: ignore[misc]
        entries = None if holes and i % 11 == 0 else [] if holes and i % 13 == 0 else list(headers.items())
        rows.append({"id": i, "g": i % 3, "headers": entries})
    return rows


def append(table: ManagedTable, rows: Rows) -> None:
    table.append(pa.Table.from_pylist(rows, schema=table.schema))


def append_by_another(lake: penstock.Lake, name: str, rows: Rows) -> None:
    """Rows with whole maps and no sidecars."""
    theirs = lake.catalog.load_table(name)
    wanted = theirs.schema().as_arrow()
    fields = [wanted.field(n) for n in ("id", "g", "headers")]
    theirs.append(pa.Table.from_pylist(rows, schema=pa.schema(fields)))


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[penstock.Lake]:
    before = {key: spark.conf.get(key, None) for key in SETTINGS}
    for key, value in SETTINGS.items():
        spark.conf.set(key, value)
    yield penstock.connect(tmp_path_factory.mktemp("lake"))
    for key, kept in before.items():
        spark.conf.unset(key) if kept is None else spark.conf.set(key, kept)


@pytest.fixture(scope="module")
def frames(spark: SparkSession, lake: penstock.Lake) -> dict[str, DataFrame]:
    """A table whose sidecars say all, one with explicit nulls and no maps, one with files of all kinds; its twin."""
    spark.udf.register("shout", lambda text: text and text.upper())
    tables = {}
    for name, holes in (("exact", False), ("value", True)):
        tables[name] = lake.create_table(f"web.{name}", COLUMNS, shred={"headers": list(HOT)})
        append(tables[name], make_rows(60, 0, holes))
    mixed = lake.create_table("web.mixed", COLUMNS)
    append(mixed, make_rows(20, 0))
    for first, keys in ((100, list(HOT)), (200, ["c", "a"]), (300, ["b"])):
        mixed.set_shred({"headers": keys})
        append(mixed, make_rows(30, first))
    append_by_another(lake, "web.mixed", make_rows(30, 400))
    mixed.set_shred({"headers": penstock.Shred("a", "c", mode="mirror")})
    append(mixed, make_rows(30, 500))
    tables["mixed"] = mixed.refresh()
    tables["mixed plain"] = lake.create_table("web.mixed_plain", COLUMNS)
    every = [(20, 0), *((30, first) for first in (100, 200, 300, 400, 500))]
    append(tables["mixed plain"], [row for part in every for row in make_rows(*part)])
    return {name: table.dataframe(spark) for name, table in tables.items()}


def ask(frame: DataFrame, query: str) -> DataFrame:
    frame.createOrReplaceTempView("t")
    return frame.sparkSession.sql(query)


def scans_of(frame: DataFrame) -> list[str]:
    return re.findall(r"FileScan parquet.*", str(frame._jdf.queryExecution().executedPlan().toString()))


def reads_of(frame: DataFrame) -> set[str]:
    """What the scans read: `s` sidecars, `r` what is left of the map."""
    schemas = [scan.partition("ReadSchema: ")[2] for scan in scans_of(frame)]
    found = {"r" for schema in schemas if "headers:map" in schema}
    return found | {"s" for schema in schemas if "__map_shred_headers_" in schema}


def some_are_slow() -> list[Any]:
    """Every sixth query; the others wait for the slow run, where `test_hot_keys.py` asks all too."""
    return [
        pytest.param(needs, query, id=query, marks=[pytest.mark.slow] if i % 6 else [])
        for i, (needs, query) in enumerate(QUERIES)
    ]


@pytest.mark.parametrize(("needs", "query"), some_are_slow())
def test_corpus_over_tables(frames: dict[str, DataFrame], needs: str, query: str) -> None:
    for name in ("exact", "value"):
        expected = {part for need in needs for part in READS[name][need]}
        assert reads_of(ask(frames[name], query)) == expected, name
    assert rows_of(ask(frames["mixed"], query)) == rows_of(ask(frames["mixed plain"], query))


def test_no_rule_failed(spark: SparkSession, frames: dict[str, DataFrame]) -> None:
    assert rule_failures(spark) == (0, "")


def test_each_kind_of_file_is_read_its_own_way(spark: SparkSession, lake: penstock.Lake) -> None:
    table = lake.create_table("web.kinds", COLUMNS, shred={"headers": ["a", "b"]})
    append(table, make_rows(30, 0))
    table.set_shred({"headers": ["c"]})
    append(table, make_rows(30, 100))
    append_by_another(lake, "web.kinds", make_rows(30, 200))
    frame = table.refresh().dataframe(spark)
    found = ask(frame, "SELECT headers['a'] FROM t")
    schemas = sorted(scan.partition("ReadSchema: ")[2] for scan in scans_of(found))
    a = "__map_shred_headers_0:string"
    assert schemas == [
        f"struct<{a}>",  # written with the key a
        f"struct<headers:map<string,string>,{a}>",  # of another engine
        "struct<headers:map<string,string>>",  # written without it
    ]
    report = table.plan(columns=["headers['a']"]).report
    assert [(k.key, k.sidecar, k.both, k.map) for k in report.keys] == [("headers['a']", 1, 1, 1)]
    table.compact()
    (scan,) = scans_of(ask(table.dataframe(spark), "SELECT headers['c'] FROM t"))
    assert scan.endswith("ReadSchema: struct<__map_shred_headers_2:string>")


def test_files_and_row_groups_are_skipped_by_hot_keys(spark: SparkSession, lake: penstock.Lake) -> None:
    table = lake.create_table("web.skipped", COLUMNS, shred={"headers": ["a"]})
    for number, value in enumerate(["de", "fr", None]):
        rows = [{"id": 10 * number + i, "g": 0, "headers": [("a", value), ("z", "1")]} for i in range(4)]
        append(table, rows)
    append_by_another(lake, "web.skipped", [{"id": 40, "g": 0, "headers": [("a", "de")]}])
    table.refresh()
    cases = {
        "headers['a'] = 'de'": ([0, 1, 2, 3, 40], 2),
        "headers['a'] IN ('fr', 'xx')": ([10, 11, 12, 13], 2),
        "headers['a'] > 'e'": ([10, 11, 12, 13], 2),
        "headers['a'] LIKE 'd%'": ([0, 1, 2, 3, 40], 2),
        "headers['a'] IS NULL": ([20, 21, 22, 23], 2),
        "headers['a'] IS NULL AND map_contains_key(headers, 'a')": ([20, 21, 22, 23], 2),
        "headers['a'] IS NOT NULL": ([0, 1, 2, 3, 10, 11, 12, 13, 40], 3),
        "headers['a'] = 'xx'": ([], 1),
        "headers['z'] = '2'": ([], 4),
        "headers['a'] = 'de' AND headers['z'] = '1'": ([0, 1, 2, 3], 2),
    }
    frame = table.dataframe(spark)
    for where, (ids, files) in cases.items():
        assert len(table.plan(where).files) == files, where
        assert sorted(table.arrow(where, columns=["id"])["id"].to_pylist()) == ids, where
        found = frame.where(where).select("id")
        assert sorted(row.id for row in found.collect()) == ids, where
        read = sum(int(n) for scan in scans_of(found) for n in re.findall(r"penstock:/(\d+) of", scan))
        assert read == files, where
    scans = scans_of(frame.where("headers['a'] = 'de'").select("id"))
    pushed = {"headers:map" in scan: scan.partition("PushedFilters:")[2].partition("]")[0] for scan in scans}
    assert "EqualTo(__map_shred_headers_0,de)" in pushed[False]
    assert "__map_shred" not in pushed[True], "where another engine wrote, a null sidecar says nothing"


VALUES: dict[str, list[Any]] = {
    "string": ["", "x", "ünï" * 50],
    "int": [0, -1, 2**31 - 1],
    "bigint": [0, -(2**63)],
    "float": [0.5, float("nan"), float("-inf")],
    "double": [-0.25, float("nan")],
    "boolean": [True, False],
    "decimal(12,3)": [Decimal("1.500"), Decimal("-0.001")],
    "date": [dt.date(1969, 12, 31), dt.date(2026, 5, 17)],
    "timestamp": [dt.datetime(2026, 5, 17, 1, 2, 3, 4)],
    "timestamp_ntz": [dt.datetime(1969, 5, 17, 1, 2, 3, 4)],
    "binary": [b"", b"\x00\xff"],
}


@pytest.mark.parametrize(
    ("mode", "kinds"),
    [
        ("move", ["string", "double", "timestamp"]),
        ("mirror", ["string", "double"]),
        pytest.param("move", list(VALUES), marks=pytest.mark.slow),
    ],
    ids=["move", "mirror", "all types"],
)
def test_random_maps_round_trip(spark: SparkSession, lake: penstock.Lake, mode: str, kinds: list[str]) -> None:
    """One table with two maps of each type: a column, and a field of a structure."""
    keys = ["a", "b", "", "c,d", "it's", "z"]
    columns, rules, later = "id int", {}, {}
    values: list[list[Any]] = []
    shown = []
    for i, kind in enumerate(kinds):
        rng = random.Random(f"{kind} {mode}")
        hot = penstock.Shred(*rng.sample(keys, rng.randint(1, 4)), mode=mode)
        columns += f", m{i} map<string,{kind}>, s{i} struct<n:int,m:map<string,{kind}>>"
        rules |= {f"m{i}": hot, f"s{i}.m": hot}
        later |= {f"m{i}": penstock.Shred("z", "a", mode=mode), f"s{i}.m": None}
        maps = [(some_map(rng, keys, kind), rng.choice([None, (n, some_map(rng, keys, kind))])) for n in range(40)]
        values += [list(column) for column in zip(*maps, strict=True)]
        shown += [f'm{i}["{k}"], s{i}.m["{k}"], map_contains_key(m{i}, "{k}")' for k in keys if "'" not in k]
    table = lake.create_table(f"web.random_{mode}", columns, shred=rules)
    given = spark.createDataFrame(list(zip(range(40), *values, strict=True)), columns)
    table.append(given)
    expected = rows_of(given)
    for frame in (table.dataframe(spark), table.dataframe(spark).where("id >= 0")):
        assert rows_of(frame) == expected
    given.createOrReplaceTempView("given")
    judged = rows_of(spark.sql(f"SELECT id, {', '.join(shown)} FROM given"))
    table.dataframe(spark).createOrReplaceTempView("t")
    assert rows_of(spark.sql(f"SELECT id, {', '.join(shown)} FROM t")) == judged
    table.set_shred(later)
    table.append(given)
    assert rows_of(table.dataframe(spark)) == sorted([*expected, *expected])
    table.compact()
    assert rows_of(table.dataframe(spark)) == sorted([*expected, *expected])
    assert len(table.plan().files) == 1


def some_map(rng: random.Random, keys: list[str], kind: str) -> Any:
    entries = {k: rng.choice([None, *VALUES[kind]]) for k in keys if rng.random() < 0.5}
    return rng.choice([None, {}, entries, entries, entries])


def test_map_that_was_renamed_widened_and_joined_by_columns(spark: SparkSession, lake: penstock.Lake) -> None:
    table = lake.create_table("web.evolved", "id int, m map<string,int>", shred={"m": ["a"]})
    m = [[("a", 1), ("b", 2)], None, [("a", None)]]
    append(table, [{"id": i, "m": entries} for i, entries in enumerate(m)])
    with table.table.update_schema() as change:
        change.rename_column("m", "other")
        change.update_column(("m", "value"), penstock_long())
    with table.refresh().table.update_schema() as change:
        change.add_column("m", penstock_long())
    table.refresh()
    expected = [(0, {"a": 1, "b": 2}, None), (1, None, None), (2, {"a": None}, None)]
    frame = table.dataframe(spark)
    assert [tuple(row) for row in frame.orderBy("id").collect()] == expected
    assert [row[0] for row in ask(frame, "SELECT other['a'] + 1 FROM t WHERE other['a'] = 1").collect()] == [2]
    assert "__map_shred_m_0" in scans_of(ask(frame, "SELECT id FROM t WHERE other['a'] = 1"))[0]
    table.set_shred({"m": None, "other": ["a"]})
    table.append(spark.createDataFrame([(9, {"a": 2**40}, 5)], "id int, other map<string,bigint>, m bigint"))
    found = ask(table.dataframe(spark), "SELECT id FROM t WHERE other['a'] >= 1 ORDER BY id").collect()
    assert [row.id for row in found] == [0, 9]


def penstock_long() -> Any:
    from pyiceberg.types import LongType

    return LongType()


def test_sidecar_that_somebody_dropped_is_an_error(spark: SparkSession, lake: penstock.Lake) -> None:
    table = lake.create_table("web.dropped", "id int, m map<string,int>", shred={"m": ["a"]})
    append(table, [{"id": 1, "m": [("a", 1)]}])
    with table.table.update_schema() as change:
        change.delete_column("__map_shred_m_0")
    with pytest.raises(PenstockError, match="__map_shred_m_0, which the table does not have any more"):
        table.refresh().dataframe(spark)


def test_overwrites_deletes_and_compactions_in_spark(
    spark: SparkSession, lake: penstock.Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = lake.create_table(
        "web.written", f"{COLUMNS}, day date", ["day", "g"], coalesce="g", shred={"headers": ["a", "b"]}
    )
    rows = [{**row, "day": dt.date(2026, 5, 1 + row["id"] % 2)} for row in make_rows(60, 0)]
    given = spark.createDataFrame(pa.Table.from_pylist(rows, schema=table.schema))
    table.append(given)
    monkeypatch.setattr(changed_files, "LOCALLY", 0)
    table.delete("headers['a'] = 'v1'")
    judge = given.where("NOT coalesce(headers['a'] = 'v1', false)")
    assert rows_of(table.dataframe(spark)) == rows_of(judge)
    table.overwrite(given.where("g = 1"), where="g = 1")
    judge = judge.where("g <> 1").unionAll(given.where("g = 1"))
    assert rows_of(table.dataframe(spark)) == rows_of(judge)
    table.set_shred({"headers": ["a", "c"]})
    table.compact()
    assert rows_of(table.dataframe(spark)) == rows_of(judge)
    assert {key.both + key.map for key in table.plan(columns=["headers['c']"]).report.keys} == {0}
    given.write.format("penstock").options(warehouse=str(lake.warehouse), table="web.written").mode("overwrite").save()
    assert rows_of(table.refresh().dataframe(spark)) == rows_of(given)
    assert {key.both + key.map for key in table.plan(columns=["headers['c']"]).report.keys} == {0}


def test_keys_that_are_found_by_a_dataframe(spark: SparkSession, lake: penstock.Lake) -> None:
    table = lake.create_table("web.found", "id bigint, m map<string,string>", shred={"m": "auto"})
    often = "map('often', string(id), 'half', if(id % 2 = 0, 'x', NULL), concat('seldom', id), 'y')"
    given = spark.range(500).selectExpr("id", f"{often} AS m")
    table.append(given)
    assert rows_of(table.dataframe(spark)) == rows_of(given)
    (scan,) = scans_of(ask(table.dataframe(spark), "SELECT m['often'], m['half'] FROM t"))
    assert "m:map" not in scan.partition("ReadSchema: ")[2]
    assert [sidecar.key for sidecar in table.version.sidecars] == ["half", "often"]


def test_layout_whose_files_say_their_keys(spark: SparkSession, lake: penstock.Lake, tmp_path: Path) -> None:
    rules: list[Any] = [["a", "b"], ["b"], None, penstock.Shred("a", mode="mirror"), ["a", "b"]]
    rows = make_rows(30, 0)
    for day, keys in enumerate(rules):
        table = lake.create_table(f"web.day{day}", COLUMNS, shred=None if keys is None else {"headers": keys})
        append(table, rows)
        (tmp_path / f"day={day}").mkdir()
        path = table.plan().files[0].path.removeprefix("file://")
        shutil.copy(path, tmp_path / f"day={day}" / "part.parquet")
    layout = penstock.hive(tmp_path, "day int")
    assert layout.schema.names == ["id", "g", "headers", "day"]
    judge = spark.createDataFrame(pa.Table.from_pylist(rows, schema=lake.table("web.day2").schema)).cache()
    frame = layout.dataframe(spark)
    for day in range(len(rules)):
        assert rows_of(frame.where(f"day = {day}").drop("day")) == rows_of(judge)
        found = layout.arrow(f"day = {day} AND headers['a'] = 'v1'", columns=["id", "headers['b']"]).to_pylist()
        wanted = ask(judge, "SELECT id, headers['b'] FROM t WHERE headers['a'] = 'v1'").collect()
        assert sorted(tuple(row.values()) for row in found) == sorted(map(tuple, wanted))
    first = [scan for scan in scans_of(ask(frame, "SELECT headers['a'] FROM t WHERE day = 0")) if "penstock:/1" in scan]
    assert [scan.partition("ReadSchema: ")[2] for scan in first] == ["struct<__map_shred_headers_0:string>"]
    declared = penstock.hive(tmp_path, "day int", schema=COLUMNS)
    assert rows_of(declared.dataframe(spark).where("day = 2").drop("day")) == rows_of(judge)
    with pytest.raises(PenstockError, match="shredded=True"):
        declared.dataframe(spark).collect()
    known = penstock.hive(tmp_path, "day int", schema=COLUMNS, shredded=True)
    assert rows_of(known.dataframe(spark)) == rows_of(frame)
