"""A manifest read by PyIceberg, entry by entry: the way out for files that the fast reader refuses.

The file is read in its own schema, not in the one of PyIceberg's entries: that one knows version 2 only, and would
lose what version 3 and Penstock add.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from penstock.tables.iceberg.manifest.avro import Header, PartitionColumn
from penstock.tables.iceberg.manifest.entry_fields import BOUNDS, COLUMNS, COUNTS, NAMES, OWN_NAMES

_SYNC = 16
# Columns as they were read, and the partition's beside them.
Read = tuple[dict[str, pa.Array], list[tuple[PartitionColumn, pa.Array]]]


def read_entrywise(header: Header, data: bytes) -> Read | None:
    """The columns of a manifest; None where PyIceberg cannot read it either."""
    try:
        fields, entries = _entries(header, data)
    except Exception:
        return None
    columns: dict[str, pa.Array] = {}
    partition: list[tuple[PartitionColumn, pa.Array]] = []
    todo: list[tuple[Any, list[Any]]] = [(field, [entry[i] for entry in entries]) for i, field in enumerate(fields)]
    try:
        for field, values in todo:
            if field.field_id == 2:
                todo += [(inner, [v[i] for v in values]) for i, inner in enumerate(field.field_type.fields)]
            elif field.field_id == 102:
                inside = enumerate(field.field_type.fields)
                partition = [_slow_partition(inner, [v[i] for v in values]) for i, inner in inside]
            else:
                name = NAMES.get(field.field_id) or (field.name if field.name in OWN_NAMES else None)
                if name is not None:
                    columns[name] = _slow_column(name, values)
    except (pa.ArrowException, TypeError, AttributeError, KeyError, ValueError, OverflowError):
        return None
    return columns, partition


def _entries(header: Header, data: bytes) -> tuple[Sequence[Any], list[Any]]:
    """Block after block, down to the last byte: PyIceberg's own loop takes a file cut short for its end.

    And with its decoder in Python: the compiled one of 0.12 reads doubles as floats (iceberg-python#3808).
    """
    from pyiceberg.avro.codecs import KNOWN_CODECS
    from pyiceberg.avro.decoder import StreamingBinaryDecoder
    from pyiceberg.avro.resolver import resolve_reader
    from pyiceberg.utils.schema_conversion import AvroSchemaConversion

    schema = AvroSchemaConversion().avro_to_iceberg(json.loads(header.meta["avro.schema"]))
    reader = resolve_reader(schema, schema)
    codec: Any = dict(KNOWN_CODECS)[header.meta.get("avro.codec", b"null").decode()]  # type: ignore[index]
    body = data[header.end :]
    stream = StreamingBinaryDecoder(body)
    sync = stream.read(_SYNC)
    entries: list[Any] = []
    while stream.tell() < len(body):
        count, block = stream.read_int(), stream.read_bytes()
        decoder = StreamingBinaryDecoder(block if codec is None else codec.decompress(block))
        entries += [reader.read(decoder) for _ in range(count)]
        if stream.read(_SYNC) != sync:
            raise ValueError("a block does not end where it should")
    return schema.fields, entries


def _slow_column(name: str, values: Sequence[Any]) -> pa.Array:
    kind = COLUMNS[name]
    if kind in (COUNTS, BOUNDS):
        values = [None if v is None else [{"key": k, "value": i} for k, i in v.items()] for v in values]
    return pa.array(values, kind)


def _slow_partition(field: Any, values: Sequence[Any]) -> tuple[PartitionColumn, pa.Array]:
    from pyiceberg import types

    match field.field_type:
        case types.DecimalType():
            from pyiceberg.utils.decimal import decimal_to_bytes

            array = pa.array([None if v is None else decimal_to_bytes(v) for v in values], pa.binary())
        case types.UUIDType():
            array = pa.array([getattr(v, "bytes", v) for v in values], pa.binary())
        case types.TimestampNanoType() | types.TimestamptzNanoType():
            array = pa.array(values, pa.int64()).view(pa.timestamp("ns"))
        case types.TimestampType() | types.TimestamptzType():
            array = pa.array(values, pa.int64()).view(pa.timestamp("us"))
        case types.TimeType():
            array = pa.array(values, pa.int64()).view(pa.time64("us"))
        case types.DateType():
            array = pa.array(values, pa.int32()).view(pa.date32())
        case types.FixedType() | types.BinaryType():
            array = pa.array(values, pa.binary())
        case _:
            simple = {"boolean": pa.bool_(), "int": pa.int32(), "float": pa.float32(), "string": pa.string()}
            array = pa.array(values, simple.get(str(field.field_type)))
    return PartitionColumn(field.field_id, field.name, None), array
