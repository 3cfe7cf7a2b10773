"""Tables dropped, purged and renamed; namespaces created, listed and dropped."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import penstock
from penstock.errors import (
    LakeError,
    NamespaceExistsError,
    NamespaceNotEmptyError,
    NamespaceNotFoundError,
    TableExistsError,
    TableNotFoundError,
)


@pytest.fixture
def lake(tmp_path: Path) -> Any:
    lake = penstock.connect(tmp_path / "lake")
    table = lake.create_table("web.events", "app string, n bigint", ["app"], coalesce=["app"])
    table.append(pa.table({"app": ["a", "b"], "n": [1, 2]}))
    table.delete("app = 'a'")
    return lake


def files_below(folder: Path) -> set[str]:
    return {path.name for path in folder.rglob("*") if path.is_file()}


def layout(tmp_path: Path) -> Path:
    place = tmp_path / "layout" / "dt=2026-01-01"
    place.mkdir(parents=True)
    pq.write_table(pa.table({"n": [1]}), place / "a.parquet")
    return place.parent


def test_a_dropped_table_keeps_its_files(lake: Any, tmp_path: Path) -> None:
    before = files_below(tmp_path / "lake" / "web")
    lake.drop_table("web.events")
    assert lake.tables() == []
    assert files_below(tmp_path / "lake" / "web") == before


def test_a_purged_table_leaves_no_file(lake: Any, tmp_path: Path) -> None:
    lake.drop_table("web.events", purge=True)
    assert lake.tables() == []
    assert files_below(tmp_path / "lake" / "web") == set()


def test_purging_keeps_files_that_another_table_adopted(lake: Any, tmp_path: Path) -> None:
    shared = lake.table("web.events").plan().files.paths.to_pylist()
    other = lake.create_table("web.other", "app string, n bigint")
    other.table.add_files(shared)
    lake.drop_table("web.events", purge=True)
    assert lake.table("web.other").arrow().num_rows == 1


def test_purging_keeps_files_outside_of_the_table(lake: Any, tmp_path: Path) -> None:
    outside = tmp_path / "outside.parquet"
    pq.write_table(pa.table({"app": ["x"], "n": pa.array([1], pa.int64())}), outside)
    lake.create_table("web.adopter", "app string, n bigint").table.add_files([str(outside)])
    lake.drop_table("web.adopter", purge=True)
    assert outside.exists()


def test_a_table_whose_files_must_not_be_deleted_is_not_purged(lake: Any) -> None:
    lake.table("web.events").set_properties({"gc.enabled": "false"})
    with pytest.raises(LakeError, match=r"gc.enabled"):
        lake.drop_table("web.events", purge=True)
    assert lake.table("web.events").count() == 1


def test_a_layout_is_dropped_without_its_files(lake: Any, tmp_path: Path) -> None:
    root = layout(tmp_path)
    lake.register("web.layout", penstock.hive(root, "dt date"))
    with pytest.raises(LakeError, match=r"not Penstock's"):
        lake.drop_table("web.layout", purge=True)
    lake.drop_table("web.layout")
    assert lake.tables() == ["web.events"]
    assert files_below(root) == {"a.parquet"}


def test_only_a_declared_layout_can_be_unregistered(lake: Any, tmp_path: Path) -> None:
    lake.register("web.layout", penstock.hive(layout(tmp_path), "dt date"))
    lake.unregister("web.layout")
    with pytest.raises(TableNotFoundError, match=r"no layout is declared as 'web.layout'"):
        lake.unregister("web.layout")
    with pytest.raises(TableNotFoundError, match=r"no layout is declared as 'web.events'"):
        lake.unregister("web.events")


def test_a_table_that_does_not_exist_cannot_be_dropped(lake: Any) -> None:
    with pytest.raises(TableNotFoundError, match=r"no table 'web.nope'"):
        lake.drop_table("web.nope")


def test_an_object_of_a_table_that_was_dropped_or_renamed_says_so(lake: Any) -> None:
    table = lake.table("web.events")
    lake.rename_table("web.events", "web.other")
    uses = (
        table.refresh,
        lambda: table.append(pa.table({"app": ["a"], "n": [1]})),
        lambda: table.delete("n = 1"),
        lambda: table.add_column("x", "int"),
        lambda: table.create_tag("eod"),
        lambda: table.at_branch("main"),
        table.compact,
        table.expire,
    )
    for use in uses:
        with pytest.raises(
            TableNotFoundError, match=r"no table 'web.events' in the catalog any more; it was dropped or"
        ):
            use()
    assert lake.table("web.other").count() == 1


@pytest.mark.parametrize("use", [lambda lake: lake.drop_table("web.events", purge=True),
                                 lambda lake: lake.rename_table("web.events", "web.new")])  # fmt: skip
def test_a_table_that_another_process_drops_meanwhile_is_gone(lake: Any, use: Any, monkeypatch: Any) -> None:
    original = penstock.lake.lake.Lake._iceberg

    def dropped(self: Any, name: str) -> Any:
        table = original(self, name)
        lake.catalog.drop_table(name)
        return table

    monkeypatch.setattr(penstock.lake.lake.Lake, "_iceberg", dropped)
    with pytest.raises(TableNotFoundError, match=r"no table 'web.events' in the catalog any more"):
        use(lake)


def test_a_renamed_table_has_its_rows_and_a_new_namespace(lake: Any) -> None:
    lake.rename_table("web.events", "archive.events")
    assert lake.tables() == ["archive.events"]
    assert lake.table("archive.events").count() == 1


def test_a_renamed_layout_stays_where_it_is(lake: Any, tmp_path: Path) -> None:
    lake.register("web.layout", penstock.hive(layout(tmp_path), "dt date"))
    lake.rename_table("web.layout", "raw.layout")
    assert lake.table("raw.layout").arrow().num_rows == 1
    assert lake.tables() == ["raw.layout", "web.events"]


def test_a_table_is_not_renamed_to_a_name_that_is_taken(lake: Any, tmp_path: Path) -> None:
    lake.register("web.layout", penstock.hive(layout(tmp_path), "dt date"))
    with pytest.raises(TableExistsError, match=r"there is a table web.layout already"):
        lake.rename_table("web.events", "web.layout")
    with pytest.raises(TableNotFoundError, match=r"no table 'web.nope'"):
        lake.rename_table("web.nope", "web.other")


def test_namespaces_are_those_of_tables_and_of_layouts(lake: Any, tmp_path: Path) -> None:
    lake.register("raw.layout", penstock.hive(layout(tmp_path), "dt date"))
    lake.create_namespace("empty", {"owner": "me"})
    lake.create_namespace("web.inner")
    assert lake.namespaces.names() == ["empty", "raw", "web"]
    assert lake.namespaces.names("web") == ["web.inner"]
    assert lake.namespaces.properties("empty")["owner"] == "me"
    assert lake.namespaces.properties("raw") == {}


def test_namespaces_are_spelled_as_the_lake_has_them(lake: Any) -> None:
    lake.create_namespace("web.Inner")
    lake.create_namespace("Two")
    lake.create_namespace("two")
    names = {
        "WEB": "web",
        "web": "web",
        "Web.INNER": "web.Inner",
        "WEB.new": "web.new",
        "WEB.a.b": "web.a.b",
        "x.y.z": "x.y.z",
        "TWO": "TWO",
        "two": "two",
        "": "",
    }
    assert {name: lake.namespaces.spelled(name) for name in names} == names


def test_a_namespace_is_created_once(lake: Any) -> None:
    with pytest.raises(NamespaceExistsError, match=r"there is a namespace web already"):
        lake.create_namespace("web")


def test_properties_of_a_namespace_are_set_and_removed(lake: Any) -> None:
    lake.namespaces.change("web", {"a": "1", "b": "2"}, [])
    lake.namespaces.change("web", {}, ["a"])
    assert lake.namespaces.properties("web").get("b") == "2"
    assert "a" not in lake.namespaces.properties("web")


def test_a_namespace_with_tables_is_dropped_only_with_them(lake: Any, tmp_path: Path) -> None:
    lake.register("web.layout", penstock.hive(layout(tmp_path), "dt date"))
    with pytest.raises(NamespaceNotEmptyError, match=r"namespace web is not empty: web.events, web.layout"):
        lake.namespaces.drop("web")
    lake.namespaces.drop("web", cascade=True)
    assert lake.tables() == []
    with pytest.raises(NamespaceNotFoundError, match=r"no namespace 'web'"):
        lake.namespaces.drop("web")
