"""The columns of all files of a layout, by name: `penstock.hive(root, …, union_by_name=True)`.

A column that only some files have is NULL in the others. Types may differ where Spark's readers widen them: integers,
float and double, decimals of one scale. Columns stand in the order in which files, by their names, first have them.

>>> widened(pa.int32(), pa.int64()), widened(pa.int64(), pa.string())
(DataType(int64), None)
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa

from penstock.errors import LayoutError
from penstock.expr.types import is_decimal, is_float, is_integer, type_name
from penstock.progress import Counted, progress
from penstock.tables.hive.hive_files import LayoutFiles, Mapping

_AT_ONCE = 16


def united_columns(files: LayoutFiles, urls: Sequence[str]) -> tuple[pa.Schema, Mapping]:
    """The columns of some files, and what one of them says of the sidecars of its maps, if any does."""
    if not files.file_format.has_types:
        hint = "leave union_by_name out, and declare the schema"
        raise LayoutError(f"{files.file_format.title} files have no types to unite", hint=hint)
    columns: dict[str, tuple[pa.Field, str]] = {}
    shredded: Mapping = ()
    read = 0
    counted = progress("reading footers", lambda: Counted(read, len(urls), "file"))
    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="penstock-footers") as pool, counted:
        schemas = pool.map(files.schema, map(files.storage.path_of, urls))
        for url, (schema, mapping) in zip(urls, schemas, strict=True):
            read += 1
            shredded = shredded or mapping
            for column in schema:
                known, first = columns.get(column.name.lower(), (column, url))
                columns[column.name.lower()] = (_united(known, column, first, url), first)
    return pa.schema([column for column, _ in columns.values()]), shredded


def _united(known: pa.Field, column: pa.Field, first: str, url: str) -> pa.Field:
    wide = widened(known.type, column.type)
    if wide is None:
        types = f"{type_name(column.type)} in {url}, and {type_name(known.type)} in {first}"
        raise LayoutError(f"column {known.name} is {types}", hint="fix one of the files, or declare the schema")
    return known.with_type(wide)


def widened(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    """The type that files with either type are read as; None where there is none."""
    if left == right or pa.types.is_null(right):
        return left
    if pa.types.is_null(left):
        return right
    if (is_integer(left) and is_integer(right)) or (is_float(left) and is_float(right)):
        return left if left.bit_width > right.bit_width else right
    if is_decimal(left) and is_decimal(right) and left.scale == right.scale:
        return left if left.precision > right.precision else right
    return None
