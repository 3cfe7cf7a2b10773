"""How hard the property tests search, where decoded manifests go, how the JVMs of Spark run, and which files go first.

The profile `default` is the same on every run, `slow` looks for what is new.
HYPOTHESIS_PROFILE chooses. Tests leave the number of examples to it: a `max_examples` of their own would win.
"""

import atexit
import os
import shutil
import tempfile

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "default",
    max_examples=60,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "slow",
    max_examples=20_000,
    deadline=None,
    derandomize=False,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
# Decoded manifests of test tables do not belong into anybody's cache folder.
_CACHE = tempfile.mkdtemp(prefix="penstock-tests-")
os.environ["PENSTOCK_CACHE_DIR"] = _CACHE
atexit.register(shutil.rmtree, _CACHE, ignore_errors=True)

# A JVM of the tests lives for a minute: its second compiler and its parallel collector would take more from the other
# test process than they ever give back. Whatever starts a Spark reads this, also in processes of its own.
os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")

settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))

# With several processes a file is one piece of work, so one that takes long must not be the last to start.
LONGEST = (
    "interop/test_managed_judges.py",
    "interop/test_iceberg_judges.py",
    "interop/test_spark_s3.py",
    "spark/test_predicates_against_spark.py",
    "spark/test_iceberg_deletes.py",
    "spark/test_hive_queries.py",
    "spark/test_hive_sessions.py",
    "spark/test_iceberg_queries.py",
    "spark/test_functions_against_spark.py",
    "spark/test_hive_types.py",
    "spark/test_iceberg_schemas.py",
    "spark/test_hive_cluster.py",
    "spark/test_hive_and_iceberg_connect.py",
    "spark/test_hive_oracle.py",
    "differential/test_iceberg_evolution.py",
    "differential/test_hostile_input.py",
)


def pytest_configure(config: pytest.Config) -> None:
    """Keep pytest-xdist from starting with the files of the most tests: those of Spark have few and long ones."""
    if hasattr(config.option, "loadscopereorder"):
        config.option.loadscopereorder = False


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest files first, all others in their order."""
    places = {name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get("/".join(item.path.parts[-2:]), len(LONGEST)))
