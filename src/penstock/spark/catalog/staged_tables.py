"""Tables that are created or replaced together with their rows: published in the end, or not at all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from penstock.errors import LakeError, TableExistsError, TableNotFoundError
from penstock.lake.create import define
from penstock.lake.replace import Replacement
from penstock.spark.catalog.new_tables import NewTable, create_table
from penstock.spark.catalog.versions import TableVersion

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from penstock.lake.lake import Lake


@dataclass(frozen=True)
class CreatedTable(TableVersion):
    """A new table: it exists from the start, and is dropped when its rows cannot be written."""

    def commit(self) -> None:
        """Nothing is left to do."""

    def abort(self) -> None:
        """Drop the table."""
        self.lake.drop_table(self.name, purge=True)


@dataclass(frozen=True)
class ReplacedTable(TableVersion):
    """A table that exists: it stays as it is until everything is published in one commit."""

    replacement: Replacement

    def change(self, mode: str, statement: dict[str, Any] | None, rows: DataFrame) -> None:
        """Write the rows."""
        self.replacement.write(rows)

    def commit(self) -> None:
        """Publish the new schema and the rows."""
        self.replacement.commit()

    def abort(self) -> None:
        """Remove what was written."""
        self.replacement.abort()


def stage(lake: Lake, new: NewTable, verb: str) -> CreatedTable | ReplacedTable:
    """A table to be created or replaced, by the verb of the request."""
    exists = lake.has_table(new.name)
    if verb == "stage-create" and exists:
        raise TableExistsError(f"there is a table {new.name} already", hint="choose another name")
    if verb == "stage-replace" and not exists:
        raise TableNotFoundError(f"no table {new.name!r}", hint="write CREATE TABLE")
    if new.layout_format is not None:
        hint = "write CREATE TABLE without AS; penstock ingest writes the rows of a layout to a table"
        raise LakeError(f"{new.name} is declared as a Hive layout, which is not written or replaced", hint=hint)
    if not exists:
        create_table(lake, new)
        return CreatedTable(lake, new.name, lake.table(new.name), False)
    current = lake.writable_table(new.name)
    definition = define(new.schema, new.partition_by, new.coalesce, new.shred, new.properties, current.table.metadata)
    replacement = Replacement.of(current, definition)
    return ReplacedTable(lake, new.name, replacement.future, False, replacement)
