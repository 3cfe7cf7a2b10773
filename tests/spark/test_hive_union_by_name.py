"""Layouts whose files differ in columns and types, and whose branches differ in the order of levels, read by Spark."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import penstock
from tests.fixtures.layouts import write_file
from tests.unit.tables.test_union_by_name import FILES, as_text, of_duckdb

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

import pyarrow as pa

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("utc")]


@pytest.mark.parametrize("where", ["true", "b = 'x'", "a = 2 AND b = 'z'", "n > 2", "later IS NULL", "f > 1", "a = 3"])
def test_spark_reads_the_rows_that_duckdb_reads(spark: SparkSession, tmp_path: Path, where: str) -> None:
    for name, columns in FILES.items():
        write_file(tmp_path / name, pa.table(columns))
    table = penstock.hive(tmp_path, "a int, b string", union_by_name=True)
    rows = table.dataframe(spark).where(where)
    assert as_text(rows.toArrow()) == as_text(of_duckdb(tmp_path, where))
    assert len(rows.inputFiles()) == len(table.plan(where).files)
