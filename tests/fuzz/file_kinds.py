"""The files of a Hive layout: their format, how they are read, what they can hold, and what plain Spark reads in them.

Files of text do not give back all that was written: an empty text may be NULL, and a time may be on a clock that shows
it twice. What the rows of such files are, Spark's own reader says, so that the judge is never the code that wrote them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.expr.types import type_name
from penstock.formats.format_registry import format_named
from tests.fuzz.file_writers import WRITERS
from tests.fuzz.predicates import quote
from tests.fuzz.rows import ID, Rows
from tests.fuzz.values import NESTED, SCALARS

_ALL = frozenset([*SCALARS, *NESTED])
# The short types of columns that a file of the format can hold.
STORABLE = {
    "parquet": _ALL,
    "orc": _ALL - {"timestamp_ntz"},  # which Spark does not read in files of other writers
    "csv": frozenset(SCALARS) - {"binary"},
    "json": _ALL,
    "avro": _ALL - {"tinyint", "smallint"},
    "text": frozenset(SCALARS) - {"binary"},  # one text in the file, the others in the names of directories
}
_NAMES = ("part-{}{}", "data {}{}", "{:06d}_0{}")


@dataclass(frozen=True)
class FileKind:
    """How all files of one table are written and read."""

    format: str
    options: Mapping[str, Any] = field(default_factory=dict)
    compression: str = ""

    def write(self, rng: Random, folder: Path, number: int, rows: pa.Table) -> Path:
        """A file in a folder, which is made; its name may tell nothing of Parquet."""
        suffix = f".{self.format}{self.compression}"
        is_odd = rng.random() < 0.1
        name = rng.choice(_NAMES) if is_odd else _NAMES[0]
        path = folder / name.format(number, "" if is_odd and self.format == "parquet" else suffix)
        path.parent.mkdir(parents=True, exist_ok=True)
        WRITERS[self.format](rng, path, rows, self.options)
        return path


def draw_kind(rng: Random, file_format: str) -> FileKind:
    """Files of a format, with options of their reader."""
    if file_format in ("json", "text"):
        return FileKind(file_format, {}, rng.choice(["", "", ".gz"]))
    if file_format != "csv":
        return FileKind(file_format)
    options = {"sep": rng.choice([",", ";", "|", "\t", "||"]), "header": rng.random() < 0.5}
    options["nullValue"] = rng.choice(["", "", "NULL", "\\N"])
    options |= rng.choice([{}, {}, {"escape": '"'}, {"quote": "'"}, {"multiLine": True}])
    return FileKind(file_format, options, rng.choice(["", "", ".gz"]))


def as_spark_reads(
    judge: Any, kind: FileKind, rows: Rows, files: Mapping[str, frozenset[int]], columns: list[str]
) -> Rows:
    """The rows with what plain Spark reads of them in their files; rows that are in no file stay as they are."""
    ddl = ", ".join(f"{quote(name)} {type_name(rows.table.schema.field(name).type)}" for name in columns)
    file_format = format_named(kind.format)
    assert file_format is not None
    reader = judge.read.schema(ddl).options(recursiveFileLookup=True, **kind.options).format(file_format.spark_source)
    read = reader.load(sorted(files)).toArrow()
    ids = read.column(ID).to_pylist()
    assert sorted(ids) == sorted(i for held in files.values() for i in held), "plain Spark reads other rows"
    absent = pa.array(sorted(set(range(rows.table.num_rows)) - set(ids)), pa.int64())
    order = pc.sort_indices(pa.array([*ids, *absent.to_pylist()]))
    table = rows.table
    for name in columns:
        own = table.column(name)
        values = [*read.column(name).cast(own.type).chunks, *own.take(absent).chunks]
        values = pa.chunked_array(values, own.type).take(order)
        table = table.set_column(table.schema.get_field_index(name), name, values)
    return replace(rows, table=table)
