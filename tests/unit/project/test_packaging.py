"""What an installed Penstock says of itself. The wheel itself is built and tried out by `make dist`."""

from __future__ import annotations

import re
import tomllib
import zipfile
from importlib import metadata, resources
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

import penstock
from tools import smoke_test

PROJECT = Path(__file__).parents[3] / "pyproject.toml"
PINS = PROJECT.parent / "requirements" / "constraints.txt"


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


def test_every_requirement_is_pinned_to_a_version_that_it_allows(project: dict[str, Any]) -> None:
    extras = project["project"]["optional-dependencies"]
    wanted = map(Requirement, [*project["project"]["dependencies"], *extras["dev"], *extras["docs"], *extras["spark"]])
    lines = [line for line in PINS.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    pins = {pin.name: str(pin.specifier).removeprefix("==") for pin in map(Requirement, lines)}
    assert [str(r) for r in wanted if r.name not in pins or pins[r.name] not in r.specifier] == []  # if not: make lock


def test_pins_name_versions_and_no_place_to_download_from() -> None:
    text = PINS.read_text(encoding="utf-8")
    assert "://" not in text
    assert "--" not in text


def test_pre_commit_runs_the_linters_of_make_lint() -> None:
    recipe = (PROJECT.parent / "Makefile").read_text(encoding="utf-8").split("\nlint:")[1].split("\n\n")[0]
    hooks = (PROJECT.parent / ".pre-commit-config.yaml").read_text(encoding="utf-8")
    linters = [line.removeprefix("\t@$(RUN) ") for line in recipe.splitlines()[1:]]
    assert re.findall(r"entry: \.venv/bin/python (.+)", hooks) == linters


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
