"""In how many rows of a file a column is NULL: the counts of a manifest entry, made counts of rows.

An entry counts *values*. For a column that is one for each row. A field of a struct has no value in a row whose struct
is NULL, and writers differ: some count one that is null, others (Iceberg's own, for floats) count none at all:

    record_count 10, value_counts {x: 7}, null_value_counts {x: 0}    →   x is NULL in 3 of 10 rows, not in none

| value count | of a column | of a field of a struct |
|---|---|---|
| that of the rows | trusted | trusted |
| less | nothing is known | what is missing is NULL |
| more | nothing is known | nothing is known |
| missing | the null count is trusted | nothing is known |

A column that is required, with every struct around it, is not NULL where nothing else is known.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

_UNKNOWN = pa.scalar(None, pa.int64())


def count_rows(
    nulls: pa.Array, values: pa.Array, rows: pa.Array, *, nested: bool, required: bool
) -> tuple[pa.Array, pa.Array]:
    """The number of rows in which a column is NULL, and of all rows it is known for.

    >>> counts = (pa.array([n], pa.int64()) for n in (0, 7, 10))
    >>> [array.to_pylist() for array in count_rows(*counts, nested=True, required=False)]
    [[3], [10]]
    """
    missing = pc.subtract(rows, values)
    trusted = pc.greater_equal(missing, 0) if nested else pc.equal(missing, 0)
    counted = pc.if_else(trusted, pc.add(nulls, missing), _UNKNOWN)
    if not nested:
        counted = pc.if_else(pc.is_null(values), nulls, counted)
    if required:
        counted = counted.fill_null(0)
    return counted, pc.if_else(trusted, rows, _UNKNOWN)
