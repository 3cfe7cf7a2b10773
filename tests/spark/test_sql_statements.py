"""Statements that only a lake has: rules as properties, procedures, Penstock's metadata tables, pruning.

What Iceberg has too is judged by its own runtime: `interop/test_sql_judges.py`.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import penstock
from penstock.errors import PenstockWarning
from penstock.tables.file_metadata import spark_url
from tests.spark.hive_layouts import read_by
from tests.spark.sql_session import COALESCED, SPARK, Sql, declare, message_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
CATALOG = "statements"


# Rules as properties


def test_rules_are_properties_of_a_new_table(sql: Sql, lake: penstock.Lake, name: str) -> None:
    sql(COALESCED.format(name))
    sql(f"INSERT INTO {name} SELECT id, concat('app', id % 10), map('k', string(id), 'other', 'x') FROM range(100)")
    table: Any = lake.table(f"web.{name}")
    assert table.coalesce == penstock.Coalesce("app")
    assert list(table.shred) == ["headers"]
    assert len(table.plan().files) == 1
    assert sql(f"SELECT sum(headers['k']), count(headers['other']) FROM {name} WHERE app = 'app7'") == [(520.0, 10)]
    assert sql(f"SELECT column, key FROM web.{name}.hot_keys") == [("headers", "k")]
    logical = sql(f"SELECT app, rows FROM web.{name}.logical_partitions ORDER BY app")
    assert logical == [(f"app{i}", 10) for i in range(10)]
    assert sql(f"SHOW TBLPROPERTIES {name} ('penstock.coalesce.columns')") == [("penstock.coalesce.columns", "app")]
    set_shred = f"CALL {CATALOG}.system.set_shred(table => 'web.{name}', column => 'headers'"
    assert sql(f"{set_shred}, keys => 'k,other')") == [("headers: k, other",)]
    assert sql(f"{set_shred})") == [("none",)]


def test_rules_are_changed_by_alter_table(sql: Sql, lake: penstock.Lake, name: str) -> None:
    sql(COALESCED.format(name))
    sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('penstock.coalesce.below-bytes' = '1MB', 'other' = 'x')")
    assert lake.table(f"web.{name}").coalesce == penstock.Coalesce("app", below="1MB")
    sql(f"ALTER TABLE {name} UNSET TBLPROPERTIES ('penstock.coalesce.columns', 'penstock.coalesce.below-bytes')")
    assert lake.table(f"web.{name}").coalesce is None
    assert list(lake.table(f"web.{name}").shred) == ["headers"]
    assert "nope" in message_of(sql, f"ALTER TABLE {name} SET TBLPROPERTIES ('penstock.coalesce.columns' = 'nope')")
    misspelled = message_of(sql, f"ALTER TABLE {name} SET TBLPROPERTIES ('penstock.coalesce.below' = '1MB')")
    assert "penstock.coalesce.below-bytes" in misspelled
    assert lake.table(f"web.{name}").coalesce is None


def test_rule_of_a_column_that_is_missing_creates_no_table(sql: Sql, lake: penstock.Lake, name: str) -> None:
    rule = "TBLPROPERTIES ('penstock.coalesce.columns' = 'nope')"
    assert "nope" in message_of(sql, f"CREATE TABLE {name} (id int, app string) PARTITIONED BY (app) {rule}")
    assert not lake.has_table(f"web.{name}")


# Procedures


def test_partition_fields_are_added_dropped_and_replaced_and_files_of_every_spec_are_pruned(
    sql: Sql, lake: penstock.Lake, name: str
) -> None:
    sql(f"CREATE TABLE {name} (id bigint, app string, ts timestamp) PARTITIONED BY (app)")
    values = ", ".join(f"({i}, 'a{i % 2}', TIMESTAMP'2026-05-0{1 + i // 2}')" for i in range(4))
    sql(f"INSERT INTO {name} VALUES {values}")
    call = f"CALL {CATALOG}.system.{{}}_partition_field(table => 'web.{name}', field => {{}})"
    assert sql(call.format("add", "'days(ts)'")) == [("app, day(ts)",)]
    sql(f"INSERT INTO {name} VALUES {values}")
    assert sql(call.format("drop", "'app'")) == [("day(ts)",)]
    sql(f"INSERT INTO {name} VALUES {values}")
    table: Any = lake.table(f"web.{name}")
    day = "ts >= '2026-05-02' AND ts < '2026-05-03'"
    assert [len(table.plan(where).files) for where in (None, "app = 'a1'", day)] == [2 + 4 + 2, 1 + 2 + 2, 2 + 2 + 1]
    for where in ("true", "app = 'a1'", day.replace("'2026", "TIMESTAMP'2026")):
        ids = sql(f"SELECT id FROM {name} WHERE {where} ORDER BY id")
        assert ids == sorted((i,) for i in range(4) for _ in range(3) if where == "true" or
                             (i % 2 == 1 if "app" in where else i // 2 == 1)), where  # fmt: skip
    assert sql(f"SELECT DISTINCT spec_id FROM web.{name}.files ORDER BY 1") == [(0,), (1,), (2,)]
    ((before, after, *_),) = sql(f"CALL {CATALOG}.system.compact('web.{name}')")
    assert (before, after) == (8, 2)
    assert sql(f"SELECT DISTINCT spec_id FROM web.{name}.files") == [(2,)]
    replaced = f"CALL {CATALOG}.system.replace_partition_field('web.{name}', 'day(ts)', 'bucket(4, id)')"
    assert sql(replaced) == [("bucket(4, id)",)]
    assert sql(call.format("drop", "'id_bucket'")) == [("none",)]
    assert "is not partitioned by 'app'" in message_of(sql, call.format("drop", "'app'"))
    assert "no column 'nope'" in message_of(sql, call.format("add", "'nope'"))
    assert "field is NULL" in message_of(sql, call.format("add", "NULL"))
    assert sql(f"SELECT count(*) FROM {name}") == [(12,)]


def test_alter_table_changes_the_schema_as_the_methods_do(sql: Sql, lake: penstock.Lake, name: str) -> None:
    sql(f"CREATE TABLE {name} (id int, app string, p struct<x: int>)")
    sql(f"INSERT INTO {name} VALUES (1, 'a', named_struct('x', 1))")
    sql(f"ALTER TABLE {name} ADD COLUMNS (b string AFTER id, c int AFTER b, p.y string FIRST)")
    sql(f"ALTER TABLE {name} ALTER COLUMN id TYPE bigint")
    table: Any = lake.table(f"web.{name}")
    assert table.schema.names == ["id", "b", "c", "app", "p"]
    assert [field.name for field in table.schema.field("p").type] == ["y", "x"]
    assert len(table.table.metadata.schemas) == 3, "one for each statement"
    table.rename_column("p.x", "z")
    table.add_column("extra", "double", first=True)
    assert sql(f"SELECT * FROM {name}") == [(None, 1, None, None, "a", (None, 1))]
    sql(f"INSERT INTO {name} (id) VALUES (2)" if SPARK > (4, 0) else
        f"INSERT INTO {name} VALUES (NULL, 2, NULL, NULL, NULL, NULL)")  # fmt: skip
    assert sql(f"SELECT id, p.z FROM {name} ORDER BY id") == [(1, 1), (2, None)]
    assert "is called like a sidecar" in message_of(sql, f"ALTER TABLE {name} ADD COLUMN __map_shred_p_0 int")


def test_procedures_answer_with_what_they_did(sql: Sql, lake: penstock.Lake, name: str) -> None:
    sql(f"CREATE TABLE {name} (id bigint, app string) PARTITIONED BY (app)")
    for i in range(3):
        sql(f"INSERT INTO {name} VALUES ({i}, 'a'), ({i}, 'b')")
    call = f"CALL {CATALOG}.system.compact(table => 'web.{name}')"
    ((before, after, rewritten, written, *_),) = sql(call)
    assert (before, after, rewritten, written) == (6, 2, 6, 2)
    (compacted,) = sql(f"SELECT snapshot_id FROM web.{name}.snapshots ORDER BY committed_at DESC LIMIT 1")
    sql(f"DELETE FROM {name} WHERE app = 'a'")
    assert sql(f"SELECT count(*) FROM {name}") == [(3,)]
    ((_, current),) = sql(f"CALL {CATALOG}.system.rollback('web.{name}', {compacted[0]})")
    assert current == compacted[0]
    assert sql(f"SELECT count(*) FROM {name}") == [(6,)]
    ((rule,),) = sql(f"CALL {CATALOG}.system.set_coalesce(table => 'web.{name}', columns => 'app', below => '1MB')")
    assert rule == "app: below 1.0 MiB"
    assert sql(f"CALL {CATALOG}.system.set_coalesce('web.{name}')") == [("none",)]
    ((snapshots, files, _),) = sql(f"CALL {CATALOG}.system.expire('web.{name}', older_than => '0 seconds')")
    assert (snapshots, files) == (4, 14)  # data files, manifests and lists of manifests
    assert sql(f"CALL {CATALOG}.system.sweep(table => 'web.{name}', dry_run => true)") == [(0, 0, True)]
    assert sql(f"SELECT count(*) FROM {name}") == [(6,)]


def test_bad_calls_name_what_exists(sql: Sql, name: str) -> None:
    assert "compact" in message_of(sql, f"CALL {CATALOG}.system.compakt('web.{name}')")
    assert "no table" in message_of(sql, f"CALL {CATALOG}.system.compact('web.{name}')")


# Other statements


def test_partitions_are_shown_as_they_are_in_the_table(sql: Sql, name: str) -> None:
    sql(f"CREATE TABLE {name} (id int, app string, ts timestamp) PARTITIONED BY (app, days(ts))")
    sql(f"INSERT INTO {name} VALUES (1, 'a', TIMESTAMP'2026-05-01 10:00:00'), (2, 'b', TIMESTAMP'2026-05-02')")
    sql(f"INSERT INTO {name} VALUES (3, NULL, NULL)")
    shown = {row[0] for row in sql(f"SHOW PARTITIONS {name}")}
    assert shown == {"app=a/ts_day=2026-05-01", "app=b/ts_day=2026-05-02", "app=null/ts_day=null"}
    assert sql(f"SHOW PARTITIONS {name} PARTITION (app = 'a')") == [("app=a/ts_day=2026-05-01",)]


def test_analyze_says_that_there_is_nothing_to_do(sql: Sql, name: str) -> None:
    sql(f"CREATE TABLE {name} (id int)")
    with pytest.warns(PenstockWarning, match="nothing was done"):
        assert sql(f"ANALYZE TABLE {name} COMPUTE STATISTICS") == []


def test_hidden_columns_name_the_file_of_a_row(sql: Sql, lake: penstock.Lake, name: str) -> None:
    sql(f"CREATE TABLE {name} (id int, app string) PARTITIONED BY (app)")
    sql(f"INSERT INTO {name} VALUES (1, 'a'), (2, 'b'), (3, 'a')")
    files = {path for (path,) in sql(f"SELECT DISTINCT _file FROM {name}")}
    assert files == {spark_url(task.path) for task in lake.table(f"web.{name}").plan().files}
    assert sql(f"SELECT id, _pos FROM {name} WHERE app = 'a' ORDER BY id") == [(1, 0), (3, 1)]
    assert sql(f"SELECT * FROM {name} WHERE id = 2") == [(2, "b")]


@pytest.mark.parametrize("cached", [False, True])
def test_rows_of_cached_tables_are_changed_too(sql: Sql, name: str, cached: bool) -> None:
    sql(f"CREATE TABLE {name} AS SELECT id FROM range(4)")
    if cached:
        sql(f"CACHE TABLE {name}")
        assert sql(f"SELECT count(*) FROM {name}") == [(4,)]
    sql(f"UPDATE {name} SET id = id + 10 WHERE id > 1")
    assert sql(f"SELECT * FROM {name} ORDER BY id") == [(0,), (1,), (12,), (13,)]
    source = f"(SELECT * FROM {name} WHERE id IN (1, 12)) s"
    sql(f"MERGE INTO {name} t USING {source} ON t.id = s.id WHEN MATCHED AND t.id = 1 THEN DELETE")
    assert sql(f"SELECT * FROM {name} ORDER BY id") == [(0,), (12,), (13,)]
    sql(f"DELETE FROM {name}")
    assert sql(f"SELECT * FROM {name}") == []
    sql(f"UNCACHE TABLE IF EXISTS {name}")


@pytest.mark.parametrize("statement", ["UPDATE {} SET id = 1", "DELETE FROM {} WHERE id = 1"])
def test_rows_of_a_layout_cannot_be_changed(sql: Sql, name: str, statement: str, layout: Path) -> None:
    declare(sql, f"{name}_layout", layout)
    assert "is a Hive layout, which Penstock does not write" in message_of(sql, statement.format(f"{name}_layout"))


# Pruning


@pytest.fixture(scope="module")
def kinds(session: SparkSession, lake: penstock.Lake, layout: Path) -> dict[str, str]:
    """The same 16 rows in 16 files: a managed table, a table of PyIceberg's, and a Hive layout."""
    source = "SELECT d * 10 + a AS id, make_date(2026, 1, d) AS dt, substring('abcd', a + 1, 1) AS app FROM "
    source += "(SELECT CAST(1 + id DIV 4 AS int) AS d, CAST(id % 4 AS int) AS a FROM range(16))"
    columns = "(id bigint, dt date, app string)"
    session.sql(f"CREATE TABLE managed {columns} PARTITIONED BY (dt, app)")
    session.sql(f"INSERT INTO managed {source}")
    managed: Any = lake.table("web.managed")
    foreign = lake.catalog.create_table("web.foreign", managed.table.schema(), partition_spec=managed.table.spec())
    foreign.append(managed.arrow())
    execute: Sql = lambda text: [tuple(row) for row in session.sql(text).collect()]  # noqa: E731
    declare(execute, "hive", layout)
    session.sql("CREATE TABLE chosen (app string, weight int)")
    session.sql("INSERT INTO chosen VALUES ('b', 2), ('c', 1)")
    return {"managed": "managed", "iceberg": "foreign", "hive": "hive"}


# Each with its rows and the files that the scans of the table read.
QUERIES: list[tuple[str, int, list[int]]] = [
    ("SELECT id FROM {t}", 16, [16]),
    ("SELECT id FROM {t} WHERE app = 'b'", 4, [4]),
    ("SELECT id FROM {t} WHERE dt = DATE'2026-01-02' AND app IN ('b', 'c')", 2, [2]),
    ("SELECT id FROM {t} WHERE dt < DATE'2026-01-03' OR app = 'a'", 10, [10]),
    ("SELECT x.id FROM {t} x JOIN {t} y ON x.id = y.id WHERE x.app = 'a' AND y.dt = DATE'2026-01-01'", 1, [4, 4]),
    ("WITH w AS (SELECT * FROM {t} WHERE app = 'a') SELECT id FROM w WHERE dt > DATE'2026-01-02'", 2, [2]),
    ("SELECT id FROM v_{t} WHERE dt = DATE'2026-01-01'", 1, [1]),
    ("SELECT id FROM (SELECT id, app AS a FROM {t}) WHERE a = 'd'", 4, [4]),
    ("SELECT id FROM {t} WHERE app = 'a' UNION ALL SELECT id FROM {t} WHERE dt = DATE'2026-01-04'", 8, [4, 4]),
]


@pytest.mark.parametrize("kind", ["managed", "iceberg", "hive"])
def test_sql_prunes_all_kinds_of_tables(session: SparkSession, kinds: dict[str, str], kind: str) -> None:
    table = kinds[kind]
    session.sql(f"CREATE OR REPLACE TEMPORARY VIEW v_{table} AS SELECT * FROM {table} WHERE app = 'c'")
    for query, rows, files in QUERIES:
        df = session.sql(query.format(t=table))
        assert len(df.collect()) == rows, query
        assert sorted(read_by(df).files) == files, query


@pytest.mark.parametrize("kind", ["managed", "iceberg", "hive"])
def test_partitions_that_a_join_or_subquery_needs_are_found_when_it_runs(
    session: SparkSession, kinds: dict[str, str], kind: str
) -> None:
    table = kinds[kind]
    for query in (
        "SELECT t.id FROM {t} t JOIN chosen c ON t.app = c.app WHERE c.weight = 2",
        "SELECT t.id FROM {t} t WHERE t.app IN (SELECT app FROM chosen WHERE weight = 2)",
        "SELECT t.id FROM {t} t WHERE t.app = (SELECT max(app) FROM chosen WHERE weight = 2)",
    ):
        df = session.sql(query.format(t=table))
        assert len(df.collect()) == 4, query
        assert 4 in read_by(df).files, query
        assert 16 not in read_by(df).files, query


def test_delete_with_a_subquery_rewrites_only_files_that_have_matching_rows(
    sql: Sql, lake: penstock.Lake, kinds: dict[str, str], name: str
) -> None:
    sql(f"CREATE TABLE {name} PARTITIONED BY (app) AS SELECT * FROM managed")
    before = set(lake.table(f"web.{name}").plan().files.paths.to_pylist())
    sql(f"DELETE FROM {name} WHERE app IN (SELECT app FROM chosen WHERE weight = 2) AND id > 20")
    after = set(lake.table(f"web.{name}").plan().files.paths.to_pylist())
    assert (len(before), len(after), len(before & after)) == (4, 4, 3)
    assert sql(f"SELECT count(*) FROM {name}") == [(13,)]


def test_plan_says_what_files_were_skipped_by(sql: Sql, kinds: dict[str, str]) -> None:
    for table, summary in (
        (kinds["managed"], r"penstock:/1 of 16 files, skipped 12 by partition, 3 by bounds of id"),
        (kinds["hive"], r"penstock:/4 of 4 files, \d lists, \d+ of \d+ directories"),
    ):
        ((plan,),) = sql(f"EXPLAIN SELECT * FROM {table} WHERE app = 'a' AND id > 30")
        assert re.search(summary, plan), plan


# CREATE TABLE LIKE


def test_table_like_another_has_its_columns_partitions_and_rules(
    session: SparkSession, sql: Sql, lake: penstock.Lake, name: str
) -> None:
    jvm: Any = session._jvm
    methods = jvm.java.lang.Class.forName("org.apache.spark.sql.connector.catalog.TableCatalog").getMethods()
    if "createTableLike" not in {method.getName() for method in methods}:
        pytest.skip("this Spark has no such statement for catalogs")
    sql(COALESCED.format(name))
    sql(f"INSERT INTO {name} VALUES (1, 'a', map('k', 'v'))")
    sql(f"CREATE TABLE {name}_2 LIKE {name}")
    assert sql(f"DESCRIBE {name}_2") == sql(f"DESCRIBE {name}")
    assert lake.table(f"web.{name}_2").coalesce == penstock.Coalesce("app")
    assert list(lake.table(f"web.{name}_2").shred) == ["headers"]
    assert sql(f"SELECT * FROM {name}_2") == []
    sql(f"CREATE TABLE IF NOT EXISTS {name}_2 LIKE {name}")
