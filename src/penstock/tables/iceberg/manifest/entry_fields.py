"""What an entry of a manifest has: Iceberg's field ids, and the names and types that the fields have here.

`partition` is not in the list: its type is another one for every spec.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from penstock.formats.manifest_record import ManifestRecord

FIRST_PARTITION_ID = 1000
COUNTS = pa.list_(pa.struct([("key", pa.int32()), ("value", pa.int64())]))
BOUNDS = pa.list_(pa.struct([("key", pa.int32()), ("value", pa.binary())]))
_FIELDS = (
    (0, "status", pa.int8()),
    (1, "snapshot_id", pa.int64()),
    (3, "sequence_number", pa.int64()),
    (4, "file_sequence_number", pa.int64()),
    (134, "content", pa.int8()),
    (100, "file_path", pa.string()),
    (101, "file_format", pa.string()),
    (103, "record_count", pa.int64()),
    (104, "file_size_in_bytes", pa.int64()),
    (109, "value_counts", COUNTS),
    (110, "null_value_counts", COUNTS),
    (137, "nan_value_counts", COUNTS),
    (125, "lower_bounds", BOUNDS),
    (128, "upper_bounds", BOUNDS),
    (135, "equality_ids", pa.list_(pa.int32())),
    (132, "split_offsets", pa.list_(pa.int64())),
    (140, "sort_order_id", pa.int32()),
    (131, "key_metadata", pa.binary()),
    (142, "first_row_id", pa.int64()),
    (143, "referenced_data_file", pa.string()),
    (144, "content_offset", pa.int64()),
    (145, "content_size_in_bytes", pa.int64()),
)
NAMES = {field_id: name for field_id, name, _ in _FIELDS}
COLUMNS: Mapping[str, pa.DataType] = {
    **{name: kind for _, name, kind in _FIELDS},
    **dict.fromkeys(ManifestRecord._fields, pa.string()),
}
