"""Streams in Spark over all three kinds of table: the rows that match, each once, whatever comes and however often a
query is stopped; and not one foreign row before the filter."""

from __future__ import annotations

import json
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import penstock
from penstock.errors import LakeError, PenstockError
from tests.fixtures.processes import wait_until

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

KINDS = ("hive", "iceberg", "managed")
# What a feed delivers is tested without Spark for each kind of table (`tests/unit/stream`).
MANAGED_AND_HIVE = ["managed", pytest.param("hive", marks=pytest.mark.slow)]
COLUMNS = "id bigint, app string, tags map<string,string>"
HAS_LIMITS = pytest.mark.skipif(
    tuple(map(int, __import__("pyspark").__version__.split(".")[:2])) < (4, 2), reason="read limits need Spark 4.2"
)


class Source:
    """A table of one kind, to which rows come."""

    def __init__(self, kind: str, root: Path) -> None:
        self.kind, self.root = kind, root / "source"
        self.ids = 0
        if kind == "hive":
            self.root.mkdir()
            self.add("a0")
            self.table: Any = penstock.hive(self.root, "app string", "id bigint, tags map<string,string>")
        else:
            lake = penstock.connect(self.root)
            self.table = lake.create_table(
                "web.t",
                COLUMNS,
                ["app"],
                coalesce="app" if kind == "managed" else None,
                shred={"tags": ["k"]} if kind == "managed" else None,
            )
            self.add("a0")

    def add(self, *apps: str) -> list[int]:
        """Three rows for each of some apps; the ids."""
        first = self.ids
        self.ids += 3 * len(apps)
        for i, app in enumerate(apps):
            ids = list(range(first + 3 * i, first + 3 * i + 3))
            tags = pa.array([[("k", str(n))] for n in ids], pa.map_(pa.string(), pa.string()))
            rows = pa.table({"id": pa.array(ids, pa.int64()), "tags": tags})
            if self.kind == "hive":
                folder = self.root / f"app={app}"
                folder.mkdir(exist_ok=True)
                part = folder / f".{first}-{i}"
                pq.write_table(rows, part)
                part.rename(folder / f"{first}-{i}.parquet")
            else:
                self.table.append(rows.add_column(1, "app", pa.array([app] * 3)))
        return list(range(first, self.ids))

    def options(self) -> dict[str, str]:
        """How Spark's options name it."""
        if self.kind == "hive":
            return {"path": str(self.root), "partitionBy": "app string"}
        return {"warehouse": str(self.root), "table": "web.t"}


@pytest.fixture(params=KINDS)
def source(request: pytest.FixtureRequest, spark: SparkSession, utc: None, tmp_path: Path) -> Source:
    penstock.attach(spark)
    return Source(request.param, tmp_path)


class Sink:
    """What a stream delivered, batch by batch."""

    def __init__(self, checkpoint: Path) -> None:
        self.checkpoint, self.batches = checkpoint, list[list[int]]()

    @property
    def ids(self) -> list[int]:
        return [i for batch in self.batches for i in batch]

    def start(self, rows: DataFrame, **trigger: Any) -> Any:
        out = rows.writeStream.foreachBatch(self._take).option("checkpointLocation", str(self.checkpoint))
        return out.trigger(**trigger or {"availableNow": True}).start()

    def run(self, rows: DataFrame) -> Any:
        query = self.start(rows)
        query.awaitTermination()
        return query

    def _take(self, rows: DataFrame, number: int) -> None:
        self.batches.append(sorted(row.id for row in rows.select("id").collect()))


@pytest.mark.parametrize(
    "source", ["hive", *(pytest.param(k, marks=pytest.mark.slow) for k in KINDS[1:])], indirect=True
)
def test_partitions_born_after_the_start_are_read_and_foreign_ones_never(
    spark: SparkSession, source: Source, tmp_path: Path
) -> None:
    sink = Sink(tmp_path / "checkpoint")
    rows = source.table.stream(spark, where="app LIKE 'a%' AND app <> 'a0'", poll_seconds=0.1)
    query = sink.start(rows, processingTime="0 seconds")
    try:
        wait_until(lambda: len(sink.batches) == 1)
        time.sleep(0.5)
        assert query.isActive
        assert sink.ids == []
        source.add("b1", "b2")
        wanted = source.add("a1")
        wait_until(lambda: len(sink.ids) == 3)
        wanted += source.add("a1", "b1")[:3]
        wait_until(lambda: penstock.stream_report(query).rows == 6)
        report = penstock.stream_report(query)
    finally:
        query.stop()
    assert sorted(sink.ids) == wanted
    taken = sum(progress.numInputRows for progress in query.recentProgress)
    assert taken == 6, "rows of other partitions reached the query"
    assert report.sources[0].files == 2
    assert report.rows == 6
    assert "2 files" in str(report)


@pytest.mark.slow  # half a minute for each; `test_stream_sink.py` has batches that come again in every run
@pytest.mark.parametrize("source", ["hive", "managed"], indirect=True)
def test_a_batch_that_failed_comes_again_as_it_was(spark: SparkSession, source: Source, tmp_path: Path) -> None:
    seen: list[list[int]] = []

    def take(rows: DataFrame, number: int) -> None:
        seen.append(sorted(row.id for row in rows.select("id").collect()))
        if len([ids for ids in seen if ids]) in (1, 3) and seen[-1]:
            raise ValueError("on purpose")

    def run() -> None:
        out = source.table.stream(spark, where="app LIKE 'a%'").writeStream.foreachBatch(take)
        out.option("checkpointLocation", str(tmp_path / "c")).trigger(availableNow=True).start().awaitTermination()

    def run_to_the_end() -> None:
        """Until nothing comes: before Spark 4.2 a run has one batch, which may be one that is run again."""
        done = -1
        while done < len(seen):
            done = len(seen)
            with suppress(Exception):
                run()

    run_to_the_end()
    second = source.add("a7", "b7")[:3]
    run_to_the_end()
    third = source.add("a7")
    run_to_the_end()
    assert [ids for ids in seen if ids] == [[0, 1, 2], [0, 1, 2], second, second, third]
    text = (tmp_path / "c" / "offsets" / "1").read_text().splitlines()[-1]
    assert json.loads(text)["penstock"] == 1
    assert len(text) < 1_000


@HAS_LIMITS
@pytest.mark.parametrize("source", MANAGED_AND_HIVE, indirect=True)
def test_limits_hold_and_available_now_ends(spark: SparkSession, source: Source, tmp_path: Path) -> None:
    wanted = [0, 1, 2, *source.add("a1", "a2", "a3", "a4")]
    sink = Sink(tmp_path / "checkpoint")
    sink.run(source.table.stream(spark, max_files_per_trigger=2))
    assert [len(batch) for batch in sink.batches] == [6, 6, 3]
    assert sorted(sink.ids) == wanted


@pytest.mark.parametrize("source", MANAGED_AND_HIVE, indirect=True)
def test_the_options_of_the_source_are_those_of_the_method(spark: SparkSession, source: Source, tmp_path: Path) -> None:
    source.add("b")
    wanted = source.add("a9")
    rows = spark.readStream.format("penstock").options(**source.options()).option("where", "app = 'a9'")
    rows = rows.option("columns", "id, tags['k']").option("maxFilesPerTrigger", "5").load()
    assert rows.columns == ["id", "tags['k']"]
    sink = Sink(tmp_path / "checkpoint")
    sink.run(rows)
    assert sink.ids == wanted


@pytest.mark.parametrize("source", MANAGED_AND_HIVE, indirect=True)
def test_whole_rows_come_as_they_are_in_the_table(spark: SparkSession, source: Source, tmp_path: Path) -> None:
    source.add("a1")
    rows = source.table.stream(spark)
    query = rows.writeStream.format("memory").queryName("whole").option("checkpointLocation", str(tmp_path / "c"))
    query.trigger(availableNow=True).start().awaitTermination()
    found = spark.sql("SELECT * FROM whole ORDER BY id").collect()
    told = source.table.refresh() if source.kind != "hive" else source.table
    assert found == told.dataframe(spark).selectExpr(*rows.columns).orderBy("id").collect()


@pytest.mark.parametrize("source", ["managed"], indirect=True)
def test_what_only_spark_can_check_is_checked_by_spark(spark: SparkSession, source: Source, tmp_path: Path) -> None:
    source.add("b1")
    where = "app LIKE 'a%' AND id >= 1 + rand() * 0.5 AND current_date() > DATE'2020-01-01'"
    sink = Sink(tmp_path / "checkpoint")
    sink.run(source.table.stream(spark, where=where, columns=["id"]))
    assert sink.ids == [2]
    with pytest.raises(PenstockError, match="rand"):
        spark.readStream.format("penstock").options(**source.options()).option("where", where).load()


@pytest.mark.parametrize("source", ["hive"], indirect=True)
def test_another_filter_or_table_needs_another_checkpoint(spark: SparkSession, source: Source, tmp_path: Path) -> None:
    sink = Sink(tmp_path / "checkpoint")
    sink.run(source.table.stream(spark, where="app = 'a0'"))
    with pytest.raises(LakeError, match="made with the filter app = 'a0', and now it is app = 'a1'"):
        sink.run(source.table.stream(spark, where="app = 'a1'"))
    wanted = source.add("a1")
    sink.run(source.table.stream(spark, where="app = 'a1'", allow_filter_change=True))
    assert sink.ids == [0, 1, 2, *wanted]
    (tmp_path / "other").mkdir()
    with pytest.raises(LakeError, match="the checkpoint is of"):
        sink.run(Source(source.kind, tmp_path / "other").table.stream(spark, where="app = 'a1'"))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"where": "app ="}, "missing"),
        ({"where": "nope = 1"}, "nope"),
        ({"starting": "tomorrow"}, "starting is 'tomorrow'"),
        ({"columns": ["id", "nope"]}, "no column 'nope'"),
        ({"max_files_per_trigger": 0}, "max_files_per_trigger is 0"),
        ({"speed": 3}, "no option 'speed'"),
    ],
)
def test_bad_input_is_said_before_the_stream_starts(
    spark: SparkSession, source: Source, options: dict[str, Any], said: str
) -> None:
    with pytest.raises(PenstockError, match=said):
        source.table.stream(spark, **options)


@pytest.mark.slow
@pytest.mark.parametrize("source", ["hive"], indirect=True)
def test_a_vanished_file_ends_the_stream_with_what_to_do(spark: SparkSession, source: Source, tmp_path: Path) -> None:
    file = next(source.root.glob("app=a0/*.parquet"))
    rows = source.table.stream(spark, where="app = 'a0'")
    failing = Sink(tmp_path / "checkpoint")
    failing._take = lambda rows, number: (file.unlink(), rows.collect())  # type: ignore[assignment, method-assign]
    with pytest.raises(Exception, match="on_missing"):
        failing.run(rows)
    sink = Sink(tmp_path / "checkpoint")
    with pytest.raises(PenstockError, match="on_missing"):
        sink.run(rows)
    sink.run(source.table.stream(spark, where="app = 'a0'", on_missing="skip"))
    assert sink.ids == []
