"""Changes of a table's schema: columns added, renamed, dropped, widened, moved and commented, nested ones too.

    with SchemaChange(table) as schema:
        schema.add(("address", "zip"), pa.string())
        schema.rename(("app",), "application")

All changes of one block are one commit, or none when one of them is an error. Rules of coalescing and shredding follow
the field ids, so a renamed column keeps its rule; a column that a rule or the partitioning needs cannot be dropped.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyiceberg.schema import index_by_id
from pyiceberg.table import Table
from pyiceberg.types import IcebergType, NestedField

from penstock.errors import CLIENT_ERRORS, SchemaError, name_hint
from penstock.lake.create import iceberg_schema
from penstock.maps.sidecar_columns import read_sidecars, visible
from penstock.storage.redaction import one_line

if TYPE_CHECKING:
    from penstock.lake.managed_table import ManagedTable

Path = tuple[str, ...]


class SchemaChange:
    """One change of a table's schema; names are compared without their case, as Spark does."""

    def __init__(self, table: ManagedTable) -> None:
        self._table = table
        self._metadata = table.table.metadata
        schema = self._metadata.schema()
        self._shown = visible(schema, read_sidecars(schema, self._metadata.properties))
        self._update = _changeable(table.table).update_schema(allow_incompatible_changes=False, case_sensitive=False)

    def __enter__(self) -> SchemaChange:
        return self

    def __exit__(self, error: object, *_: object) -> None:
        if error is None:
            self._try(self._update.commit)
            self._table.refresh()

    def add(self, column: Path, kind: pa.DataType, *, nullable: bool = True, comment: str | None = None) -> None:
        """Add a column; rows that exist have NULL in it."""
        if not nullable:
            hint = "add it as a nullable column"
            raise SchemaError(f"column {_text(column)} is NOT NULL, and rows that exist have no value", hint=hint)
        self._try(self._update.add_column, column, self._iceberg(kind), comment)

    def rename(self, column: Path, name: str) -> None:
        """Rename a column; its values stay."""
        self._find(column)
        self._try(self._update.rename_column, column, name)

    def drop(self, column: Path, *, missing_ok: bool = False) -> None:
        """Drop a column; files keep its values until they are rewritten."""
        field = self._find(column, missing_ok=missing_ok)
        if field is None:
            return
        ids = {each.source_id for spec in self._metadata.partition_specs for each in spec.fields}
        if ids & {field.field_id, *index_by_id(field.field_type)}:
            hint = "only columns that no partition spec uses can be dropped"
            raise SchemaError(f"{self._table.name} is partitioned by {_text(column)}", hint=hint)
        if any(_text(column).lower() == name.lower() for name in self._table.shred):
            hint = "remove its rule first: set_shred"
            raise SchemaError(f"keys of {_text(column)} have columns of their own", hint=hint)
        self._try(self._update.delete_column, column)

    def widen(self, column: Path, kind: pa.DataType) -> None:
        """Change the type of a column to a wider one: int to bigint, float to double, decimal to more digits."""
        self._find(column)
        old, new = self._shown.find_type(_text(column), case_sensitive=False), self._iceberg(kind)
        if getattr(old, "scale", None) != getattr(new, "scale", None):  # PyIceberg lets it pass, and misreads old files
            raise SchemaError(f"{_text(column)} cannot change from {old} to {new}", hint="only the digits can grow")
        self._try(self._update.update_column, column, new)

    def set_nullable(self, column: Path, *, nullable: bool) -> None:
        """Allow NULL in a column; to forbid it is an error, because rows that exist may have it."""
        self._find(column)
        if not nullable:
            raise SchemaError(f"{_text(column)} cannot become NOT NULL: rows that exist may have NULL in it")
        self._try(self._update.make_column_optional, column)

    def comment(self, column: Path, comment: str) -> None:
        """Set the comment of a column."""
        self._find(column)
        self._try(self._update.update_column, column, None, None, comment)

    def move(self, column: Path, behind: str | None) -> None:
        """Move a column behind another one of its level, or, without one, to the first place."""
        if behind is None:
            self._try(self._update.move_first, column)
        else:
            self._try(self._update.move_after, column, (*column[:-1], behind))

    def _find(self, column: Path, *, missing_ok: bool = False) -> NestedField | None:
        try:
            return self._shown.find_field(_text(column), case_sensitive=False)
        except ValueError:
            if missing_ok:
                return None
            hint = name_hint(_text(column), [field.name for field in self._shown.fields])
            raise SchemaError(f"{self._table.name} has no column {_text(column)!r}", hint=hint) from None

    def _iceberg(self, kind: pa.DataType) -> IcebergType:
        return iceberg_schema(pa.schema({"c": kind})).fields[0].field_type

    def _try(self, change: Any, *arguments: Any) -> None:
        try:
            change(*arguments)
        except CLIENT_ERRORS as error:
            raise SchemaError(f"{self._table.name}: {one_line(error)}") from None


def _changeable(table: Table) -> Table:
    """Without the specs whose columns are gone: a new column may have the name of one, which PyIceberg refuses."""
    metadata = table.metadata
    ids = index_by_id(metadata.schema())
    default = metadata.default_spec_id  # must be there; in format version 1 it may name columns that are gone
    live = [
        spec
        for spec in metadata.partition_specs
        if spec.spec_id == default or all(each.source_id in ids for each in spec.fields)
    ]
    trimmed = metadata.model_copy(update={"partition_specs": live})
    return Table(table.name(), trimmed, table.metadata_location, table.io, table.catalog)


def _text(column: Path) -> str:
    return ".".join(column)
