"""Tables of CSV, JSON and text in the session catalog: rows of `spark.table`, by the options that the catalog has."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import penstock

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [
    pytest.mark.spark,
    pytest.mark.usefixtures("utc"),
    # PySpark 4.0 leaves the socket of `toArrow` to the garbage collector.
    pytest.mark.filterwarnings("ignore:.*unclosed <socket:ResourceWarning"),
    pytest.mark.filterwarnings("ignore:.*<socket.socket:pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(scope="module")
def database(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    root = tmp_path_factory.mktemp("texts")
    spark.sql(f"CREATE DATABASE texts LOCATION '{root}'")
    yield root
    spark.sql("DROP DATABASE texts CASCADE")


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
def test_rows_are_those_of_sparks_table(
    spark: SparkSession, database: Path, provider: str, columns: str, values: str
) -> None:
    name = f"texts.{provider.split()[0]}_table"
    spark.sql(f"CREATE TABLE {name} ({columns}, p int) USING {provider} PARTITIONED BY (p)")
    spark.sql(f"INSERT INTO {name} VALUES {values}")
    elsewhere = (database / "elsewhere").as_uri()
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
