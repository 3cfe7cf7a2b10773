"""Jars that only tests need, fetched from Maven Central in pinned versions.

    python tools/fetch_jars.py hadoop-aws                  what Spark reads S3 with
    python tools/fetch_jars.py iceberg-spark-runtime       Iceberg's own reader
    python tools/fetch_jars.py sqlite-jdbc                 with which Iceberg commits to an embedded catalog
    python tools/fetch_jars.py hive-metastore              a server of Hive's metastore
    python tools/fetch_jars.py iceberg-judge               Iceberg's reader with a PySpark that it runs on
    python tools/fetch_jars.py delta-peer                  Delta Lake with that same PySpark

They stay in `.jars/<set>-<version>/`, in versions that fit the PySpark of this Python, and are fetched once. Maven does
the work, so its settings (mirrors, proxies) are used. Whatever stands in the way is one `Unavailable` with one line of
reason, for which tests skip.

Iceberg's runtime and Delta Lake come later than Spark, so the PySpark of this Python may have none yet. As a judge, and
as a peer of benchmarks, they run on a PySpark of its own, which pip puts into `.jars/pyspark-<version>/`: to be first
on the path of a process of its own.

`hadoop-aws` asks for the whole SDK of Amazon in one jar of 700 MB; S3A reads with five of its modules, which are 13 MB
with all they need. What Spark brings itself (netty, logging, HTTP) is left out.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

CACHE = Path(__file__).resolve().parents[1] / ".jars"
_SECONDS = 300
_PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"
_SDK = "software.amazon.awssdk"
# The version of Amazon's SDK that each Hadoop was built with (`aws-java-sdk-v2.version` of its hadoop-project). That of
# 3.4.1 was 2.24.6, of which s3-transfer-manager was never published.
_SDK_OF_HADOOP = {"3.4.1": "2.24.5", "3.4.2": "2.29.52", "3.4.3": "2.35.4", "3.5.0": "2.35.4"}
_SDK_MODULES = ("s3", "s3-transfer-manager", "sts", "apache-client", "netty-nio-client")
_IN_SPARK = ("io.netty", "org.slf4j", "commons-codec", "commons-logging", "org.apache.httpcomponents")
_IN_SPARK_TOO = ("com.fasterxml.jackson.core", "com.github.luben", "org.apache.hadoop", "org.apache.logging.log4j",
                 "org.apache.parquet", "org.roaringbitmap", "org.scala-lang", "org.xerial.snappy")  # fmt: skip
# The newest release of Iceberg for each Spark; Iceberg publishes a runtime for each minor version, later than Spark.
_ICEBERG_OF_SPARK = {"4.0": "1.11.0", "4.1": "1.12.0"}
_JUDGE = "4.1.4"  # the newest Spark among them, and the newest that Delta Lake has a build for
_DELTA = "4.3.1"
_SQLITE = "3.53.4.0"
_HIVE = "3.1.3"  # the newest metastore that Spark's own client is made for
# What its server needs beside it; the versions that it asks for itself do not run on Java 17.
_WITH_HIVE = ("org.apache.hadoop:hadoop-client-api:3.3.6", "org.apache.hadoop:hadoop-client-runtime:3.3.6",
              "org.apache.derby:derby:10.14.2.0", "commons-cli:commons-cli:1.5.0",
              "commons-collections:commons-collections:3.2.2")  # fmt: skip


class Unavailable(Exception):
    """Why jars cannot be had, in one line."""


@dataclass(frozen=True)
class Jars:
    """What to fetch: coordinates `group:artifact:version`, and groups to leave out."""

    name: str
    coordinates: tuple[str, ...]
    without: tuple[str, ...] = ()


def hadoop_aws() -> Jars:
    """S3A for the Hadoop inside PySpark."""
    hadoop = _version_of("hadoop-client-api")
    sdk = _SDK_OF_HADOOP.get(hadoop)
    if sdk is None:
        raise Unavailable(f"which Amazon SDK Hadoop {hadoop} needs is not known here; known: {_list(_SDK_OF_HADOOP)}")
    modules = tuple(f"{_SDK}:{module}:{sdk}" for module in _SDK_MODULES)
    coordinates = (f"org.apache.hadoop:hadoop-aws:{hadoop}", *modules)
    return Jars(f"hadoop-aws-{hadoop}", coordinates, (f"{_SDK}:bundle", "org.wildfly.openssl", *_IN_SPARK))


def iceberg_spark_runtime(version: str | None = None) -> Jars:
    """Iceberg's Spark runtime for a version of Spark: that of PySpark, or the given one."""
    spark = ".".join((version or _version_of("spark-sql_2.13")).split(".")[:2])
    iceberg = _ICEBERG_OF_SPARK.get(spark)
    if iceberg is None:
        raise Unavailable(f"Iceberg has no runtime for Spark {spark} yet; it has for {_list(_ICEBERG_OF_SPARK)}")
    artifact = f"iceberg-spark-runtime-{spark}_2.13"
    return Jars(f"{artifact}-{iceberg}", (f"org.apache.iceberg:{artifact}:{iceberg}",))


def delta_spark() -> Jars:
    """Delta Lake for the Spark of judges."""
    artifact = f"delta-spark_{'.'.join(_JUDGE.split('.')[:2])}_2.13"
    return Jars(f"{artifact}-{_DELTA}", (f"io.delta:{artifact}:{_DELTA}",), (*_IN_SPARK, *_IN_SPARK_TOO))


def sqlite_jdbc() -> Jars:
    """The driver with which Iceberg's JDBC catalog opens the SQLite of an embedded catalog."""
    return Jars(f"sqlite-jdbc-{_SQLITE}", (f"org.xerial:sqlite-jdbc:{_SQLITE}",), _IN_SPARK)


def hive_metastore() -> Jars:
    """The server of Hive's metastore, with Derby to keep its tables in."""
    coordinates = (f"org.apache.hive:hive-standalone-metastore:{_HIVE}", *_WITH_HIVE)
    return Jars(f"hive-metastore-{_HIVE}", coordinates, ("org.apache.hadoop", "org.apache.orc"))


SETS: dict[str, Callable[[], Jars]] = {
    "hadoop-aws": hadoop_aws,
    "iceberg-spark-runtime": iceberg_spark_runtime,
    "sqlite-jdbc": sqlite_jdbc,
    "hive-metastore": hive_metastore,
}


def fetch(name: str) -> list[Path]:
    """The jars of a set, from the cache or from Maven; `Unavailable` says why they cannot be had."""
    return _fetch(SETS[name]())


def fetch_iceberg_judge() -> tuple[Path, list[Path]]:
    """A folder with a PySpark that Iceberg has a runtime for, and the jars of that runtime."""
    return fetch_pyspark(_JUDGE), _fetch(iceberg_spark_runtime(_JUDGE))


def fetch_delta_peer() -> tuple[Path, list[Path]]:
    """A folder with a PySpark that Delta Lake has a build for, and the jars of that build."""
    return fetch_pyspark(_JUDGE), _fetch(delta_spark())


def fetch_pyspark(version: str) -> Path:
    """A folder with that PySpark and what it needs, from the cache or by pip."""
    return _once(f"pyspark-{version}", lambda made: _run_pip(f"pyspark=={version}", made))


def _fetch(jars: Jars) -> list[Path]:
    return sorted(_once(jars.name, lambda made: _run_maven(jars, made)).glob("*.jar"))


def _once(name: str, make: Callable[[Path], None]) -> Path:
    """A folder of the cache, made whole or not at all."""
    home = CACHE / name
    if not home.exists():
        CACHE.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CACHE) as work:
            made = Path(work) / "made"
            make(made)
            try:
                os.rename(made, home)
            except OSError:
                if not home.exists():  # else another process was first
                    raise
    return home


def _run_pip(requirement: str, made: Path) -> None:
    # With --target, what is installed already does not count: py4j comes in the version that this PySpark needs.
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(made), requirement]
    done = _run(command, "pip", made.parent, requirement)
    if done.returncode or not (made / "pyspark").exists():
        errors = re.findall(r"ERROR: (.+)", done.stderr) or (done.stderr or done.stdout).splitlines() or ["no PySpark"]
        raise Unavailable(f"{requirement}: pip failed: {errors[0][:300]}")


def _run_maven(jars: Jars, made: Path) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        raise Unavailable(f"{jars.name}: mvn is not installed")
    (made.parent / "pom.xml").write_text(_pom(jars))
    command = [maven, "--quiet", "--batch-mode", _PLUGIN, "-DincludeScope=runtime", f"-DoutputDirectory={made}"]
    done = _run(command, "Maven", made.parent, jars.name)
    if done.returncode or not list(made.glob("*.jar")):
        errors = re.findall(r"\[ERROR\] (.+)", done.stdout) or (done.stderr or done.stdout).splitlines() or ["no jars"]
        raise Unavailable(f"{jars.name}: Maven failed: {errors[0][:300]}")


def _run(command: list[str], tool: str, work: Path, what: str) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(command, cwd=work, capture_output=True, text=True, timeout=_SECONDS)
    except subprocess.TimeoutExpired:
        raise Unavailable(f"{what}: {tool} took more than {_SECONDS} s") from None


def _pom(jars: Jars) -> str:
    left_out = "".join(_tags("exclusion", [*group.split(":"), "*"][:2]) for group in jars.without)
    dependencies = (
        _tags("dependency", coordinate.split(":"), f"<exclusions>{left_out}</exclusions>")
        for coordinate in jars.coordinates
    )
    project = (
        "<modelVersion>4.0.0</modelVersion><groupId>none</groupId><artifactId>jars</artifactId><version>1</version>"
    )
    return f"<project>{project}<dependencies>{''.join(dependencies)}</dependencies></project>"


def _tags(kind: str, parts: list[str], more: str = "") -> str:
    names = ("groupId", "artifactId", "version")
    inner = "".join(f"<{name}>{part}</{name}>" for name, part in zip(names, parts, strict=False))
    return f"<{kind}>{inner}{more}</{kind}>"


def _version_of(artifact: str) -> str:
    """The version of a jar inside PySpark."""
    spec = find_spec("pyspark")
    folders = (spec.submodule_search_locations if spec else None) or []
    for folder in folders:
        for jar in (Path(folder) / "jars").glob(f"{artifact}-*.jar"):
            return jar.stem.removeprefix(f"{artifact}-")
    raise Unavailable(f"PySpark with {artifact} is not installed")


def _list(names: dict[str, str]) -> str:
    return ", ".join(names)


def main(arguments: list[str]) -> int:
    """Fetch the named sets and print their jars; 1 when one cannot be had, 2 for a name that is none."""
    with_pyspark = {"iceberg-judge": fetch_iceberg_judge, "delta-peer": fetch_delta_peer}
    names = [*SETS, *with_pyspark]
    if not arguments or any(name not in names for name in arguments):
        print(f"usage: fetch_jars.py {' | '.join(names)}", file=sys.stderr)
        return 2
    try:
        for name in arguments:
            if name in with_pyspark:
                home, jars = with_pyspark[name]()
                print(home, *jars, sep="\n")
            else:
                print(*fetch(name), sep="\n")
    except Unavailable as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
