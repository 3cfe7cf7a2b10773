"""Tables of a real server of Hive's metastore, which Spark asks over Thrift: the rows of `spark.table`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.interop.metastore_server import metastore_server
from tests.interop.spark_process import SparkProcess
from tests.spark import metastore_questions as questions
from tests.spark.metastore_contract import HiveMetastoreContract
from tools.fetch_jars import Unavailable, fetch

pytestmark = [pytest.mark.interop, pytest.mark.spark, pytest.mark.slow]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("server")


@pytest.fixture(scope="module")
def hive(root: Path) -> Iterator[SparkProcess]:
    """A Spark whose session catalog is the server."""
    try:
        jars = fetch("hive-metastore")
    except Unavailable as error:
        pytest.skip(f"no server of Hive's metastore: {error}")
    with metastore_server(jars, root) as uri:
        config = {**questions.CONFIG, "spark.hadoop.hive.metastore.uris": uri}
        process = SparkProcess(config={**config, "spark.sql.warehouse.dir": f"{root}/warehouse"}, master="local[1]")
        try:
            process.ask(questions.tables, root)
            yield process
        finally:
            process.close()


class TestMetastoreServer(HiveMetastoreContract):
    """The one that Spark asks over Thrift."""

    partitions = 5_000
