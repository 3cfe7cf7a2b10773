"""Rows as one file of a format, by libraries that are not Penstock's; CSV, JSON and text are put together here."""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.orc

from tests.fixtures.format_writer import AVRO_TYPES
from tests.fixtures.hive_writer import write_file
from tests.fuzz.value_texts import json_object, plain_values, text_of
from tests.fuzz.values import DAY, digits

_WILD = 0.1  # of the files of ORC have days and times that Penstock leaves to Spark
_CALENDAR = -141_427  # 1582-10-15
_LAST = 9_223_372_036_854_775 // DAY  # the last day that Arrow reads from ORC, and as far before 1970 the first


def write_parquet(rng: Random, path: Path, rows: pa.Table, options: Mapping[str, Any]) -> None:
    write_file(
        path,
        rows,
        row_group_size=rng.choice([2, 1000]),
        use_dictionary=rng.random() < 0.5,
        write_page_index=rng.random() < 0.3,
    )


def write_orc(rng: Random, path: Path, rows: pa.Table, options: Mapping[str, Any]) -> None:
    is_wild = rng.random() < _WILD
    rows = pa.table([_tame(column.combine_chunks(), is_wild) for column in rows.columns], schema=rows.schema)
    pyarrow.orc.write_table(rows, path)


def write_avro(rng: Random, path: Path, rows: pa.Table, options: Mapping[str, Any]) -> None:
    fields = [{"name": f.name, "type": ["null", _avro_type(f.type, f.name)]} for f in rows.schema]
    columns = [[_avro_value(each, f.type) for each in plain_values(rows.column(f.name))] for f in rows.schema]
    records = [dict(zip(rows.schema.names, row, strict=True)) for row in zip(*columns, strict=True)]
    with path.open("wb") as file:
        schema = {"type": "record", "name": "row", "fields": fields}
        fastavro.writer(file, schema, records, codec=rng.choice(["null", "deflate"]))


def write_csv(rng: Random, path: Path, rows: pa.Table, options: Mapping[str, Any]) -> None:
    sep = options["sep"]
    lines = [sep.join(_cell(rng, name, pa.string(), options) for name in rows.schema.names)] * options["header"]
    columns = [plain_values(column) for column in rows.columns]
    for row in zip(*columns, strict=True):
        cells = [_cell(rng, value, f.type, options) for value, f in zip(row, rows.schema, strict=True)]
        lines.append(sep.join(cells))
    _write_lines(path, lines)


def write_json(rng: Random, path: Path, rows: pa.Table, options: Mapping[str, Any]) -> None:
    columns = [plain_values(column) for column in rows.columns]
    fields = [
        [(f.name, value, f.type) for f, value in zip(rows.schema, row, strict=True)]
        for row in zip(*columns, strict=True)
    ]
    _write_lines(path, [json_object(rng, rng.sample(row, len(row))) for row in fields])


def write_text(rng: Random, path: Path, rows: pa.Table, options: Mapping[str, Any]) -> None:
    (column,) = rows.columns
    _write_lines(path, column.to_pylist())


WRITERS = {
    "parquet": write_parquet,
    "orc": write_orc,
    "avro": write_avro,
    "csv": write_csv,
    "json": write_json,
    "text": write_text,
}


def _write_lines(path: Path, lines: list[str]) -> None:
    content = "".join(f"{line}\n" for line in lines).encode()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)


def _cell(rng: Random, value: Any, t: pa.DataType, options: Mapping[str, Any]) -> str:
    """A value in CSV; a text with the end of a line in it only where the reader's records may have several lines."""
    text = text_of(rng, value, t)
    if text is None:
        return str(options["nullValue"])
    if not options.get("multiLine"):
        text = text.replace("\n", " ").replace("\r", " ")
    quote, escape = options.get("quote", '"'), options.get("escape", "\\")
    is_plain = not set(text) & {quote, "\\", "\n", "\r", *options["sep"]} and text == text.strip()
    if is_plain and text and rng.random() < 0.8:
        return text
    if escape != quote:
        text = text.replace(escape, escape * 2)
    return f"{quote}{text.replace(quote, escape + quote)}{quote}"


def _avro_type(kind: pa.DataType, name: str) -> Any:
    if pa.types.is_struct(kind):
        fields = [{"name": f.name, "type": ["null", _avro_type(f.type, f"{name}_{f.name}")]} for f in kind]
        return {"type": "record", "name": f"{name}_record", "fields": fields}
    if pa.types.is_map(kind):
        return {"type": "map", "values": ["null", _avro_type(kind.item_type, name)]}
    if pa.types.is_list(kind):
        return {"type": "array", "items": ["null", _avro_type(kind.value_type, name)]}
    if pa.types.is_decimal(kind):
        return {"type": "bytes", "logicalType": "decimal", "precision": kind.precision, "scale": kind.scale}
    return AVRO_TYPES[kind]


def _avro_value(value: Any, kind: pa.DataType) -> Any:
    if value is None:
        return None
    if pa.types.is_struct(kind):
        return {f.name: _avro_value(value[f.name], f.type) for f in kind}
    if pa.types.is_map(kind):
        return dict(value)
    return digits(value, kind.scale) if pa.types.is_decimal(kind) else value


def _tame(values: pa.Array, is_wild: bool) -> pa.Array:
    """NULL in the place of times that Arrow writes and Spark does not read, and of days on which the two disagree.

    Parts of a second before 1970 are negative in Arrow's files. A wild file keeps the days, which Penstock refuses.
    """
    kind = values.type
    if pa.types.is_struct(kind):
        parts = [_tame(part, is_wild) for part in values.flatten()]
        return pa.StructArray.from_arrays(parts, fields=list(kind), mask=values.is_null())
    if pa.types.is_date(kind):
        inside = pc.greater_equal(values.cast(pa.int32()), -(1 << 31) if is_wild else _CALENDAR)
    elif pa.types.is_timestamp(kind):
        micros = values.cast(pa.int64())
        fits = pc.and_(pc.greater_equal(micros, -_LAST * DAY), pc.less_equal(micros, _LAST * DAY))
        whole = pc.equal(pc.multiply(pc.divide(micros, 10**6), 10**6), micros)
        inside = pc.and_(pc.or_(fits, is_wild), pc.or_(pc.greater_equal(micros, 0), whole))
    else:
        return values
    return pc.if_else(inside, values, pa.scalar(None, kind))
