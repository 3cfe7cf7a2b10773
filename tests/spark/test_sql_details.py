"""What statements say: errors, plans, and descriptions of tables, partitions and rows."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import AnalysisException

import penstock
from penstock.spark.session.java_classes import call
from penstock.spark.session.session import gateway_of
from tests.spark.hive_layouts import read_by
from tests.spark.sql_session import SPARK, Sql, files_below, message_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

CATALOG = "details"


# NULL among literals, which Spark evaluates while it plans


@pytest.mark.parametrize(
    ("statement", "column"),
    [
        ("INSERT INTO {} VALUES (NULL, 'a', NULL)", "id"),
        ("INSERT INTO {} (app, id, s) VALUES ('a', NULL, NULL)", "id"),
        ("INSERT INTO {} VALUES (1, 'a', named_struct('a', NULL))", "s.a"),
        ("INSERT OVERWRITE {} VALUES (1, 'a', NULL), (NULL, 'a', NULL)", "id"),
        ("INSERT INTO {} REPLACE WHERE app = 'a' VALUES (NULL, 'a', NULL)", "id"),
        ("INSERT INTO {} SELECT NULL, 'a', NULL", "id"),
    ],
)
def test_null_among_values_is_one_line(sql: Sql, name: str, statement: str, column: str) -> None:
    sql(f"CREATE TABLE {name} (id bigint NOT NULL, app string, s struct<a: int NOT NULL>) PARTITIONED BY (app)")
    message = message_of(sql, statement.format(name))
    assert message.startswith(f"column {column} of web.{name} is NOT NULL, and a row has NULL in it; filter these rows")
    assert sql(f"SELECT * FROM {name}") == []


@pytest.mark.parametrize(
    "write",
    [
        lambda rows, table: rows.writeTo(table).append(),
        lambda rows, table: rows.writeTo(table).overwritePartitions(),
        lambda rows, table: rows.write.insertInto(table),
        lambda rows, table: rows.write.mode("append").saveAsTable(table),
    ],
    ids=["writeTo", "overwritePartitions", "insertInto", "saveAsTable"],
)
@pytest.mark.parametrize(
    "rows", ["VALUES (CAST(NULL AS bigint), 'a')", "SELECT if(id = 3, NULL, id), 'a' FROM range(5)"]
)
def test_null_in_rows_of_a_dataframe_is_one_line(
    session: SparkSession, sql: Sql, name: str, write: Callable[[Any, str], None], rows: str
) -> None:
    sql(f"CREATE TABLE {name} (id bigint NOT NULL, app string) PARTITIONED BY (app)")
    df = session.sql(rows).toDF("id", "app")
    message = message_of(lambda _: write(df, f"web.{name}"), "")  # type: ignore[arg-type, return-value]
    assert message.startswith(f"column id of web.{name} is NOT NULL")
    assert sql(f"SELECT * FROM {name}") == []


def test_table_of_a_statement_is_forgotten_when_the_statement_is_planned(session: SparkSession, name: str) -> None:
    """Else an error about NULL in somebody else's table would name it."""
    session.sql(f"CREATE TABLE {name} (id bigint NOT NULL)")
    session.sql(f"INSERT INTO {name} VALUES (1)")
    assert call(gateway_of(session), "WriteTarget", "take") is None


# EXPLAIN


@pytest.mark.parametrize("mode", ["", "EXTENDED", "FORMATTED"])
@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM {} WHERE id = 1",
        "DELETE FROM {0} WHERE id IN (SELECT max(id) FROM {0} x)",
        "INSERT OVERWRITE {} VALUES (1, 'a')",
        "INSERT INTO {} REPLACE WHERE app = 'a' VALUES (1, 'a')",
        "INSERT INTO {0} SELECT * FROM {0}",
        "SELECT *, _file, _pos FROM {}",
    ],
)
def test_plans_show_no_internal_names(session: SparkSession, sql: Sql, name: str, statement: str, mode: str) -> None:
    sql(f"CREATE TABLE {name} PARTITIONED BY (app) AS SELECT 1 AS id, 'a' AS app")
    for overwrite in ("static", "dynamic"):
        session.conf.set("spark.sql.sources.partitionOverwriteMode", overwrite)
        ((plan,),) = sql(f"EXPLAIN {mode} {statement.format(name)}")
        assert f"web.{name}" in plan or "penstock:/" in plan
        assert "__penstock" not in plan
    session.conf.unset("spark.sql.sources.partitionOverwriteMode")


# SHOW CREATE TABLE


def test_what_show_create_table_prints_is_executed_as_it_stands(sql: Sql, lake: penstock.Lake, name: str) -> None:
    """Spark 4.3 writes `STRING COLLATE UTF8_BINARY`, which is its plain string, for tables of any kind."""
    sql(
        rf"""CREATE TABLE {name} (id bigint NOT NULL COMMENT 'unique', app string COMMENT 'it\'s', ts timestamp,
        s struct<a: string, `b c`: map<string, array<string>>> NOT NULL, d decimal(10, 2), n timestamp_ntz)
        PARTITIONED BY (app, days(ts), bucket(4, id)) COMMENT 'some "rows"' TBLPROPERTIES ('own' = 'it\'s')"""
    )
    ((text,),) = sql(f"SHOW CREATE TABLE {name}")
    described, schema = sql(f"DESCRIBE {name}"), lake.table(f"web.{name}").table.schema()
    sql(f"DROP TABLE {name} PURGE")
    sql(text)
    assert sql(f"DESCRIBE {name}") == described
    assert lake.table(f"web.{name}").table.schema() == schema
    assert sql(f"SHOW CREATE TABLE {name}") == [(text,)]
    sql(f"INSERT INTO {name} VALUES (1, 'a', now(), named_struct('a', 'x', 'b c', map('k', array('v'))), 1, NULL)")
    assert sql(f"SELECT id FROM {name} WHERE app = 'a' AND s.a = 'x'") == [(1,)]


def test_show_create_table_of_a_place_that_was_chosen(sql: Sql, name: str, tmp_path: Path) -> None:
    sql(f"CREATE TABLE {name} (app string) LOCATION '{tmp_path / 'own'}'")
    ((text,),) = sql(f"SHOW CREATE TABLE {name}")
    sql(f"DROP TABLE {name} PURGE")
    sql(text)
    sql(f"INSERT INTO {name} VALUES ('a')")
    assert len(files_below(tmp_path / "own")) == 1


@pytest.mark.skipif(SPARK < (4, 3), reason="older versions do not write the collation")
def test_collations_are_those_that_spark_prints_for_its_own_tables(sql: Sql, name: str) -> None:
    sql(f"CREATE TABLE {name} (app string)")
    sql(f"CREATE TABLE spark_catalog.default.{name} (app string) USING parquet")
    texts = [sql(f"SHOW CREATE TABLE {table}")[0][0] for table in (name, f"spark_catalog.default.{name}")]
    sql(f"DROP TABLE spark_catalog.default.{name}")
    assert ["STRING COLLATE UTF8_BINARY" in text for text in texts] == [True, True]


# DESCRIBE … PARTITION


def details(rows: list[tuple[Any, ...]]) -> dict[str, str]:
    """What DESCRIBE says of a partition below its columns."""
    shown = [row[:2] for row in rows]
    return dict(shown[shown.index(("# Detailed Partition Information", "")) + 1 :])


@pytest.mark.skipif(SPARK < (4, 3), reason="Spark describes partitions of such tables from 4.3 on")
def test_partitions_are_described_with_their_counts(sql: Sql, lake: penstock.Lake, name: str) -> None:
    sql(f"CREATE TABLE {name} (id int, app string, ts timestamp) PARTITIONED BY (app, days(ts))")
    day = "TIMESTAMP'2026-05-01'"
    for i in range(2):
        sql(f"INSERT INTO {name} VALUES ({i}, 'a', {day}), ({i}, 'a', {day} + INTERVAL 1 HOUR), (9, NULL, NULL)")
    plan = lake.table(f"web.{name}").plan("app = 'a'")
    described = details(sql(f"DESCRIBE EXTENDED {name} PARTITION (app = 'a', ts_day = DATE'2026-05-01')"))
    size = sum(task.size for task in plan.files)
    expected = {"numFiles": "2", "numRows": "4", "totalSize": str(size)}
    assert described == {"Partition Values": "[app=a, ts_day=2026-05-01]", **expected}
    none = details(sql(f"DESCRIBE EXTENDED {name} PARTITION (app = NULL, ts_day = NULL)"))
    assert (none["numRows"], none["numFiles"]) == ("2", "2")
    sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('penstock.coalesce.columns' = 'app')")
    sql(f"INSERT INTO {name} VALUES (1, 'b', {day}), (1, 'c', {day}), (2, 'c', {day})")
    of_c = f"{name} PARTITION (app = 'c', ts_day = DATE'2026-05-01')"
    shared = details(sql(f"DESCRIBE EXTENDED {of_c}"))
    assert (shared["numRows"], shared["numFiles"]) == ("2", "1")
    assert "# Detailed Partition Information" not in {row[0] for row in sql(f"DESCRIBE {of_c}")}


# Hidden columns


def test_spec_and_partition_of_the_file_are_hidden_columns(sql: Sql, session: SparkSession, name: str) -> None:
    sql(f"CREATE TABLE {name} (id int, app string, ts timestamp) PARTITIONED BY (app, days(ts), bucket(4, id))")
    sql(f"INSERT INTO {name} VALUES (1, 'a', TIMESTAMP'2026-05-01 10:00:00'), (2, NULL, NULL), (3, 'b', NULL)")
    rows = sql(f"SELECT id, _spec_id, _partition.app, _partition.ts_day, _partition.id_bucket FROM {name} ORDER BY id")
    days = [date(2026, 5, 1), None, None]
    assert [row[:4] for row in rows] == [(1, 0, "a", days[0]), (2, 0, None, None), (3, 0, "b", None)]
    assert all(0 <= row[4] < 4 for row in rows)
    assert sql(f"SELECT * FROM {name} WHERE id = 3") == [(3, "b", None)]
    assert session.table(f"web.{name}").select("_partition").schema["_partition"].dataType.simpleString() == (
        "struct<app:string,ts_day:date,id_bucket:int>"
    )
    ((file, place, spec),) = sql(f"SELECT _file, _pos, _spec_id FROM {name} WHERE _metadata.row_index = 0 AND id = 1")
    assert (file.endswith(".parquet"), place, spec) == (True, 0, 0)


def test_files_of_other_specs_have_null_in_fields_of_theirs_they_lack(sql: Sql, lake: penstock.Lake, name: str) -> None:
    sql(f"CREATE TABLE {name} (id int, app string, day int) PARTITIONED BY (day, app)")
    sql(f"INSERT INTO {name} VALUES (1, 'a', 1), (2, 'b', 1)")
    sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('penstock.coalesce.columns' = 'app')")
    sql(f"INSERT INTO {name} VALUES (3, 'a', 2), (4, 'b', 2)")
    rows = sql(f"SELECT id, _spec_id, _partition.day, _partition.app FROM {name} ORDER BY id")
    assert rows == [(1, 0, 1, "a"), (2, 0, 1, "b"), (3, 1, 2, None), (4, 1, 2, None)]
    counts = sql(f"SELECT _spec_id, count(*), count(DISTINCT _file) FROM {name} GROUP BY _spec_id ORDER BY 1")
    assert counts == [(0, 2, 2), (1, 2, 1)]


@pytest.mark.parametrize(
    ("condition", "rows", "files"),
    [
        ("_spec_id = 0", 2, 2),
        ("_spec_id = 1", 2, 1),
        ("_spec_id IN (5, 6)", 0, 0),
        ("_partition.app = 'a'", 1, 1),
        ("_partition.app IS NULL", 2, 1),
        ("_partition.day = 2 AND id = 3", 1, 1),
        ("_partition.app = app", 2, 2),  # Spark concludes that it is not NULL
        ("_spec_id = 0 OR day = 2", 4, 3),
        ("_partition.day < 2 AND _spec_id = 0 AND app = 'b'", 1, 1),
    ],
)
def test_filters_on_hidden_columns_leave_files_out(
    session: SparkSession, sql: Sql, condition: str, rows: int, files: int
) -> None:
    name = "filtered"
    if not session.catalog.tableExists(f"web.{name}"):
        sql(f"CREATE TABLE {name} (id int, app string, day int) PARTITIONED BY (day, app)")
        sql(f"INSERT INTO {name} VALUES (1, 'a', 1), (2, 'b', 1)")
        sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('penstock.coalesce.columns' = 'app')")
        sql(f"INSERT INTO {name} VALUES (3, 'a', 2), (4, 'b', 2)")
    df = session.sql(f"SELECT id FROM {name} WHERE {condition}")
    assert len(df.collect()) == rows
    assert sum(read_by(df).files) == files
    plan = df._jdf.queryExecution().executedPlan().toString()
    shown = [int(number) for number in re.findall(r"penstock:/(\d+) of \d+ files", plan)]
    assert sum(shown) == files or not shown


def test_partitions_of_layouts_and_of_tables_with_deletes(
    sql: Sql, lake: penstock.Lake, name: str, tmp_path: Path
) -> None:
    for app in "ab":
        (tmp_path / f"app={app}").mkdir()
        pq.write_table(pa.table({"id": [1, 2]}), tmp_path / f"app={app}" / "f.parquet")
    sql(f"CREATE TABLE {name} (id bigint, app string) USING parquet PARTITIONED BY (app) LOCATION '{tmp_path}'")
    assert sql(f"SELECT id, _partition.app, _spec_id FROM {name} WHERE _partition.app = 'b' ORDER BY id") == [
        (1, "b", 0),
        (2, "b", 0),
    ]
    sql(f"CREATE TABLE {name}_1 (`_spec_id` int, `_partition` string, x int)")
    sql(f"INSERT INTO {name}_1 VALUES (7, 'own', 1)")
    assert sql(f"SELECT _spec_id, _partition, _pos FROM {name}_1 WHERE _spec_id = 7") == [(7, "own", 0)]
    sql(f"CREATE TABLE {name}_2 (id int)")
    sql(f"INSERT INTO {name}_2 VALUES (1)")
    assert sql(f"SELECT id, _spec_id FROM {name}_2") == [(1, 0)]
    with pytest.raises(AnalysisException, match="_partition"):
        sql(f"SELECT _partition FROM {name}_2")
    sql(f"CREATE TABLE {name}_3 (`_spec_id` int, app string) PARTITIONED BY (app)")
    sql(f"INSERT INTO {name}_3 VALUES (7, 'a'), (8, 'b')")
    assert sql(f"SELECT _spec_id, _partition.app FROM {name}_3 WHERE _spec_id > 7") == [(8, "b")]


# What a query costs beside its rows


def test_query_loads_its_table_once_and_makes_nothing_known_again(
    session: SparkSession, sql: Sql, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pyiceberg.catalog.sql import SqlCatalog

    from penstock.spark.session import session as sessions

    sql(f"CREATE TABLE {name} AS SELECT 1 AS id")
    sql(f"SELECT * FROM {name}")
    calls: list[str] = []
    load, register, start = SqlCatalog.load_table, sessions.register, threading.Thread.start

    def counted(what: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call_it(*arguments: Any, **named: Any) -> Any:
            if what != "thread" or arguments[0].name.startswith("penstock"):
                calls.append(what)
            return function(*arguments, **named)

        return call_it

    monkeypatch.setattr(SqlCatalog, "load_table", counted("load", load))
    monkeypatch.setattr(sessions, "register", counted("register", register))
    monkeypatch.setattr(threading.Thread, "start", counted("thread", start))
    assert sql(f"SELECT * FROM {name}") == [(1,)]
    assert calls == ["load"]
