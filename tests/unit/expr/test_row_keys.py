"""Rows have the same number when they have the same values; Python's own comparison is the judge."""

from __future__ import annotations

from itertools import product
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from penstock.expr.kernels.row_keys import row_keys

TEXTS = [None, "", "a", "b"]
LISTS = [None, [], [None], ["a"], ["a", None], ["a", "b"], ["b", "a"], ["ab"], [""]]
MAPS = [None, [], [("a", None)], [("a", "b")], [("b", "a")], [("a", "b"), ("b", "a")], [("b", "a"), ("a", "b")]]
STRUCTS = [None, {"x": None, "y": None}, {"x": 1, "y": None}, {"x": None, "y": [1]}, {"x": 1, "y": [1]}]
STRUCT = pa.struct([("x", pa.int32()), ("y", pa.list_(pa.int32()))])
COLUMNS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "text": (pa.string(), TEXTS),
    "bytes": (pa.binary(), [None, b"", b"\0", b"\0\0"]),
    "bool": (pa.bool_(), [None, True, False]),
    "list": (pa.list_(pa.string()), LISTS),
    "map": (pa.map_(pa.string(), pa.string()), MAPS),
    "struct": (STRUCT, STRUCTS),
    "list of structs": (pa.list_(STRUCT), [None, [], *([each] for each in STRUCTS), STRUCTS]),
    "map of lists": (pa.map_(pa.string(), pa.list_(pa.string())), [[("k", each)] for each in LISTS]),
    "fixed list": (pa.list_(pa.int8(), 2), [None, [1, 2], [2, 1], [1, None]]),
    "nothing": (pa.null(), [None]),
}


def shown(value: Any, t: pa.DataType) -> str:
    return repr(sorted(value, key=repr)) if pa.types.is_map(t) and value is not None else repr(value)


def check(table: pa.Table) -> None:
    keys = row_keys(table).tolist()
    columns = [[shown(value, field.type) for value in table[field.name].to_pylist()] for field in table.schema]
    expected: dict[Any, int] = {}
    for key, row in zip(keys, zip(*columns, strict=True), strict=True):
        assert expected.setdefault(row, key) == key
    assert len(set(expected.values())) == len(expected)


@pytest.mark.parametrize("name", COLUMNS)
def test_values_of_every_kind_are_told_apart(name: str) -> None:
    t, values = COLUMNS[name]
    twice = pa.chunked_array([pa.array(values, t), pa.array(values[::-1], t), pa.array([], t)])
    check(pa.table({"v": twice}))
    check(pa.table({"v": twice.slice(1, len(values))}))


@pytest.mark.parametrize("seed", range(20))
def test_rows_of_several_columns_are_told_apart(seed: int) -> None:
    rng = Random(seed)
    names = rng.sample(sorted(COLUMNS), 3)
    arrays = [pa.array([rng.choice(COLUMNS[name][1]) for _ in range(80)], COLUMNS[name][0]) for name in names]
    check(pa.table(arrays, names=names).slice(rng.randrange(10)))


@pytest.mark.parametrize("t", [pa.float32(), pa.float64(), pa.float16()])
def test_nan_is_one_value_and_zero_is_two(t: pa.DataType) -> None:
    odd = np.array([0x7FF8000000000001, 0xFFF8000000000000], np.uint64).view(np.float64)
    values = np.array([np.nan, *odd, 0.0, -0.0, 1.0]).astype(t.to_pandas_dtype())
    array = pa.concat_arrays([pa.array(values, t, from_pandas=False), pa.array([None], t)])
    for column in (array, pa.array([[each] for each in array], pa.list_(t))):
        keys = row_keys(pa.table({"v": column})).tolist()
        assert len(set(keys[:3])) == 1
        assert len(set(keys)) == 5


def test_junk_below_nulls_is_no_value() -> None:
    mask = pa.array([True, True])
    lists = pa.ListArray.from_arrays(pa.array([0, 1, 2], pa.int32()), pa.array([1, 2]), mask=mask)
    structs = pa.StructArray.from_arrays([pa.array([1, 2])], ["x"], mask=mask)
    maps = pa.array([[("a", 1)], [("b", 2)]], pa.map_(pa.string(), pa.int64()))
    buffers = [pa.py_buffer(b"\0"), maps.buffers()[1]]
    entries = pa.StructArray.from_arrays([maps.keys, maps.items], fields=[maps.type.key_field, maps.type.item_field])
    nulls = pa.Array.from_buffers(maps.type, 2, buffers, children=[entries])
    for array in (lists, structs, nulls):
        assert row_keys(pa.table({"v": array})).tolist() == [0, 0]


def test_many_columns_do_not_overflow() -> None:
    rng = Random(0)
    table = pa.table({f"c{i}": [rng.randrange(1000) for _ in range(1000)] for i in range(30)})
    assert len(set(row_keys(pa.concat_tables([table, table])).tolist())) == 1000
    assert row_keys(table.slice(0, 0)).tolist() == []


def test_all_pairs_of_values_are_told_apart() -> None:
    pairs = list(product(LISTS, LISTS))
    columns = [pa.array(values, pa.list_(pa.string())) for values in zip(*pairs, strict=True)]
    assert len(set(row_keys(pa.table(columns, names=["a", "b"])).tolist())) == len(pairs)
