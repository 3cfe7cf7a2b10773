"""Tables of the session catalog in memory: the rows of `spark.table`, from the files of matching partitions alone."""

from __future__ import annotations

import itertools
import pickle
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

import penstock
from penstock.errors import LakeError, LayoutError, PenstockWarning
from tests.fixtures.spark_settings import settings
from tests.fixtures.variants import variants
from tests.spark.hive_layouts import read_by
from tests.spark.metastore_judge import Seen, ask_all, ask_both, asked, many_places, message, run
from tests.spark.sql_session import Sql, message_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [
    pytest.mark.spark,
    pytest.mark.usefixtures("utc"),
    # PySpark 4.0 leaves the socket of `toArrow` to the garbage collector.
    pytest.mark.filterwarnings("ignore:.*unclosed <socket:ResourceWarning"),
    pytest.mark.filterwarnings("ignore:.*<socket.socket:pytest.PytestUnraisableExceptionWarning"),
]
_names = itertools.count(1)
CATALOG = "pruned"
VALUES = {
    "date": ("DATE'2026-01-01'", "DATE'1969-12-31'", "k = '2026-01-01'", "year(k) = 1969", "k > '2000-01-01'"),
    "string": ("'a b/c=d%'", "'it''s \"ü\"'", "k = 'a b/c=d%'", "k IN ('it\\'s \"ü\"')", "k > 'b'"),
    "tinyint": ("7Y", "-1Y", "k = 7", "k < 0", "abs(k) = 1"),
    "smallint": ("7S", "-300S", "k = 7", "k < 0", "k > 100000"),
    "int": ("7", "-1", "k = 7", "k IN (7, 8)", "k % 2 = 1"),
    "bigint": ("7L", "-9007199254740993L", "k = 7", "k < -9007199254740992", "k BETWEEN 0 AND 9"),
    "boolean": ("true", "false", "k", "NOT k", "k IS NOT NULL"),
    "decimal(10,2)": ("1.50BD", "-0.01BD", "k = 1.5", "k < 0", "round(k) = 2"),
    "double": ("1.5D", "double('NaN')", "k = 1.5", "k > 100", "isnan(k)"),
    "timestamp": ("TIMESTAMP'2026-01-01 10:30:00'", "TIMESTAMP'2025-07-01 00:00:00.5'", "k = '2026-01-01 10:30:00'",
                  "hour(k) = 0", "k > '2025-12-31'"),
    "timestamp_ntz": ("TIMESTAMP_NTZ'2026-01-01 10:30:00'", "TIMESTAMP_NTZ'2025-07-01 00:00:00'",
                      "k = TIMESTAMP_NTZ'2026-01-01 10:30:00'", "hour(k) = 0", "k > '2025-12-31'"),
}  # fmt: skip


@pytest.fixture(scope="module")
def dw(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder of the database `dw`."""
    root = tmp_path_factory.mktemp("dw")
    spark.sql(f"CREATE DATABASE dw LOCATION '{root}'")
    yield root
    spark.sql("DROP DATABASE dw CASCADE")


@pytest.fixture
def name(dw: Path) -> str:
    """A table's name that no other test has."""
    return f"dw.t{next(_names)}"


@pytest.fixture
def events(spark: SparkSession, name: str, tmp_path: Path) -> str:
    """Six partitions of days and apps, two of them elsewhere."""
    run(
        spark,
        f"CREATE TABLE {name} (id bigint, tag string) USING parquet PARTITIONED BY (dt date, app string)",
        f"INSERT INTO {name} VALUES (1, 'x', DATE'2026-01-01', 'a'), (2, 'y', DATE'2026-01-01', 'b'), "
        "(3, 'x', DATE'2026-01-02', 'a'), (4, NULL, NULL, NULL)",
    )
    for i, app in enumerate("ab", 5):
        place = tmp_path / f"moved {app}"
        place.mkdir()
        rows = pa.table({"id": pa.array([i], pa.int64()), "tag": ["x"]})
        pq.write_table(rows, place / "f.parquet")
        spark.sql(f"ALTER TABLE {name} ADD PARTITION (dt = '2026-01-03', app = '{app}') LOCATION '{place}'")
    return name


@pytest.fixture
def sql(spark: SparkSession) -> Sql:
    """Execute a statement where the session catalog is attached as `pruned`."""
    penstock.attach(spark, penstock.spark_catalog(spark), CATALOG)
    return lambda text: [tuple(row) for row in spark.sql(text).collect()]


# The rows of Spark's own table


@pytest.mark.parametrize("zone", variants(["America/New_York", "UTC"], every_run=1))
@pytest.mark.parametrize("kind", VALUES)
def test_partition_values_are_typed_as_spark_types_them(spark: SparkSession, name: str, kind: str, zone: str) -> None:
    if zone != "UTC" and not kind.startswith("timestamp"):
        return
    first, second, *wheres = VALUES[kind]
    with settings(spark, {"spark.sql.session.timeZone": zone}):
        run(
            spark,
            f"CREATE TABLE {name} (id bigint) USING parquet PARTITIONED BY (k {kind})",
            f"INSERT INTO {name} VALUES (1, {first}), (2, {second}), (3, NULL)",
        )
        seen = ask_all(spark, name, [*wheres, "k IS NULL", "TRUE", "NOT (k IS NULL)"])
    assert [each.kept for each in seen.values()][-3:] == [1, 3, 2]
    for where, each in seen.items():
        assert each.rows == each.kept == each.files == each.lists == each.opened, where
        assert each.partitions == 3


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("dt = '2026-01-01'", Seen(2, 2, 6, 2, 2, 2)),
        ("dt >= '2026-01-02' AND app = 'a'", Seen(2, 2, 6, 2, 2, 2)),
        ("app LIKE 'b%'", Seen(2, 2, 6, 2, 2, 2)),
        ("dt IS NULL", Seen(1, 1, 6, 1, 1, 1)),
        ("app = 'a' OR id = 4", Seen(4, 6, 6, 6, 6, 6)),
        ("tag = 'x' AND app = 'b'", Seen(1, 2, 6, 2, 2, 2)),
        ("_metadata.file_path LIKE '%moved%'", Seen(2, 6, 6, 2, 6, 2)),
        ("app = 'nosuch'", Seen(0, 0, 6, 0, 0, 0)),
    ],
)
def test_only_locations_that_match_are_listed_and_only_their_files_opened(
    spark: SparkSession, events: str, where: str, expected: Seen
) -> None:
    assert ask_both(spark, events, where) == expected
    layout = penstock.hive(penstock.spark_table(spark, events).root_url, "dt date, app string")
    assert layout.arrow()["id"].to_pylist() != penstock.spark_table(spark, events).arrow()["id"].to_pylist()


def test_filters_of_joins_prune_at_run_time(spark: SparkSession, events: str, tmp_path: Path) -> None:
    days = spark.sql("SELECT * FROM VALUES (DATE'2026-01-03', 1), (DATE'2026-01-01', 2) AS t(day, k)")
    days.write.parquet(str(tmp_path / "days"))  # as files, so that Spark knows their size
    dim = spark.read.parquet(str(tmp_path / "days")).where("k = 1")
    frame = penstock.spark_table(spark, events).dataframe(spark)
    query = frame.join(dim, frame.dt == dim.day).select("id")
    assert sorted(row.id for row in query.collect()) == [5, 6]
    assert "dynamicpruning" in query._jdf.queryExecution().toString()
    assert sorted(read_by(query).files) == [1, 2]  # the days have one file


def test_partitions_that_are_added_later_are_seen_by_tables_and_dataframes(spark: SparkSession, events: str) -> None:
    table = penstock.spark_table(spark, events)
    frame = table.dataframe(spark)
    run(spark, f"INSERT INTO {events} VALUES (9, 'x', DATE'2026-02-01', 'a')")
    assert table.arrow("dt > '2026-01-31'")["id"].to_pylist() == [9]
    assert [row.id for row in frame.where("dt > '2026-01-31'").collect()] == [9]
    run(spark, f"ALTER TABLE {events} DROP PARTITION (dt = '2026-01-01', app = 'a')")
    assert ask_both(spark, events, "app = 'a'").rows == 3


@pytest.mark.slow
def test_five_thousand_partitions_come_in_one_call(spark: SparkSession, name: str, tmp_path: Path) -> None:
    many_places(spark, name, tmp_path, 5_000)
    wheres = ["n = 4321", "dt = '2026-03' AND n % 50 = 0", "n > 4990 AND dt LIKE '%-02'", "n % 1000 = 1"]
    seen = ask_all(spark, name, wheres)
    assert [seen[where] for where in wheres] == [
        Seen(1, 1, 5_000, 1, 1, 1),
        Seen(8, 8, 5_000, 8, 8, 8),
        Seen(9, 9, 5_000, 9, 9, 9),
        Seen(5, 5, 5_000, 5, 5, 5),
    ]
    assert [asked(spark, name, where) for where in [*wheres, "TRUE"]] == [1, 1, 1, 1, 1]
    assert penstock.spark_table(spark, name).plan().report.list_calls == 5_000


@pytest.mark.parametrize(
    "how",
    [
        "USING parquet",
        "USING orc",
        "USING parquet CLUSTERED BY (id) INTO 3 BUCKETS",
        "USING org.apache.spark.sql.parquet",
        "USING parquet OPTIONS (compression 'gzip', mergeSchema 'true')",
    ],
)
def test_tables_without_partitions_and_with_buckets_are_read_as_plain(spark: SparkSession, name: str, how: str) -> None:
    run(spark, f"CREATE TABLE {name} (id bigint, App string COMMENT 'which') {how}",
        f"INSERT INTO {name} SELECT id, concat('a', id) FROM range(20)")  # fmt: skip
    seen = ask_both(spark, name, "id > 17 OR app = 'a3'")
    assert (seen.rows, seen.lists, seen.partitions) == (3, 1, 0)
    table = penstock.spark_table(spark, name)
    assert (table.schema.names, dict(table.comments())) == (["id", "App"], {"App": "which"})


def test_columns_of_old_orc_files_are_known_by_their_places(spark: SparkSession, name: str, tmp_path: Path) -> None:
    orc.write_table(pa.table({"_col0": pa.array([1, 2], pa.int64()), "_col1": ["a", "b"]}), tmp_path / "000000_0")
    run(spark, f"CREATE TABLE {name} (id bigint, app string, more int) USING orc LOCATION '{tmp_path}'")
    assert ask_both(spark, name, "app = 'b' AND more IS NULL AND id = 2").rows == 1


def test_partitions_that_the_catalog_does_not_track_are_discovered(spark: SparkSession, name: str) -> None:
    with settings(spark, {"spark.sql.hive.manageFilesourcePartitions": "false"}):
        run(spark, f"CREATE TABLE {name} (id bigint) USING parquet PARTITIONED BY (dt date)",
            f"INSERT INTO {name} VALUES (1, DATE'2026-01-01'), (2, DATE'2026-01-02'), (3, NULL)")  # fmt: skip
    assert ask_both(spark, name, "dt = '2026-01-02'").lists == 2
    assert ask_both(spark, name, "dt IS NULL").opened == 1


def test_the_places_of_partitions_are_read_as_spark_reads_them(
    spark: SparkSession, events: str, tmp_path: Path
) -> None:
    inner = tmp_path / "moved a" / "inner"
    inner.mkdir()
    pq.write_table(pa.table({"id": pa.array([7], pa.int64())}), inner / "f.parquet")
    assert ask_both(spark, events, "dt = '2026-01-03'").rows == 2
    spark.sql(f"ALTER TABLE {events} ADD PARTITION (dt = '2026-01-04', app = 'n') LOCATION '{inner}'")
    assert ask_both(spark, events, "dt > '2026-01-02'").rows == 3
    shutil.rmtree(tmp_path / "moved b")
    spark.sql(f"REFRESH TABLE {events}")  # Spark keeps what it has listed
    with pytest.warns(PenstockWarning, match="1 location without a directory, and so without rows"):
        assert ask_both(spark, events, "dt = '2026-01-03'").rows == 1


def test_a_file_that_is_none_of_the_format_is_an_error_here_too(
    spark: SparkSession, events: str, tmp_path: Path
) -> None:
    (tmp_path / "moved a" / "notes").write_text("no Parquet")
    with pytest.raises(LayoutError, match="notes is not a Parquet file"):
        penstock.spark_table(spark, events).arrow("dt = '2026-01-03'")


# Names, and what is not read


def test_names_are_those_of_spark(spark: SparkSession, events: str) -> None:
    database, _, table = events.partition(".")
    spark.catalog.setCurrentDatabase(database)
    try:
        for each in (table, events, f"spark_catalog.{events}", f"`{database}`.`{table}`", events.upper()):
            assert penstock.spark_table(spark, each).name == events
    finally:
        spark.catalog.setCurrentDatabase("default")


def test_what_cannot_be_read_is_refused_by_one_line_that_says_what_to_do(
    spark: SparkSession, events: str, name: str
) -> None:
    run(
        spark,
        f"CREATE VIEW {events}_v AS SELECT * FROM {events}",
        "CREATE OR REPLACE TEMP VIEW metastore_view AS SELECT 1 AS a",
        f"CREATE TABLE {events}_c (a char(3)) USING parquet",
        f"CREATE TABLE {events}_d (a int DEFAULT 5) USING parquet",
        f"CREATE TABLE {events}_r (a int) USING parquet OPTIONS (recursiveFileLookup 'true')",
        f"CREATE TABLE {events}_i (a interval day to second) USING parquet",
        f"CREATE TABLE {events}_j USING jdbc OPTIONS (url 'jdbc:derby:memory:x;create=true', dbtable 'sys.systables')",
    )
    expected = {
        f"{events}_v": f"{events}_v is a view, which has no files of its own; open the tables that it reads, or use",
        "metastore_view": "metastore_view is a view, which has no files of its own",
        f"{events}_c": f"{events}_c: a is char(3), which Spark pads when it reads; use spark.table",
        f"{events}_d": f"{events}_d: a has the default 5 in files that lack it; use spark.table",
        f"{events}_r": f"{events}_r has the option recursiveFileLookup; use spark.table, or leave the option out",
        f"{events}_i": f"{events}_i has columns that are not supported",
        f"{events}_j": f"{events}_j is a table of the data source 'jdbc'; a database has no files to prune, or use",
        "dw.nosuch": "no table dw.nosuch in Spark's session catalog; see SHOW TABLES",
        "nosuch.t": "no table nosuch.t in Spark's session catalog; see SHOW TABLES",
        "other.dw.t": "other.dw.t is a table of the catalog 'other'; name a table of the session catalog",
        "a b": "a b: Syntax error at or near 'b'",
    }
    for each, start in expected.items():
        found = message(spark, each)
        assert found.startswith(start), found
        assert len(found.splitlines()) == 1


def test_streams_and_other_processes_are_refused(spark: SparkSession, events: str, sql: Sql, tmp_path: Path) -> None:
    table = penstock.spark_table(spark, events)
    with pytest.raises(LakeError, match="is a table of a metastore, which cannot be streamed; stream the directories"):
        table.stream(spark)
    with pytest.raises(LakeError, match="cannot be sent to another process"):
        pickle.dumps(table)
    stream = spark.readStream.table(f"{CATALOG}.{events}").writeStream.format("noop")
    with pytest.raises(Exception, match="cannot be streamed"):
        stream.option("checkpointLocation", str(tmp_path / "c")).trigger(availableNow=True).start().awaitTermination()


# SQL


def test_sql_reads_a_table_under_its_own_name_behind_the_catalogs(sql: Sql, spark: SparkSession, events: str) -> None:
    for where in ("dt = DATE'2026-01-03'", "app = 'a' AND id > 1", "dt IS NULL", "TRUE"):
        text = f"SELECT * FROM {{}} WHERE {where}"
        assert sorted(map(str, sql(text.format(f"{CATALOG}.{events}")))) == sorted(map(str, sql(text.format(events))))
    query = spark.sql(f"SELECT id FROM {CATALOG}.{events} WHERE dt = DATE'2026-01-03' AND app = 'b'")
    assert ([row.id for row in query.collect()], read_by(query).files) == ([6], (1,))
    joined = f"SELECT l.id FROM {CATALOG}.{events} l JOIN {events} r ON l.id = r.id WHERE l.app = 'b'"
    assert sorted(sql(joined)) == [(2,), (6,)]
    assert ("dw", events.partition(".")[2], False) in sql(f"SHOW TABLES IN {CATALOG}.dw")
    assert ("dw",) in sql(f"SHOW NAMESPACES IN {CATALOG}")
    assert len(sql(f"SHOW PARTITIONS {CATALOG}.{events}")) == 6
    assert sql(f"DESCRIBE {CATALOG}.{events}")[0] == ("id", "bigint", None)


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO {} VALUES (1, 'x', DATE'2026-01-01', 'a')",
        "DELETE FROM {} WHERE id = 1",
        "UPDATE {} SET tag = 'z'",
        "TRUNCATE TABLE {}",
        "DROP TABLE {}",
        "ALTER TABLE {} RENAME TO pruned.dw.other",
        "CREATE TABLE {}_2 (a int)",
        "CREATE NAMESPACE pruned.other",
        "DROP NAMESPACE pruned.dw CASCADE",
    ],
)
def test_sql_changes_nothing_under_that_name(sql: Sql, spark: SparkSession, events: str, statement: str) -> None:
    said = message_of(sql, statement.format(f"{CATALOG}.{events}"))
    assert "of a metastore" in said
    assert "spark_catalog" in said
    assert spark.table(events).count() == 6


def test_sql_says_why_a_table_is_refused(sql: Sql, spark: SparkSession, events: str) -> None:
    spark.sql(f"CREATE VIEW {events}_w AS SELECT 1 AS a")
    assert "is a view, which has no files of its own" in message_of(sql, f"SELECT * FROM {CATALOG}.{events}_w")


def in_order(rows: DataFrame) -> list[str]:
    return sorted(str(row.asDict()) for row in rows.collect())


@pytest.mark.parametrize(
    ("provider", "columns", "values"),
    [
        ("csv OPTIONS (header 'true', sep ';')", "id int, s string", "(1, 'x', 1), (2, 'y;z', 2), (3, NULL, 2)"),
        ("json", "id int, s string", "(1, 'x', 1), (2, 'y', 2), (3, NULL, 2)"),
        ("text", "value string", "('a', 1), ('b', 2), ('', 2)"),
    ],
)
def test_rows_of_text_formats_are_those_of_sparks_table(
    spark: SparkSession, dw: Path, provider: str, columns: str, values: str
) -> None:
    name = f"dw.{provider.split()[0]}_table"
    spark.sql(f"CREATE TABLE {name} ({columns}, p int) USING {provider} PARTITIONED BY (p)")
    spark.sql(f"INSERT INTO {name} VALUES {values}")
    elsewhere = (dw / "elsewhere").as_uri()
    spark.sql(f"ALTER TABLE {name} ADD PARTITION (p = 3) LOCATION '{elsewhere}/{name}'")
    spark.sql(f"INSERT INTO {name} PARTITION (p = 3) SELECT {columns.split()[0]}{', s' if ',' in columns else ''} "
              f"FROM {name} WHERE p = 1")  # fmt: skip
    table = penstock.spark_table(spark, name)
    for where, files in (("p = 2", 1), ("p IN (1, 3)", 2), ("p > 7", 0)):
        expected = in_order(spark.table(name).where(where))
        plan = table.plan(where)
        assert (len(plan.files), plan.report.list_calls) == (files, files), where
        assert in_order(table.dataframe(spark).where(where)) == expected
        assert sorted(str(row) for row in table.arrow(where).to_pylist()) == expected
