"""Run the Spark tests of tables on every supported PySpark, each in a virtual environment of its own.

    python tools/test_matrix.py                 all versions
    python tools/test_matrix.py 4.0.2 -- -x     one version, with options for pytest

Slow tests are left out unless pytest gets another `-m`: 50 killed streams on four versions are hours.

The environments stay in `.matrix/<version>` and are made again when pyproject.toml is newer than they are.
"""

from __future__ import annotations

import re
import subprocess
import sys
import time
import venv
from dataclasses import dataclass
from pathlib import Path

VERSIONS = ("4.0.2", "4.1.4", "4.2.1", "4.3.0")
ROOT = Path(__file__).resolve().parents[1]
KINDS = ("catalog", "hive", "iceberg", "managed", "hot", "metastore", "shredded", "sql", "stream")


@dataclass(frozen=True)
class Result:
    """What pytest said on one version."""

    version: str
    code: int
    summary: str
    seconds: float


def main(arguments: list[str]) -> int:
    """Run what was asked for and print a table; the exit code is 1 when a version fails."""
    split = arguments.index("--") if "--" in arguments else len(arguments)
    versions, options = arguments[:split] or list(VERSIONS), arguments[split + 1 :]
    results = [run_tests(version, options) for version in versions]
    print(f"\n{'pyspark':<10}{'result':<9}{'seconds':>8}  pytest")
    for result in results:
        print(f"{result.version:<10}{'ok' if not result.code else 'FAILED':<9}{result.seconds:>8.0f}  {result.summary}")
    return int(any(result.code for result in results))


def run_tests(version: str, options: list[str]) -> Result:
    """The tests on one version, their output shown as it comes."""
    python = prepare(version)
    found = [path for kind in KINDS for path in ROOT.glob(f"tests/spark/test_{kind}*.py")]
    tests = sorted(str(path.relative_to(ROOT)) for path in found)
    print(f"== pyspark {version}", flush=True)
    start = time.perf_counter()
    # PySpark 4.0 and 4.1 leave the sockets of `collect` to the garbage collector.
    sockets = ["-W", "ignore:unclosed:ResourceWarning", "-p", "no:unraisableexception"]
    quick = ["-q", "-p", "no:cacheprovider", "-m", "not slow", "-n", "2", "--dist", "loadfile"]
    command = [str(python), "-m", "pytest", *quick, *sockets, *tests, *options]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        summary = ""
        for line in process.stdout:
            print(line, end="", flush=True)
            if re.search(r"\b(passed|failed|error)", line):
                summary = line.strip("= \n")
    return Result(version, process.returncode, summary, time.perf_counter() - start)


def prepare(version: str) -> Path:
    """The Python of the environment for one version, made or mended if need be."""
    home = ROOT / ".matrix" / version
    python, stamp = home / "bin" / "python", home / ".installed"
    if stamp.exists() and stamp.stat().st_mtime > (ROOT / "pyproject.toml").stat().st_mtime:
        return python
    print(f"== setting up .matrix/{version}", flush=True)
    if not python.exists():
        venv.create(home, with_pip=True)
    install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*install, "--editable", f"{ROOT}[dev]", f"pyspark[connect]=={version}"], check=True)
    stamp.touch()
    return python


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
