"""A streaming query that is watched: the rows that it delivers, and what Spark says of each of its triggers.

It is used in the process of a benchmark and in that of another Spark, where one query runs at a time.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_SECONDS = 240
_running: list[Watched] = []


@dataclass(frozen=True)
class Trigger:
    """One trigger, by Spark's progress: milliseconds of the whole and of its parts, and the rows that came in."""

    number: int
    rows: int
    spent: dict[str, int]
    source: dict[str, Any]

    @property
    def seconds(self) -> float:
        """Of the whole trigger."""
        return self.spent["triggerExecution"] / 1e3

    @property
    def finding(self) -> float:
        """The seconds to find what is new."""
        return sum(self.spent.get(name, 0) for name in ("latestOffset", "getBatch")) / 1e3

    @property
    def is_idle(self) -> bool:
        """Whether there was no batch."""
        return "addBatch" not in self.spent


class Watched:
    """A query, from its start on."""

    def __init__(self, rows: Any, checkpoint: Path, **trigger: Any) -> None:
        self.rows: list[tuple[Any, ...]] = []
        out = rows.writeStream.foreachBatch(self._take).option("checkpointLocation", str(checkpoint))
        self.query = out.trigger(**trigger).start()

    def _take(self, rows: Any, number: int) -> None:
        self.rows.extend(tuple(row) for row in rows.collect())

    def triggers(self) -> list[Trigger]:
        """Those that Spark remembers."""
        told = [json.loads(progress.json) for progress in self.query.recentProgress]
        return [Trigger(p["batchId"], p["numInputRows"], p["durationMs"], p["sources"][0]) for p in told]

    def wait(self, done: Callable[[list[Trigger]], bool]) -> list[Trigger]:
        """The triggers, as soon as something is true of them."""
        deadline = time.monotonic() + _SECONDS
        while not done(found := self.triggers()):
            if self.query.exception() is not None:
                raise RuntimeError(str(self.query.exception()))
            assert time.monotonic() < deadline, "it did not happen"
            time.sleep(0.02)
        return found

    def next_idle(self) -> int:
        """Wait for a trigger that finds nothing; how many there were with it."""
        many = len(self.triggers())
        return len(self.wait(lambda found: len(found) > many and found[-1].is_idle))

    def next_rows(self, before: int) -> list[Trigger]:
        """The triggers after so many, of which one brought rows."""
        return self.wait(lambda found: any(trigger.rows for trigger in found[before:]))[before:]

    def end(self) -> None:
        """Stop the query."""
        self.query.stop()


def with_rows(triggers: list[Trigger]) -> Trigger:
    """The one that brought rows."""
    (found,) = [trigger for trigger in triggers if trigger.rows]
    return found


def remember_triggers(spark: Any) -> None:
    """Let Spark remember many triggers."""
    spark.conf.set("spark.sql.streaming.numRecentProgressUpdates", "1000")


def tell_every_trigger(spark: Any) -> None:
    """Let Spark also report the triggers that find nothing."""
    remember_triggers(spark)
    spark.conf.set("spark.sql.streaming.noDataProgressEventInterval", "0")


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


def begin_iceberg(spark: Any, name: str, where: str, checkpoint: str, interval: str) -> None:
    """Follow a table by Iceberg's own stream, from now on; Spark filters what it delivers."""
    tell_every_trigger(spark)
    source = spark.readStream.format("iceberg").option("stream-from-timestamp", str(int(time.time() * 1000)))
    rows = source.load(name).where(where)
    _running.append(Watched(rows, Path(checkpoint), processingTime=interval))


def next_idle(spark: Any) -> int:
    """Of the running query."""
    return _running[0].next_idle()


def next_rows(spark: Any, before: int) -> tuple[list[Trigger], list[tuple[Any, ...]]]:
    """Of the running query, with all rows so far."""
    return _running[0].next_rows(before), _running[0].rows


def end(spark: Any) -> None:
    """Of the running query."""
    _running.pop().end()
