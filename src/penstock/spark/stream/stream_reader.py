"""Streams in Spark: `table.stream(spark, …)` and `spark.readStream.format("penstock")`.

    spark.readStream.format("penstock").option("warehouse", "./lake").option("table", "web.events")
    spark.readStream.format("penstock").option("partition_by", "dt date, app string").load("s3://lake/events")

with the options of `penstock.stream.stream_options`; for files of a layout also `format`, `schema` and, as
`option.header`, those of the format. The predicate travels into the source. Spark's driver keeps one
Python process for a stream, which finds what is new and prunes it (`penstock.stream`); tasks read the files that are
left, and check the rows.

Before 4.2 Spark does not tell a source where the stream stands when it asks for more: limits hold from the second batch
of a restarted stream on, and `Trigger.AvailableNow` reads everything in one batch.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from penstock.errors import LakeError
from penstock.spark.session.session import attach, register
from penstock.spark.session.tasks import tasks_at_once
from penstock.stream.feed import Feed, Limit, Look, Rows, Work
from penstock.stream.position import Position
from penstock.stream.stream_options import as_options

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from penstock.tables.source import Source

try:
    from pyspark.sql.streaming import datasource as limits
except ImportError:  # before 4.2
    limits = None  # type: ignore[assignment]

_OPENING = 1 << 20  # what opening a file costs, in bytes that could be read meanwhile
_TASKS = 4
_PLACE = {"table": "table", "warehouse": "warehouse", "catalog": "catalog", "path": "path",
          "partitionby": "partition_by", "storage": "storage", "timezone": "timezone",
          "format": "format", "schema": "schema"}  # fmt: skip
_FILE_OPTION = "option."  # before an option of a layout's files
_numbers = itertools.count(1)


def stream(table: Source, spark: SparkSession, options: Mapping[str, Any]) -> DataFrame:
    """A table as a streaming DataFrame; what is wrong with the options is said now."""
    stream_options = as_options(options)
    feed = table.feed(stream_options)
    if feed.unchecked is not None and stream_options.columns is not None:
        feed = table.feed(replace(stream_options, columns=None))  # the filter may need other columns
    rows = spark.readStream.format(register_feed(feed, attach(spark))).load()
    if feed.unchecked is None:
        return rows
    assert stream_options.where is not None  # what cannot be checked is a part of it
    rows = rows.where(stream_options.where)
    return rows if stream_options.columns is None else rows.select(*stream_options.columns)


def register_feed(feed: Feed, spark: SparkSession) -> str:
    """Make a stream known to a session as a data source of its own; its name."""
    source = _source(feed, tasks_at_once(spark))
    register(spark, source)
    return str(source.name())


def _source(feed: Feed, at_once: int) -> type[StreamSource]:
    """A data source of one stream. It holds the table, so that nothing secret stands among Spark's options."""
    name = f"penstock_stream_{next(_numbers)}"
    members = {"feed": feed, "at_once": at_once, "name": classmethod(lambda cls: name)}
    return type("PenstockStream", (StreamSource,), members)


class StreamSource(DataSource):
    """A stream."""

    feed: Feed
    at_once: int

    def schema(self) -> StructType:
        """The columns of the rows."""
        return spark_schema(self.feed)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """What Spark asks for new rows."""
        return StreamReader(self.feed, self.at_once)


def feed_of(options: Mapping[str, str]) -> Feed:
    """What is new in the table that Spark's options name; a filter that the source cannot check is an error."""
    place, stream_options, file_options = dict[str, str](), dict[str, str](), dict[str, str]()
    for name, value in options.items():
        if name.lower().startswith(_FILE_OPTION):
            file_options[name[len(_FILE_OPTION) :]] = value
            continue
        place_name = _PLACE.get(name.replace("_", "").lower())
        (stream_options if place_name is None else place)[place_name or name] = value
    feed: Feed = _table(place, file_options).feed(as_options(stream_options))
    if feed.unchecked is not None:
        message = f"the filter cannot be checked on the rows here: {feed.unchecked}"
        raise LakeError(
            message, hint="use table.stream(spark, where=…), or put that part into .where(…) of the DataFrame"
        )
    return feed


def _table(place: Mapping[str, str], options: Mapping[str, str]) -> Source:
    """A table by its name, or a directory tree by its path."""
    from penstock.lake.lake import connect
    from penstock.tables.hive.hive_table import hive

    name, path = place.get("table"), place.get("path")
    if (name is None) == (path is None) or (name is not None and not {"warehouse", "catalog"} & place.keys()):
        hint = "set table, and warehouse or catalog; or the path and partition_by of a directory tree"
        raise LakeError("the options do not say which table", hint=hint)
    if name is not None:
        return connect(
            place.get("warehouse"), catalog=place.get("catalog"), timezone=place.get("timezone", "UTC")
        ).table(name)
    assert path is not None
    by, zone = place.get("partition_by", "auto"), place.get("timezone", "UTC")
    files: Any = {"format": place.get("format"), "options": options}
    return hive(path, by, place.get("schema"), storage=place.get("storage"), timezone=zone, **files)


def spark_schema(feed: Feed) -> StructType:
    """The columns of the rows, as Spark's."""
    from pyspark.sql.pandas.types import from_arrow_schema
    from pyspark.sql.types import StructField

    schema = from_arrow_schema(feed.schema)
    return StructType([StructField(field.name, field.dataType, True) for field in schema.fields])


class Reading(InputPartition):
    """What one task reads."""

    def __init__(self, rows: Rows, work: Sequence[Work]) -> None:
        super().__init__(None)
        self.rows, self.work = rows, work


class Reader:
    """What is read of a feed, in tasks."""

    def __init__(self, feed: Feed, at_once: int = _TASKS) -> None:
        self._feed, self._at_once = feed, at_once

    def _readings(self, work: Sequence[Work]) -> list[InputPartition]:
        """Files in as many tasks as run at once, or more."""
        return [Reading(self._feed.rows(), part) for part in _bundles(work, self._at_once)] if work else []

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """In a task: the rows of its files."""
        assert isinstance(partition, Reading)
        for work in partition.work:
            for table in partition.rows.read(work):
                yield from table.combine_chunks().to_batches()


class StreamReader(Reader, DataSourceStreamReader, *(() if limits is None else (limits.SupportsTriggerAvailableNow,))):  # type: ignore[misc]
    """What Spark asks for new rows."""

    def __init__(self, feed: Feed, at_once: int = _TASKS) -> None:
        super().__init__(feed, at_once)
        self._limit = Limit.of(feed.options)
        self._initial: Position | None = None
        self._at: Position | None = None
        self._look = Look()
        self._nothing_since: float | None = None  # when the last look found nothing
        self._ends = False

    def initialOffset(self) -> Position:
        """Where a new stream begins; Spark asks twice."""
        if self._initial is None:
            self._initial = self._feed.start()
        self._at = self._at or self._initial
        return self._initial

    def latestOffset(self, start: Position | None = None, limit: Any = None) -> Position:
        """The position after what comes next."""
        if self._nothing_since is not None and not self._ends:
            time.sleep(max(0.0, self._nothing_since + self._feed.options.poll_seconds - time.monotonic()))
        every = limits is not None and isinstance(limit, limits.ReadAllAvailable)
        step = self._feed.step(start or self._at, Limit() if every else self._limit)
        self._at, self._look = step.end, step.look.after(self._look)
        self._nothing_since = None if step.work else time.monotonic()
        return step.end

    def getDefaultReadLimit(self) -> Any:
        """That there is a limit; what it is the source knows itself."""
        if self._limit.files is not None:
            return limits.ReadMaxFiles(self._limit.files)
        return limits.ReadAllAvailable() if self._limit.bytes is None else limits.ReadMaxBytes(self._limit.bytes)

    def prepareForTriggerAvailableNow(self) -> None:
        """Read what is there now, in as many batches as the limits want, and then stop."""
        self._feed.stop_at_present()
        self._ends = True

    def reportLatestOffset(self) -> dict[str, Any]:
        """What the last look saw: it stands in Spark's progress as the source's latest offset."""
        return self._look.to_dict()

    def partitions(self, start: Position, end: Position) -> Sequence[InputPartition]:
        """The files between two positions."""
        self._at = end
        return [] if start == end else self._readings(self._feed.again(start, end))


class BatchReader(Reader, DataSourceReader):
    """Reads a table as it is now: `spark.read.format("penstock")`; the option `where` prunes."""

    def partitions(self) -> Sequence[InputPartition]:
        """The files of the table."""
        self._feed.stop_at_present()
        return self._readings(self._feed.step(self._feed.start(), Limit()).work)


def _bundles(work: Sequence[Work], at_once: int) -> list[list[Work]]:
    """Files for tasks, in their order: as many tasks as run at once, or more where there is much to read."""
    total = sum(each.size + _OPENING for each in work)
    share = min(max(total / at_once, 4 * _OPENING), 128 << 20)
    groups: list[list[Work]] = [[]]
    room = share
    for each in work:
        if groups[-1] and room < each.size + _OPENING:
            groups.append([])
            room = share
        groups[-1].append(each)
        room -= each.size + _OPENING
    return groups
