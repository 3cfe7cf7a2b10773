"""Avro files of Iceberg tables: DataFusion decodes their blocks, and what the file's schema means by them is put back.

A copy of the file is made beside, with a schema of plain types under plain names (`avro_container.py`). Values keep all
their bits, NaN and negative zero included. A field of the type null takes no bytes, so it is left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import pyarrow as pa

from penstock.formats.avro_file import AVRO
from penstock.formats.file_format import IcebergFormat, Reading
from penstock.formats.meant_types import conform_table, with_id

_PLAIN = {
    "boolean": pa.bool_(), "int": pa.int32(), "long": pa.int64(), "float": pa.float32(), "double": pa.float64(),
    "bytes": pa.binary(), "string": pa.string(), "enum": pa.string(),
}  # fmt: skip
_TIMES = {"timestamp-millis": "ms", "timestamp-micros": "us", "timestamp-nanos": "ns"}
_FIRST_READ = 1 << 20  # bytes; a header is seldom longer


class _Column(NamedTuple):
    """A type twice: as DataFusion is given it, and as it is meant."""

    stored: Any
    meant: pa.DataType


class IcebergAvroFile:
    """An open Avro file of an Iceberg table; the metadata of its schema's fields have their ids."""

    def __init__(self, source: Any, reading: Reading) -> None:
        from penstock.formats.avro_container import read_header

        self._source, size = source, _FIRST_READ
        while True:
            source.seek(0)
            start = source.read(size)
            try:
                self._header = read_header(start)
                break
            except ValueError:
                if len(start) < size:
                    raise
                size *= 16
        self._types = _Types()
        self._whole = self._types.of(json.loads(self._header.meta["avro.schema"]))
        if not pa.types.is_struct(self._whole.meant):
            raise ValueError("its schema is no record")

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns in the types that Iceberg means by them."""
        return pa.schema(list(self._whole.meant))

    @property
    def metadata(self) -> Mapping[bytes, bytes] | None:
        return {name.encode(): value for name, value in self._header.meta.items()}

    def read(self, columns: Sequence[str]) -> pa.Table:
        """Some columns; where none is wanted, rows are counted by the first."""
        from penstock.formats.avro_container import decode_blocks

        places = [self.schema.get_field_index(name) for name in columns]
        self._source.seek(self._header.end)
        names = [f"f{i}" for i in places or [0]]
        stored = decode_blocks(json.dumps(self._whole.stored), self._header, self._source, names)
        return conform_table(stored.select(names[: len(places)]), pa.schema([self.schema.field(i) for i in places]))


class _Types:
    """Avro's types without names and meanings, and beside them the types that are meant.

    A named type may be defined once and be referred to later: here each use has a definition of its own.
    """

    def __init__(self) -> None:
        self._named: dict[str, Any] = {}
        self._count = 0

    def of(self, kind: Any) -> _Column:
        if isinstance(kind, list):
            known = [self.of(branch) for branch in kind if branch != "null"]
            if len(known) > 1:
                raise ValueError("a union of several types")
            branches = ["null" if branch == "null" else known[0].stored for branch in kind]
            return _Column(branches, known[0].meant if known else pa.null())
        if isinstance(kind, str):
            return self.of(self._named[kind]) if kind in self._named else _Column(kind, _plain(kind, {}))
        if isinstance(kind["type"], dict | list):
            return self.of(kind["type"])
        name = {}
        if "name" in kind:
            self._named[kind["name"]] = kind
            self._named[f"{kind.get('namespace', '')}.{kind['name']}"] = kind
            self._count += 1
            name = {"name": f"type{self._count}"}
        match kind["type"]:
            case "record":
                columns = list(self._fields(kind["fields"]))
                fields = [{"name": f"f{i}", "type": column.stored} for i, (_, column) in enumerate(columns)]
                return _Column({"type": "record", **name, "fields": fields}, pa.struct([f for f, _ in columns]))
            case "array":
                items = self.of(kind["items"])
                stored = {"type": "array", "items": items.stored}
                if kind.get("logicalType") == "map":
                    return _Column(stored, pa.map_(*items.meant))
                return _Column(stored, pa.list_(with_id("element", items.meant, kind.get("element-id"))))
            case "map":
                values = self.of(kind["values"])
                key = with_id("key", pa.string(), kind.get("key-id"), nullable=False)
                meant = pa.map_(key, with_id("value", values.meant, kind.get("value-id")))
                return _Column({"type": "map", "values": values.stored}, meant)
        stored = {part: kind[part] for part in ("type", "size", "symbols") if part in kind}
        return _Column({**stored, **name}, _plain(kind["type"], kind))

    def _fields(self, fields: Sequence[Any]) -> Iterator[tuple[pa.Field, _Column]]:
        for field in fields:
            column = self.of(field["type"])
            if column.meant != pa.null():
                name = field.get("iceberg-field-name", field["name"])
                nullable = isinstance(column.stored, list)
                yield with_id(name, column.meant, field.get("field-id"), nullable), column


def _plain(name: str, kind: Mapping[str, Any]) -> pa.DataType:
    """The type that is meant by one without parts."""
    logical = kind.get("logicalType", "")
    if name in ("fixed", "bytes") and logical == "decimal":
        return pa.decimal128(kind["precision"], kind.get("scale", 0))
    if name == "fixed":
        return pa.uuid() if logical == "uuid" and kind["size"] == 16 else pa.binary(kind["size"])
    if name == "int" and logical == "date":
        return pa.date32()
    if name == "long" and logical == "time-micros":
        return pa.time64("us")
    unit = _TIMES.get(logical.removeprefix("local-")) if name == "long" else None
    if unit is not None:
        is_local = logical.startswith("local-") or kind.get("adjust-to-utc") is False
        return pa.timestamp(unit, None if is_local else "UTC")
    if name == "null":
        return pa.null()
    if name not in _PLAIN:
        raise ValueError(f"the type {name}")
    return _PLAIN[name]


ICEBERG_AVRO = IcebergFormat(
    name=AVRO.name,
    title=AVRO.title,
    suffixes=AVRO.suffixes,
    open=IcebergAvroFile,
    spark_reader=AVRO.spark_reader,
    spark_package=AVRO.spark_package,
    magic=AVRO.magic,
)
