"""Tables on S3, read by Spark's own S3A from a real server: the same rows as plain Spark, and nothing asked in vain."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pytest

from penstock.errors import StorageError
from tests.fixtures.hive_writer import directory_of, write_hive
from tests.fixtures.variants import variants
from tests.interop import s3_questions as ask
from tests.interop.spark_process import SparkProcess
from tests.s3.server import KEY_ID, SECRET, S3Server
from tools.fetch_jars import Unavailable, fetch

pytestmark = [pytest.mark.interop, pytest.mark.spark]

STRANGE = "a/b ü'\"%:=#?+日"
KEYS = ["app", "day"]
APPS = ["shop", "blog", STRANGE, "x y", "100%", "%41", None]


class Table(NamedTuple):
    """What opens a table, in this process and in Spark's."""

    url: str
    columns: str
    schema: str
    storage: dict[str, str]

    def written_as(self, scheme: str) -> Table:
        return self._replace(url=self.url.replace("s3://", f"{scheme}://"))


@pytest.fixture(scope="module")
def events(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where Spark writes its event logs."""
    return tmp_path_factory.mktemp("events")


@pytest.fixture(scope="session")
def jars() -> list[Path]:
    try:
        return fetch("hadoop-aws")
    except Unavailable as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def spark(jars: list[Path], events: Path) -> Iterator[SparkProcess]:
    log = {"spark.eventLog.enabled": "true", "spark.eventLog.dir": events.as_uri(), "spark.eventLog.compress": "false"}
    process = SparkProcess(jars, log)
    yield process
    process.close()


@pytest.fixture
def table(s3: S3Server) -> Table:
    """One file for each app and two days, in a bucket that nobody has asked for yet."""
    rows = pa.table({"n": range(14), "app": APPS * 2, "day": [i // 7 for i in range(14)]})
    root = write_hive(s3.new_bucket() / "t", rows, KEYS)
    return Table(s3.url(root), "app string, day int", "n bigint", s3.properties)


def file_of(app: str | None, day: int) -> str:
    return f"t/{directory_of('app', app)}/day={day}/part-0.parquet"


QUERIES = [
    "TRUE",
    "app = 'shop'",
    "app IN ('shop', 'nosuch') AND day = 1",
    "app IS NULL AND n > 8",
    "app LIKE 'a/b%'",
    "app = '%41' OR app = '100%'",
    "app = 'x y' AND n = 3",
    "app = 'nosuch'",
    "_metadata.file_path LIKE '%x%20y%'",
    "_metadata.file_name = 'part-0.parquet' AND _metadata.file_size > 0",
]


@pytest.mark.parametrize("scheme", variants(("s3", "s3a"), 1))
def test_same_rows_as_plain_spark_whichever_way_the_url_is_written(
    spark: SparkProcess, table: Table, scheme: str
) -> None:
    expected = spark.ask(ask.plain_queries, table, QUERIES)
    assert sorted(n for n, *_ in expected[0]) == list(range(14))
    rows = spark.ask(ask.queries, table.written_as(scheme), QUERIES)
    assert dict(zip(QUERIES, rows, strict=True)) == dict(zip(QUERIES, expected, strict=True))


def test_every_partition_value_is_found_alone(spark: SparkProcess, table: Table) -> None:
    literals = ["NULL" if app is None else "'" + app.replace("'", "\\'") + "'" for app in APPS]
    found = spark.ask(ask.queries, table, [f"app <=> {literal}" for literal in literals])
    assert [sorted(rows) for rows in found] == [[(i, app, 0), (i + 7, app, 1)] for i, app in enumerate(APPS)]


def test_point_query_lists_matching_directories_and_gets_the_one_file(
    spark: SparkProcess, s3: S3Server, table: Table
) -> None:
    with s3.requests() as seen:
        assert spark.ask(ask.query, table, "app = 'shop' AND day = 1") == [(7, "shop", 1)]
    assert seen.pages == [("t/", ""), ("t/app=shop/", ""), ("t/app=shop/day=1/", "")], "Spark itself lists nothing"
    assert set(seen.gets) == {file_of("shop", 1)}
    assert set(seen.heads) <= {file_of("shop", 1)}


def test_query_for_nothing_reads_nothing(spark: SparkProcess, s3: S3Server, table: Table) -> None:
    with s3.requests() as seen:
        assert spark.ask(ask.query, table, "app = 'nosuch'") == []
    assert (seen.pages, seen.gets, seen.heads) == ([("t/", "")], [], [])


def test_whole_table_is_listed_once_by_penstock_and_never_by_spark(
    spark: SparkProcess, s3: S3Server, table: Table
) -> None:
    with s3.requests() as seen:
        assert len(spark.ask(ask.query, table)) == 14
    assert len(seen.pages) == len(set(seen.pages)) == 1 + 7 + 14
    assert set(seen.gets) == {file_of(app, day) for app in APPS for day in (0, 1)}


def test_partition_columns_alone_are_counted_like_plain_spark(spark: SparkProcess, table: Table) -> None:
    select = "count(*); count(app); max(day)"
    assert spark.ask(ask.query, table, "day = 1", select) == spark.ask(ask.plain, table, "day = 1", select)


def test_join_gets_the_files_of_the_keys_that_the_other_side_has(
    spark: SparkProcess, s3: S3Server, table: Table
) -> None:
    with s3.requests() as seen:
        assert spark.ask(ask.join, table, ["x y", STRANGE]) == [
            (10, "x y", 0), (2, STRANGE, 1), (3, "x y", 0), (9, STRANGE, 1),
        ]  # fmt: skip
    assert set(seen.gets) == {file_of(app, day) for app in ("x y", STRANGE) for day in (0, 1)}


def test_file_path_is_the_url_as_it_was_written_and_prunes_by_it(
    spark: SparkProcess, s3: S3Server, table: Table
) -> None:
    for scheme in ("s3", "s3a"):
        named = table.written_as(scheme)
        (row,) = spark.ask(ask.query, named, "app = 'shop' AND day = 0", "_metadata.file_path")
        assert row == (f"{named.url}/app=shop/day=0/part-0.parquet",)
        paths = [path for path, *_ in spark.ask(ask.query, named, "day = 0", "_metadata.file_path")]
        assert len(paths) == len(APPS)
        for path in paths if scheme == "s3" else paths[:2]:
            with s3.requests() as seen:
                where = "_metadata.file_path = '" + path.replace("'", "\\'") + "'"
                assert len(spark.ask(ask.query, named, where)) == 1, path
            assert len(set(seen.heads)) == 1, "one file is opened"


def test_predicate_on_the_other_scheme_matches_nothing_as_in_spark(spark: SparkProcess, table: Table) -> None:
    for scheme, rows in (("s3", 14), ("s3a", 0)):
        assert len(spark.ask(ask.query, table, f"_metadata.file_path LIKE '{scheme}://%'")) == rows


def test_wrong_secret_is_one_clear_error(spark: SparkProcess, table: Table) -> None:
    wrong = table._replace(storage={**table.storage, "s3.secret-access-key": "not-the-secret-0815"})
    with pytest.raises(StorageError, match="credentials") as raised:
        spark.ask(ask.query, wrong)
    assert "not-the-secret-0815" not in f"{raised.value}{raised.value!r}"
    assert "java" not in str(raised.value)
    assert len(spark.ask(ask.query, table)) == 14, "corrected, it works"


def test_same_bucket_at_another_endpoint_is_an_error_and_not_the_first_ones_rows(
    spark: SparkProcess, table: Table, tmp_path: Path
) -> None:
    assert len(spark.ask(ask.query, table)) == 14
    second = S3Server(tmp_path)
    try:
        write_hive(second.root / table.url.removeprefix("s3://"), pa.table({"n": [99], "app": ["b"], "day": [1]}), KEYS)
        other = table._replace(storage=second.properties)
        with pytest.raises(StorageError, match="another endpoint") as raised:
            spark.ask(ask.query, other)
        assert "s3a://" in str(raised.value), "the way out"
        assert spark.ask(ask.query, other.written_as("s3a")) == [(99, "b", 1)]
        assert len(spark.ask(ask.query, table)) == 14, "the first goes on"
    finally:
        second.stop()
    again = table._replace(storage={**table.storage, "s3.endpoint": table.storage["s3.endpoint"] + "/"})
    assert len(spark.ask(ask.query, again)) == 14, "the same place, written in another way"


def test_bucket_opened_by_plain_spark_with_another_account_is_an_error(spark: SparkProcess, table: Table) -> None:
    other = table._replace(storage={**table.storage, "s3.access-key-id": "somebody-else"})
    with pytest.raises(RuntimeError, match="403"):
        spark.ask(ask.plain, other)
    with pytest.raises(StorageError, match=r"another access\.key") as raised:
        spark.ask(ask.query, table.written_as("s3a"))
    assert "somebody-else" not in str(raised.value)
    assert KEY_ID not in str(raised.value)
    assert len(spark.ask(ask.query, table)) == 14, "as s3:// it has a client of its own"


def test_bucket_opened_by_plain_spark_with_the_same_account_is_no_conflict(spark: SparkProcess, table: Table) -> None:
    assert len(spark.ask(ask.plain, table)) == 14
    assert len(spark.ask(ask.query, table.written_as("s3a"))) == 14


@pytest.mark.slow  # it takes half a minute until such a cluster is there
def test_session_configuration_is_neither_used_nor_changed_on_a_cluster_of_processes(
    table: Table, jars: list[Path]
) -> None:
    bucket = table.url.split("/")[2]
    settings = {f"spark.hadoop.fs.s3a.bucket.{bucket}.{name}": "nonsense" for name in ("access.key", "secret.key")}
    settings |= {"spark.hadoop.fs.s3a.endpoint": "http://127.0.0.1:1", "spark.hadoop.fs.s3a.access.key": "nonsense"}
    process = SparkProcess(jars, settings, master="local-cluster[1,1,1024]")
    try:
        assert len(process.ask(ask.query, table)) == 14
        assert SECRET not in process.ask(ask.shown, table)
    finally:
        process.close()


def test_no_secret_is_shown_anywhere(spark: SparkProcess, s3: S3Server, table: Table, events: Path) -> None:
    secrets = [SECRET, KEY_ID]
    text = spark.ask(ask.shown, table)
    assert "Penstock" in text
    assert [secret for secret in secrets if secret in text] == []
    gone = spark.ask(ask.failure, table)
    assert "part-0.parquet" in gone
    assert [secret for secret in secrets if secret in gone] == []
    logs = [path for path in events.rglob("*") if path.is_file() and path.stat().st_size]
    written = "".join(path.read_text() for path in logs)
    assert "SparkListenerSQLExecutionStart" in written
    assert [secret for secret in secrets if secret in written] == []


@pytest.mark.slow  # a server of its own; without S3 one is asked in every run
@pytest.mark.skipif(find_spec("grpc_status") is None, reason="pyspark[connect] is not installed")
def test_spark_connect_reads_with_the_servers_credentials_and_is_sent_none(table: Table, jars: list[Path]) -> None:
    server = {"spark.hadoop.fs.s3a.access.key": KEY_ID, "spark.hadoop.fs.s3a.secret.key": SECRET}
    process = SparkProcess(jars, server, connect=True)
    try:
        for scheme in ("s3", "s3a"):
            where = f"app IN ('shop', '100%') AND day = 1 AND _metadata.file_path LIKE '{scheme}://%'"
            rows, warned, text = process.ask(ask.by_connect, table.written_as(scheme), where)
            assert rows == [(11, "100%", 1), (7, "shop", 1)]
            assert ["its own credentials" in each for each in warned] == [True]
            assert table.storage["s3.endpoint"] in text, "the options that are no secret are there"
            assert [secret for secret in (SECRET, KEY_ID) if secret in text] == []
    finally:
        process.close()
