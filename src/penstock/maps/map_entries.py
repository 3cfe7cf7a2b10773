"""Maps are split into the values of hot keys and the rest, and merged again: whole columns, no row by itself.

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

    def filter(self, kept: npt.NDArray[np.bool_]) -> Entries:
        """Some of the entries."""
        mask = pa.array(kept)
        return Entries(_ends(kept)[self.offsets], self.keys.filter(mask), self.items.filter(mask))


def _ends(lengths: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Where what has these lengths ends, one behind the other, and before it 0."""
    return np.concatenate([[0], np.cumsum(lengths)])


def entries_of(maps: pa.Array) -> Entries:
    """The entries of maps; a null map has none, whatever lies in its place."""
    offsets = np.asarray(maps.offsets, np.int64)
    first, length = int(offsets[0]), int(offsets[-1] - offsets[0])
    entries = Entries(offsets - first, maps.keys.slice(first, length), maps.items.slice(first, length))
    if not maps.null_count:
        return entries
    lengths, null = np.diff(offsets), np.asarray(maps.is_null())
    return entries.filter(np.repeat(~null, lengths)) if lengths[null].any() else entries


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
        values.append(_by_row(entries.items, places, rows, len(maps)))
        explicit = places[:0] if is_null is None else places[is_null[places]]
        kept[explicit] = True
        nulls.append(len(explicit))
    if mirror:
        return Split(maps, tuple(values), tuple(nulls), maps.null_count)
    residual = maps
    if maps.offset or not kept.all():
        rest = entries.filter(kept)
        residual = build_maps(maps.type, rest.offsets, rest.keys, rest.items, np.asarray(maps.is_null()))
    return Split(residual, tuple(values), tuple(nulls), maps.null_count)


def _by_row(items: pa.Array, places: npt.NDArray[Any], rows: npt.NDArray[Any], count: int) -> pa.Array:
    """The item at a place for each of some rows, the last one where there are several; null for all other rows."""
    at = np.full(count, -1, np.int32)
    at[rows] = places
    return items.take(pa.array(at, mask=at < 0))


def _codes(keys: pa.Array, hot: Sequence[str]) -> npt.NDArray[np.signedinteger]:
    """For each entry which of the hot keys it has; -1 for none. Small numbers are sorted fastest."""
    positions = pc.index_in(keys, value_set=pa.array(list(hot), keys.type))
    return np.asarray(positions.fill_null(-1)).astype(np.int16 if len(hot) < 1 << 15 else np.int32)


def merge(residual: pa.Array, keys: Sequence[str], values: Sequence[pa.Array], *, trusted: bool = False) -> pa.Array:
    """Maps with the entries of `residual` and those of each key where its value is not null.

    A key that the residual has too is the sidecar's there, and a null map beside a value is an empty one: other writers
    may leave it so. `trusted` says that neither occurs.
    """
    if not keys:
        return residual
    entries = entries_of(residual)
    has = [np.asarray(column.is_valid()) for column in values]
    present = np.stack(has)
    null = np.asarray(residual.is_null())
    if not trusted:
        null &= ~present.any(axis=0)
        codes = _codes(entries.keys, keys)
        shadowed = (codes >= 0) & present[codes, entries.rows]
        entries = entries.filter(~shadowed) if shadowed.any() else entries
    offsets, own_keys, own_items = entries.offsets, entries.keys, entries.items
    lengths = np.diff(offsets)
    rank = np.cumsum(present, axis=0) - present  # how many sidecars come before, in each row
    ends = _ends(lengths + present.sum(axis=0))
    order_keys, order_items = np.empty(ends[-1], np.int64), np.empty(ends[-1], np.int64)
    places = np.arange(len(own_keys)) + np.repeat(ends[:-1] - offsets[:-1], lengths)
    order_keys[places] = order_items[places] = np.arange(len(own_keys))
    for i, mask in enumerate(has):
        rows = np.flatnonzero(mask)
        places = ends[rows] + lengths[rows] + rank[i, rows]
        order_keys[places] = len(own_keys) + i
        order_items[places] = len(own_items) + i * len(residual) + rows
    all_keys = pa.concat_arrays([own_keys, pa.array(list(keys), own_keys.type)])
    all_items = pa.concat_arrays([own_items, *(column.cast(own_items.type) for column in values)])
    taken = (all_keys.take(pa.array(order_keys)), all_items.take(pa.array(order_items)))
    return build_maps(residual.type, ends, *taken, null)


def lookup(maps: pa.Array, key: str) -> pa.Array:
    """The value of a key in each map, its last; null where it is not there."""
    entries = entries_of(maps)
    places = np.flatnonzero(np.asarray(pc.equal(entries.keys, key)))
    return _by_row(entries.items, places, entries.rows[places], len(maps))


def first_known(value: pa.Array, otherwise: pa.Array) -> pa.Array:
    """A sidecar's value, or else the map's."""
    value = value.cast(otherwise.type)
    if isinstance(value.type, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(value.type, pc.coalesce(value.storage, otherwise.storage))
    return pc.coalesce(value, otherwise)


def field_at(array: pa.Array, path: Sequence[str]) -> pa.Array:
    """A field inside structs; it is null where a struct is."""
    for name in path:
        array = array.flatten()[array.type.get_field_index(name)]
    return array


def with_field(array: pa.Array, path: Sequence[str], inner: pa.Array) -> pa.Array:
    """Structs with a field inside replaced. What lies below null structs stays: a required field has no null there."""
    if not path:
        return inner
    parts, place = [array.field(i) for i in range(array.type.num_fields)], array.type.get_field_index(path[0])
    parts[place] = with_field(parts[place], path[1:], inner)
    return pa.StructArray.from_arrays(parts, fields=list(array.type), mask=array.is_null())
