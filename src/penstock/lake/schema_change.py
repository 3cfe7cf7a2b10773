"""Changes of a table's columns and of its partition fields.

    with table.change_schema() as change:
        change.add_column("address.zip", "string")
        change.rename_column("app", "application")
        change.add_partition_field("day(ts)")

Each change sees those before it. All changes of one block are one commit of metadata, or none when one of them is an
error; when another writer was faster, they are applied again to what it left. No file is written anew: files are read
by field ids, so rows that exist have NULL in a new column, and a renamed column keeps its values. Rules of coalescing
and shredding follow the field ids too. A column that a rule or the partitioning needs cannot be dropped.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata

from penstock.errors import SchemaError
from penstock.lake.commit.commit import commit_metadata, update
from penstock.lake.schema_draft import SchemaDraft
from penstock.storage.storage import clear_storage_errors
from penstock.tables.iceberg.metadata.catalogs import clear_errors

if TYPE_CHECKING:
    import pyarrow as pa

    from penstock.lake.evolving_table import EvolvingTable

ColumnName = str | tuple[str, ...]


class SchemaChange:
    """Changes that are committed together when the block ends, returned by `table.change_schema()`.

    A nested field is named with dots, `"address.zip"`; the entries of lists and maps are `element`, `key` and `value`:
    `"tags.element"`, `"prices.value"`. Names are compared without their case.
    """

    def __init__(self, table: EvolvingTable) -> None:
        self._table, self._first = table, table.table
        self._draft = SchemaDraft(table.table.metadata, table.name, self._specs_in_use)
        self._steps: list[Callable[[SchemaDraft], None]] = []

    def __enter__(self) -> SchemaChange:
        return self

    def __exit__(self, error: object, *_: object) -> None:
        if error is None:
            self._commit()

    @property
    def metadata(self) -> TableMetadata:
        """The table's metadata (PyIceberg's) as the changes so far make it."""
        return self._draft.metadata

    def add_column(
        self,
        name: ColumnName,
        type: Any,
        *,
        nullable: bool = True,
        comment: str | None = None,
        after: str | None = None,
        first: bool = False,
    ) -> None:
        """Add a column, at the end or where `after` or `first` says; rows that exist have NULL in it.

        The type is text such as `"decimal(10,2)"`, or Arrow's, Iceberg's or Spark's.
        """
        self._do(SchemaDraft.add, name, type, nullable, comment)
        if first or after is not None:
            added = self._draft.path(name)
            self.move_column(added, after=after, first=first)

    def rename_column(self, name: ColumnName, new_name: str) -> None:
        """Rename a column; its values and its rules stay. The new name of a nested field is its own, without dots."""
        self._do(SchemaDraft.rename, name, new_name)

    def drop_column(self, name: ColumnName, *, missing_ok: bool = False) -> None:
        """Drop a column; older snapshots keep it."""
        self._do(SchemaDraft.drop, name, missing_ok)

    def widen_column(self, name: ColumnName, type: Any) -> None:
        """Change the type of a column: int to bigint, float to double, decimal to more digits of the same scale."""
        self._do(SchemaDraft.widen, name, type)

    def move_column(self, name: ColumnName, *, after: str | None = None, first: bool = False) -> None:
        """Move a column behind another one of the same struct, or to the first place of it."""
        if first == (after is not None):
            raise SchemaError("a column is moved to one place", hint="give after= or first=True")
        self._do(SchemaDraft.move, name, after)

    def comment_column(self, name: ColumnName, comment: str) -> None:
        """Set the comment of a column."""
        self._do(SchemaDraft.comment, name, comment)

    def set_nullable(self, name: ColumnName, *, nullable: bool = True) -> None:
        """Allow NULL in a column; to forbid it is an error, because rows that exist may have it."""
        self._do(SchemaDraft.set_nullable, name, nullable)

    def merge_columns(self, rows: pa.Schema) -> None:
        """Add the columns of rows that the table does not have, and widen those that are wider in the rows."""
        self._do(SchemaDraft.merge, rows)

    def add_partition_field(self, field: str) -> None:
        """Partition new files by one more field: `app`, `day(ts)`, `bucket(16, user_id)`, `truncate(4, name)`."""
        self._do(SchemaDraft.add_partition_field, field)

    def drop_partition_field(self, field: str) -> None:
        """Do not partition new files by a field any more; it is named as it was added, or by its own name, `ts_day`."""
        self._do(SchemaDraft.drop_partition_field, field)

    def replace_partition_field(self, field: str, new_field: str) -> None:
        """Partition new files by another field in the place of one: `day(ts)` in the place of `month(ts)`."""
        self._do(SchemaDraft.replace_partition_field, field, new_field)

    def _do(self, change: Callable[..., None], *arguments: Any) -> None:
        def step(draft: SchemaDraft) -> None:
            change(draft, *arguments)

        step(self._draft)
        self._steps.append(step)

    def _commit(self) -> None:
        def publish(table: Table) -> Table:
            draft = self._draft if table is self._first else self._again(table)
            updates = draft.updates()
            return update(table, draft.requirements(), updates) if updates else table

        with clear_storage_errors(f"{self._table.name} cannot be changed"), clear_errors("the catalog", {}):
            changed = commit_metadata(self._first, publish, "the schema of {} could not be changed")
        self._table._move(changed)

    def _again(self, table: Table) -> SchemaDraft:
        """The same changes of what another writer left."""
        draft = SchemaDraft(table.metadata, self._table.name, self._specs_in_use)
        for step in self._steps:
            step(draft)
        return draft

    def _specs_in_use(self, metadata: TableMetadata) -> set[int]:
        """The partition specs that files of any snapshot have."""
        sources = self._table.sources
        lists = (sources.lists.of(snapshot, sources.io) for snapshot in metadata.snapshots)
        return {manifest.partition_spec_id for manifests in lists for manifest in manifests}
