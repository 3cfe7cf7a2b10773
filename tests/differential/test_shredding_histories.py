"""Random histories of tables with shredded maps, by Penstock and by PyIceberg, against plain rows: the same rows after
every step, whole, by key and by predicate, in every version of the table."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from penstock import Shred
from tests.fixtures.managed_tables import (
    CLAUSES,
    Model,
    delete_by_pyiceberg,
    head_id,
    pick,
    reopened,
    snapshot_ids,
    some_modes,
)
from tests.fixtures.shredding import MAP, foreign, foreign_append, is_complete, shredded_table
from tests.fixtures.variants import variants

NUMBERS = pa.map_(pa.string(), pa.int64())
STRUCT = pa.struct([pa.field("n", pa.int32()), pa.field("m", MAP)])
SCHEMA = pa.schema(
    [("id", pa.int64()), ("app", pa.string()), ("headers", MAP), ("numbers", NUMBERS), ("s", STRUCT)]
)  # fmt: skip
KEYS = ["a", "b", "c", "", "x,y", "é"]
TEXTS: list[Any] = ["1", "2", None, "", "x" * 20, "x" * 20 + "y", "\U0010ffff" * 17, "zz"]
COUNTS: list[Any] = [0, None, 5, -1, 2**40]
MAPS = {"headers": TEXTS, "numbers": COUNTS, "s.m": TEXTS}


def some_map(rng: Random, values: list[Any]) -> list[tuple[str, Any]] | None:
    if rng.random() < 0.15:
        return None
    keys = [key for i, key in enumerate(KEYS) if rng.random() < 0.8 / (1 + i / 2)]
    return list(zip(keys, pick(rng, values, len(keys)), strict=True))


def some_rows(rng: Random, first: int, most: int) -> pa.Table:
    count = rng.randrange(1, most)
    narrow = rng.random() < 0.4  # files with few values can be pruned by their bounds
    texts, counts = (rng.sample(TEXTS, 2), rng.sample(COUNTS, 2)) if narrow else (TEXTS, COUNTS)
    structs = [None if rng.random() < 0.2 else {"n": i, "m": some_map(rng, texts)} for i in range(count)]
    return pa.table(
        {
            "id": range(first, first + count),
            "app": pick(rng, ["shop", "blog", None], count),
            "headers": pa.array([some_map(rng, texts) for _ in range(count)], MAP),
            "numbers": pa.array([some_map(rng, counts) for _ in range(count)], NUMBERS),
            "s": pa.array(structs, STRUCT),
        },
        schema=SCHEMA,
    )


def literal(value: Any) -> str:
    return "'" + value + "'" if isinstance(value, str) else str(value)


def condition(rng: Random, ids: int) -> str:
    """A test of one key of a map, or of something beside it."""
    column = rng.choice(["headers", "headers", "numbers", "s.m"])
    values = [value for value in MAPS[column] if value is not None]
    key = literal(rng.choice(KEYS[:3] + KEYS))
    term = rng.choice([f"{column}[{key}]", f"{column}[{key}]", f"try_element_at({column}, {key})"])
    known = literal(rng.choice(values))
    return rng.choice(
        [
            f"{term} = {known}",
            f"{term} = {known}",
            f"{term} <> {known}",
            f"{term} {rng.choice(['<', '<=', '>', '>='])} {known}",
            f"{term} {rng.choice(['', 'NOT '])}IN ({known}, {literal(rng.choice(values))})",
            f"{term} IS {rng.choice(['', 'NOT '])}NULL",
            f"{term} <=> {rng.choice(['NULL', known])}",
            f"map_contains_key({column}, {key})",
            f"{column} IS {rng.choice(['', 'NOT '])}NULL",
            f"size({column}) {rng.choice(['=', '>'])} {rng.randrange(3)}",
            f"headers[{key}] LIKE '{rng.choice(['x%', '%y', '%', '1'])}'",
            f"headers[{key}] = s.m[{key}]",
            f"coalesce({term}, {known}) = {known}",
            f"app = '{rng.choice(['shop', 'blog'])}'",
            f"id < {rng.randrange(ids)}",
        ]
    )


def predicate(rng: Random, ids: int, depth: int = 2) -> str:
    if depth and rng.random() < 0.5:
        parts = [predicate(rng, ids, depth - 1) for _ in range(2)]
        joined = rng.choice([" AND ", " OR ", " AND "]).join(f"({part})" for part in parts)
        return f"NOT ({joined})" if rng.random() < 0.2 else joined
    return condition(rng, ids)


def as_plain(value: Any) -> Any:
    """Maps as dicts in one order, whoever wrote them."""
    if isinstance(value, list):
        return dict(sorted(value))
    return {name: as_plain(inner) for name, inner in value.items()} if isinstance(value, dict) else value


def bag(rows: pa.Table) -> Counter[str]:
    return Counter(repr({name: as_plain(value) for name, value in row.items()}) for row in rows.to_pylist())


def some_rules(rng: Random) -> dict[str, Any]:
    """Rules for some of the maps; None for those that are to have none."""
    found: dict[str, Any] = {}
    for column in MAPS:
        mode = rng.choice(["move", "move", "mirror"])
        keys = rng.sample(KEYS, rng.randrange(1, 4))
        found[column] = rng.choice(
            [Shred(*keys, mode=mode), Shred(*keys, mode=mode), Shred(auto=True, mode=mode), None]
        )
    return found


@dataclass
class History:
    """One table with its model, and what was done to it."""

    root: Path
    rng: Random
    steps: list[str] = field(default_factory=list)
    next_id: int = 0

    def __post_init__(self) -> None:
        rules = {column: rule for column, rule in some_rules(self.rng).items() if rule is not None}
        options: dict[str, Any] = self.rng.choice(
            [{}, {"partition_by": ["app"]}, {"partition_by": ["app"], "coalesce": ["app"]}]
        )
        properties = {
            "commit.manifest.min-count-to-merge": str(self.rng.choice([2, 100])),
            "write.target-file-size-bytes": str(self.rng.choice([3_000, 512 << 20])),
            "format-version": self.rng.choice(["1", "2", "2"]),
            **some_modes(self.rng),
        }
        self.steps.append(f"create {rules} {options} {properties}")
        self.table = shredded_table(self.root, rules, SCHEMA, properties=properties, **options)
        self.model = Model(SCHEMA.empty_table())

    def run(self, steps: int) -> None:
        choices = {
            self.append: 5, self.append_by_another: 1, self.append_by_pyiceberg: 3, self.delete: 3,
            self.delete_by_pyiceberg: 1, self.overwrite: 2, self.compact: 2, self.change_rules: 3,
            self.update: 2, self.merge: 3, self.set_modes: 1, self.rollback: 1, self.branch: 1,
        }  # fmt: skip
        self.append()
        self.check()
        for _ in range(steps - 1):
            self.rng.choices(list(choices), list(choices.values()))[0]()
            self.check()
        self.check_versions(snapshot_ids(self.table))
        self.compact()
        self.check()

    def rows(self, most: int = 10) -> pa.Table:
        found = some_rows(self.rng, self.next_id, most)
        self.next_id += found.num_rows
        return found

    def where(self) -> str:
        return predicate(self.rng, max(2, self.next_id))

    def append(self) -> None:
        rows = self.rows()
        self.steps.append(f"append {rows.to_pylist()}")
        self.table.append(rows)
        self.model.append(rows)

    def append_by_another(self) -> None:
        """A table object that has not seen what others did."""
        rows = self.rows()
        self.steps.append(f"append {rows.to_pylist()} by another writer")
        reopened(self.root).append(rows)
        self.table.refresh()
        self.model.append(rows)

    def append_by_pyiceberg(self) -> None:
        rows = self.rows()
        self.steps.append(f"append {rows.to_pylist()} by PyIceberg")
        foreign_append(self.table, rows)
        self.model.append(rows)

    def delete(self) -> None:
        where = self.where()
        self.steps.append(f"delete {where}")
        self.table.delete(where)
        self.model.delete(where)

    def delete_by_pyiceberg(self) -> None:
        gone = self.rng.sample(range(self.next_id), min(self.next_id, 3))
        where = f"id IN ({', '.join(map(str, gone))})"
        self.steps.append(f"delete {where} by PyIceberg")
        if self.model.matching(where).num_rows:
            delete_by_pyiceberg(foreign(self.table), where)
        self.table.refresh()
        self.model.delete(where)

    def overwrite(self) -> None:
        where = self.where()
        rows = Model(self.rows(9)).matching(where)
        self.steps.append(f"overwrite {rows.to_pylist()} where {where}")
        self.table.overwrite(rows, where)
        self.model.overwrite(rows, where)

    def update(self) -> None:
        """Some of the maps, or what is beside them, become those of one row."""
        where, row = self.where(), some_rows(self.rng, 0, 2)
        columns = self.rng.sample(["app", "headers", "numbers", "s"], 2)
        values = {name: row[name][0].as_py() for name in columns}
        self.steps.append(f"update {values} where {where}")
        texts = {name: literal(value) if isinstance(value, str) else value for name, value in values.items()}
        self.table.update(texts, where)
        self.model.update(values, where)

    def merge(self) -> None:
        """Rows that are new, and others in the place of some that may exist."""
        ids = self.rng.sample(range(self.next_id), min(self.next_id, self.rng.randrange(8)))
        source = pa.concat_tables([self.rows(5), *(some_rows(self.rng, each, 2) for each in ids)])
        wheres = {name: self.rng.choice(["TRUE", "FALSE", self.where()]) for name in CLAUSES}
        self.steps.append(f"merge {source.to_pylist()} with {wheres}")
        merge: Any = self.table.merge(source, on="id")
        for name, method in CLAUSES.items():
            merge = getattr(merge, method)(where=wheres[name])
        merge.execute()
        self.model.merge(source, "id", wheres)

    def set_modes(self) -> None:
        modes = some_modes(self.rng)
        self.steps.append(f"modes {modes}")
        self.table.set_properties(modes)

    def rollback(self) -> None:
        log = self.table.history()["snapshot_id"].to_pylist()
        snapshot_id = self.rng.choice([i for i in log if i in self.model.history])
        self.steps.append(f"rollback to {snapshot_id}")
        self.table.rollback(snapshot_id)
        self.model.rows = self.model.history[snapshot_id]

    def branch(self) -> None:
        """Rows are written to a branch, under rules that may have changed since, and published."""
        rows, where, name = self.rows(), self.where(), f"branch {len(self.steps)}"
        self.steps.append(f"{name}: append {rows.to_pylist()}, delete {where}")
        self.table.create_branch(name)
        branch = reopened(self.root).at_branch(name)
        branch.append(rows)
        branch.delete(where)
        assert bag(self.table.refresh().arrow()) == bag(self.model.rows)
        self.table.fast_forward("main", to=name)
        self.table.drop_branch(name)
        self.model.append(rows)
        self.model.delete(where)

    def compact(self) -> None:
        self.steps.append("compact")
        self.table.compact()
        assert is_complete(self.table)

    def change_rules(self) -> None:
        rules = self.rng.choice([None, some_rules(self.rng), some_rules(self.rng)])
        self.steps.append(f"rules {rules}")
        self.table.set_shred(rules)

    def check(self) -> None:
        table, model = self.table, self.model
        model.remember(head_id(table))
        assert bag(table.arrow()) == bag(model.rows)
        assert table.count() == model.rows.num_rows
        self.check_keys()
        for _ in range(3):
            self.ask(table, model.rows, self.where())
        ids = snapshot_ids(table)
        self.check_versions(self.rng.sample(ids, 1) if ids else [])

    def check_keys(self) -> None:
        """Keys of maps without their maps."""
        column, key = self.rng.choice(list(MAPS)), self.rng.choice(KEYS)
        name = f"{column}[{literal(key)}]"
        found = self.table.arrow(columns=["id", name]).rename_columns(["id", "value"])
        maps = {row["id"]: row["s"] and row["s"]["m"] if column == "s.m" else row[column]
                for row in self.model.rows.to_pylist()}  # fmt: skip
        assert {row["id"]: row["value"] for row in found.to_pylist()} == {
            i: None if each is None else dict(each).get(key) for i, each in maps.items()
        }, name

    def ask(self, table: Any, rows: pa.Table, where: str) -> None:
        expected = Model(rows).matching(where)
        assert bag(table.arrow(where)) == bag(expected), where
        assert table.count(where) == expected.num_rows, where

    def check_versions(self, ids: list[int]) -> None:
        for snapshot_id in ids:
            rows = self.model.history.get(snapshot_id)
            if rows is not None:  # those between two steps are not in the model
                old = self.table.at(snapshot_id)
                assert bag(old.arrow()) == bag(rows), snapshot_id
                self.ask(old, rows, self.where())


def run(root: Path, seed: int, steps: int) -> None:
    history = History(root, Random(f"shredding {seed}"))
    try:
        history.run(steps)
    except Exception as error:
        told = "\n  ".join(history.steps)
        raise AssertionError(f"seed {seed}, {error!r} after\n  {told}") from error


@pytest.mark.parametrize("seed", variants(range(6), every_run=1))
def test_a_table_equals_plain_rows_after_every_step(tmp_path: Path, seed: int) -> None:
    run(tmp_path, seed, steps=6)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1_000, 1_100))
def test_a_table_equals_plain_rows_after_every_step_of_long_histories(tmp_path: Path, seed: int) -> None:
    run(tmp_path, seed, steps=20)
