"""A manifest read by PyIceberg, entry by entry: for files that the fast reader refuses, and for writers.

A file that the fast reader refuses is read in its own schema, not in the one of PyIceberg's entries: that one knows
version 2 only, and would lose what version 3 and Penstock add.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
from pyiceberg import types
from pyiceberg.avro.codecs import KNOWN_CODECS
from pyiceberg.avro.decoder import StreamingBinaryDecoder, new_decoder
from pyiceberg.avro.resolver import resolve_reader
from pyiceberg.schema import Schema
from pyiceberg.typedef import EMPTY_DICT
from pyiceberg.utils.decimal import decimal_to_bytes
from pyiceberg.utils.schema_conversion import AvroSchemaConversion

from penstock.formats.avro_container import Header
from penstock.formats.manifest_record import ManifestRecord
from penstock.tables.iceberg.manifest.avro import BOUNDS, COLUMNS, COUNTS, NAMES, PartitionColumn

_SYNC = 16
_STORED = {
    "boolean": pa.bool_(), "int": pa.int32(), "float": pa.float32(), "string": pa.string(), "binary": pa.binary(),
    "date": pa.date32(), "time": pa.time64("us"), "timestamp": pa.timestamp("us"), "timestamptz": pa.timestamp("us"),
    "timestamp_ns": pa.timestamp("ns"), "timestamptz_ns": pa.timestamp("ns"),
}  # fmt: skip
# Columns as they were read, and the partition's beside them.
Read = tuple[dict[str, pa.Array], list[tuple[PartitionColumn, pa.Array]]]


def read_entrywise(header: Header, data: bytes) -> Read | None:
    """The columns of a manifest; None where PyIceberg cannot read it either."""
    try:
        schema, entries = read_records(header, data)
    except Exception:  # damaged bytes may break PyIceberg's decoder anywhere
        return None
    columns: dict[str, pa.Array] = {}
    partition: list[tuple[PartitionColumn, pa.Array]] = []
    todo: list[tuple[Any, list[Any]]] = [
        (field, [entry[i] for entry in entries]) for i, field in enumerate(schema.fields)
    ]
    try:
        for field, values in todo:
            if field.field_id == 2:
                todo += [(inner, [v[i] for v in values]) for i, inner in enumerate(field.field_type.fields)]
            elif field.field_id == 102:
                inside = enumerate(field.field_type.fields)
                partition = [_slow_partition(inner, [v[i] for v in values]) for i, inner in inside]
            else:
                name = NAMES.get(field.field_id) or (field.name if field.name in ManifestRecord._fields else None)
                if name is not None:
                    columns[name] = _slow_column(name, values)
    except (pa.ArrowException, TypeError, AttributeError, KeyError, ValueError, OverflowError):
        return None
    return columns, partition


def read_records(
    header: Header,
    data: bytes,
    decoder: Callable[[bytes], Any] = StreamingBinaryDecoder,
    schema: Schema | None = None,
    types: Any = EMPTY_DICT,
    enums: Any = EMPTY_DICT,
) -> tuple[Schema, list[Any]]:
    """The records of an Avro file, in its own schema unless another is given, down to the last byte.

    PyIceberg's own loop takes a file that was cut short for a complete one.
    """
    stored = AvroSchemaConversion().avro_to_iceberg(json.loads(header.meta["avro.schema"]))
    reader = resolve_reader(stored, schema or stored, types, enums)
    codec: Any = dict(KNOWN_CODECS)[header.meta.get("avro.codec", b"null").decode()]  # type: ignore[index]
    body = data[header.end :]
    stream = StreamingBinaryDecoder(body)
    sync = stream.read(_SYNC)
    records: list[Any] = []
    while stream.tell() < len(body):
        count, block = stream.read_int(), stream.read_bytes()
        content = block if codec is None else codec.decompress(block)
        values = decoder(content)
        records += [reader.read(values) for _ in range(count)]
        if values.tell() != len(content) or stream.read(_SYNC) != sync:
            raise ValueError("a block does not end where it should")
    return stored, records


class ExactDecoder:
    """PyIceberg's compiled decoder with exact doubles: that of 0.12 reads them as floats (iceberg-python#3808).

    Unlike the decoder in Python, it does not notice numbers of more than 64 bits.
    """

    def __init__(self, data: bytes) -> None:
        self._decoder = new_decoder(data)

    def __getattr__(self, name: str) -> Any:
        method = self.__dict__[name] = getattr(self._decoder, name)
        return method

    def read_double(self) -> float:
        """Eight bytes as they are."""
        value: float = struct.unpack("<d", self._decoder.read(8))[0]
        return value


def _slow_column(name: str, values: Sequence[Any]) -> pa.Array:
    kind = COLUMNS[name]
    if kind in (COUNTS, BOUNDS):
        values = [None if v is None else [{"key": k, "value": i} for k, i in v.items()] for v in values]
    return pa.array(values, kind)


def _slow_partition(field: Any, values: Sequence[Any]) -> tuple[PartitionColumn, pa.Array]:
    match field.field_type:
        case types.DecimalType():
            array = pa.array([None if v is None else decimal_to_bytes(v) for v in values], pa.binary())
        case types.UUIDType():
            array = pa.array([getattr(v, "bytes", v) for v in values], pa.binary())
        case types.FixedType():
            array = pa.array(values, pa.binary())
        case kind:
            array = pa.array(values, _STORED.get(str(kind)))
    return PartitionColumn(field.field_id, field.name, None), array
