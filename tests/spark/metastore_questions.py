"""What is asked of a Spark whose session catalog is a Hive metastore: its own embedded one, or a server."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

import penstock
from tests.spark.metastore_judge import Seen, ask_all, ask_both, asked, many_places, message, run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PARQUET = "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe"
CONFIG = {
    "spark.sql.catalogImplementation": "hive",
    "spark.sql.session.timeZone": "UTC",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.hadoop.hive.exec.dynamic.partition.mode": "nonstrict",
}
# Tables as Hive and Spark declare them, and filters with what they keep: rows, partitions, of so many, files.
KEPT = {
    "dw.hive_parquet": {
        "dt = '2026-01-02'": (2, 2, 5, 2),
        "name = 'it\\'s'": (1, 1, 5, 1),
        "NAME IN ('x y', 'US/CA')": (2, 2, 5, 2),
        "n > 1 AND dt < '2026-01-03'": (1, 1, 5, 1),
        "n IS NULL": (2, 2, 5, 2),
        "name > 'a'": (3, 3, 5, 3),
        "id = 1": (1, 5, 5, 5),
    },
    "dw.hive_orc": {
        "dt = '2026-01-02'": (1, 1, 3, 1),
        "dt >= '2026-01-02'": (1, 1, 3, 1),
        "dt IS NULL": (1, 1, 3, 1),
        "TRUE": (3, 3, 3, 3),
    },
    "dw.plain": {"id = 1": (1, 0, 0, 1)},
    "dw.source": {"Dt < DATE'2026-01-02'": (1, 1, 2, 1), "DT IN ('2026-01-02')": (1, 1, 2, 1)},
    "dw.numbers": {"k = 7": (1, 1, 3, 1), "k >= -1": (2, 2, 3, 2), "k IS NULL": (1, 1, 3, 1)},
}


def tables(spark: SparkSession, root: Path) -> None:
    """Make the tables of `KEPT`, one partition of each kind elsewhere."""
    run(
        spark,
        f"CREATE DATABASE dw LOCATION '{root}/dw'",
        "CREATE TABLE dw.hive_parquet (id bigint, App string) PARTITIONED BY (dt date, Name string, n int)"
        " STORED AS PARQUET",
        "INSERT INTO dw.hive_parquet VALUES (1, 'a', DATE'2026-01-01', 'x y', 1),"
        " (2, 'b', DATE'2026-01-02', 'it\\'s', 2),"
        " (3, 'c', NULL, NULL, 3), (4, 'd', DATE'2026-01-02', 'US/CA', NULL),"
        " (5, 'e', DATE'2026-01-03', 'both \\' and \"', NULL)",
        "CREATE TABLE dw.hive_orc (id bigint, app string) PARTITIONED BY (dt string) STORED AS ORC",
        "INSERT INTO dw.hive_orc VALUES (1, 'a', '2026-01-01'), (2, 'b', '2026-01-02'), (3, 'c', NULL)",
        "CREATE TABLE dw.hive_text (id bigint) PARTITIONED BY (dt string) STORED AS TEXTFILE",
        "CREATE TABLE dw.plain (id bigint, App string) STORED AS PARQUET",
        "INSERT INTO dw.plain VALUES (1, 'a'), (2, 'b')",
        "CREATE TABLE dw.source (Id bigint, App string, Dt date) USING orc PARTITIONED BY (Dt)",
        "INSERT INTO dw.source VALUES (1, 'a', DATE'2026-01-01'), (2, 'b', DATE'2026-01-02')",
        "CREATE TABLE dw.numbers (id bigint) USING parquet PARTITIONED BY (k smallint)",
        "INSERT INTO dw.numbers VALUES (1, 7S), (2, -1S), (3, NULL)",
        "CREATE VIEW dw.seen AS SELECT * FROM dw.plain",
    )


def kept(spark: SparkSession, name: str) -> dict[str, tuple[int, int, int, int]]:
    """What the filters of a table keep; the rows are those of `spark.table`, and nothing else is listed or opened."""
    found = {}
    for where, seen in ask_all(spark, name, list(KEPT[name])).items():
        assert seen.lists == (seen.kept or 1), (where, seen)
        assert seen.opened == seen.files, (where, seen)
        found[where] = (seen.rows, seen.kept, seen.partitions, seen.files)
    return found


def quotes(spark: SparkSession) -> tuple[Seen, str]:
    """A value with both kinds of quotes, which no filter of Hive's can hold; and what the plan says of it."""
    where = "name = 'both \\' and \"'"
    seen = ask_both(spark, "dw.hive_parquet", where, "concat(name, '!') = 'both \\' and \"!'")
    return seen, penstock.spark_table(spark, "dw.hive_parquet").plan(where).explain()


def elsewhere(spark: SparkSession, root: Path) -> dict[str, Seen]:
    """A partition that is moved, one whose directory is missing after all, and one that lies inside another."""
    place = root / "some where" / "p%20"
    (place / "inner").mkdir(parents=True)
    rows = pa.table({"id": pa.array([10], pa.int64()), "app": ["x"]})
    for folder in (place, place / "inner"):
        pq.write_table(rows, folder / "000000_0")
    run(
        spark,
        "CREATE TABLE dw.moved (id bigint, app string) PARTITIONED BY (dt string) STORED AS PARQUET",
        "INSERT INTO dw.moved VALUES (1, 'a', '2026-01-01')",
        f"ALTER TABLE dw.moved ADD PARTITION (dt = '2026-02-01') LOCATION '{place}'",
        f"ALTER TABLE dw.moved ADD PARTITION (dt = '2026-02-02') LOCATION '{place}/inner'",
        f"ALTER TABLE dw.moved PARTITION (dt = '2026-01-01') SET LOCATION '{root}/dw/moved/dt=2026-01-01'",
    )
    seen = ask_all(spark, "dw.moved", ["dt = '2026-02-01'", "dt LIKE '2026-02%'", "TRUE"])
    layout = penstock.hive(penstock.spark_table(spark, "dw.moved").root_url, "dt string")
    assert layout.arrow().num_rows == 1  # what a walk of the directories would give
    return seen


def many(spark: SparkSession, root: Path, count: int) -> tuple[dict[str, Seen], list[int]]:
    """So many partitions, each with a location of its own; how many calls a plan makes."""
    many_places(spark, "dw.many", root, count)
    wheres = ["n = 321", "dt = '2026-03' AND n % 50 = 0", "n > 490 AND n < 500 AND dt LIKE '2026%'"]
    return ask_all(spark, "dw.many", wheres), [asked(spark, "dw.many", where) for where in [*wheres, "TRUE"]]


def refused(spark: SparkSession) -> dict[str, str]:
    """What is said of tables that are read in another way."""
    run(
        spark,
        "CREATE TABLE dw.mixed (id bigint) PARTITIONED BY (dt string) STORED AS ORC",
        "INSERT INTO dw.mixed VALUES (1, 'a'), (2, 'b')",
        f"ALTER TABLE dw.mixed PARTITION (dt = 'a') SET SERDE '{PARQUET}'",
    )
    assert message(spark, "dw.mixed", "dt = 'b'") == ""
    return {name: message(spark, name) for name in ("dw.hive_text", "dw.seen", "dw.mixed", "dw.nosuch")}


def by_sql(spark: SparkSession) -> list[tuple[object, ...]]:
    """A query under the name of Penstock's catalog, joined with Spark's own table."""
    penstock.attach(spark, penstock.spark_catalog(spark), "pruned")
    text = "SELECT l.id FROM pruned.dw.hive_parquet l JOIN dw.hive_orc r ON l.id = r.id WHERE l.dt = DATE'2026-01-02'"
    return [tuple(row) for row in spark.sql(text).collect()]
