"""The script of the page on nightly jobs, as it is written: run, run again, killed before a commit and behind one.

Before the first kill the catalog is locked, so that the script has written its files and waits to commit them.
PyIceberg is the judge of the rows at the end.
"""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import penstock
from penstock.lake.managed_table import ManagedTable
from tests.fixtures.managed_tables import files_below, reachable
from tests.fixtures.processes import PATIENCE, wait_until
from tests.spark.managed_kills import descendants
from tools.run_doc_blocks import read_blocks

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="finds processes by /proc"),
]
PAGE = Path(__file__).parents[2] / "docs/how-to/nightly-job.md"
EVENTS = 500
BAD = '{"id": "many"}'


class Nightly:
    """A folder with the script and its files."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.warehouse = folder, folder / "warehouse"
        (script,) = [block for block in read_blocks(PAGE.read_text(encoding="utf-8")) if block.info == "bash"]
        (folder / "nightly.sh").write_text(script.text + "\n")

    def deliver(self, day: int) -> None:
        """The files of a day: new events, and users of which some are there."""
        incoming = self.folder / f"incoming/2026-05-{day}"
        incoming.mkdir(parents=True)
        events = [json.dumps(event) for event in self.events(day)]
        (incoming / "events.json").write_text("\n".join([*events, BAD]))
        users = "".join(f"{user['id']},{user['email']},{user['country']}\n" for user in self.users(day).values())
        (incoming / "users.csv").write_text(f"id,email,country\n{users}")

    def events(self, day: int) -> list[dict[str, Any]]:
        first = day * EVENTS
        return [
            {"id": i, "user_id": i % 7, "ts": f"2026-05-{day} {i % 24:02}:00:00", "amount": i / 4}
            for i in range(first, first + EVENTS)
        ]

    def users(self, day: int) -> dict[int, dict[str, Any]]:
        return {i: {"id": i, "email": f"{i}@{day}.org", "country": "FR"} for i in range(day, day + 5)}

    def start(self, day: int) -> subprocess.Popen[str]:
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        environment = {**os.environ, "PATH": path, "PENSTOCK_WAREHOUSE": str(self.warehouse)}
        return subprocess.Popen(
            ["bash", "nightly.sh", f"2026-05-{day}"],
            cwd=self.folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, day: int) -> str:
        """What the script prints when it ends well."""
        process = self.start(day)
        printed, errors = process.communicate(timeout=2 * PATIENCE)
        assert (process.returncode, errors) == (0, "")
        return printed

    def table(self, name: str) -> ManagedTable:
        found = penstock.connect(self.warehouse).table(name)
        assert isinstance(found, ManagedTable)
        return found

    def check(self, *days: int) -> None:
        """The tables have the rows of these days, each once, as PyIceberg reads them."""
        events = [event for day in days for event in self.events(day)]
        for event in events:
            event["ts"] = datetime.fromisoformat(event["ts"]).replace(tzinfo=UTC)
        found = self.table("web.events").table.scan().to_arrow().sort_by("id").to_pylist()
        assert found == events
        users = {key: user for day in days for key, user in self.users(day).items()}
        found = self.table("web.users").table.scan().to_arrow().sort_by("id").to_pylist()
        assert found == [users[key] for key in sorted(users)]


def kill(process: subprocess.Popen[str]) -> None:
    """Kill -9 the script and all below it, before any of them notices that another one is gone."""
    everything = [process.pid, *descendants(process.pid)]
    for sign in (signal.SIGSTOP, signal.SIGKILL):
        for pid in everything:
            try:
                os.kill(pid, sign)
            except ProcessLookupError:
                continue
    process.communicate(timeout=PATIENCE)


def test_the_script_of_the_page_is_right_at_the_end_however_often_it_runs_and_whenever_it_is_killed(
    tmp_path: Path,
) -> None:
    nightly = Nightly(tmp_path)
    for day in (17, 18):
        nightly.deliver(day)

    printed = nightly.run(17)
    assert f"{EVENTS} rows in 1 file added to web.events, which is new" in printed
    assert f"1 of {EVENTS + 1} rows did not fit, and are kept in bad/events-2026-05-17.jsonl" in printed
    assert json.loads((tmp_path / "bad/events-2026-05-17.jsonl").read_text())["row"] == BAD
    nightly.check(17)

    before = {path: path.stat().st_mtime_ns for path in map(Path, files_below(nightly.warehouse))}
    printed = nightly.run(17)
    for name in ("events", "users"):
        known = nightly.table(f"web.{name}").committed_run(f"{name}-2026-05-17")
        assert f"run {name}-2026-05-17 was committed already by snapshot {known} of web.{name}; nothing" in printed
    assert {path: path.stat().st_mtime_ns for path in map(Path, files_below(nightly.warehouse))} == before

    # Killed while it writes: all files are there, and the commit waits for the catalog.
    events = nightly.table("web.events")
    known = files_below(nightly.warehouse)
    catalog = sqlite3.connect(nightly.warehouse / "catalog.db", isolation_level=None)
    catalog.execute("BEGIN IMMEDIATE")
    process = nightly.start(18)

    def new(end: str, start: str = "") -> set[str]:
        return {
            path
            for path in files_below(nightly.warehouse) - known
            if path.endswith(end) and Path(path).name.startswith(start)
        }

    wait_until(lambda: process.poll() is not None or bool(new(".avro", "snap-")))
    assert process.poll() is None
    kill(process)
    catalog.execute("ROLLBACK")
    catalog.close()
    orphans = new(".parquet")
    assert orphans, "a write was running"
    assert events.committed_run("events-2026-05-18") is None
    nightly.check(17)

    # Killed behind the commit, before the script could say so.
    process = nightly.start(18)
    wait_until(lambda: process.poll() is not None or events.committed_run("events-2026-05-18") is not None)
    kill(process)
    assert process.returncode == -signal.SIGKILL
    assert nightly.table("web.users").committed_run("users-2026-05-18") is None

    printed = nightly.run(18)
    assert (
        f"run events-2026-05-18 was committed already by snapshot {events.committed_run('events-2026-05-18')}"
        in printed
    )
    nightly.check(17, 18)
    for name in ("web.events", "web.users"):
        nightly.table(name).sweep(older_than="0 seconds", force=True)
    assert not orphans & files_below(nightly.warehouse)
    assert files_below(nightly.warehouse) == reachable(events) | reachable(nightly.table("web.users"))
    nightly.check(17, 18)
