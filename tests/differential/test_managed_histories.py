"""Random histories of managed tables against a model of plain rows.

A history makes a table of one of five layouts and takes random steps: appends, overwrites, deletes, updates and
merges on write and on read, changes of the rule, compactions, expiry, sweeps, rollbacks, branches that are published or
dropped, writers that are behind and writers at once, and what other engines do: appends, deletes, renamed columns,
adopted files. After every step the table
equals the model, random predicates give the same rows and counts as the model, PyIceberg and DuckDB read the same rows,
PyIceberg never plans fewer files, a query of one logical value opens exactly the files that hold it, partitions add up
to the rows, snapshots that still exist equal the model as it was then, and the changes between two are what differs.

`make test` runs 3 histories of 8 steps for each layout, 120 steps in all; those that are marked slow run 60 of 25
steps for each layout, 7,500 steps in all.
"""

from __future__ import annotations

import datetime as dt
import re
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyiceberg.transforms import BucketTransform
from pyiceberg.types import LongType

from penstock import Coalesce
from penstock.errors import LakeError
from penstock.expr.types import TIMESTAMP
from penstock.lake.managed_table import ManagedTable
from tests.fixtures.duckdb_reader import connect_duckdb
from tests.fixtures.managed_tables import (
    CLAUSES,
    Model,
    bag,
    delete_by_pyiceberg,
    files_below,
    head_id,
    live_rows,
    local,
    managed_table,
    pick,
    reachable,
    reopened,
    snapshot_ids,
    some_modes,
)
from tests.fixtures.variants import variants

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("ts", TIMESTAMP),
        ("app", pa.string()),
        ("region", pa.string()),
        ("level", pa.int32()),
        ("d", pa.date32()),
        ("p", pa.decimal128(9, 2)),
        ("x", pa.float64()),
    ]
)
_DAY = dt.datetime(2026, 5, 17, tzinfo=dt.UTC)
VALUES: dict[str, list[Any]] = {
    "ts": [_DAY, _DAY + dt.timedelta(hours=23, minutes=59), _DAY + dt.timedelta(days=1),
           dt.datetime(1969, 12, 31, 23, 59, 59, 999999, dt.UTC), None],
    "app": ["shop", "blog", "[#small]", "", "a/b=c%", None, "null", "z" * 20, "\U0010ffff" * 17, "beta"],
    "region": ["eu", "us", None, "[#small]", "ap"],
    "level": [0, None, -5, 2**31 - 1],
    "d": [dt.date(2026, 5, 17), dt.date(1969, 12, 31), None],
    "p": [Decimal("1.50"), None, Decimal("-0.01")],
    "x": [0.0, -0.0, 1.5, float("nan"), None, float("-inf")],
}  # fmt: skip


@dataclass(frozen=True)
class Kind:
    """How a table is partitioned, which columns share, and what computes a row's logical partition."""

    partition_by: tuple[str, ...]
    logical: tuple[str, ...]
    keys: tuple[Callable[[dict[str, Any]], Any], ...]


def column(name: str) -> Callable[[dict[str, Any]], Any]:
    return lambda row: row[name]


LAYOUTS = {
    "day and app": Kind(
        ("day(ts)", "app"), ("app",), (lambda row: row["ts"] and row["ts"].date(), column("app"))
    ),
    "app": Kind(("app",), ("app",), (column("app"),)),
    "region and app": Kind(("region", "app"), ("region", "app"), (column("region"), column("app"))),
    "bucket and app": Kind(
        ("bucket(4, id)", "app"),
        ("app",),
        (lambda row: BucketTransform(4).transform(LongType())(row["id"]), column("app")),
    ),
    "values of every kind": Kind(
        ("level", "d", "p"), ("level", "p"), (column("level"), column("d"), column("p"))
    ),
}  # fmt: skip


def some_rows(rng: Random, first: int, most: int = 14) -> pa.Table:
    count = rng.randrange(1, most)
    columns = {name: pick(rng, values, count) for name, values in VALUES.items()}
    return pa.table({"id": list(range(first, first + count)), **columns}, schema=SCHEMA)


def literal(name: str, value: Any) -> str:
    if isinstance(value, str):
        return "'" + value.replace("'", "\\'") + "'"
    if isinstance(value, dt.datetime):
        return f"'{value.isoformat()}'"
    return f"'{value}'" if isinstance(value, dt.date) else str(value)


def predicate(rng: Random, logical: Sequence[str], ids: int, depth: int = 2) -> str:
    """A predicate that Penstock and PyIceberg both read."""
    if depth and rng.random() < 0.5:
        parts = [predicate(rng, logical, ids, depth - 1) for _ in range(2)]
        word = rng.choice([" AND ", " OR ", " AND "])
        joined = word.join(f"({part})" for part in parts)
        return f"NOT ({joined})" if rng.random() < 0.2 else joined
    name = rng.choice([*logical, *logical, "app", "region", "level", "d", "p", "ts", "id"])
    known = list(range(ids)) if name == "id" else [value for value in VALUES[name] if value is not None]
    kind = rng.randrange(5)
    if kind == 0 and name != "id":
        return f"{name} IS {rng.choice(['', 'NOT '])}NULL"
    if kind == 1:
        listed = ", ".join(literal(name, value) for value in rng.sample(known, min(len(known), 2)))
        return f"{name} {rng.choice(['', 'NOT '])}IN ({listed})"
    operator = rng.choice(["=", "=", "=", "<", "<=", ">", ">=", "!="])
    return f"{name} {operator} {literal(name, rng.choice(known))}"


@dataclass
class History:
    """One table with its model, and what was done to it."""

    root: Path
    kind: Kind
    rng: Random
    steps: list[str] = field(default_factory=list)
    next_id: int = 0
    names: dict[str, str] = field(default_factory=dict)  # what columns are called now
    adopted: list[Path] = field(default_factory=list)

    def __post_init__(self) -> None:
        rule = self.rng.choice([None, Coalesce(*self.kind.logical), self.some_rule()])
        properties = {
            "commit.manifest.min-count-to-merge": str(self.rng.choice([2, 4, 100])),
            "write.target-file-size-bytes": str(self.rng.choice([400, 3_000, 512 << 20])),
            "format-version": self.rng.choice(["1", "2", "2"]),
            **some_modes(self.rng),
        }
        self.steps.append(f"create {self.kind.partition_by} {rule} {properties}")
        self.table = managed_table(
            self.root, SCHEMA, self.kind.partition_by, coalesce=rule, properties=properties
        )  # fmt: skip
        self.model = Model(SCHEMA.empty_table())
        self.behind = reopened(self.root)

    def run(self, steps: int) -> None:
        choices = {
            self.append: 5, self.append_behind: 2, self.overwrite_where: 3, self.overwrite_all: 1,
            self.overwrite_dynamic: 4, self.delete: 4, self.update: 3, self.merge: 4, self.set_modes: 1,
            self.change_rule: 3, self.compact: 3, self.compact_part: 1,
            self.expire: 1, self.at_once: 1, self.sweep: 1, self.rename: 1, self.foreign_append: 2,
            self.foreign_delete: 1, self.adopt: 1, self.rollback: 1, self.branch: 2,
        }  # fmt: skip
        self.append()
        self.check()
        for _ in range(steps - 1):
            self.rng.choices(list(choices), list(choices.values()))[0]()
            self.check()
        assert reachable(self.table) <= files_below(self.root)
        self.table.sweep(older_than=dt.timedelta(0), force=True)
        assert files_below(self.root) == reachable(self.table) | set(map(str, self.adopted)), "adopted files stay"
        self.check_snapshots(snapshot_ids(self.table))

    def rows(self, most: int = 14) -> pa.Table:
        rows = some_rows(self.rng, self.next_id, most)
        self.next_id += rows.num_rows
        return rows

    def where(self) -> str:
        return predicate(self.rng, self.kind.logical, max(2, self.next_id))

    def some_rule(self) -> Coalesce | None:
        logical = self.rng.choice([self.kind.logical, self.kind.logical, self.kind.logical[:1]])
        values = [tuple(self.rng.choice(VALUES[name]) for name in logical) for _ in range(self.rng.randrange(4))]
        columns = [self.names.get(name, name) for name in logical]
        most = self.rng.choice([1, 40, 256 << 10])
        return self.rng.choice(
            [
                Coalesce(*columns, record_bytes=most),
                Coalesce(*columns, values=values, record_bytes=most),
                Coalesce(*columns, below=self.rng.choice([0, 300, 2_000]), record_bytes=most),
                Coalesce(*columns, below=300, values=values, record_bytes=most),
                None,
            ]
        )

    def named(self, rows: pa.Table) -> pa.Table:
        """Rows under the names that columns have now."""
        return rows.rename_columns([self.names.get(name, name) for name in SCHEMA.names])

    def asked(self, where: str) -> str:
        """A predicate under the names that columns have now."""
        return re.sub(r"\w+", lambda word: self.names.get(word[0], word[0]), where)

    def rename(self) -> None:
        name = self.rng.choice(["app", "region", "level"])
        now = f"{name}_{len(self.steps)}"
        self.steps.append(f"rename {name} to {now} by PyIceberg")
        with self.table.table.update_schema() as update:
            update.rename_column(self.names.get(name, name), now)
        self.names[name] = now
        self.table.refresh()

    def foreign_append(self) -> None:
        rows = self.rows()
        self.steps.append(f"append {rows.num_rows} by PyIceberg")
        self.table.refresh().table.append(self.named(rows))
        self.model.append(rows)
        self.table.refresh()

    def foreign_delete(self) -> None:
        gone = self.rng.sample(range(self.next_id), min(self.next_id, 3))
        where = f"id IN ({', '.join(map(str, gone))})"
        self.steps.append(f"delete {where} by PyIceberg")
        if self.model.matching(where).num_rows:
            delete_by_pyiceberg(self.table.refresh().table, where)
        self.model.delete(where)
        self.table.refresh()

    def adopt(self) -> None:
        """A file that lies elsewhere becomes one of the table's."""
        if "bucket(4, id)" in self.kind.partition_by:
            return  # PyIceberg cannot tell the bucket of such a file
        rows = self.rows(2)
        path = self.root / "elsewhere" / f"{len(self.steps)}.parquet"
        self.steps.append(f"adopt {rows.to_pylist()}")
        path.parent.mkdir(exist_ok=True)
        pq.write_table(self.named(rows), path)
        self.table.refresh().table.add_files([str(path)])
        self.adopted.append(path)
        self.model.append(rows)
        self.table.refresh()

    def sweep(self) -> None:
        self.steps.append("sweep")
        live = reachable(self.table)
        self.table.sweep(older_than=dt.timedelta(0), force=True)
        assert live <= files_below(self.root)

    def append(self) -> None:
        rows = self.rows()
        self.steps.append(f"append {rows.num_rows}")
        self.table.append(self.named(rows))
        self.model.append(rows)

    def append_behind(self) -> None:
        """A table object that has not seen what others did."""
        rows = self.rows()
        self.steps.append(f"append {rows.num_rows} by a writer that is behind")
        self.behind.append(self.named(rows))
        self.model.append(rows)
        assert head_id(self.behind) == head_id(self.table.refresh())

    def overwrite_where(self) -> None:
        given, where = self.rows(9), self.where()
        rows = Model(given).matching(where)
        if rows.num_rows < given.num_rows:
            with pytest.raises(LakeError, match="do not match"):
                self.table.overwrite(self.named(given), self.asked(where))
        self.steps.append(f"overwrite {rows.num_rows} where {where}")
        self.rng.choice([self.table, self.behind]).overwrite(self.named(rows), self.asked(where))
        self.model.overwrite(rows, where)
        self.table.refresh()

    def overwrite_all(self) -> None:
        rows = self.rows()
        self.steps.append(f"overwrite all by {rows.num_rows}")
        self.table.overwrite(self.named(rows))
        self.model.overwrite(rows, None)

    def overwrite_dynamic(self) -> None:
        rows = self.rows(6)
        self.steps.append(f"overwrite the partitions of {rows.to_pylist()}")
        self.rng.choice([self.table, self.behind]).overwrite(self.named(rows), dynamic=True)
        self.model.overwrite_partitions(rows, self.kind.keys)
        self.table.refresh()

    def delete(self) -> None:
        where = self.where()
        self.steps.append(f"delete {where}")
        self.table.delete(self.asked(where))
        self.model.delete(where)

    def update(self) -> None:
        where = self.where()
        columns = self.rng.sample([*VALUES], self.rng.randrange(1, 4))
        values = {name: self.rng.choice(VALUES[name]) for name in columns}
        self.steps.append(f"update {values} where {where}")
        texts = {
            self.names.get(name, name): literal(name, v) if isinstance(v, str) else v for name, v in values.items()
        }
        self.rng.choice([self.table, self.behind]).update(texts, self.asked(where))
        self.model.update(values, where)
        self.table.refresh()

    def merge(self) -> None:
        """Rows that are new, and others in the place of some that may exist."""
        ids = self.rng.sample(range(self.next_id), min(self.next_id, self.rng.randrange(12)))
        rows = self.rows(6)
        values = {name: pick(self.rng, VALUES[name], len(ids)) for name in VALUES}
        source = pa.concat_tables([rows, pa.table({"id": ids, **values}, schema=SCHEMA)])
        wheres = {name: self.rng.choice(["TRUE", "FALSE", self.where()]) for name in CLAUSES}
        self.steps.append(f"merge {source.to_pylist()} with {wheres}")
        merge: Any = self.rng.choice([self.table, self.behind]).merge(self.named(source), on="id")
        for name, method in CLAUSES.items():
            merge = getattr(merge, method)(where=self.asked(wheres[name]))
        merge.execute()
        self.model.merge(source, "id", wheres)
        self.table.refresh()

    def set_modes(self) -> None:
        modes = some_modes(self.rng)
        self.steps.append(f"modes {modes}")
        self.table.set_properties(modes)

    def change_rule(self) -> None:
        rule = self.some_rule()
        self.steps.append(f"rule {rule}")
        self.table.set_coalesce(rule)

    def compact(self) -> None:
        self.steps.append("compact")
        self.table.compact()
        self.check_snapshots(snapshot_ids(self.table)[:-1])

    def compact_part(self) -> None:
        where = self.where()
        self.steps.append(f"compact {where}")
        self.table.compact(self.asked(where))

    def expire(self) -> None:
        keep = self.rng.randrange(1, 4)
        self.steps.append(f"expire all but {keep}")
        self.table.expire(older_than=dt.timedelta(0), keep_last=keep)
        self.model.history = {i: self.model.history[i] for i in snapshot_ids(self.table) if i in self.model.history}
        self.check_snapshots(snapshot_ids(self.table))

    def rollback(self) -> None:
        log = self.table.history()["snapshot_id"].to_pylist()
        snapshot_id = self.rng.choice([i for i in log if i in self.model.history])
        self.steps.append(f"rollback to {snapshot_id}")
        self.table.rollback(snapshot_id)
        assert head_id(self.table) == snapshot_id
        self.model.rows = self.model.history[snapshot_id]

    def branch(self) -> None:
        """Rows are written to a branch, which is published or not."""
        rows, where, name = self.rows(), self.where(), f"branch {len(self.steps)}"
        is_published, is_compacted = self.rng.random() < 0.7, self.rng.random() < 0.5
        self.steps.append(f"{name}: append {rows.num_rows}, delete {where}, {is_compacted=}, {is_published=}")
        self.table.create_branch(name)
        branch = reopened(self.root).at_branch(name)
        branch.append(self.named(rows))
        branch.delete(self.asked(where))
        if is_compacted:
            branch.compact()
        after = Model(self.model.rows)
        after.append(rows)
        after.delete(where)
        assert bag(plain(branch.arrow())) == bag(after.rows)
        assert bag(plain(self.table.refresh().arrow())) == bag(self.model.rows)
        assert changed(self.table.changes("main", name)) == difference(self.model.rows, after.rows)
        if is_published:
            self.table.fast_forward("main", to=name)
            self.model.rows = after.rows
        self.table.drop_branch(name)

    def at_once(self) -> None:
        """Writers that do not disturb each other: whoever comes first, the outcome is the same."""
        gone = self.rng.sample(range(self.next_id), min(self.next_id, 5))
        where = f"id IN ({', '.join(map(str, gone))})"
        parts = [self.rows(8) for _ in range(2)]
        self.steps.append(f"at once: append {[part.num_rows for part in parts]}, delete {where}, compact")
        tables = [reopened(self.root) for _ in range(4)]
        with ThreadPoolExecutor(4) as pool:
            running = [pool.submit(table.append, self.named(part)) for table, part in zip(tables, parts, strict=False)]
            running.append(pool.submit(tables[2].delete, where))
            running.append(pool.submit(tables[3].compact))
            for each in running:
                each.result()
        self.model.delete(where)
        for part in parts:
            self.model.append(part)
        self.table.refresh()

    def check(self) -> None:
        table, model = self.table, self.model
        model.remember(head_id(table))
        assert bag(plain(table.arrow())) == bag(model.rows)
        assert bag(plain(table.table.scan().to_arrow()).cast(SCHEMA)) == bag(model.rows)
        assert table.count() == model.rows.num_rows
        for _ in range(2):
            self.ask(table, model.rows, self.where())
        self.check_files()
        self.check_partitions()
        ids = snapshot_ids(table)
        self.check_snapshots(self.rng.sample(ids, 1) if ids else [])
        self.check_changes([i for i in ids if i in model.history])
        assert all(path.exists() for path in self.adopted)

    def check_files(self) -> None:
        """A query of one logical value opens the files that hold it; of others only those that do not say theirs."""
        tasks = {task.path: task for task in self.table.plan().files}
        held = live_rows(self.table.table, ["id"])
        assert held.keys() == tasks.keys()
        if held:
            scan = f"SELECT id FROM iceberg_scan('{local(self.table.table.metadata_location)}')"
            ids_by_duckdb = [row[0] for row in connect_duckdb().sql(scan).fetchall()]
            assert sorted(ids_by_duckdb) == sorted(self.model.rows["id"].to_pylist())
        name = self.rng.choice(self.kind.logical)
        value = self.rng.choice(VALUES[name])
        where = f"{name} IS NULL" if value is None else f"{name} = {literal(name, value)}"
        ids = set(Model(self.model.rows).matching(where)["id"].to_pylist())
        expected = {path for path, rows in held.items() if ids & set(rows["id"].to_pylist())}
        planned = {task.path for task in self.table.plan(self.asked(where)).files}
        assert expected <= planned, where
        fine = self.table.table.metadata.default_spec_id
        more = [tasks[path] for path in planned - expected]
        assert all(task.deletes or (task.spec_id != fine and task.logical is None) for task in more), where

    def check_partitions(self) -> None:
        found = self.table.partitions().to_pylist()
        if any(row["deletes"] for row in found):
            return  # rows that delete files name are counted
        assert sum(row["rows"] for row in found) == self.model.rows.num_rows
        if any(row["unknown"] for row in found):
            return
        rows = Counter(str([key(row) for key in self.kind.keys]) for row in self.model.rows.to_pylist())
        columns = self.table.partitions().column_names[1:-8]
        assert len(columns) >= len(self.kind.keys) or not found
        if len(columns) == len(self.kind.keys):
            assert {str([row[name] for name in columns]): row["rows"] for row in found} == rows

    def check_changes(self, ids: Sequence[int]) -> None:
        for older, newer in [self.rng.choices(ids, k=2)] if ids else ():
            expected = difference(self.model.history[older], self.model.history[newer])
            assert changed(self.table.changes(older, newer)) == expected, (older, newer)

    def ask(self, table: ManagedTable, rows: pa.Table, where: str) -> None:
        expected, here = Model(rows).matching(where), self.asked(where)
        assert bag(plain(table.arrow(here))) == bag(expected), where
        assert table.count(here) == expected.num_rows, where
        planned = {task.path for task in table.plan(here).files}
        judged = planned_by_pyiceberg(table, here)
        assert judged is None or len(planned) <= len(judged), f"{where}: {sorted(planned - judged)}"

    def check_snapshots(self, ids: Sequence[int]) -> None:
        for snapshot_id in ids:
            rows = self.model.history.get(snapshot_id)
            if rows is not None:  # those between two steps are not in the model
                old = self.table.at(snapshot_id)
                assert bag(plain(old.arrow())) == bag(rows), snapshot_id
                where = self.where()
                if not self.names:  # an old version has the names of its time
                    assert bag(old.arrow(where)) == bag(Model(rows).matching(where)), where


def plain(rows: pa.Table) -> pa.Table:
    """Rows under the names that columns had at first."""
    return rows.rename_columns(SCHEMA.names)


def changed(changes: pa.Table) -> tuple[Counter[str], Counter[str]]:
    """The rows that were added, and those that were removed."""
    types, rows = changes["_change_type"], plain(changes.drop_columns(["_change_type"]))
    return bag(rows.filter(pc.equal(types, "insert"))), bag(rows.filter(pc.equal(types, "delete")))


def difference(before: pa.Table, after: pa.Table) -> tuple[Counter[str], Counter[str]]:
    """The same, of plain rows."""
    return bag(after) - bag(before), bag(before) - bag(after)


def planned_by_pyiceberg(table: ManagedTable, where: str) -> set[str] | None:
    """The files that PyIceberg keeps; its residuals know no order of null, and then there is no answer."""
    try:
        return {task.file.file_path for task in table.table.scan(row_filter=where).plan_files()}
    except TypeError:
        return None


def run(root: Path, layout: str, seed: int, steps: int) -> None:
    history = History(root, LAYOUTS[layout], Random(f"{layout} {seed}"))
    try:
        history.run(steps)
    except Exception as error:
        told = "\n  ".join(history.steps)
        raise AssertionError(f"layout {layout!r}, seed {seed}, {error!r} after\n  {told}") from error


@pytest.mark.parametrize("seed", variants(range(3), every_run=1))
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_table_equals_plain_rows_after_every_step(tmp_path: Path, layout: str, seed: int) -> None:
    run(tmp_path, layout, seed, steps=8)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1000, 1060))
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_table_equals_plain_rows_after_every_step_of_long_histories(tmp_path: Path, layout: str, seed: int) -> None:
    run(tmp_path, layout, seed, steps=25)
