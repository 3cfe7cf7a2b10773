"""The public names are all there, each from where it lives; a wrong one is an ordinary AttributeError."""

import subprocess
import sys
from importlib import metadata

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import penstock
from penstock import errors


def test_every_public_name_can_be_loaded():
    assert all(getattr(penstock, name) is not None for name in penstock.__all__)
    assert set(penstock._HOMES) | {"__version__"} == set(penstock.__all__)
    assert set(penstock.__all__) <= set(dir(penstock))


def test_a_public_name_is_the_object_of_its_module():
    assert penstock.PenstockError is errors.PenstockError


def test_a_plan_of_local_directories_does_not_load_pyiceberg_or_spark(tmp_path):
    (tmp_path / "app=a").mkdir()
    pq.write_table(pa.table({"n": [1]}), tmp_path / "app=a" / "1.parquet")
    plan = f"penstock.hive({str(tmp_path)!r}, partition_by='app string').plan('n > 0')"
    loaded = "[name for name in ('pyiceberg', 'pydantic', 'datafusion', 'pyspark') if name in sys.modules]"
    script = f"import sys, penstock; print(len({plan}.files), {loaded})"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "1 []\n"


def test_a_wrong_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'penstock' has no attribute 'conect'"):
        _ = penstock.conect


def test_the_installed_version_is_the_one_in_the_code():
    assert metadata.version("penstock") == penstock.__version__
