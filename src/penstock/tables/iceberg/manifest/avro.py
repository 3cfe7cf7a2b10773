"""A manifest's Avro file with its schema flattened, so that any reader of plain columns can read it.

An Avro record is written as its fields one after the other, with nothing around them. So `data_file` inside of an
entry, and `partition` inside of `data_file`, can be left out of the *schema* without touching one byte of the *data*:

    {status, data_file: {file_path, partition: {dt, app}, …}}  →  {status, file_path, p0, p1, …}

Only the header is written anew, the blocks are copied. That takes away everything a reader may stumble over: a record
without fields (tables that are not partitioned), two partition fields of one name, names that no reader likes, types
that it does not know (logical types are left out and given back later). And columns that nobody needs are never
materialised.

Fields are found by Iceberg's field ids, as the specification asks for; names are only used for Penstock's own.

Not done here: reading blocks. A record that is nullable cannot be flattened; `flatten` answers None.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from penstock.formats.avro_container import Header, PlainTypes, branches
from penstock.formats.manifest_record import ManifestRecord

_DATA_FILE, _PARTITION = 2, 102
# The fields of an entry by Iceberg's ids, but `partition`, whose type is another one for every spec.
COUNTS = pa.list_(pa.struct([("key", pa.int32()), ("value", pa.int64())]))
BOUNDS = pa.list_(pa.struct([("key", pa.int32()), ("value", pa.binary())]))
_FIELDS = (
    (0, "status", pa.int8()),
    (1, "snapshot_id", pa.int64()),
    (3, "sequence_number", pa.int64()),
    (4, "file_sequence_number", pa.int64()),
    (134, "content", pa.int8()),
    (100, "file_path", pa.string()),
    (101, "file_format", pa.string()),
    (103, "record_count", pa.int64()),
    (104, "file_size_in_bytes", pa.int64()),
    (109, "value_counts", COUNTS),
    (110, "null_value_counts", COUNTS),
    (137, "nan_value_counts", COUNTS),
    (125, "lower_bounds", BOUNDS),
    (128, "upper_bounds", BOUNDS),
    (135, "equality_ids", pa.list_(pa.int32())),
    (132, "split_offsets", pa.list_(pa.int64())),
    (140, "sort_order_id", pa.int32()),
    (131, "key_metadata", pa.binary()),
    (142, "first_row_id", pa.int64()),
    (143, "referenced_data_file", pa.string()),
    (144, "content_offset", pa.int64()),
    (145, "content_size_in_bytes", pa.int64()),
)
NAMES: Mapping[int | None, str] = {field_id: name for field_id, name, _ in _FIELDS}
COLUMNS: Mapping[str, pa.DataType] = {
    **{name: kind for _, name, kind in _FIELDS},
    **dict.fromkeys(ManifestRecord._fields, pa.string()),
}


@dataclass(frozen=True)
class PartitionColumn:
    """One partition field in the file: its id, its column after flattening (None: always null), its logical type."""

    field_id: int | None
    name: str | None
    logical: str | None


@dataclass(frozen=True)
class Flat:
    """A flattened schema: the Avro text, the columns of it that are known, and the partition's."""

    schema: str
    columns: tuple[str, ...]
    partition: tuple[PartitionColumn, ...]


def flatten(header: Header) -> Flat | None:
    """The schema of a manifest without its nesting; None where that would change how the data is read."""
    schema = json.loads(header.meta["avro.schema"])
    types, fields = PlainTypes(), list[dict[str, Any]]()
    columns: list[str] = []
    partition: list[PartitionColumn] = []
    todo = [(field, _name(field)) for field in reversed(schema["fields"])]
    while todo:
        field, name = todo.pop()
        inside = _id(field)
        if inside in (_DATA_FILE, _PARTITION) and name is None:
            kind = field["type"]
            if not isinstance(kind, dict) or kind.get("type") != "record":
                return None
            children = kind["fields"]
            if inside == _DATA_FILE:
                todo += [(child, _name(child)) for child in reversed(children)]
            else:
                partition = [_partition_column(i, child) for i, child in enumerate(children)]
                named = zip(children, partition, strict=True)
                fields += [{"name": p.name, "type": types.plain(c["type"])} for c, p in named if p.name is not None]
            continue
        if name is not None:
            columns.append(name)
        fields.append({"name": name or f"other{len(fields)}", "type": types.plain(field["type"])})
    if len(set(columns)) < len(columns):
        return None
    text = json.dumps({"type": "record", "name": "manifest_entry", "fields": fields})
    return Flat(text, tuple(columns), tuple(partition))


def _name(field: Mapping[str, Any]) -> str | None:
    """The column that a field is; None for records, and for fields that nobody needs."""
    is_own = field.get("name") in ManifestRecord._fields and branches(field["type"]) == ["string"]
    return NAMES.get(_id(field), field["name"] if is_own else None)


def _id(field: Mapping[str, Any]) -> int | None:
    return int(field["field-id"]) if field.get("field-id") is not None else None


def _partition_column(position: int, field: Mapping[str, Any]) -> PartitionColumn:
    kinds = branches(field["type"])
    logical = kinds[0].get("logicalType") if len(kinds) == 1 and isinstance(kinds[0], dict) else None
    return PartitionColumn(_id(field), f"p{position}" if field["type"] != "null" else None, logical)
