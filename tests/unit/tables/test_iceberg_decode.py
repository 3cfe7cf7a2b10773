"""Decoding manifests: the same as PyIceberg reads, entry by entry; or one clear error, and never fewer entries."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.manifest import ManifestContent, ManifestFile
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import (
    BucketTransform,
    IdentityTransform,
)
from pyiceberg.typedef import Record
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
    TimestampNanoType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

from penstock.errors import LakeError, StorageError
from penstock.tables.iceberg.manifest import manifest_decode as decode
from penstock.tables.iceberg.manifest.avro import COLUMNS
from penstock.tables.iceberg.manifest.manifest_decode import decode_manifest
from penstock.tables.iceberg.manifest.manifest_statistics import ManifestEntries
from tests.fixtures.every_type import ROWS, SPECS, make_table
from tests.fixtures.manifest_writer import (
    ADDED,
    DELETED,
    EXISTING,
    IO,
    SNAPSHOT,
    blocks_of,
    listed_manifest,
    recompress,
    write_manifest,
)

ENTRY = ("status", "snapshot_id", "sequence_number", "file_sequence_number")
MAPS = ("value_counts", "null_value_counts", "nan_value_counts", "lower_bounds", "upper_bounds")
FILE = (
    *("content", "file_path", "file_format", "record_count", "file_size_in_bytes"),
    *("split_offsets", "sort_order_id", "key_metadata", "equality_ids"),
)


def assert_as_pyiceberg(manifest: ManifestFile, io: Any = IO) -> pa.Table:
    """Every column is what PyIceberg reads."""
    table = decode_manifest(manifest, io)
    entries = manifest.fetch_manifest_entry(io)
    assert table.num_rows == len(entries)
    assert set(table.column_names) == {*COLUMNS, "partition"}
    for name in ENTRY:
        assert table[name].to_pylist() == [getattr(entry, name) for entry in entries], name
    for name in FILE:
        assert table[name].to_pylist() == [getattr(entry.data_file, name) for entry in entries], name
    for name in MAPS:
        maps = [None if pairs is None else {p["key"]: p["value"] for p in pairs} for pairs in table[name].to_pylist()]
        assert maps == [getattr(entry.data_file, name) for entry in entries], name
    for name, kind in COLUMNS.items():
        assert table[name].type == kind, name
    return table


@pytest.fixture(params=["fast", "entry by entry"])
def reader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both ways of reading; the fast one must not fall back, or it would not be the one that is tested."""
    if request.param == "fast":
        monkeypatch.setattr(decode, "read_entrywise", lambda *_: pytest.fail("fell back"))
    else:
        monkeypatch.setattr(decode, "_read_fast", lambda *_: None)
    return str(request.param)


# Tables that PyIceberg wrote -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", ["1", "2"])
@pytest.mark.parametrize("spec", SPECS)
def test_tables_of_every_type_and_spec_decode_as_pyiceberg_reads_them(
    tmp_path: Path, spec: str, version: str, reader: str
) -> None:
    table = make_table(tmp_path, version, SPECS[spec])
    snapshot = table.current_snapshot()
    assert snapshot is not None
    manifests = snapshot.manifests(table.io)
    assert len(manifests) == 2
    for manifest in manifests:
        decoded = ManifestEntries(assert_as_pyiceberg(manifest, table.io))
        types = {f.name: f.type for f in ROWS.schema}
        names = ROWS.schema.names
        for position, field in enumerate(table.spec().fields):
            kind = {"bucket[4]": pa.int32(), "day": pa.date32(), "void": types[names[field.source_id - 1]]}
            periods = {"year": pa.int32(), "month": pa.int32(), "hour": pa.int32()}
            to = {**kind, **periods}.get(str(field.transform), types[names[field.source_id - 1]])
            values = decoded.partition(position, to)
            assert values is not None
            expected = [entry.data_file.partition[position] for entry in manifest.fetch_manifest_entry(table.io)]
            assert _physical(values) == expected, field


def _physical(values: pa.Array) -> list[Any]:
    if values.type == pa.date32():
        return list(values.view(pa.int32()).to_pylist())
    return list((values.view(pa.int64()) if pa.types.is_timestamp(values.type) else values).to_pylist())


# Manifests by hand ---------------------------------------------------------------------------------------------------

DT = Schema(NestedField(1, "a", IntegerType(), required=False), NestedField(2, "s", StringType(), required=False))
BY_TWO = PartitionSpec(
    PartitionField(1, 1000, IdentityTransform(), "a"), PartitionField(2, 1001, IdentityTransform(), "s"), spec_id=3
)


def two(a: Any, s: Any) -> Record:
    return Record(a, s)


def test_deleted_entries_are_left_out_and_numbers_are_inherited(tmp_path: Path, reader: str) -> None:
    rows = [
        {"status": ADDED, "file_path": "new"},
        {"status": DELETED, "file_path": "gone", "snapshot_id": 3, "sequence_number": 1, "file_sequence_number": 1},
        {"status": EXISTING, "file_path": "old", "snapshot_id": 2, "sequence_number": 1, "file_sequence_number": 2},
        {"status": ADDED, "file_path": "rewritten", "snapshot_id": 9, "sequence_number": 4},
    ]
    table = assert_as_pyiceberg(write_manifest(tmp_path / "m.avro", rows))
    assert table["file_path"].to_pylist() == ["new", "old", "rewritten"]
    assert table["snapshot_id"].to_pylist() == [SNAPSHOT, 2, 9]
    assert table["sequence_number"].to_pylist() == [5, 1, 4]
    assert table["file_sequence_number"].to_pylist() == [5, 2, 5]


def test_an_existing_entry_without_a_number_has_none(tmp_path: Path, reader: str) -> None:
    table = assert_as_pyiceberg(write_manifest(tmp_path / "m.avro", [{"status": EXISTING, "snapshot_id": 1}]))
    assert table["sequence_number"].to_pylist() == [None]


def test_version_1_has_no_sequence_numbers_and_only_data(tmp_path: Path, reader: str) -> None:
    rows = [{"status": EXISTING, "snapshot_id": 8}, {"status": ADDED, "snapshot_id": 8}]
    manifest = write_manifest(tmp_path / "m.avro", rows, version=1, sequence_number=0)
    table = assert_as_pyiceberg(manifest)
    assert table["sequence_number"].to_pylist() == table["file_sequence_number"].to_pylist() == [0, 0]
    assert table["content"].to_pylist() == [0, 0]


def test_old_writers_leave_optional_fields_and_the_version_out(tmp_path: Path, reader: str) -> None:
    path = tmp_path / "m.avro"
    gone = ("nan_value_counts", "key_metadata", "split_offsets", "sort_order_id", "column_sizes", "upper_bounds")
    manifest = write_manifest(path, [{"snapshot_id": 1}], version=1, without=gone, sequence_number=0)
    data = path.read_bytes()
    from penstock.formats.avro_container import read_header, write_header

    header = read_header(data)
    meta = {key: value for key, value in header.meta.items() if key != "format-version"}
    path.write_bytes(write_header(meta) + data[header.end :])
    assert assert_as_pyiceberg(manifest)["upper_bounds"].to_pylist() == [None]


def test_delete_manifests_keep_their_kind_and_ids(tmp_path: Path, reader: str) -> None:
    rows = [{"content": 1, "file_path": "p"}, {"content": 2, "file_path": "e", "equality_ids": [1, 2]}]
    manifest = write_manifest(tmp_path / "m.avro", rows, meta={"content": "deletes"}, content=ManifestContent.DELETES)
    table = assert_as_pyiceberg(manifest)
    assert table["content"].to_pylist() == [1, 2]
    assert table["equality_ids"].to_pylist() == [None, [1, 2]]


def test_fields_of_version_3_and_of_penstock_are_read(tmp_path: Path, reader: str) -> None:
    vector = {"referenced_data_file": "s3://b/f", "content_offset": 4, "content_size_in_bytes": 40}
    rows: list[dict[str, Any]] = [
        {"content": 1, "file_format": "PUFFIN", **vector, "logical_partition_values": '{"é": 1}', "map_shredding": ""},
        {"content": 1, "first_row_id": 1000, "record_count": 7},
    ]
    extra = ("logical_partition_values", "map_shredding", "of_somebody_else")
    manifest = write_manifest(tmp_path / "m.avro", rows, version=3, extra=extra, content=ManifestContent.DELETES)
    table = decode_manifest(manifest, IO)
    for name in (*vector, "first_row_id", "logical_partition_values", "map_shredding"):
        assert table[name].to_pylist() == [row.get(name) for row in rows], name


@pytest.mark.parametrize("codec", ["null", "deflate", "zstandard", "bzip2"])
def test_every_codec_is_read(tmp_path: Path, codec: str) -> None:
    rows = [{"file_path": f"f{i}", "partition": two(i, None)} for i in range(50)]
    assert_as_pyiceberg(write_manifest(tmp_path / "m.avro", rows, codec=codec, spec=BY_TWO, schema=DT))


def test_snappy_is_read(tmp_path: Path) -> None:
    path = tmp_path / "m.avro"
    manifest = write_manifest(path, [{"file_path": f"f{i}"} for i in range(50)], codec="null")
    expected = decode_manifest(manifest, IO)
    recompress(path, "snappy")
    assert decode_manifest(manifest, IO).equals(expected)


def test_entries_of_an_unpartitioned_table_have_an_empty_partition(tmp_path: Path, reader: str) -> None:
    table = assert_as_pyiceberg(write_manifest(tmp_path / "m.avro", [{}, {}, {}]))
    assert table["partition"].type.num_fields == 0
    assert table["partition"].to_pylist() == [{}, {}, {}]


KINDS: dict[str, tuple[Any, Any, pa.DataType, Any]] = {
    "boolean": (BooleanType(), True, pa.bool_(), True),
    "int": (IntegerType(), -3, pa.int32(), -3),
    "long": (LongType(), 2**60, pa.int64(), 2**60),
    "float": (FloatType(), 0.5, pa.float32(), 0.5),
    "double": (DoubleType(), -0.1, pa.float64(), -0.1),
    "date": (DateType(), -1, pa.date32(), date(1969, 12, 31)),
    "time": (TimeType(), 1, pa.time64("us"), 1),
    "timestamp": (TimestampType(), -1, pa.timestamp("us"), -1),
    "timestamptz": (TimestamptzType(), 7, pa.timestamp("us", "UTC"), 7),
    "string": (StringType(), "ü/=", pa.string(), "ü/="),
    "uuid": (UUIDType(), UUID(int=2**127 + 5), pa.string(), str(UUID(int=2**127 + 5))),
    "fixed": (FixedType(3), b"\0\xff1", pa.binary(), b"\0\xff1"),
    "binary": (BinaryType(), b"", pa.binary(), b""),
    "decimal": (DecimalType(9, 2), Decimal("-1.25"), pa.decimal128(9, 2), Decimal("-1.25")),
    "wide_decimal": (DecimalType(38, 3), Decimal("-1.250"), pa.decimal128(38, 3), Decimal("-1.250")),
}


@pytest.mark.parametrize("name", KINDS)
def test_partition_values_of_every_type(tmp_path: Path, name: str, reader: str) -> None:
    kind, value, to, expected = KINDS[name]
    schema = Schema(NestedField(1, "a", kind, required=False))
    spec = PartitionSpec(PartitionField(1, 1000, IdentityTransform(), "a"), spec_id=1)
    rows = [{"partition": Record(value)}, {"partition": Record(None)}]
    entries = ManifestEntries(decode_manifest(write_manifest(tmp_path / "m.avro", rows, spec=spec, schema=schema), IO))
    found = entries.partition(0, to)
    assert found is not None
    assert found.type == to
    physical = found.view(pa.int64()) if name.startswith("time") else found
    assert physical.to_pylist() == [expected, None]


def test_partition_values_in_nanoseconds_must_lose_nothing(tmp_path: Path) -> None:
    schema = Schema(NestedField(1, "a", TimestampNanoType(), required=False))
    spec = PartitionSpec(PartitionField(1, 1000, IdentityTransform(), "a"), spec_id=1)
    for nanos, expected in ((-7000, [-7]), (7001, None)):
        path = tmp_path / f"{nanos}.avro"
        manifest = write_manifest(path, [{"partition": Record(nanos)}], spec=spec, schema=schema, version=3)
        found = ManifestEntries(decode_manifest(manifest, IO)).partition(0, pa.timestamp("us"))
        assert (None if found is None else found.view(pa.int64()).to_pylist()) == expected


def _edit(path: Path, change: Callable[[dict[str, Any]], None], **meta: str) -> None:
    """Rewrite the schema in the header of an Avro file."""
    from penstock.formats.avro_container import read_header, write_header

    data = path.read_bytes()
    header = read_header(data)
    schema = json.loads(header.meta["avro.schema"])
    change(schema)
    about = {**header.meta, **{key.replace("_", "-"): value.encode() for key, value in meta.items()}}
    path.write_bytes(write_header({**about, "avro.schema": json.dumps(schema).encode()}) + data[header.end :])


def _field(schema: dict[str, Any], *names: str) -> dict[str, Any]:
    for name in names:
        found = next(field for field in schema["fields"] if field["name"] == name)
        schema = found["type"]
    return found


def test_partition_fields_of_one_name_are_told_apart(tmp_path: Path) -> None:
    path = tmp_path / "m.avro"
    manifest = write_manifest(path, [{"partition": two(4, "x")}], spec=BY_TWO, schema=DT)
    _edit(path, lambda s: _field(s, "data_file", "partition", "s").update(name="a"))
    assert decode_manifest(manifest, IO)["partition"].to_pylist() == [{"0": 4, "1": "x"}]


def test_partition_fields_stand_in_the_order_of_the_spec(tmp_path: Path, reader: str) -> None:
    path = tmp_path / "m.avro"
    manifest = write_manifest(path, [{"partition": two(4, "x")}], spec=BY_TWO, schema=DT)
    turned = [field.model_dump_json() for field in reversed(BY_TWO.fields)]
    _edit(path, lambda _: None, partition_spec=f"[{','.join(turned)}]")
    assert decode_manifest(manifest, IO)["partition"].to_pylist() == [{"0": "x", "1": 4}]


def test_a_field_that_the_file_lacks_is_unknown_and_not_null(tmp_path: Path) -> None:
    path = tmp_path / "m.avro"
    manifest = write_manifest(path, [{"partition": two(4, "x")}], spec=BY_TWO, schema=DT)
    more = PartitionField(1, 1002, BucketTransform(3), "more").model_dump_json()
    _edit(path, lambda _: None, partition_spec=f"[{more},{BY_TWO.fields[1].model_dump_json()}]")
    entries = ManifestEntries(decode_manifest(manifest, IO))
    assert entries.partition(0, pa.int32()) is None
    assert entries.partition(1, pa.string()).to_pylist() == ["x"]  # type: ignore[union-attr]
    assert entries.partition(7, pa.string()) is None


def test_a_partition_field_of_no_type_is_null(tmp_path: Path) -> None:
    path = tmp_path / "m.avro"
    schema = Schema(NestedField(1, "a", IntegerType(), required=False))
    spec = PartitionSpec(PartitionField(1, 1000, IdentityTransform(), "a"))
    manifest = write_manifest(path, [{}], schema=schema)  # an empty record and a null are both written as nothing
    nothing = {"name": "a", "type": "null", "field-id": 1000}
    _edit(
        path,
        lambda s: _field(s, "data_file", "partition")["type"]["fields"].append(nothing),
        partition_spec=f"[{spec.fields[0].model_dump_json()}]",
    )
    found = ManifestEntries(decode_manifest(manifest, IO)).partition(0, pa.int32())
    assert found is not None
    assert found.to_pylist() == [None]


@pytest.mark.parametrize("refer", [False, True])
def test_a_named_type_may_be_defined_twice_or_referred_to(tmp_path: Path, refer: bool, reader: str) -> None:
    path = tmp_path / "m.avro"
    schema = Schema(*(NestedField(i, f"u{i}", UUIDType(), required=False) for i in (1, 2)))
    spec = PartitionSpec(*(PartitionField(i, 999 + i, IdentityTransform(), f"u{i}") for i in (1, 2)))
    rows = [{"partition": Record(UUID(int=1), UUID(int=2))}]
    manifest = write_manifest(path, rows, spec=spec, schema=schema)
    if refer and reader == "fast":  # PyIceberg's reader knows no references
        _edit(path, lambda s: _field(s, "data_file", "partition", "u2").update(type=["null", "uuid_fixed"]))
    entries = ManifestEntries(decode_manifest(manifest, IO))
    found = [entries.partition(i, pa.string()) for i in (0, 1)]
    assert [values and values.to_pylist() for values in found] == [[str(UUID(int=1))], [str(UUID(int=2))]]


def test_names_do_not_matter_where_ids_are(tmp_path: Path) -> None:
    path = tmp_path / "m.avro"
    manifest = write_manifest(path, [{"file_path": "here"}])

    def rename(schema: dict[str, Any]) -> None:
        _field(schema, "data_file", "file_path").update(name="location")
        _field(schema, "status").update(name="state")

    _edit(path, rename)
    assert decode_manifest(manifest, IO)["file_path"].to_pylist() == ["here"]


def test_what_the_fast_reader_refuses_is_read_entry_by_entry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    manifest = write_manifest(tmp_path / "m.avro", [{"partition": two(1, "é")}] * 3, spec=BY_TWO, schema=DT)
    expected = decode_manifest(manifest, IO)

    def refuse(*_: object) -> pa.Table:
        raise RuntimeError("unknown type")

    monkeypatch.setattr(decode, "_decode", refuse)
    assert decode_manifest(manifest, IO).equals(expected)


def test_a_temporary_folder_that_cannot_be_written_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    manifest = write_manifest(tmp_path / "m.avro", [{}])
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    assert decode_manifest(manifest, IO).num_rows == 1


def test_no_temporary_file_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    manifest = write_manifest(tmp_path / "m.avro", [{}])
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    decode_manifest(manifest, IO)
    assert [p.name for p in tmp_path.iterdir()] == ["m.avro"]


FORK = """
import os, signal, sys
from pathlib import Path
from penstock.tables.iceberg.manifest.manifest_decode import decode_manifest
from tests.fixtures.manifest_writer import IO, listed_manifest
manifest = listed_manifest(Path(sys.argv[1]), [1, 1])
expected = decode_manifest(manifest, IO)
if (child := os.fork()) == 0:
    signal.alarm(60)
    os._exit(0 if decode_manifest(manifest, IO).equals(expected) else 1)
sys.exit(os.waitpid(child, 0)[1])
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_process_reads_too_and_does_not_hang(tmp_path: Path) -> None:
    write_manifest(tmp_path / "m.avro", [{}, {}])
    root = Path(__file__).parents[3]
    subprocess.run([sys.executable, "-c", FORK, str(tmp_path / "m.avro")], cwd=root, check=True, timeout=120)


# Errors --------------------------------------------------------------------------------------------------------------


def test_a_missing_manifest_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=r"the manifest .*/m\.avro does not exist; restore") as caught:
        decode_manifest(listed_manifest(tmp_path / "m.avro", [ADDED]), IO)
    assert isinstance(caught.value, OSError)


@pytest.mark.parametrize(
    "data", [b"", b"PAR1", b"Obj\x01", b"Obj\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", b"Obj\x01\x00"]
)
def test_a_file_that_is_no_manifest_is_damaged(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "m.avro"
    path.write_bytes(data)
    with pytest.raises(StorageError, match=r"m\.avro is damaged"):
        decode_manifest(listed_manifest(path, [ADDED]), IO)


def test_a_newer_format_version_is_refused(tmp_path: Path) -> None:
    manifest = write_manifest(tmp_path / "m.avro", [{}], meta={"format-version": "4"})
    with pytest.raises(LakeError, match=r"m\.avro has format version 4; versions 1 to 3 are supported"):
        decode_manifest(manifest, IO)


def test_an_encrypted_manifest_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LakeError, match=r"m\.avro is encrypted"):
        decode_manifest(write_manifest(tmp_path / "m.avro", [{}], key_metadata=b"k"), IO)


def test_a_manifest_cut_short_anywhere_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "m.avro"
    manifest = write_manifest(path, [{"file_path": f"f{i}"} for i in range(9)])
    data = path.read_bytes()
    start, _ = blocks_of(data)
    for end in (*range(0, start, 97), *range(start - 20, len(data) - 17)):
        path.write_bytes(data[:end])
        with pytest.raises(StorageError, match="is damaged"):
            decode_manifest(manifest, IO)


def test_entries_that_the_list_does_not_promise_are_an_error(tmp_path: Path) -> None:
    for count in (1, 3):
        manifest = write_manifest(tmp_path / "m.avro", [{}, {}], added_files_count=count)
        with pytest.raises(StorageError, match=f"2 live entries, and the manifest list says {count}"):
            decode_manifest(manifest, IO)


def test_without_counts_the_length_tells_that_blocks_are_missing(tmp_path: Path) -> None:
    path = tmp_path / "m.avro"
    manifest = write_manifest(path, [{"snapshot_id": 1}] * 6, version=1, added_files_count=None, sequence_number=0)
    assert decode_manifest(manifest, IO).num_rows == 6
    data = path.read_bytes()
    _, blocks = blocks_of(data)
    path.write_bytes(data[: blocks[0][1]])
    with pytest.raises(StorageError, match="bytes, and the manifest list says"):
        decode_manifest(manifest, IO)


def test_a_flipped_bit_never_loses_an_entry(tmp_path: Path) -> None:
    path = tmp_path / "m.avro"
    manifest = write_manifest(path, [{"file_path": f"f{i}"} for i in range(9)], codec="null")
    data = path.read_bytes()
    start, _ = blocks_of(data)
    for position in range(start, len(data), 7):
        path.write_bytes(data[:position] + bytes([data[position] ^ 1 << position % 8]) + data[position + 1 :])
        try:
            found = decode_manifest(manifest, IO).num_rows
        except StorageError:
            continue
        assert found == 9


@pytest.mark.parametrize("name", ["snapshot_id", "sequence_number", "record_count"])
def test_a_number_of_more_than_64_bits_is_one_clear_error(tmp_path: Path, name: str) -> None:
    manifest = write_manifest(tmp_path / "m.avro", [{name: 2**63}])
    with pytest.raises(StorageError, match=r"the manifest .*m\.avro is damaged"):
        decode_manifest(manifest, IO)


def test_entries_of_a_kind_that_the_manifest_cannot_have_are_an_error(tmp_path: Path) -> None:
    for content, kind in ((ManifestContent.DATA, 2), (ManifestContent.DELETES, 0), (ManifestContent.DELETES, 7)):
        manifest = write_manifest(tmp_path / f"{kind}.avro", [{"content": kind}], content=content)
        with pytest.raises(StorageError, match="is damaged"):
            decode_manifest(manifest, IO)


def test_a_storage_that_is_not_known_is_one_clear_error() -> None:
    with pytest.raises(StorageError, match=r"the manifest nowhere://x/m\.avro cannot be read"):
        decode_manifest(listed_manifest(Path("x"), [ADDED], manifest_path="nowhere://x/m.avro"), IO)


def test_an_error_of_the_storage_shows_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    io = PyArrowFileIO({"s3.secret-access-key": "hunter2"})

    def refuse(*_: object) -> None:
        raise OSError("access denied for hunter2")

    monkeypatch.setattr(io, "new_input", refuse)
    with pytest.raises(StorageError, match=r"access denied for \*\*\*") as caught:
        decode_manifest(listed_manifest(Path("x"), [ADDED]), io)
    assert caught.value.__cause__ is None
