"""The history of a managed table: rollbacks, tags, branches that are written and published, and changes."""

from __future__ import annotations

from collections.abc import Callable, Set
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from tests.fuzz import python_steps, row_steps, sql_steps
from tests.fuzz.rows import ID
from tests.fuzz.schema_steps import check_rows
from tests.fuzz.situation import Situation, Step

_ON_BRANCHES = {
    name: steps[name]
    for steps, names in (
        (python_steps.STEPS, ("append part", "delete", "overwrite", "dynamic", "compact")),
        (sql_steps.STEPS, ("sql insert", "sql delete", "sql replace")),
        (row_steps.STEPS, ("update", "upsert", "upsert frame", "merge", "sql update", "sql merge")),
    )
    for name in names
}


def _rollback(now: Situation) -> Step:
    """By the id of a snapshot, in Python or SQL, or by a tag."""
    to = now.rng.choice(_known(now))
    if now.rng.random() < 0.4:
        text = f"CALL {now.sql.catalog}.system.rollback(table => '{now.sql.name}', to => '{to}')"
        return now.statement(text, now.snapshots[to])
    return Step(f"to {to}", {*now.snapshots[to]}, lambda: now.table.rollback(to))


def _known(now: Situation) -> list[int]:
    """Snapshots whose rows are known, and that were current."""
    log = now.table.history().column("snapshot_id").to_pylist()
    return sorted({i for i in log if i in now.snapshots}, key=log.index)


def _tag(now: Situation) -> Step:
    """A tag at an earlier snapshot is read, by Python and by SQL, and the table is rolled back to it."""
    to = now.rng.choice(_known(now))
    name, is_rolled_back, is_dropped = f"tag{now.rng.randrange(10**6)}", now.rng.random() < 0.3, now.rng.random() < 0.5

    def change() -> None:
        now.table.create_tag(name, to)
        check_rows(now, now.table.at(name).arrow(), {*now.snapshots[to]})
        for query in (f"{now.sql.table} VERSION AS OF '{name}'", f"{now.sql.table}.tag_{name}"):
            ids = [row[0] for row in now.sql.run(f"SELECT {ID} FROM {query}").collect()]
            assert sorted(ids) == sorted(now.snapshots[to]), f"{query} has other rows"
        if is_rolled_back:
            now.table.rollback(name)
        if is_dropped:
            now.table.drop_tag(name)

    return Step(f"{to}{', roll back' * is_rolled_back}", {*(now.snapshots[to] if is_rolled_back else now.live)}, change)


def _branch(now: Situation) -> Step:
    """A branch, which exists when this returns, is written to, and published or not."""
    name, what = f"branch{now.rng.randrange(10**6)}", now.rng.choice([*_ON_BRANCHES])
    is_published = now.rng.random() < 0.7
    now.table.create_branch(name)
    sql = replace(now.sql, name=f"{now.sql.name}.branch_{name}")
    inner = _ON_BRANCHES[what](replace(now, sql=sql, table=now.table.at_branch(name)))

    def change() -> None:
        try:
            inner.change()
            check_rows(now, now.table.refresh().arrow(), {*now.live})
            check_rows(now, now.table.at_branch(name).arrow(), inner.expected)
            _check_changes(now, now.table.changes("main", name), now.live, inner.expected)
            if is_published:
                now.table.fast_forward("main", name)
        finally:
            now.table.drop_branch(name)

    text = f"{what} {inner.text}{', publish' * is_published}"
    return Step(text, {*(inner.expected if is_published else now.live)}, change)


def _changes(now: Situation) -> Step:
    """The rows that were added and removed between two snapshots, all or those that match a condition."""
    older, newer = now.rng.choices(sorted(now.snapshots, key=[*now.snapshots].index), k=2)
    where = now.rng.choice([None, now.where])
    before, after = (now.snapshots[i] if where is None else now.snapshots[i] & now.matching for i in (older, newer))
    text = f"from {older} to {newer} where {where}"
    return Step(text, {*now.live}, lambda: _check_changes(now, now.table.changes(older, newer, where), before, after))


def _check_changes(now: Situation, changes: pa.Table, before: Set[int], after: Set[int]) -> None:
    types, rows = changes.column("_change_type"), changes.drop_columns(["_change_type"])
    check_rows(now, rows.filter(pc.equal(types, "insert")), {*after} - {*before})
    check_rows(now, rows.filter(pc.equal(types, "delete")), {*before} - {*after})


STEPS: dict[str, Callable[[Situation], Step]] = {
    "rollback": _rollback,
    "tag": _tag,
    "branch": _branch,
    "changes": _changes,
}
