"""Every transform on every type that it is defined for: files are skipped and kept whole as the partition allows.

Partition values are PyIceberg's; DuckDB says which source values match a predicate, and PyIceberg's projections are the
measure of sharpness. A file is skipped only when no source value with its partition value matches.
"""

from __future__ import annotations

import datetime as dt
from collections import Counter
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any
from uuid import UUID

import pytest
from pyiceberg.expressions.visitors import expression_evaluator, inclusive_projection, strict_projection
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.schema import Schema
from pyiceberg.transforms import parse_transform
from pyiceberg.typedef import Record
from pyiceberg.types import (
    BinaryType,
    DateType,
    DecimalType,
    FixedType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
    TimestampType,
    TimestamptzType,
    UUIDType,
)

from penstock.prune.verdict import Verdict
from penstock.tables.iceberg.metadata.schema_columns import Columns
from tests.differential.evaluator_facts import Column
from tests.differential.evaluator_predicates import combined, plain, truths
from tests.differential.iceberg_checks import opened
from tests.differential.test_iceberg_evaluators import compare
from tests.fixtures.iceberg_tables import create

MOMENTS = [
    dt.datetime(*parts)
    for parts in (
        (1, 1, 2),  # PyIceberg projects `<` by the day before
        (1582, 10, 4, 23, 59, 59),
        (1969, 12, 31, 22, 59, 59, 999999),
        (1969, 12, 31, 23, 59, 59, 999999),
        (1970, 1, 1),
        (2026, 5, 17, 12, 30),
        (2026, 5, 17, 12, 59, 59, 999999),
        (2026, 5, 18),
        (9999, 12, 30, 23, 59, 59, 999999),  # and `>` by the day after
    )
]
DIGITS = "9" * 28
NUMBERS = [f"-{DIGITS}.0000000000", "-1.0000000001", "-1.0000000000", "0.0000000000", "0.0000000009", "0.0000000010"]
VALUES: dict[str, tuple[Any, list[Any]]] = {
    "int": (IntegerType(), [-(2**31) + 8, -11, -10, -1, 0, 9, 10, 2**31 - 1]),
    "long": (LongType(), [-(2**63), -(2**31) - 1, -1, 0, 7, 2**40, 2**63 - 1]),
    "decimal": (DecimalType(38, 10), [Decimal(text) for text in (*NUMBERS, f"{DIGITS}.9999999999")]),
    "date": (DateType(), sorted({moment.date() for moment in MOMENTS})),
    "timestamp": (TimestampType(), MOMENTS),
    "timestamptz": (TimestamptzType(), [moment.replace(tzinfo=dt.UTC) for moment in MOMENTS]),
    "string": (StringType(), ["", "a", "ab", "abc", "abcd", "b", "é", "日本語", "\U0010ffff"]),
    "uuid": (UUIDType(), [UUID(int=i) for i in (0, 1, 2**64, 2**127, 2**128 - 1)]),
    "binary": (BinaryType(), [b"", b"\x01", b"ab", b"abc", b"\x7f", b"\x80\xff", b"\xff\xff\xff"]),
    "fixed": (FixedType(2), [b"\0\0", b"ab", b"\x7f\xff", b"\x80\0", b"\xff\xff"]),
}
EVERYTHING = ["identity", "bucket[4]", "void"]
PERIODS = ["year", "month", "day"]
TRANSFORMS = {
    "int": [*EVERYTHING, "truncate[10]"],
    "long": [*EVERYTHING, "truncate[7]"],
    "decimal": [*EVERYTHING, "truncate[10]", "truncate[1000]"],
    "date": [*EVERYTHING, *PERIODS],
    "timestamp": [*EVERYTHING, *PERIODS, "hour"],
    "timestamptz": [*EVERYTHING, *PERIODS, "hour"],
    "string": [*EVERYTHING, "truncate[1]", "truncate[3]"],
    "binary": [*EVERYTHING, "truncate[2]"],
    "uuid": EVERYTHING,
    "fixed": EVERYTHING,
}
# In every run: identity of all types, periods of dates and moments, buckets and void fields of two types.
LEFT_TO_THE_SLOW_RUN = {
    *((name, transform) for name in TRANSFORMS if name not in ("long", "string") for transform in EVERYTHING[1:]),
    *(("timestamp", transform) for transform in (*PERIODS, "hour")),
}
CASES = [
    pytest.param(*case, marks=[pytest.mark.slow] if case in LEFT_TO_THE_SLOW_RUN else [])
    for case in ((name, transform) for name, transforms in TRANSFORMS.items() for transform in transforms)
]


def internal(value: Any) -> Any:
    """A value as Iceberg's transforms take it."""
    if isinstance(value, dt.datetime):
        return (value.replace(tzinfo=None) - dt.datetime(1970, 1, 1)) // dt.timedelta(microseconds=1)
    return (value - dt.date(1970, 1, 1)).days if isinstance(value, dt.date) else value


def partition_value(value: Any, transform: str, kind: Any) -> Any:
    """A partition value as Java's writers store it: numbers wrap around."""
    made = None if value is None else parse_transform(transform).transform(kind)(internal(value))
    bits = {"int": 32, "long": 64}.get(str(kind))
    if bits is None or not isinstance(made, int):
        return made
    return (made + 2 ** (bits - 1)) % 2**bits - 2 ** (bits - 1)


def as_literal(value: Any) -> Any:
    """A partition value as PyIceberg's own literals are."""
    return value.bytes if isinstance(value, UUID) else value


@pytest.mark.parametrize(("name", "transform"), CASES)
def test_partition_values_skip_and_match_as_icebergs_projections_do(tmp_path: Path, name: str, transform: str) -> None:
    kind, values = VALUES[name]
    column = Column("c", 1, kind, values)
    schema = Schema(NestedField(1, "c", kind))
    table = create(tmp_path, schema, [f"{transform}(c)"])
    partitions = [partition_value(value, transform, kind) for value in column.candidates]
    with table.transaction() as transaction, transaction.update_snapshot().fast_append() as update:
        for i, partition in enumerate(partitions):
            update.append_data_file(data_file(str(i), partition, table.spec().spec_id))
    found, spec = opened(tmp_path), table.spec()
    stored = Schema(*spec.partition_type(schema).fields)
    arrow = Columns(schema).by_id[1].type
    assert arrow is not None
    singles = list(plain(column))
    predicates = [*singles, *combined(singles, Random(name), 15)]
    outcomes: Counter[str] = Counter()
    for predicate, true in zip(predicates, truths(predicates, arrow), strict=True):
        tasks = {task.path: task.verdict for task in found.plan(predicate.spark).files}
        reads = expression_evaluator(stored, inclusive_projection(schema, spec)(predicate.iceberg), True)
        matches = expression_evaluator(stored, strict_projection(schema, spec)(predicate.iceberg), True)
        for i, partition in enumerate(partitions):
            same = [repr(v) for v, p in zip(column.candidates, partitions, strict=True) if p == partition]
            theirs = [evaluate(Record(as_literal(partition))) for evaluate in (reads, matches)]
            verdict = tasks.get(str(i), Verdict.SKIP)
            about = f"{predicate.spark} in {transform} = {partition!r}"
            outcomes[compare(verdict, [true[v] for v in same], *theirs, about)] += 1
    print(name, transform, len(partitions), "files,", len(predicates), "predicates:", dict(outcomes))
    assert outcomes["equal"] > 0


def data_file(path: str, partition: Any, spec_id: int) -> DataFile:
    return DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=path,
        file_format=FileFormat.PARQUET,
        partition=Record(partition),
        record_count=5,
        file_size_in_bytes=1,
        spec_id=spec_id,
    )
