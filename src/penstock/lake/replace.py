"""A table that is replaced: another schema, partitioning, properties and rows, in one commit; its history stays.

    replacement = Replacement.of(table, define(…, replaced=table.table.metadata))
    replacement.write(rows)         files, which nobody sees yet
    replacement.commit()

Columns of the new schema get ids of their own, so that a snapshot from before is read as it was.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from pyiceberg.partitioning import PartitionSpec
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.update import (
    AddPartitionSpecUpdate,
    AddSchemaUpdate,
    SetCurrentSchemaUpdate,
    SetDefaultSpecUpdate,
    TableUpdate,
    update_table_metadata,
)

from penstock.errors import ConflictError
from penstock.lake.commit.column_requirements import same_columns
from penstock.lake.commit.commit import Overtaken, change_metadata, has_moved_on, property_updates
from penstock.lake.commit.once import KEPT_PREFIXES
from penstock.lake.commit.snapshot import Change
from penstock.lake.create import Definition
from penstock.lake.layout.table_layout import missing_spec
from penstock.lake.managed_table import ManagedTable
from penstock.lake.write.data_files import WrittenFile, discard
from penstock.lake.write.writes import commit_written, prepare, produce


@dataclass
class Replacement:
    """The new state of a table, to be published."""

    table: ManagedTable  # as it is
    future: ManagedTable  # as it will be, without rows
    updates: tuple[TableUpdate, ...]
    files: list[WrittenFile] = field(default_factory=list)

    @classmethod
    def of(cls, table: ManagedTable, definition: Definition) -> Replacement:
        """The replacement of a table by what a definition says."""
        old = table.table
        updates = tuple(_updates(old.metadata, definition))
        new = update_table_metadata(old.metadata, updates)
        updates += tuple(missing_spec(new))
        new = update_table_metadata(old.metadata, updates)
        future = Table(old.name(), new, old.metadata_location, old.io, old.catalog)
        return cls(table, replace(table, table=future), updates)

    def write(self, rows: Any) -> None:
        """Write rows of the new table as files."""
        self.files = produce(prepare(self.future, files=()), rows)

    def commit(self) -> Table:
        """Publish everything; PyIceberg's table afterwards."""
        old = self.table
        if old.version.snapshot is None and not self.files:
            return change_metadata(old.table, self._updates_of, "{} could not be replaced")
        removed = frozenset(old.plan().files.paths.to_pylist())
        operation, base = "overwrite" if self.files else "delete", old.version.snapshot_id
        has_changed = partial(has_moved_on, old.table)
        change = Change(operation, self.files, removed, base, touches=has_changed, updates=self.updates)
        try:
            return commit_written(old, change, self.files).table
        except Overtaken:
            raise self._conflict() from None

    def _updates_of(self, metadata: TableMetadata) -> Sequence[TableUpdate]:
        """The updates, unless they were made for other columns than the table has now."""
        if not same_columns(metadata, self.table.table.metadata):
            raise self._conflict()
        return self.updates

    def _conflict(self) -> ConflictError:
        message = f"{self.table.name} was changed by another writer while it was replaced"
        return ConflictError(message, hint="nothing was changed; run the statement again")

    def abort(self) -> None:
        """Remove the files that were written."""
        discard(self.table.sources.io, self.files)


def _updates(metadata: TableMetadata, definition: Definition) -> Iterator[TableUpdate]:
    schema_id = max(schema.schema_id for schema in metadata.schemas) + 1
    yield AddSchemaUpdate.model_validate({"schema": definition.schema.model_copy(update={"schema_id": schema_id})})
    yield SetCurrentSchemaUpdate.model_validate({"schema-id": -1})
    new_id = max(spec.spec_id for spec in metadata.partition_specs) + 1
    yield AddPartitionSpecUpdate(spec=PartitionSpec(*definition.spec.fields, spec_id=new_id))
    yield SetDefaultSpecUpdate.model_validate({"spec-id": -1})
    gone = [name for name in metadata.properties if not name.startswith(KEPT_PREFIXES)]
    yield from property_updates(metadata, definition.properties, gone)
