"""What an installed Penstock says of itself. The wheel itself is built and tried out by `make dist`."""

from __future__ import annotations

import tomllib
import zipfile
from importlib import metadata, resources
from pathlib import Path
from typing import Any

import pytest

import penstock
from tools import smoke_test

PROJECT = Path(__file__).parents[2] / "pyproject.toml"


@pytest.fixture(scope="module")
def project() -> dict[str, Any]:
    return tomllib.loads(PROJECT.read_text())


def test_the_metadata_is_that_of_the_project(project: dict[str, Any]) -> None:
    found = metadata.metadata("penstock")
    assert found["Name"] == "penstock"
    assert found["Version"] == penstock.__version__
    assert found["Requires-Python"] == project["project"]["requires-python"] == ">=3.11"
    assert found["License-Expression"] == "Apache-2.0"
    assert "Typing :: Typed" in found.get_all("Classifier", [])


def test_the_command_is_the_one_of_the_package() -> None:
    (entry,) = [e for e in metadata.entry_points(group="console_scripts") if e.name == "penstock"]
    assert entry.value == "penstock.cli.main:main"
    assert callable(entry.load())


def test_the_package_has_types() -> None:
    assert resources.files("penstock").joinpath("py.typed").is_file()


def test_the_extras(project: dict[str, Any]) -> None:
    extras = project["project"]["optional-dependencies"]
    assert set(extras) - {"dev", "docs"} == {"all", "spark"}
    assert extras["all"] == ["penstock[spark]"]
    assert [name for name in project["project"]["dependencies"] if name.startswith("pyspark")] == []


def test_what_moves_between_releases_has_an_upper_bound(project: dict[str, Any]) -> None:
    wanted = [*project["project"]["dependencies"], *project["project"]["optional-dependencies"]["spark"]]
    for name in ("datafusion", "pyiceberg[", "pyiceberg-core", "pyspark", "sqlglot"):
        (found,) = [text for text in wanted if text.startswith(name)]
        assert ">=" in found
        assert ",<" in found


def test_the_smoke_test_wants_one_wheel(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert smoke_test.main([]) == 2
    assert smoke_test.main([str(tmp_path)]) == 2
    assert "usage" in capsys.readouterr().err


def test_the_smoke_test_notices_a_file_that_is_not_packed(tmp_path: Path) -> None:
    wheel = tmp_path / "penstock-0-py3-none-any.whl"
    package = smoke_test.SOURCES / "penstock"
    with zipfile.ZipFile(wheel, "w") as archive:
        for path in package.rglob("*"):
            if path.is_file() and path.name != "py.typed":
                archive.writestr(path.relative_to(smoke_test.SOURCES).as_posix(), b"")
    with pytest.raises(SystemExit, match=r"not in penstock-0-py3-none-any\.whl: penstock/py\.typed"):
        smoke_test.check_files(wheel)
