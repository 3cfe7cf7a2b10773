"""Logical values of a file: written and read again, and what they prune."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
    TimestamptzType,
    UUIDType,
)

from penstock.expr.bind import bind_text
from penstock.formats.manifest_record import encode_logical
from penstock.prune.containers import Containers
from penstock.prune.judge import Pruner
from penstock.tables.iceberg.manifest.logical_values import read_logical
from penstock.tables.iceberg.metadata.schema_columns import Columns

KINDS = {
    "app": StringType(),
    "n": IntegerType(),
    "big": LongType(),
    "d": DateType(),
    "ts": TimestamptzType(),
    "p": DecimalType(9, 2),
    "x": DoubleType(),
    "ok": BooleanType(),
    "raw": BinaryType(),
    "u": UUIDType(),
}
COLUMNS = Columns(
    Schema(*(NestedField(i, name, kind, required=False) for i, (name, kind) in enumerate(KINDS.items(), 1)))
)
IDS = {name: i for i, name in enumerate(KINDS, 1)}


def text(names: list[str], tuples: list[list[Any]], complete: bool = True) -> str:
    return encode_logical([IDS[name] for name in names], [KINDS[name] for name in names], tuples, complete)


def kept(where: str, *texts: str | None) -> list[int]:
    facts = [logical.fact for logical in read_logical(pa.array(texts, pa.string()), COLUMNS)]
    containers = Containers(len(texts), facts)
    return Pruner(bind_text(where, COLUMNS.arrow)).judge(containers).kept.tolist()


@pytest.mark.parametrize(
    ("name", "value", "where"),
    [
        ("app", "it's ü", "app = 'it\\'s ü'"),
        ("n", -5, "n = -5"),
        ("big", 2**60, f"big = {2**60}"),
        ("d", dt.date(1969, 12, 31), "d = '1969-12-31'"),
        ("ts", dt.datetime(2026, 5, 17, 1, 2, 3, 456789, tzinfo=dt.UTC), "ts = '2026-05-17 01:02:03.456789'"),
        ("p", Decimal("-1.50"), "p = -1.50"),
        ("x", 0.1, "x = double(0.1)"),
        ("ok", True, "ok"),
        ("raw", b"\x00\xff", "raw = X'00FF'"),
    ],
)
def test_every_type_is_read_as_it_was_written(name: str, value: Any, where: str) -> None:
    where = where.replace("double(0.1)", "0.1D")
    assert kept(where, text([name], [[value]]), text([name], [[None]]), text([name], [[value], [None]])) == [0, 2]
    assert kept(f"{name} IS NULL", text([name], [[value]]), text([name], [[None]])) == [1]


def test_tuples_are_tested_together() -> None:
    pairs = text(["app", "n"], [["A", 1], ["B", 2]])
    assert kept("app = 'A' AND n = 2", pairs) == []
    assert kept("app = 'A' AND n = 1", pairs) == [0]
    assert kept("app = 'B' OR n = 1", pairs) == [0]


def test_what_is_missing_incomplete_or_damaged_keeps_and_nothing_at_all_skips() -> None:
    texts = [
        None,
        text(["app"], [["A"]], complete=False),
        text(["app"], []),
        text(["app"], [["B"]]),
        "{not json",
        '{"complete": true}',
        '{"complete": true, "columns": [99], "tuples": [["B"]]}',
        '{"complete": true, "columns": [1, 2], "tuples": [["B"]]}',
        '{"complete": "yes", "columns": [1], "tuples": [["B"]]}',
        '{"complete": true, "columns": [2], "tuples": [["no number"]]}',
        '{"complete": true, "columns": ["app"], "tuples": [["B"]]}',
    ]
    assert kept("app = 'A'", *texts) == [0, 1, 4, 5, 6, 7, 8, 9, 10]


def test_files_may_be_about_different_columns() -> None:
    texts = [text(["app"], [["A"]]), text(["n"], [[1]]), text(["app", "n"], [["B", 1]])]
    assert kept("app = 'A'", *texts) == [0, 1]
    assert kept("n = 2", *texts) == [0]
