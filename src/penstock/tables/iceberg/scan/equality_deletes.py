"""Rows taken away by equality deletes: a row goes when its values in some columns are among those listed.

NULL equals NULL here, and NaN equals NaN: the comparison is of values, not of SQL.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from penstock.expr.kernels.physical import row_codes
from penstock.expr.kernels.vector import Mask


def listed(rows: pa.Table, deleted: pa.Table, names: Sequence[str]) -> Mask:
    """Which rows have values, in the columns `names`, that are among the deleted.

    >>> listed(pa.table({"a": [1, None, 2]}), pa.table({"a": [None, 2]}), ["a"]).tolist()
    [False, True, True]
    """
    if not deleted.num_rows or not rows.num_rows:
        return np.zeros(rows.num_rows, np.bool_)
    pairs = [(_column(rows, name), _column(deleted, name)) for name in names]
    # PyIceberg fills in missing text as large_string.
    both = [pa.concat_arrays([own, other.cast(own.type)]) for own, other in pairs]
    code = row_codes(both, rows.num_rows + deleted.num_rows)
    return np.isin(code[: rows.num_rows], code[rows.num_rows :])


def _column(table: pa.Table, name: str) -> pa.Array:
    column = table.column(name)
    array = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    return array.storage if isinstance(array.type, pa.BaseExtensionType) else array  # a uuid's bytes
