"""Fetching jars: once, whole or not at all, and one line of reason when they cannot be had."""

from __future__ import annotations

import os
import re
from importlib.util import find_spec
from pathlib import Path

import pytest

from tools import fetch_jars
from tools.fetch_jars import Unavailable, fetch, main

pytestmark = pytest.mark.skipif(find_spec("pyspark") is None, reason="pyspark is not installed")
WORKS = """
for word in "$@"; do case $word in -DoutputDirectory=*) out=${word#*=};; esac; done
mkdir -p "$out" && touch "$out/some-1.jar" && cp pom.xml "$out/some.pom" && echo called >> "$CALLS"
"""
FAILS = "echo '[ERROR] Could not transfer artifact x:y:1: Unknown host'; echo '[ERROR] To see the full stack'; exit 1"


@pytest.fixture
def maven(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A place for a Maven of the test's own, and an empty cache."""
    monkeypatch.setattr(fetch_jars, "CACHE", tmp_path / "cache")
    monkeypatch.setenv("CALLS", str(tmp_path / "calls"))
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    (tmp_path / "bin").mkdir()
    return tmp_path / "bin" / "mvn"


def install(maven: Path, script: str) -> None:
    maven.write_text(f"#!/bin/sh\n{script}")
    maven.chmod(0o755)


def test_jars_are_fetched_once(maven: Path, tmp_path: Path) -> None:
    install(maven, WORKS)
    assert [path.name for path in fetch("hadoop-aws")] == ["some-1.jar"]
    assert fetch("hadoop-aws") == fetch("hadoop-aws")
    assert (tmp_path / "calls").read_text() == "called\n"
    (pom,) = (tmp_path / "cache").glob("*/some.pom")
    text = pom.read_text()
    assert "<artifactId>hadoop-aws</artifactId><version>3." in text
    assert "<exclusion><groupId>software.amazon.awssdk</groupId><artifactId>bundle</artifactId></exclusion>" in text


def test_failure_of_maven_is_its_first_line_and_leaves_nothing(maven: Path, tmp_path: Path) -> None:
    install(maven, FAILS)
    with pytest.raises(Unavailable, match=r"Unknown host$") as raised:
        fetch("hadoop-aws")
    assert "\n" not in str(raised.value)
    assert list((tmp_path / "cache").iterdir()) == []


def test_maven_that_hangs_is_given_up(maven: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch_jars, "_SECONDS", 0.3)
    install(maven, "exec sleep 5")
    with pytest.raises(Unavailable, match=r"took more than 0\.3 s"):
        fetch("hadoop-aws")


def test_missing_maven_is_said(maven: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(maven.parent))
    with pytest.raises(Unavailable, match="mvn is not installed"):
        fetch("hadoop-aws")


@pytest.mark.parametrize(("spark", "iceberg"), [("4.0.2", "4.0_2.13-1.11.0"), ("4.1.4", "4.1_2.13-1.12.0")])
def test_iceberg_comes_in_the_version_for_spark(monkeypatch: pytest.MonkeyPatch, spark: str, iceberg: str) -> None:
    monkeypatch.setattr(fetch_jars, "_version_of", lambda _: spark)
    assert fetch_jars.iceberg_spark_runtime().name == f"iceberg-spark-runtime-{iceberg}"


def test_delta_comes_for_the_spark_of_judges() -> None:
    assert fetch_jars.delta_spark().name == "delta-spark_4.1_2.13-4.3.1"
    assert fetch_jars._JUDGE.startswith("4.1.")


def test_spark_that_iceberg_has_no_runtime_for_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch_jars, "_version_of", lambda _: "4.3.0")
    with pytest.raises(Unavailable, match=r"no runtime for Spark 4\.3 yet; it has for 4\.0, 4\.1"):
        fetch("iceberg-spark-runtime")


def test_iceberg_comes_for_a_spark_that_is_asked_for() -> None:
    assert fetch_jars.iceberg_spark_runtime("4.1.4").name == "iceberg-spark-runtime-4.1_2.13-1.12.0"


def test_driver_of_sqlite_comes_in_a_pinned_version_without_what_spark_has(maven: Path) -> None:
    install(maven, WORKS)
    (jar,) = fetch("sqlite-jdbc")
    (version,) = re.findall(r"sqlite-jdbc-(\d+\.\d+\.\d+\.\d+)", jar.parent.name)
    text = (jar.parent / "some.pom").read_text()
    assert f"<artifactId>sqlite-jdbc</artifactId><version>{version}</version>" in text
    assert "<exclusion><groupId>org.slf4j</groupId><artifactId>*</artifactId></exclusion>" in text


def pip_that(says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A Python whose pip is a script."""
    python = tmp_path / "python"
    install(python, says)
    monkeypatch.setattr(fetch_jars.sys, "executable", str(python))
    monkeypatch.setattr(fetch_jars, "CACHE", tmp_path / "cache")
    monkeypatch.setenv("CALLS", str(tmp_path / "calls"))


def test_pyspark_is_fetched_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pip_that('mkdir -p "$6/pyspark"; echo "$7" >> "$CALLS"', tmp_path, monkeypatch)
    assert (
        fetch_jars.fetch_pyspark("4.1.4") == fetch_jars.fetch_pyspark("4.1.4") == tmp_path / "cache" / "pyspark-4.1.4"
    )
    assert (tmp_path / "calls").read_text() == "pyspark==4.1.4\n"


def test_failure_of_pip_is_one_line_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pip_that("echo 'ERROR: No matching distribution found for pyspark' >&2; exit 1", tmp_path, monkeypatch)
    with pytest.raises(Unavailable, match=r"^pyspark==4\.1\.4: pip failed: No matching distribution"):
        fetch_jars.fetch_pyspark("4.1.4")
    assert list((tmp_path / "cache").iterdir()) == []


def test_unknown_set_is_answered_with_the_names_of_all(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["nonsense"]) == 2
    assert (
        "hadoop-aws | iceberg-spark-runtime | sqlite-jdbc | hive-metastore | iceberg-judge | delta-peer"
        in capsys.readouterr().err
    )
