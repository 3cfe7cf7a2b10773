"""The table that `penstock ingest` writes to: the one that is there, if it is as the options say, or a new one.

A table that was made for rows that could not be written is removed again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from penstock.errors import LakeError, TableExistsError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from penstock.cli.ingest_source import IngestSource
    from penstock.lake.lake import Lake
    from penstock.lake.layout.coalesce import Coalesce
    from penstock.lake.managed_table import ManagedTable
    from penstock.maps.shred_rule import Shred


@dataclass(frozen=True)
class IngestTarget:
    """A table by its name, and what is said about it."""

    lake: Lake
    name: str
    branch: str
    partition_by: str | None
    coalesce: Coalesce | None
    shred: Mapping[str, Shred]

    def existing(self) -> ManagedTable | None:
        """The table, when there is one; an error when it is not as the options say."""
        if "/" in self.name or "." not in self.name.strip("."):
            raise LakeError(f"invalid table name {self.name!r}", hint="write namespace.name")
        if not self.lake.has_table(self.name):
            if self.branch != "main":
                raise LakeError(f"no table {self.name!r}, and so no branch {self.branch!r}", hint="leave --branch out")
            return None
        table = self.lake.writable_table(self.name)
        self._check_same(table)
        return table.at_branch(self.branch)

    def check_source(self, source: IngestSource) -> None:
        """An error for a source with types that has no columns that a new table is to be partitioned by."""
        from penstock.lake.create import iceberg_schema, partition_spec

        if source.is_text and source.declared is None:
            return
        try:
            schema = iceberg_schema(source.declared_columns() if source.is_text else source.columns())
        except Exception:  # what cannot be read or known here is said when Spark reads it
            return
        partition_spec(schema, self.partition_by or ())

    def create(self, schema: Any) -> tuple[ManagedTable, bool]:
        """A new table, and whether it was made here: another process may be faster."""
        options: Any = {"coalesce": self.coalesce, "shred": self.shred}
        try:
            return self.lake.create_table(self.name, schema, self.partition_by or (), **options), True
        except TableExistsError:
            table = self.existing()
            if table is None:
                raise
            return table, False

    def take_away(self) -> None:
        """Drop a table that was made for rows that could not be written, unless somebody else has written to it."""
        from penstock.lake.unwritten_table import take_away

        take_away(self.lake, self.name)

    def _check_same(self, table: ManagedTable) -> None:
        """What is said about a table that exists must be so."""
        from penstock.lake.create import partition_spec
        from penstock.lake.layout.table_layout import typed_rule

        metadata = table.table.metadata
        schema = table.version.columns.schema
        if self.partition_by is not None:
            wanted, actual = (
                [(f.source_id, str(f.transform)) for f in spec.fields]
                for spec in (partition_spec(schema, self.partition_by), metadata.spec())
            )
            if wanted != actual:
                fields = ", ".join(
                    f"{f.transform} of {schema.find_column_name(f.source_id)}" for f in metadata.spec().fields
                )
                message = f"{table.name} exists and is partitioned by {fields or 'nothing'}, not by {self.partition_by}"
                raise LakeError(message, hint="leave --partition-by out, or name another table")
        if self.coalesce is not None and typed_rule(schema, self.coalesce) != table.coalesce:
            message = f"{table.name} exists and has another rule of coalescing"
            raise LakeError(message, hint="leave --coalesce out, or change the rule first: table.set_coalesce(…)")
        if self.shred and self.shred != table.shred:
            message = f"{table.name} exists and has other hot keys"
            raise LakeError(message, hint="leave --shred out, or change them first: table.set_shred(…)")
