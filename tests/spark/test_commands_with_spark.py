"""Commands that start Spark: their output is the answer, errors are one line, and Ctrl-C leaves nothing behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from uuid import uuid4

import pytest

from tests.fixtures.processes import PATIENCE, PENSTOCK, wait_until
from tests.fixtures.variants import variants

SEVERAL = """
import json, sys
import penstock
from click.testing import CliRunner
from penstock.cli.main import main
told = [CliRunner().invoke(main, ["sql", query, "--json"]) for query in sys.argv[1:]]
try:
    penstock.session().range(1).select("nope")
except Exception:
    pass
print(json.dumps([(each.exit_code, each.stdout, each.stderr) for each in told]))
"""


@pytest.fixture
def place(tmp_path: Path) -> dict[str, str]:
    """An environment whose temporary files are in a folder of their own."""
    return {**os.environ, "TMPDIR": str(tmp_path), "PENSTOCK_MARK": uuid4().hex}


def test_stdout_is_the_answer_and_stderr_one_line_of_what_was_wrong(place: dict[str, str], tmp_path: Path) -> None:
    queries = [
        "SELECT 1 AS a",
        "SELECT nope FROM range(3)",
        "SELECT * FROM web.nope",
        "SELECT raise_error('a row is wrong')",
    ]
    log = tmp_path / "spark.log"
    place["PENSTOCK_SPARK_LOG"] = str(log)
    given = [sys.executable, "-c", SEVERAL, *queries]
    done = subprocess.run(given, env=place, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE, check=True)
    assert done.stderr == ""  # neither Java's nor Spark's words
    right, column, table, row = json.loads(done.stdout)
    assert right == [0, '[\n  {\n    "a": 1\n  }\n]\n', ""]
    assert column[:2] == [2, ""]
    assert column[2].startswith("Error: A column, variable, or function parameter with name `nope` cannot be resolved")
    assert column[2].endswith("(line 1 pos 7)\n")
    assert table[:2] == [2, ""]
    assert table[2].startswith(f"Error: no table 'web.nope': there is no warehouse {tmp_path}/warehouse; ")
    assert row == [2, "", f"Error: a row is wrong; Spark's log: {log}\n"]
    assert column[2].count("\n") == 1
    assert "ERROR Executor: Exception in task" in log.read_text()


def test_statements_that_cannot_be_read_do_not_wait_for_spark(place: dict[str, str], tmp_path: Path) -> None:
    given = [*PENSTOCK, "sql", "SELECT 'a"]
    place["JAVA_HOME"] = str(tmp_path / "none")  # it would not start
    done = subprocess.run(given, env=place, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("Error: cannot read the statements: ")


def test_a_missing_java_is_one_line(place: dict[str, str], tmp_path: Path) -> None:
    place["JAVA_HOME"] = str(tmp_path / "none")
    given = [*PENSTOCK, "sql", "SELECT 1"]
    done = subprocess.run(given, env=place, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(
        f"Error: Spark did not start: JAVA_HOME is {place['JAVA_HOME']}, and no Java runs there"
    )
    assert "; see " in done.stderr
    assert done.stderr.endswith("or set JAVA_HOME\n")
    assert done.stderr.count("\n") == 1


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="finds processes by /proc")
@pytest.mark.parametrize(
    "sign", variants(["java", "query"], every_run=1), ids=["while Spark starts", "while a query runs"]
)
def test_after_ctrl_c_nothing_is_left(place: dict[str, str], tmp_path: Path, sign: str) -> None:
    place["SPARK_SUBMIT_OPTS"] = f"{os.environ['SPARK_SUBMIT_OPTS']} -Djava.io.tmpdir={tmp_path}"
    starts = "java_method('java.io.File', 'createTempFile', 'query-', '.runs')"
    rows = f"SELECT if(id = 0, {starts}, sha2(string(id), 256)) AS text FROM range(40000000000)"
    given = [*PENSTOCK, "sql", f"SELECT max(text) FROM ({rows})"]
    said = (tmp_path / "said").open("w")
    run = subprocess.Popen(given, env=place, cwd=tmp_path, stderr=said)
    try:
        wait_until(
            lambda: (
                run.poll() is not None
                or sign in _programs(place["PENSTOCK_MARK"])
                or any(tmp_path.glob(f"{sign}-*.runs"))
            )
        )
        run.send_signal(signal.SIGINT)
        assert run.wait(PATIENCE) == 130
        assert (tmp_path / "said").read_text() == "stopped\n"
        wait_until(lambda: not _programs(place["PENSTOCK_MARK"]))
    finally:
        said.close()
        run.kill()
        run.wait()
    assert not list(tmp_path.glob("penstock-spark-*.log"))


def _programs(mark: str) -> set[str]:
    """The programs that have the mark in their environment."""
    found = set()
    for process in Path("/proc").iterdir():
        try:
            if process.name.isdigit() and mark.encode() in (process / "environ").read_bytes():
                found.add((process / "comm").read_text().strip())
        except OSError:  # it has ended, or is somebody else's
            continue
    return found
