"""Statements that fail leave everything as it was, and answers that were wrong once."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import AnalysisException

import penstock
from penstock.errors import LakeError, PenstockWarning
from tests.spark.sql_session import COALESCED, SPARK, Sql, files_below, message_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
CATALOG = "answers"


# Statements that fail leave everything as it was


def test_failed_ctas_leaves_no_table_and_no_file(sql: Sql, lake: penstock.Lake, name: str) -> None:
    assert lake.warehouse is not None
    before = files_below(Path(lake.warehouse))
    with pytest.raises(Exception, match="boom"):
        sql(f"CREATE TABLE {name} AS SELECT id, if(id = 50, raise_error('boom'), 'x') AS x FROM range(100)")
    assert not lake.has_table(f"web.{name}")
    assert files_below(Path(lake.warehouse)) == before


def test_failed_replace_keeps_the_table(sql: Sql, lake: penstock.Lake, name: str) -> None:
    sql(f"CREATE TABLE {name} PARTITIONED BY (app) AS SELECT id, concat('app', id) AS app FROM range(3)")
    described, before = sql(f"DESCRIBE {name}"), files_below(Path(str(lake.warehouse)))
    with pytest.raises(Exception, match="boom"):
        sql(f"CREATE OR REPLACE TABLE {name} AS SELECT if(id = 50, raise_error('boom'), 'x') AS x FROM range(100)")
    assert sql(f"DESCRIBE {name}") == described
    assert sql(f"SELECT * FROM {name} WHERE app = 'app1'") == [(1, "app1")]
    assert files_below(Path(str(lake.warehouse))) == before


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO {} SELECT if(id = 50, raise_error('boom'), id), 'a' FROM range(100)",
        "INSERT INTO {} SELECT if(id = 50, NULL, id), 'boom' FROM range(100)",
        "INSERT OVERWRITE {} SELECT if(id = 50, raise_error('boom'), id), 'a' FROM range(100)",
        "INSERT INTO {} REPLACE WHERE app = 'a' SELECT 7, 'boom'",
        "DELETE FROM {} WHERE id = 1 AND raise_error('boom') IS NULL",
    ],
)
def test_failed_writes_leave_no_file(sql: Sql, lake: penstock.Lake, name: str, statement: str) -> None:
    sql(f"CREATE TABLE {name} (id bigint NOT NULL, app string) PARTITIONED BY (app)")
    sql(f"INSERT INTO {name} VALUES (1, 'a'), (2, 'b')")
    before = files_below(Path(str(lake.warehouse)))
    snapshots = sql(f"SELECT snapshot_id FROM web.{name}.snapshots")
    with pytest.raises(Exception):  # noqa: B017, PT011
        sql(statement.format(name))
    assert sql(f"SELECT * FROM {name} ORDER BY id") == [(1, "a"), (2, "b")]
    assert files_below(Path(str(lake.warehouse))) == before
    assert sql(f"SELECT snapshot_id FROM web.{name}.snapshots") == snapshots


# Answers that were wrong once


def test_scale_of_a_decimal_does_not_change(sql: Sql, name: str) -> None:
    sql(f"CREATE TABLE {name} AS SELECT CAST(12.34 AS decimal(4, 2)) AS x")
    message = message_of(sql, f"ALTER TABLE {name} ALTER COLUMN x TYPE decimal(8, 4)")
    assert "x is decimal(4,2) and cannot become decimal(8,4)" in message
    assert sql(f"SELECT CAST(x AS string) FROM {name} WHERE x > 12") == [("12.34",)]


def test_rows_of_a_cached_table_are_deleted(sql: Sql, name: str) -> None:
    sql(f"CREATE TABLE {name} AS SELECT id FROM range(5)")
    sql(f"CACHE TABLE {name}")
    sql(f"DELETE FROM {name} WHERE id = 1")
    sql(f"DELETE FROM {name} WHERE id IN (SELECT max(id) FROM {name})")
    assert sql(f"SELECT id FROM {name} ORDER BY id") == [(0,), (2,), (3,)]
    sql(f"UNCACHE TABLE IF EXISTS {name}")


def test_conditions_of_delete(sql: Sql, name: str) -> None:
    sql(f"CREATE TABLE {name} AS SELECT id, id % 2 AS g FROM range(6)")
    sql(f"DELETE FROM {name} WHERE CAST(NULL AS boolean)")
    assert "the condition NULL is a void" in message_of(sql, f"DELETE FROM {name} WHERE NULL")
    assert "bigint" in message_of(sql, f"DELETE FROM {name} WHERE id")
    assert sql(f"SELECT count(*) FROM {name}") == [(6,)]
    sql(f"DELETE FROM {name} WHERE id > (SELECT avg(x.id) FROM {name} x WHERE x.g = {name}.g)")
    assert sql(f"SELECT id FROM {name} ORDER BY id") == [(0,), (1,), (2,), (3,)]


def test_delete_leaves_to_spark_what_only_spark_can_compute(sql: Sql, name: str) -> None:
    sql(f"CREATE TABLE {name} AS SELECT * FROM VALUES ('a'), ('É'), ('é'), ('b') AS x(s)")
    sql(f"DELETE FROM {name} WHERE upper(s) = 'É'")
    sql(f"DELETE FROM {name} WHERE s ILIKE 'A%'")
    assert sql(f"SELECT * FROM {name}") == [("b",)]
    sql(f"DELETE FROM {name} WHERE _pos = 0 AND _file LIKE '%.parquet' AND _metadata.row_index = 0")
    assert sql(f"SELECT * FROM {name}") == []


def test_columns_of_any_name_are_written(sql: Sql, name: str) -> None:
    sql(f"CREATE TABLE {name} (`a.b` int, `tick``tick` int, `two words` string) PARTITIONED BY (`two words`)")
    sql(f"INSERT INTO {name} VALUES (1, 2, 'x y')")
    assert sql(f"SELECT `a.b`, `tick``tick` FROM {name} WHERE `two words` = 'x y' AND `a.b` = 1") == [(1, 2)]


def test_null_structs_of_required_fields_are_written(sql: Sql, name: str) -> None:
    sql(f"CREATE TABLE {name} (id int, s struct<a: int NOT NULL, b: int>)")
    sql(f"INSERT INTO {name} VALUES (1, NULL), (2, named_struct('a', 1, 'b', NULL))")
    assert sql(f"SELECT id, s.a FROM {name} ORDER BY id") == [(1, None), (2, 1)]


def test_texts_of_a_length_are_texts(sql: Sql, name: str) -> None:
    sql(f"CREATE TABLE {name} (c char(3), v varchar(4))")
    sql(f"ALTER TABLE {name} ADD COLUMN w varchar(5)")
    assert sql(f"DESCRIBE {name}") == [("c", "string", None), ("v", "string", None), ("w", "string", None)]


@pytest.mark.parametrize("kind", ["string COLLATE UTF8_LCASE", "variant", "interval day to second", "array<variant>"])
def test_types_that_iceberg_does_not_have_are_refused(sql: Sql, lake: penstock.Lake, name: str, kind: str) -> None:
    assert f"column x of web.{name} cannot be of type" in message_of(sql, f"CREATE TABLE {name} (x {kind})")
    assert not lake.has_table(f"web.{name}")


def test_tables_do_not_move(sql: Sql, name: str) -> None:
    sql(f"CREATE TABLE {name} (id int)")
    assert f"web.{name} cannot move" in message_of(sql, f"ALTER TABLE {name} SET LOCATION '/elsewhere'")


def test_metadata_is_read_as_it_is_now_and_not_written(sql: Sql, name: str) -> None:
    sql(f"CREATE TABLE {name} AS SELECT 1 AS id")
    for statement in (
        "SELECT * FROM {} VERSION AS OF 1",
        "SELECT _file FROM {}",
        "DELETE FROM {} WHERE record_count = 1",
    ):
        assert f"web.{name}.files" in message_of(sql, statement.format(f"web.{name}.files"))


def test_tables_without_snapshots_have_empty_metadata(sql: Sql, name: str) -> None:
    sql(f"CREATE TABLE {name} (id int, app string) PARTITIONED BY (app)")
    assert sql(f"SELECT partition.app, record_count FROM web.{name}.partitions") == []
    for kind in ("entries", "files", "manifests", "snapshots", "refs", "all_files", "logical_partitions", "hot_keys"):
        assert sql(f"SELECT * FROM web.{name}.{kind}") == [], kind


def test_what_show_create_table_answers_creates_the_same_table(sql: Sql, lake: penstock.Lake, name: str) -> None:
    sql(COALESCED.format(name))
    sql(f"INSERT INTO {name} VALUES (1, 'a', map('k', 'v'))")
    ((text,),) = sql(f"SHOW CREATE TABLE {name}")
    lines = [line for line in text.replace(f".{name} ", f".{name}_2 ").splitlines() if not line.startswith("LOCATION")]
    sql("\n".join(lines))
    assert sql(f"DESCRIBE {name}_2") == sql(f"DESCRIBE {name}")
    first, second = lake.table(f"web.{name}"), lake.table(f"web.{name}_2")
    assert (second.coalesce, second.shred) == (first.coalesce, first.shred)
    assert sql(f"SELECT * FROM {name}_2") == []
    computed = "'penstock.map.shredding.sidecars' = '{}'"
    assert f"web.{name}" in message_of(sql, f"ALTER TABLE {name} SET TBLPROPERTIES ({computed})")


def test_columns_without_null_are_read_and_written(sql: Sql, name: str) -> None:
    """Spark refuses a write whose rows may be NULL after a rule of ours, though they were not before it."""
    sql(f"CREATE TABLE {name} (id bigint NOT NULL, s struct<a: int NOT NULL>)")
    sql(f"INSERT INTO {name} VALUES (1, named_struct('a', 1)), (2, NULL)")
    sql(f"FROM {name} INSERT INTO {name} SELECT * INSERT INTO {name} SELECT id + 10, s WHERE id = 1")
    sql(f"INSERT OVERWRITE {name} SELECT * FROM {name} WHERE s IS NOT NULL")
    assert sql(f"SELECT id, count(*), min(s.a) FROM {name} GROUP BY id ORDER BY id") == [(1, 2, 1), (11, 1, 1)]


@pytest.mark.parametrize(
    ("rows", "column"),
    [
        ("SELECT if(id = 7, NULL, id), NULL FROM range(10)", "id"),
        ("SELECT id, named_struct('a', if(id = 7, NULL, 1)) FROM range(10)", "s.a"),
    ],
)
def test_null_where_there_must_be_none_is_one_line(sql: Sql, name: str, rows: str, column: str) -> None:
    sql(f"CREATE TABLE {name} (id bigint NOT NULL, s struct<a: int NOT NULL>)")
    assert message_of(sql, f"INSERT INTO {name} {rows}").startswith(f"column {column} of web.{name} is NOT NULL")
    assert sql(f"SELECT * FROM {name}") == []


def test_columns_change_after_the_table_was_replaced(sql: Sql, name: str) -> None:
    sql(f"CREATE TABLE {name} PARTITIONED BY (app) AS SELECT 1 AS id, 'a' AS app")
    sql(f"CREATE OR REPLACE TABLE {name} PARTITIONED BY (bucket(2, id)) AS SELECT 2 AS id, 'b' AS app")
    sql(f"ALTER TABLE {name} ADD COLUMN more int")
    sql(f"ALTER TABLE {name} RENAME COLUMN app TO application")
    sql(f"ALTER TABLE {name} ADD COLUMN app string")
    assert sql(f"SELECT id, application, more, app FROM {name}") == [(2, "b", None, None)]


def test_namespaces_are_found_in_any_case(sql: Sql, lake: penstock.Lake, name: str) -> None:
    sql(f"CREATE TABLE WEB.{name} (id int)")
    assert lake.has_table(f"web.{name}")
    assert sql(f"SHOW TABLES IN Web LIKE '{name}'") == [("Web", name, False)]
    sql(f"ALTER TABLE WEB.{name} RENAME TO Web.{name}_2")
    assert lake.has_table(f"web.{name}_2")
    with pytest.raises(AnalysisException, match="SCHEMA_ALREADY_EXISTS"):
        sql("CREATE NAMESPACE WEB")
    assert "WEB" not in {row[0] for row in sql(f"SHOW NAMESPACES IN {CATALOG}")}
    assert "web.a.b" in message_of(sql, "CREATE TABLE web.`a.b` (id int)")


@pytest.mark.parametrize("option", ["snapshot-id", "as-of-timestamp", "branch", "tag", "start-snapshot-id", "where"])
def test_options_that_would_read_other_rows_are_refused(
    session: SparkSession, sql: Sql, name: str, option: str
) -> None:
    sql(f"CREATE TABLE {name} (id int)")
    with pytest.raises(LakeError, match=f"web.{name} is not read with the option '{option}'"):
        session.read.option(option, "1").table(f"web.{name}").collect()


DOES_NOTHING = [
    "ANALYZE TABLE {} COMPUTE STATISTICS",
    "ANALYZE TABLE {} COMPUTE STATISTICS FOR ALL COLUMNS",
    "MSCK REPAIR TABLE {}",
    "ALTER TABLE {} RECOVER PARTITIONS",
]
REFUSED = [
    "ALTER TABLE {} ADD PARTITION (app = 'new')",
    "ALTER TABLE {} DROP PARTITION (app = 'a')",
    "TRUNCATE TABLE {} PARTITION (app = 'a')",
    "ALTER TABLE {} PARTITION (app = 'a') RENAME TO PARTITION (app = 'z')",
    "LOAD DATA INPATH '/x' INTO TABLE {}",
    "ALTER TABLE {} SET SERDE 'x'",
    "ALTER TABLE {} ALTER COLUMN id SET DEFAULT 5",
]
REFUSED_BY_NEWER_SPARK = ["ALTER TABLE {} ADD CONSTRAINT c CHECK (id > 0)"]  # 4.0 does not parse it


def test_statements_without_effect_say_so(sql: Sql, name: str) -> None:
    sql(f"CREATE TABLE {name} (id int, app string) PARTITIONED BY (app)")
    for statement in DOES_NOTHING:
        with pytest.warns(PenstockWarning, match=f"{name}: .* nothing was done"):
            assert sql(statement.format(name)) == [], statement


def test_statements_about_partitions_and_files_name_the_table(sql: Sql, name: str) -> None:
    sql(f"CREATE TABLE {name} AS SELECT 1 AS id, 'a' AS app")
    sql(f"CREATE OR REPLACE TABLE {name} PARTITIONED BY (app) AS SELECT 1 AS id, 'a' AS app")
    for statement in [*REFUSED, *(REFUSED_BY_NEWER_SPARK if SPARK >= (4, 1) else [])]:
        assert f"web.{name}" in message_of(sql, statement.format(name)), statement
    assert sql(f"SELECT * FROM {name}") == [(1, "a")]


def test_functions_are_listed_and_missing_ones_are_spark_errors(sql: Sql) -> None:
    assert sql("SHOW FUNCTIONS LIKE 'abs'")
    with pytest.raises(AnalysisException, match="UNRESOLVED_ROUTINE"):
        sql("SELECT nofunction(1)")


def test_first_query_finds_columns_by_field_id_though_the_session_does_not(
    session: SparkSession, sql: Sql, name: str, request: pytest.FixtureRequest
) -> None:
    sql(f"CREATE TABLE {name} AS SELECT id AS a FROM range(3)")
    sql(f"ALTER TABLE {name} RENAME COLUMN a TO b")
    sql(f"ALTER TABLE {name} ADD COLUMN a bigint")
    settings = {"spark.sql.parquet.fieldId.read.enabled": "false", "spark.sql.parquet.enableVectorizedReader": "false"}
    before = {key: session.conf.get(key) for key in settings}
    request.addfinalizer(lambda: [session.conf.set(key, value) for key, value in before.items()])
    for key, value in settings.items():
        session.conf.set(key, value)
    assert sorted(sql(f"SELECT b, a FROM {name}")) == [(0, None), (1, None), (2, None)]
