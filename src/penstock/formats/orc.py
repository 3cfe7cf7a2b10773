"""ORC, by Arrow's reader. Spark's reader prunes stripes by their statistics; Arrow's gives none of them away.

Three things are not as Arrow shows them. A `timestamp` of ORC is a moment to Spark, and one without a zone a number
that says so (`spark.sql.catalyst.type`). Hive writes names such as `_col0`: where all are of that kind, columns go by
their position. Writers count days before 1582-10-15 by one of two calendars, and Arrow does not tell by which: a file
with such a day is an error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.expr.types import TIMESTAMP, TIMESTAMP_NTZ, is_timestamp, normalize
from penstock.formats.file_format import FileFormat, Reading, UnreadableError

_MAGIC = b"ORC"
_OF_HIVE = "_col"
_CATALYST_TYPE = b"spark.sql.catalyst.type"
_GREGORIAN = -141_427  # 1582-10-15, in days since 1970
_DAY = 86_400 * 10**6


class OrcFile:
    """An open ORC file."""

    def __init__(self, source: Any, reading: Reading) -> None:
        from pyarrow.orc import ORCFile

        try:
            self._file = ORCFile(source)
        except OSError:
            if not _is_orc(source):
                raise pa.ArrowInvalid("it does not end as one") from None
            raise
        self._declared = reading.columns

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns as Spark sees them."""
        fields = [field.with_type(_type_of(field)) for field in self._file.schema]
        return pa.schema([field.with_name(self._names.get(field.name, field.name)) for field in fields])

    @cached_property
    def _names(self) -> Mapping[str, str]:
        """The names that Hive did not write, by those that it did."""
        stored = self._file.schema.names
        if self._declared is None or not all(name.startswith(_OF_HIVE) for name in stored):
            return {}
        if len(stored) > len(self._declared):
            message = f"it has {len(stored)} columns without names, and the table {len(self._declared)}"
            raise UnreadableError(message, hint="declare all of them")
        return dict(zip(stored, self._declared.names, strict=False))

    @property
    def metadata(self) -> Mapping[bytes, bytes] | None:
        pairs: Mapping[bytes, bytes] | None = self._file.schema.metadata
        return pairs

    def read(self, columns: Sequence[str]) -> pa.Table:
        if not columns:
            return pa.table({"": pa.nulls(self._file.nrows)}).select([])
        own = {name: stored for stored, name in self._names.items()}
        stored = self.stored([own.get(name, name) for name in columns])
        table = stored.rename_columns([self._names.get(name, name) for name in stored.column_names])
        values = [_as_seen(table[name], self.schema.field(name).type) for name in table.column_names]
        return pa.table(values, table.column_names)

    def stored(self, names: Sequence[str] | None) -> pa.Table:
        """Some columns, or all, as Arrow shows them."""
        try:
            return self._file.read(None if names is None else list(names))
        except pa.ArrowInvalid as error:
            if "out of range for nanosecond" not in str(error):
                raise
            hint = "read it by dataframe(spark), or leave the column out"
            raise UnreadableError("it has a time before 1677 or after 2262", hint=hint) from None


def _is_orc(source: Any) -> bool:
    """Whether a file ends with the magic bytes, before the last byte."""
    size = source.size()
    source.seek(max(0, size - len(_MAGIC) - 1))
    return bool(source.read(len(_MAGIC)) == _MAGIC)


def _type_of(field: pa.Field) -> pa.DataType:
    written = (field.metadata or {}).get(_CATALYST_TYPE)
    if written == b"timestamp_ntz":
        return TIMESTAMP_NTZ
    return _with_moments(normalize(field.type))


def _with_moments(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_with_moments(field.type)) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(_with_moments(kind.key_type), _with_moments(kind.item_type))
    if pa.types.is_list(kind):
        return pa.list_(_with_moments(kind.value_type))
    return TIMESTAMP if is_timestamp(kind) else kind


def _as_seen(column: pa.ChunkedArray, to: pa.DataType) -> pa.ChunkedArray:
    """Values as Spark sees them; an error for days that two calendars count differently."""
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("us", column.type.tz), safe=False)
    _check_calendar(column)
    return column.cast(to) if is_timestamp(to) else column


def _check_calendar(column: pa.ChunkedArray | pa.Array) -> None:
    kind = column.type
    if pa.types.is_struct(kind):
        for i in range(kind.num_fields):
            _check_calendar(pc.struct_field(column, [i]))
    elif pa.types.is_map(kind):
        for chunk in column.chunks if isinstance(column, pa.ChunkedArray) else [column]:
            _check_calendar(chunk.keys)
            _check_calendar(chunk.items)
    elif pa.types.is_list(kind):
        _check_calendar(pc.list_flatten(column))
    elif pa.types.is_date32(kind) or pa.types.is_timestamp(kind):
        numbers = column.cast(pa.int32() if pa.types.is_date32(kind) else pa.timestamp("us", kind.tz), safe=False)
        first = pc.min(numbers.cast(pa.int64())).as_py()
        if first is not None and first < _GREGORIAN * (1 if pa.types.is_date32(kind) else _DAY):
            message = "it has a day before 1582-10-15, and Arrow does not tell by which calendar"
            raise UnreadableError(message, hint="read it by dataframe(spark), or leave the column out")


ORC = FileFormat(name="orc", title="ORC", suffixes=("orc",), magic=_MAGIC, open=OrcFile, spark_reader="NanSafeOrc")
