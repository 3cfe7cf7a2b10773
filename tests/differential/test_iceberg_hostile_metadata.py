"""Metadata that is damaged or made up on purpose: an answer or a PenstockError that names the file, nothing else.

`PENSTOCK_FUZZ_SEEDS=5000` asks for more than the few seeds of every run.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.manifest import DataFile, ManifestFile, write_manifest_list
from pyiceberg.table import StaticTable
from pyiceberg.table.snapshots import Snapshot

from penstock.errors import PenstockError
from penstock.expr.bind import Context
from penstock.formats.avro_container import read_header
from penstock.tables.iceberg.iceberg_table import IcebergTable
from penstock.tables.iceberg.manifest.file_batch import Batches
from penstock.tables.iceberg.manifest.manifest_cache import ManifestCache
from penstock.tables.iceberg.manifest.manifest_list import ManifestLists
from penstock.tables.iceberg.metadata.catalogs import iceberg
from penstock.tables.iceberg.scan.scan_plan import Sources
from tests.fixtures.iceberg_deletes import data_files, delete_by_vectors, delete_equal, delete_positions, upgraded
from tests.fixtures.iceberg_tables import append_by_hand, create, repartition
from tests.fixtures.manifest_writer import IO, write_manifest

SEEDS = range(int(os.environ.get("PENSTOCK_FUZZ_SEEDS", "20")))
QUESTIONS: tuple[Callable[[IcebergTable], object], ...] = (
    lambda table: table.arrow("app = 'a' OR n > 3 AND d <= 1.5"),
    lambda table: table.count("s.x IS NOT NULL"),
    lambda table: table.partitions("n < 100"),
    lambda table: table.maximum("d"),
    lambda table: table.arrow(limit=2),
)


def make(root: Path) -> Path:
    """A table with three specs and every kind of deletes; the metadata file."""
    kind = pa.struct({"x": pa.int32()})
    schema = pa.schema({"id": pa.int64(), "app": pa.string(), "n": pa.int32(), "d": pa.float64(), "s": kind})
    columns = [range(8), list("abababab"), range(8), [0.5 * i for i in range(8)], [{"x": i} for i in range(8)]]
    rows = pa.table([pa.array(values, t) for values, t in zip(columns, schema.types, strict=True)], schema=schema)
    table = create(root, schema)
    append_by_hand(table, rows)
    for fields in (["app", "bucket[4](n)"], ["truncate[2](app)"]):
        repartition(table, fields)
        append_by_hand(table, rows)
    files = [file.file_path for file in data_files(table)]
    delete_positions(table, {files[0]: [0]})
    delete_equal(table, pa.table({"id": [3]}), [1])
    delete_by_vectors(table, {files[1]: [0]})
    return upgraded(table)


@pytest.fixture(scope="module")
def metadata(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(tmp_path_factory.mktemp("hostile"))


def ask(table: Any) -> None:
    """Every question; nothing is kept between two tables."""
    sources = Sources(table.io, ManifestCache(disk_bytes=0), ManifestLists(), Batches())
    for question in QUESTIONS:
        with suppress(PenstockError):
            question(IcebergTable("t", table, sources, context=Context("UTC")))


def flipped(data: bytes, rng: Random) -> bytes:
    """Bytes with a few of them changed, removed, repeated or put elsewhere."""
    found = bytearray(data)
    for _ in range(rng.choice([1, 1, 2, 5])):
        at, size = rng.randrange(len(found)), rng.choice([1, 1, 8, 64])
        match rng.randrange(4):
            case 0:
                found[at] = rng.choice([0, 1, 127, 128, 255, found[at] ^ 1 << rng.randrange(8)])
            case 1:
                del found[at : at + size]
            case 2:
                found[at:at] = found[at : at + size] * rng.choice([1, 2])
            case 3:
                found[at : at + size] = rng.randbytes(size)
        found = found or bytearray(b"\0")
    return bytes(found)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kind", ["manifest", "manifest list"])
def test_damaged_avro_files_end_in_an_answer_or_an_error(metadata: Path, kind: str, seed: int) -> None:
    table = StaticTable.from_metadata(str(metadata))
    rng = Random(seed)
    snapshot = table.current_snapshot()
    assert snapshot is not None
    places = [m.manifest_path for m in snapshot.manifests(table.io)] if kind == "manifest" else [snapshot.manifest_list]
    path = Path(rng.choice(places).removeprefix("file://"))
    data = path.read_bytes()
    path.write_bytes(flipped(data, rng))
    try:
        ask(table)
    finally:
        path.write_bytes(data)


def listed(metadata: Path) -> tuple[StaticTable, Snapshot, Path]:
    """The table, its snapshot, and the file of its manifest list."""
    table = StaticTable.from_metadata(str(metadata))
    snapshot = table.current_snapshot()
    assert snapshot is not None
    return table, snapshot, Path(snapshot.manifest_list.removeprefix("file://"))


def test_a_manifest_list_whose_header_is_longer_than_the_file_is_an_error(metadata: Path) -> None:
    _, _, path = listed(metadata)
    data = path.read_bytes()
    path.write_bytes(b"Obj\x01\x02" + b"\x80\x84\xaf\x5f" + data[9:])  # one entry, whose name has 100 million bytes
    try:
        with pytest.raises(PenstockError, match="header is cut short"):
            iceberg(str(metadata)).plan()
    finally:
        path.write_bytes(data)


def test_a_manifest_list_that_ends_behind_its_header_is_an_error_and_no_empty_table(metadata: Path) -> None:
    table, snapshot, path = listed(metadata)
    data = path.read_bytes()
    end = read_header(data).end
    try:
        for length in (end, end + 15, end + 17):  # in the sync marker, and in the first block behind it
            path.write_bytes(data[:length])
            with pytest.raises(PenstockError, match=r"the manifest list .* cannot be read"):
                ManifestLists().of(snapshot, table.io)
    finally:
        path.write_bytes(data)


def test_a_damaged_byte_behind_the_header_of_a_manifest_list_makes_no_smaller_table(metadata: Path) -> None:
    table, snapshot, path = listed(metadata)
    data, rng = path.read_bytes(), Random(5)
    start = read_header(data).end + 16
    manifests = len(ManifestLists().of(snapshot, table.io))
    refused = 0
    try:
        for place in [start] * 50 + list(range(start, len(data))):  # the first byte is the number of records
            damaged = bytearray(data)
            damaged[place] ^= rng.randrange(1, 256)
            path.write_bytes(damaged)
            try:
                assert len(ManifestLists().of(snapshot, table.io)) == manifests, place
            except PenstockError:
                refused += 1
    finally:
        path.write_bytes(data)
    assert refused >= 50


HUGE = (2**31, 2**63 - 1, 2**63, 2**64, -(2**63) - 1, -1)
ENTRY: dict[str, tuple[Any, ...]] = {
    "status": (0, 2, 3, -1),
    "snapshot_id": (None, *HUGE),
    "sequence_number": (None, *HUGE),
    "file_sequence_number": (None, *HUGE),
    "content": (1, 2, 3, -1),
    "file_path": ("", "nowhere://x", "file:///nowhere", "a\nb", "\x1b[31m"),
    "file_format": ("", "AVRO", "orc", "PUFFIN"),
    "record_count": (0, *HUGE),
    "file_size_in_bytes": (0, *HUGE),
    "value_counts": (None, {}, {1: 2**63}, {2: -5}, {-1: 1, 4: 2**40}),
    "null_value_counts": (None, {2: 2**64}, {4: -1}),
    "lower_bounds": (None, {4: b""}, {4: b"\xff" * 9}, {2: b"\xff\xfe"}),
    "upper_bounds": (None, {4: b"\0\0\0\0"}, {2: b""}),
    "equality_ids": (None, [], [99], [1, 1], [-1], [5], [2**40]),
    "referenced_data_file": ("", "nowhere"),
    "content_offset": (None, *HUGE),
    "content_size_in_bytes": (None, *HUGE),
    "split_offsets": ([2**63],),
    "sort_order_id": (2**40,),
}
LISTED: dict[str, tuple[Any, ...]] = {
    "partition_spec_id": (9, -1, *HUGE),
    "added_snapshot_id": (None, *HUGE),
    "sequence_number": (None, *HUGE),
    "added_files_count": (None, 7, *HUGE),
    "added_rows_count": (None, *HUGE),
    "manifest_length": HUGE,
    "manifest_path": ("", "nowhere://x", "file:///nowhere"),
    "partitions": ([], None),
}


def relisted(metadata: Path, manifests: list[ManifestFile], folder: Path) -> StaticTable:
    """The table with another manifest list."""
    told = json.loads(metadata.read_text())
    snapshot = next(s for s in told["snapshots"] if s["snapshot-id"] == told["current-snapshot-id"])
    snapshot["manifest-list"] = f"{folder}/list.avro"
    out = IO.new_output(snapshot["manifest-list"])
    with write_manifest_list(2, out, snapshot["snapshot-id"], None, snapshot["sequence-number"], "null") as writer:
        writer.add_manifests(manifests)
    path = folder / "v1.metadata.json"
    path.write_text(json.dumps(told))
    return StaticTable.from_metadata(str(path))


def entry_of(file: DataFile) -> dict[str, Any]:
    names = ("content", "file_path", "file_format", "record_count", "file_size_in_bytes", "partition", "equality_ids")
    counts = ("value_counts", "null_value_counts", "lower_bounds", "upper_bounds")
    return {name: getattr(file, name) for name in (*names, *counts)}


@pytest.mark.parametrize("seed", SEEDS)
def test_made_up_entries_end_in_an_answer_or_an_error(metadata: Path, tmp_path: Path, seed: int) -> None:
    table = StaticTable.from_metadata(str(metadata))
    rng = Random(seed)
    snapshot = table.current_snapshot()
    assert snapshot is not None
    manifests = list(snapshot.manifests(table.io))
    at = rng.randrange(len(manifests))
    old = manifests[at]
    rows = [entry_of(entry.data_file) for entry in old.fetch_manifest_entry(table.io)]
    for name in rng.sample(sorted(ENTRY), rng.choice([1, 1, 2, 4])):
        rng.choice(rows)[name] = rng.choice(ENTRY[name])
    spec = table.specs()[old.partition_spec_id]
    changed = {name: rng.choice(LISTED[name]) for name in rng.sample(sorted(LISTED), rng.choice([0, 0, 1, 2]))}
    try:
        manifests[at] = write_manifest(
            tmp_path / "m.avro",
            rows,
            version=3,
            spec=spec,
            schema=table.schema(),
            **{"content": old.content, **changed},
        )
        changed_table = relisted(metadata, manifests, tmp_path)
    except (TypeError, OverflowError, ValueError):
        return  # what cannot be written needs no reader
    ask(changed_table)


JUNK: tuple[Any, ...] = (None, "", "x", -1, 0, 99, 2**63, 2**70, [], {}, [{}], 1.5, True)


def places_in(node: Any) -> list[tuple[Any, Any]]:
    """Every container in a document with each key into it."""
    keys = list(node) if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else []
    return [place for key in keys for place in ((node, key), *places_in(node[key]))]


@pytest.mark.parametrize("seed", SEEDS)
def test_made_up_metadata_ends_in_an_answer_or_an_error(metadata: Path, tmp_path: Path, seed: int) -> None:
    rng = Random(seed)
    told = json.loads(metadata.read_text())
    for _ in range(rng.choice([1, 1, 2])):
        node, key = rng.choice(places_in(told))
        if rng.random() < 0.3:
            del node[key]
        else:
            node[key] = rng.choice(JUNK)
    path = tmp_path / "v1.metadata.json"
    path.write_text(json.dumps(told))
    try:
        table = iceberg(path).table
    except PenstockError:
        return
    ask(table)
