"""The command starts light, says its version, and turns bad input into one clear line and exit code 2."""

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

import penstock
from penstock.cli.main import main
from penstock.errors import PenstockError, PredicateError

HEAVY = ("pyarrow", "sqlglot", "pyiceberg", "pyspark", "numpy", "rich")


def run_demo(monkeypatch: pytest.MonkeyPatch, run: object, *options: str) -> Result:
    """`penstock demo` with a stand-in for what does the work."""
    monkeypatch.setattr(main.commands["demo"], "callback", run)
    return CliRunner().invoke(main, ["demo", *options])


def loaded_after(code: str) -> set[str]:
    """Which heavy libraries a fresh interpreter has loaded after running the code."""
    script = f"import sys\n{code}\nprint('loaded:', *[name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines()[-1].split()[1:])


def test_the_probe_sees_a_library_that_is_loaded():
    assert "numpy" in loaded_after("import numpy")


@pytest.mark.parametrize("option", ["--help", "-h", "--version", "demo --help"])
def test_help_loads_nothing_heavy(option):
    code = f"from penstock.cli.main import main; main({option.split()!r}, standalone_mode=False)"
    assert loaded_after(code) == set()


def test_explaining_a_layout_does_not_load_pyiceberg(tmp_path: Path) -> None:
    (tmp_path / "k=1").mkdir()
    pq.write_table(pa.table({"n": [1]}), tmp_path / "k=1" / "1.parquet")
    loaded = loaded_after(
        f"from penstock.cli.main import main; main(['explain', {str(tmp_path)!r}], standalone_mode=False)"
    )
    assert "pyarrow" in loaded
    assert "pyiceberg" not in loaded


def test_importing_penstock_loads_nothing_heavy():
    assert loaded_after("import penstock; dir(penstock)") == set()


def test_the_installed_command_prints_help():
    command = Path(sys.executable).with_name("penstock")
    done = subprocess.run([command, "-h"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("Usage: ")
    assert "demo" in done.stdout


@pytest.mark.parametrize("module", ["penstock", "penstock.cli.main"])
def test_a_module_that_is_run_is_the_command(tmp_path: Path, module: str) -> None:
    command = [sys.executable, "-m", module, "tables", "--warehouse", str(tmp_path / "typo")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr == (
        f"Error: there is no warehouse {tmp_path}/typo; check --warehouse; the first table makes it\n"
    )
    usage = subprocess.run([*command[:3], "demo", "x"], capture_output=True, text=True).stderr
    assert usage.startswith("Usage: penstock demo ")


def test_an_empty_warehouse_has_no_tables(tmp_path: Path) -> None:
    done = CliRunner().invoke(main, ["tables", "--warehouse", str(tmp_path)])
    assert (done.exit_code, done.stdout, done.stderr) == (0, "", f"no tables in {tmp_path}\n")


def test_version_is_the_packages_version():
    result = CliRunner().invoke(main, ["--version"])
    assert result.output == f"penstock, version {penstock.__version__}\n"
    assert result.exit_code == 0


@pytest.mark.parametrize(("options", "json"), [([], False), (["--json"], True)])
def test_demo_passes_on_who_it_prints_for(monkeypatch, options, json):
    calls: list[bool] = []
    result = run_demo(monkeypatch, lambda json, **_: calls.append(json), *options)
    assert result.exit_code == 0
    assert calls == [json]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--rows", "10"], "10 rows are too few"),
        (["--folder", "."], ". is not an empty folder"),
        (["--rows", "x"], "'x'"),
    ],
)
def test_a_demo_that_cannot_be_run_is_refused_at_once(options, said):
    result = CliRunner().invoke(main, ["demo", *options])
    assert result.exit_code == 2
    assert said in result.stderr


def test_a_penstock_error_is_one_line_on_stderr_and_exit_code_2(monkeypatch):
    def run(json: bool, **_: object) -> None:
        raise PenstockError("no such table: web.events", hint="penstock partitions lists them")

    result = run_demo(monkeypatch, run)
    assert result.exit_code == 2
    assert result.stderr == "Error: no such table: web.events; penstock partitions lists them\n"
    assert result.stdout == ""


def test_a_predicate_error_shows_its_place(monkeypatch):
    def run(json: bool, **_: object) -> None:
        raise PredicateError("unexpected ')'", "a = )", 4)

    result = run_demo(monkeypatch, run)
    assert result.exit_code == 2
    assert result.stderr == "Error: unexpected ')'\n  a = )\n      ^\n"


def test_any_other_error_keeps_its_traceback(monkeypatch):
    def run(json: bool, **_: object) -> None:
        raise KeyError("a defect")

    result = run_demo(monkeypatch, run)
    assert isinstance(result.exception, KeyError)


def test_an_unknown_command_is_exit_code_2():
    assert CliRunner().invoke(main, ["dmeo"]).exit_code == 2
