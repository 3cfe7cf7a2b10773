"""A number for each row of a table, the same for rows with the same values, nested ones included.

NULL equals NULL and NaN equals NaN; 0.0 and -0.0 differ, as they do in a file. Maps with the same entries are the same,
whatever the order of the entries.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Codes = npt.NDArray[np.int64]
_MOST = 1 << 62


def row_keys(rows: pa.Table) -> Codes:
    """A number for each row.

    >>> row_keys(pa.table({"a": [1, None, 1], "b": [[1.0], [], [1.0]]})).tolist()
    [1, 0, 1]
    """
    codes = _combined((_column_codes(column) for column in rows.columns), rows.num_rows)
    return np.asarray(np.unique(codes, return_inverse=True)[1], np.int64)


def _column_codes(column: pa.ChunkedArray) -> Codes:
    """Chunk by chunk where values are plain: text of more than 2 GB does not fit into one array."""
    if _is_plain(column.type):
        encoded = column.dictionary_encode().unify_dictionaries()
        parts = [np.asarray(chunk.indices.fill_null(-1), np.int64) + 1 for chunk in encoded.chunks]
        return np.concatenate([np.zeros(0, np.int64), *parts])
    return _codes(pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type))


def _is_plain(t: pa.DataType) -> bool:
    is_odd = pa.types.is_floating(t) or pa.types.is_null(t) or isinstance(t, pa.BaseExtensionType)
    return not (pa.types.is_nested(t) or is_odd)


def _codes(array: pa.Array) -> Codes:
    if isinstance(array.type, pa.BaseExtensionType):
        return _codes(array.storage)
    if pa.types.is_null(array.type):
        return np.zeros(len(array), np.int64)
    if pa.types.is_floating(array.type):
        return _codes(_bits(array))
    if pa.types.is_struct(array.type):
        return _combined([_valid(array), *map(_codes, array.flatten())], len(array))
    if pa.types.is_map(array.type):
        return _map_codes(array)
    if pa.types.is_nested(array.type):
        return _sequence_codes(_codes(array.flatten()), _lengths(array), _valid(array))
    return np.asarray(array.dictionary_encode(null_encoding="encode").indices, np.int64)


def _bits(array: pa.Array) -> pa.Array:
    """Floats as the integers with their bits, so that all NaN are one value."""
    width = {pa.float16(): np.int16, pa.float32(): np.int32, pa.float64(): np.int64}[array.type]
    known = pc.fill_null(array, 0.0) if array.null_count else array
    values = np.array(known.to_numpy(zero_copy_only=False))
    values[np.isnan(values)] = np.nan
    return pa.array(values.view(width), mask=np.asarray(array.is_null()))


def _map_codes(array: pa.MapArray) -> Codes:
    """Maps as sequences of their entries, each row's in the order of the entries' numbers."""
    lists = array.cast(pa.list_(pa.struct([("key", array.type.key_type), ("value", array.type.item_type)])))
    lengths = _lengths(lists)
    entries = _codes(lists.flatten())
    rows = np.repeat(np.arange(len(array)), lengths)
    return _sequence_codes(entries[np.lexsort((entries, rows))], lengths, _valid(array))


def _sequence_codes(items: Codes, lengths: Codes, valid: Codes) -> Codes:
    """Numbers of sequences: those of their items, one behind the other, are bytes that Arrow tells apart."""
    ends = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64) * items.itemsize
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(np.ascontiguousarray(items))]
    texts = pa.Array.from_buffers(pa.large_binary(), len(lengths), buffers)
    return _combined([valid, np.asarray(texts.dictionary_encode().indices, np.int64)], len(lengths))


def _lengths(array: pa.Array) -> Codes:
    return np.asarray(pc.fill_null(pc.list_value_length(array), 0), np.int64)


def _valid(array: pa.Array) -> Codes:
    return np.asarray(array.is_valid().to_numpy(zero_copy_only=False), np.int64)


def _combined(columns: Iterable[Codes], count: int) -> Codes:
    """Numbers of tuples of numbers."""
    codes = np.zeros(count, np.int64)
    for column in columns:
        size = int(column.max(initial=0)) + 1
        if codes.max(initial=0) > _MOST // size:
            codes = np.asarray(np.unique(codes, return_inverse=True)[1], np.int64)
        codes = codes * size + column
    return codes
