"""Which logical values files hold: facts made of what their manifest entries record (`formats/manifest_record.py`).

A text that is about a column that is no more says nothing, as one that cannot be read: such a file is kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple
from uuid import UUID

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from penstock.expr.kernels.python_values import from_arrow, to_arrow
from penstock.formats.manifest_record import LogicalTuples, read_tuples
from penstock.prune.facts import Tuples
from penstock.tables.iceberg.metadata.schema_columns import Columns

Ids = tuple[int, ...]


class Logical(NamedTuple):
    """What the texts of a batch say of one set of columns: a fact, and the rows of each of its tuples.

    `counted` marks the files that say their rows; the others have 0 for each tuple.
    """

    ids: Ids
    fact: Tuples
    rows: npt.NDArray[np.int64]
    counted: npt.NDArray[np.bool_]


def read_logical(texts: pa.Array, columns: Columns) -> list[Logical]:
    """What the texts of a batch of files say: one fact for each set of columns that they are about."""
    if texts.null_count == len(texts):
        return []
    records = [read_tuples(text) for text in texts.to_pylist()]
    sets = dict.fromkeys(record.ids for record in records if record is not None)
    return [_logical(ids, records, columns) for ids in sets if all(i in columns.by_id for i in ids)]


def _logical(ids: Ids, records: Sequence[LogicalTuples | None], columns: Columns) -> Logical:
    terms = tuple(columns.by_id[i] for i in ids)
    kinds = [columns.schema.find_field(i).field_type for i in ids]
    types = [term.type for term in terms]
    own = [record if record is not None and record.ids == ids else None for record in records]
    decoded = [None if record is None else _decoded(record.tuples, kinds, types) for record in own]
    offsets = np.cumsum([0, *(0 if arrays is None else len(arrays[0]) for arrays in decoded)], dtype=np.int64)
    parts = [arrays for arrays in decoded if arrays is not None]
    joined = tuple(pa.concat_arrays([pa.array([], t), *(arrays[i] for arrays in parts)]) for i, t in enumerate(types))
    fact = Tuples(terms, joined, offsets, np.array([arrays is not None for arrays in decoded], np.bool_))
    known = [record for record, arrays in zip(own, decoded, strict=True) if record is not None and arrays is not None]
    rows = [np.array([0] * len(record.tuples) if record.rows is None else record.rows, np.int64) for record in known]
    counted = [
        record is not None and arrays is not None and record.rows is not None
        for record, arrays in zip(own, decoded, strict=True)
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
    except (  # what PyIceberg and Arrow raise for a value that is not of its type; the file is kept then
        ArithmeticError,
        AttributeError,
        LookupError,
        NotImplementedError,
        TypeError,
        ValueError,
        pa.ArrowException,
    ):
        return None


def _array(values: list[Any], to: pa.DataType | None) -> pa.Array:
    """Values as PyIceberg has them: dates and times are numbers or Python's own."""
    plain = [str(value) if isinstance(value, UUID) else value for value in values]
    numbers = all(value is None or isinstance(value, int) for value in plain)
    return to_arrow(plain, to) if numbers else to_arrow(from_arrow(pa.array(plain, to)), to)
