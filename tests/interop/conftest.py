"""Tests with jars from Maven: the S3 server and Iceberg's Spark runtime of the session; no Spark without PySpark."""

from collections.abc import Iterator
from importlib.util import find_spec

import pytest

from tests.interop.iceberg_judge import close_shared_judge
from tests.s3.server import S3Server, running

collect_ignore_glob = [] if find_spec("pyspark") else ["test_spark_*"]


@pytest.fixture(scope="session")
def s3(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> S3Server:
    return running(request.config, tmp_path_factory.mktemp("s3"))


@pytest.fixture(scope="session", autouse=True)
def judge_ends_with_the_session() -> Iterator[None]:
    yield
    close_shared_judge()
