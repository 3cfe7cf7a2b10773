"""The Parquet files of a layout: one footer for the schema, and reading without Spark."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.errors import LayoutError
from penstock.predicate.evaluate import as_type
from penstock.predicate.schema import as_schema
from penstock.predicate.types import (
    TIMESTAMP,
    TIMESTAMP_NTZ,
    common_type,
    is_nested,
    is_numeric,
    normalize,
    type_name,
)
from penstock.tables.hive.names import is_data_file, is_hidden
from penstock.tables.storage import Storage


def first_file(storage: Storage, columns: Sequence[pa.Field]) -> str:
    """The path of some data file: the first in the first branch that has one."""
    found = _first_below(storage, storage.path, len(columns))
    if found is None:
        hint = "give the schema, or check the root and the declared partition columns"
        raise LayoutError(f"{storage.url} has no .parquet file {len(columns)} directories below it", hint=hint)
    return found


def _first_below(storage: Storage, path: str, depth: int) -> str | None:
    found = storage.entries(path)
    entries = (found.entry(i) for i in found.in_order() if not is_hidden(found.names[i]))
    if depth == 0:
        return next((f"{path}/{e.name}" for e in entries if not e.is_directory and is_data_file(e.name)), None)
    branches = (e for e in entries if e.is_directory and "=" in e.name[1:])
    return next((f for e in branches if (f := _first_below(storage, f"{path}/{e.name}", depth - 1))), None)


def read_schema(storage: Storage, path: str) -> pa.Schema:
    """The schema of one file, from its footer."""
    with storage.open(path) as file, _clear_errors(storage, path):
        footer = pq.ParquetFile(file)
        stored = [footer.schema.column(i) for i in range(len(footer.schema))]
        # The old form of Spark's own timestamps, which Arrow takes for those without a zone.
        moments = {column.path for column in stored if column.physical_type == "INT96"}
        found = [pa.field(f.name, TIMESTAMP, f.nullable) if f.name in moments else f for f in footer.schema_arrow]
        return as_schema(pa.schema(found))


def read_file(storage: Storage, url: str, schema: pa.Schema) -> pa.Table:
    """All rows of one file, with the columns of a schema; a column the file lacks is null."""
    path = url.removeprefix(f"{storage.scheme}://")
    with storage.open(path) as file, _clear_errors(storage, path):
        parquet = pq.ParquetFile(file, coerce_int96_timestamp_unit="us")
        by_name = {name.lower(): name for name in parquet.schema_arrow.names}
        found = [by_name.get(f.name.lower()) for f in schema]
        table = parquet.read([name for name in found if name is not None])
    if not len(schema):
        return table.select([])  # the rows without any column, which still are as many
    return pa.table([_column(table, name, f, url) for name, f in zip(found, schema, strict=True)], schema=schema)


def _column(table: pa.Table, name: str | None, field: pa.Field, url: str) -> pa.Array:
    if name is None:
        return pa.nulls(table.num_rows, field.type)
    column = table.column(name).combine_chunks()
    found = normalize(column.type)
    if is_nested(found) or _is_read_as(found, field.type):
        with suppress(pa.ArrowException):
            return as_type(column, field.type)
    said = f"{url}: column {name} is {type_name(found)}, the table has {type_name(field.type)}"
    raise LayoutError(said, hint="fix the file, or declare the schema")


def _is_read_as(found: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether Spark reads a file's type as another: a wider number, octets as text, moments without a zone as UTC's.

    Arrow would also make 5 of the text '5', and then fail on the next row.
    """
    if found == wanted or pa.types.is_null(found) or {found, wanted} == {pa.string(), pa.binary()}:
        return True
    if is_numeric(found) and is_numeric(wanted):
        return bool(common_type(found, wanted) == wanted)
    return (found, wanted) == (TIMESTAMP_NTZ, TIMESTAMP)


@contextmanager
def _clear_errors(storage: Storage, path: str) -> Iterator[None]:
    try:
        yield
    except pa.ArrowInvalid as error:
        why = str(error).splitlines()[0][:120]
        said = f"{storage.url_of(path)} is not a Parquet file ({why})"
        raise LayoutError(said, hint="remove or replace it") from None
    except OSError as error:
        raise storage.trouble(path, error) from None
