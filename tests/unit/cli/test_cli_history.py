"""The commands about history, and those that change which tables there are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner, Result

import penstock
from penstock.cli.main import main
from penstock.lake.managed_table import ManagedTable
from tests.fixtures.hive_writer import write_file
from tests.fixtures.managed_tables import files_below, head_id, managed_table, snapshot_ids


@pytest.fixture
def table(tmp_path: Path) -> ManagedTable:
    table = managed_table(tmp_path, "app string, n bigint", ["app"])
    table.append(pa.table({"app": ["a", "b"], "n": [1, 2]}))
    table.append(pa.table({"app": ["a"], "n": [3]}))
    table.delete("n = 1")
    return table


def run(root: Path, *words: str, answer: str | None = None) -> Result:
    return CliRunner().invoke(main, [*words, "--warehouse", str(root)], input=answer)


def told(root: Path, *words: str) -> Any:
    done = run(root, *words, "--json")
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


@pytest.fixture
def at_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("click.testing._NamedTextIOWrapper.isatty", lambda self: True, raising=False)


def count(table: ManagedTable) -> int:
    return table.refresh().count()


def test_history_lists_snapshots_with_what_they_did(table: ManagedTable, tmp_path: Path) -> None:
    table.create_tag("eod")
    table.rollback(snapshot_ids(table)[0])
    snapshots = told(tmp_path, "history", "web.t")
    assert [each["snapshot_id"] for each in snapshots] == snapshot_ids(table)[::-1]
    assert [each["operation"] for each in snapshots] == ["delete", "append", "append"]
    assert [each["refs"] for each in snapshots] == [["eod"], [], ["main"]]
    assert [each["is_current_ancestor"] for each in snapshots] == [False, False, True]
    assert snapshots[0]["summary"]["deleted-records"] == "1"
    text = run(tmp_path, "history", "web.t").stdout
    newest = next(line.split("│") for line in text.splitlines() if "│" in line)
    assert [cell.strip() for cell in newest[3:9]] == ["delete", "", "1", "2", "", "eod"]
    on_branch = told(tmp_path, "history", "web.t", "--branch", "main")
    assert on_branch == snapshots


def test_history_of_a_table_without_snapshots_is_empty(tmp_path: Path) -> None:
    managed_table(tmp_path, "n bigint")
    assert told(tmp_path, "history", "web.t") == []
    assert run(tmp_path, "history", "web.t").stderr == "web.t has no snapshots\n"


def test_changes_are_rows_with_signs(table: ManagedTable, tmp_path: Path) -> None:
    first = str(snapshot_ids(table)[0])
    changes = told(tmp_path, "changes", "web.t", first)
    assert (changes["inserted"], changes["deleted"]) == (1, 1)
    assert {"app": "a", "n": 3, "_change_type": "insert"} in changes["rows"]
    text = run(tmp_path, "changes", "web.t", first, "main", "--limit", "1").stdout
    assert text.endswith("1 row added, 1 row removed; 1 shown\n")
    assert "│ + │ a   │ 3 │" in text
    nothing = run(tmp_path, "changes", "web.t", first, "--where", "app = 'z'")
    assert nothing.stdout == "0 rows added, 0 rows removed\n"


def test_a_rollback_is_confirmed_by_an_option(table: ManagedTable, tmp_path: Path) -> None:
    first, *_, last = snapshot_ids(table)
    done = run(tmp_path, "rollback", "web.t", str(first))
    message = f"Error: roll main of web.t back to {first}: not confirmed, and nothing was changed; add --yes\n"
    assert (done.exit_code, done.stderr) == (2, message)
    assert head_id(table.refresh()) == last
    expected = {"branch": "main", "previous_snapshot_id": last, "current_snapshot_id": first}
    assert told(tmp_path, "rollback", "web.t", str(first), "--yes") == expected
    assert head_id(table.refresh()) == first
    text = run(tmp_path, "rollback", "web.t", str(last), "--yes").stdout
    assert text == f"main is at snapshot {last} now; it was at {first}\n"


@pytest.mark.usefixtures("at_a_terminal")
def test_a_terminal_asks(table: ManagedTable, tmp_path: Path) -> None:
    first, *_, last = snapshot_ids(table)
    done = run(tmp_path, "rollback", "web.t", str(first), answer="n\n")
    assert done.exit_code == 1
    assert done.stderr.startswith(f"roll main of web.t back to {first}? [y/N]:")
    assert done.stderr.endswith("nothing was changed\n")
    assert head_id(table.refresh()) == last
    assert run(tmp_path, "rollback", "web.t", str(first), answer="y\n").exit_code == 0
    assert head_id(table.refresh()) == first


def test_tags_are_created_listed_and_dropped(table: ManagedTable, tmp_path: Path) -> None:
    first, *_, last = snapshot_ids(table)
    assert told(tmp_path, "tag", "web.t") == []
    assert run(tmp_path, "tag", "web.t").stderr == "web.t has no tag\n"
    assert told(tmp_path, "tag", "web.t", "eod") == {"created": "eod", "snapshot_id": last}
    created = run(tmp_path, "tag", "web.t", "begin", "--snapshot", str(first)).stdout
    assert created == f"created tag begin at snapshot {first}\n"
    listed = [{"name": "begin", "snapshot_id": first}, {"name": "eod", "snapshot_id": last}]
    assert told(tmp_path, "tag", "web.t") == listed
    assert "begin" in run(tmp_path, "tag", "web.t").stdout
    assert run(tmp_path, "tag", "web.t", "eod", "--drop").stdout == "dropped tag eod\n"
    assert told(tmp_path, "tag", "web.t") == listed[:1]


def test_a_branch_is_written_and_published(table: ManagedTable, tmp_path: Path) -> None:
    last = head_id(table)
    assert told(tmp_path, "branch", "web.t", "audit") == {"created": "audit", "snapshot_id": last}
    table.at_branch("audit").append(pa.table({"app": ["c"], "n": [4]}))
    head = head_id(table.at_branch("audit"))
    assert told(tmp_path, "branch", "web.t") == [
        {"name": "audit", "snapshot_id": head},
        {"name": "main", "snapshot_id": last},
    ]
    assert told(tmp_path, "changes", "web.t", "main", "audit")["inserted"] == 1
    assert len(told(tmp_path, "history", "web.t", "--branch", "audit")) == 4
    moved = told(tmp_path, "fast-forward", "web.t", "main", "audit")
    assert moved == {"branch": "main", "previous_snapshot_id": last, "current_snapshot_id": head}
    assert count(table) == 3
    assert run(tmp_path, "branch", "web.t", "audit", "--drop").exit_code == 2
    assert run(tmp_path, "branch", "web.t", "audit", "--drop", "--yes").stdout == "dropped branch audit\n"


def test_a_table_is_renamed_and_dropped(table: ManagedTable, tmp_path: Path) -> None:
    assert told(tmp_path, "rename", "web.t", "raw.t") == {"renamed": "web.t", "to": "raw.t"}
    assert run(tmp_path, "rename", "raw.t", "web.t").stdout == "raw.t is web.t now\n"
    before = files_below(tmp_path)
    assert run(tmp_path, "drop", "web.t").exit_code == 2
    assert told(tmp_path, "tables") == ["web.t"]
    assert told(tmp_path, "drop", "web.t", "--yes") == {"dropped": "web.t", "purged": False}
    assert files_below(tmp_path) == before
    managed_table(tmp_path, "n bigint").append(pa.table({"n": [1]}))
    done = run(tmp_path, "drop", "web.t", "--purge", "--yes")
    assert done.stdout == "dropped web.t and its files\n"
    assert files_below(tmp_path) <= before


def test_a_layout_is_unregistered(tmp_path: Path) -> None:
    write_file(tmp_path / "layout" / "dt=2026-01-01" / "a.parquet", pa.table({"n": [1]}))
    lake = penstock.connect(tmp_path / "lake")
    lake.register("raw.logs", penstock.hive(tmp_path / "layout", "dt date"))
    done = run(tmp_path / "lake", "unregister", "raw.nix")
    assert done.stderr == "Error: no layout is declared as 'raw.nix'; penstock tables lists what there is\n"
    purged = run(tmp_path / "lake", "drop", "raw.logs", "--purge", "--yes")
    assert purged.exit_code == 2
    assert told(tmp_path / "lake", "unregister", "raw.logs") == {"unregistered": "raw.logs"}
    assert lake.tables() == []
    assert (tmp_path / "layout" / "dt=2026-01-01" / "a.parquet").exists()


def test_namespaces_are_created_listed_and_dropped(table: ManagedTable, tmp_path: Path) -> None:
    assert run(tmp_path, "namespace", "raw.logs").stdout == "created namespace raw.logs\n"
    assert told(tmp_path, "namespace") == ["raw", "raw.logs", "web"]
    assert run(tmp_path, "namespace").stdout == "raw\nraw.logs\nweb\n"
    done = run(tmp_path, "namespace", "web", "--drop")
    assert (done.exit_code, done.stderr) == (2, "Error: namespace web is not empty: web.t; drop its tables first\n")
    assert run(tmp_path, "namespace", "web", "--drop", "--cascade").exit_code == 2
    assert told(tmp_path, "tables") == ["web.t"]
    assert told(tmp_path, "namespace", "web", "--drop", "--cascade", "--yes") == {"dropped": "web"}
    assert told(tmp_path, "namespace", "raw.logs", "--drop") == {"dropped": "raw.logs"}
    assert told(tmp_path, "tables") == []


BAD = [
    ("history", "web.nix"),
    ("history", "./web.t"),
    ("history", "web.t", "--branch", "nix"),
    ("changes", "web.t", "nix"),
    ("changes", "web.t", "main", "17"),
    ("rollback", "web.t", "17", "--yes"),
    ("rollback", "web.t", "eod", "--branch", "nix", "--yes"),
    ("tag", "web.t", "17"),
    ("tag", "web.t", "main"),
    ("tag", "web.t", "nix", "--drop"),
    ("tag", "web.t", "new", "--snapshot", "2001-01-01"),
    ("tag", "web.t", "--drop"),
    ("tag", "web.t", "eod", "--drop", "--snapshot", "eod"),
    ("branch", "web.t", "2026-05-17"),
    ("branch", "web.t", "main", "--drop", "--yes"),
    ("branch", "web.t", "eod", "--drop", "--yes"),
    ("fast-forward", "web.t", "main", "nix"),
    ("fast-forward", "web.t", "eod", "main"),
    ("drop", "web.nix", "--yes"),
    ("drop", "t", "--yes"),
    ("rename", "web.t", "t"),
    ("rename", "web.t", "web."),
    ("rename", "web.t", "web.t"),
    ("rename", "web.nix", "web.u"),
    ("namespace", ""),
    ("namespace", "a..b"),
    ("namespace", "web"),
    ("namespace", "nix", "--drop"),
    ("namespace", "--drop"),
    ("namespace", "web", "--cascade"),
    ("unregister", "web.t"),
]


@pytest.mark.parametrize("words", BAD, ids=" ".join)
def test_bad_input_is_one_line_and_changes_nothing(table: ManagedTable, tmp_path: Path, words: tuple[str, ...]) -> None:
    table.create_tag("eod")
    before, names = table.refresh().table.metadata_location, told(tmp_path, "namespace")
    done = run(tmp_path, *words)
    assert done.exit_code == 2
    lines = [line for line in done.stderr.splitlines() if not line.startswith(("Usage:", "Try ")) and line]
    assert len(lines) == 1
    assert lines[0].startswith("Error: ")
    assert "cannot be opened" not in lines[0]
    assert done.stdout == ""
    assert told(tmp_path, "tables") == ["web.t"]
    assert told(tmp_path, "namespace") == names
    assert table.refresh().table.metadata_location == before
