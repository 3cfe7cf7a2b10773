"""The Parquet files of a layout: one footer for the schema, and reading without Spark."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.errors import LayoutError
from penstock.predicate.evaluate import as_type
from penstock.predicate.schema import as_schema
from penstock.predicate.types import type_name
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
    entries = [entry for entry in storage.entries(path) if not is_hidden(entry.name)]
    if depth == 0:
        return next((f"{path}/{e.name}" for e in entries if not e.is_directory and is_data_file(e.name)), None)
    branches = (e for e in entries if e.is_directory and "=" in e.name)
    return next((f for e in branches if (f := _first_below(storage, f"{path}/{e.name}", depth - 1))), None)


def read_schema(storage: Storage, path: str) -> pa.Schema:
    """The schema of one file, from its footer."""
    with storage.open(path) as file:
        try:
            return as_schema(pq.read_schema(file))
        except pa.ArrowInvalid as error:
            raise _not_parquet(storage.url_of(path), error) from None


def read_file(storage: Storage, url: str, schema: pa.Schema) -> pa.Table:
    """All rows of one file in the table's schema; a column the file lacks is null."""
    path = url.removeprefix(f"{storage.scheme}://")
    with storage.open(path) as file:
        try:
            table = pq.ParquetFile(file).read()
        except pa.ArrowInvalid as error:
            raise _not_parquet(url, error) from None
    by_name = {name.lower(): name for name in table.column_names}
    return pa.table([_column(table, by_name.get(f.name.lower()), f, url) for f in schema], schema=schema)


def _column(table: pa.Table, name: str | None, field: pa.Field, url: str) -> pa.Array:
    if name is None:
        return pa.nulls(table.num_rows, field.type)
    column = table.column(name).combine_chunks()
    try:
        return as_type(column, field.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        found, expected = type_name(column.type), type_name(field.type)
        raise LayoutError(f"{url}: column {name} is {found}, the table has {expected}", hint="fix the file") from None


def _not_parquet(url: str, error: Exception) -> LayoutError:
    return LayoutError(f"{url} is not a Parquet file ({str(error).splitlines()[0][:120]})", hint="remove or replace it")
