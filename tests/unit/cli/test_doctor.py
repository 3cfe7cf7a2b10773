"""`penstock doctor` recognises what is wrong, says what helps, and never tells a secret."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import venv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner, Result

import penstock
from penstock.cli import machine_checks as checks
from penstock.cli import place_checks as access
from penstock.cli.main import main
from tests.fixtures.hive_writer import write_file
from tests.s3.server import KEY_ID, SECRET, S3Server, running

OTHER = "another-Secret-4711"
TOKEN = "a-Session-Token-4711"


@pytest.fixture(autouse=True)
def own_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """No setting of the machine that runs the tests."""
    for name in ("JAVA_HOME", "PYSPARK_PYTHON", "SPARK_HOME", "SPARK_CONF_DIR"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the checks of a place."""
    monkeypatch.setattr("penstock.cli.machine_checks.check_machine", lambda: iter(()))


@pytest.fixture(scope="module")
def s3(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> S3Server:
    return running(request.config, tmp_path_factory.mktemp("s3"))


@pytest.fixture
def closed_port() -> Iterator[int]:
    with socket.socket() as bound:  # bound and not listening: nobody else gets it, and nobody answers
        bound.bind(("127.0.0.1", 0))
        yield bound.getsockname()[1]


def run(*words: str) -> Result:
    return CliRunner().invoke(main, ["doctor", *words])


def told(*words: str, code: int = 0) -> dict[str, dict[str, Any]]:
    """The checks by their names; a name that comes twice stands for its last check."""
    done = run(*words, "--json")
    assert done.exit_code == code, done.output
    found = json.loads(done.stdout)
    assert found["ok"] == (code == 0) == all(check["ok"] for check in found["checks"])
    for check in found["checks"]:
        assert (check["fix"] is None) == check["ok"]
        assert len(check["found"].splitlines()) == 1
    check_no_secret(done.output)
    return {check["check"]: check for check in found["checks"]}


def check_no_secret(text: str) -> None:
    for secret in (SECRET, KEY_ID, OTHER, TOKEN):
        assert secret not in text


def script(path: Path, *lines: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(["#!/bin/sh", *lines, ""]))
    path.chmod(0o755)
    return path


def configure(monkeypatch: pytest.MonkeyPatch, name: str, properties: dict[str, str]) -> None:
    """A catalog of PyIceberg's configuration, by its variables."""
    for key, value in properties.items():
        words = key.upper().replace(".", "__").replace("-", "_")
        monkeypatch.setenv(f"PYICEBERG_CATALOG__{name.upper()}__{words}", value)


# Java


def test_no_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    found = checks.check_java()
    assert found.message == "no Java is on the path, and JAVA_HOME is not set"
    assert found.fix is not None
    assert "apt install openjdk-17-jre-headless" in found.fix


def test_a_java_home_without_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    found = checks.check_java()
    assert found.message == f"JAVA_HOME is {tmp_path}, and no Java runs there"
    assert not found.ok


def fake_java(home: Path, version: str, modules: str) -> Path:
    answer = f"if [ $1 = -version ]; then echo 'openjdk version \"{version}\" 2024-07-16' >&2; else echo {modules}; fi"
    return script(home / "bin" / "java", answer)


def test_a_java_without_a_module_that_spark_needs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java = fake_java(tmp_path, "17.0.15", "java.base")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    found = checks.check_java()
    assert found.message == f"{java} is Java 17 without the module jdk.incubator.vector, which Spark needs"
    assert found.fix is not None
    assert found.fix.startswith("use a Java that is not cut down; apt install openjdk-17")


@pytest.mark.parametrize(("version", "ok"), [("1.8.0_402", False), ("11.0.24", False), ("17.0.15", True), ("21", True)])
def test_the_version_of_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, ok: bool) -> None:
    java = fake_java(tmp_path, version, "java.base jdk.incubator.vector")
    monkeypatch.setenv("PATH", str(java.parent))
    found = checks.check_java()
    assert found.ok == ok
    if version == "11.0.24":
        assert found.message == f"{java} is Java 11; Spark 4 needs 17 or newer"
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert checks.check_java() == found


# The Python of the workers


def test_workers_have_the_drivers_python_when_nothing_is_said() -> None:
    (found,) = checks.check_workers()
    assert found.ok
    assert sys.executable in found.message


def test_a_worker_with_another_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = script(tmp_path / "python3.9", "echo 3.9")
    monkeypatch.setenv("PYSPARK_PYTHON", str(program))
    (found,) = checks.check_workers()
    mine = ".".join(map(str, sys.version_info[:2]))
    assert found.message == f"PYSPARK_PYTHON is {program}, Python 3.9; this is Python {mine}"
    assert found.fix is not None
    assert sys.executable in found.fix


def test_a_worker_that_lacks_penstock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    venv.create(tmp_path / "empty", with_pip=False, symlinks=True)
    program = tmp_path / "empty" / "bin" / "python"
    monkeypatch.setenv("PYSPARK_PYTHON", str(program))
    monkeypatch.delenv("PYTHONPATH", raising=False)
    monkeypatch.chdir(tmp_path)
    (found,) = checks.check_workers()
    assert found.message == f"{program} (PYSPARK_PYTHON) cannot import penstock and pyarrow"
    assert not found.ok


def test_a_worker_that_cannot_be_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for program in (
        tmp_path / "missing",
        script(tmp_path / "fails", "exit 3"),
        script(tmp_path / "talks", "echo hello"),
    ):
        monkeypatch.setenv("PYSPARK_PYTHON", str(program))
        (found,) = checks.check_workers()
        assert found.message == f"PYSPARK_PYTHON is {program}, which cannot be run here"


def test_the_python_in_sparks_own_settings_is_checked_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = script(tmp_path / "python3.9", "echo 3.9")
    (tmp_path / "spark-defaults.conf").write_text(f"# a comment\nspark.master local\nspark.pyspark.python  {program}\n")
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    first, second = checks.check_workers()
    assert first.ok
    assert second.message.startswith(f"spark.pyspark.python is {program}, Python 3.9")


# Libraries and the cache folder


def test_every_library_is_told_with_its_version() -> None:
    for name in checks.LIBRARIES:
        found = checks.check_library(name)
        assert found.ok, found
        assert found.message.startswith(f"{name} ")
    assert checks.check_library("penstock").message == f"penstock {penstock.__version__}"


@pytest.mark.parametrize("version", ["3.5.8", "4.4.0"])
def test_a_pyspark_of_another_version(monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    monkeypatch.setattr(checks, "_version", lambda name: version)
    found = checks.check_library("pyspark", extra="spark")
    assert found.message.startswith(f"pyspark {version} is installed; ")
    assert found.fix is not None
    assert found.fix.startswith("pip install 'pyspark")


def test_no_pyspark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "_version", lambda name: None)
    found = checks.check_library("pyspark", extra="spark")
    assert found.message.startswith("pyspark is not installed")
    assert found.fix == "pip install 'penstock[spark]'"


def test_a_cache_folder_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("PENSTOCK_CACHE_DIR", str(tmp_path / "file" / "cache"))
    found = checks.check_cache()
    assert found.message == f"{tmp_path / 'file' / 'cache'} cannot be written: Not a directory"
    assert found.fix is not None
    assert "PENSTOCK_CACHE_DIR" in found.fix


def test_a_cache_folder_that_can_be_written_is_left_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_CACHE_DIR", str(tmp_path))
    assert checks.check_cache().ok
    assert list(tmp_path.iterdir()) == []


# Spark


def test_spark_is_not_started_where_something_it_needs_is_missing() -> None:
    found = checks.check_spark(
        [checks.Check("java", "no Java", "install it"), checks.Check("pyspark", "pyspark 4.3.0")]
    )
    assert (found.message, found.fix) == ("not started, because of java", "mend that first")


# Places


@pytest.mark.usefixtures("quick")
def test_a_folder(tmp_path: Path) -> None:
    (tmp_path / "k=1").mkdir()
    assert told(str(tmp_path))["storage"]["found"] == f"{tmp_path} can be listed (1 found)"
    missing = told(str(tmp_path / "nowhere"), code=1)["storage"]
    assert (missing["found"], missing["fix"]) == (f"{tmp_path / 'nowhere'} does not exist", "check the path")


@pytest.mark.usefixtures("quick")
def test_bad_input_is_one_line_and_exit_code_2(tmp_path: Path) -> None:
    for words in (["gs://lake/t"], ["s3://"], ["s3://lake/t", "--storage", "nosuch"], ["--catalog", "nosuch"]):
        done = run(*words)
        assert done.exit_code == 2, done.output
        assert done.stdout == ""
        assert len(done.stderr.splitlines()) == 1


@pytest.mark.usefixtures("quick")
def test_an_endpoint_that_nobody_listens_at(closed_port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    endpoint = f"http://127.0.0.1:{closed_port}"
    configure(
        monkeypatch, "lake", {"s3.endpoint": endpoint, "s3.access-key-id": KEY_ID, "s3.secret-access-key": SECRET}
    )
    found = told("s3://lake/t", "--storage", "lake", code=1)["storage"]
    assert found["found"] == f"{endpoint} cannot be reached: Connection refused"
    assert found["fix"] == "check s3.endpoint and the network"


@pytest.mark.usefixtures("quick")
def test_a_bucket_that_can_be_listed(s3: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    root = s3.new_bucket() / "t"
    write_file(root / "k=1" / "a.parquet")
    configure(monkeypatch, "lake", s3.properties)
    assert told(s3.url(root), "--storage", "lake")["storage"]["found"] == f"{s3.url(root)} can be listed (1 found)"


@pytest.mark.usefixtures("quick")
def test_a_wrong_bucket(s3: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    configure(monkeypatch, "lake", s3.properties)
    found = told("s3://no-such-bucket/t", "--storage", "lake", code=1)["storage"]
    assert "s3://no-such-bucket/t" in found["found"]
    assert "bucket" in found["fix"]


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("wrong", [{"s3.secret-access-key": OTHER}, {"s3.access-key-id": OTHER}])
def test_wrong_credentials(s3: S3Server, monkeypatch: pytest.MonkeyPatch, wrong: dict[str, str]) -> None:
    root = s3.new_bucket() / "t"
    write_file(root / "k=1" / "a.parquet")
    configure(monkeypatch, "lake", {**s3.properties, **wrong})
    found = told(s3.url(root), "--storage", "lake", code=1)["storage"]
    assert found["found"].startswith(f"cannot read {s3.url(root)}: ")
    assert "credentials" in found["fix"]


@pytest.mark.usefixtures("quick")
def test_a_warehouse_and_a_table_in_it(tmp_path: Path) -> None:
    warehouse = tmp_path / "lake"
    there = told("--warehouse", str(warehouse), code=1)["catalog"]
    assert there["found"] == f"there is no warehouse {warehouse}"
    assert not warehouse.exists()
    penstock.connect(warehouse).create_table("web.t", "n bigint").append(pa.table({"n": [1]}))
    assert told("--warehouse", str(warehouse))["catalog"]["found"] == f"{warehouse} can be read (tables: 1)"
    found = told("web.t", "--warehouse", str(warehouse))
    assert list(found) == ["catalog", "table", "storage"]
    assert "web.t" in told("web.other", "--warehouse", str(warehouse), code=1)["table"]["fix"]


@pytest.mark.usefixtures("quick")
def test_a_catalog_that_cannot_be_reached(closed_port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    configure(monkeypatch, "prod", {"type": "rest", "uri": f"http://127.0.0.1:{closed_port}/api", "token": TOKEN})
    found = told("--catalog", "prod", code=1)["catalog"]
    assert found["found"] == f"http://127.0.0.1:{closed_port} cannot be reached: Connection refused"
    assert "prod" in found["fix"]


@pytest.mark.usefixtures("quick")
def test_a_place_that_does_not_answer_in_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access, "_SECONDS", 0.1)
    monkeypatch.setattr("penstock.storage.entries.os.listdir", lambda path: threading.Event().wait(5))
    assert told(str(tmp_path), code=1)["storage"]["found"].startswith("no answer within")


def test_secrets_and_logins_are_taken_out(monkeypatch: pytest.MonkeyPatch) -> None:
    configure(monkeypatch, "prod", {"credential": f"me:{OTHER}", "s3.secret-access-key": SECRET})
    monkeypatch.setenv("AWS_SESSION_TOKEN", TOKEN)
    said = f"{SECRET} and me:{OTHER} and {OTHER} and {TOKEN} at postgresql://me:pass%40word@host/db"
    shown = access.hide_secrets(checks.Check("catalog", said, said))
    for text in (shown.message, shown.fix):
        assert text == "*** and *** and *** and *** at postgresql://***@host/db"


# The whole command


def test_for_people(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("penstock.cli.machine_checks.check_machine", lambda: iter([checks.Check("java", "Java 17")]))
    done = run(str(tmp_path / "nowhere"))
    assert done.exit_code == 1
    assert done.stdout.splitlines() == [
        "ok       java       Java 17",
        f"problem  storage    {tmp_path / 'nowhere'} does not exist",
        "    fix             check the path",
        "1 problem",
    ]
    assert run(str(tmp_path)).stdout.endswith("all is well\n")


def test_colours_come_on_a_terminal_only_and_not_where_they_are_not_wanted(
    monkeypatch: pytest.MonkeyPatch, quick: None, tmp_path: Path
) -> None:
    words = ["doctor", str(tmp_path)]
    assert "\x1b[" not in CliRunner().invoke(main, words).output
    assert "\x1b[32m" in CliRunner().invoke(main, words, color=True).output
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[" not in CliRunner().invoke(main, words, color=True).output


def test_the_command_finds_all_problems_of_a_machine_at_once(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "file").touch()
    environment = {"PATH": str(tmp_path / "bin"), "PENSTOCK_CACHE_DIR": str(tmp_path / "file" / "cache")}
    environment["PYSPARK_PYTHON"] = str(script(tmp_path / "python3.9", "echo 3.9"))
    command = [str(Path(sys.executable).with_name("penstock")), "doctor", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, env={**environment, "HOME": os.environ["HOME"]})
    assert done.returncode == 1
    found = json.loads(done.stdout)
    assert {check["check"] for check in found["checks"] if not check["ok"]} == {"java", "cache", "workers"}


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("text", [f"catalog:\n  a: [{SECRET}\n  b", "catalog:\n  prod: text\n"])
def test_a_configuration_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    (tmp_path / ".pyiceberg.yaml").write_text(text)
    monkeypatch.setenv("PYICEBERG_HOME", str(tmp_path))
    (tmp_path / "lake").mkdir()
    (tmp_path / "lake" / "catalog.db").touch()
    done = run("--catalog", "prod")
    assert done.exit_code == 2
    assert done.stderr.startswith("Error: PyIceberg's configuration cannot be read: ")
    assert len(done.stderr.splitlines()) == 1
    check_no_secret(done.output)
    if "prod" not in text:
        found = told("--warehouse", str(tmp_path / "lake"), code=1)["catalog"]
        assert found["fix"] == "correct .pyiceberg.yaml"


@pytest.mark.usefixtures("quick")
def test_a_library_that_cannot_be_imported_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "penstock.storage.schemes", None)
    assert told(str(tmp_path), code=1)["place"]["fix"] == "mend the libraries first"
    monkeypatch.setitem(sys.modules, "penstock.tables.iceberg.manifest.manifest_store", None)
    assert checks.check_cache().fix == "mend the libraries first"
