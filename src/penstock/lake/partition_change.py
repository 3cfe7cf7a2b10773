"""Partition fields added, dropped and replaced: the spec that new files are written by.

A spec is never changed. A table gets another default one, and files that exist keep the spec that they were written by:
each is pruned by its own, and `compact()` brings it to the new one. A field that the table has had before gets the id
and the name that it had; a spec that the table has had before is used again.

    spec = with_field(metadata, "day(ts)")
    spec = without_field(metadata, "app")        by its text, or by the name of the field: "ts_day"

Not here: a field of a column whose values are coalesced cannot be dropped, because shared files record these values.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, count
from typing import Any

from pyiceberg.partitioning import PARTITION_FIELD_ID_START, PartitionField, PartitionSpec
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.update import AddPartitionSpecUpdate, SetDefaultSpecUpdate, TableUpdate
from pyiceberg.transforms import Transform, VoidTransform

from penstock.errors import LakeError, SchemaError, name_hint
from penstock.lake.create import partition_source
from penstock.lake.layout.coalesce import COLUMNS
from penstock.lake.layout.renames import current_properties
from penstock.maps.name_lists import read_names
from penstock.maps.sidecar_columns import read_sidecars, visible
from penstock.prune.transforms import transform_of
from penstock.tables.partitioning import parse_field

_NEVER_DROPPED = 1  # format version 1 finds partition values by their place, so a dropped field stays as a void one


def with_field(metadata: TableMetadata, text: str) -> PartitionSpec:
    """The default spec with one more field, such as `app` or `day(ts)`."""
    return _known_or_new(metadata, _added(metadata, metadata.spec().fields, text))


def without_field(metadata: TableMetadata, text: str) -> PartitionSpec:
    """The default spec without a field."""
    return _known_or_new(metadata, _remaining(metadata, _found(metadata, text)))


def with_replaced_field(metadata: TableMetadata, old: str, new: str) -> PartitionSpec:
    """The default spec with one field in the place of another."""
    field = _found(metadata, old)
    place = metadata.spec().fields.index(field)
    *others, added = _added(metadata, _remaining(metadata, field), new)
    if metadata.format_version > _NEVER_DROPPED:
        return _known_or_new(metadata, [*others[:place], added, *others[place:]])
    return _known_or_new(metadata, [*others, added])


def partition_texts(metadata: TableMetadata) -> list[str]:
    """What a table is partitioned by, as people write it."""
    return [_text(metadata, field) for field in _live(metadata.spec())]


def _added(metadata: TableMetadata, fields: Sequence[PartitionField], text: str) -> list[PartitionField]:
    schema = visible(metadata.schema(), read_sidecars(metadata.schema(), metadata.properties))
    column, source, applied = partition_source(schema, text)
    if isinstance(applied, VoidTransform):
        raise SchemaError(f"{text.strip()} keeps no value of the column", hint="choose another transform")
    key = (source.field_id, str(applied))
    if any((field.source_id, str(field.transform)) == key for field in fields):
        raise SchemaError(f"the table is partitioned by {text.strip()} already", hint="nothing was changed")
    older = chain.from_iterable(spec.fields for spec in reversed(metadata.partition_specs))
    same = next((field for field in older if (field.source_id, str(field.transform)) == key), None)
    if same is not None and metadata.format_version > _NEVER_DROPPED:
        return [*fields, same]
    last = metadata.last_partition_id or PARTITION_FIELD_ID_START - 1
    name = _free_name(metadata, schema.find_column_name(source.field_id) or column, applied)
    return [*fields, PartitionField(source.field_id, last + 1, applied, name)]


def _remaining(metadata: TableMetadata, dropped: PartitionField) -> list[PartitionField]:
    _check_not_coalesced(metadata, dropped)
    fields = metadata.spec().fields
    if metadata.format_version > _NEVER_DROPPED:
        return [field for field in fields if field is not dropped]
    void = dropped.model_copy(update={"transform": VoidTransform()})
    return [void if field is dropped else field for field in fields]


def _check_not_coalesced(metadata: TableMetadata, dropped: PartitionField) -> None:
    coalesced = read_names(current_properties(metadata).get(COLUMNS, ""))
    column = metadata.schema().find_column_name(dropped.source_id)
    if str(dropped.transform) != "identity" or column is None:
        return
    if column.lower() in {name.lower() for name in coalesced}:
        message = f"the partition field {dropped.name} cannot be dropped: partitions of {column} share files"
        raise LakeError(message, hint="remove the rule first: set_coalesce without columns")


def _found(metadata: TableMetadata, text: str) -> PartitionField:
    """The field of the default spec that a text means: its name, or its transform and column."""
    fields, wanted = _live(metadata.spec()), text.strip().lower()
    for field in fields:
        if wanted in (field.name.lower(), _text(metadata, field).lower()):
            return field
    written, transform = parse_field(text)
    for field in fields:
        column = metadata.schema().find_column_name(field.source_id) or ""
        if (column.lower(), transform_of(str(field.transform))) == (written.strip("`").lower(), transform):
            return field
    texts = [_text(metadata, field) for field in fields]
    hint = name_hint(text, texts) if texts else "it has no partition field"
    raise SchemaError(f"the table is not partitioned by {text.strip()!r}", hint=hint)


def _live(spec: PartitionSpec) -> list[PartitionField]:
    return [field for field in spec.fields if str(field.transform) != "void"]


def _text(metadata: TableMetadata, field: PartitionField) -> str:
    column = metadata.schema().find_column_name(field.source_id) or field.name
    transform = transform_of(str(field.transform))
    if transform.name == "identity":
        return column
    return f"{transform.name}({transform.width}, {column})" if transform.has_width else f"{transform.name}({column})"


def _free_name(metadata: TableMetadata, column: str, transform: Transform[Any, Any]) -> str:
    """A name that no field of any spec and no other column has: metadata tables have one column for each field."""
    applied = transform_of(str(transform))
    taken = {field.name.lower() for spec in metadata.partition_specs for field in spec.fields}
    own = {column.lower()} if applied.name == "identity" else set[str]()
    taken |= {field.name.lower() for field in metadata.schema().fields} - own
    names = _names(applied.field_name(column), applied.width)
    return next(name for name in names if name.lower() not in taken)


def _names(stem: str, width: int) -> Iterator[str]:
    yield stem
    if width:
        yield f"{stem}_{width}"
    yield from (f"{stem}_{number}" for number in count(2))


def _known_or_new(metadata: TableMetadata, fields: Sequence[PartitionField]) -> PartitionSpec:
    """The spec that has these fields, as the table knows it, or with the next free id."""
    same = (spec for spec in metadata.partition_specs if list(spec.fields) == list(fields))
    new = PartitionSpec(*fields, spec_id=max(spec.spec_id for spec in metadata.partition_specs) + 1)
    return next(same, new)


def updates_to(metadata: TableMetadata, spec: PartitionSpec) -> Iterator[TableUpdate]:
    """What makes a spec the default one, which the table may have had before."""
    if spec.spec_id in metadata.specs():
        yield SetDefaultSpecUpdate.model_validate({"spec-id": spec.spec_id})
    else:
        yield AddPartitionSpecUpdate(spec=spec)
        yield SetDefaultSpecUpdate.model_validate({"spec-id": -1})


def renumbered(base: TableMetadata, spec: PartitionSpec) -> PartitionSpec:
    """A spec of the draft with the id that it has, or will have, in the table: specs in between are not kept."""
    if base.specs().get(spec.spec_id) == spec:
        return spec
    return PartitionSpec(*spec.fields, spec_id=max(known.spec_id for known in base.partition_specs) + 1)
