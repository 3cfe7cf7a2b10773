"""Decimals of 38 digits through Spark: rows and files, with plain Spark over files without statistics as the judge."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import penstock
from tests.fixtures.hive_writer import write_hive
from tests.fixtures.variants import variants

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TYPE = "decimal(38,10)"
TOP = "9999999999999999999999999999.999999999"
TEXTS = [f"{TOP}9", f"{TOP}8", f"{TOP}2", "1000000000000000000.0000000001", "0.5", "-0.5", f"-{TOP}9", f"-{TOP}8"]
QUESTIONS = [f"d {op} {text}" for text in (TEXTS[1], TEXTS[5], TEXTS[7], f"{TOP}5") for op in ("=", "<", ">=")]
QUESTIONS += [
    f"d IN ({', '.join(TEXTS[::2])})",
    f"d BETWEEN -{TOP}8 AND {TOP}2",
    f"NOT d > -{TOP}8",
    "d > 0.5 OR d < -1",
]


def rows() -> pa.Table:
    values = pa.array([Decimal(text) for text in TEXTS], pa.decimal128(38, 10))
    return pa.table({"id": pa.array(range(len(TEXTS)), pa.int64()), "d": values})


@pytest.fixture
def flat(spark: SparkSession, tmp_path: Path) -> DataFrame:
    penstock.attach(spark)
    pq.write_table(rows(), tmp_path / "flat.parquet", write_statistics=False)
    return spark.read.parquet(str(tmp_path / "flat.parquet"))


def ids(frame: Any, where: str) -> list[int]:
    return sorted(row.id for row in frame.where(where).select("id").collect())


@pytest.mark.parametrize("layout", variants(["hive", "shared", "identity", "bounds", "truncate"], every_run=2))
def test_spark_finds_the_rows_that_plain_spark_finds(
    spark: SparkSession, tmp_path: Path, flat: DataFrame, layout: str
) -> None:
    if layout == "hive":
        write_hive(tmp_path / "t", rows(), ["d"])
        table: Any = penstock.hive(tmp_path / "t", f"d {TYPE}")
    else:
        by = {"identity": ["d"], "bounds": [], "truncate": ["truncate(1, d)"], "shared": ["d"]}[layout]
        rule = ["d"] if layout == "shared" else None
        table = penstock.connect(tmp_path / "lake").create_table("web.t", f"id bigint, d {TYPE}", by, coalesce=rule)
        if layout == "bounds":
            for i in range(len(TEXTS)):
                table.append(rows().slice(i, 1))
        else:
            table.append(spark.createDataFrame(rows(), f"id bigint, d {TYPE}"))
    frame = table.dataframe(spark)
    for where in QUESTIONS:
        expected = ids(flat, where)
        assert ids(frame, where) == expected, where
        assert sorted(table.arrow(where).column("id").to_pylist()) == expected, where
        if layout != "shared":
            assert len(table.plan(where).files) == len(expected), where
