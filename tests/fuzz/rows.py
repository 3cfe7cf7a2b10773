"""Random rows, in groups: each group becomes a file or a few, and is close together in some columns.

Rows drawn one by one would give every file the bounds of the whole type, and nothing would ever be pruned. So each
column of a group is one value, a few neighbours, anything, or null.

A row has a `key` and an `id`. Tables that are updated get variants of each row too: the same key with other values in
some columns, and with another id. A row that is updated becomes one of its variants, so the id says what is in a row,
and the judge's answers for all rows and variants hold whatever happens to a table:

    id = key + number of the variant * number of keys
    UPDATE t SET id = key + 120, c1 = 5, c2 = 'a'     (60 keys) makes every row its second variant
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tests.fuzz.literals import has_literal
from tests.fuzz.values import (
    KEYS,
    NESTED_UUIDS,
    SCALARS,
    TYPES,
    UUID,
    around_a_turn,
    array,
    draw,
    draw_uuid,
    neighbour,
)

ID, KEY = "id", "key"
_MODES = ("one", "one", "near", "near", "near", "near or null", "any", "any or null", "null")
_TURNING = 0.4  # of the groups' timestamps
VARIANTS = 2  # of each row: in the first the changing columns are NULL, in the second they have the values of one row
_ODD_NAMES = ("{} x", "Größe {}", "{}.z", "select {}", "{}%41")


@dataclass(frozen=True)
class Rows:
    """Rows with a unique `id`, the short type name of each column, and where each group begins.

    The first `keys` rows are in groups; the others are their variants, which differ in the columns `changing`.
    """

    table: pa.Table
    types: dict[str, str]
    starts: tuple[int, ...]
    keys: int
    changing: tuple[str, ...] = ()

    def groups(self) -> list[pa.Table]:
        """The rows of each group, without variants."""
        ends = (*self.starts[1:], self.keys)
        return [self.table.slice(start, end - start) for start, end in zip(self.starts, ends, strict=True)]

    def key(self, row: int) -> int:
        """The key of a row by its id."""
        return row % self.keys

    def variant(self, row: int, number: int) -> int:
        """The id of another variant of a row."""
        return self.key(row) + number * self.keys

    def take(self, ids: Iterable[int]) -> pa.Table:
        """The rows of these ids, in their order."""
        return self.table.take(pa.array(list(ids), pa.int64()))

    def of_type(self, name: str) -> list[str]:
        """The columns of a type; a uuid is read as text."""
        return [c for c, t in self.types.items() if t == name or (t == UUID and name == "string")]


def arrow_type(name: str) -> pa.DataType:
    """The type under its short name, as predicates see it."""
    return pa.string() if name == UUID else (TYPES | NESTED_UUIDS)[name]


def draw_rows(
    rng: Random,
    types: Sequence[str],
    zone: str,
    groups: int,
    *,
    with_variants: bool = False,
    odd_names: bool = True,
    most: int = 7,
) -> Rows:
    """Rows with a key and one column of each type or more; some names need quotes, where they may be odd."""
    sizes = [rng.randrange(1, most + 1) for _ in range(groups)]
    names, keys = _names(rng, types, odd_names), pa.array(range(sum(sizes)), pa.int64())
    arrays = [keys, keys]
    for name in names.values():
        parts = [_part(rng, name, zone, size) for size in sizes]
        arrays.append(pa.concat_arrays(parts))
    starts = tuple(sum(sizes[:i]) for i in range(groups))
    table = pa.table(arrays, names=[ID, KEY, *names])
    changing: tuple[str, ...] = ()
    if with_variants:
        pattern = rng.randrange(len(keys))
        changing = _changing(rng, table, names, pattern)
        table = pa.concat_tables([table, *(_variant(table, i, changing, pattern) for i in range(1, VARIANTS + 1))])
    return Rows(table, {KEY: "bigint"} | names, starts, len(keys), changing)


def _changing(rng: Random, table: pa.Table, types: dict[str, str], pattern: int) -> tuple[str, ...]:
    """Columns that a statement can set to the values of a row."""
    plain = [name for name, t in types.items() if t in SCALARS or t == UUID]
    chosen = rng.sample(plain, min(len(plain), rng.randrange(2, 6)))
    return tuple(name for name in chosen if has_literal(physical(table.column(name))[pattern], arrow_type(types[name])))


def _variant(table: pa.Table, number: int, changing: Sequence[str], pattern: int) -> pa.Table:
    count = table.num_rows
    table = table.set_column(0, ID, pc.add(table.column(KEY), number * count))
    for name in changing:
        values = table.column(name)
        new = pa.nulls(count, values.type) if number == 1 else values.take(pa.array([pattern] * count))
        table = table.set_column(table.schema.get_field_index(name), name, new)
    return table


def _names(rng: Random, types: Sequence[str], odd: bool) -> dict[str, str]:
    """Names of columns in a shuffled order."""
    names = {}
    for i, t in enumerate(rng.sample(list(types), len(types))):
        plain = f"c{i}" if rng.random() < 0.7 else f"C{i}_{t.split('(')[0].split()[0]}"
        names[rng.choice(_ODD_NAMES).format(plain) if rng.random() < 0.1 and odd else plain] = t
    return names


def _part(rng: Random, name: str, zone: str, size: int) -> pa.Array:
    t = arrow_type(name)
    if pa.types.is_struct(t):
        children = [_uuids(rng, size) if f.name == "u" else _plain(rng, f.type, zone, size) for f in t]
        mask = pa.array([rng.random() < 0.1 for _ in range(size)])
        return pa.StructArray.from_arrays(children, fields=list(t), mask=mask)
    if pa.types.is_map(t):
        made = {key: _uuids(rng, size) if "uuid" in name else _plain(rng, t.item_type, zone, size) for key in KEYS}
        columns = {key: values.to_pylist() for key, values in made.items()}
        shares = {key: rng.choice([0, 0.2, 0.8, 1]) for key in KEYS}
        maps: list[Any] = [
            None if rng.random() < 0.1 else [(k, columns[k][i]) for k in KEYS if rng.random() < shares[k]]
            for i in range(size)
        ]
        return pa.array(maps, t)
    if pa.types.is_list(t) and "uuid" in name:
        lists = [_uuids(rng, rng.randrange(4)).to_pylist() for _ in range(size)]
        return pa.array([each if rng.random() < 0.9 else None for each in lists], t)
    if pa.types.is_list(t):
        return pa.array([rng.choice([None, [], [1], [1, None, 3], [rng.randrange(9)]]) for _ in range(size)], t)
    return _uuids(rng, size) if name == UUID else _plain(rng, t, zone, size)


def _plain(rng: Random, t: pa.DataType, zone: str, size: int) -> pa.Array:
    mode = rng.choice(_MODES)
    base = draw(rng, t)
    values: list[Any] = [base] * size
    if pa.types.is_timestamp(t) and rng.random() < _TURNING:
        values = around_a_turn(rng, zone, size)
    elif mode.startswith("near"):
        values = [base if rng.random() < 0.3 else neighbour(rng, t, base) for _ in range(size)]
    elif mode.startswith("any"):
        values = [draw(rng, t) for _ in range(size)]
    if mode.endswith("null"):
        values = [None if mode == "null" or rng.random() < 0.4 else value for value in values]
    return array(values, t)


def _uuids(rng: Random, size: int) -> pa.Array:
    one = draw_uuid(rng)
    return pa.array([rng.choice([one, draw_uuid(rng), None]) for _ in range(size)], pa.string())


def physical(values: pa.ChunkedArray) -> list[Any]:
    """The values of a plain column in physical form."""
    t = values.type
    if pa.types.is_timestamp(t):
        return list(values.cast(pa.int64()).to_pylist())
    if pa.types.is_date(t):
        return list(values.cast(pa.int32()).to_pylist())
    if pa.types.is_decimal(t):
        return [None if v is None else _unscaled(v, t.scale) for v in values.to_pylist()]
    return list(values.to_pylist())


def _unscaled(value: Any, scale: int) -> int:
    sign, digits, exponent = value.as_tuple()
    whole = int("".join(map(str, digits))) * 10 ** (exponent + scale)
    return -whole if sign else whole
