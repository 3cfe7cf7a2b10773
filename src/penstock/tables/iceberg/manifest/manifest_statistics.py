"""The entries of one manifest as columns that the core can judge by: partition values, bounds and counts.

A manifest keeps bounds and counts as maps from field id to value, file by file. Here they are turned into one column
for one field when it is first asked about, without a step per file, and kept: the next predicate on it costs nothing.

    entries.bounds(3, LongType())   →  lower [7, null, 12], upper [9, null, 40]

Safe because everything doubtful is unknown. For bounds and counts unknown is null: a field the map does not have, or
has twice, a negative count, bytes that fit no type (`bounds.py`). For partition values null *is* a value, so a field
that cannot be given exactly in the type asked for is None as a whole.

Not decided here: what the values prove, and what type a column has now. The caller says the type.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from threading import RLock
from typing import Any, TypeVar, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.types import IcebergType

from penstock.expr.kernels.civil import DAY
from penstock.expr.types import TIMESTAMP_NTZ, is_decimal, is_integer, is_timestamp
from penstock.tables.iceberg.manifest.bounds import decimals, decode_bounds, uuid_text
from penstock.tables.iceberg.manifest.manifest_decode import MISSING

T = TypeVar("T")
_UNKNOWN = pa.scalar(None, pa.int64())
Ends = tuple[pa.Array | None, pa.Array | None]
Counts = tuple[pa.Array, pa.Array, pa.Array]


class ManifestEntries:
    """The live entries of one manifest; `grew` is called when a newly made column takes bytes."""

    def __init__(self, table: pa.Table, grew: Callable[[ManifestEntries], None] | None = None) -> None:
        self.table = table
        self._grew = grew
        self._made: dict[Hashable, Any] = {}
        self._lock = RLock()  # a column may be made of another
        self._nbytes = int(table.nbytes)

    @property
    def count(self) -> int:
        return int(self.table.num_rows)

    @property
    def nbytes(self) -> int:
        """The bytes of the table and of everything made of it so far."""
        return self._nbytes

    def column(self, name: str) -> pa.Array:
        """A column of the table, in one piece."""
        column = self.table.column(name)
        if column.num_chunks == 1:
            return column.chunk(0)
        return self._once(("column", name), column.combine_chunks)

    @property
    def formats(self) -> frozenset[str]:
        """The formats of the files, in lower case."""
        names = self._once("formats", lambda: pc.unique(self.column("file_format")))
        return frozenset(name.lower() for name in names.to_pylist())

    def partition(self, position: int, to: pa.DataType) -> pa.Array | None:
        """The partition's values at a position of the spec; None where they cannot be given exactly in this type."""
        return self._once(("partition", position, to), lambda: self._partition(position, to))

    def bounds(self, field_id: int, kind: IcebergType) -> Ends:
        """The lower and upper bounds of a column in the type it has now; None where no entry can have one."""
        return self._once(("bounds", field_id, kind), lambda: self._bounds(field_id, kind))

    def counts(self, field_id: int) -> Counts:
        """The number of nulls, of NaN and of values (with both) of a column."""
        return self._once(("counts", field_id), lambda: self._counts(field_id))

    def _partition(self, position: int, to: pa.DataType) -> pa.Array | None:
        partition = self.column("partition")
        if position >= partition.type.num_fields:
            return None
        field = partition.type.field(position)
        if field.metadata is not None and MISSING in field.metadata:
            return None
        return convert_partition(partition.field(position), to)

    def _bounds(self, field_id: int, kind: IcebergType) -> Ends:
        if decode_bounds(pa.array([], pa.binary()), kind) is None:
            return None, None
        lower = decode_bounds(self._of_field("lower_bounds", field_id), kind, upper=False)
        upper = decode_bounds(self._of_field("upper_bounds", field_id), kind, upper=True)
        return lower, upper

    def _counts(self, field_id: int) -> Counts:
        nulls, nans, values = (
            _not_negative(self._of_field(f"{what}value_counts", field_id)) for what in ("null_", "nan_", "")
        )
        return nulls, nans, values

    def _of_field(self, name: str, field_id: int) -> pa.Array:
        """The value that each entry's map has for a field; null where it has none, or more than one."""
        lists = self.column(name)
        pairs = lists.values
        keys = pairs.field("key").to_numpy(zero_copy_only=False)
        positions = np.flatnonzero(keys == field_id)
        places = np.full(len(lists), -1, np.int64)
        rows = _rows_of(positions, np.asarray(lists.offsets))
        inside = (rows >= 0) & (rows < len(lists))
        rows, positions = (rows, positions) if inside.all() else (rows[inside], positions[inside])
        places[rows] = positions
        if len(rows) > 1 and not (steps := np.diff(rows) > 0).all():
            places[rows[1:][~steps]] = -1
        if lists.null_count:
            places[np.asarray(lists.is_null().to_numpy(zero_copy_only=False))] = -1
        absent = places < 0
        return pairs.field("value").take(pa.array(places, mask=absent if absent.any() else None))

    def _once(self, key: Hashable, make: Callable[[], T]) -> T:
        with self._lock:
            if key in self._made:
                return cast(T, self._made[key])
            made = self._made[key] = make()
            arrays: tuple[Any, ...] = made if isinstance(made, tuple) else (made,)
            size = sum(int(array.nbytes) for array in arrays if array is not None)
            self._nbytes += size
        if self._grew is not None and size:
            self._grew(self)
        return made


def _rows_of(positions: npt.NDArray[np.int64], offsets: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
    """The list that each position of the values lies in."""
    sizes = np.diff(offsets)
    if len(sizes) and sizes[0] > 0 and (sizes == sizes[0]).all():
        return (positions - int(offsets[0])) // int(sizes[0])
    return np.searchsorted(offsets, positions, side="right") - 1


def _not_negative(counts: pa.Array) -> pa.Array:
    """A negative count is how some writers say that they do not know."""
    return pc.if_else(pc.less(counts, 0), _UNKNOWN, counts)


def count_rows(
    nulls: pa.Array, values: pa.Array, rows: pa.Array, *, nested: bool, required: bool
) -> tuple[pa.Array, pa.Array]:
    """The number of rows in which a column is NULL, and of all rows it is known for.

    An entry counts *values*. For a column that is one for each row. A field of a struct has no value in a row whose
    struct is NULL, and writers differ: some count one that is null, others (Iceberg's own, for floats) none at all:

        record_count 10, value_counts {x: 7}, null_value_counts {x: 0}    →   x is NULL in 3 of 10 rows, not in none

    | value count | of a column | of a field of a struct |
    |---|---|---|
    | that of the rows | trusted | trusted |
    | less | nothing is known | what is missing is NULL |
    | more | nothing is known | nothing is known |
    | missing | the null count is trusted | nothing is known |

    A column that is required, with every struct around it, is not NULL where nothing else is known.

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


def convert_partition(values: pa.Array, to: pa.DataType) -> pa.Array | None:
    """Partition values as they are stored, in the type that stands for them; None where one of them has no equal in it.

    >>> convert_partition(pa.array([20590], pa.int32()), pa.date32()).to_pylist()
    [datetime.date(2026, 5, 17)]
    >>> convert_partition(pa.array([1.5]), pa.int32()) is None
    True
    """
    try:
        return _converted(values, values.type, to)
    except pa.ArrowInvalid:
        return None


def _converted(values: pa.Array, stored: pa.DataType, to: pa.DataType) -> pa.Array | None:
    if stored == to:
        return values
    if pa.types.is_null(stored) or pa.types.is_null(to):
        return pa.nulls(len(values), to) if values.null_count == len(values) else None
    if {stored, to} == {pa.int32(), pa.date32()}:
        return values.view(to)
    if (is_integer(stored) and is_integer(to)) or (stored == pa.float32() and to == pa.float64()):
        return values.cast(to)
    if is_timestamp(to) and stored == pa.timestamp("us"):
        return values.view(pa.int64()).view(to)
    if is_timestamp(to) and stored == pa.timestamp("ns"):  # an error where nanoseconds would be lost
        return values.cast(pa.timestamp("us")).view(pa.int64()).view(to)
    if stored == pa.date32() and to == TIMESTAMP_NTZ:  # it was widened since
        return pc.multiply_checked(values.view(pa.int32()).cast(pa.int64()), DAY).view(to)
    if stored == pa.binary() and (is_decimal(to) or to == pa.string()):
        converted = decimals(values, to) if is_decimal(to) else uuid_text(values)
        return converted if converted.null_count == values.null_count else None
    return None
