"""NaN and the two zeros in Spark: no row is lost to Parquet's statistics and dictionaries, whoever wrote the file.

The judge is plain Spark over a copy of the rows whose file has neither statistics nor dictionaries. What is pushed to
Parquet is judged by the rows that the scan returns: a row group that was skipped returns none.
"""

from __future__ import annotations

from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F

import penstock
from penstock.lake.write import data_files as writing
from tests.fixtures.iceberg_tables import create
from tests.fixtures.variants import variants
from tests.spark.hive_layouts import read_by

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NAN, INF = float("nan"), float("inf")
SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64()),
        pa.field("d", pa.float64()),
        pa.field("f", pa.float32()),
        pa.field("s", pa.struct([("x", pa.float64())])),
    ]
)
# One row group each: Parquet skips whole groups only.
GROUPS = [
    [1.0, NAN],
    [5.0, 5.0, NAN],
    [-0.0, -0.0],
    [0.0],
    [NAN, NAN],
    [None, 2.0],
    [-INF, INF, NAN],
    [-3.5, 7.25],
]
COMPARISONS = [
    *(
        f"{{}} {op} {value}"
        for op in (">", ">=", "<", "<=", "=", "<>", "<=>")
        for value in ("1e9D", "5D", "0D", "-0.0D")
    ),
    "{} = double('NaN')",
    "{} <> double('NaN')",
    "{} < double('NaN')",
    "{} <= double('NaN')",
    "{} >= double('NaN')",
    "isnan({})",
    "NOT isnan({})",
    "{} IN (5D, 0D)",
    "{} IN (5D, double('NaN'))",
    "{} NOT IN (5D, 1D)",
    "{} NOT IN (1D, 2D, 3D, 4D, 6D, 7D, 8D, 9D, 10D, 11D, 12D, 13D)",
    "{} BETWEEN 0D AND 5D",
    "{} NOT BETWEEN -1D AND 6D",
    "NOT ({} < 5D OR id = 1)",
    "{} > 6D OR id = 1",
    "{} IS NULL",
    "{} IS NOT NULL",
]
COLUMNS = ("d", "f", "s.x")


def rows() -> list[pa.Table]:
    """The groups as rows."""
    found, number = [], 0
    for values in GROUPS:
        ids = list(range(number, number + len(values)))
        number += len(values)
        structs = [None if v is None else {"x": v} for v in values]
        found.append(pa.table([ids, values, values, structs], schema=SCHEMA))
    return found


def write(path: Path, schema: pa.Schema = SCHEMA, **options: Any) -> None:
    """A file with a row group for each of the groups."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with pq.ParquetWriter(path, schema, **options) as writer:
        for group in rows():
            writer.write_table(group.cast(schema))


@pytest.fixture(scope="module")
def judge(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> DataFrame:
    place = tmp_path_factory.mktemp("judge")
    write(place / "rows.parquet", write_statistics=False, use_dictionary=False)
    return spark.read.parquet(str(place))


@pytest.fixture(scope="module")
def tables(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The same rows in a Hive layout, a plain Iceberg table, and a managed table."""
    root = tmp_path_factory.mktemp("tables")
    write(root / "hive" / "p=1" / "rows.parquet", write_page_index=True)
    lake = penstock.connect(root / "managed")
    managed = lake.create_table("web.t", SCHEMA)
    managed.append(pa.concat_tables(rows()))
    (root / "iceberg").mkdir()
    plain = create(root / "iceberg", SCHEMA)
    ids = {"d": b"2", "f": b"3", "s": b"4", "id": b"1"}
    fields = [f.with_metadata({"PARQUET:field_id": ids[f.name]}) for f in SCHEMA]
    inner = pa.field("x", pa.float64(), metadata={"PARQUET:field_id": "5"})
    fields[3] = pa.field("s", pa.struct([inner]), metadata={"PARQUET:field_id": "4"})
    assert [(f.name, f.field_id) for f in plain.schema().fields] == [("id", 1), ("d", 2), ("f", 3), ("s", 4)]
    for i, group in enumerate(rows()):
        path = root / "files" / f"{i}.parquet"
        path.parent.mkdir(exist_ok=True)
        pq.write_table(group.cast(pa.schema(fields)), path)
    _add(plain, [str(root / "files" / f"{i}.parquet") for i in range(len(GROUPS))])
    return {
        "hive": penstock.hive(str(root / "hive"), "p int"),
        "iceberg": penstock.connect(root / "iceberg").table("web.t"),
        "managed": managed.refresh(),
    }


def _add(table: Any, paths: list[str]) -> None:
    """Files that have field ids, as another engine commits them."""
    from pyiceberg.io.pyarrow import parquet_files_to_data_files

    with table.transaction() as transaction, transaction.update_snapshot().fast_append() as append:
        for file in parquet_files_to_data_files(table.io, table.metadata, iter(paths)):
            append.append_data_file(file)


def questions(column: str) -> list[str]:
    """Every comparison of a column, and the negations for one of the columns."""
    found = [text.format(column) for text in COMPARISONS]
    return found + [f"NOT ({text})" for text in found if column == "d"]


def pushed(rows: DataFrame, where: list[str]) -> dict[str, list[int]]:
    """The ids of each filter's rows, each with a scan of its own."""
    parts = [rows.where(text).select(F.lit(i).alias("q"), "id") for i, text in enumerate(where)]
    found = [row for some in range(0, len(parts), 32) for row in reduce(_union, parts[some : some + 32]).collect()]
    return {text: sorted(row["id"] for row in found if row["q"] == i) for i, text in enumerate(where)}


def _union(left: DataFrame, right: DataFrame) -> DataFrame:
    return left.unionAll(right)


def judged(rows: DataFrame, where: list[str]) -> dict[str, list[int]]:
    """The same, by evaluating every filter on every row."""
    found = rows.select("id", *(F.expr(text).alias(f"q{i}") for i, text in enumerate(where))).collect()
    return {text: sorted(row["id"] for row in found if row[f"q{i}"]) for i, text in enumerate(where)}


@pytest.mark.usefixtures("utc")
@pytest.mark.parametrize("vectorized", variants(["true", "false"], every_run=1))
@pytest.mark.parametrize(
    ("kind", "column"),
    [
        ("hive", "d"),
        ("iceberg", "f"),
        ("managed", "s.x"),
        *(
            pytest.param(kind, column, marks=pytest.mark.slow)
            for kind, others in (("hive", "f s.x"), ("iceberg", "d s.x"), ("managed", "d f"))
            for column in others.split()
        ),
    ],
)
def test_spark_finds_the_rows_that_it_finds_without_statistics(
    spark: SparkSession, judge: DataFrame, tables: dict[str, Any], kind: str, column: str, vectorized: str
) -> None:
    spark.conf.set("spark.sql.parquet.enableVectorizedReader", vectorized)
    try:
        where = questions(column)
        found, expected = pushed(tables[kind].dataframe(spark), where), judged(judge, where)
        assert {text: found[text] for text in where if found[text] != expected[text]} == {}
    finally:
        spark.conf.unset("spark.sql.parquet.enableVectorizedReader")


def rows_read(query: DataFrame) -> int:
    """The rows that the scans of a query returned, before its filters."""
    query.collect()
    return sum(read_by(query).rows)


@pytest.mark.usefixtures("utc")
@pytest.mark.parametrize("kind", ["hive", "iceberg"])
def test_filters_that_are_not_true_for_nan_are_pushed(spark: SparkSession, tables: dict[str, Any], kind: str) -> None:
    rows = tables[kind].dataframe(spark)
    assert rows_read(rows.where("d < -3D")) == 5  # the groups of -Infinity and of -3.5
    assert rows_read(rows.where("d = 7.25D")) == 2  # Infinity's group has another dictionary
    assert rows_read(rows.where("d > 1e9D AND id >= 14")) == 5


@pytest.mark.usefixtures("utc")
@pytest.mark.parametrize(("last", "read"), [(9.0, 5), (NAN, 10)])
def test_columns_that_are_known_to_hold_no_nan_are_pushed_whole(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, last: float, read: int
) -> None:
    monkeypatch.setattr(writing, "_row_groups", lambda stored, tuples: [0, 5, 10])
    table = penstock.connect(tmp_path / "lake").create_table(
        "web.t", "id bigint, d double, s struct<x: double>, m map<string, double>", shred={"m": ["k"]}
    )
    values = [*(float(i) for i in range(9)), last]
    rows = [{"id": i, "d": v, "s": {"x": v}, "m": {"k": v}} for i, v in enumerate(values)]
    table.append(pa.Table.from_pylist(rows, schema=table.schema))
    for column in ("d", "s.x", "m['k']"):
        query = table.dataframe(spark).where(f"{column} >= 8")
        assert sorted(row["id"] for row in query.collect()) == [8, 9], column
        assert rows_read(query) == read, column
