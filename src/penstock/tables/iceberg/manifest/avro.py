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
from io import BytesIO
from typing import Any

import pyarrow as pa
from pyiceberg.avro.decoder import StreamingBinaryDecoder
from pyiceberg.avro.encoder import BinaryEncoder

from penstock.formats.manifest_record import ManifestRecord

_MAGIC = b"Obj\x01"
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
class Header:
    """What stands before the first block; `end` is where it ends, without the sync marker."""

    meta: Mapping[str, bytes]
    end: int


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


def read_header(data: bytes) -> Header:
    """The metadata of an Avro file.

    >>> read_header(write_header({"avro.codec": b"null"})).meta
    {'avro.codec': b'null'}
    """
    decoder = StreamingBinaryDecoder(data)
    meta: dict[str, bytes] = {}
    try:
        if decoder.read(len(_MAGIC)) != _MAGIC:
            raise ValueError("it is no Avro file")
        while count := decoder.read_int():
            if count < 0:
                decoder.read_int()  # the bytes of the block
            for _ in range(abs(count)):
                name = decoder.read_utf8()
                meta[name] = decoder.read_bytes()
    except (EOFError, OverflowError):
        raise ValueError("its header is cut short") from None
    return Header(meta, decoder.tell())


def write_header(meta: Mapping[str, bytes]) -> bytes:
    """A header up to its sync marker."""
    header = BytesIO()
    encoder = BinaryEncoder(header)
    encoder.write(_MAGIC)
    encoder.write_int(len(meta))
    for name, value in meta.items():
        encoder.write_utf8(name)
        encoder.write_bytes(value)
    encoder.write_int(0)
    return header.getvalue()


def flatten(header: Header) -> Flat | None:
    """The schema of a manifest without its nesting; None where that would change how the data is read."""
    schema = json.loads(header.meta["avro.schema"])
    types, fields = _Types(), list[dict[str, Any]]()
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
    is_own = field.get("name") in ManifestRecord._fields and _branches(field["type"]) == ["string"]
    return NAMES.get(_id(field), field["name"] if is_own else None)


def _id(field: Mapping[str, Any]) -> int | None:
    return int(field["field-id"]) if field.get("field-id") is not None else None


def _partition_column(position: int, field: Mapping[str, Any]) -> PartitionColumn:
    kinds = _branches(field["type"])
    logical = kinds[0].get("logicalType") if len(kinds) == 1 and isinstance(kinds[0], dict) else None
    return PartitionColumn(_id(field), f"p{position}" if field["type"] != "null" else None, logical)


def _branches(kind: Any) -> list[Any]:
    """The types that a field may have beside null."""
    return [branch for branch in (kind if isinstance(kind, list) else [kind]) if branch != "null"]


class _Types:
    """Avro's types without anything that is not part of how they are written.

    A named type may be defined once and be referred to later, and some writers define it every time: here each use
    has a definition of its own, under a name of its own.
    """

    def __init__(self) -> None:
        self._named: dict[str, Any] = {}
        self._count = 0

    def plain(self, kind: Any) -> Any:
        if isinstance(kind, list):
            return [self.plain(branch) for branch in kind]
        if isinstance(kind, str) and kind in self._named:
            return self.plain(self._named[kind])
        if not isinstance(kind, dict):
            return kind
        plain = {key: self.plain(kind[key]) for key in ("type", "items", "values") if key in kind}
        plain |= {key: kind[key] for key in ("size", "symbols") if key in kind}
        if "fields" in kind:
            plain["fields"] = [{"name": f["name"], "type": self.plain(f["type"])} for f in kind["fields"]]
        if "name" in kind:
            names = [kind["name"], f"{kind['namespace']}.{kind['name']}"] if "namespace" in kind else [kind["name"]]
            self._named |= dict.fromkeys(names, kind)
            self._count += 1
            plain["name"] = f"type{self._count}"
        return plain
