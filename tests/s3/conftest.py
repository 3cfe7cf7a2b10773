"""The S3 server of the session, shared with `tests/contract`."""

import pytest

from tests.s3.server import S3Server, running


@pytest.fixture(scope="session")
def s3(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> S3Server:
    return running(request.config, tmp_path_factory.mktemp("s3"))
