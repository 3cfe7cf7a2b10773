"""An Iceberg table of which only metadata exists: any number of files in any number of manifests, under two specs.

Files are a day of one app each, in the order of time, as a table that grows has them: a manifest covers a span of days.
Half of the manifests, the older ones, are of a spec by day and bucket of the user, the newer ones by day and app.
"""

from __future__ import annotations

import json
import struct
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fastavro
import numpy as np
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.manifest import (
    ManifestContent,
    ManifestFile,
    PartitionFieldSummary,
    data_file_with_partition,
    manifest_entry_schema_with_data_file,
    write_manifest_list,
)
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import BucketTransform, DayTransform, IdentityTransform
from pyiceberg.types import DoubleType, LongType, NestedField, StringType, TimestamptzType
from pyiceberg.utils.schema_conversion import AvroSchemaConversion

SCHEMA = Schema(
    NestedField(1, "ts", TimestamptzType(), required=False),
    NestedField(2, "app", StringType(), required=False),
    NestedField(3, "user_id", LongType(), required=False),
    NestedField(4, "amount", DoubleType(), required=False),
    NestedField(5, "session", StringType(), required=False),
    NestedField(6, "seq", LongType(), required=False),
)
DAY = PartitionField(1, 1000, DayTransform(), "ts_day")
SPECS = (
    PartitionSpec(DAY, PartitionField(3, 1001, BucketTransform(64), "user_bucket"), spec_id=0),
    PartitionSpec(DAY, PartitionField(2, 1002, IdentityTransform(), "app"), spec_id=1),
)
FIRST_DAY = 19_000
DAYS = 1_000
APPS = 200
ROWS = 1_000
SIZE = 1_000_000
SNAPSHOT = 4711
MICROS = 86_400_000_000


@dataclass(frozen=True)
class Made:
    """The table: its metadata file, and the columns that tell which files a predicate needs."""

    metadata: Path
    files: int
    day: np.ndarray[Any, Any]
    app: np.ndarray[Any, Any]
    bucket: np.ndarray[Any, Any]
    user: np.ndarray[Any, Any]
    fine: np.ndarray[Any, Any]


def build(root: Path, files: int, manifests: int) -> Made:
    """Write the metadata of a table."""
    folder = root / "metadata"
    folder.mkdir(parents=True)
    rng = np.random.default_rng(files)
    made = Made(
        root / "metadata" / "v1.metadata.json",
        files,
        FIRST_DAY + np.arange(files) * DAYS // files,
        rng.integers(0, APPS, files),
        rng.integers(0, 64, files),
        rng.integers(0, 1_000_000_000, files),
        np.arange(files) * 2 >= files,
    )
    made.app[np.searchsorted(made.day, FIRST_DAY + 700)] = 7  # so that a point query finds something at any size
    edges = np.unique(np.concatenate([np.linspace(0, files, manifests + 1).astype(int), [files // 2]]))
    spans = list(zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True))
    entries = [_manifest(folder / f"m{i}.avro", made, start, end) for i, (start, end) in enumerate(spans)]
    _finish(root, made, entries)
    return made


def _manifest(path: Path, made: Made, start: int, end: int) -> ManifestFile:
    spec = SPECS[int(made.fine[start])]
    second = made.app if spec.spec_id else made.bucket
    kind = spec.partition_type(SCHEMA)
    entry = manifest_entry_schema_with_data_file(2, data_file_with_partition(kind, 2))
    schema = AvroSchemaConversion().iceberg_to_avro(entry, "manifest_entry")
    about = {
        "schema": SCHEMA.model_dump_json(),
        "partition-spec": json.dumps([field.model_dump(mode="json", by_alias=True) for field in spec.fields]),
        "partition-spec-id": str(spec.spec_id),
        "format-version": "2",
        "content": "data",
    }
    names = [field.name for field in spec.fields]
    days = made.day[start:end].tolist()
    values = second[start:end].tolist()
    users = made.user[start:end].tolist()
    rows = (
        _entry(start + i, names, day, f"app-{value:03d}" if spec.spec_id else value, user)
        for i, (day, value, user) in enumerate(zip(days, values, users, strict=True))
    )
    with path.open("wb") as file:
        fastavro.writer(file, schema, rows, codec="deflate", metadata=about, codec_compression_level=1)
    return ManifestFile.from_args(
        manifest_path=f"file://{path}",
        manifest_length=path.stat().st_size,
        partition_spec_id=spec.spec_id,
        content=ManifestContent.DATA,
        sequence_number=1,
        min_sequence_number=1,
        added_snapshot_id=SNAPSHOT,
        added_files_count=end - start,
        existing_files_count=0,
        deleted_files_count=0,
        added_rows_count=ROWS * (end - start),
        existing_rows_count=0,
        deleted_rows_count=0,
        partitions=_summaries(spec, days, values),
    )


def _entry(number: int, names: list[str], day: int, value: Any, user: int) -> dict[str, Any]:
    start, app = day * MICROS, value if isinstance(value, str) else "app-"
    last = value if isinstance(value, str) else "app-999"
    lower = [_long(start), app.encode(), _long(user), _double(0.0), b"%016x" % user, _long(number * ROWS)]
    upper = [
        _long(start + MICROS - 1),
        last.encode(),
        _long(user + 1_000_000),
        _double(1e6),
        b"%016x" % (user + 10**6),
        _long(number * ROWS + ROWS - 1),
    ]
    return {
        "status": 1,
        "snapshot_id": SNAPSHOT,
        "sequence_number": None,
        "file_sequence_number": None,
        "data_file": {
            "content": 0,
            "file_path": f"file:///lake/web/events/data/part-{number:09d}.parquet",
            "file_format": "PARQUET",
            "partition": dict(zip(names, (day, value), strict=True)),
            "record_count": ROWS,
            "file_size_in_bytes": SIZE,
            "column_sizes": _map([100_000] * 6),
            "value_counts": _map([ROWS] * 6),
            "null_value_counts": _map([0] * 6),
            "nan_value_counts": [{"key": 4, "value": 0}],
            "lower_bounds": _map(lower),
            "upper_bounds": _map(upper),
            "key_metadata": None,
            "split_offsets": [4],
            "equality_ids": None,
            "sort_order_id": 0,
        },
    }


def _map(values: list[Any]) -> list[dict[str, Any]]:
    return [{"key": i, "value": value} for i, value in enumerate(values, 1)]


def _long(value: int) -> bytes:
    return struct.pack("<q", value)


def _double(value: float) -> bytes:
    return struct.pack("<d", value)


def _summaries(spec: PartitionSpec, days: list[int], values: list[int]) -> list[PartitionFieldSummary]:
    ends = [f"app-{end(values):03d}".encode() if spec.spec_id else struct.pack("<i", end(values)) for end in (min, max)]
    day_ends = [struct.pack("<i", end(days)) for end in (min, max)]
    return [PartitionFieldSummary(False, False, low, high) for low, high in (day_ends, ends)]


def _finish(root: Path, made: Made, manifests: list[ManifestFile]) -> None:
    """Manifest list and metadata."""
    place = f"file://{root}/metadata/snap-{SNAPSHOT}.avro"
    with write_manifest_list(2, PyArrowFileIO().new_output(place), SNAPSHOT, None, 1, "null") as writer:
        writer.add_manifests(manifests)
    moment = 1_700_000_000_000
    snapshot = {
        "snapshot-id": SNAPSHOT,
        "sequence-number": 1,
        "timestamp-ms": moment,
        "manifest-list": place,
        "summary": {"operation": "append"},
        "schema-id": 0,
    }
    metadata = {
        "format-version": 2,
        "location": f"file://{root}",
        "table-uuid": str(uuid.UUID(int=made.files)),
        "last-sequence-number": 1,
        "last-updated-ms": moment,
        "last-column-id": 6,
        "schemas": [SCHEMA.model_dump(mode="json", by_alias=True)],
        "current-schema-id": 0,
        "partition-specs": [spec.model_dump(mode="json", by_alias=True) for spec in SPECS],
        "default-spec-id": 1,
        "last-partition-id": 1002,
        "properties": {},
        "snapshots": [snapshot],
        "current-snapshot-id": SNAPSHOT,
        "snapshot-log": [{"snapshot-id": SNAPSHOT, "timestamp-ms": moment}],
        "metadata-log": [],
        "sort-orders": [{"order-id": 0, "fields": []}],
        "default-sort-order-id": 0,
        "refs": {"main": {"snapshot-id": SNAPSHOT, "type": "branch"}},
    }
    made.metadata.write_text(json.dumps(metadata))
