"""A table that is replaced: another schema, partitioning, properties and rows, in one commit; its history stays.

    replacement = Replacement.of(table, define(…, replaced=table.table.metadata))
    replacement.write(rows)         files, which nobody sees yet
    replacement.commit()

Columns of the new schema get ids of their own, so that a snapshot from before is read as it was.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from penstock.errors import ConflictError
from penstock.lake.commit.commit import commit_metadata, fresh, update
from penstock.lake.commit.snapshot import Change
from penstock.lake.create import Definition
from penstock.lake.layout.table_layout import layout_of
from penstock.lake.write.data_files import WriteJob, WrittenFile, discard
from penstock.lake.write.writes import attempt, prepare, produce

if TYPE_CHECKING:
    from pyiceberg.table import Table
    from pyiceberg.table.metadata import TableMetadata
    from pyiceberg.table.update import TableUpdate

    from penstock.lake.managed_table import ManagedTable

# What belongs to the table and not to what it is replaced by.
_KEPT_PREFIX = "penstock.stream."


@dataclass
class Replacement:
    """The new state of a table, to be published."""

    table: ManagedTable  # as it is
    future: ManagedTable  # as it will be, without rows
    updates: tuple[TableUpdate, ...]
    job: WriteJob | None = None
    files: list[WrittenFile] = field(default_factory=list)

    @classmethod
    def of(cls, table: ManagedTable, definition: Definition) -> Replacement:
        """The replacement of a table by what a definition says."""
        from pyiceberg.table.update import update_table_metadata

        metadata = table.table.metadata
        updates = tuple(_updates(metadata, definition))
        new = update_table_metadata(metadata, updates)
        layout = layout_of(new)
        if layout.coarse is not None and layout.coarse.spec_id not in new.specs():
            from pyiceberg.table.update import AddPartitionSpecUpdate

            updates = (*updates, AddPartitionSpecUpdate(spec=layout.coarse))
            new = update_table_metadata(metadata, updates)
        return cls(table, replace(table, table=_with(table.table, new)), updates)

    def write(self, rows: Any) -> None:
        """Write rows of the new table as files."""
        self.job = prepare(self.future, files=())
        self.files = produce(self.job, rows)

    def commit(self) -> Table:
        """Publish everything; PyIceberg's table afterwards."""
        if self.table.version.snapshot is None and not self.files:
            return self._commit_metadata()
        removed = frozenset(self.table.plan().files.paths.to_pylist())
        operation = "overwrite" if self.files else "delete"
        base = self.table.version.snapshot_id
        change = Change(operation, self.files, removed, base, touches=self._has_changed, updates=self.updates)
        published = attempt(self.table, self.job or prepare(self.future, files=()), self.files, change)
        if published is None:
            message = f"{self.table.name} was changed by another writer while it was replaced"
            raise ConflictError(message, hint="nothing was changed; run the statement again")
        return published

    def abort(self) -> None:
        """Remove the files that were written."""
        if self.job is not None:
            discard(self.job.io, self.files)

    def _has_changed(self, newest: Table) -> bool:
        return newest.metadata.current_snapshot_id != self.table.table.metadata.current_snapshot_id

    def _commit_metadata(self) -> Table:
        from pyiceberg.table.update import AssertTableUUID

        def publish(table: Table) -> Table:
            return update(table, [AssertTableUUID(uuid=table.metadata.table_uuid)], self.updates)

        return commit_metadata(fresh(self.table.table), publish, "{} could not be replaced")


def _with(table: Table, metadata: TableMetadata) -> Table:
    from pyiceberg.table import Table

    return Table(table.name(), metadata, table.metadata_location, table.io, table.catalog)


def _updates(metadata: TableMetadata, definition: Definition) -> Iterator[TableUpdate]:
    from pyiceberg.partitioning import PartitionSpec
    from pyiceberg.table.update import (
        AddPartitionSpecUpdate,
        AddSchemaUpdate,
        RemovePropertiesUpdate,
        SetCurrentSchemaUpdate,
        SetDefaultSpecUpdate,
        SetPropertiesUpdate,
    )

    schema_id = max(schema.schema_id for schema in metadata.schemas) + 1
    yield AddSchemaUpdate.model_validate({"schema": definition.schema.model_copy(update={"schema_id": schema_id})})
    yield SetCurrentSchemaUpdate.model_validate({"schema-id": -1})
    new_id = max(spec.spec_id for spec in metadata.partition_specs) + 1
    yield AddPartitionSpecUpdate(spec=PartitionSpec(*definition.spec.fields, spec_id=new_id))
    yield SetDefaultSpecUpdate.model_validate({"spec-id": -1})
    gone = [
        name for name in metadata.properties if name not in definition.properties and not name.startswith(_KEPT_PREFIX)
    ]
    if gone:
        yield RemovePropertiesUpdate(removals=gone)
    if definition.properties:
        yield SetPropertiesUpdate(updates=dict(definition.properties))
