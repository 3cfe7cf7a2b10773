"""Random histories of tables whose columns and partitioning change, judged by PyIceberg and DuckDB after every step.

A model keeps rows by numbers of columns, which never change, as field ids do. A step adds, renames, drops, widens or
moves a column or a nested field, adds, drops or replaces a partition field, changes the rule for shared files, appends
rows that lack some columns or bring new ones, deletes, updates, upserts, rolls back over these changes, publishes a
branch, changes the modes of writing, or compacts. After it the rows of Penstock, PyIceberg and DuckDB
are the model's, and a comparison with a literal plans at most the files that PyIceberg plans.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import penstock
from penstock.errors import PenstockError
from penstock.lake.managed_table import ManagedTable
from tests.fixtures.duckdb_reader import connect_duckdb
from tests.fixtures.managed_tables import head_id, local, managed_table, some_modes
from tests.fixtures.variants import variants

STEPS = 12
KINDS = {
    "int": [0, 1, 7, None],
    "bigint": [1 << 40, 7, None],
    "float": [0.5, 2.0, None],
    "double": [0.5, 16777217.25, None],
    "string": ["a", "b", "", "ä b", None],
}
ARROW = {"int": pa.int32(), "bigint": pa.int64(), "float": pa.float32(), "double": pa.float64(), "string": pa.string()}
WIDER = {"int": "bigint", "float": "double"}


@dataclass
class Model:
    """Columns by their numbers, in the table's order; those of `s` lie in a struct."""

    columns: dict[int, list[str]] = field(default_factory=dict)  # [name, type]
    nested: dict[int, list[str]] = field(default_factory=dict)
    rows: list[dict[int, Any]] = field(default_factory=list)
    struct_rows: list[bool] = field(default_factory=list)

    def shown(self) -> Counter[str]:
        return Counter(_text(self.row(row, has)) for row, has in zip(self.rows, self.struct_rows, strict=True))

    def row(self, row: dict[int, Any], has_struct: bool) -> dict[str, Any]:
        inner = {name: row.get(number) for number, (name, _) in self.nested.items()} if has_struct else None
        return {**{name: row.get(number) for number, (name, _) in self.columns.items()}, "s": inner}


@dataclass
class History:
    """One table and its model."""

    table: ManagedTable
    rng: Random
    model: Model
    numbers: Any = field(default_factory=lambda: count(100))
    names: Any = field(default_factory=lambda: count(1))
    history: dict[int, tuple[list[dict[int, Any]], list[bool]]] = field(default_factory=dict)  # of each snapshot

    def pick(self, columns: dict[int, list[str]]) -> int | None:
        return self.rng.choice(list(columns)) if columns else None

    def add(self) -> None:
        nested, kind = self.rng.random() < 0.3, self.rng.choice(list(KINDS))
        name = f"c{next(self.names)}"
        self.table.add_column(f"s.{name}" if nested else name, kind)
        (self.model.nested if nested else self.model.columns)[next(self.numbers)] = [name, kind]

    def rename(self) -> None:
        columns = self.rng.choice([self.model.columns, self.model.nested])
        number, name = self.pick(columns), f"c{next(self.names)}"
        if number is not None:
            self.table.rename_column(self.text(columns, number), name)
            columns[number][0] = name

    def drop(self) -> None:
        columns = self.rng.choice([self.model.columns, self.model.nested])
        number = self.pick(columns)
        if number is not None and len(columns) > 1:
            try:
                self.table.drop_column(self.text(columns, number))
            except PenstockError as error:
                assert "partitioned by" in str(error)  # noqa: PT017
            else:
                del columns[number]

    def widen(self) -> None:
        columns = self.rng.choice([self.model.columns, self.model.nested])
        number = self.pick({n: own for n, own in columns.items() if own[1] in WIDER})
        if number is not None:
            columns[number][1] = WIDER[columns[number][1]]
            self.table.widen_column(self.text(columns, number), columns[number][1])

    def move(self) -> None:
        columns = self.rng.choice([self.model.columns, self.model.nested])
        number, other = self.pick(columns), self.pick(columns)
        if number is not None and other is not None:
            if number == other:
                self.table.move_column(self.text(columns, number), first=True)
            else:
                self.table.move_column(self.text(columns, number), after=columns[other][0])

    def partition(self) -> None:
        number = self.pick({n: own for n, own in self.model.columns.items() if own[1] not in ("float", "double")})
        if number is None:
            return
        name = self.model.columns[number][0]
        new = self.rng.choice([name, f"bucket(3, {name})", f"truncate(2, {name})"])
        now = self.table.partitioned_by
        try:
            if now and self.rng.random() < 0.4:
                self.table.drop_partition_field(self.rng.choice(now))
            elif now and self.rng.random() < 0.4:
                self.table.replace_partition_field(self.rng.choice(now), new)
            elif len(now) < 3:
                self.table.add_partition_field(new)
        except PenstockError as error:
            assert "already" in str(error) or "share files" in str(error)  # noqa: PT017

    def coalesce(self) -> None:
        own = [text for text in self.table.partitioned_by if "(" not in text]
        self.table.set_coalesce(self.rng.choice(own) if own and self.rng.random() < 0.7 else None)

    def append(self) -> None:
        merging, size = self.rng.random() < 0.4, self.rng.randrange(1, 9)
        given = [n for n in self.model.columns if self.rng.random() < 0.7]
        inside = [n for n in self.model.nested if self.rng.random() < 0.7]
        if merging:
            number, name, kind = next(self.numbers), f"c{next(self.names)}", self.rng.choice(list(KINDS))
            self.model.columns[number] = [name, kind]
            given.append(number)
        rows = [{n: self.rng.choice(KINDS[self.kind(n)]) for n in [*given, *inside]} for _ in range(size)]
        has = [bool(inside) and self.rng.random() < 0.8 for _ in rows]
        for row, has_struct in zip(rows, has, strict=True):
            for n in inside if not has_struct else ():
                del row[n]
        columns = {self.model.columns[n][0]: pa.array([row[n] for row in rows], ARROW[self.kind(n)]) for n in given}
        if inside:
            kind = pa.struct([(self.model.nested[n][0], ARROW[self.kind(n)]) for n in inside])
            values = [{self.model.nested[n][0]: row[n] for n in inside} if s else None
                      for row, s in zip(rows, has, strict=True)]  # fmt: skip
            columns["s"] = pa.array(values, kind)
        if columns:
            self.table.append(pa.table(columns), merge_schema=merging)
            self.model.rows += rows
            self.model.struct_rows += has

    def delete(self) -> None:
        number = self.pick({n: own for n, own in self.model.columns.items() if own[1] == "string"})
        if number is not None:
            self.table.delete(f"{self.model.columns[number][0]} = 'a'")
            staying = [row.get(number) != "a" for row in self.model.rows]
            kept = [
                (r, s) for r, s, stays in zip(self.model.rows, self.model.struct_rows, staying, strict=True) if stays
            ]
            self.model.rows, self.model.struct_rows = [r for r, _ in kept], [s for _, s in kept]

    def update(self) -> None:
        """A column becomes a constant in the rows that have some value in another one."""
        number, other = self.pick(self.model.columns), self.pick(self.model.columns)
        if number is None or other is None:
            return
        (name, kind), (asked, asked_kind) = self.model.columns[number], self.model.columns[other]
        new, value = self.rng.choice(KINDS[kind]), self.rng.choice(KINDS[asked_kind])
        where = f"{asked} IS NULL" if value is None else f"{asked} = {_literal(value)}"
        self.table.update({name: "NULL" if new is None else _literal(new)}, where)
        for row in self.model.rows:
            if row.get(other) == value:
                row[number] = new

    def upsert(self) -> None:
        """By a column of which several rows of the table may have the same value."""
        key = self.pick({n: own for n, own in self.model.columns.items() if own[1] in ("int", "bigint", "string")})
        if key is None:
            return
        columns = [key, *(n for n in self.model.columns if n != key and self.rng.random() < 0.5)]
        values = self.rng.sample(KINDS[self.kind(key)], 2)
        rows = [{n: self.rng.choice(KINDS[self.kind(n)]) for n in columns} | {key: value} for value in values]
        arrays = {self.model.columns[n][0]: pa.array([r[n] for r in rows], ARROW[self.kind(n)]) for n in columns}
        self.table.upsert(pa.table(arrays), on=self.model.columns[key][0])
        before = list(self.model.rows)
        for new in rows:
            met = [row for row in before if new[key] is not None and row.get(key) == new[key]]
            for row in met:
                row.update(new)
            if not met:
                self.model.rows.append(new)
                self.model.struct_rows.append(False)

    def rollback(self) -> None:
        """Rows come back under the schema of today: without columns that were dropped, NULL in new ones."""
        log = self.table.history()["snapshot_id"].to_pylist()
        if not log:
            return
        snapshot_id = self.rng.choice([i for i in log if i in self.history])
        self.table.rollback(snapshot_id)
        self.model.rows, self.model.struct_rows = deepcopy(self.history[snapshot_id])

    def branch(self) -> None:
        """A branch is written to and published."""
        if head_id(self.table) is None:
            return
        name = f"branch {next(self.names)}"
        self.table.create_branch(name)
        main, self.table = self.table, self.table.at_branch(name)
        self.rng.choice([self.append, self.delete, self.update, self.upsert])()
        self.table = main.refresh()
        self.table.fast_forward("main", to=name)
        self.table.drop_branch(name)

    def set_modes(self) -> None:
        self.table.set_properties(some_modes(self.rng))

    def compact(self) -> None:
        self.table.compact()
        assert self.table.compact().rewritten == 0
        layout = {self.table.table.metadata.default_spec_id}
        specs = {task.spec_id for task in self.table.plan().files if task.logical is None}
        assert specs <= layout, "every file is of the newest partitioning, or shared"

    def kind(self, number: int) -> str:
        return (self.model.columns.get(number) or self.model.nested[number])[1]

    def text(self, columns: dict[int, list[str]], number: int) -> str:
        return columns[number][0] if columns is self.model.columns else f"s.{columns[number][0]}"

    def check(self) -> None:
        snapshot_id = head_id(self.table)
        if snapshot_id is not None:
            self.history[snapshot_id] = deepcopy((self.model.rows, self.model.struct_rows))
        expected = self.model.shown()
        assert bag(self.table.arrow()) == expected
        theirs = self.table.table.catalog.load_table(self.table.name)
        assert bag(theirs.scan().to_arrow()) == expected
        duck = connect_duckdb().sql(f"SELECT * FROM iceberg_scan('{local(theirs.metadata_location)}')").to_arrow_table()
        assert bag(duck) == expected
        for number, (name, kind) in self.model.columns.items():
            value = self.rng.choice([each for each in KINDS[kind] if each is not None])
            where = f"{name} = {_literal(value)}"
            matching = sum(row.get(number) == value for row in self.model.rows)
            assert self.table.count(where) == matching, where
            scan = theirs.scan(row_filter=where)
            assert scan.to_arrow().num_rows == matching, where
            assert len(self.table.plan(where).files) <= len({task.file.file_path for task in scan.plan_files()}), where
            nulls = sum(row.get(number) is None for row in self.model.rows)
            assert self.table.count(f"{name} IS NULL") == nulls, name


def _literal(value: Any) -> str:
    return f"'{value}'" if isinstance(value, str) else repr(value)


def bag(rows: pa.Table) -> Counter[str]:
    """Rows without an order of rows, columns or fields."""
    return Counter(_text(row) for row in rows.to_pylist())


def _text(row: dict[str, Any]) -> str:
    inner = row["s"]
    return repr(sorted(({**row, "s": None if inner is None else sorted(inner.items())}).items()))


@pytest.mark.parametrize("seed", variants(range(120), 2))
def test_every_reader_has_the_rows_of_the_model_after_every_change(tmp_path: Path, seed: int) -> None:
    rng = Random(seed)
    version = rng.choice(["1", "2", "2"])
    table = managed_table(tmp_path, "a int, b string, s struct<x: int>", properties={"format-version": version})
    history = History(table, rng, Model({1: ["a", "int"], 2: ["b", "string"]}, {3: ["x", "int"]}))
    steps: list[Callable[[], None]] = [
        *[history.append] * 4, *[history.partition] * 3, history.add, history.rename, history.drop, history.widen,
        history.move, history.coalesce, history.delete, history.compact, history.update, *[history.upsert] * 2,
        history.set_modes, history.rollback, history.branch,
    ]  # fmt: skip
    history.append()
    history.check()
    for _ in range(STEPS):
        rng.choice(steps)()
        history.check()
    assert penstock.connect(tmp_path).table("web.t").schema == history.table.schema
