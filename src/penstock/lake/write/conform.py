"""Rows as the table's files have them: checked against the schema, then cast column by column.

What arrives has the types that Spark and the core use; files have Iceberg's, with field ids. A uuid arrives as its
text. Whatever does not fit is said before a file is opened.
"""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.schema import Schema, make_compatible_name

from penstock.errors import SchemaError
from penstock.expr.types import is_nested
from penstock.lake.layout.table_layout import Layout
from penstock.lake.write.row_fit import WIDER, fit_rows
from penstock.maps.map_entries import build_maps, entries_of


def check_schema(incoming: pa.Schema, schema: Schema) -> list[str | None]:
    """The given columns in the table's order, by the names that they were given, and None for those that are not given;
    an error for all that is wrong."""
    fit = fit_rows(incoming, schema)
    fit.check()
    return fit.names


def in_order(rows: pa.Table, names: Sequence[str | None]) -> pa.Table:
    """Rows with the columns of the table, of which those that are not given are NULL."""
    nothing = pa.nulls(rows.num_rows)
    columns = [nothing if name is None else rows.column(name) for name in names]
    return pa.table(columns, names=[name or f"__penstock_missing_{i}" for i, name in enumerate(names)])


def required(schema: Schema) -> list[str]:
    """The columns that may not be null."""
    return [field.name for field in schema.fields if field.required]


def null_error(name: str, rows: int) -> SchemaError:
    """What to say of nulls in a required column."""
    message = f"column {name!r} is required and {rows:,} of the rows have null there"
    return SchemaError(message, hint="fill in or filter out those rows; nothing was written")


def conform(table: pa.Table, layout: Layout) -> pa.Table:
    """Checked rows in the types of the table's files, still under the table's names."""
    wanted, fields = layout.files, layout.schema.fields  # sidecars are behind the columns that rows have
    columns = []
    for i, field in enumerate(fields):
        column = table.column(i)
        if field.required and column.null_count:
            raise null_error(field.name, column.null_count)
        columns.append(_cast(column, wanted.field(i).type, field.name))
    return pa.table(columns, names=[field.name for field in fields])


def fits(incoming: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether values of a type go into a column without a loss."""
    if incoming == wanted or (incoming, wanted) in WIDER or pa.types.is_null(incoming):
        return True
    if pa.types.is_decimal(incoming) and pa.types.is_decimal(wanted):
        return bool(incoming.scale == wanted.scale and incoming.precision <= wanted.precision)
    if not is_nested(wanted) or incoming.id != wanted.id or incoming.num_fields != wanted.num_fields:
        return False
    inner = [(incoming.field(i), wanted.field(i)) for i in range(wanted.num_fields)]
    named = pa.types.is_struct(wanted)
    return all((not named or a.name.lower() == b.name.lower()) and fits(a.type, b.type) for a, b in inner)


def _cast(column: pa.ChunkedArray, to: pa.DataType, name: str) -> pa.ChunkedArray:
    try:
        return pa.chunked_array([convert(chunk, to) for chunk in column.chunks], to)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError) as error:
        message = f"column {name!r} has a value that does not fit {to}: {' '.join(str(error).split())[:200]}"
        raise SchemaError(message, hint="cast or filter the rows first") from None


def convert(array: pa.Array, to: pa.DataType) -> pa.Array:
    """Values in a type that they fit."""
    if array.type == to:
        return array
    if pa.types.is_null(array.type):
        return _nothing(len(array), to)
    if isinstance(to, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(to, convert(array, to.storage_type))
    if isinstance(array.type, pa.BaseExtensionType):
        return convert(array.storage, to)
    if pa.types.is_fixed_size_binary(to) and to.byte_width == 16 and pa.types.is_string(array.type):
        return pa.array([None if v is None else UUID(v).bytes for v in array.to_pylist()], to)
    if pa.types.is_struct(to):
        places = {make_compatible_name(field.name).lower(): i for i, field in enumerate(array.type)}  # files' names
        parts = [_part(array, places.get(field.name.lower()), field) for field in to]
        for part, field in zip(parts, to, strict=True):
            if not field.nullable and part.null_count > array.null_count:
                raise ValueError(f"field {field.name!r} is required and null in some rows")
        parts = [part if field.nullable else _never_null(part) for part, field in zip(parts, to, strict=True)]
        return pa.StructArray.from_arrays(parts, fields=list(to), mask=array.is_null())
    if pa.types.is_map(to):
        return _map(array, to)
    if pa.types.is_list(to) or pa.types.is_large_list(to):
        return _list(array, to)
    return array.cast(to)


def _part(array: pa.Array, place: int | None, field: pa.Field) -> pa.Array:
    """A field of structs; one that they do not have is NULL."""
    if place is None:
        return _nothing(len(array), field.type)
    return convert(pc.struct_field(array, [place]), field.type)


def _nothing(length: int, to: pa.DataType) -> pa.Array:
    """NULL so many times; Parquet's writer takes no null in a required field, not even of a struct that is null."""
    if not pa.types.is_struct(to):
        return pa.nulls(length, to)
    parts = [_nothing(length, f.type) if f.nullable else _never_null(_nothing(length, f.type)) for f in to]
    return pa.StructArray.from_arrays(parts, fields=list(to), mask=pa.array([True] * length, pa.bool_()))


def _never_null(array: pa.Array) -> pa.Array:
    """Values as they lie there, though their struct is null: Parquet's writer takes no null in a required field."""
    if not array.null_count or is_nested(array.type) or isinstance(array.type, pa.BaseExtensionType):
        return array
    array = _whole(array)
    return pa.Array.from_buffers(array.type, len(array), [None, *array.buffers()[1:]])


def _map(array: pa.Array, to: pa.DataType) -> pa.Array:
    entries = entries_of(array)
    keys, items = convert(entries.keys, to.key_type), convert(entries.items, to.item_type)
    return build_maps(to, entries.offsets, keys, items, np.asarray(array.is_null()))


def _list(array: pa.Array, to: pa.DataType) -> pa.Array:
    if pa.types.is_fixed_size_list(array.type):
        array = array.cast(pa.list_(array.type.value_field))
    array = _whole(array)
    items = convert(array.values, to.value_type)
    offsets = array.buffers()[1]
    if pa.types.is_large_list(to) and not pa.types.is_large_list(array.type):
        offsets = array.offsets.cast(pa.int64()).buffers()[1]
    return pa.Array.from_buffers(to, len(array), [array.buffers()[0], offsets], array.null_count, children=[items])


def _whole(array: pa.Array) -> pa.Array:
    """An array without an offset into its buffers: a part of another is copied."""
    return array if array.offset == 0 else array.take(pa.array(range(len(array)), pa.int64()))
