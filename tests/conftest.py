"""How hard the property tests search, where decoded manifests go, how the JVMs of Spark run, and which files go first.

The profiles `default` and `more` are the same on every run, `slow` looks for what is new.
HYPOTHESIS_PROFILE chooses. Tests leave the number of examples to it: a `max_examples` of their own would win.
"""

import atexit
import os
import shutil
import tempfile
from collections import Counter
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests.fixtures.jvm_options import jvm_options

for name, examples in (("default", 10), ("more", 60)):
    settings.register_profile(
        name,
        max_examples=examples,
        deadline=None,
        derandomize=True,
        suppress_health_check=[HealthCheck.too_slow],
    )
settings.register_profile(
    "slow",
    max_examples=int(os.environ.get("EXAMPLES", "5000")),
    deadline=None,
    derandomize=False,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
# Decoded manifests of test tables do not belong into anybody's cache folder.
_CACHE = tempfile.mkdtemp(prefix="penstock-tests-")
os.environ["PENSTOCK_CACHE_DIR"] = _CACHE
atexit.register(shutil.rmtree, _CACHE, ignore_errors=True)

os.environ.setdefault("SPARK_SUBMIT_OPTS", jvm_options())  # whatever starts a Spark reads it, in any process

settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))

# With several processes a file is one piece of work, so one that takes long must not be the last to start.
LONGEST = (
    "interop/test_sql_judges.py",
    "fuzz/test_fuzz.py",
    "project/test_docs.py",
    "interop/test_iceberg_judges.py",
    "spark/test_sql_statements.py",
    "spark/test_predicates_against_spark.py",
    "interop/test_spark_s3.py",
    "spark/test_catalog_sessions.py",
    "spark/test_iceberg_deletes.py",
    "spark/test_hot_keys.py",
    "spark/test_managed_writes.py",
    "spark/test_stream_reads.py",
    "spark/test_functions_against_spark.py",
    "spark/test_shredded_tables.py",
    "contract/test_tables.py",
    "browser/test_page.py",
    "spark/test_metastore_tables.py",
    "spark/test_hive_types.py",
    "spark/test_hive_queries.py",
    "spark/test_iceberg_queries.py",
    "spark/test_stream_sink.py",
    "differential/test_hostile_input.py",
    "spark/test_commands_with_spark.py",
    "spark/test_hive_and_iceberg_connect.py",
    "lake/test_managed_statistics.py",
    "lake/test_managed_concurrency.py",
)
# A JVM takes half a minute of a core until it is warm, so the files that share one go to few processes: so many at
# most have one, as long as there is other work. Those of `tests/spark` that start their own may run anywhere. The
# process of Iceberg's runtime is one of the two with Spark: `test_sql_judges.py` needs both.
PROCESSES_WITH = {"Spark": 2, "Iceberg's Spark runtime": 1}
OWN_SPARK = {
    "test_nightly_job.py",
    "test_managed_kills.py",
    "test_stream_kills.py",
    "test_demo.py",
    "test_hive_cluster.py",
    "test_hive_metastore.py",
    "test_hive_and_iceberg_connect.py",
    "test_commands_with_spark.py",
}


def shared_by(nodeid: str) -> set[str]:
    """Which JVMs a file shares with others."""
    folder, name = nodeid.split("::", 1)[0].split("/")[-2:]
    jvms = set()
    if (folder in ("spark", "fuzz") and name not in OWN_SPARK) or name == "test_sql_judges.py":
        jvms.add("Spark")
    if folder == "interop" and name.endswith("_judges.py"):
        jvms.add("Iceberg's Spark runtime")
    return jvms


def pytest_configure(config: pytest.Config) -> None:
    """Keep pytest-xdist from starting with the files of the most tests: those of Spark have few and long ones."""
    if hasattr(config.option, "loadscopereorder"):
        config.option.loadscopereorder = False


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Files one by one in their order, but rather to a process that has their JVM already."""
    if config.getoption("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class BySharedJVM(LoadFileScheduling):
        def _assign_work_unit(self, node: Any) -> None:
            self.workqueue.move_to_end(self._next_of(node), last=False)
            super()._assign_work_unit(node)

        def _next_of(self, node: Any) -> str:
            running = {each: set().union(*map(shared_by, files)) for each, files in self.assigned_work.items()}
            count = Counter(jvm for jvms in running.values() for jvm in jvms)
            full = {jvm for jvm, most in PROCESSES_WITH.items() if count[jvm] >= most}
            wanted = (file for file in self.workqueue if not shared_by(file) & full - running[node])
            return next(wanted, next(iter(self.workqueue)))

    return BySharedJVM(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest files first, then all others of JVMs that are shared, then the rest in their order."""
    places = {name: place for place, name in enumerate(LONGEST)}

    def place(item: pytest.Item) -> tuple[int, bool]:
        found = places.get("/".join(item.path.parts[-2:]), len(LONGEST))
        return found, not shared_by(item.nodeid)

    items.sort(key=place)
