"""Managed tables for other engines to read and to write: their rows, a model of plain rows, and what is asked of them.

The rows have what is hard on a logical partition: nulls, an empty text, characters that a path escapes, and a user's
own `[#small]`. Appends come in turns, even and odd: a shared file of one turn has the range of the other's values and
none of them, so that bounds cannot tell what the record of its logical partitions does.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import fastavro
import pyarrow as pa
import pytest
import sqlglot

import penstock
from penstock.lake.managed_table import ManagedTable
from tests.interop.iceberg_judge import IcebergJudge, shared_judge
from tools.fetch_jars import Unavailable

COLUMNS = pa.schema(
    {
        "id": pa.int64(),
        "ts": pa.timestamp("us", "UTC"),
        "app": pa.string(),
        "region": pa.string(),
        "k": pa.int32(),
        "d": pa.date32(),
        "p": pa.decimal128(9, 2),
        "ok": pa.bool_(),
        "n": pa.int32(),
        "x": pa.float64(),
    }
)
ROWS = 60
_EVEN = ["shop", "a0", "a2", "a4", "a6", "a8", "[#small]", None]
_ODD = ["shop", "blog", "a1", "a3", "a5", "a7", "", "ä/b c", "%41=+", "[#small", "it's"]
_DAYS = [dt.datetime(2026, 5, 2, tzinfo=dt.UTC), dt.datetime(1969, 12, 31, tzinfo=dt.UTC)]
_REGIONS = ["eu", None, "[#small]"]

# What means the same in Spark's SQL and in PyIceberg's little language.
COMMON = [
    "TRUE",
    "app = 'a3'",
    "app = '[#small]'",
    "app IN ('a1', 'a6', '[#small]', 'nosuch')",
    "app >= 'a2' AND app < 'a6'",
    "app LIKE 'a%'",
    "app IS NULL",
    "NOT (app = 'shop')",
    "app = '' OR app = 'ä/b c'",
    "ts >= '2026-05-02T00:00:00+00:00' AND ts < '2026-05-03T00:00:00+00:00'",
    "ts IS NULL OR ts < '1970-01-01T00:00:00+00:00'",
    "n > 70 AND x < 0.5",
    "app = 'a4' AND ts >= '2026-05-02T00:00:00+00:00'",
    "app = 'a5' OR n = 17",
    "NOT (app LIKE 'a%' AND n < 30)",
]
SPARK = [
    "NOT (app IN ('shop', 'a2', '[#small]'))",
    "app LIKE '%#s%' AND to_date(ts) = DATE'2026-05-02'",
    "coalesce(app, '[#small]') = '[#small]'",
]
OF_TUPLES = [
    "region = 'eu'",
    "region = '[#small]' AND app = '[#small]'",
    "app = 'a4' AND region IS NULL",
    "NOT (region = 'eu' OR app = 'shop')",
    "region IN ('us', 'eu') AND app LIKE 'a%' AND n > 50",
]
OF_KINDS = [
    "TRUE",
    "k = 3",
    "k IN (0, 4, 900)",
    "k > 1 AND k <= 3",
    "k IS NULL",
    "NOT (k = 2)",
    "d = '1969-12-30'",
    "d >= '1970-01-01'",
    "d IS NULL AND k = 1",
    "p < -1",
    "p IS NULL OR ok = true",
    "k = 2 AND d < '1970-01-01' AND ok = false",
    "NOT (d >= '1970-01-01' AND n > 40)",
    "app = '[#small]' AND k = 4",
]
# After the steps between, and of the past.
FEW = ["TRUE", "app = 'a3'", "app = '[#small]'", "NOT (app LIKE 'a%' AND n < 30)"]
PAST = ["app = 'a3'", "NOT (app LIKE 'a%' AND n < 30)"]


def some_rows(turn: int, count: int = ROWS) -> pa.Table:
    """Rows of an append; odd and even turns have other values of all logical columns, but for the largest."""
    rng = Random(turn)
    apps = _ODD if turn % 2 else _EVEN
    weights = [len(apps), *([1] * (len(apps) - 1))]
    return pa.Table.from_pylist([_row(rng, turn, i, rng.choices(apps, weights)[0]) for i in range(count)], COLUMNS)


def _row(rng: Random, turn: int, i: int, app: str | None) -> dict[str, Any]:
    moment = rng.choice(_DAYS) + dt.timedelta(seconds=rng.randrange(86_400), microseconds=rng.randrange(10**6))
    small = 2 * rng.randrange(3) + turn % 2
    return {
        "id": 1_000 * turn + i,
        "ts": None if i % 31 == 7 else moment,
        "app": app,
        "region": rng.choice(_REGIONS),
        "k": None if i % 17 == 3 else small,
        "d": None if i % 5 == 3 else dt.date(1969, 12, 30) + dt.timedelta(days=small),
        "p": None if i % 7 == 1 else Decimal(small - 3) / 4,
        "ok": i % 2 == 0,
        "n": None if i % 13 == 5 else rng.randrange(100),
        "x": rng.uniform(-1, 1),
    }


class Model:
    """A table as plain rows; DuckDB, which knows of no files here, says which of them match."""

    def __init__(self) -> None:
        self.rows = COLUMNS.empty_table()
        self._sql = duckdb.connect()
        self._sql.execute("SET TimeZone = 'UTC'")

    def matching(self, where: str) -> pa.Table:
        """The rows for which a predicate is true."""
        self._sql.register("model", self.rows)
        text = sqlglot.parse_one(where, read="spark").sql(dialect="duckdb")
        return self._sql.execute(f"SELECT * FROM model WHERE {text}").to_arrow_table()

    def append(self, rows: pa.Table) -> None:
        self.rows = pa.concat_tables([self.rows, rows])

    def delete(self, where: str) -> None:
        gone = self.matching(where).column("id").to_pylist()
        self.keep([i not in set(gone) for i in self.rows.column("id").to_pylist()])

    def keep(self, staying: Sequence[bool]) -> None:
        self.rows = self.rows.filter(pa.array(staying, pa.bool_()))

    def overwrite_partitions(self, rows: pa.Table) -> None:
        """Replace the days and apps that the new rows have."""
        gone = {_day_and_app(row) for row in rows.to_pylist()}
        self.keep([_day_and_app(row) not in gone for row in self.rows.to_pylist()])
        self.append(rows)


def _day_and_app(row: dict[str, Any]) -> tuple[Any, ...]:
    return (None if row["ts"] is None else row["ts"].date(), row["app"])


class Written:
    """A managed table and its model, changed together."""

    def __init__(self, lake: penstock.Lake, name: str, partition_by: Sequence[str], rule: Any, **said: str) -> None:
        # Spark gives a file a task of its own for what opening it is said to cost.
        properties = {"write.delete.mode": "merge-on-read", "read.split.open-file-cost": "1024"}
        properties |= {key.replace("__", "."): value for key, value in said.items()}
        self.lake, self.name, self.model = lake, name, Model()
        self.table: ManagedTable = lake.create_table(
            f"web.{name}", COLUMNS, partition_by, coalesce=rule, properties=properties
        )
        self.history: dict[int, pa.Table] = {}

    def append(self, *turns: int, count: int = ROWS) -> None:
        for turn in turns:
            rows = some_rows(turn, count)
            self.table.append(rows)
            self.model.append(rows)
            self.remember()

    def delete(self, where: str) -> None:
        self.table.delete(where)
        self.model.delete(where)
        self.remember()

    def overwrite(self, rows: pa.Table, where: str | None) -> None:
        """Put rows in the place of those that match, or of the logical partitions that they have."""
        self.table.overwrite(rows, where, dynamic=where is None)
        if where is None:
            self.model.overwrite_partitions(rows)
        else:
            self.model.delete(where)
            self.model.append(rows)
        self.remember()

    def compact(self) -> Any:
        done = self.table.compact()
        self.remember()
        return done

    def remember(self) -> None:
        """What the model has is what the newest snapshot has."""
        self.table.refresh()
        head = self.table.table.metadata.current_snapshot()
        assert head is not None
        self.history[head.snapshot_id] = self.model.rows

    @property
    def path(self) -> str:
        """The metadata file of the newest version."""
        return str(self.table.table.metadata_location).removeprefix("file://")

    def recorded(self) -> list[bool]:
        """For each live file of a spec without all partition fields: whether its entry says its logical partitions."""
        now = self.table.table
        fine = now.metadata.default_spec_id
        found = []
        for manifest in now.metadata.current_snapshot().manifests(now.io):  # type: ignore[union-attr]
            if manifest.partition_spec_id != fine and int(manifest.content) == 0:
                with Path(manifest.manifest_path.removeprefix("file://").removeprefix("file:")).open("rb") as file:
                    entries = [entry for entry in fastavro.reader(file) if entry["status"] != 2]  # type: ignore[index,call-overload]
                found += [entry["data_file"].get("logical_partition_values") is not None for entry in entries]
        return found

    def files(self, where: str) -> int:
        """How many files are planned."""
        return len(self.table.plan(where).files)


def use_catalog(spark: Any, warehouse: str) -> None:
    """Make the embedded catalog of a warehouse one of Spark's: its name is the one that it has in the database."""
    said = {
        "": "org.apache.iceberg.spark.SparkCatalog",
        ".type": "jdbc",
        ".uri": f"jdbc:sqlite:{warehouse}/catalog.db",
        ".warehouse": f"file://{warehouse}",
        ".cache-enabled": "false",
    }
    for name, value in said.items():
        spark.conf.set(f"spark.sql.catalog.penstock{name}", value)


def run(spark: Any, text: str) -> list[tuple[Any, ...]]:
    """Run a statement; its rows."""
    return [tuple(row) for row in spark.sql(text).collect()]


def insert(spark: Any, name: str, rows: pa.Table) -> None:
    """Append rows by Iceberg's own writer."""
    spark.createDataFrame(rows).writeTo(f"penstock.web.{name}").append()


@contextmanager
def runtime_on(lake: penstock.Lake) -> Iterator[IcebergJudge]:
    """Iceberg's Spark runtime on the catalog of a lake; where it cannot be had, tests are skipped with the reason."""
    assert lake.warehouse is not None
    try:
        process = shared_judge(lake.warehouse)
    except Unavailable as error:
        pytest.skip(str(error))
    process.ask(use_catalog, str(lake.warehouse))
    yield process
