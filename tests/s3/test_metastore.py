"""Partitions of one table in two buckets and on a disk: each is listed where it lies, and only those that match."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from penstock.tables.metastore.metastore import StoredTable
from penstock.tables.metastore.metastore_table import MetastoreTable, open_stored
from tests.fixtures.hive_writer import write_file
from tests.fixtures.memory_metastore import MemoryMetastore
from tests.s3.server import S3Server


def table_in(s3: S3Server, local: Path) -> tuple[MetastoreTable, list[str]]:
    """A table with a partition in each of two buckets, and one on the disk; and the locations."""
    buckets = [s3.new_bucket(), s3.new_bucket()]
    for number, place in enumerate([buckets[0] / "t" / "x=1 %20", buckets[1] / "elsewhere", local / "p"]):
        write_file(place / "000000_0", pa.table({"id": pa.array([number], pa.int64())}))
    locations = [f"{s3.url(buckets[0])}/t/x=1 %20", f"{s3.url(buckets[1])}/elsewhere", f"file:{local}/p"]
    locations = [each.replace("s3://", "s3a://") for each in locations]
    columns = pa.schema({"id": pa.int64()}), pa.schema({"k": pa.string()})
    stored = StoredTable("dw.t", ("dw", "t"), "parquet", f"{s3.url(buckets[0])}/t", *columns)
    partitioned = [((k,), location) for k, location in zip("abc", locations, strict=True)]
    return open_stored(MemoryMetastore(stored, partitioned), "dw.t", storage=s3.properties), locations


def test_partitions_are_read_where_they_lie(s3: S3Server, tmp_path: Path) -> None:
    table, locations = table_in(s3, tmp_path)
    assert sorted(table.arrow()["id"].to_pylist()) == [0, 1, 2]
    assert table.plan().report.list_calls == 3
    plan = table.plan("k = 'b'")
    assert (plan.report.list_calls, plan.files.paths.to_pylist()) == (1, [f"{locations[1]}/000000_0"])
    assert table.arrow("k = 'a'").to_pylist() == [{"id": 0, "k": "a"}]
    assert [file.partition["k"].value for file in table.plan("k <> 'b'").files] == ["c", "a"]
