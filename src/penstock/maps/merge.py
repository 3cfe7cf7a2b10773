"""Maps out of what they were split into, and single keys without building them: whole columns at a time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.maps.split import build_maps, entries_of


def merge(residual: pa.Array, keys: Sequence[str], values: Sequence[pa.Array], *, trusted: bool = False) -> pa.Array:
    """Maps with the entries of `residual` and those of each key where its value is not null.

    A key that the residual has too is the sidecar's there, and a null map beside a value is an empty one: other writers
    may leave it so. `trusted` says that neither occurs.
    """
    if not keys:
        return residual
    entries = entries_of(residual)
    has = [np.asarray(column.is_valid()) for column in values]
    present = np.stack(has) if has else np.zeros((0, len(residual)), np.bool_)
    null = np.asarray(residual.is_null())
    if not trusted:
        null &= ~present.any(axis=0)
    offsets, own_keys, own_items = entries.offsets, entries.keys, entries.items
    kept = None if trusted else _unshadowed(own_keys, entries.rows, keys, present)
    if kept is not None:
        offsets = np.concatenate([[0], np.cumsum(kept)])[offsets]
        own_keys, own_items = own_keys.filter(pa.array(kept)), own_items.filter(pa.array(kept))
    lengths = np.diff(offsets)
    rank = np.cumsum(present, axis=0) - present  # how many sidecars come before, in each row
    ends = np.concatenate([[0], np.cumsum(lengths + present.sum(axis=0))])
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
    at = np.full(len(maps), -1, np.int64)
    at[entries.rows[places]] = places
    return entries.items.take(pa.array(at, mask=at < 0))


def first_known(value: pa.Array, otherwise: pa.Array) -> pa.Array:
    """A sidecar's value, or else the map's."""
    value = value.cast(otherwise.type)
    if isinstance(value.type, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(value.type, pc.coalesce(value.storage, otherwise.storage))
    return pc.coalesce(value, otherwise)


def _unshadowed(own: pa.Array, rows: np.ndarray, keys: Sequence[str], present: np.ndarray) -> np.ndarray | None:
    """Which entries of the residual are not a sidecar's; None when all are."""
    codes = np.asarray(pc.index_in(own, value_set=pa.array(list(keys), own.type)).fill_null(-1), np.int64)
    shadowed = (codes >= 0) & present[codes, rows]
    return ~shadowed if shadowed.any() else None
