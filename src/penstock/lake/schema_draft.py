"""The metadata of a table as changes of its schema and partitioning make it, before anything is committed.

A draft is changed step by step, and then says which updates take the table from what it was to what the draft is: at
the most one new schema and one new spec, however many steps there were.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Set
from typing import Any

import pyarrow as pa
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema, index_by_id
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.update import (
    AddSchemaUpdate,
    AssertRefSnapshotId,
    RemovePartitionSpecsUpdate,
    SetCurrentSchemaUpdate,
    SetPropertiesUpdate,
    TableRequirement,
    TableUpdate,
    update_table_metadata,
)
from pyiceberg.table.update.schema import UpdateSchema
from pyiceberg.types import NestedField, StructType

from penstock.errors import CLIENT_ERRORS, SchemaError, name_hint
from penstock.lake import partition_change
from penstock.lake.column_type import column_type, type_text
from penstock.lake.commit.column_requirements import columns_unchanged
from penstock.lake.layout.renames import current_properties
from penstock.lake.partition_change import renumbered, updates_to
from penstock.lake.schema_checks import (
    check_fields,
    check_mapping,
    check_named,
    check_not_ordered,
    check_partition_names,
    is_wider,
)
from penstock.lake.schema_path import Path, parts_of
from penstock.lake.write.row_fit import fit_rows
from penstock.maps.shred_rule import from_properties
from penstock.maps.sidecar_columns import check_names, map_path, read_sidecars, visible
from penstock.storage.redaction import one_line


class SchemaDraft:
    """A table's metadata, to be changed; names are compared without their case, as Spark does."""

    def __init__(self, metadata: TableMetadata, table: str, specs_in_use: Callable[[TableMetadata], Set[int]]) -> None:
        self._base = self.metadata = metadata
        self._table, self._specs_in_use = table, specs_in_use
        self._removed: set[int] = set()  # specs of which no snapshot has a file

    @property
    def schema(self) -> Schema:
        """The columns that people see."""
        return visible(self.metadata.schema(), read_sidecars(self.metadata.schema(), self.metadata.properties))

    def add(self, name: str | Path, type: Any, nullable: bool, comment: str | None) -> None:
        """Add a column."""
        path = self.path(name)
        if len(path) > 1:
            self._find(path[:-1])
        kind, required, documented = column_type(path[-1], _text(path), type)
        if required or not nullable:
            hint = "add it as a nullable column"
            raise SchemaError(f"column {_text(path)} is NOT NULL, and rows that exist have no value", hint=hint)
        self._check_new(path, None)
        doc = documented if comment is None else comment
        self._change(lambda columns: columns.add_column(path, kind, doc))

    def rename(self, name: str | Path, new_name: str) -> None:
        """Rename a column."""
        path, field = self._find(name)
        check_named(self.schema, field, _text(path))
        new = self._own_name(new_name) if isinstance(name, str) else new_name
        if new.lower() != path[-1].lower():
            self._check_new((*path[:-1], new), field.field_id)
        elif new == field.name:
            return
        self._change(lambda columns: columns.rename_column(path, new))

    def drop(self, name: str | Path, missing_ok: bool) -> None:
        """Drop a column, unless the partitioning or a rule needs it."""
        if missing_ok and self._known(self.path(name)) is None:
            return
        path, field = self._find(name)
        inner = (
            {field.field_id, *index_by_id(field.field_type)} if not field.field_type.is_primitive else {field.field_id}
        )
        self._check_not_partitioned(path, inner)
        check_not_ordered(self.metadata, inner, _text(path), self._table)
        for column in from_properties(current_properties(self.metadata)):
            of_rule = map_path(self.schema, column)
            if of_rule is not None and self.schema.find_field(_text(of_rule)).field_id in inner:
                hint = "remove its rule first: set_shred"
                raise SchemaError(f"keys of {column} have columns of their own", hint=hint)
        self._change(lambda columns: columns.delete_column(path))

    def widen(self, name: str | Path, type: Any) -> None:
        """Change the type of a column to a wider one."""
        path, field = self._find(name)
        old, (new, *_) = field.field_type, column_type(path[-1], _text(path), type)
        if old == new:
            return
        if not is_wider(new, old):  # PyIceberg lets more pass, and misreads old files
            hint = "int becomes bigint, float double, and a decimal one of more digits with the same scale"
            message = f"{_text(path)} is {type_text(old)} and cannot become {type_text(new)}"
            raise SchemaError(message, hint=hint)
        self._change(lambda columns: columns.update_column(path, new))

    def set_nullable(self, name: str | Path, nullable: bool) -> None:
        """Allow NULL in a column."""
        path, field = self._find(name)
        if not nullable and not field.required:
            raise SchemaError(f"{_text(path)} cannot become NOT NULL: rows that exist may have NULL in it")
        if nullable:
            identifier = {field.field_id} & set(self.schema.identifier_field_ids)
            check_not_ordered(self.metadata, identifier, _text(path), self._table)
            self._change(lambda columns: columns.make_column_optional(path))

    def comment(self, name: str | Path, comment: str) -> None:
        """Set the comment of a column."""
        path, field = self._find(name)
        check_named(self.schema, field, _text(path))
        self._change(lambda columns: columns.update_column(path, doc=comment))

    def move(self, name: str | Path, after: str | None) -> None:
        """Move a column behind another one of its level, or, without one, to the first place."""
        path, field = self._find(name)
        if after is None:
            self._change(lambda columns: columns.move_first(path))
            return
        behind, other = self._find((*path[:-1], after.strip("`")))
        if other.field_id == field.field_id:
            raise SchemaError(f"{_text(path)} cannot stand behind itself", hint="name another column")
        self._change(lambda columns: columns.move_after(path, behind))

    def merge(self, rows: pa.Schema) -> None:
        """Add and widen columns so that rows of a schema fit."""
        fit = fit_rows(rows, self.schema)
        fit.check(merging=True)
        for path, kind in fit.new:
            self.add(path, kind, True, None)
        for path, kind in fit.wider:
            self.widen(path, kind)

    def add_partition_field(self, field: str) -> None:
        """Partition by one more field."""
        self._partition_by(partition_change.with_field(self.metadata, field))

    def drop_partition_field(self, field: str) -> None:
        """Partition by one field less."""
        self._partition_by(partition_change.without_field(self.metadata, field))

    def replace_partition_field(self, field: str, new_field: str) -> None:
        """Partition by one field in the place of another."""
        self._partition_by(partition_change.with_replaced_field(self.metadata, field, new_field))

    def updates(self) -> list[TableUpdate]:
        """What takes the table from what it was to what the draft is."""
        removed = (
            [RemovePartitionSpecsUpdate.model_validate({"spec-ids": sorted(self._removed)})] if self._removed else []
        )
        return [*self._schema_updates(), *self._spec_updates(), *removed]

    def requirements(self) -> tuple[TableRequirement, ...]:
        """What must still be so when the updates are applied."""
        base = self._base
        # Nobody may begin to use a spec that is removed.
        refs = base.refs.items() if self._removed else ()
        same_refs = (AssertRefSnapshotId.model_validate({"ref": r, "snapshot-id": s.snapshot_id}) for r, s in refs)
        return (*columns_unchanged(base), *same_refs)

    def path(self, name: str | Path) -> Path:
        """The path of a column that is named with dots; a part with a dot in it stands in backticks."""
        if not isinstance(name, str):
            if not isinstance(name, tuple):
                raise SchemaError(f"invalid column name {name!r}", hint="write app, or address.zip")
            return name
        if any(field.name.lower() == name.lower() for field in self.schema.fields):
            return (name,)
        return parts_of(name)

    def _find(self, name: str | Path) -> tuple[Path, NestedField]:
        path = self.path(name)
        field = self._known(path)
        if field is None:
            parent = self._known(path[:-1]) if len(path) > 1 else None
            kind = self.schema.as_struct() if parent is None else parent.field_type
            known = [each.name for each in kind.fields] if isinstance(kind, StructType) else []
            hint = name_hint(path[-1] if path else "", known) if known else f"{_text(path[:-1])} has no fields"
            raise SchemaError(f"{self._table} has no column {_text(path)!r}", hint=hint)
        return path, field

    def _own_name(self, new_name: str) -> str:
        """The new name of a column, as it is written for a field of its own struct."""
        if not isinstance(new_name, str) or not new_name.strip():
            raise SchemaError("a column needs a name", hint="write one that is not empty")
        parts = parts_of(new_name)
        if len(parts) != 1:
            message = f"invalid new name {new_name!r}"
            raise SchemaError(
                message, hint="a field stays in its struct: write its own name; one with a dot in backticks"
            )
        return parts[0]

    def _known(self, path: Path) -> NestedField | None:
        try:
            return self.schema.find_field(_text(path), case_sensitive=False)
        except ValueError:
            return None

    def _check_new(self, path: Path, field_id: int | None) -> None:
        if not path[-1].strip():
            raise SchemaError("a column needs a name", hint="write one that is not empty")
        if len(path) == 1:
            check_names(path)
        if self._known(path) is not None:
            raise SchemaError(f"{self._table} has a column {_text(path)!r} already", hint="choose another name")
        check_partition_names(_changeable(self.metadata).partition_specs, _text(path), field_id, self._table)

    def _check_not_partitioned(self, path: Path, ids: set[int]) -> None:
        """An error for a column that files are partitioned by; older specs that no file has are removed with it."""
        metadata, default = self.metadata, self.metadata.spec()
        if ids & {field.source_id for field in default.fields if str(field.transform) != "void"}:
            raise SchemaError(f"{self._table} is partitioned by {_text(path)}", hint="drop the partition field first")
        older = {spec.spec_id for spec in metadata.partition_specs if ids & {each.source_id for each in spec.fields}}
        if not older:
            return
        if default.spec_id in older or older & self._specs_in_use(metadata):
            message = f"{self._table} was partitioned by {_text(path)}, and files of that time need it"
            hint = (
                "compact() brings the files to the new partitioning, and expire() removes the snapshots that have them"
            )
            if default.spec_id in older:
                message = f"{self._table} was partitioned by {_text(path)}, and its partitioning keeps a field of it"
                hint = "the column stays: tables of format version 1 never lose a partition field"
            raise SchemaError(message, hint=hint)
        self._removed |= older & set(self._base.specs())
        staying = [spec for spec in metadata.partition_specs if spec.spec_id not in older]
        self.metadata = metadata.model_copy(update={"partition_specs": staying})

    def _change(self, change: Callable[[UpdateSchema], object]) -> None:
        """Apply one of PyIceberg's changes to the draft."""
        table: Any = None  # nothing here reads files or asks the catalog
        transaction = Table((self._table,), _changeable(self.metadata), "", table, table).transaction()
        try:
            columns = transaction.update_schema(allow_incompatible_changes=False, case_sensitive=False)
            change(columns)
            columns.commit()
            changed = transaction.table_metadata
        except CLIENT_ERRORS as error:
            raise SchemaError(f"{self._table}: {one_line(error)}") from None
        check_fields(changed.schema().fields)
        check_mapping(self.metadata, changed, self._table)
        self.metadata = changed.model_copy(update={"partition_specs": self.metadata.partition_specs})

    def _partition_by(self, spec: PartitionSpec) -> None:
        self.metadata = update_table_metadata(self.metadata, tuple(updates_to(self.metadata, spec)))

    def _schema_updates(self) -> Iterator[TableUpdate]:
        base, schema = self._base, self.metadata.schema()
        if schema != base.schema():
            if not self.schema.fields:
                raise SchemaError(f"{self._table} would have no column", hint="drop the table instead")
            same = next((known for known in base.schemas if known == schema), None)
            if same is None:
                number = max(known.schema_id for known in base.schemas) + 1
                yield AddSchemaUpdate.model_validate({"schema": schema.model_copy(update={"schema_id": number})})
            yield SetCurrentSchemaUpdate.model_validate({"schema-id": -1 if same is None else same.schema_id})
        properties = self.metadata.properties.items() - base.properties.items()
        if properties:  # the mapping of names to ids
            yield SetPropertiesUpdate(updates=dict(properties))

    def _spec_updates(self) -> Iterator[TableUpdate]:
        spec = self.metadata.spec()
        if spec.spec_id != self._base.default_spec_id:
            yield from updates_to(self._base, renumbered(self._base, spec))


def _changeable(metadata: TableMetadata) -> TableMetadata:
    """Without the specs whose columns are gone: a new column may have the name of one, which PyIceberg refuses."""
    ids = index_by_id(metadata.schema())
    default = metadata.default_spec_id  # must be there; in format version 1 it may name columns that are gone
    live = [
        spec
        for spec in metadata.partition_specs
        if spec.spec_id == default or all(each.source_id in ids for each in spec.fields)
    ]
    return metadata.model_copy(update={"partition_specs": live})


def _text(path: Path) -> str:
    return ".".join(path)
