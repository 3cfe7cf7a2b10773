"""One version of a table, loaded for a query: the newest, or the one that VERSION AS OF or TIMESTAMP AS OF names."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from pyiceberg.table.refs import SnapshotRefType

from penstock.errors import LakeError, TableNotFoundError
from penstock.spark.catalog.computed_changes import FILE, PLACE
from penstock.spark.catalog.few_rows import FewRows, source_schema
from penstock.spark.catalog.layouts import layout_options
from penstock.spark.catalog.row_changes import change_rows
from penstock.spark.catalog.table_facts import facts, spark_schema
from penstock.spark.scan.iceberg_partition import PARTITION_OF_FILE, SPEC_OF_FILE, PartitionColumns
from penstock.spark.scan.planner import plain_values
from penstock.spark.session.session import attach
from penstock.stream.feed import Feed
from penstock.stream.stream_options import as_options
from penstock.tables.hive.hive_table import HiveTable
from penstock.tables.iceberg.iceberg_table import IcebergTable
from penstock.tables.iceberg.metadata.branch import refs_of

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from penstock.lake.lake import Lake
    from penstock.lake.managed_table import ManagedTable
    from penstock.tables.source import Source

# Columns that are not in the schema, and where Spark has them.
HIDDEN = {
    "_file": "_metadata.file_path",
    "_pos": "_metadata.row_index",
    "_metadata": "_metadata",
    "_spec_id": f"`{SPEC_OF_FILE}`",
    "_partition": f"`{PARTITION_OF_FILE}`",
    FILE: "_metadata.file_path",
    PLACE: "_metadata.row_index",
}
_BRANCH, _TAG = "branch_", "tag_"  # before a name, behind that of a table, as in Iceberg
_COUNTS = (("rows", "numRows"), ("files", "numFiles"), ("bytes", "totalSize"))
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class TableVersion:
    """A table of a lake as it was when Spark loaded it."""

    lake: Lake
    name: str
    table: Source
    is_past: bool
    branch: str | None = field(default=None, kw_only=True)

    def facts(self) -> dict[str, Any]:
        """What Spark is told of it."""
        key = f"{self.table.key}{' past' if self.is_past else ''}{f' {self.branch}' if self.branch else ''}"
        schema = spark_schema(self.table.schema, self.table.comments())
        by = self.table.partition_fields()
        name = f"{self.name}.{_BRANCH}{self.branch}" if self.branch else self.name
        own = facts(name, key, schema, by, {**self.table.properties(), **self._place()})
        return {
            **own,
            "partitions": spark_schema(self.table.partition_schema(), {}),
            "partition": spark_schema(self._partition(), {}),
        }

    def _partition(self) -> pa.Schema:
        """The type of the hidden column `_partition`."""
        if isinstance(self.table, IcebergTable):
            return PartitionColumns.of(self.table.version).struct()
        return self.table.partition_schema()

    def _place(self) -> dict[str, str]:
        """For SHOW CREATE TABLE: whose table it is, and whether the catalog chose its folder, which is left out."""
        if isinstance(self.table, HiveTable):
            provider = self.table.data_files.file_format.name
            return {"provider": provider, "external": "true", **layout_options(self.table)}
        location = self.table.properties().get("location", "")
        is_chosen = location.endswith(self.name.replace(".", "/"))
        return {"provider": "penstock", **({"is_managed_location": "true"} if is_chosen else {})}

    def rows(self, spark: SparkSession, hidden: Sequence[str]) -> DataFrame:
        """All rows; `hidden` columns, which are not in the schema, come behind."""
        from pyspark.sql import functions as F

        rows: DataFrame
        columns = [F.col(HIDDEN[name]).alias(name) for name in hidden]
        if {"_spec_id", "_partition"}.isdisjoint(hidden):
            rows = self.table.dataframe(spark)
            return rows.select("*", *columns) if hidden else rows
        rows = self.table.relations().rows_with_partitions(attach(spark))
        return rows.select("*", *columns).drop(SPEC_OF_FILE, PARTITION_OF_FILE)

    def partitions(self) -> dict[tuple[Any, ...], dict[str, int]]:
        """The values of each partition, as JSON has them, with its counts under the names that they have in Hive."""
        names = self.table.partition_schema().names
        listed = self.table.partitions()
        places = {name: listed.schema.get_all_field_indices(name) for name in listed.column_names}
        # A field may be called `files` or `spec_id`: counts are the last columns, the spec's number is the first.
        own = [places[name][-1 if name == "spec_id" else 0] for name in names]
        columns = [plain_values(listed.column(i).combine_chunks()) for i in own]
        numbers = {shown: listed.column(places[name][-1]).to_pylist() for name, shown in _COUNTS if name in places}
        counts: dict[tuple[Any, ...], dict[str, int]] = {}
        for i, values in enumerate(zip(*columns, strict=True)):
            known = counts.setdefault(values, dict.fromkeys(numbers, 0))
            for shown, column in numbers.items():
                known[shown] += column[i]
        return counts

    def feed(self, options: Mapping[str, str]) -> Feed:
        """What is new in the table, step by step."""
        return self.table.feed(as_options(options))

    def sink(self) -> dict[str, str]:
        """The options of `format("penstock")` by which a stream finds the table."""
        self.for_writing()
        if self.branch is not None:
            message = f"a stream does not write to the branch {self.branch} of {self.name}"
            raise LakeError(message, hint="write micro-batches with foreachBatch, or to the table itself")
        source, warehouse = self.lake.source, self.lake.warehouse
        if source is not None and not isinstance(source, str):
            hint = "describe the catalog in .pyiceberg.yaml, and connect by its name"
            raise LakeError("a stream is written by processes of their own, which do not have this catalog", hint=hint)
        options = {"table": self.name, "warehouse": None if warehouse is None else str(warehouse), "catalog": source}
        return {name: value for name, value in options.items() if value is not None}

    def change(self, mode: str, statement: dict[str, Any] | None, rows: DataFrame) -> None:
        """Execute a statement that changes rows."""
        change_rows(self.for_writing(), self.table, mode, statement, rows)

    def merge(self, parts: Mapping[str, Any], source: str) -> FewRows | None:
        """A merge that can be done without a join; None where it is left to Spark."""
        columns = source_schema(source)
        if columns is None or not isinstance(self.table, IcebergTable):
            return None
        return FewRows.of(self.table, parts, columns)

    def for_writing(self) -> ManagedTable:
        """The table to write to."""
        if self.is_past:
            hint = "leave out AS OF, and write to the table or to a branch"
            raise LakeError(f"{self.name} was loaded as it was, and cannot be written so", hint=hint)
        table = self.lake.writable_table(self.name)
        return table if self.branch is None else table.at_branch(self.branch)


def version_of(lake: Lake, parts: Sequence[str], version: str | None, micros: int | None) -> TableVersion:
    """Load a table; Spark writes the version as text, whatever it is, and a time in microseconds."""
    if (named := ref_of(lake, parts)) is not None and version is None and micros is None:
        name, kind, ref = named
        own = lake.writable_table(name)
        if kind == _TAG:
            tags = refs_of(own.table.metadata, SnapshotRefType.TAG)
            if ref not in tags:  # a time, or a branch, is not read by this name
                raise LakeError(f"{name} has no tag {ref!r}", hint=f"there are: {', '.join(tags) or 'none'}")
            return TableVersion(lake, name, own.at(ref), True)
        return TableVersion(lake, name, own.at_branch(ref), False, branch=ref)
    name, table = _opened(lake, parts)
    if version is not None:
        return TableVersion(lake, name, table.at(as_snapshot(version)), True)
    if micros is not None:
        return TableVersion(lake, name, table.at(_EPOCH + timedelta(microseconds=micros)), True)
    return TableVersion(lake, name, copy(table), False)


def as_snapshot(text: str) -> int | str:
    """A snapshot as SQL names it: its id is a number."""
    return int(text) if re.fullmatch(r"\d+", text) else text


def ref_of(lake: Lake, parts: Sequence[str]) -> tuple[str, str, str] | None:
    """The table, the kind and the name of a ref, where `table.branch_audit` or `table.tag_eod` is no table's name."""
    kind = next((kind for kind in (_BRANCH, _TAG) if parts[-1].lower().startswith(kind)), None)
    if kind is None or len(parts) < 3 or lake.has_table(".".join(parts)):
        return None
    name = table_name(lake, parts[:-1])
    return (name, kind, parts[-1][len(kind) :]) if lake.has_table(name) else None


def _opened(lake: Lake, parts: Sequence[str]) -> tuple[str, Source]:
    """A table and its name as the lake spells it; the catalog is asked once where that is the name as it is written."""
    name = ".".join(parts)
    if is_name(parts):
        try:
            return name, lake.table(name)
        except TableNotFoundError:
            alike = table_name(lake, parts)
            if alike == name:
                raise
            return alike, lake.table(alike)
    raise TableNotFoundError(f"no table {name!r}", hint="write namespace.name")


def is_name(parts: Sequence[str]) -> bool:
    """Whether a table may have this name: a namespace, and no dots inside of names."""
    return len(parts) > 1 and not any("." in part or not part for part in parts)


def new_name(lake: Lake, parts: Sequence[str]) -> str:
    """The name for a new table, in a namespace as the lake spells it."""
    if not is_name(parts):
        raise LakeError(f"invalid table name {'.'.join(parts)!r}", hint="write namespace.name")
    return f"{lake.namespaces.spelled('.'.join(parts[:-1]))}.{parts[-1]}"


def table_name(lake: Lake, parts: Sequence[str]) -> str:
    """The name of a table as the lake spells it: Spark's users may write it in other case."""
    name = ".".join(parts)
    if not is_name(parts):
        raise TableNotFoundError(f"no table {name!r}", hint="write namespace.name")
    if lake.has_table(name):
        return name
    alike = [known for known in lake.tables() if known.lower() == name.lower()]
    return alike[0] if len(alike) == 1 else name
