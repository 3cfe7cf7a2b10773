"""Statements that only a lake has: rules as properties, Hive layouts, procedures, Penstock's metadata tables, pruning.

What Iceberg has too is judged by its own runtime: `interop/test_sql_judges.py`.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pyspark
import pytest
from pyspark.errors import AnalysisException

import penstock
from penstock.errors import LakeError, PenstockWarning
from penstock.tables.file_metadata import spark_url
from tests.spark.hive_layouts import read_by

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

CATALOG = "statements"
SPARK = tuple(map(int, pyspark.__version__.split(".")[:2]))
_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> penstock.Lake:
    return penstock.connect(tmp_path_factory.mktemp("lake"))


@pytest.fixture(scope="module")
def session(spark: SparkSession, lake: penstock.Lake) -> SparkSession:
    """A session whose current catalog is the lake."""
    other = spark.newSession()
    other.conf.set("spark.sql.session.timeZone", "UTC")
    penstock.attach(other, lake, CATALOG)
    other.sql(f"USE {CATALOG}")
    other.sql("CREATE NAMESPACE web")
    other.sql(f"USE {CATALOG}.web")
    return other


Sql = Callable[[str], list[tuple[Any, ...]]]


@pytest.fixture
def sql(session: SparkSession) -> Sql:
    """Execute a statement; its rows."""
    return lambda text: [tuple(row) for row in session.sql(text).collect()]


@pytest.fixture
def name() -> str:
    """A name that no other test has."""
    return f"t{next(_numbers)}"


def message_of(sql: Sql, text: str) -> str:
    """What a statement that fails says: one line without internal names."""
    with pytest.raises(Exception) as raised:  # noqa: PT011
        sql(text)
    message = str(raised.value)
    assert "\n" not in message, message
    assert not any(word in message for word in ("io.penstock", "__penstock", "py4j", "Traceback", "Error("))
    return message


def files_below(place: Path) -> set[Path]:
    return {path for path in place.rglob("*.parquet") if path.is_file()}


# Rules as properties


COALESCED = """CREATE TABLE {} (id bigint, app string, headers map<string, string>) USING penstock PARTITIONED BY (app)
TBLPROPERTIES ('penstock.coalesce.columns' = 'app', 'parquet.map.shredding.columns' = 'headers',
               'parquet.map.shredding.headers.keys' = 'k')"""


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


# Hive layouts


@pytest.fixture(scope="module")
def layout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """16 files, one for each day and app; rows are (id, dt, app)."""
    place = tmp_path_factory.mktemp("layout")
    for day, app in itertools.product(range(1, 5), "abcd"):
        folder = place / f"dt=2026-01-{day:02}" / f"app={app}"
        folder.mkdir(parents=True)
        pq.write_table(pa.table({"id": pa.array([day * 10 + "abcd".index(app)], pa.int64())}), folder / "f.parquet")
    return place


def declare(sql: Sql, name: str, layout: Path) -> None:
    columns = "(id bigint, dt date, app string)"
    sql(f"CREATE TABLE {name} {columns} USING parquet PARTITIONED BY (dt, app) LOCATION '{layout}'")


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
        "CREATE TABLE {} (id int) ROW FORMAT DELIMITED FIELDS TERMINATED BY ','",
        f"CREATE TABLE {{}} (id bigint) USING parquet LOCATION '{tmp_path}'",
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
    assert "decimal(4, 2)" in message_of(sql, f"ALTER TABLE {name} ALTER COLUMN x TYPE decimal(8, 4)")
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
