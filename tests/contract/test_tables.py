"""Every layout passes the one contract."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import penstock
from penstock import MemoryTable
from penstock.errors import SchemaError
from penstock.expr.types import type_name
from penstock.tables.hive.hive_table import HiveTable
from tests.contract.contract import Make, TableContract
from tests.contract.corpus import KINDS
from tests.fixtures.format_writer import write_as
from tests.fixtures.hive_writer import write_hive
from tests.fixtures.iceberg_tables import write_iceberg
from tests.fixtures.managed_tables import managed_table
from tests.fixtures.memory_metastore import in_places, opened
from tests.s3.server import S3Server


def declared(rows: pa.Table, partition_by: list[str]) -> list[str]:
    return [f"{name} {type_name(rows.schema.field(name).type)}" for name in partition_by]


class TestMemory(TableContract):
    kind = "Table in memory"
    prunes_by_bounds = True
    is_on_storage = False

    @pytest.fixture(scope="class")
    @classmethod
    def make(cls) -> Make:
        return MemoryTable.from_rows


class TestHiveOnADisk(TableContract):
    kind = "Hive layout"

    @pytest.fixture(scope="class")
    @classmethod
    def make(cls, tmp_path_factory: pytest.TempPathFactory) -> Make:
        def write(rows: pa.Table, partition_by: list[str]) -> HiveTable:
            root = write_hive(tmp_path_factory.mktemp("hive"), rows, partition_by)
            return penstock.hive(root, declared(rows, partition_by))

        return write


class TestHiveOfOrc(TableContract):
    """A layout whose files are of another format than Parquet."""

    kind = "Hive layout"
    format = "orc"

    @classmethod
    def columns(cls, rows: pa.Table, partition_by: list[str]) -> str | None:
        """The schema that is declared; None where files have types."""
        return None

    @pytest.fixture(scope="class")
    @classmethod
    def make(cls, tmp_path_factory: pytest.TempPathFactory) -> Make:
        def write(rows: pa.Table, partition_by: list[str]) -> HiveTable:
            root = tmp_path_factory.mktemp(cls.format)
            write_hive(root, rows, partition_by, partial(write_as, cls.format), f"part-0.{cls.format}")
            schema, options = cls.columns(rows, partition_by), {"header": True} if cls.format == "csv" else {}
            return penstock.hive(root, declared(rows, partition_by), schema, options=options)

        return write


class TestHiveOfAvro(TestHiveOfOrc):
    format = "avro"


class TestHiveOfJson(TestHiveOfOrc):
    format = "json"

    @classmethod
    def columns(cls, rows: pa.Table, partition_by: list[str]) -> str | None:
        return ", ".join(declared(rows, [name for name in rows.column_names if name not in partition_by]))


class TestHiveOfCsv(TestHiveOfJson):
    format = "csv"

    def test_a_column_may_be_a_key_of_a_map(self, make: Any) -> None:
        with pytest.raises(SchemaError, match="column headers is map<string,string>, and CSV has single values; decl"):
            super().test_a_column_may_be_a_key_of_a_map(make)


class TestHiveOnS3(TableContract):
    kind = "Hive layout"

    @pytest.fixture(scope="class")
    @classmethod
    def make(cls, s3: S3Server) -> Make:
        def write(rows: pa.Table, partition_by: list[str]) -> HiveTable:
            root = write_hive(s3.new_bucket() / "t", rows, partition_by)
            return penstock.hive(s3.url(root), declared(rows, partition_by), storage=s3.properties)

        return write


class TestOfAMetastore(TableContract):
    """Partitions that lie where only the metastore says."""

    kind = "Metastore table"
    is_streamed = False

    @pytest.fixture(scope="class")
    @classmethod
    def make(cls, tmp_path_factory: pytest.TempPathFactory) -> Make:
        return lambda rows, partition_by: opened(in_places(tmp_path_factory.mktemp("places"), rows, partition_by))


class TestIceberg(TableContract):
    kind = "Iceberg table"
    has_snapshots = True
    prunes_by_bounds = True

    @classmethod
    def rows(cls, kind: str) -> pa.Table:
        rows = KINDS[kind].rows()
        return rows if kind != "smallint" else rows.set_column(3, "k", rows["k"].cast(pa.int32()))

    @pytest.fixture(scope="class")
    @classmethod
    def make(cls, tmp_path_factory: pytest.TempPathFactory) -> Make:
        def write(rows: pa.Table, partition_by: list[str]) -> Any:
            root: Path = tmp_path_factory.mktemp("iceberg")
            write_iceberg(root, rows, partition_by, version=2)
            return penstock.connect(root).table("web.t")

        return write


class TestIcebergOfVersionOneByItsMetadataFile(TestIceberg):
    @pytest.fixture(scope="class")
    @classmethod
    def make(cls, tmp_path_factory: pytest.TempPathFactory) -> Make:
        def write(rows: pa.Table, partition_by: list[str]) -> Any:
            table = write_iceberg(tmp_path_factory.mktemp("iceberg"), rows, partition_by, version=1)
            return penstock.iceberg(table.metadata_location)

        return write


class TestManaged(TestIceberg):
    """A table that Penstock writes, each partition in files of its own."""

    shares = False

    @pytest.fixture(scope="class")
    @classmethod
    def make(cls, tmp_path_factory: pytest.TempPathFactory) -> Make:
        def write(rows: pa.Table, partition_by: list[str]) -> Any:
            root = tmp_path_factory.mktemp("managed")
            rule, properties = (partition_by, {"write.target-file-size-bytes": "1"}) if cls.shares else (None, {})
            table = managed_table(root, rows.schema, partition_by, coalesce=rule, properties=properties)
            table.append(rows)
            return table

        return write


class TestManagedAndCoalesced(TestManaged):
    """Files of the coarse spec, of which nothing but the recorded tuples tells the partition.

    Files are to be so small that none has more than one logical partition: the counts of files are those of any layout.
    """

    shares = True

    @pytest.mark.parametrize("kind", KINDS)
    def test_a_file_tells_the_value_of_its_partition(self, table_of: Callable[[str], Any], kind: str) -> None:
        files = list(table_of(kind).plan().files)
        assert all(file.partition == {} and file.logical.complete and file.logical.columns == ("k",) for file in files)
        found = [value for file in files for (value,) in file.logical.tuples]
        assert sorted(map(str, found)) == sorted(map(str, KINDS[kind].values))
