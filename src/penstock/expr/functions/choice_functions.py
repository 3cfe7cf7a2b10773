"""Functions that choose among their arguments, and those that look into arrays and maps.

`if(x <> 0, 10 / x, 0)` must not fail where x is 0, although one of its arguments does. So choosers get their
arguments as vectors, with the rows that failed, and answer with the failures that count: those of the
conditions looked at before the choice fell, and that of the chosen value.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.expr.functions.function import Constants, Function, Signature
from penstock.expr.functions.kernel_shapes import of_arrays
from penstock.expr.functions.signatures import INT, STRING, Types, common, unary, with_constant
from penstock.expr.kernels.physical import all_valid, mask_of, valid, vector
from penstock.expr.kernels.vector import Mask, Vector
from penstock.expr.types import common_type_of, is_decimal, is_nested, type_name


def _failed(argument: Vector) -> Mask:
    return np.zeros(len(argument.values), np.bool_) if argument.failed is None else argument.failed


def _chosen(takes: Mask, doubtful: Mask, value: Vector, other: Vector) -> Vector:
    """`value` where the choice takes it, else `other`; fails where the choice itself is doubtful."""
    values = pc.if_else(pa.array(takes, pa.bool_()), value.values, other.values)
    failed = doubtful | np.where(takes, _failed(value), _failed(other))
    return Vector(values, failed if failed.any() else None)


def _choose_case(arguments: Sequence[Vector], zone: str) -> Vector:
    """CASE WHEN: condition, value, condition, value, …, and the value of ELSE when the count is odd."""
    values = arguments[1].values
    result = arguments[-1] if len(arguments) % 2 else Vector(pa.nulls(len(values), values.type))
    for i in reversed(range(0, len(arguments) - 1, 2)):
        holds = mask_of(arguments[i].values.cast(pa.bool_()))  # an untyped null counts as false, as any other
        result = _chosen(holds, _failed(arguments[i]), arguments[i + 1], result)
    return result


def _choose_known(arguments: Sequence[Vector], zone: str) -> Vector:
    """COALESCE: the first that is not null."""
    result = arguments[-1]
    for value in reversed(arguments[:-1]):
        result = _chosen(valid(value.values), _failed(value), value, result)
    return result


def _case(types: Types, constants: Constants) -> Signature | None:
    pairs = len(types) // 2
    conditions = types[: 2 * pairs : 2]
    if pairs == 0 or any(t != pa.bool_() and not pa.types.is_null(t) for t in conditions):
        return None
    values = [*types[1 : 2 * pairs : 2], *types[2 * pairs :]]
    t = common_type_of(values)
    if t is None:
        return None
    return Signature((*(pa.bool_(), t) * pairs, *(t,) * (len(types) % 2)), t)


def _if(types: Types, constants: Constants) -> Signature | None:
    return _case(types, constants) if len(types) == 3 else None


def _size(arrays: Sequence[pa.Array], zone: str) -> Vector:
    return vector(np.diff(arrays[0].offsets.to_numpy()), INT, valid(arrays[0]))


def _keyed(types: Types, constants: Constants) -> Signature | None:
    """A map and a key, both of text; the result has the type of the map's values."""
    takes = len(types) == 2 and pa.types.is_map(types[0]) and types[0].key_type == STRING and types[1] == STRING
    return Signature(tuple(types), types[0].item_type) if takes else None


def _key_test(types: Types, constants: Constants) -> Signature | None:
    keyed = _keyed(types, constants)
    return None if keyed is None else replace(keyed, result=pa.bool_())


def _matches(maps: pa.Array, keys: pa.Array) -> tuple[Mask, Mask, np.ndarray[tuple[int], np.dtype[np.int64]]]:
    """For each row whether it has the key, whether it has it twice, and where the entry is."""
    offsets = maps.offsets.to_numpy()
    lengths = np.where(valid(maps), np.diff(offsets), 0)
    rows = np.repeat(np.arange(len(maps)), lengths)
    entries = np.arange(len(rows)) + np.repeat(offsets[:-1] - (np.cumsum(lengths) - lengths), lengths)
    hits = mask_of(pc.equal(maps.keys.take(pa.array(entries, pa.int64())), keys.take(pa.array(rows, pa.int64()))))
    counts = np.bincount(rows[hits], minlength=len(maps))
    place = np.zeros(len(maps), np.int64)
    place[rows[hits]] = entries[hits]
    return counts > 0, counts > 1, place


def _value_of_key(arrays: Sequence[pa.Array], zone: str) -> Vector:
    """Null when the key is absent. A row that has it twice fails: which one counts is a setting."""
    maps, keys = arrays
    present, twice, place = _matches(maps, keys)
    values = maps.items.take(pa.array(place, pa.int64(), mask=~present))
    return Vector(values, twice if twice.any() else None)


def _has_key(arrays: Sequence[pa.Array], zone: str) -> Vector:
    return vector(_matches(*arrays)[0], pa.bool_(), all_valid(*arrays))


# The digits of a decimal are not always those that Spark counts.
_named = unary(lambda t: not is_nested(t) and not is_decimal(t), result=STRING)
_type_of = of_arrays(lambda values: pa.repeat(pa.scalar(type_name(values.type)), len(values)))
_sized = unary(lambda t: bool(pa.types.is_map(t) or pa.types.is_list(t)), result=INT)

OTHER_FUNCTIONS = (
    Function("coalesce", common(bool), _choose_known, catalyst=("Coalesce",), null_in_null_out=False, chooses=True),
    Function("typeof", _named, _type_of, null_in_null_out=False),
    Function("if", _if, _choose_case, catalyst=("If",), null_in_null_out=False, chooses=True),
    Function("case", _case, _choose_case, catalyst=("CaseWhen",), null_in_null_out=False, chooses=True),
    Function("size", _sized, _size, aliases=("cardinality",)),
    Function("map_contains_key", _key_test, _has_key),
    Function("element_at", with_constant(_keyed, 1), _value_of_key, aliases=("try_element_at",)),
)
