"""Bounds, counts and partition values as columns: what PyIceberg says of each entry, or unknown."""

from __future__ import annotations

import math
import struct
import sys
from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.conversions import from_bytes, to_bytes
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    GeographyType,
    GeometryType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    StringType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
    TimeType,
    UnknownType,
    UUIDType,
)

from penstock.expr.types import TIMESTAMP, TIMESTAMP_NTZ
from penstock.tables.iceberg.manifest.avro import BOUNDS, COLUMNS, COUNTS
from penstock.tables.iceberg.manifest.bounds import decode_bounds
from penstock.tables.iceberg.manifest.manifest_decode import decode_manifest
from penstock.tables.iceberg.manifest.manifest_statistics import ManifestEntries, convert_partition
from tests.fixtures.every_type import ROWS, SCHEMA, SPECS, make_table
from tests.fixtures.manifest_writer import IO, write_manifest

INT64 = st.integers(-(2**63), 2**63 - 1)
INT32 = st.integers(-(2**31), 2**31 - 1)
VALUES: list[tuple[Any, pa.DataType, st.SearchStrategy[Any]]] = [
    (BooleanType(), pa.bool_(), st.booleans()),
    (IntegerType(), pa.int32(), INT32),
    (LongType(), pa.int64(), INT64),
    (FloatType(), pa.float32(), st.floats(width=32)),
    (DoubleType(), pa.float64(), st.floats()),
    (DateType(), pa.date32(), INT32),
    (TimestampType(), TIMESTAMP_NTZ, INT64),
    (TimestamptzType(), TIMESTAMP, INT64),
    (StringType(), pa.string(), st.text(max_size=20)),
    (BinaryType(), pa.binary(), st.binary(max_size=20)),
    (FixedType(4), pa.binary(), st.binary(min_size=4, max_size=4)),
    (UUIDType(), pa.string(), st.uuids()),
    (DecimalType(9, 2), pa.decimal128(9, 2), st.integers(-(10**9) + 1, 10**9 - 1).map(lambda n: Decimal(n).scaleb(-2))),
    (DecimalType(38, 0), pa.decimal128(38, 0), st.integers(-(10**38) + 1, 10**38 - 1).map(Decimal)),
    (DecimalType(38, 38), pa.decimal128(38, 38), st.just(Decimal(0).scaleb(-38))),
]


def entries_of(**columns: Sequence[dict[int, Any] | None]) -> ManifestEntries:
    """Entries with these maps."""
    size = len(next(iter(columns.values())))
    made = {}
    for name, kind in COLUMNS.items():
        maps = columns.get(name, [None] * size) if kind in (COUNTS, BOUNDS) else [None] * size
        pairs = [None if m is None else [{"key": k, "value": v} for k, v in m.items()] for m in maps]
        made[name] = pa.array(pairs, kind) if kind in (COUNTS, BOUNDS) else pa.nulls(size, kind)
    return ManifestEntries(pa.table(made))


def physical(values: pa.Array | None) -> list[Any]:
    assert values is not None
    if values.type == pa.date32():
        return list(values.view(pa.int32()).to_pylist())
    return list((values.view(pa.int64()) if pa.types.is_timestamp(values.type) else values).to_pylist())


def expected(kind: Any, value: Any) -> Any:
    """What PyIceberg reads, in the form that the core has."""
    read = from_bytes(kind, value)
    if isinstance(kind, UUIDType):
        return str(UUID(bytes=bytes(read)))
    return None if isinstance(read, float) and math.isnan(read) else read


# Against PyIceberg ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("index", range(len(VALUES)), ids=[str(kind) for kind, _, _ in VALUES])
@given(data=st.data())
def test_bounds_are_what_pyiceberg_reads(index: int, data: st.DataObject) -> None:
    kind, arrow, values = VALUES[index]
    maps: list[dict[int, bytes] | None] = []
    for value in data.draw(st.lists(st.none() | st.just("no map") | values, min_size=1, max_size=12)):
        other = {1: b"x"} if data.draw(st.booleans()) else {}
        if isinstance(value, str) and value == "no map":
            maps.append(None)
        else:
            maps.append({**other, **({} if value is None else {7: to_bytes(kind, value)})})
    lower, upper = entries_of(lower_bounds=maps, upper_bounds=maps).bounds(7, kind)
    wanted = [None if m is None or 7 not in m else expected(kind, m[7]) for m in maps]
    assert lower is not None
    assert lower.type == arrow
    assert physical(lower) == physical(upper) == wanted


@given(data=st.lists(st.none() | st.binary(max_size=18), max_size=12))
def test_bytes_of_any_length_are_right_or_unknown(data: list[bytes | None]) -> None:
    array = pa.array([b"before", *data], pa.binary()).slice(1)
    for kind, arrow, _ in VALUES:
        found = decode_bounds(array, kind)
        assert found is not None
        assert found.type == arrow
        assert len(found) == len(data)
        for octets, value in zip(data, physical(found), strict=True):
            if value is not None:
                assert octets is not None
                if kind in (LongType(), DoubleType()):
                    assert len(octets) in (4, 8)
                if isinstance(kind, TimestampType) and len(octets) == 4:
                    assert value == struct.unpack("<i", octets)[0] * 86_400_000_000
                elif isinstance(kind, BooleanType):
                    assert value == (octets != b"\0")
                else:
                    assert value == expected(kind, octets)


@pytest.mark.parametrize("version", ["1", "2"])
def test_statistics_of_a_written_table_are_what_pyiceberg_says(tmp_path: Path, version: str) -> None:
    table = make_table(tmp_path, version, SPECS["values"])
    snapshot = table.current_snapshot()
    assert snapshot is not None
    for manifest in snapshot.manifests(table.io):
        files = [entry.data_file for entry in manifest.fetch_manifest_entry(table.io)]
        entries = ManifestEntries(decode_manifest(manifest, table.io))
        for field in SCHEMA.fields:
            lower, upper = entries.bounds(field.field_id, field.field_type)
            for found, maps in ((lower, [f.lower_bounds for f in files]), (upper, [f.upper_bounds for f in files])):
                if field.name == "t":
                    assert found is None
                    continue
                wanted = [m.get(field.field_id) for m in maps]
                assert physical(found) == [None if b is None else expected(field.field_type, b) for b in wanted]
                assert found is not None
                assert found.type == ROWS.schema.field(field.name).type
            nulls, nans, values = entries.counts(field.field_id)
            assert nulls.to_pylist() == [f.null_value_counts.get(field.field_id) for f in files]
            assert nans.to_pylist() == [(f.nan_value_counts or {}).get(field.field_id) for f in files]
            assert values.to_pylist() == [f.value_counts.get(field.field_id) for f in files]
            assert {nulls.type, nans.type, values.type} == {pa.int64()}


# Promotion and what is strange ---------------------------------------------------------------------------------------


def decoded(kind: IcebergType, *octets: bytes | None, upper: bool | None = None) -> list[Any]:
    return physical(decode_bounds(pa.array(octets, pa.binary()), kind, upper=upper))


def test_bounds_written_before_a_column_was_widened_are_read_beside_new_ones() -> None:
    assert decoded(LongType(), struct.pack("<i", -7), None, struct.pack("<q", -(2**40))) == [-7, None, -(2**40)]
    assert decoded(DoubleType(), struct.pack("<f", 0.5), struct.pack("<d", 0.1), b"") == [0.5, 0.1, None]
    assert decoded(TimestampType(), struct.pack("<i", -1), struct.pack("<q", 5)) == [-86_400_000_000, 5]
    assert decoded(DecimalType(20, 2), b"\xff", b"\x00\x80", b"\x01" + b"\0" * 7) == [
        Decimal("-0.01"),
        Decimal("1.28"),
        Decimal(2**56) / 100,
    ]


def test_bounds_that_fit_nothing_are_unknown() -> None:
    assert decoded(IntegerType(), b"\0" * 8, b"", b"\0" * 3, struct.pack("<i", 1)) == [None, None, None, 1]
    assert decoded(TimestamptzType(), b"\0" * 4, b"\0" * 8) == [None, 0]
    assert decoded(DecimalType(38, 0), b"", b"\0" * 17, b"\x7f" * 16, b"\0" * 15 + b"\x09") == [None, None, None, 9]
    assert decoded(DecimalType(3, 1), b"\x03\xe8", b"\x03\xe7", b"\xfc\x19", b"\xfc\x18") == [
        None,
        Decimal("99.9"),
        Decimal("-99.9"),
        None,
    ]
    assert decoded(UUIDType(), b"\0" * 15, None) == [None, None]
    assert decoded(TimestampType(), struct.pack("<i", 2**31 - 1)) == [None]


def test_nan_as_a_bound_is_unknown_and_infinity_is_not() -> None:
    nan, infinity = float("nan"), float("inf")
    assert decoded(DoubleType(), *(struct.pack("<d", v) for v in (nan, infinity, -0.0))) == [None, infinity, 0.0]
    assert decoded(FloatType(), *(struct.pack("<f", v) for v in (nan, -infinity))) == [None, -infinity]


def test_text_that_is_cut_inside_of_a_character_is_unknown() -> None:
    assert decoded(StringType(), "é".encode()[:1], "é".encode(), b"", None, b"\xff") == [None, "é", "", None, None]


def test_nanoseconds_are_rounded_away_from_the_values() -> None:
    fine = [struct.pack("<q", n) for n in (1999, -1999, 2000, -(2**63), 2**63 - 1)]
    low = [1, -2, 2, -(2**63) // 1000, (2**63 - 1) // 1000]
    high = [2, -1, 2, -((2**63) // 1000), (2**63 - 1) // 1000 + 1]
    for kind in (TimestampNanoType(), TimestamptzNanoType()):
        assert decoded(kind, *fine, upper=False) == low
        assert decoded(kind, *fine, upper=True) == high
        assert decoded(kind, *fine) == [None, None, 2, None, None]
    lower, upper = entries_of(lower_bounds=[{1: fine[0]}], upper_bounds=[{1: fine[0]}]).bounds(1, TimestampNanoType())
    assert (physical(lower), physical(upper)) == ([1], [2])


@pytest.mark.parametrize(
    "kind", [TimeType(), GeometryType(), GeographyType(), UnknownType(), ListType(1, IntegerType())], ids=str
)
def test_types_that_are_not_compared_have_no_bounds(kind: IcebergType) -> None:
    assert entries_of(lower_bounds=[{1: b"\0" * 8}]).bounds(1, kind) == (None, None)


def test_a_field_that_a_map_has_twice_is_unknown() -> None:
    entries = entries_of(value_counts=[{1: 5, 2: 6}, {1: 5, 3: 6}, {1: 7, 2: 8}])
    lists = entries.table["value_counts"].chunk(0)
    keys = pa.array([1, 2, 1, 1, 1, 2], pa.int32())
    pairs = pa.StructArray.from_arrays([keys, lists.values.field("value")], fields=list(lists.type.value_type))
    twice = pa.ListArray.from_arrays(lists.offsets, pairs).cast(COUNTS)
    table = entries.table.set_column(entries.table.column_names.index("value_counts"), "value_counts", twice)
    assert ManifestEntries(table).counts(1)[2].to_pylist() == [5, None, 7]


def test_a_negative_count_is_unknown() -> None:
    entries = entries_of(null_value_counts=[{1: -1}, {1: 0}, {}, None])
    assert [c.to_pylist() for c in entries.counts(1)] == [[None, 0, None, None], [None] * 4, [None] * 4]


def test_maps_of_different_sizes_are_told_apart() -> None:
    maps = [{1: 10, 2: 20}, None, {}, {2: 21}, {3: 1, 1: 11, 2: 22}]
    for first, last in ((0, 5), (1, 5), (3, 4), (0, 0)):
        table = entries_of(value_counts=maps).table.slice(first, last - first)
        wanted = [None if m is None else m.get(2) for m in maps[first:last]]
        assert ManifestEntries(table).counts(2)[2].to_pylist() == wanted


# Partition values ----------------------------------------------------------------------------------------------------


def test_partition_values_follow_their_column_to_a_wider_type() -> None:
    def convert(values: pa.Array, to: pa.DataType) -> Any:
        found = convert_partition(values, to)
        return None if found is None else physical(found)

    days = pa.array([-1, None], pa.int32())
    assert convert(days, pa.date32()) == [-1, None]
    assert convert(days.view(pa.date32()), pa.int32()) == [-1, None]
    assert convert(days, pa.int64()) == [-1, None]
    assert convert(days.view(pa.date32()), TIMESTAMP_NTZ) == [-86_400_000_000, None]
    assert convert(pa.array([0.5, None], pa.float32()), pa.float64()) == [0.5, None]
    assert convert(pa.array([b"\xff", None]), pa.decimal128(20, 2)) == [Decimal("-0.01"), None]


@pytest.mark.parametrize(
    ("values", "to"),
    [
        (pa.array([2**40]), pa.int32()),
        (pa.array(["x"]), pa.int32()),
        (pa.array([1]), TIMESTAMP),
        (pa.array([1], pa.int32()), TIMESTAMP_NTZ),
        (pa.array([date(2026, 1, 1)]), TIMESTAMP),
        (pa.array([b"short"]), pa.string()),
        (pa.array([b""]), pa.decimal128(9, 2)),
        (pa.array([2**31 - 1], pa.int32()).view(pa.date32()), TIMESTAMP_NTZ),
        (pa.array([0.1], pa.float64()), pa.float32()),
    ],
)
def test_partition_values_without_an_exact_equal_are_unknown_as_a_whole(values: pa.Array, to: pa.DataType) -> None:
    assert convert_partition(values, to) is None


# Keeping -------------------------------------------------------------------------------------------------------------


def test_what_was_made_is_kept_and_counted() -> None:
    sizes: list[int] = []
    table = entries_of(lower_bounds=[{1: b"\0" * 8}] * 100).table
    entries = ManifestEntries(table, lambda grown: sizes.append(grown.nbytes))
    before = entries.nbytes
    first = entries.bounds(1, LongType())
    assert entries.bounds(1, LongType()) is first
    assert entries.bounds(1, IntegerType()) is not first
    assert len(sizes) == 2
    assert before < sizes[0] < sizes[1] == entries.nbytes >= before + 1600


def test_entries_of_a_whole_manifest(tmp_path: Path) -> None:
    manifest = write_manifest(tmp_path / "m.avro", [{"file_path": "a"}, {"file_path": "b"}])
    entries = ManifestEntries(decode_manifest(manifest, IO))
    assert entries.count == 2
    assert entries.column("file_path").to_pylist() == ["a", "b"]
    split = pa.concat_tables([entries.table.slice(0, 1), entries.table.slice(1)])
    assert ManifestEntries(split).column("file_path").to_pylist() == ["a", "b"]


def test_a_column_of_many_files_is_made_without_a_step_per_file() -> None:
    size, columns = 200_000, 10
    keys = pa.array(np.tile(np.arange(columns, dtype=np.int32), size))
    numbers = np.arange(size * columns, dtype="<i8")
    offsets = np.arange(size * columns + 1, dtype=np.int32) * 8
    octets = pa.Array.from_buffers(pa.binary(), size * columns, [None, pa.py_buffer(offsets), pa.py_buffer(numbers)])
    pairs = pa.StructArray.from_arrays([keys, octets], ["key", "value"])
    lists = pa.ListArray.from_arrays(np.arange(size + 1, dtype=np.int32) * columns, pairs).cast(BOUNDS)
    calls: list[str] = []
    sys.setprofile(lambda frame, event, _: calls.append(event))
    try:
        lower, _ = ManifestEntries(pa.table({"lower_bounds": lists, "upper_bounds": lists})).bounds(3, LongType())
    finally:
        sys.setprofile(None)
    assert len(calls) < size // 10  # calls of Python and C; a step per file is one of them at least
    assert lower is not None
    assert lower.to_numpy().tolist() == numbers[3::columns].tolist()
