"""`penstock stream`: rows and counts on stdout, what was seen on stderr, and a position that goes on where it stood."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

import penstock
from penstock.cli.main import main
from tests.fixtures.processes import PATIENCE, PENSTOCK


def add(root: Path, app: str, *ids: int) -> None:
    folder = root / f"app={app}"
    folder.mkdir(parents=True, exist_ok=True)
    part = folder / f".{min(ids)}"
    pq.write_table(pa.table({"id": pa.array(ids, pa.int64())}), part)
    part.rename(folder / f"{min(ids)}.parquet")


@pytest.fixture
def layout(tmp_path: Path) -> Path:
    add(tmp_path / "t", "a", 1, 2)
    add(tmp_path / "t", "b", 3)
    return tmp_path / "t"


def run(layout: Path, *options: str) -> Result:
    given = ["stream", str(layout), "--partition-by", "app string", *options]
    return CliRunner().invoke(main, given)


def test_rows_of_what_matches(layout: Path) -> None:
    result = run(layout, "--where", "app = 'a'", "--once")
    assert result.exit_code == 0
    assert result.stdout.splitlines() == ["id\tapp", "1\ta", "2\ta"]
    assert result.stderr == "2 partitions seen, 1 pruned · 1 file read, 2 rows\n"


def test_partitions_are_counted_at_the_bottom_and_where_they_are_pruned(tmp_path: Path) -> None:
    for dt, app in (("1", "a"), ("1", "b"), ("2", "a"), ("3", "c")):
        add(tmp_path / "t" / f"dt={dt}", app, 1)
    given = ["stream", str(tmp_path / "t"), "--partition-by", "dt int, app string", "--once", "--count"]
    for where, seen in (
        ("true", "4 partitions seen, 0 pruned"),
        ("dt = 1 AND app = 'a'", "4 partitions seen, 3 pruned"),
    ):
        result = CliRunner().invoke(main, [*given, "--where", where])
        assert result.stderr.startswith(f"{seen} · ")


def test_rows_for_machines(layout: Path) -> None:
    result = run(layout, "--once", "--json", "--columns", "id")
    assert [json.loads(line) for line in result.stdout.splitlines()] == [{"id": i} for i in (1, 2, 3)]
    assert json.loads(result.stderr)["total"] == {
        "files": 2,
        "bytes": sum(f.stat().st_size for f in layout.rglob("*.p*")),
        "rows": 3,
    }


def test_counts(layout: Path) -> None:
    result = run(layout, "--once", "--count")
    assert result.stdout.strip().endswith("2 files, 3 rows; 3 rows in all")
    told = json.loads(run(layout, "--once", "--count", "--json").stdout)
    assert (told["files"], told["rows"], told["look"]["list_calls"]) == (2, 3, 3)


def test_a_position_goes_on_where_it_stopped(layout: Path, tmp_path: Path) -> None:
    place = str(tmp_path / "position.json")
    assert len(run(layout, "--once", "--json", "--position", place).stdout.splitlines()) == 3
    assert run(layout, "--once", "--json", "--position", place).stdout == ""
    add(layout, "c", 9)
    assert json.loads(run(layout, "--once", "--json", "--position", place).stdout) == {"id": 9, "app": "c"}


def test_rows_beyond_a_limit_come_again(layout: Path, tmp_path: Path) -> None:
    place = str(tmp_path / "position.json")
    limited = run(layout, "--limit", "1", "--json", "--position", place)
    assert len(limited.stdout.splitlines()) == 1
    octets = (layout / "app=a" / "1.parquet").stat().st_size
    assert json.loads(limited.stderr)["total"] == {"files": 1, "bytes": octets, "rows": 1}
    assert len(run(layout, "--once", "--json", "--position", place).stdout.splitlines()) == 3


def test_a_table_of_a_lake(tmp_path: Path) -> None:
    table = penstock.connect(tmp_path).create_table("web.t", "id bigint, app string", ["app"], coalesce="app")
    table.append(pa.table({"id": [1, 2], "app": ["a", "b"]}))
    result = CliRunner().invoke(
        main, ["stream", "web.t", "--warehouse", str(tmp_path), "--where", "app = 'b'", "--once", "--json"]
    )
    assert json.loads(result.stdout) == {"id": 2, "app": "b"}


def test_of_an_iceberg_table_files_are_counted(tmp_path: Path) -> None:
    table = penstock.connect(tmp_path).create_table("web.t", "id bigint, app string", ["app"])
    for i in range(2):
        table.append(pa.table({"id": [i, i], "app": ["a", "b"]}))
    given = ["stream", "web.t", "--warehouse", str(tmp_path), "--where", "app = 'b' AND id = 0", "--once"]
    result = CliRunner().invoke(main, given)
    assert result.stderr == "4 files seen, 3 pruned · 1 file read, 1 row · 0 snapshots behind, lag 0.0 s\n"
    look = json.loads(CliRunner().invoke(main, [*given, "--json"]).stderr)["look"]
    assert (look["partitions"], look["partitions_pruned"]) == (2, 1)  # each has files in two manifests


def test_the_line_on_a_terminal_is_erased_before_rows(layout: Path) -> None:
    given = ["stream", str(layout), "--partition-by", "app string", "--once"]
    ours, theirs = pty.openpty()
    subprocess.run(
        [*PENSTOCK, *given], stdout=theirs, stderr=theirs, env={**os.environ, "TERM": "xterm", "COLUMNS": "200"}
    )
    os.close(theirs)
    shown = b""
    with suppress(OSError):  # Linux says so when the other end is closed
        while part := os.read(ours, 65_536):
            shown += part
    os.close(ours)
    lines = shown.decode().split("\r\n")
    for row in ("id\tapp", "3\tb"):
        (line,) = (line for line in lines if line.endswith(row))
        assert line == f"\x1b[?25h\r\x1b[1A\x1b[2K{row}"  # up to the line, which is erased
    assert lines[-2].endswith("\x1b[2K2 partitions seen, 0 pruned · 2 files read, 3 rows")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--where", "app ="], "something is missing after '='"),
        (["--where", "nope = 1"], "unknown column 'nope'"),
        (["--where", "app = 'a"], "the quote that opens here is not closed\n  app = 'a\n        ^"),
        (["--where", "app", "=", "b"], "arguments (= b); put the predicate in quotes: --where \"app = 'x'\""),
        (["--where=app", "= b"], "argument (= b); put the predicate in quotes"),
        (["--where", "rand() < 1"], "cannot be checked without Spark: rand() is not known"),
        (["--starting", "noon"], "starting is 'noon'"),
        (["--order", "size"], "order is 'size'; one of create-time, partition-name, partition-time"),
        (["--on-change", "changes"], "does not tell which rows were changed"),
        (["--position", "."], "the position in . cannot be read"),
        (["--limit", "0"], "Invalid value for '--limit'"),
    ],
)
def test_bad_input_is_one_line(layout: Path, options: list[str], said: str) -> None:
    result = run(layout, "--once", *options)
    assert result.exit_code == 2
    assert said in result.stderr
    assert result.stdout == ""


def test_a_position_of_another_filter(layout: Path, tmp_path: Path) -> None:
    place = str(tmp_path / "position.json")
    os.utime(layout / "app=b" / "3.parquet", (1, 1))  # what is older than what was read counts as read
    run(layout, "--once", "--position", place, "--where", "app = 'a'")
    refused = run(layout, "--once", "--position", place, "--where", "app = 'b'")
    assert refused.exit_code == 2
    assert refused.stderr == (
        f"Error: the position in {place} was made with the filter app = 'a', and now it is app = 'b'; "
        "restore it, go on with --allow-filter-change, or give another file: --position\n"
    )
    add(layout, "b", 7)
    result = run(layout, "--once", "--json", "--position", place, "--where", "app = 'b'", "--allow-filter-change")
    assert json.loads(result.stdout) == {"id": 7, "app": "b"}


def test_it_follows_until_somebody_stops_it(layout: Path) -> None:
    given = ["stream", str(layout), "--partition-by", "app string", "--json", "--where", "app LIKE 'n%'"]
    program = subprocess.Popen(
        [*PENSTOCK, *given, "--interval", "0.1"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert program.stdout is not None
    add(layout, "new", 11)
    assert json.loads(program.stdout.readline()) == {"id": 11, "app": "new"}
    program.send_signal(signal.SIGINT)
    out, told = program.communicate(timeout=PATIENCE)
    assert (out, program.returncode) == ("", 0)
    assert json.loads(told)["total"]["rows"] == 1


def test_maps_are_objects_whatever_their_keys_are(tmp_path: Path) -> None:
    (tmp_path / "t" / "app=a").mkdir(parents=True)
    maps = pa.array([[(7, "x"), (8, None)], None], pa.map_(pa.int32(), pa.string()))
    pq.write_table(pa.table({"m": maps}), tmp_path / "t" / "app=a" / "f.parquet")
    assert run(tmp_path / "t", "--once", "--columns", "m").stdout.splitlines() == ["m", "{7: 'x', 8: None}", "NULL"]
    told = run(tmp_path / "t", "--once", "--columns", "m", "--json").stdout.splitlines()
    assert [json.loads(line) for line in told] == [{"m": {"7": "x", "8": None}}, {"m": None}]
