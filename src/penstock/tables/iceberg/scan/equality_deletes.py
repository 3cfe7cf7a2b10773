"""Rows taken away by equality deletes: a row goes when its values in some columns are among those listed.

NULL equals NULL here, and NaN equals NaN: the comparison is of values, not of SQL.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from penstock.expr.kernels.vector import Mask


def listed(rows: pa.Table, deleted: pa.Table, names: Sequence[str]) -> Mask:
    """Which rows have values, in the columns `names`, that are among the deleted.

    >>> listed(pa.table({"a": [1, None, 2]}), pa.table({"a": [None, 2]}), ["a"]).tolist()
    [False, True, True]
    """
    if not deleted.num_rows or not rows.num_rows:
        return np.zeros(rows.num_rows, np.bool_)
    code = np.zeros(rows.num_rows + deleted.num_rows, np.int64)
    for name in names:
        own, other = _column(rows, name), _column(deleted, name)
        both = pa.concat_arrays([own, other.cast(own.type)])  # PyIceberg fills in missing text as large_string
        encoded = both.dictionary_encode(null_encoding="encode")
        codes = encoded.indices.to_numpy(zero_copy_only=False)
        code = np.unique(code * (len(encoded.dictionary) + 1) + codes, return_inverse=True)[1]
    return np.isin(code[: rows.num_rows], code[rows.num_rows :])


def _column(table: pa.Table, name: str) -> pa.Array:
    column = table.column(name)
    return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
