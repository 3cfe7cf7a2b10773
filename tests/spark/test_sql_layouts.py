"""Hive layouts in SQL: declared in all of Spark's ways, read, and refused where they are written."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet as pq
import pytest

import penstock
from tests.spark.sql_session import Sql, declare, files_below, message_of

if TYPE_CHECKING:
    pass

pytestmark = pytest.mark.spark
CATALOG = "layouts"


def test_hive_layout_is_a_table(sql: Sql, name: str, layout: Path) -> None:
    before = files_below(layout)
    declare(sql, name, layout)
    assert sql(f"SELECT id FROM {name} WHERE dt = DATE'2026-01-02' AND app = 'c'") == [(22,)]
    assert sql(f"SELECT count(*), sum(id) FROM {name}") == [(16, 424)]
    assert sql(f"DESCRIBE {name}")[:3] == [("id", "bigint", None), ("dt", "date", None), ("app", "string", None)]
    assert len(sql(f"SHOW PARTITIONS {name}")) == 16
    assert sql(f"SHOW PARTITIONS {name} PARTITION (app = 'a')")[0] == ("dt=2026-01-01/app=a",)
    for statement in (
        f"INSERT INTO {name} VALUES (1, DATE'2026-01-01', 'x')",
        f"DELETE FROM {name} WHERE id = 11",
        f"TRUNCATE TABLE {name}",
        f"ALTER TABLE {name} ADD COLUMN x int",
        f"INSERT OVERWRITE {name} VALUES (1, DATE'2026-01-01', 'x')",
        f"CREATE OR REPLACE TABLE {name} AS SELECT 1 AS id",
    ):
        assert f"web.{name}" in message_of(sql, statement)
    assert "files of" in message_of(sql, f"DROP TABLE {name} PURGE") or sql(f"SELECT count(*) FROM {name}")
    sql(f"DROP TABLE IF EXISTS {name}")
    assert files_below(layout) == before


@pytest.mark.filterwarnings("ignore:.*partitioned as one branch shows")
def test_layouts_are_declared_in_all_of_sparks_ways(sql: Sql, lake: penstock.Lake, name: str, layout: Path) -> None:
    before = files_below(layout.parent)
    place = f"LOCATION '{layout}'"
    ways = [
        f"CREATE EXTERNAL TABLE {{}} (id bigint, dt date, app string) PARTITIONED BY (dt, app) {place}",
        f"CREATE TABLE {{}} (id bigint) PARTITIONED BY (dt date, app string) STORED AS PARQUET {place}",
        f"CREATE TABLE {{}} USING parquet OPTIONS (max_partitions 70, timezone 'Europe/Paris') {place}",
    ]
    for i, way in enumerate(ways):
        sql(way.format(f"{name}_{i}"))
        assert sql(f"SELECT id FROM {name}_{i} WHERE dt = DATE'2026-01-02' AND app = 'c'") == [(22,)], way
    options: Any = lake.table(f"web.{name}_2")
    assert (options.limits.max_partitions, options.context.timezone) == (70, "Europe/Paris")
    ((text,),) = sql(f"SHOW CREATE TABLE {name}_2")
    sql(f"DROP TABLE {name}_2")
    sql(text)
    assert lake.table(f"web.{name}_2").limits.max_partitions == 70
    described = {row[0]: row[1] for row in sql(f"DESCRIBE EXTENDED {name}_0")}
    assert (described["Type"], described["Provider"]) == ("EXTERNAL", "parquet")
    assert described["Location"].endswith(str(layout))
    assert sql(f"SELECT app, files FROM web.{name}_0.logical_partitions WHERE dt = DATE'2026-01-02' AND app = 'c'") == [
        ("c", 1)
    ]
    assert f"web.{name}_0" in message_of(sql, f"SELECT * FROM web.{name}_0.snapshots")
    assert files_below(layout.parent) == before


@pytest.mark.filterwarnings("ignore:.*partitioned as one branch shows")
def test_what_is_no_layout_is_refused_and_puts_no_table_among_its_files(
    sql: Sql, lake: penstock.Lake, name: str, layout: Path, tmp_path: Path
) -> None:
    before = set(layout.rglob("*"))
    sql(f"CREATE EXTERNAL TABLE {name}_1 USING parquet LOCATION '{layout}'")
    pq.write_table(pa.table({"id": [1]}), tmp_path / "plain.parquet")
    for statement in (
        "CREATE TABLE {} (id int) STORED AS ORC",
        f"CREATE TABLE {{}} (id int) STORED AS TEXTFILE LOCATION '{tmp_path}'",
        "CREATE TABLE {} (id int) USING csv",
        f"CREATE TABLE {{}} (id bigint) USING csv OPTIONS (headr 'true') PARTITIONED BY (id) LOCATION '{layout}'",
        "CREATE TABLE {} (id int) ROW FORMAT DELIMITED FIELDS TERMINATED BY ','",
        f"CREATE TABLE {{}} (id bigint) USING parquet LOCATION '{layout}'",
        f"CREATE TABLE {{}} USING parquet OPTIONS (max_partition 7) LOCATION '{layout}'",
        f"CREATE TABLE {{}} USING parquet LOCATION '{layout}/new' AS SELECT 1 AS id",
        f"CREATE TABLE {{}} (id bigint) LOCATION '{layout}'",
        f"CREATE TABLE {{}} (id bigint) LOCATION '{layout}/dt=2026-01-01'",
        f"CREATE TABLE {{}} (id bigint) LOCATION '{tmp_path}'",
    ):
        assert f"web.{name}" in message_of(sql, statement.format(name)), statement
    assert not lake.has_table(f"web.{name}")
    assert set(layout.rglob("*")) == before
    assert [path.name for path in tmp_path.iterdir()] == ["plain.parquet"]


FILES = {
    "csv": (b"id;name\n1;a\n2;\n", "OPTIONS (header 'true', sep ';')"),
    "json": (b'{"id":1,"name":"a"}\n{"id":2}\n', ""),
    "text": (b"a\n\n", ""),
}


@pytest.mark.parametrize("kind", FILES)
def test_layouts_of_text_are_declared_with_the_options_of_their_files(
    sql: Sql, lake: penstock.Lake, name: str, tmp_path: Path, kind: str
) -> None:
    content, options = FILES[kind]
    for day in ("2026-01-01", "2026-01-02"):
        (tmp_path / f"dt={day}").mkdir()
        (tmp_path / f"dt={day}" / "part-0").write_bytes(content)
    columns = "value string" if kind == "text" else "id int, name string"
    sql(f"CREATE TABLE {name} ({columns}, dt date) USING {kind} {options} PARTITIONED BY (dt) LOCATION '{tmp_path}'")
    rows = [("a",), ("",)] if kind == "text" else [(1, "a"), (2, None)]
    assert sorted(sql(f"SELECT * EXCEPT (dt) FROM {name} WHERE dt = DATE'2026-01-02'"), key=str) == sorted(
        rows, key=str
    )
    assert lake.table(f"web.{name}").plan("dt = '2026-01-02'").report.files.kept == 1
    assert lake.table(f"web.{name}").arrow().num_rows == 4
    described = {row[0]: row[1] for row in sql(f"DESCRIBE EXTENDED {name}")}
    assert described["Provider"] == kind
    ((text,),) = sql(f"SHOW CREATE TABLE {name}")
    sql(f"DROP TABLE {name}")
    sql(text)
    assert sql(f"SELECT count(*) FROM {name}") == [(4,)]


def test_files_without_directories_are_a_table(sql: Sql, name: str, tmp_path: Path) -> None:
    pa.orc.write_table(pa.table({"_col0": [1, 2], "_col1": ["a", None]}), tmp_path / "000000_0")
    sql(f"CREATE TABLE {name} (id bigint, name string) STORED AS ORC LOCATION '{tmp_path}'")
    assert sql(f"SELECT * FROM {name} WHERE id > 1") == [(2, None)]
    (tmp_path / "p").mkdir()
    pq.write_table(pa.table({"id": [7]}), tmp_path / "p" / "a.parquet")
    sql(f"CREATE TABLE {name}_1 (id bigint) USING parquet LOCATION '{tmp_path / 'p'}'")
    assert sql(f"SELECT * FROM {name}_1") == [(7,)]
