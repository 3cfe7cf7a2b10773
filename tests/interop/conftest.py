"""Tests with jars from Maven: the S3 server of the session, and nothing of Spark where PySpark is not installed."""

from importlib.util import find_spec

import pytest

from tests.s3.server import S3Server, running

collect_ignore_glob = [] if find_spec("pyspark") else ["test_spark_*"]


@pytest.fixture(scope="session")
def s3(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> S3Server:
    return running(request.config, tmp_path_factory.mktemp("s3"))
