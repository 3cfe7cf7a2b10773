"""`penstock delete` and `penstock update`, and the exit codes that the reference promises for every command."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner

from penstock.cli.main import main
from penstock.errors import ConflictError
from penstock.lake.managed_table import ManagedTable
from tests.fixtures.commands import json_of, run
from tests.fixtures.managed_tables import files_below, managed_table, reopened, snapshot_ids

REFERENCE = Path(__file__).parents[3] / "docs/reference/command-line.md"


@pytest.fixture
def table(tmp_path: Path) -> ManagedTable:
    made = managed_table(tmp_path, "app string, n bigint", ["app"])
    made.append(pa.table({"app": ["a", "a", "b"], "n": [1, 2, 3]}))
    return made


def values(root: Path) -> list[tuple[str, int]]:
    rows = reopened(root).arrow().to_pylist()
    return sorted((row["app"], row["n"]) for row in rows)


def test_a_delete_says_how_many_rows_it_removed(table: ManagedTable, tmp_path: Path) -> None:
    done = run(tmp_path, "delete", "web.t", "--where", "n = 1 OR app = 'b'")
    assert done.exit_code == 0
    snapshot = reopened(tmp_path).table.metadata.current_snapshot()
    summary = snapshot.summary.additional_properties
    added, removed = (int(summary[name]) for name in ("added-files-size", "removed-files-size"))
    assert done.stdout.splitlines() == [
        "2 rows removed, 1 file written, 2 files removed",
        f"snapshot {snapshot.snapshot_id}: {added:,} bytes added, {removed:,} removed",
    ]
    assert values(tmp_path) == [("a", 2)]
    assert run(tmp_path, "delete", "web.t", "--where", "n = 99").stdout == "nothing changed\n"


def test_an_update_gives_rows_new_values(table: ManagedTable, tmp_path: Path) -> None:
    words = ["update", "web.t", "--set", "n = n * 10", "--set", "app = 'x = y'", "--where", "app = 'a'"]
    done = json_of(tmp_path, *words)
    assert (done["rows_updated"], done["rows_added"], done["rows_removed"]) == (2, 0, 0)
    assert values(tmp_path) == [("b", 3), ("x = y", 10), ("x = y", 20)]


@pytest.mark.parametrize(
    "words", [["delete", "web.t", "--where", "n = 1"], ["update", "web.t", "--set", "n = n + 1", "--where", "TRUE"]]
)
def test_a_run_is_done_once(table: ManagedTable, tmp_path: Path, words: list[str]) -> None:
    first = json_of(tmp_path, *words, "--run-id", "r")
    before = values(tmp_path)
    again = json_of(tmp_path, *words, "--run-id", "r")
    assert (again["already_committed"], again["snapshot_id"]) == (True, first["snapshot_id"])
    done = run(tmp_path, *words, "--run-id", "r")
    assert done.stdout == f"already committed by snapshot {first['snapshot_id']}, nothing changed\n"
    assert (values(tmp_path), len(snapshot_ids(reopened(tmp_path)))) == (before, 2)


def test_a_branch_is_changed_apart(table: ManagedTable, tmp_path: Path) -> None:
    table.create_branch("audit")
    assert json_of(tmp_path, "delete", "web.t", "--where", "TRUE", "--branch", "audit")["rows_removed"] == 3
    assert json_of(tmp_path, "update", "web.t", "--set", "n = 0", "--where", "n = 3")["rows_updated"] == 1
    assert (reopened(tmp_path).at_branch("audit").count(), values(tmp_path)[-1]) == (0, ("b", 0))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["delete", "web.t"], "Missing option '--where'"),
        (["delete", "web.t", "--where", "m = 1"], "unknown column 'm'; there are: app, n"),
        (["delete", "web.t", "--where", "n ="], "something is missing after '='"),
        (["delete", "web.t", "--where", "n", "=", "1"], "put the predicate in quotes"),
        (["delete", "web.t", "--where", "n = 1", "--run-id", " "], "invalid --run-id ' '; give a text of 1 to"),
        (["delete", "web.t", "--where", "n = 1", "--branch", "b"], "web.t has no branch 'b'; there are: main"),
        (["delete", "web.u", "--where", "n = 1"], "no table 'web.u' in "),
        (["delete", "./t", "--where", "n = 1"], "./t is a path; give the name of a table"),
        (["update", "web.t", "--where", "n = 1"], "Missing option '--set'"),
        (["update", "web.t", "--set", "n = 1"], "Missing option '--where'"),
        (["update", "web.t", "--set", "n", "--where", "n = 1"], "--set 'n' cannot be read; write 'price = price * 2'"),
        (["update", "web.t", "--set", "m = 1", "--where", "n = 1"], "no column 'm' in the table; there are: app, n"),
        (["update", "web.t", "--set", "n = 1", "--set", "n = 2", "--where", "TRUE"], "--set names a column twice"),
    ],
)
def test_bad_input_is_one_line_and_nothing_changes(
    table: ManagedTable, tmp_path: Path, words: list[str], message: str
) -> None:
    before = files_below(tmp_path)
    done = run(tmp_path, *words)
    assert (done.exit_code, done.stdout) == (2, "")
    assert message in done.stderr
    assert sum(line.startswith("Error: ") for line in done.stderr.splitlines()) == 1
    assert files_below(tmp_path) == before


# Exit codes


def test_the_reference_has_the_exit_codes() -> None:
    section = REFERENCE.read_text(encoding="utf-8").split("\n## Exit codes\n")[1].split("\n## ")[0]
    assert re.findall(r"^\| (\d+) \|", section, re.MULTILINE) == ["0", "1", "2", "130"]


@pytest.mark.parametrize(
    ("error", "code", "printed"),
    [
        (None, 0, ""),
        (ConflictError("others were faster", hint="try again"), 2, "Error: others were faster; try again\n"),
        (KeyboardInterrupt(), 130, "stopped\n"),
        (ZeroDivisionError("a defect"), 1, ""),
    ],
    ids=["done", "refused", "Ctrl-C", "a defect"],
)
def test_exit_codes(
    table: ManagedTable,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    error: BaseException | None,
    code: int,
    printed: str,
) -> None:
    def fails(*_: Any, **__: Any) -> Any:
        assert error is not None
        raise error

    if error is not None:
        monkeypatch.setattr(ManagedTable, "delete", fails)
    done = run(tmp_path, "delete", "web.t", "--where", "n = 1")
    assert (done.exit_code, done.stderr) == (code, printed)
    assert isinstance(done.exception, ZeroDivisionError) is (code == 1)


def test_exit_code_1_is_a_no_or_what_the_doctor_found(
    table: ManagedTable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.cli.confirmation.sys", SimpleNamespace(stdin=SimpleNamespace(isatty=lambda: True)))
    monkeypatch.setattr("click.confirm", lambda *_, **__: False)
    done = run(tmp_path, "drop", "web.t")
    assert (done.exit_code, done.stderr) == (1, "nothing was changed\n")
    assert reopened(tmp_path).count() == 3
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "none"))
    assert CliRunner().invoke(main, ["doctor"]).exit_code == 1
