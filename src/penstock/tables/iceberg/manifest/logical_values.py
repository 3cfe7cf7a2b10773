"""Which logical values a file holds: the text that a manifest entry carries, and the fact that is made of it.

    {"complete": true, "columns": [2, 7], "tuples": [["shop", "2026-05-17"], ["blog", null]], "rows": [20, 3]}

Columns are field ids, values are written as Iceberg's specification writes single values in JSON. The tuples are all
combinations that occur in the file's rows if `complete` says so; otherwise there may be others. `rows`, which may be
missing, counts the rows of each tuple. A text that is missing, damaged, or about a column that is no more, says
nothing: such a file is kept.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple
from uuid import UUID

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from penstock.expr.kernels.python_values import from_arrow, to_arrow
from penstock.prune.facts import Tuples
from penstock.tables.iceberg.metadata.schema_columns import Columns

Ids = tuple[int, ...]
_COUNT, _QUOTED, _OTHER = 10, 4, 20  # bytes of a count, of what is around a text, of any other value


class Told(NamedTuple):
    """One text that is complete: the columns, the tuples, and the rows of each, where it says them."""

    ids: Ids
    tuples: list[list[Any]]
    rows: list[int] | None


class Logical(NamedTuple):
    """What the texts of a batch say of one set of columns: a fact, and the rows of each of its tuples.

    `counted` marks the files that say their rows; the others have 0 for each tuple.
    """

    ids: Ids
    fact: Tuples
    rows: npt.NDArray[np.int64]
    counted: npt.NDArray[np.bool_]


def encode_logical(
    ids: Sequence[int],
    kinds: Sequence[Any],
    tuples: Iterable[Sequence[Any]],
    complete: bool = True,
    rows: Sequence[int] | None = None,
) -> str:
    """The text for a file; values are Python's, of Iceberg's types `kinds`; `rows` counts those of each tuple."""
    from pyiceberg.conversions import to_json

    written = [[None if v is None else to_json(k, v) for k, v in zip(kinds, t, strict=True)] for t in tuples]
    told: dict[str, Any] = {"complete": complete, "columns": list(ids), "tuples": written}
    if rows is not None:
        told["rows"] = list(rows)
    return json.dumps(told, ensure_ascii=False)


def record_size(values: Sequence[Any]) -> int:
    """About how many bytes one tuple, with its count of rows, takes in a text."""
    return _COUNT + sum(_size(value) for value in values)


def _size(value: Any) -> int:
    match value:
        case str():
            return len(value.encode()) + _QUOTED
        case bytes():
            return 2 * len(value) + _QUOTED
        case _:
            return _OTHER


def logical_facts(texts: pa.Array, columns: Columns) -> list[Tuples]:
    """What the texts of a batch of files say: one fact for each set of columns that they are about."""
    return [logical.fact for logical in read_logical(texts, columns)]


def read_logical(texts: pa.Array, columns: Columns) -> list[Logical]:
    """The same with the rows of each tuple."""
    if texts.null_count == len(texts):
        return []
    read = [None if text is None else _read(text) for text in texts.to_pylist()]
    sets = dict.fromkeys(told.ids for told in read if told is not None)
    return [_logical(ids, read, columns) for ids in sets if all(i in columns.by_id for i in ids)]


def _read(text: str) -> Told | None:
    """What a complete text says; None for any other."""
    try:
        found = json.loads(text)
        ids, tuples = tuple(found["columns"]), found["tuples"]
        whole = found["complete"] is True and ids and all(len(t) == len(ids) for t in tuples)
        if not whole or not all(isinstance(i, int) for i in ids):
            return None
        return Told(ids, tuples, _counts(found.get("rows"), len(tuples)))
    except (ValueError, KeyError, TypeError):
        return None


def _counts(rows: Any, tuples: int) -> list[int] | None:
    """The rows of each tuple; None where they are not told, or not as counts."""
    if not isinstance(rows, list) or len(rows) != tuples:
        return None
    return rows if all(type(count) is int and 0 <= count < 1 << 62 for count in rows) else None


def _logical(ids: Ids, read: Sequence[Told | None], columns: Columns) -> Logical:
    terms = tuple(columns.by_id[i] for i in ids)
    kinds = [columns.schema.find_field(i).field_type for i in ids]
    types = [term.type for term in terms]
    own = [told if told is not None and told.ids == ids else None for told in read]
    decoded = [None if told is None else _decoded(told.tuples, kinds, types) for told in own]
    offsets = np.cumsum([0, *(0 if arrays is None else len(arrays[0]) for arrays in decoded)], dtype=np.int64)
    parts = [arrays for arrays in decoded if arrays is not None]
    joined = tuple(pa.concat_arrays([pa.array([], t), *(arrays[i] for arrays in parts)]) for i, t in enumerate(types))
    fact = Tuples(terms, joined, offsets, np.array([arrays is not None for arrays in decoded], np.bool_))
    known = [told for told, arrays in zip(own, decoded, strict=True) if told is not None and arrays is not None]
    rows = [np.array([0] * len(told.tuples) if told.rows is None else told.rows, np.int64) for told in known]
    counted = [
        told is not None and arrays is not None and told.rows is not None
        for told, arrays in zip(own, decoded, strict=True)
    ]
    return Logical(ids, fact, np.concatenate([np.array([], np.int64), *rows]), np.array(counted, np.bool_))


def _decoded(tuples: list[list[Any]], kinds: Sequence[Any], types: Sequence[Any]) -> list[pa.Array] | None:
    """The tuples of one file as columns; None where a value is none of its type: then nothing is known."""
    from pyiceberg.conversions import from_json

    try:
        return [
            _array([None if values[i] is None else from_json(kind, values[i]) for values in tuples], t)
            for i, (kind, t) in enumerate(zip(kinds, types, strict=True))
        ]
    except Exception:  # PyIceberg and Arrow each have their own for it
        return None


def _array(values: list[Any], to: pa.DataType | None) -> pa.Array:
    """Values as PyIceberg has them: dates and times are numbers or Python's own."""
    plain = [str(value) if isinstance(value, UUID) else value for value in values]
    numbers = all(value is None or isinstance(value, int) for value in plain)
    return to_arrow(plain, to) if numbers else to_arrow(from_arrow(pa.array(plain, to)), to)
