"""What footers prove: bounds only where every row group with values tells them, and none that could lose a row."""

from __future__ import annotations

import io
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.formats.parquet_footer import Leaf, LeafFacts, footer_facts, leaves_of


def facts_of(values: pa.Array, **options: Any) -> LeafFacts:
    sink = io.BytesIO()
    pq.write_table(pa.table({"c": values}), sink, **options)
    return footer_facts(pq.read_metadata(sink), leaves_of(pa.schema([("c", values.type)]))).leaves[0]


def chunk(low: Any, high: Any, nulls: int | None = 0, values: int = 4, *, has: bool = True) -> Any:
    statistics = SimpleNamespace(
        has_null_count=nulls is not None,
        null_count=nulls or 0,
        physical_type="INT64",
        min=low,
        max=high,
    )
    return SimpleNamespace(total_compressed_size=10, num_values=values, is_stats_set=has, statistics=statistics)


def of_chunks(*chunks: Any) -> LeafFacts:
    class Footer:
        num_row_groups, num_rows = len(chunks), sum(each.num_values for each in chunks)

        def row_group(self, i: int) -> Any:
            start = SimpleNamespace(data_page_offset=4, dictionary_page_offset=None, has_dictionary_page=False)
            return SimpleNamespace(column=lambda _: SimpleNamespace(**{**vars(chunks[i]), **vars(start)}))

    return footer_facts(Footer(), [Leaf(pa.int64())]).leaves[0]


def number(bound: bytes | None) -> int | None:
    return None if bound is None else int.from_bytes(bound, "little", signed=True)


@pytest.mark.parametrize(
    ("chunks", "nulls", "bounds"),
    [
        ([chunk(1, 2), chunk(-5, 0, 1)], 1, (-5, 2)),
        ([chunk(1, 2), chunk(None, None, 4)], 4, (1, 2)),
        ([chunk(1, 2), chunk(None, None, 3)], 3, (None, None)),
        ([chunk(1, 2), chunk(3, 4, None)], None, (None, None)),
        ([chunk(1, 2), chunk(3, 4, has=False)], None, (None, None)),
        ([chunk(None, None, 4)], 4, (None, None)),
    ],
)
def test_one_row_group_that_tells_nothing_takes_the_bounds(
    chunks: list[Any], nulls: int | None, bounds: tuple[int | None, int | None]
) -> None:
    found = of_chunks(*chunks)
    assert (found.values, found.nulls) == (4 * len(chunks), nulls)
    assert (number(found.lower), number(found.upper)) == bounds


def test_floats_have_a_lower_bound_alone_and_zero_stands_for_both() -> None:
    found = facts_of(pa.array([0.0, 3.0, float("nan")]))
    assert (found.lower, found.upper) == (b"\0\0\0\0\0\0\0\x80", None)
    assert facts_of(pa.array([float("nan")])).lower is None


def test_texts_are_cut_so_that_they_still_bound() -> None:
    found = facts_of(pa.array(["b" * 20, "\U0010ffff" * 20, "a" * 20]))
    assert (found.lower, found.upper) == (b"a" * 16, None)
    found = facts_of(pa.array(["ab" * 20]))
    assert (found.lower, found.upper) == (b"ab" * 8, b"ab" * 7 + b"ac")


def test_what_is_not_believed_has_counts_alone() -> None:
    moments = pa.array([0, 10**15, None], pa.timestamp("us", "UTC"))
    assert facts_of(moments).lower is not None
    old = facts_of(moments, use_deprecated_int96_timestamps=True)
    assert (old.values, old.lower, old.upper) == (3, None, None)
    far = facts_of(pa.array([0, 1 << 62], pa.timestamp("us")))
    assert (far.nulls, far.lower, far.upper) == (0, None, None)
    assert facts_of(pa.array([1, 2]), write_statistics=False)[1:] == (2, None, None, None)


@pytest.mark.parametrize("as_integer", [True, False])
@pytest.mark.parametrize("precision", [9, 18, 38])
def test_decimals_of_all_widths_have_bounds(precision: int, as_integer: bool) -> None:
    values = pa.array([Decimal("-12.34"), Decimal("5.00")], pa.decimal128(precision, 2))
    found = facts_of(values, store_decimal_as_integer=as_integer)
    ends = [int.from_bytes(bound or b"", "big", signed=True) for bound in (found.lower, found.upper)]
    assert ends == [-1234, 500]


def test_columns_in_lists_and_maps_have_sizes_and_those_in_structs_have_bounds() -> None:
    kind = pa.struct([("a", pa.int64()), ("l", pa.list_(pa.int64())), ("m", pa.map_(pa.string(), pa.int64()))])
    values = pa.array([{"a": 1, "l": [5, 6], "m": [("k", 9)]}, None], kind)
    sink = io.BytesIO()
    pq.write_table(pa.table({"s": values}), sink)
    leaves = leaves_of(pa.schema([("s", kind)]))
    found = footer_facts(pq.read_metadata(sink), leaves)
    assert [leaf.is_repeated for leaf in leaves] == [False, True, True, True]
    assert [each.values for each in found.leaves] == [2, None, None, None]
    assert (found.leaves[0].nulls, number(found.leaves[0].upper)) == (1, 1)
    assert all(each.size > 0 for each in found.leaves)
