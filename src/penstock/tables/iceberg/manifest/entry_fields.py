"""What an entry of a manifest has: Iceberg's field ids, and the names and types that the fields have here.

`partition` is not in the list: its type is another one for every spec.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from penstock.formats.manifest_record import ManifestRecord

FIRST_PARTITION_ID = 1000
NAMES = {
    0: "status",
    1: "snapshot_id",
    3: "sequence_number",
    4: "file_sequence_number",
    134: "content",
    100: "file_path",
    101: "file_format",
    103: "record_count",
    104: "file_size_in_bytes",
    109: "value_counts",
    110: "null_value_counts",
    137: "nan_value_counts",
    125: "lower_bounds",
    128: "upper_bounds",
    131: "key_metadata",
    132: "split_offsets",
    135: "equality_ids",
    140: "sort_order_id",
    142: "first_row_id",
    143: "referenced_data_file",
    144: "content_offset",
    145: "content_size_in_bytes",
}
COUNTS = pa.list_(pa.struct([("key", pa.int32()), ("value", pa.int64())]))
BOUNDS = pa.list_(pa.struct([("key", pa.int32()), ("value", pa.binary())]))
COLUMNS: Mapping[str, pa.DataType] = {
    "status": pa.int8(),
    "snapshot_id": pa.int64(),
    "sequence_number": pa.int64(),
    "file_sequence_number": pa.int64(),
    "content": pa.int8(),
    "file_path": pa.string(),
    "file_format": pa.string(),
    "record_count": pa.int64(),
    "file_size_in_bytes": pa.int64(),
    "value_counts": COUNTS,
    "null_value_counts": COUNTS,
    "nan_value_counts": COUNTS,
    "lower_bounds": BOUNDS,
    "upper_bounds": BOUNDS,
    "equality_ids": pa.list_(pa.int32()),
    "split_offsets": pa.list_(pa.int64()),
    "sort_order_id": pa.int32(),
    "key_metadata": pa.binary(),
    "first_row_id": pa.int64(),
    "referenced_data_file": pa.string(),
    "content_offset": pa.int64(),
    "content_size_in_bytes": pa.int64(),
    **dict.fromkeys(ManifestRecord._fields, pa.string()),
}
