"""The import check finds every kind of violation in small made-up trees, and none in the real one."""

from collections import Counter
from pathlib import Path

import pytest

from tools.check_imports import BEHIND_SOURCE, LAYERS, check_tree, main

SOURCES = Path(__file__).parents[3] / "src" / "penstock"


def problems(tmp_path: Path, files: dict[str, str]) -> list[str]:
    root = tmp_path / "penstock"
    for name, source in {"__init__.py": "", **files}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source, encoding="utf-8")
    return [problem.removeprefix(f"{root}/") for problem in check_tree(root)]


def test_the_real_tree_is_clean():
    assert check_tree(SOURCES) == []


def test_every_package_may_import_what_lies_below_and_itself(tmp_path):
    files = {
        f"{layer}/one.py": "\n".join(
            f"import penstock.{below}.x" for below in LAYERS[: place + 1] if below not in BEHIND_SOURCE.get(layer, ())
        )
        for place, layer in enumerate(LAYERS)
        if layer != "errors"
    }
    assert problems(tmp_path, files) == []


@pytest.mark.parametrize("place", range(len(LAYERS) - 1))
def test_no_package_may_import_what_lies_above(tmp_path, place):
    layer, above = LAYERS[place], LAYERS[place + 1]
    name = "errors.py" if layer == "errors" else f"{layer}/one.py"
    found = problems(tmp_path, {name: f"import os\nfrom penstock.{above} import x\n"})
    allowed = ", ".join(LAYERS[: place + 1])
    assert found == [f"{name}:2: {layer} imports penstock.{above}.x; allowed: {allowed}"]


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("report/one.py", "from penstock.tables.iceberg.iceberg_table import IcebergTable"),
        ("report/one.py", "def f():\n    from penstock.tables.hive.hive_table import hive"),
        ("report/one.py", "from penstock.lake import managed_table"),
        ("cli/one.py", "from penstock.tables.hive.hive_table import HiveTable"),
        ("cli/one.py", "import penstock.tables.memory"),
        ("spark/stream/one.py", "from penstock.tables.iceberg.feed import iceberg_feed"),
        ("spark/scan/planner.py", "from penstock.tables.hive import hive_files"),
    ],
)
def test_what_serves_every_kind_of_table_knows_none(tmp_path, name, source):
    (found,) = problems(tmp_path, {name: source})
    assert found.endswith("; allowed: what tables.source.Source provides")


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("report/one.py", "from penstock.tables.source import Source"),
        ("cli/one.py", "from penstock.tables.hive.hive_table import hive"),
        ("cli/one.py", "from penstock.lake.lake import connect"),
        ("spark/scan/hive_scan.py", "from penstock.tables.hive.hive_table import HiveTable"),
    ],
)
def test_tables_may_be_opened_and_read_by_spark_where_their_kind_is_known(tmp_path, name, source):
    assert problems(tmp_path, {name: source}) == []


@pytest.mark.parametrize(
    "source",
    [
        "import penstock.tables",
        "import penstock.tables.hive as hive",
        "import os, penstock.tables",
        "from penstock import tables",
        "from penstock.tables.hive import x",
        "from penstock.tables import *",
        "from .. import tables",
        "from ..tables import x",
        "from ..tables.hive import x",
        "def f():\n    import penstock.tables",
        "class C:\n    async def f(self):\n        from ..tables import x",
        "try:\n    import penstock.tables\nexcept ImportError:\n    pass",
        "if TYPE_CHECKING:\n    import penstock.tables",
        "import importlib\nimportlib.import_module('penstock.tables')",
        "__import__('penstock.tables')",
    ],
)
def test_an_upward_import_is_found_however_it_is_written(tmp_path, source):
    (found,) = problems(tmp_path, {"prune/one.py": source})
    assert "prune imports penstock.tables" in found
    assert found.endswith("; allowed: errors, deprecation, progress, quantities, expr, prune")


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("prune/__init__.py", "from . import bounds"),
        ("prune/__init__.py", "from .bounds import x"),
        ("prune/one.py", "from . import bounds"),
        ("prune/deep/one.py", "from ..bounds import x"),
        ("prune/deep/__init__.py", "from ...expr import x"),
    ],
)
def test_a_relative_import_is_resolved_from_its_own_package(tmp_path, name, source):
    assert problems(tmp_path, {name: source}) == []


def test_a_relative_import_that_leaves_the_package_is_found(tmp_path):
    (found,) = problems(tmp_path, {"prune/one.py": "from ... import x"})
    assert found.startswith("prune/one.py:1: prune has a relative import that leaves penstock")


@pytest.mark.parametrize("source", ["import penstock", "from penstock import connect", "from .. import *"])
def test_the_public_surface_is_no_way_around_the_layers(tmp_path, source):
    (found,) = problems(tmp_path, {"prune/one.py": source})
    assert "prune imports penstock" in found


def test_everybody_may_know_the_version(tmp_path):
    assert problems(tmp_path, {"prune/one.py": "from penstock import __version__"}) == []


@pytest.mark.parametrize("layer", ["expr", "prune", "storage", "maps", "stream", "tables", "lake"])
@pytest.mark.parametrize("source", ["import pyspark.sql", "def f():\n    from pyspark import sql"])
def test_pyspark_below_spark_is_found(tmp_path, layer, source):
    (found,) = problems(tmp_path, {f"{layer}/one.py": source})
    assert found.endswith(f"{layer} imports pyspark.sql; allowed only in: spark, report, cli")


@pytest.mark.parametrize("layer", ["expr", "prune"])
@pytest.mark.parametrize("library", ["click", "rich"])
def test_the_core_prints_nothing(tmp_path, layer, library):
    (found,) = problems(tmp_path, {f"{layer}/one.py": f"import {library}"})
    assert f"{layer} imports {library}; allowed only in: " in found


@pytest.mark.parametrize("layer", ["spark", "report"])
def test_spark_and_report_may_import_pyspark_anywhere(tmp_path, layer):
    assert problems(tmp_path, {f"{layer}/one.py": "import pyspark"}) == []


@pytest.mark.parametrize("name", ["__init__.py", "progress.py", "cli/__init__.py", "cli/one.py"])
@pytest.mark.parametrize(
    "source",
    [
        "import pyspark",
        "import rich.table",
        "from pyarrow import dataset",
        "import pyarrow.dataset as ds",
        "from pyiceberg.catalog import load_catalog",
        "try:\n    import duckdb\nexcept ImportError:\n    pass",
        "class C:\n    import duckdb",
        "if TYPE_CHECKING:\n    pass\nelse:\n    import duckdb",
    ],
)
def test_a_heavy_import_at_startup_is_found(tmp_path, name, source):
    (found,) = problems(tmp_path, {name: source})
    assert found.endswith(" when it starts; allowed: inside a function")


@pytest.mark.parametrize("name", ["__init__.py", "cli/one.py"])
@pytest.mark.parametrize(
    "source",
    [
        "def f():\n    import pyspark, rich, duckdb",
        "if TYPE_CHECKING:\n    import pyspark",
        "import typing\nif typing.TYPE_CHECKING:\n    import pyiceberg.table",
        "import pyarrow",
        "import richer",
    ],
)
def test_an_import_that_waits_or_is_light_passes(tmp_path, name, source):
    assert problems(tmp_path, {name: source}) == []


def test_a_package_without_a_layer_is_found(tmp_path):
    assert problems(tmp_path, {"utils/one.py": ""}) == [
        "utils/one.py:1: utils is in no layer; give it a place in LAYERS of tools/check_imports.py"
    ]


def test_a_file_that_cannot_be_parsed_is_found(tmp_path):
    (found,) = problems(tmp_path, {"prune/one.py": "x = 1\ndef"})
    assert found.startswith("prune/one.py:2: cannot be parsed: ")


def test_all_problems_are_listed_in_the_order_of_the_lines(tmp_path):
    source = "def f():\n    import penstock.cli\nimport penstock.spark\nimport penstock.tables\n"
    found = problems(tmp_path, {"prune/one.py": source})
    assert [line.split(":")[1] for line in found] == ["2", "3", "4"]


def test_the_command_fails_on_a_violation_and_prints_it(tmp_path, capsys):
    problems(tmp_path, {"prune/one.py": "import penstock.cli"})
    assert main([str(tmp_path / "penstock")]) == 1
    assert (
        "one.py:1: prune imports penstock.cli; allowed: errors, deprecation, progress, quantities, expr, prune"
        in capsys.readouterr().out
    )


def test_the_command_is_silent_on_a_clean_tree(tmp_path, capsys):
    problems(tmp_path, {"prune/one.py": "import penstock.errors"})
    assert main([str(tmp_path / "penstock")]) == 0
    assert capsys.readouterr() == ("", "")


def test_the_command_refuses_a_folder_that_is_no_package(tmp_path, capsys):
    assert main([str(tmp_path)]) == 2
    assert "not a package" in capsys.readouterr().err


def test_only_the_bridge_reaches_up_and_only_inside_a_function(tmp_path):
    late = "def f():\n    from penstock.spark.scan.hive_scan import dataframe\n"
    assert problems(tmp_path / "a", {"tables/bridge.py": late}) == []
    assert len(problems(tmp_path / "b", {"tables/other.py": late})) == 1
    assert (
        len(problems(tmp_path / "c", {"tables/bridge.py": "from penstock.spark.scan.hive_scan import dataframe\n"}))
        == 1
    )


def test_the_name_of_a_module_tells_it_from_all_others():
    names = Counter(path.name for path in SOURCES.rglob("*.py") if path.name != "__init__.py")
    assert [name for name, number in names.items() if number > 1] == []
