"""What holds of every command: `--json` that a machine can read, completion, quiet ends, values that are only text."""

from __future__ import annotations

import json
import os
import pty
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import penstock
from penstock.cli.main import main
from tests.fixtures.processes import PATIENCE

PENSTOCK = str(Path(sys.executable).with_name("penstock"))
WITH_SPARK = {"demo", "ingest"}  # these are run by tests that have one
# What these print is tested where they are: they change what the next one would find.
CHANGING = {
    "adopt",
    "branch",
    "changes",
    "drop",
    "fast-forward",
    "namespace",
    "rename",
    "rollback",
    "tag",
    "unregister",
}
ARGUMENTS = {
    "advise": ["web.t"],
    "alter": ["web.t", "--add", "more int"],
    "compact": ["web.t"],
    "completion": ["bash"],
    "delete": ["web.t", "--where", "FALSE"],
    "doctor": ["web.t"],
    "expire": ["web.t"],
    "explain": ["web.t", "--where", "app = 'a'"],
    "history": ["web.t"],
    "partitions": ["web.t"],
    "report": ["web.t"],
    "serve": ["web.t"],
    "sql": ["SELECT 1"],
    "sql-server": [],
    "stream": ["web.t", "--once", "--limit", "1"],
    "sweep": ["web.t", "--dry-run"],
    "tables": [],
    "update": ["web.t", "--set", "n = n", "--where", "FALSE"],
}


def commands(
    group: click.Group = main, before: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Every command with the words that lead to it."""
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from commands(command, (*before, name))
        else:
            yield (*before, name), command


COMMANDS = dict(commands())


class Frame:
    """What a statement gives, as far as the command looks at it."""

    columns = ("n",)

    def limit(self, rows: int) -> Frame:
        return self

    def collect(self) -> list[Any]:
        return []


@pytest.fixture
def warehouse(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    table = penstock.connect(tmp_path / "lake").create_table("web.t", "app string, n bigint", ["app"])
    table.append(pa.table({"app": ["a", "b"], "n": [1, 2]}))
    session = SimpleNamespace(sql=lambda text: Frame(), sparkContext=None)
    server = SimpleNamespace(port=10_000, serve_forever=lambda: None)
    monkeypatch.setattr("penstock.spark.session.session.session", lambda **_: session)
    monkeypatch.setattr("penstock.spark.catalog.thrift_server.start_thrift_server", lambda *_: server)
    monkeypatch.setattr("penstock.report.live_page.Server.serve_forever", lambda self: None)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "lake"


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A layout whose partitions do not fit into the buffer of a pipe."""
    root = tmp_path_factory.mktemp("wide")
    pq.write_table(pa.table({"n": [1]}), root / "file")
    for i in range(1_500):
        (root / f"app={i:0100}").mkdir()
        os.link(root / "file", root / f"app={i:0100}" / "a.parquet")
    (root / "file").unlink()
    return root


@pytest.mark.parametrize("words", COMMANDS)
def test_every_command_can_print_for_machines(words: tuple[str, ...]) -> None:
    flags = [option for option in COMMANDS[words].params if "--json" in option.opts]
    assert flags, f"penstock {' '.join(words)} has no --json"
    assert isinstance(flags[0], click.Option)
    assert flags[0].is_flag


@pytest.mark.parametrize("words", COMMANDS)
def test_every_command_says_what_it_and_its_options_do(words: tuple[str, ...]) -> None:
    assert COMMANDS[words].help
    for option in COMMANDS[words].params:
        assert not isinstance(option, click.Option) or option.help, f"{words} {option.name}"


def test_options_of_one_name_mean_one_thing() -> None:
    kinds: dict[str, set[str]] = {}
    for words, command in COMMANDS.items():
        for option in command.params:
            if isinstance(option, click.Option) and option.name in ("json", "where", "catalog", "storage", "timezone"):
                wanted = option.help if option.name != "where" else "predicate in Spark SQL" in (option.help or "")
                kinds.setdefault(str(option.name), set()).add(str(wanted))
        assert words
    assert {name: len(found) for name, found in kinds.items()} == dict.fromkeys(kinds, 1)


@pytest.mark.parametrize("words", [words for words in COMMANDS if words[0] not in WITH_SPARK | CHANGING])
def test_what_is_printed_for_machines_is_json(words: tuple[str, ...], warehouse: Path) -> None:
    given = [*words, *ARGUMENTS[words[0]], "--json"]
    if any("--warehouse" in option.opts for option in COMMANDS[words].params):
        given += ["--warehouse", str(warehouse)]
    done = CliRunner().invoke(main, given)
    assert done.exit_code == 0 or words == ("doctor",), done.output
    assert json.loads(done.stdout) is not None


# Completion


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_for_a_shell(shell: str) -> None:
    script = CliRunner().invoke(main, ["completion", shell])
    assert script.exit_code == 0
    assert f"_PENSTOCK_COMPLETE={shell}_complete" in script.stdout
    told = json.loads(CliRunner().invoke(main, ["completion", shell, "--json"]).stdout)
    assert told == {"shell": shell, "script": script.stdout.removesuffix("\n")}


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
@pytest.mark.parametrize(
    ("line", "completed"), [("penstock exp", "expire explain"), ("penstock sql --wareh", "--warehouse")]
)
def test_bash_completes_commands_and_options(line: str, completed: str) -> None:
    typed = f"COMP_WORDS=({line}); COMP_CWORD={len(line.split()) - 1}"
    code = f'eval "$({PENSTOCK} completion bash)"; {typed}; _penstock_completion penstock; echo "${{COMPREPLY[@]}}"'
    path = f"{Path(PENSTOCK).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(["bash", "-c", code], capture_output=True, text=True, env={**os.environ, "PATH": path})
    assert sorted(done.stdout.split()) == sorted(completed.split())


# What people see


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_a_reader_that_has_seen_enough_ends_it_quietly(wide: Path, options: list[str]) -> None:
    command = [PENSTOCK, "partitions", str(wide), "--partition-by", "app string", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(PATIENCE) in (0, 1)


def on_a_terminal(command: list[str], **environment: str) -> tuple[str, str]:
    """What a command shows on stderr when that is a terminal, and what it prints: stdout is a pipe."""
    ours, theirs = pty.openpty()
    env = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "200", **environment}
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=theirs, env=env, text=True)
    os.close(theirs)
    shown = b""
    while True:
        try:
            part = os.read(ours, 65_536)
        except OSError:  # Linux says so when the other end is closed
            break
        if not part:
            break
        shown += part
    os.close(ours)
    return shown.decode(), done.stdout


def screen(shown: str) -> str:
    """What stays on a terminal, down to the cursor, as far as a display of progress steers it."""
    rows, row, column = [""], 0, 0
    for piece in re.findall(r"\x1b\[[?\d;]*[A-Za-z]|[\r\n]|[^\x1b\r\n]+", shown):
        if piece == "\n":
            row += 1
            rows += [""] * (row == len(rows))
        elif piece == "\r":
            column = 0
        elif piece == "\x1b[2K":
            rows[row] = ""
        elif piece.startswith("\x1b"):
            row -= int(piece[2:-1]) if piece.endswith("A") else 0
        else:
            rows[row] = rows[row][:column].ljust(column) + piece + rows[row][column + len(piece) :]
            column += len(piece)
    assert not any(rows[row + 1 :])
    return "\n".join(rows[: row + 1])


def test_listing_is_counted_on_a_terminal_and_nowhere_else(wide: Path) -> None:
    command = [PENSTOCK, "explain", str(wide), "--partition-by", "app string", "--where", "app LIKE '%7'"]
    shown, _ = on_a_terminal(command)
    assert f"listing {wide}" in shown
    assert "151 directories" in shown  # the root, and those that end in 7
    assert "\x1b[3" in shown
    assert screen(shown) == ""
    assert "\x1b[3" not in on_a_terminal(command, NO_COLOR="1")[0]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert "\x1b" not in done.stdout


def test_a_compaction_counts_files_on_a_terminal_and_nowhere_else(warehouse: Path) -> None:
    table = penstock.connect(warehouse).table("web.t")
    command = [PENSTOCK, "compact", "web.t", "--warehouse", str(warehouse)]
    table.append(pa.table({"app": ["a", "b"], "n": [3, 4]}))
    shown, printed = on_a_terminal(command)
    for part in ("compacting web.t", "0 of 4 files", "4 of 4 files", "━━━"):
        assert part in shown
    assert screen(shown) == ""
    assert shown.count("\x1b[?25l") == shown.count("\x1b[?25h") == 1  # the cursor is hidden and comes back
    assert printed == "4 of 4 files became 2, 2 files in all; 2 manifests became 1\n"
    table.refresh().append(pa.table({"app": ["a", "b"], "n": [5, 6]}))
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert (done.stderr, done.stdout) == ("", printed)


def test_an_error_is_all_that_stays_on_a_terminal(warehouse: Path) -> None:
    table = penstock.connect(warehouse).table("web.t")
    table.append(pa.table({"app": ["a", "b"], "n": [3, 4]}))
    lost = table.plan("app = 'b'").files[0].path
    Path(lost.removeprefix("file://")).unlink()
    shown, printed = on_a_terminal([PENSTOCK, "compact", "web.t", "--warehouse", str(warehouse)])
    assert "of 4 files" in shown
    assert screen(shown).startswith(f"Error: {lost} does not exist; ")
    assert screen(shown).count("\n") == 1
    assert printed == ""


def test_a_value_is_printed_as_it_is_and_cannot_steer_the_terminal(tmp_path: Path) -> None:
    values = ["[/red]", "[bold]x", ":smile:", "\x1b[31mred", "a\u202eb"]
    table = penstock.connect(tmp_path).create_table("web.t", "app string, n bigint", ["app"])
    table.append(pa.table({"app": values, "n": range(len(values))}))
    done = CliRunner().invoke(main, ["partitions", "web.t", "--warehouse", str(tmp_path)])
    assert done.exit_code == 0, done.output
    for shown in ("[/red]", "[bold]x", ":smile:", "\\x1b[31mred", "a\\u202eb"):
        assert shown in done.stdout
    assert "\x1b" not in done.stdout


def test_a_number_of_rows_below_zero_is_bad_input() -> None:
    done = CliRunner().invoke(main, ["sql", "SELECT 1", "--limit", "-1"])
    assert done.exit_code == 2
    assert "--limit" in done.stderr


def test_partition_columns_of_a_layout_may_have_names_of_penstocks_own(tmp_path: Path) -> None:
    place = tmp_path / "spec_id=1" / "shared=x" / "unknown=y" / "last_change=z"
    place.mkdir(parents=True)
    pq.write_table(pa.table({"n": [1]}), place / "x.parquet")
    done = CliRunner().invoke(
        main,
        [
            "partitions",
            str(tmp_path),
            "--partition-by",
            "spec_id int, shared string, unknown string, last_change string",
        ],
    )
    assert done.exit_code == 0
    assert [cell.strip() for cell in done.output.splitlines()[3].strip("│").split("│")][:4] == ["1", "x", "y", "z"]
