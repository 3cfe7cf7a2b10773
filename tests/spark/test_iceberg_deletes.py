"""Deleted rows stay deleted: positions, vectors and equal values, across specs and schemas, in Spark and without it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg import types as iceberg
from pyiceberg.table import Table
from pyiceberg.typedef import Record
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import penstock
from penstock.errors import LakeError
from penstock.spark.scan.iceberg_deletes import deleted_positions
from tests.fixtures.iceberg_deletes import (
    data_files,
    delete_by_vectors,
    delete_equal,
    delete_positions,
    unpartitioned,
    upgraded,
)
from tests.fixtures.iceberg_tables import create, repartition
from tests.fixtures.spark_settings import COMPILED, INTERPRETED, settings
from tests.spark.hive_layouts import read_by
from tests.spark.iceberg_layouts import ask_all, opened, same_as_pyiceberg, texts, tuples

pytestmark = [pytest.mark.spark, pytest.mark.compiled]
WHERE = [
    "TRUE",
    "app = 'a'",
    "app IS NULL",
    "n = 3",
    "id < 50",
    "id >= 100 AND app = 'b'",
    "n IS NULL",
    "id = 5",
    "f > 1",
]
# One filter on a partition, one on nothing that is known of files, one on both: enough where deletes are the subject.
SOME = ["TRUE", "app = 'a'", "n = 3", "id >= 100 AND app = 'b'", "f > 1"]


def rows_of(start: int, count: int) -> pa.Table:
    ids = range(start, start + count)
    return pa.table(
        {
            "id": pa.array(ids),
            "app": [("a", "b", None)[i % 3] for i in ids],
            "n": pa.array([None if i % 10 == 0 else i % 7 for i in ids], pa.int32()),
            "f": pa.array([float("nan") if i % 9 == 0 else float(i % 4) for i in ids]),
        }
    )


def alive(spark: SparkSession, table: Any, gone: set[int], total: int, wheres: Sequence[str] = SOME) -> None:
    """Just these rows are gone, for every filter, in Spark as in `table.arrow()`."""
    kept = [i for i in range(total) if i not in gone]
    rows = rows_of(0, total).take(pa.array(kept))
    ask_all(spark, table, wheres)
    assert texts(tuples(table.arrow())) == texts(tuples(rows))
    df = table.dataframe(spark)
    assert df.columns == rows.column_names
    assert (df.count(), table.count()) == (len(kept), len(kept))
    assert {row["app"]: row["count"] for row in df.groupBy("app").count().collect()} == Counter(rows["app"].to_pylist())


def two_specs(root: Path) -> Table:
    """120 rows: sixty unpartitioned, sixty by app."""
    table = create(root, rows_of(0, 1).schema)
    table.append(rows_of(0, 60))
    repartition(table, ["app"])
    table.append(rows_of(60, 60))
    return table


def ids_in(table: Table, path: str) -> list[int]:
    """The ids of a file's rows, by position."""
    import pyarrow.parquet as pq

    return [int(i) for i in pq.ParquetFile(path.removeprefix("file://")).read(["id"])["id"].to_pylist()]


def test_position_deletes_across_specs(spark: SparkSession, tmp_path: Path) -> None:
    table = two_specs(tmp_path)
    files = [file.file_path for file in data_files(table)]
    positions = {path: [0, 3, 7] for path in files[:-1]}
    delete_positions(table, positions)
    gone = {ids_in(table, path)[i] for path, at in positions.items() for i in at}
    alive(spark, opened(tmp_path), gone, 120, WHERE)
    delete_positions(table, {files[-1]: [1]}, named=True)
    gone.add(ids_in(table, files[-1])[1])
    alive(spark, opened(tmp_path), gone, 120)
    same_as_pyiceberg(spark, opened(tmp_path))


def test_files_without_deletes_stay_out_of_the_way_of_those_that_have(spark: SparkSession, tmp_path: Path) -> None:
    table = two_specs(tmp_path)
    delete_positions(table, {data_files(table)[0].file_path: [0]})
    query = opened(tmp_path).dataframe(spark).select("id")
    assert len(query.collect()) == 119
    assert sorted(read_by(query).files) == [0, 1, 1, 2] or sorted(read_by(query).files) == [0, 0, 1, 3]
    shown = query._jdf.queryExecution().toString().split("== Physical Plan ==")[1]
    scans = [line for line in shown.splitlines() if "FileScan" in line]
    assert ["row_index" in line for line in scans] == [False, True, False, True]


def test_deletion_vectors(spark: SparkSession, tmp_path: Path) -> None:
    table = two_specs(tmp_path)
    files = [file.file_path for file in data_files(table)]
    positions = {files[0]: [1, 2], files[2]: [0]}
    delete_by_vectors(table, positions)
    gone = {ids_in(table, path)[i] for path, at in positions.items() for i in at}
    for found in (opened(tmp_path), penstock.iceberg(upgraded(table))):
        alive(spark, found, gone, 120)


def test_vector_replaces_the_position_deletes_of_its_file(spark: SparkSession, tmp_path: Path) -> None:
    table = two_specs(tmp_path)
    path = data_files(table)[0].file_path
    delete_positions(table, {path: [0, 1]})
    delete_by_vectors(table, {path: [0, 1, 2]})
    alive(spark, opened(tmp_path), {ids_in(table, path)[i] for i in (0, 1, 2)}, 120)


def test_equality_deletes_take_older_rows_only(spark: SparkSession, tmp_path: Path) -> None:
    table = two_specs(tmp_path)
    delete_equal(table, pa.table({"n": pa.array([3, None], pa.int32())}), [3])
    table.append(rows_of(120, 30))
    before = {i for i in range(120) if i % 10 == 0 or i % 7 == 3}
    alive(spark, opened(tmp_path), before, 150, WHERE)
    delete_equal(table, pa.table({"id": pa.array([1, 130]), "app": ["b", "b"]}), [1, 2])
    alive(spark, opened(tmp_path), before | ({1} if 1 % 3 == 1 else set()) | {130}, 150)


def test_equality_deletes_of_one_partition(spark: SparkSession, tmp_path: Path) -> None:
    table = two_specs(tmp_path)
    of_a = next(file for file in data_files(table) if file.spec_id == 1 and file.partition[0] == "a")
    delete_equal(table, pa.table({"n": pa.array([2], pa.int32())}), [3], spec_id=1, partition=of_a.partition)
    gone = {i for i in range(60, 120) if i % 3 == 0 and i % 7 == 2 and i % 10}
    alive(spark, opened(tmp_path), gone, 120)


def test_equality_deletes_of_a_spec_of_void_fields_are_of_all_partitions(spark: SparkSession, tmp_path: Path) -> None:
    table = create(tmp_path, rows_of(0, 1).schema, ["app"], version=1)
    table.append(rows_of(0, 60))
    repartition(table, [])
    with table.transaction() as transaction:
        transaction.upgrade_table_version(2)
    table = table.refresh()
    void = table.spec()
    assert [str(field.transform) for field in void.fields] == ["void"]
    delete_equal(table, pa.table({"id": [1, 2, 3]}), [1], spec_id=void.spec_id, partition=Record(None))
    alive(spark, opened(tmp_path), {1, 2, 3}, 60)


def test_equality_deletes_by_a_partition_column_and_by_nan(spark: SparkSession, tmp_path: Path) -> None:
    table = two_specs(tmp_path)
    delete_equal(table, pa.table({"app": pa.array([None], pa.string()), "f": [float("nan")]}), [2, 4])
    gone = {i for i in range(120) if i % 3 == 2 and i % 9 == 0}
    assert gone == set()
    delete_equal(table, pa.table({"app": ["a"], "f": [float("nan")]}), [2, 4])
    alive(spark, opened(tmp_path), {i for i in range(120) if i % 9 == 0}, 120)


def test_equality_deletes_on_renamed_dropped_and_added_columns(spark: SparkSession, tmp_path: Path) -> None:
    table = two_specs(tmp_path)
    delete_equal(table, pa.table({"n": pa.array([3], pa.int32())}), [3])
    with table.update_schema() as update:
        update.rename_column("f", "g")
        update.delete_column("n")
        update.update_column("id", iceberg.LongType())
    with table.update_schema() as update:
        update.add_column("n", iceberg.StringType())
    delete_equal(table, pa.table({"g": [2.0]}), [4])
    found = opened(tmp_path)
    kept = [i for i in range(120) if not (i % 7 == 3 and i % 10) and not (i % 9 and i % 4 == 2)]
    df = found.dataframe(spark)
    assert sorted(row.id for row in df.collect()) == kept == sorted(found.arrow()["id"].to_pylist())
    assert df.columns == ["id", "app", "g", "n"]
    assert df.where("n IS NULL").count() == len(kept)


@pytest.mark.slow  # each kind has a test of its own in every run
def test_all_kinds_at_once_in_random_order(spark: SparkSession, tmp_path: Path) -> None:
    rng = Random(7)
    table = create(tmp_path, rows_of(0, 1).schema)
    total, gone = 0, set[int]()
    for step in range(8):
        repartition(table, rng.choice([[], ["app"], ["n"], ["bucket[2](id)"]]))
        table.append(rows_of(total, 30))
        total += 30
        files = data_files(table)
        chosen = rng.sample([file.file_path for file in files], min(2, len(files)))
        positions = {path: rng.sample(range(len(ids_in(table, path))), 1) for path in chosen}
        match step % 3:
            case 0:
                delete_positions(table, positions)
                gone |= {ids_in(table, path)[i] for path, at in positions.items() for i in at}
            case 1:
                value = rng.randrange(7)
                delete_equal(table, pa.table({"n": pa.array([value], pa.int32())}), [3], spec_id=unpartitioned(table))
                gone |= {i for i in range(total) if i % 10 and i % 7 == value}
            case 2:
                wanted = rng.sample(range(total), 3)
                delete_equal(table, pa.table({"id": pa.array(wanted)}), [1])
                gone |= set(wanted)
    alive(spark, opened(tmp_path), gone, total, WHERE)
    first = table.metadata.snapshots[0]
    assert opened(tmp_path).at(first.snapshot_id).dataframe(spark).count() == 30


def test_join_prunes_at_run_time_below_deletes(spark: SparkSession, tmp_path: Path) -> None:
    table = create(tmp_path, rows_of(0, 1).schema)
    repartition(table, ["app"])
    table.append(rows_of(0, 60))
    delete_positions(table, {data_files(table)[0].file_path: [0]})
    delete_equal(table, pa.table({"id": pa.array([3, 4])}), [1])
    spark.createDataFrame([("a", 1), ("b", 2)], "x string, k int").write.parquet(str(tmp_path / "dim"))
    dim = spark.read.parquet(str(tmp_path / "dim")).where("k = 1")
    query = opened(tmp_path).dataframe(spark).join(F.broadcast(dim), F.col("app") == F.col("x")).select("id")
    assert sorted(row.id for row in query.collect()) == [i for i in range(0, 60, 3) if i not in (0, 3)]
    assert sum(read_by(query).static_files) == 2  # the null partition went before
    assert 1 in read_by(query).files


@pytest.mark.slow
def test_deletes_with_the_row_based_reader_and_with_and_without_code_generation(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = two_specs(tmp_path)
    path = data_files(table)[0].file_path
    delete_positions(table, {path: [0, 5]})
    delete_equal(table, pa.table({"id": pa.array([100])}), [1])
    gone = {ids_in(table, path)[0], ids_in(table, path)[5], 100}
    row_based = {"spark.sql.parquet.enableVectorizedReader": "false"}
    interpreted = INTERPRETED | {"spark.sql.adaptive.enabled": "false"}
    for values in (row_based | COMPILED, interpreted, row_based | interpreted):
        with settings(spark, values):
            alive(spark, opened(tmp_path), gone, 120)


def test_large_file_with_splits_counts_positions_in_the_whole_file(spark: SparkSession, tmp_path: Path) -> None:
    table = create(tmp_path, rows_of(0, 1).schema)
    with table.transaction() as change:
        change.set_properties({"write.parquet.row-group-limit": "500"})
    table.append(rows_of(0, 20_000))
    path = data_files(table)[0].file_path
    positions = list(range(0, 20_000, 7))
    delete_positions(table, {path: positions})
    spark.conf.set("spark.sql.files.maxPartitionBytes", "20000")
    try:
        df = opened(tmp_path).dataframe(spark)
        assert df.rdd.getNumPartitions() > 3
        assert df.count() == 20_000 - len(positions)
        assert df.where("id % 7 = 0").count() == 0
        assert df.where("id > 19990").count() == opened(tmp_path).count("id > 19990")
    finally:
        spark.conf.unset("spark.sql.files.maxPartitionBytes")


def test_positions_beyond_four_billion_are_an_error() -> None:
    from pyroaring import BitMap64

    assert deleted_positions(BitMap64([2**32 - 1]), "x") is not None
    assert deleted_positions(BitMap64(), "x") is None
    with pytest.raises(LakeError, match="behind the first"):
        deleted_positions(BitMap64([2**32]), "x")


def test_equal_scans_with_deletes_are_reused(spark: SparkSession, tmp_path: Path) -> None:
    table = two_specs(tmp_path)
    delete_positions(table, {data_files(table)[0].file_path: [0]})

    def counts() -> Any:
        return opened(tmp_path).dataframe(spark).where("id < 100").groupBy("app").count()

    query = counts().union(counts())
    query.collect()
    assert read_by(query).reused == 1


def test_rows_that_stay_know_the_spec_and_the_partition_of_their_file(spark: SparkSession, tmp_path: Path) -> None:
    """The hidden columns `_spec_id` and `_partition`; and plans show no internal names."""
    table = two_specs(tmp_path)
    delete_positions(table, {file.file_path: [0] for file in data_files(table)})
    delete_equal(table, pa.table({"n": pa.array([3], pa.int32())}), [3])
    opened_table = opened(tmp_path)
    rows = opened_table.relations().rows_with_partitions(spark)
    columns = ["id", "`spec of the file`", "`partition of the file`.app"]
    places = {
        i: (file.spec_id, file.partition[0] if file.spec_id else None)
        for file in data_files(table)
        for i in ids_in(table, file.file_path)
    }
    staying = opened_table.arrow()["id"].to_pylist()
    assert sorted(map(tuple, rows.select(*columns).collect())) == sorted((i, *places[i]) for i in staying)
    of_a = rows.where("`partition of the file`.app = 'a'")
    assert sorted(row.id for row in of_a.collect()) == sorted(i for i in staying if places[i] == (1, "a"))
    assert sum(read_by(of_a).files) == 2  # one of data, and the one with the deletes by value
    assert "__penstock" not in rows._jdf.queryExecution().toString()
