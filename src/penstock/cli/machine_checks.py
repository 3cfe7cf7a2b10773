"""What `penstock doctor` checks on this machine: Java, PySpark, the workers' Python, the libraries, the cache folder.

A check says in one line what was found, and where that will not do, in one more line what helps. Nothing is imported to
look at its version; only the Python of the workers is run, because that is the only way to know what it can import.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from penstock.spark.session.java_runtime import find_java, output_of

WITH_SPARK = ("pyspark", "pandas")
LIBRARIES = ("penstock", "pyarrow", "pyiceberg", "sqlglot", "datafusion")
_NEEDED = ("penstock", "pyarrow")
_PROBE = f"""
import sys
print("%d.%d" % sys.version_info[:2])
for name in {_NEEDED!r}:
    try:
        __import__(name)
    except Exception:
        print(name)
"""
MEND = "mend the libraries first"
_DRIVER = "the driver's own"


@dataclass(frozen=True)
class Check:
    """What a check has shown; `fix` is what helps, and None where all is well."""

    name: str
    message: str
    fix: str | None = None

    @property
    def ok(self) -> bool:
        """Whether all is well."""
        return self.fix is None

    def to_dict(self) -> dict[str, Any]:
        """Plain values for machines."""
        return {"check": self.name, "ok": self.ok, "found": self.message, "fix": self.fix}


def check_machine() -> Iterator[Check]:
    """Everything that needs no table and no Spark."""
    yield Check("python", f"Python {sys.version.split()[0]} ({sys.executable})")
    for name in LIBRARIES:
        yield check_library(name)
    yield check_cache()
    yield check_java()
    for name in WITH_SPARK:
        yield check_library(name, extra="spark")
    yield from check_workers()


def check_java() -> Check:
    """The Java that Spark would start."""
    java = find_java()
    return Check("java", java.message, java.fix)


def check_library(name: str, extra: str | None = None) -> Check:
    """Whether a library is there, in a version that Penstock takes."""
    wanted = _wanted(name)
    install = f"pip install 'penstock[{extra}]'" if extra else f"pip install '{name}{wanted}'"
    version = _version(name)
    if version is None:
        without = "; what needs Spark does not work, all else does" if extra else ""
        return Check(name, f"{name} is not installed{without}", install)
    if not _fits(version, wanted):
        return Check(name, f"{name} {version} is installed; {wanted} is wanted", f"pip install '{name}{wanted}'")
    return Check(name, f"{name} {version}")


def check_workers() -> Iterator[Check]:
    """The Python that Spark starts for its workers, as each setting says it: same version, same libraries."""
    for setting, program in _workers().items():
        yield _check_worker(setting, program)


def check_cache() -> Check:
    """Whether decoded manifests can be kept."""
    try:
        from penstock.tables.iceberg.manifest.manifest_store import cache_folder
    except ImportError as error:
        return Check("cache", f"cannot be looked for: {error}", MEND)
    folder, fix = cache_folder(), "set PENSTOCK_CACHE_DIR to a folder that can be written; plans are slower without it"
    if folder is None:
        return Check("cache", "there is no home for a cache folder", fix)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return Check("cache", f"{folder} can be written")
    except OSError as error:
        return Check("cache", f"{folder} cannot be written: {error.strerror}", fix)


def check_spark(before: Iterable[Check]) -> Check:
    """Start a session and let a Python worker count some rows, unless what it needs is missing already."""
    missing = [check.name for check in before if not check.ok and check.name in ("java", "workers", *WITH_SPARK)]
    if missing:
        return Check("spark", f"not started, because of {' and '.join(dict.fromkeys(missing))}", "mend that first")
    from penstock.progress import progress
    from penstock.spark.session.session import session

    try:
        with progress("starting Spark"):
            spark = session("penstock doctor", "local[1]")
        with progress("running a small job"):
            counted = spark.range(0, 1000, 1, 1).mapInArrow(_count, "rows bigint").collect()
            version = spark.version
        spark.stop()
    except Exception as error:  # it is what the check is for
        message = next(iter(str(error).splitlines()), "") or type(error).__name__
        fix = "see the checks before; PENSTOCK_SPARK_LOG=spark.log penstock doctor keeps what Spark says in that file"
        return Check("spark", f"Spark does not work: {message}", fix)
    if sum(row.rows for row in counted) != 1000:
        return Check("spark", f"a job of 1,000 rows gave {counted}", "check the Python of the workers")
    return Check("spark", f"Spark {version} ran a job with a Python worker")


def _count(batches: Iterable[Any]) -> Iterator[Any]:
    """Runs in the worker; it is found there by its name, so that the worker must have Penstock."""
    import pyarrow as pa

    for batch in batches:
        yield pa.RecordBatch.from_pydict({"rows": [batch.num_rows]})


def _check_worker(setting: str, program: str) -> Check:
    mine = f"{sys.version_info[0]}.{sys.version_info[1]}"
    name = "PYSPARK_PYTHON" if setting == _DRIVER else setting
    use = f"set {name} to {sys.executable}, or on a cluster to a Python {mine} with the same libraries"
    message = (output_of([program, "-c", _PROBE]) or "").split()
    if not message or not re.fullmatch(r"\d+\.\d+", message[0]):
        return Check("workers", f"{setting} is {program}, which cannot be run here", use)
    if message[0] != mine:
        return Check("workers", f"{setting} is {program}, Python {message[0]}; this is Python {mine}", use)
    missing = [name for name in _NEEDED if name in message]
    if missing:
        return Check("workers", f"{program} ({setting}) cannot import {' and '.join(missing)}", use)
    return Check("workers", f"{program} ({setting}), Python {mine}")


def _workers() -> dict[str, str]:
    """The programs by the setting that names them; Penstock's own sessions take the driver's where none does."""
    named = {
        "PYSPARK_PYTHON": os.environ.get("PYSPARK_PYTHON"),
        "spark.pyspark.python": _spark_defaults().get("spark.pyspark.python"),
    }
    return {setting: program for setting, program in named.items() if program} or {_DRIVER: sys.executable}


def _spark_defaults() -> dict[str, str]:
    """What spark-defaults.conf says, where there is one."""
    home = os.environ.get("SPARK_HOME")
    folder = os.environ.get("SPARK_CONF_DIR") or (os.path.join(home, "conf") if home else None)
    try:
        lines = (Path(folder) / "spark-defaults.conf").read_text(errors="replace").splitlines() if folder else []
    except OSError:
        return {}
    pairs = (re.split(r"[\s=:]+", line.strip(), maxsplit=1) for line in lines if not line.lstrip().startswith("#"))
    return {pair[0]: pair[1].strip() for pair in pairs if len(pair) == 2}


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        if find_spec(name) is None:
            return None
    # A library that was not installed by pip, as the PySpark in SPARK_HOME, knows its version itself.
    printed = output_of([sys.executable, "-c", f"import {name}; print({name}.__version__)"]) or ""
    match = re.search(r"^\d+(\.\w+)*", printed, re.MULTILINE)
    return match and match[0]


def _wanted(name: str) -> str:
    """The versions that Penstock's own metadata asks for; nothing where it is not installed."""
    try:
        required = metadata.requires("penstock") or []
    except metadata.PackageNotFoundError:
        return ""
    matches = (re.match(rf"{name}(?:\[[^]]*\])?([<>=!~][^;]*)", text) for text in required)
    return next((each[1].strip() for each in matches if each), "")


def _fits(version: str, wanted: str) -> bool:
    """Whether a version is in the bounds, as far as these are `>=` and `<`.

    >>> _fits("4.3.0", ">=4.0,<4.4"), _fits("4.4.0", ">=4.0,<4.4"), _fits("3.5.8", ">=4.0,<4.4")
    (True, False, False)
    """
    have = _parts(version)
    bounds = re.findall(r"(>=|<)\s*([\d.]+)", wanted)
    return all((have >= _parts(bound)) == (sign == ">=") for sign, bound in bounds)


def _parts(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:3])
