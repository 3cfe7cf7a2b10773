"""Avro without Spark: whole files only, and types that Spark has."""

from __future__ import annotations

import io
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from penstock.formats import avro_file
from penstock.formats.avro_file import AvroFile
from penstock.formats.file_format import AS_STORED, Reading, UnreadableError


def written(kind: Any, *values: Any, **options: Any) -> bytes:
    sink = io.BytesIO()
    schema = {"type": "record", "name": "r", "fields": [{"name": "a", "type": "int"}, {"name": "v", "type": kind}]}
    fastavro.writer(sink, schema, [{"a": i, "v": value} for i, value in enumerate(values)], **options)
    return sink.getvalue()


def test_rows_are_counted_without_reading_them_and_columns_are_read_alone() -> None:
    file = AvroFile(io.BytesIO(written("string", "x", "y")), AS_STORED)
    assert (file.read([]).num_rows, file.read(["v"]).to_pylist()) == (2, [{"v": "x"}, {"v": "y"}])
    assert AvroFile(io.BytesIO(written("string")), AS_STORED).read(["a"]).num_rows == 0


@pytest.mark.parametrize(
    ("cut", "why"), [(1, "it ends early"), (20, "it ends early"), (-3, "it does not begin as one")]
)
def test_a_file_that_is_not_whole_is_an_error_and_not_fewer_rows(cut: int, why: str) -> None:
    data = written("string", *map(str, range(100)))
    with pytest.raises(pa.ArrowInvalid, match=why):
        AvroFile(io.BytesIO(data[:-cut] if cut > 0 else data[-cut:]), AS_STORED)


def test_a_damaged_block_is_an_error() -> None:
    data = bytearray(written("string", *map(str, range(100)), codec="deflate"))
    data[-1] ^= 1
    with pytest.raises(pa.ArrowInvalid, match="a block of it is damaged"):
        AvroFile(io.BytesIO(bytes(data)), AS_STORED)
    data[-1] ^= 1
    data[-30] ^= 1
    with pytest.raises(pa.ArrowInvalid):
        AvroFile(io.BytesIO(bytes(data)), AS_STORED).read(["a"])


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (["int", "string"], 1),
        ({"type": "string", "logicalType": "uuid"}, "12345678-1234-5678-1234-567812345678"),
        ({"type": "long", "logicalType": "timestamp-nanos"}, 1),
        ("null", None),
    ],
)
def test_a_type_that_spark_reads_otherwise_is_refused_where_it_is_read(kind: Any, value: Any) -> None:
    data = written(kind, value)
    with pytest.raises(UnreadableError, match=r"column v is .* to DataFusion"):
        _ = AvroFile(io.BytesIO(data), AS_STORED).schema
    file = AvroFile(io.BytesIO(data), Reading(columns=pa.schema([("a", pa.int32()), ("v", pa.string())])))
    assert file.read(["a"]).to_pylist() == [{"a": 0}]
    with pytest.raises(UnreadableError, match=r"column v is .* to DataFusion"):
        file.read(["v"])


def test_a_forked_process_says_that_it_cannot_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(avro_file.os, "getpid", lambda: 7)
    monkeypatch.setattr(avro_file, "_lost_threads", [7])
    with pytest.raises(UnreadableError, match="does not work in a forked process"):
        AvroFile(io.BytesIO(written("string", "x")), AS_STORED).read(["a"])
