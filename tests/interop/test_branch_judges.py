"""Iceberg's Spark runtime reads the tags and branches that Penstock makes and writes, and Penstock those of Iceberg."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

import penstock
from penstock.lake.managed_table import ManagedTable
from tests.interop.iceberg_judge import IcebergJudge
from tests.interop.managed_written import run, runtime_on

pytestmark = [pytest.mark.interop, pytest.mark.spark]


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> penstock.Lake:
    return penstock.connect(tmp_path_factory.mktemp("branches"))


@pytest.fixture(scope="module")
def judge(lake: penstock.Lake) -> Iterator[IcebergJudge]:
    with runtime_on(lake) as process:
        yield process


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "app": ["abc"[i % 3] for i in ids]})


def ids(table: Any) -> list[int]:
    return sorted(table.arrow()["id"].to_pylist())


def by_iceberg(judge: IcebergJudge, table: str) -> list[int]:
    found: list[Any] = judge.ask(run, f"SELECT id FROM {table} ORDER BY id")
    return [row[0] for row in found]


def changed(judge: IcebergJudge, view: str, ids: tuple[int, int]) -> list[Any]:
    """Iceberg's own view of what was changed."""
    options = f"map('start-snapshot-id', '{ids[0]}', 'end-snapshot-id', '{ids[1]}')"
    arguments = f"table => 'web.t', options => {options}, changelog_view => '{view}', net_changes => true"
    call = f"CALL penstock.system.create_changelog_view({arguments})"
    judge.ask(run, call)
    found: list[Any] = judge.ask(run, f"SELECT id, app, _change_type FROM {view} ORDER BY ALL")
    return found


def test_both_write_the_same_branches(lake: penstock.Lake, judge: IcebergJudge) -> None:
    made = lake.create_table("web.t", "id bigint, app string", ["app"], coalesce=["app"])
    assert isinstance(made, ManagedTable)
    made.append(rows(1, 2, 3))
    made.create_tag("eod")
    made.create_branch("audit")
    audit = made.at_branch("audit")
    audit.append(rows(4, 5))
    audit.delete("id = 1")
    audit.compact()
    name = "penstock.web.t"
    assert by_iceberg(judge, f"{name}.branch_audit") == ids(audit) == [2, 3, 4, 5]
    assert by_iceberg(judge, f"{name} VERSION AS OF 'audit'") == [2, 3, 4, 5]
    assert by_iceberg(judge, f"{name} VERSION AS OF 'eod'") == by_iceberg(judge, name) == [1, 2, 3]
    judge.ask(run, f"INSERT INTO {name}.branch_audit VALUES (6, 'a')")
    judge.ask(run, f"DELETE FROM {name}.branch_audit WHERE id = 2")
    assert ids(audit.refresh()) == [3, 4, 5, 6]
    audit.append(rows(7))
    before, after = made.refresh().version.snapshot_id, audit.version.snapshot_id
    made.fast_forward("main", to="audit")
    assert by_iceberg(judge, name) == ids(made) == [3, 4, 5, 6, 7]
    told = sorted((row["id"], row["app"], row["_change_type"].upper()) for row in made.changes("eod").to_pylist())
    assert before is not None
    assert after is not None
    assert changed(judge, "changed", (before, after)) == told
    made.rollback("eod")
    assert by_iceberg(judge, name) == [1, 2, 3]
    judge.ask(run, f"ALTER TABLE {name} CREATE BRANCH theirs")
    judge.ask(run, f"INSERT INTO {name}.branch_theirs VALUES (9, 'z')")
    made.refresh().fast_forward("main", to="theirs")
    assert by_iceberg(judge, name) == [1, 2, 3, 9]
