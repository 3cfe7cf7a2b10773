"""Random lives of Iceberg tables: specs and schemas evolve, rows are deleted in every way; DuckDB has the rows flat.

`PENSTOCK_FUZZ_SEEDS=500` asks for more lives than the few of every run.
"""

from __future__ import annotations

import datetime as dt
import os
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyiceberg.schema import Schema
from pyiceberg.transforms import parse_transform
from pyiceberg.types import (
    BinaryType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
    TimestampType,
    TimestamptzType,
)

import penstock
from penstock.tables.iceberg.metadata.schema_columns import Columns
from tests.differential.evaluator_facts import Column
from tests.differential.evaluator_predicates import combined, plain
from tests.fixtures.iceberg_deletes import data_files, delete_by_vectors, delete_equal, delete_positions, upgraded
from tests.fixtures.iceberg_tables import append_by_hand, create
from tests.fixtures.variants import variants

SEEDS = range(int(os.environ.get("PENSTOCK_FUZZ_SEEDS", "6")))
MOMENTS = [
    dt.datetime(1582, 10, 4, 23),
    dt.datetime(1969, 12, 31, 23, 59, 59, 999999),
    dt.datetime(1970, 1, 1),
    dt.datetime(2026, 5, 17, 12, 30),
    dt.datetime(9999, 12, 30),
]
POOLS: dict[str, tuple[Any, list[Any]]] = {
    "n": (IntegerType(), [-(2**31) + 10, -11, -1, 0, 9, 2**31 - 1]),
    "x": (FloatType(), [-float("inf"), -1.5, 0.0, 2.5, float("nan"), float("inf")]),
    "p": (DecimalType(9, 2), [Decimal(text) for text in ("-9999900.00", "-0.01", "0.00", "1.50", "9999999.99")]),
    "s": (StringType(), ["", "a", "ab", "abcdefghijklmnopqrstuvwxyz", "é", "\U0010ffff" * 20]),
    "d": (DateType(), [moment.date() for moment in MOMENTS]),
    "t": (TimestampType(), MOMENTS),
    "z": (TimestamptzType(), [moment.replace(tzinfo=dt.UTC) for moment in MOMENTS]),
    "b": (BinaryType(), [b"", b"\0", b"ab", b"\xff\xff"]),
    "g": (FixedType(2), [b"\0\0", b"ab", b"\xff\xff"]),
}
WIDER = {"n": LongType(), "x": DoubleType(), "p": DecimalType(38, 2)}
PERIODS = ["year", "month", "day"]
TRANSFORMS = {
    "n": ["identity", "bucket[4]", "truncate[10]"],
    "x": ["identity"],
    "p": ["identity", "bucket[4]", "truncate[50]"],
    "s": ["identity", "bucket[4]", "truncate[2]"],
    "d": ["identity", "bucket[4]", *PERIODS],
    "t": ["identity", "bucket[4]", *PERIODS, "hour"],
    "z": ["identity", "bucket[4]", *PERIODS, "hour"],
    "b": ["identity", "bucket[4]", "truncate[1]"],
    "g": ["identity", "bucket[4]"],
}


class Life:
    """A table and, beside it, its live rows: dicts from field ids to values."""

    def __init__(self, root: Path, rng: Random) -> None:
        self.rng = rng
        fields = [NestedField(i + 2, name, kind) for i, (name, (kind, _)) in enumerate(POOLS.items())]
        self.table = create(root, Schema(NestedField(1, "id", LongType()), *fields))
        self.pools = {field.field_id: field.name for field in fields}  # which pool a field takes its values from
        self.rows: list[dict[int, Any]] = []
        self.next = 0
        self.log: list[str] = []

    def step(self) -> None:
        steps = (
            [self.append] * 4 + [self.repartition] * 3 + [self.rename, self.widen, self.widen, self.replace, self.move]
        )
        steps += [self.delete_positions, self.delete_vectors, self.delete_equal]
        chosen = self.rng.choice(steps)
        self.log.append(chosen.__name__)
        chosen()

    def field(self) -> NestedField:
        return self.rng.choice([f for f in self.table.schema().fields if f.field_id != 1])

    def value(self, field_id: int) -> Any:
        pool = POOLS[self.pools[field_id]][1]
        return None if self.rng.random() < 0.15 else self.rng.choice(pool)

    def append(self) -> None:
        fields = self.table.schema().fields
        rows = []
        for _ in range(self.rng.randint(1, 6)):
            rows.append({f.field_id: self.value(f.field_id) for f in fields if f.field_id != 1} | {1: self.next})
            self.next += 1
        self.rows += rows
        arrow = Columns(self.table.schema()).arrow
        arrays = [pa.array([r[f.field_id] for r in rows], arrow.field(f.name).type, from_pandas=False) for f in fields]
        append_by_hand(self.table, pa.table(arrays, schema=arrow))

    def repartition(self) -> None:
        present = [field for field in self.table.spec().fields if str(field.transform) != "void"]
        with self.table.update_spec() as update:
            for field in present:
                if self.rng.random() < 0.6:
                    update.remove_field(field.name)
                elif self.rng.random() < 0.3:
                    update.rename_field(field.name, f"{field.name}_{self.next}_{self.rng.randrange(99)}")
        source = self.field()
        transform = self.rng.choice(TRANSFORMS[self.pools[source.field_id]])
        taken = [f for f in self.table.spec().fields if f.source_id == source.field_id and str(f.transform) != "void"]
        if not taken:
            name = f"{source.name}_{len(self.log)}"
            with self.table.update_spec() as update:
                update.add_field(source.name, parse_transform(transform), name)

    def rename(self) -> None:
        with self.table.update_schema() as update:
            update.rename_column(self.field().name, f"c{len(self.log)}")

    def widen(self) -> None:
        field = self.field()
        wider = WIDER.get(self.pools[field.field_id])
        if wider is not None and field.field_type != wider:
            with self.table.update_schema() as update:
                update.update_column(field.name, field_type=wider)

    def replace(self) -> None:
        """Drop a column and give its name to a new one."""
        field = self.field()
        if field.field_id in {f.source_id for f in self.table.spec().fields}:
            return
        with self.table.update_schema() as update:
            update.delete_column(field.name)
        with self.table.update_schema() as update:
            update.add_column(field.name, field.field_type)
        self.pools[self.table.schema().find_field(field.name).field_id] = self.pools[field.field_id]

    def move(self) -> None:
        with self.table.update_schema() as update:
            update.move_first(self.field().name)

    def _chosen_positions(self) -> dict[str, list[int]]:
        if self.table.current_snapshot() is None:
            return {}
        alive, found = {row[1] for row in self.rows}, {}
        for file in data_files(self.table):
            ids = pq.read_table(file.file_path.removeprefix("file://")).column("id").to_pylist()
            places = [i for i, row in enumerate(ids) if row in alive and self.rng.random() < 0.15]
            if places:
                found[file.file_path] = places
                alive -= {ids[i] for i in places}
        self.rows = [row for row in self.rows if row[1] in alive]
        return found

    def delete_positions(self) -> None:
        """Of no effect on files that have a vector, which would hold these positions too."""
        if "delete_vectors" not in self.log and (found := self._chosen_positions()):
            delete_positions(self.table, found)

    def delete_vectors(self) -> None:
        """A vector replaces what was deleted of its file before, so only files without deletes get one."""
        if not any("delete_" in name for name in self.log[:-1]) and (found := self._chosen_positions()):
            delete_by_vectors(self.table, found)

    def delete_equal(self) -> None:
        if self.table.current_snapshot() is None:
            return
        fields = self.rng.sample([f for f in self.table.schema().fields if f.field_id != 1], self.rng.choice([1, 2]))
        keys = [tuple(self.value(f.field_id) for f in fields) for _ in range(2)]
        gone = {repr(key) for key in keys}
        self.rows = [row for row in self.rows if repr(tuple(row.get(f.field_id) for f in fields)) not in gone]
        columns = zip(*keys, strict=True)
        stored = schema_to_pyarrow(self.table.schema(), include_field_ids=False)
        arrays = [
            pa.array(values, stored.field(f.name).type, from_pandas=False)
            for f, values in zip(fields, columns, strict=True)
        ]
        names = [f.name for f in fields]
        delete_equal(self.table, pa.table(arrays, names=names), [f.field_id for f in fields])

    def flat(self) -> pa.Table:
        schema = self.table.schema()
        arrow = Columns(schema).arrow
        arrays = [
            pa.array([row.get(f.field_id) for row in self.rows], arrow.field(f.name).type, from_pandas=False)
            for f in schema.fields
        ]
        return pa.table(arrays, schema=arrow)


@pytest.mark.parametrize("seed", variants(SEEDS, every_run=1))
def test_every_life_of_a_table_ends_in_the_rows_that_duckdb_has(tmp_path: Path, seed: int) -> None:
    rng = Random(seed)
    life = Life(tmp_path, rng)
    life.append()
    for _ in range(14):
        life.step()
    table = penstock.iceberg(upgraded(life.table))
    flat = life.flat()
    assert sorted(table.arrow(columns=["id"])["id"].to_pylist()) == sorted(flat["id"].to_pylist()), life.log
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.register("arrow", flat)
        connection.execute("CREATE TABLE flat AS FROM arrow")  # filters on Arrow itself would be Arrow's, without NaN
        for field in life.table.schema().fields:
            if field.field_id == 1:
                continue
            pool = [v for v in POOLS[life.pools[field.field_id]][1] if v == v]
            singles = list(plain(Column(field.name, field.field_id, field.field_type, pool)))
            for predicate in [*rng.sample(singles, 5), *combined(singles, rng, 3)]:
                where = predicate.duck.replace("{}", field.name)
                expected = [i for (i,) in connection.sql(f"SELECT id FROM flat WHERE {where} ORDER BY id").fetchall()]
                answer = sorted(table.arrow(predicate.spark, ["id"])["id"].to_pylist())
                assert answer == expected, (predicate.spark, life.log)
                assert table.count(predicate.spark) == len(expected), (predicate.spark, life.log)
            ends = connection.sql(f'SELECT min("{field.name}"), max("{field.name}") FROM flat').fetchall()[0]
            found = table.minimum(field.name), table.maximum(field.name)
            assert list(map(str, found)) == list(map(str, ends)), (field.name, life.log)
