"""Streams over tables that Iceberg's own Spark runtime writes: what comes, put together, is what the runtime reads.

A stream of changes must say after every statement just how the rows became others; a stream of appends gets nothing of
what rewrites and compactions do. The runtime merges manifests, writes deletes of positions, and rewrites files.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

import penstock
from penstock.lake.commit.once import StreamBatch
from penstock.lake.write import writes as write
from penstock.stream.feed import Limit
from penstock.stream.stream_options import as_options
from tests.interop.iceberg_judge import IcebergJudge
from tests.interop.managed_written import run, runtime_on

pytestmark = [pytest.mark.interop, pytest.mark.slow]

STATEMENTS = [
    "INSERT INTO {t} VALUES (1, 'a', 10), (2, 'b', 20), (3, 'c', 30)",
    "INSERT INTO {t} VALUES (4, 'a', 10), (4, 'a', 10), (5, 'b', NULL), (6, NULL, 60)",
    "DELETE FROM {t} WHERE id = 4",
    "UPDATE {t} SET n = n + 1 WHERE app = 'b'",
    "INSERT INTO {t} SELECT id + 100, app, n FROM {t}",
    "CALL penstock.system.rewrite_data_files(table => 'web.{n}', options => map('rewrite-all', 'true'))",
    "CALL penstock.system.rewrite_manifests('web.{n}')",
    "MERGE INTO {t} t USING (SELECT 101 AS id, 'z' AS app) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET app = s.app",
    "INSERT OVERWRITE {t} PARTITION (app = 'c') SELECT 7, 70",
    "DELETE FROM {t} WHERE app = 'a'",
]


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> penstock.Lake:
    return penstock.connect(tmp_path_factory.mktemp("lake"))


@pytest.fixture(scope="module")
def runtime(lake: penstock.Lake) -> Iterator[IcebergJudge]:
    lake.create_table("web.first", "id bigint")
    with runtime_on(lake) as found:
        yield found


class Follower:
    """A stream without Spark, and the rows that it makes of what comes."""

    def __init__(self, table: Any, **options: Any) -> None:
        self.table, self.options = table, as_options(options)
        self.feed = table.feed(self.options)
        self.position = self.feed.start()
        self.rows: Counter[tuple[Any, ...]] = Counter()

    def follow(self) -> None:
        """Take what has come, one file at a time, as a process that was just started."""
        while True:
            feed = self.table.feed(self.options)
            step = feed.step(self.position, Limit(files=1))
            if step.end == self.position:
                return
            for work in step.work:
                for part in feed.rows().read(work):
                    for row in part.to_pylist():
                        key = (row["id"], row["app"], row["n"])
                        self.rows[key] += -1 if row.get("_change_type") == "delete" else 1
            self.position = json.loads(json.dumps(step.end))


@pytest.mark.parametrize("mode", ["merge-on-read", "copy-on-write"])
def test_changes_put_together_are_the_table(runtime: IcebergJudge, lake: penstock.Lake, mode: str) -> None:
    name = mode.replace("-", "_")
    said = {f"write.{what}.mode": mode for what in ("delete", "update", "merge")}
    table = lake.create_table(
        f"web.{name}",
        "id bigint, app string, n bigint",
        ["app"],
        properties={**said, "commit.manifest.min-count-to-merge": "2", "format-version": "2"},
    )
    everything = Follower(table, on_change="changes")
    some = Follower(table, on_change="changes", where="app IN ('a', 'b', 'z') AND n > 5")
    for statement in STATEMENTS:
        runtime.ask(run, statement.format(t=f"penstock.web.{name}", n=name))
        found = Counter(runtime.ask(run, f"SELECT id, app, n FROM penstock.web.{name}"))
        everything.follow()
        assert +everything.rows == found, statement
        assert all(number >= 0 for number in everything.rows.values()), statement
        some.follow()
        wanted = Counter({row: k for row, k in found.items() if row[1] in ("a", "b", "z") and (row[2] or 0) > 5})
        assert +some.rows == wanted, statement


def test_only_what_was_added_comes_when_changes_are_skipped(runtime: IcebergJudge, lake: penstock.Lake) -> None:
    table = lake.create_table(
        "web.skipped",
        "id bigint, app string, n bigint",
        ["app"],
        properties={"commit.manifest.min-count-to-merge": "2"},
    )
    follower, own = Follower(table, on_change="skip", where="app = 'a'"), Counter[tuple[Any, ...]]()
    for i, statement in enumerate(STATEMENTS):
        before = Counter(runtime.ask(run, "SELECT id, app, n FROM penstock.web.skipped WHERE app = 'a'"))
        runtime.ask(run, statement.format(t="penstock.web.skipped", n="skipped"))
        after = Counter(runtime.ask(run, "SELECT id, app, n FROM penstock.web.skipped WHERE app = 'a'"))
        own += after - before if statement.startswith("INSERT INTO") else Counter()
        follower.follow()
        assert follower.rows == own, (i, statement)


def test_what_a_stream_wrote_is_read_by_the_runtime(lake: penstock.Lake, runtime: IcebergJudge) -> None:
    table = lake.create_table("web.sunk", "id bigint, app string", ["app"], coalesce="app")
    for number in (0, 1, 1, 2):
        rows = _rows(number)
        job = write.prepare(table.refresh())
        write.add_batch(table, write.produce(job, rows), StreamBatch("query", number))
    found = runtime.ask(run, "SELECT id, app FROM penstock.web.sunk ORDER BY id")
    assert found == [(i, f"app{i % 7}") for i in range(300)]
    summaries = runtime.ask(run, "SELECT summary['penstock.stream.batch-id'] FROM penstock.web.sunk.snapshots")
    assert sorted(summaries) == [("0",), ("1",), ("2",)]


def _rows(number: int) -> pa.Table:
    ids = list(range(number * 100, number * 100 + 100))
    return pa.table({"id": pa.array(ids, pa.int64()), "app": [f"app{i % 7}" for i in ids]})
