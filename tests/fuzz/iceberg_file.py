"""One data file of an Iceberg table: its partition values, its Parquet, and what its manifest entry says."""

from __future__ import annotations

import decimal
import uuid
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.table import Table
from pyiceberg.typedef import Record
from pyiceberg.types import DateType, DecimalType, IntegerType, LongType, TimestampType, TimestamptzType, UUIDType

from tests.fuzz.literals import date_text
from tests.fuzz.manifest_bounds import statistics
from tests.fuzz.rows import physical
from tests.fuzz.uuids import as_stored
from tests.fuzz.values import DAY, digits

DROPPED = "dropped"  # a column that every file has until the schema evolves
UNWRITTEN = object()
_MOMENTS = (TimestampType, TimestamptzType)


def by_tuple(table: Table, group: pa.Table, names: dict[str, str]) -> list[tuple[list[Any], pa.Table]]:
    """The rows of each partition, with its values as PyIceberg's transforms make them."""
    columns = []
    given = {names.get(name, name): name for name in group.schema.names}
    for part in table.spec().fields:
        source = table.schema().find_field(part.source_id)
        transform = part.transform.transform(source.field_type)
        values = physical(group.column(given[source.name]))
        columns.append([transformed(value, source.field_type, transform) for value in values])
    tuples = [list(values) for values in zip(*columns, strict=True)] or [[] for _ in range(group.num_rows)]
    positions: dict[str, list[int]] = {}
    for i, values in enumerate(tuples):
        if UNWRITTEN not in values:
            positions.setdefault(repr(values), []).append(i)
    return [(tuples[chosen[0]], group.take(pa.array(chosen))) for chosen in positions.values()]


def transformed(value: Any, kind: Any, transform: Any) -> Any:
    """A partition value; numbers wrap around as in Java, and what PyIceberg cannot write is left out."""
    if value is None:
        return None
    days = value if isinstance(kind, DateType) else value // DAY if isinstance(kind, _MOMENTS) else 0
    if date_text(days) is None:
        return UNWRITTEN
    with decimal.localcontext(prec=80):  # PyIceberg truncates decimals in the context of its caller
        made = transform(_internal(value, kind))
        if isinstance(kind, DecimalType) and isinstance(made, decimal.Decimal):
            return made if abs(made.scaleb(kind.scale)) < 10**kind.precision else UNWRITTEN
    bits = {IntegerType: 32, LongType: 64}.get(type(kind))
    return made if bits is None or made is None else (made + 2 ** (bits - 1)) % 2**bits - 2 ** (bits - 1)


def _internal(value: Any, kind: Any) -> Any:
    if value is None:
        return None
    if isinstance(kind, DecimalType):
        return digits(value, kind.scale)
    return uuid.UUID(value) if isinstance(kind, UUIDType) else value


def data_file(rng: Random, table: Table, rows: pa.Table, values: list[Any], names: dict[str, str]) -> DataFile:
    """Rows of one partition, written; `names` are the names that columns have at this time."""
    schema = table.schema()
    target = schema_to_pyarrow(schema, include_field_ids=True)
    given = {DROPPED: DROPPED} | {names.get(name, name): name for name in rows.schema.names}
    rows = rows.append_column(DROPPED, pa.array(range(rows.num_rows), pa.int32()))
    arrays = [as_stored(rows.column(given[f.name]).combine_chunks(), f.type) for f in target]
    path = f"{table.location()}/data/{uuid.UUID(int=rng.getrandbits(128))}.parquet"
    options = {"use_dictionary": rng.random() < 0.5, "write_page_index": rng.random() < 0.3}
    output = table.io.new_output(path)
    with output.create() as file, pq.ParquetWriter(file, target, **options) as writer:
        writer.write_table(pa.table(arrays, schema=target), rng.choice([2, None]))
    columns = {f.name: rows.column(given[f.name]) for f in schema.fields}
    return DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=path,
        file_format=FileFormat.PARQUET,
        partition=Record(*values),
        file_size_in_bytes=len(output),
        sort_order_id=None,
        spec_id=table.spec().spec_id,
        equality_ids=None,
        key_metadata=None,
        **statistics(rng, schema.fields, columns),
    )
