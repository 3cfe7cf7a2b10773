"""What the footer of a Parquet file that somebody else has written proves of its columns.

Bounds are promises: an engine that skips a file by a wrong one loses rows. So a bound is taken only when every row
group that has values tells it:

| the footer | what is taken |
|---|---|
| has no statistics of a row group, or no minimum and maximum | no bounds |
| has no null count of a row group | no null count, and no bounds |
| has statistics of INT96 | the null count: writers order its bytes in different ways |
| has statistics of a float | the lower bound: writers leave NaN out, which Spark takes for larger than every number |
| has a value that Python cannot hold, or that is not UTF-8 | no bounds |
| has statistics of a column in a list or a map | its size alone |

>>> import io, pyarrow as pa, pyarrow.parquet as pq
>>> pq.write_table(pa.table({"id": pa.array([3, None, 1], pa.int32())}), sink := io.BytesIO())
>>> facts = footer_facts(pq.read_metadata(sink), [Leaf(pa.int32())])
>>> facts.rows, facts.leaves[0].nulls, facts.leaves[0].lower, facts.leaves[0].upper
(3, 1, b'\\x01\\x00\\x00\\x00', b'\\x03\\x00\\x00\\x00')
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from decimal import DecimalException
from functools import lru_cache
from typing import Any, NamedTuple

import pyarrow as pa

_UNUSABLE = (ValueError, TypeError, ArithmeticError, DecimalException, struct.error, pa.ArrowException)
_LONGEST = 16  # characters of a text, as Iceberg's writers cut bounds


class Leaf(NamedTuple):
    """A column of a Parquet file, one field without parts: its type, and whether it lies in a list or a map."""

    type: pa.DataType
    is_repeated: bool = False


class LeafFacts(NamedTuple):
    """What is known of one column; None where it is not."""

    size: int
    values: int | None = None
    nulls: int | None = None
    lower: bytes | None = None
    upper: bytes | None = None


class FooterFacts(NamedTuple):
    """What is known of one file, its columns in their order."""

    rows: int
    offsets: list[int]
    leaves: list[LeafFacts]


def leaves_of(schema: pa.Schema) -> list[Leaf]:
    """The columns that a Parquet file has for Arrow's, in their order."""
    return [leaf for field in schema for leaf in _leaves(field.type, False)]


def footer_facts(footer: Any, leaves: Sequence[Leaf]) -> FooterFacts:
    """What a footer, as `pyarrow.parquet` has it, proves of a file with these columns."""
    groups = [footer.row_group(i) for i in range(footer.num_row_groups)]
    offsets = sorted(_start(group.column(0)) for group in groups) if leaves else []
    facts = [_facts([group.column(i) for group in groups], leaf) for i, leaf in enumerate(leaves)]
    return FooterFacts(int(footer.num_rows), offsets, facts)


def _leaves(kind: pa.DataType, is_repeated: bool) -> Iterator[Leaf]:
    if not kind.num_fields:
        yield Leaf(kind, is_repeated)
    is_repeated = is_repeated or not pa.types.is_struct(kind)
    for i in range(kind.num_fields):
        part = kind.field(i).type
        # The entries of a map are a struct of its keys and values.
        yield from _leaves(part, is_repeated)


def _start(chunk: Any) -> int:
    first, dictionary = chunk.data_page_offset, chunk.dictionary_page_offset
    return int(dictionary if chunk.has_dictionary_page and dictionary < first else first)


def _facts(chunks: Sequence[Any], leaf: Leaf) -> LeafFacts:
    size = sum(chunk.total_compressed_size for chunk in chunks)
    if leaf.is_repeated:
        return LeafFacts(size)
    values = sum(chunk.num_values for chunk in chunks)
    statistics: list[Any] = [chunk.statistics for chunk in chunks if chunk.is_stats_set]
    if len(statistics) < len(chunks) or not all(each.has_null_count for each in statistics):
        return LeafFacts(size, values)
    nulls = sum(each.null_count for each in statistics)
    with_values = [s for s, c in zip(statistics, chunks, strict=True) if s.null_count < c.num_values]
    if not with_values or any(each.physical_type == "INT96" for each in with_values):
        return LeafFacts(size, values, nulls)
    try:
        return LeafFacts(size, values, nulls, *_bounds(with_values, leaf.type))
    except _UNUSABLE:
        return LeafFacts(size, values, nulls)


def _bounds(statistics: Sequence[Any], kind: pa.DataType) -> tuple[bytes | None, bytes | None]:
    from pyiceberg.io.pyarrow import StatsAggregator
    from pyiceberg.utils.decimal import unscaled_to_decimal

    is_cut = pa.types.is_string(kind) or pa.types.is_binary(kind)
    ends = StatsAggregator(_iceberg_type(kind), statistics[0].physical_type, _LONGEST if is_cut else None)
    for each in statistics:
        low, high = each.min, each.max
        if pa.types.is_decimal(kind) and each.physical_type != "FIXED_LEN_BYTE_ARRAY":
            low, high = (unscaled_to_decimal(raw, kind.scale) for raw in (each.min_raw, each.max_raw))
        if low is None or high is None or low != low:  # there is none, or it is NaN
            return None, None
        ends.update_min(low)
        ends.update_max(high)
    if pa.types.is_floating(kind):
        ends.current_min = ends.current_min or -0.0  # a zero bound stands for both zeros
        return ends.min_as_bytes(), None
    return ends.min_as_bytes(), _upper(ends)


def _upper(ends: Any) -> bytes | None:
    try:
        upper: bytes | None = ends.max_as_bytes()
    except UnicodeEncodeError:  # the last character that was left has no next one: no bound
        return None
    return upper


@lru_cache(1_000)
def _iceberg_type(kind: pa.DataType) -> Any:
    from pyiceberg.io.pyarrow import pyarrow_to_schema
    from pyiceberg.table.name_mapping import MappedField, NameMapping

    mapping = NameMapping([MappedField(field_id=1, names=["c"])])  # type: ignore[call-arg]
    return pyarrow_to_schema(pa.schema([("c", kind)]), mapping).fields[0].field_type
