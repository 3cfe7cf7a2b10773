"""A file that was adopted, as a manifest has it: its counts and bounds by the ids and types of the table."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

from pyiceberg.types import DoubleType, IcebergType, LongType

from penstock.lake.adopt.adopted_footers import Footer
from penstock.lake.layout.table_layout import Tuple
from penstock.lake.write.data_files import WrittenFile

_NARROW = 4  # bytes of an int or a float


def written_file(
    footer: Footer, ids: Sequence[tuple[int, IcebergType] | None], spec_id: int, partition: Tuple
) -> WrittenFile:
    """The file of a footer; `ids` has of each of its columns the id and the type that the table has for it.

    The number of NaN is not known, and is left out.
    """
    statistics: dict[str, Any] = {"record_count": footer.facts.rows, "split_offsets": footer.facts.offsets}
    for name in ("column_sizes", "value_counts", "null_value_counts", "lower_bounds", "upper_bounds"):
        statistics[name] = {}
    for own, facts in zip(ids, footer.facts.leaves, strict=True):
        if own is None:
            continue
        field_id, kind = own
        known = {
            "column_sizes": facts.size,
            "value_counts": facts.values,
            "null_value_counts": facts.nulls,
            "lower_bounds": _as_wide(facts.lower, kind),
            "upper_bounds": _as_wide(facts.upper, kind),
        }
        for name, value in known.items():
            if value is not None:
                statistics[name][field_id] = value
    statistics["nan_value_counts"] = {}
    return WrittenFile(footer.file.url, spec_id, partition, footer.file.bytes, statistics, logical=[partition])


def _as_wide(bound: bytes | None, kind: IcebergType) -> bytes | None:
    """A bound of a narrower type as one of the table's.

    >>> _as_wide(bytes.fromhex("ffffffff"), LongType()), _as_wide(b"", LongType())
    (b'\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\xff', b'')
    """
    if bound is None or len(bound) != _NARROW:
        return bound
    match kind:
        case LongType():
            return int.from_bytes(bound, "little", signed=True).to_bytes(8, "little", signed=True)
        case DoubleType():
            return struct.pack("<d", *struct.unpack("<f", bound))
    return bound
