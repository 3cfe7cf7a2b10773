"""One version of a table, loaded for a query: the newest, or the one that VERSION AS OF or TIMESTAMP AS OF names."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from penstock.errors import LakeError, TableNotFoundError
from penstock.spark.catalog.computed_changes import FILE, PLACE
from penstock.spark.catalog.layouts import layout_options
from penstock.spark.catalog.row_changes import change_rows
from penstock.spark.catalog.table_facts import facts, spark_schema
from penstock.spark.scan.planner import plain_values
from penstock.stream.feed import Feed
from penstock.stream.stream_options import as_options
from penstock.tables.hive.hive_table import HiveTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from penstock.lake.lake import Lake
    from penstock.lake.managed_table import ManagedTable
    from penstock.tables.source import Source

# Columns that are not in the schema, and where Spark has them.
HIDDEN = {
    "_file": "_metadata.file_path",
    "_pos": "_metadata.row_index",
    "_metadata": "_metadata",
    FILE: "_metadata.file_path",
    PLACE: "_metadata.row_index",
}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class TableVersion:
    """A table of a lake as it was when Spark loaded it."""

    lake: Lake
    name: str
    table: Source
    is_past: bool

    def facts(self) -> dict[str, Any]:
        """What Spark is told of it."""
        key = f"{self.table.key}{' past' if self.is_past else ''}"
        schema = spark_schema(self.table.schema, self.table.comments())
        by = self.table.partition_fields()
        own = facts(self.name, key, schema, by, {**self.table.properties(), **self._place()})
        return {**own, "partitions": spark_schema(self.table.partition_schema(), {})}

    def _place(self) -> dict[str, str]:
        """For SHOW CREATE TABLE: whose table it is, and whether the catalog chose its folder, which is left out."""
        if isinstance(self.table, HiveTable):
            return {"provider": "parquet", "external": "true", **layout_options(self.table)}
        location = self.table.properties().get("location", "")
        is_chosen = location.endswith(self.name.replace(".", "/"))
        return {"provider": "penstock", **({"is_managed_location": "true"} if is_chosen else {})}

    def rows(self, spark: SparkSession, hidden: Sequence[str]) -> DataFrame:
        """All rows; `hidden` columns, which are not in the schema, come behind."""
        from pyspark.sql import functions as F

        rows: DataFrame = self.table.dataframe(spark)
        return rows.select("*", *(F.col(HIDDEN[name]).alias(name) for name in hidden)) if hidden else rows

    def partitions(self) -> list[list[Any]]:
        """The values of each partition, as JSON has them."""
        names = self.table.partition_schema().names
        listed = self.table.partitions().select(names)
        columns = [plain_values(listed.column(name).combine_chunks()) for name in names]
        return [list(row) for row in dict.fromkeys(zip(*columns, strict=True))]

    def feed(self, options: Mapping[str, str]) -> Feed:
        """What is new in the table, step by step."""
        return self.table.feed(as_options(options))

    def sink(self) -> dict[str, str]:
        """The options of `format("penstock")` by which a stream finds the table."""
        self.for_writing()
        source, warehouse = self.lake.source, self.lake.warehouse
        if source is not None and not isinstance(source, str):
            hint = "describe the catalog in .pyiceberg.yaml, and connect by its name"
            raise LakeError("a stream is written by processes of their own, which do not have this catalog", hint=hint)
        options = {"table": self.name, "warehouse": None if warehouse is None else str(warehouse), "catalog": source}
        return {name: value for name, value in options.items() if value is not None}

    def change(self, mode: str, statement: dict[str, Any] | None, rows: DataFrame) -> None:
        """Execute a statement that changes rows."""
        change_rows(self.for_writing(), self.table, mode, statement, rows)

    def for_writing(self) -> ManagedTable:
        """The table to write to."""
        if self.is_past:
            raise LakeError(f"{self.name} was loaded as it was, and cannot be written so", hint="leave out AS OF")
        return self.lake.writable_table(self.name)


def version_of(lake: Lake, parts: Sequence[str], version: str | None, micros: int | None) -> TableVersion:
    """Load a table; Spark writes the version as text, whatever it is, and a time in microseconds."""
    name = table_name(lake, parts)
    table = lake.table(name)
    if version is not None:
        return TableVersion(lake, name, table.at(int(version) if re.fullmatch(r"\d+", version) else version), True)
    if micros is not None:
        return TableVersion(lake, name, table.at(_EPOCH + timedelta(microseconds=micros)), True)
    return TableVersion(lake, name, copy(table), False)


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
