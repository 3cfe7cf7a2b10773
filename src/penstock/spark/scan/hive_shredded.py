"""Hive layouts whose files have sidecars: each file's footer says which, and files that say the same are read alike.

The footers of the files that a scan keeps are read before Spark gets them, in parallel, once for each version of a
file. Where the first file of a layout is shredded, all files are looked at when a DataFrame is made, and each mapping
of keys becomes a relation of its own. Where it is not, a file with sidecars is an error rather than a map that lacks
keys. A layout without maps, and one that was opened with `shredded=False`, costs nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from penstock.errors import LayoutError
from penstock.expr.sql_text import quote_name
from penstock.expr.types import type_name
from penstock.maps.shred_rule import MIRROR
from penstock.spark.scan.footers import Footers
from penstock.spark.scan.shredded_map import with_maps
from penstock.tables.hive.hive_files import Mapping
from penstock.tables.hive.hive_table import HiveTable

_MOST_KINDS = 64
_footers: Footers[tuple[Any, ...], Mapping] = Footers(100_000)


def mappings(table: HiveTable, files: Sequence[tuple[str, int, int]]) -> list[Mapping]:
    """What the footers of files (URL, size, time) say of their sidecars."""
    account = (table.storage.identity, table.storage.path)
    keys = [(account, *file) for file in files]
    return _footers.of(keys, lambda key: table.data_files.mapping(key[1]))


def has_maps(schema: pa.Schema) -> bool:
    """Whether a file of this schema may have sidecars."""
    return any(_holds_map(field.type) for field in schema)


def _holds_map(kind: pa.DataType) -> bool:
    if pa.types.is_struct(kind):
        return any(_holds_map(kind.field(i).type) for i in range(kind.num_fields))
    return bool(pa.types.is_map(kind) and kind.key_type == pa.string())


def kinds_of(table: HiveTable, files: Sequence[tuple[str, int, int]]) -> list[Mapping]:
    """The different mappings of files, the most common first."""
    counts = Counter(mappings(table, files))
    if len(counts) > _MOST_KINDS:
        message = f"the files of {table.root_url} have {len(counts):,} different mappings of hot keys"
        raise LayoutError(message, hint=f"write them again with the same keys; at most {_MOST_KINDS} are read at once")
    return [mapping for mapping, _ in counts.most_common()] or [()]


def unexpected(url: str) -> LayoutError:
    """What to say of a file whose maps cannot be read as the DataFrame reads them."""
    message = f"hot keys of maps lie in columns of their own in {url}, other than in the files that were looked at"
    return LayoutError(message, hint="open the layout with shredded=True, and make the DataFrame again")


def stored_fields(table: HiveTable, mapping: Mapping) -> list[pa.Field]:
    """The columns that are read from files of a mapping: those of the table, and the sidecars."""
    types = {name: _value_type(table.file_schema, each.column) for each in mapping for _, name in each.sidecars}
    return [*table.file_schema, *(pa.field(name, kind) for name, kind in types.items())]


def _value_type(schema: pa.Schema, column: str) -> pa.DataType:
    names = {name.lower(): name for name in schema.names}
    first, *rest = [column] if column.lower() in names else column.split(".")
    kind = schema.field(names[first.lower()]).type if first.lower() in names else None
    for name in rest:
        place = kind.get_field_index(name) if kind is not None and pa.types.is_struct(kind) else -1
        kind = kind.field(place).type if kind is not None and place >= 0 else None
    if kind is None or not pa.types.is_map(kind):
        raise LayoutError(f"a footer names the map {column}, which the table does not have", hint="declare the schema")
    return kind.item_type


def with_sidecars(rows: DataFrame, table: HiveTable, mapping: Mapping, spark: SparkSession) -> DataFrame:
    """The rows of one relation as the table's columns."""
    if not mapping:
        return rows
    sidecars = {
        tuple(each.column.split(".")): [
            (key, F.col(quote_name(name)), "MIRROR_VALUE" if each.mode == MIRROR else "VALUE")
            for key, name in each.sidecars
        ]
        for each in mapping
    }
    fields = [(f, F.col(quote_name(f.name))) for f in (*table.file_schema, *table.columns)]
    return rows.select(*(with_maps(spark, column, f.type, (f.name,), sidecars).alias(f.name) for f, column in fields))


def ddl(fields: Any) -> str:
    """Columns as Spark's DDL."""
    return ", ".join(f"{quote_name(f.name)} {type_name(f.type)}" for f in fields)
