"""Tables of Hive's metastore as it is embedded in Spark, with Derby behind it, in a process of its own.

In every run the catalog of a session is asked, by `test_metastore_tables.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.interop.spark_process import SparkProcess
from tests.spark import metastore_questions as questions
from tests.spark.metastore_contract import HiveMetastoreContract

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("hive")


@pytest.fixture(scope="module")
def hive(root: Path) -> Iterator[SparkProcess]:
    """A Spark with tables in a metastore of its own."""
    config = {
        **questions.CONFIG,
        "spark.sql.warehouse.dir": f"{root}/warehouse",
        "spark.hadoop.javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={root}/metastore;create=true",
        "spark.driver.extraJavaOptions": f"-Dderby.stream.error.file={root}/derby.log",
    }
    process = SparkProcess(config=config, master="local[1]")
    process.ask(questions.tables, root)
    yield process
    process.close()


class TestEmbeddedMetastore(HiveMetastoreContract):
    """The one inside of Spark."""
