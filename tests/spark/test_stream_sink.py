"""Streams into managed tables: one snapshot for each micro-batch, each batch once, and nothing left of what failed."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog

import penstock
from penstock.errors import LakeError, SchemaError
from penstock.lake.commit.commit import UnknownOutcomeError
from penstock.lake.managed_table import ManagedTable
from penstock.lake.write import writes as write
from tests.fixtures.managed_tables import bag, files_below

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

COLUMNS = (
    "id bigint NOT NULL, app string, at timestamp, local timestamp_ntz, price decimal(9,2), "
    "tags map<string,string>, inner struct<a: int, b: array<string>>"
)
# In the last hour of October's last Sunday, Berlin's clocks showed every time twice.
ROWS = """
    id, concat('app', id % 1000) AS app, timestamp_micros(1792889100000000 + id * 1000001) AS at,
    timestamp_ntz'2026-03-29 02:30:00' + make_dt_interval(0, 0, 0, id) AS local, cast(id AS decimal(9,2)) AS price,
    CASE WHEN id % 5 > 0 THEN map('k', cast(id AS string), 'n', NULL) END AS tags,
    named_struct('a', cast(id AS int), 'b', array(cast(id AS string), NULL)) AS inner
"""


@pytest.fixture(scope="module")
def given(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four files of rows; the third has none that the tests want."""
    penstock.attach(spark)
    root = tmp_path_factory.mktemp("given")
    for i in range(4):
        rows = spark.range(i * 3000, (i + 1) * 3000, 1, 1).selectExpr(*split_columns(ROWS))
        rows.write.mode("append").parquet(str(root))
    return root


def split_columns(text: str) -> list[str]:
    """Expressions that are separated by commas outside of brackets."""
    found, depth = [""], 0
    for character in text:
        depth += (character == "(") - (character == ")")
        if character == "," and not depth:
            found.append("")
        else:
            found[-1] += character
    return found


class Lake:
    """A lake with one table, and streams into it."""

    def __init__(self, spark: SparkSession, root: Path, given: Path) -> None:
        self.spark, self.root, self.given = spark, root / "lake", given
        self.checkpoint = root / "checkpoint"
        self.table: ManagedTable = penstock.connect(self.root).create_table(
            "web.t", COLUMNS, ["app"], coalesce=["app"], shred={"tags": ["k"]}
        )
        self.options = {"warehouse": str(self.root), "table": "web.t"}
        write.prepare(self.table)

    def run(
        self, change: Callable[[DataFrame], Any], source: str = "penstock", mode: str = "append", files: int = 1
    ) -> Any:
        """Run a stream until it has taken all files, so many in each batch; the query."""
        schema = self.spark.read.parquet(str(self.given)).schema
        rows = self.spark.readStream.schema(schema).option("maxFilesPerTrigger", files).parquet(str(self.given))
        out = change(rows).writeStream.format(source).outputMode(mode).options(**self.options)
        query = out.option("checkpointLocation", str(self.checkpoint)).trigger(availableNow=True).start()
        query.awaitTermination()
        return query

    def batches(self) -> list[tuple[str, str]]:
        """The query and the batch of each snapshot."""
        told = [snapshot.summary.additional_properties for snapshot in self.table.refresh().table.metadata.snapshots]
        return [(own["penstock.stream.query-id"], own["penstock.stream.batch-id"]) for own in told]

    def forget(self, batch: int) -> None:
        """Let Spark not know that it finished its last batch: the next run of the query starts with it."""
        for name in (f"{batch}", f".{batch}.crc"):
            (self.checkpoint / "commits" / name).unlink()

    def data_files(self) -> set[str]:
        return {path for path in files_below(self.root) if path.endswith(".parquet")}


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path, given: Path, utc: None) -> Lake:
    return Lake(spark, tmp_path, given)


def wanted(df: DataFrame) -> DataFrame:
    """The rows of all files but the third."""
    return df.where("id < 6000 OR id >= 9000")


def test_each_batch_with_rows_is_a_snapshot_and_a_batch_that_comes_again_is_none(lake: Lake) -> None:
    lake.spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    query = lake.run(wanted)
    batches = lake.batches()
    assert batches == [(query.id, "0"), (query.id, "1"), (query.id, "3")]
    assert lake.table.table.metadata.properties[f"penstock.stream.{query.id}"] == "3"
    assert plain(lake.table.arrow()) == plain(wanted(lake.spark.read.parquet(str(lake.given))).toArrow())
    assert len(lake.table.plan().files) == 3, "a thousand partitions in each batch"
    assert len(lake.table.plan("app = 'app7'").files) == 3
    (served,) = lake.table.plan("tags['k'] = '4001'").report.keys
    assert served.sidecar == 3, "the key has a column of its own in each file"

    before = lake.data_files()
    lake.forget(3)
    again = lake.run(wanted)
    assert (again.id, len(again.recentProgress)) == (query.id, 1), "Spark runs it again"
    assert lake.batches() == batches
    assert lake.data_files() == before


def plain(rows: pa.Table) -> Counter[str]:
    """Rows without an order, moments in UTC, maps by their keys."""
    found = rows.to_pylist()
    for row in found:
        row["at"] = row["at"].astimezone(dt.UTC)
        row["tags"] = None if row["tags"] is None else sorted(row["tags"])
    return bag(found)


def test_a_task_that_fails_says_why_in_one_line_and_nothing_is_left(lake: Lake) -> None:
    def second_task_fails(df: DataFrame) -> DataFrame:
        return df.repartitionByRange(2, "id").selectExpr("nullif(id, 2999) AS id", "* EXCEPT (id)")

    with pytest.raises(SchemaError, match="column 'id' is required and 1 of the rows have null there") as error:
        lake.run(second_task_fails)
    assert "\n" not in str(error.value)
    assert not lake.batches()
    assert not lake.data_files()
    lake.run(wanted, files=3)
    assert [number for _, number in lake.batches()] == ["0", "1"]


def test_a_commit_that_took_place_and_then_failed_loses_and_repeats_nothing(lake: Lake) -> None:
    from pyspark.sql.types import StructType

    from penstock.spark.stream.stream_sink import StreamWriter
    from penstock.spark.write.data_source import PenstockSource

    class Dies(StreamWriter):
        def commit(self, messages: list[Any], batchId: int) -> None:
            super().commit(messages, batchId)
            raise LakeError("the driver went away")

    class DyingSource(PenstockSource):
        @classmethod
        def name(cls) -> str:
            return "penstock_dying"

        def streamWriter(self, schema: StructType, overwrite: bool) -> Any:
            found = super().streamWriter(schema, overwrite)
            return Dies(found.options, found.job)

    lake.spark.dataSource.register(DyingSource)
    with pytest.raises(LakeError, match="the driver went away"):
        lake.run(wanted, source="penstock_dying")
    assert len(lake.batches()) == len(lake.data_files()) == 1
    assert lake.table.refresh().count() == 3000
    lake.run(wanted, files=3)
    assert [number for _, number in lake.batches()] == ["0", "1"]
    assert bag(lake.table.arrow(columns=["id"])) == bag([{"id": i} for i in range(12000) if not 6000 <= i < 9000])
    assert len(lake.data_files()) == 2


def test_complete_and_update_mode_are_refused(lake: Lake) -> None:
    def counted(df: DataFrame) -> DataFrame:
        return df.groupBy("app").count()

    with pytest.raises(LakeError, match=r'complete mode replaces them all .*; use outputMode\("append"\)'):
        lake.run(counted, mode="complete")
    with pytest.raises(Exception, match="penstock does not support Update mode"):
        lake.run(counted, mode="update")
    assert not lake.batches()


@pytest.mark.parametrize(
    ("options", "drop", "says"),
    [
        ({"table": None}, (), "the options do not say which table; set the options table, and warehouse or catalog"),
        ({"table": "web.nosuch"}, (), r"no table 'web\.nosuch' in .*; there are: web\.t"),
        ({"where": "id = 1"}, (), "the option where is about what is replaced, and a stream only adds rows; leave it"),
        ({"dynamic": "false"}, (), "the option dynamic is about what is replaced"),
        ({}, ("id", "tags"), "the rows do not fit the table: missing: id bigint; select"),
    ],
)
def test_bad_input_is_said_before_a_row_is_read(lake: Lake, options: dict[str, Any], drop: Any, says: str) -> None:
    from penstock.spark.write.data_source import PenstockSource

    told = {name: value for name, value in (lake.options | options).items() if value is not None}
    schema = lake.spark.read.parquet(str(lake.given)).drop(*drop).schema
    with pytest.raises((LakeError, SchemaError), match=says):
        PenstockSource(told).streamWriter(schema, overwrite=False)


def test_a_stream_of_rows_that_do_not_fit_ends_with_one_line(lake: Lake) -> None:
    with pytest.raises(SchemaError, match="missing: id bigint; select and cast") as error:
        lake.run(lambda df: df.drop("id"))
    assert "\n" not in str(error.value)
    assert not lake.data_files()


@pytest.mark.parametrize("overwrite", [None, False], ids=["stream", "batch"])
def test_files_of_a_commit_of_which_nobody_knows_outlive_the_abort(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, overwrite: bool | None
) -> None:
    from penstock.spark.stream.stream_sink import BatchWritten
    from penstock.spark.write.data_source import PenstockSource, Written, write_batches

    source = PenstockSource(lake.options)
    rows = lake.spark.read.parquet(str(lake.given)).where("id < 10")
    writer: Any = source.streamWriter(rows.schema, False) if overwrite is None else source.writer(rows.schema, False)
    number = [7] if overwrite is None else []
    files = write_batches(writer.job, iter(rows.toArrow().to_batches()))
    message = BatchWritten(files, "q") if overwrite is None else Written(files)
    commit, load = SqlCatalog.commit_table, SqlCatalog.load_table

    def lost(self: SqlCatalog, *args: Any) -> Any:
        commit(self, *args)
        monkeypatch.setattr(SqlCatalog, "load_table", lost)
        raise ConnectionResetError("the connection was reset")

    monkeypatch.setattr(SqlCatalog, "commit_table", lost)
    with pytest.raises(UnknownOutcomeError, match="the connection was reset"):
        writer.commit([message], *number)
    monkeypatch.setattr(SqlCatalog, "load_table", load)
    writer.abort([message], *number)
    assert lake.table.refresh().count() == len(lake.table.arrow()) == 10

    other = Written(write_batches(writer.job, iter(rows.toArrow().to_batches())))
    writer.abort([other, None], *number)
    assert len(lake.data_files()) == len(files), "with a task that failed there was no commit"


def test_sweep_removes_what_no_commit_took(lake: Lake) -> None:
    from penstock.spark.write.data_source import PenstockSource, Written, write_batches

    rows = lake.spark.read.parquet(str(lake.given)).where("id < 10")
    writer: Any = PenstockSource(lake.options).streamWriter(rows.schema, False)
    writer.abort([Written(write_batches(writer.job, iter(rows.toArrow().to_batches())))], 0)
    assert lake.data_files()
    lake.table.sweep(dt.timedelta(0), force=True)
    assert not lake.data_files()
