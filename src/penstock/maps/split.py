"""A column of maps into the values of hot keys and the rest: whole columns at a time, no row is looked at by itself.

A value that is not null leaves the map; a null value stays in it, so that a key that is there without a value and a key
that is not there remain different. The value of a key is that of its last entry in a row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from penstock.errors import SchemaError

_TWICE = "remove one, or set parquet.map.shredding.duplicates to last-wins; nothing was written"


@dataclass(frozen=True)
class Split:
    """The rest of the maps, and for each hot key its values and in how many rows it is there without one."""

    residual: pa.Array
    values: tuple[pa.Array, ...]
    explicit_nulls: tuple[int, ...]
    null_maps: int


@dataclass(frozen=True)
class Entries:
    """The entries of an array of maps, without those that lie outside of it, and where each row's begin."""

    offsets: npt.NDArray[np.int64]
    keys: pa.Array
    items: pa.Array

    @property
    def rows(self) -> npt.NDArray[np.int64]:
        """The row of each entry."""
        return np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))


def entries_of(maps: pa.Array) -> Entries:
    """The entries of maps; a null map has none, whatever lies in its place."""
    offsets = np.asarray(maps.offsets, np.int64)
    keys, items = maps.keys, maps.items
    if maps.null_count:
        lengths = np.diff(offsets)
        gone = np.asarray(maps.is_null())
        if lengths[gone].any():
            kept = np.repeat(~gone, lengths)
            first, last = int(offsets[0]), int(offsets[-1])
            keys, items = (part.slice(first, last - first).filter(pa.array(kept)) for part in (keys, items))
            return Entries(np.concatenate([[0], np.cumsum(np.where(gone, 0, lengths))]), keys, items)
    first, last = int(offsets[0]), int(offsets[-1])
    return Entries(offsets - first, keys.slice(first, last - first), items.slice(first, last - first))


def build_maps(
    like: pa.DataType, offsets: npt.NDArray[np.int64], keys: pa.Array, items: pa.Array, null: Any
) -> pa.Array:
    """An array of maps of a type, field ids included; `null` marks the rows without a map."""
    if len(keys) > np.iinfo(np.int32).max:
        raise SchemaError("there are more than 2^31 map entries in one batch", hint="write fewer rows at once")
    entries = pa.StructArray.from_arrays([keys, items], fields=[like.key_field, like.item_field])
    validity = None if not null.any() else pa.array(~null).buffers()[1]
    buffers = [validity, pa.py_buffer(np.ascontiguousarray(offsets, np.int32))]
    return pa.Array.from_buffers(like, len(offsets) - 1, buffers, int(null.sum()), children=[entries])


def split(maps: pa.Array, keys: Sequence[str], *, mirror: bool = False, last_wins: bool = False) -> Split:
    """Take the values of some keys out of maps, or, with `mirror`, copy them.

    A row that has one of the keys twice is an error, unless the last entry is to win.
    """
    entries = entries_of(maps)
    codes = _codes(entries.keys, keys)
    hits = np.flatnonzero(codes >= 0)
    hits = hits[np.argsort(codes[hits], kind="stable")]  # those of the first key first, each in the order of rows
    rows_of_hits = entries.rows[hits]
    edges = np.searchsorted(codes[hits], np.arange(len(keys) + 1))
    is_null = np.asarray(entries.items.is_null()) if entries.items.null_count else None
    kept = codes < 0
    values, nulls = [], []
    for key, start, end in zip(keys, edges[:-1], edges[1:], strict=True):
        places, rows = hits[start:end], rows_of_hits[start:end]
        apart = np.diff(rows) > 0
        if not apart.all():
            if not last_wins:
                raise SchemaError(f"a row has the key {key!r} of a shredded map twice", hint=_TWICE)
            last = np.append(apart, True)
            places, rows = places[last], rows[last]
        at = np.full(len(maps), -1, np.int32)
        at[rows] = places
        values.append(entries.items.take(pa.array(at, mask=at < 0)))
        explicit = places[:0] if is_null is None else places[is_null[places]]
        kept[explicit] = True
        nulls.append(len(explicit))
    if mirror:
        return Split(maps, tuple(values), tuple(nulls), maps.null_count)
    residual = _filtered(maps, entries, kept)
    return Split(residual, tuple(values), tuple(nulls), maps.null_count)


def _codes(keys: pa.Array, hot: Sequence[str]) -> npt.NDArray[np.signedinteger]:
    """For each entry which of the hot keys it has; -1 for none. Small numbers are sorted fastest."""
    positions = pc.index_in(keys, value_set=pa.array(list(hot), keys.type))
    return np.asarray(positions.fill_null(-1)).astype(np.int16 if len(hot) < 1 << 15 else np.int32)


def _filtered(maps: pa.Array, entries: Entries, kept: npt.NDArray[np.bool_]) -> pa.Array:
    """Maps with some of their entries only."""
    if kept.all() and not maps.offset:
        return maps
    before = np.concatenate([[0], np.cumsum(kept)])
    mask = pa.array(kept)
    null = np.asarray(maps.is_null())
    return build_maps(maps.type, before[entries.offsets], entries.keys.filter(mask), entries.items.filter(mask), null)
