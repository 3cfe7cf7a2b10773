"""ORC files of Iceberg tables: the ids of fields, and the types that ORC has no own name for, are attributes in them.

Arrow reads timestamps of ORC as nanoseconds, so one before 1677 or after 2262 is an error, never another time.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import pyarrow as pa

from penstock.errors import LakeError
from penstock.formats.file_format import IcebergFormat, Reading, UnreadableError
from penstock.formats.meant_types import conform_table, with_id
from penstock.formats.orc import ORC, OrcFile


class IcebergOrcFile(OrcFile):
    """An open ORC file of an Iceberg table; the metadata of its schema's fields have their ids."""

    def __init__(self, source: Any, reading: Reading) -> None:
        super().__init__(source, reading)
        self._stored: pa.Schema = self._file.schema

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns in the types that Iceberg means by them."""
        return pa.schema([_meant(field) for field in self._stored])

    def read(self, columns: Sequence[str]) -> pa.Table:
        """Some columns; Arrow takes a dot in a name for the way to a nested field, so then all are read."""
        if not columns:
            return super().read(columns)
        dotted = any("." in name for name in columns)
        try:
            stored = self.stored(None if dotted else columns)
        except UnreadableError as error:
            raise LakeError(error.message, hint=error.hint) from None
        return conform_table(stored.select(list(columns)), pa.schema([self.schema.field(name) for name in columns]))


def _meant(field: pa.Field) -> pa.Field:
    attributes = field.metadata or {}
    kind = _meant_type(field.type, attributes)
    field_id = attributes.get(b"iceberg.id")
    return with_id(field.name, kind, None if field_id is None else field_id.decode(), field.nullable)


def _meant_type(kind: pa.DataType, attributes: Any) -> pa.DataType:
    if pa.types.is_struct(kind):
        return pa.struct([_meant(field) for field in kind])
    if pa.types.is_list(kind):
        return pa.list_(_meant(kind.value_field))
    if pa.types.is_map(kind):
        return pa.map_(_meant(kind.key_field).with_nullable(False), _meant(kind.item_field))
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", kind.tz)
    match attributes.get(b"iceberg.binary-type"), attributes.get(b"iceberg.long-type"):
        case b"UUID", _:
            return pa.uuid()
        case b"FIXED", _:
            return pa.binary(int(attributes[b"iceberg.length"]))
        case _, b"TIME":
            return pa.time64("us")
    return kind


ICEBERG_ORC = IcebergFormat(
    name=ORC.name,
    title=ORC.title,
    suffixes=ORC.suffixes,
    open=IcebergOrcFile,
    spark_reader=ORC.spark_reader,
    magic=ORC.magic,
)
