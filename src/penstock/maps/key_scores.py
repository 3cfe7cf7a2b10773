"""Which keys of a map are worth a column: those that many rows have, and that take much of the map with them.

A key that fewer than one row in twenty has stays in the map: its column would be mostly null. Of the others those come
first that have the most bytes, key and value together: so much less is read when the map is. A key that was chosen
before stays as long as one row in forty has it, so that files do not differ without need.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.maps.map_entries import entries_of

SAMPLE = 20_000  # rows
_OFTEN, _STILL = 1 / 20, 1 / 40


@dataclass(frozen=True)
class KeyUse:
    """One key in a sample of maps: the rows that have it, and the bytes of it and of its values."""

    key: str
    rows: int
    bytes: int


def key_uses(maps: pa.Array) -> list[KeyUse]:
    """The keys of maps, those with the most bytes first."""
    entries = entries_of(maps)
    if not len(entries.keys):
        return []
    encoded = entries.keys.cast(pa.string()).dictionary_encode()
    codes = np.asarray(encoded.indices)
    sizes = _sizes(entries.items)
    keys = encoded.dictionary
    rows = np.bincount(codes, minlength=len(keys))
    own = np.bincount(codes, weights=sizes, minlength=len(keys))
    lengths = np.asarray(pc.binary_length(keys), np.int64)
    uses = [
        KeyUse(key, int(count), int(size + count * length))
        for key, count, size, length in zip(keys.to_pylist(), rows, own, lengths, strict=True)
    ]
    return sorted(uses, key=lambda use: (-use.bytes, use.key))


def choose(uses: Sequence[KeyUse], rows: int, most: int, before: Sequence[str] = ()) -> list[str]:
    """At most so many keys, in a fixed order: those chosen before that are still in use, then the best of the rest."""
    by_key = {use.key: use for use in uses}
    stay = [key for key in before if key in by_key and by_key[key].rows >= rows * _STILL]
    new = [use.key for use in uses if use.rows >= rows * _OFTEN and use.key not in stay]
    return [*stay, *sorted(new[: max(0, most - len(stay))])][:most]


def _sizes(items: pa.Array) -> np.ndarray:
    """The bytes of each value."""
    stored = items.storage if isinstance(items.type, pa.BaseExtensionType) else items
    try:
        return np.full(len(stored), max(1, stored.type.bit_width // 8), np.float64)
    except ValueError:  # their lengths differ
        lengths = pc.binary_length(stored.cast(pa.large_binary()))
        return np.asarray(pc.fill_null(lengths, 0), np.float64)
