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
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa

from penstock.predicate.values import from_arrow, to_arrow
from penstock.prune.facts import Tuples
from penstock.tables.iceberg.columns import Columns

Ids = tuple[int, ...]


def encode_logical(
    ids: Sequence[int],
    kinds: Sequence[Any],
    tuples: Iterable[Sequence[Any]],
    complete: bool,
    rows: Sequence[int] | None = None,
) -> str:
    """The text for a file; values are Python's, of Iceberg's types `kinds`; `rows` counts those of each tuple."""
    from pyiceberg.conversions import to_json

    written = [[None if v is None else to_json(k, v) for k, v in zip(kinds, t, strict=True)] for t in tuples]
    told = {"complete": complete, "columns": list(ids), "tuples": written}
    return json.dumps(told if rows is None else {**told, "rows": list(rows)}, ensure_ascii=False)


def logical_facts(texts: pa.Array, columns: Columns) -> list[Tuples]:
    """What the texts of a batch of files say: one fact for each set of columns that they are about."""
    if texts.null_count == len(texts):
        return []
    read = [None if text is None else _read(text) for text in texts.to_pylist()]
    sets = dict.fromkeys(ids for ids, _ in filter(None, read))
    return [_fact(ids, read, columns) for ids in sets if all(i in columns.by_id for i in ids)]


def _read(text: str) -> tuple[Ids, list[list[Any]]] | None:
    """Columns and tuples of a complete text; None for any other."""
    try:
        found = json.loads(text)
        ids, tuples = tuple(found["columns"]), found["tuples"]
        whole = found["complete"] is True and ids and all(len(t) == len(ids) for t in tuples)
        return (ids, tuples) if whole and all(isinstance(i, int) for i in ids) else None
    except (ValueError, KeyError, TypeError):
        return None


def _fact(ids: Ids, read: Sequence[tuple[Ids, list[list[Any]]] | None], columns: Columns) -> Tuples:
    terms = tuple(columns.by_id[i] for i in ids)
    kinds = [columns.schema.find_field(i).field_type for i in ids]
    types = [term.type for term in terms]
    decoded = [_decoded(found[1], kinds, types) if found is not None and found[0] == ids else None for found in read]
    offsets = np.cumsum([0, *(0 if arrays is None else len(arrays[0]) for arrays in decoded)], dtype=np.int64)
    parts = [arrays for arrays in decoded if arrays is not None]
    joined = tuple(pa.concat_arrays([pa.array([], t), *(arrays[i] for arrays in parts)]) for i, t in enumerate(types))
    return Tuples(terms, joined, offsets, np.array([arrays is not None for arrays in decoded], np.bool_))


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
