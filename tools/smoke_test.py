"""Try the wheel out in an empty virtual environment: what a user gets, with nothing of the checkout in reach.

First the base alone: planning, reading and writing need no Spark. Then, where there is Java, the extra `spark` and one
small query. Everything that is not code must be in the wheel as it is in the sources: types, pages, Java.

    python tools/smoke_test.py dist         the wheel in a folder
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import venv
import zipfile
from pathlib import Path

SOURCES = Path(__file__).resolve().parents[1] / "src"


def main(arguments: list[str]) -> int:
    """Install and try the wheel of a folder; or, inside of the environment, one of the two parts."""
    if arguments in (["inside"], ["inside-spark"]):
        try_base() if arguments == ["inside"] else try_spark()
        return 0
    wheels = sorted(Path(arguments[0]).glob("penstock-*.whl")) if len(arguments) == 1 else []
    if len(wheels) != 1:
        print("usage: smoke_test.py FOLDER, which has one wheel", file=sys.stderr)
        return 2
    wheel = wheels[0].resolve()
    check_files(wheel)
    with tempfile.TemporaryDirectory(prefix="penstock-smoke-") as folder:
        try_wheel(wheel, Path(folder))
    return 0


def check_files(wheel: Path) -> None:
    """Every file of the package is in the wheel."""
    with zipfile.ZipFile(wheel) as archive:
        packed = set(archive.namelist())
    wanted = {
        path.relative_to(SOURCES).as_posix()
        for path in (SOURCES / "penstock").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    missing = sorted(wanted - packed)
    if missing:
        raise SystemExit(f"not in {wheel.name}: {', '.join(missing)}")
    print(f"{wheel.name}: all {len(wanted)} files of the package, {wheel.stat().st_size:,} bytes")


def try_wheel(wheel: Path, home: Path) -> None:
    """Both parts in an environment of their own, far from the checkout."""
    venv.create(home / "venv", with_pip=True)
    python, empty = home / "venv" / "bin" / "python", home / "empty"
    empty.mkdir()
    java = os.path.join(os.environ["JAVA_HOME"], "bin", "java") if os.environ.get("JAVA_HOME") else "java"
    parts = [("", "inside"), ("[spark]", "inside-spark")]
    for extra, part in parts if shutil.which(java) else parts[:1]:
        run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", f"{wheel}{extra}"], empty)
        print(run([python, "-m", "pip", "check"], empty), end="")
        print(run([python, "-I", Path(__file__).resolve(), part], empty), end="", flush=True)


def run(command: list[str | Path], folder: Path) -> str:
    """What a command prints; an error ends everything."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PYSPARK"))}
    environment["PENSTOCK_CACHE_DIR"] = str(folder / "cache")
    done = subprocess.run(command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise SystemExit(f"{done.stdout}exit code {done.returncode}: {' '.join(map(str, command))}")
    return done.stdout


def try_base() -> None:
    """Import, the command, a Hive layout, a managed table, and the doctor where there is no PySpark."""
    import pyarrow as pa
    import pyarrow.dataset

    import penstock

    here = Path.cwd()
    command = Path(sys.executable).with_name("penstock")
    assert Path(penstock.__file__).is_relative_to(sys.prefix), penstock.__file__
    assert run([command, "--version"], here) == f"penstock, version {penstock.__version__}\n"

    rows = pa.table({"app": ["shop", "shop", "blog"], "n": [1, 2, 3]})
    pyarrow.dataset.write_dataset(rows, "log", format="parquet", partitioning=["app"], partitioning_flavor="hive")
    log = penstock.hive("log", "app string")
    assert log.plan("app = 'blog'").report.files.kept == 1
    assert log.arrow("n > 1 AND app = 'shop'").to_pylist() == [{"n": 2, "app": "shop"}]

    table = penstock.connect("lake").create_table("web.t", rows.schema, ["app"], coalesce=["app"])
    table.append(rows)
    assert table.arrow("app = 'blog'").to_pylist() == [{"app": "blog", "n": 3}]

    told = json.loads(run([command, "explain", "web.t", "--where", "n = 3", "--warehouse", "lake", "--json"], here))
    assert told["files"]["total"] == 1, told
    doctor = subprocess.run([command, "doctor", "web.t", "--warehouse", "lake", "--json"], stdout=subprocess.PIPE)
    problems = {check["check"] for check in json.loads(doctor.stdout)["checks"] if not check["ok"]}
    assert "pyspark" in problems, problems
    assert problems <= {"pyspark", "pandas", "java"}, problems
    print("the base works")


def try_spark() -> None:
    """One query over the table that the first part has written, and the doctor's own job."""
    import penstock

    here = Path.cwd()
    told = json.loads(run([Path(sys.executable).with_name("penstock"), "doctor", "--spark", "--json"], here))
    assert told["ok"], told
    lake = penstock.connect("lake")
    spark = penstock.session(master="local[1]")
    found = lake.sql("SELECT app, sum(n) AS n FROM web.t GROUP BY app ORDER BY app", spark).collect()
    spark.stop()
    assert [tuple(row) for row in found] == [("blog", 3), ("shop", 3)], found
    print("Spark works")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
