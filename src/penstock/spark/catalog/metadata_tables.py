"""Metadata tables: `lake.web.events.snapshots` and others, under Iceberg's names and columns, and Penstock's own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from penstock.errors import LakeError
from penstock.lake.managed_table import ManagedTable
from penstock.spark.catalog.computed_changes import FILE
from penstock.spark.catalog.table_facts import facts, spark_schema
from penstock.spark.catalog.versions import table_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from penstock.lake.lake import Lake

# Iceberg's, by PyIceberg; `logical_partitions` and `hot_keys` are what only Penstock knows.
_ICEBERG = (
    "snapshots",
    "history",
    "refs",
    "files",
    "data_files",
    "delete_files",
    "all_files",
    "all_data_files",
    "all_delete_files",
    "manifests",
    "all_manifests",
    "entries",
    "partitions",
    "metadata_log_entries",
)

_OF_LAYOUTS = ("logical_partitions",)


@dataclass(frozen=True)
class _NoFiles:
    """The snapshot and its only manifest, where a table has none: PyIceberg reads nothing without them."""

    partition_spec_id: int
    snapshot_id: None = None

    def manifests(self, io: Any) -> list[_NoFiles]:
        return [self]

    def fetch_manifest_entry(self, io: Any, discard_deleted: bool = True) -> list[Any]:
        return []


def _of_iceberg(name: str) -> Callable[[ManagedTable], pa.Table]:
    def read(table: ManagedTable) -> pa.Table:
        if name in ("snapshots", "history", "refs"):
            own: pa.Table = getattr(table, name)()
            return own
        inspect = table.table.inspect
        if table.table.current_snapshot() is None:
            vars(inspect)["_get_snapshot"] = lambda snapshot_id=None: _NoFiles(table.table.spec().spec_id)
        rows: pa.Table = getattr(inspect, name)()
        return rows

    return read


def _hot_keys(table: ManagedTable) -> pa.Table:
    rows = [(column, key, rule.mode) for column, rule in table.shred.items() for key in rule.keys]
    columns = [pa.array(values, pa.string()) for values in zip(*rows, strict=True)] or [pa.array([], pa.string())] * 3
    return pa.table(columns, names=["column", "key", "mode"])


METADATA_TABLES: dict[str, Callable[[Any], pa.Table]] = {
    **{name: _of_iceberg(name) for name in _ICEBERG},
    "logical_partitions": lambda table: table.partitions(),
    "hot_keys": _hot_keys,
}


@dataclass(frozen=True)
class MetadataTable:
    """The rows of a metadata table, as they were when Spark loaded it."""

    name: str
    data: pa.Table

    def facts(self) -> dict[str, Any]:
        """What Spark is told of it."""
        own = facts(self.name, f"{self.name} {id(self.data)}", spark_schema(self.data.schema, {}), (), {})
        return {**own, "partitions": spark_schema(pa.schema([]), {})}

    def rows(self, spark: SparkSession, hidden: Sequence[str]) -> DataFrame:
        """All rows."""
        if FILE in hidden:  # of a DELETE
            self.for_writing()
        if hidden:
            raise LakeError(f"{self.name} is a metadata table, which has no column {hidden[0]}")
        frame: DataFrame = spark.createDataFrame(self.data)
        return frame

    def change(self, mode: str, statement: dict[str, Any] | None, rows: DataFrame) -> None:
        """Metadata is not written."""
        self.for_writing()

    def for_writing(self) -> ManagedTable:
        """Metadata is not written."""
        raise LakeError(f"{self.name} is a metadata table, which cannot be written", hint="write to the table itself")


def metadata_table(lake: Lake, parts: Sequence[str]) -> MetadataTable | None:
    """The metadata table that a name of three parts or more means; None when it means none."""
    kind = parts[-1].lower()
    if len(parts) < 3 or kind not in METADATA_TABLES or lake.has_table(".".join(parts)):
        return None
    name = table_name(lake, parts[:-1])
    if not lake.has_table(name):
        return None
    table = lake.table(name)
    if not isinstance(table, ManagedTable) and kind not in _OF_LAYOUTS:
        raise LakeError(f"{name} is a Hive layout, which has no {kind}", hint=f"it has {name}.{_OF_LAYOUTS[0]}")
    return MetadataTable(f"{name}.{kind}", _plain(METADATA_TABLES[kind](table)))


def _plain(table: pa.Table) -> pa.Table:
    """Without what Spark's Arrow reader does not take: times are in milliseconds and without a zone in PyIceberg's."""
    columns = []
    for field, column in zip(table.schema, table.columns, strict=True):
        is_time = pa.types.is_timestamp(field.type)
        columns.append(column.cast(pa.timestamp("us", "UTC")) if is_time else column)
    return pa.table(columns, names=table.column_names)
