"""What a page tells: the counts of the plan, every file once, and no more than a page can hold."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner

import penstock
from penstock.cli.main import main
from penstock.expr.bind import bind_text
from penstock.expr.tree import Column
from penstock.prune.containers import Containers
from penstock.prune.facts import Exact
from penstock.prune.judge import Pruner
from penstock.prune.plan import make_plan
from penstock.report import partition_map as maps
from penstock.report.page import page
from penstock.report.page_data import Collector
from penstock.report.partition_map import Map
from penstock.report.query_view import see
from penstock.tables.description import UNREADABLE, pieces_of_files
from penstock.tables.memory import MemoryTable
from tests.fixtures.iceberg_tables import append_by_hand, repartition, write_iceberg
from tests.fixtures.pages import collect, hive_table, shared_table, shredded_table

WHERES = [
    None,
    "app = 'app-07'",
    "app = 'big' AND user_id < 10",
    "ts >= '2026-05-18'",
    "app IN ('big', 'app-01')",
    "1 = 2",
]


def cells(found: dict[str, Any]) -> list[dict[str, Any]]:
    return [cell for group in (*found["groups"], *found["others"]) for cell in group["cells"]]


def told(data: dict[str, Any], partition: str) -> list[dict[str, Any]]:
    (group,) = [group for group in data["map"]["groups"] if group["label"] == partition]
    return group["cells"]


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("lake")
    shared_table(root)
    shredded_table(root)
    return root


@pytest.fixture
def shared(lake: Path) -> Any:
    return penstock.connect(lake).table("web.requests")


@pytest.mark.parametrize("where", WHERES)
def test_the_counts_are_those_of_explain(lake: Path, shared: Any, where: str | None) -> None:
    words = ["explain", "web.requests", "--warehouse", str(lake), "--json", *(["--where", where] if where else [])]
    expected = json.loads(CliRunner().invoke(main, words).output)
    found = collect(shared, where, advice=False)["report"]
    for name in ("files", "manifests", "unused", "keys", "list_calls"):
        assert found[name] == expected[name]


@pytest.mark.parametrize("where", WHERES)
def test_the_map_has_every_file_once_with_the_verdict_of_the_plan(shared: Any, where: str | None) -> None:
    data = collect(shared, where, advice=False)
    totals, files = data["map"]["totals"], data["report"]["files"]
    assert totals["skip"]["files"] + totals["keep"]["files"] + totals["whole"]["files"] == files["total"]
    assert (totals["whole"]["files"], totals["keep"]["files"] + totals["whole"]["files"]) == (
        files["kept_whole"], files["kept"],
    )  # fmt: skip
    assert totals["keep"]["bytes"] + totals["whole"]["bytes"] == files["bytes_kept"]
    assert sum(cell["bytes"] for cell in cells(data["map"])) == data["table"]["bytes"]
    assert sum(group["rows"] for group in data["map"]["groups"]) == data["table"]["rows"] == 3 * 3_290


def test_partitions_that_share_a_file_are_told_apart(shared: Any) -> None:
    data = collect(shared, "app = 'app-07' AND ts >= '2026-05-18' AND user_id > 3100", advice=False)
    (own,), (other,) = told(data, "ts_day=2026-05-18, app=app-07"), told(data, "ts_day=2026-05-18, app=app-08")
    assert (own["verdict"], other["verdict"], own["file"]) == ("keep", "along", other["file"])
    assert (own["rows"], other["rows"]) == (10, 10)
    file = data["map"]["files"][own["file"]]
    assert (file["partitions"], file["rows"], file["verdict"]) == (29, 290, "keep")
    assert data["map"]["residuals"][file["residual"]] == "app = 'app-07' AND user_id > 3100"
    assert data["map"]["totals"]["along"]["pieces"] == 28
    (skipped,) = told(data, "ts_day=2026-05-17, app=app-07")
    why = data["map"]["files"][skipped["file"]]
    assert skipped["verdict"] == "skip"
    assert "ts >= TIMESTAMP '2026-05-18" in data["map"]["reasons"][why["reason"]]


def test_a_file_whose_manifest_was_not_opened_says_so_and_why(shared: Any) -> None:
    data = collect(shared, "app = 'app-07'", advice=False)
    (cell,) = told(data, "ts_day=2026-05-18, app=big")
    file = data["map"]["files"][cell["file"]]
    assert (cell["verdict"], file["looked"], data["map"]["reasons"][file["reason"]]) == (
        "skip", False, "partition: app = 'app-07'",
    )  # fmt: skip


def test_advice_is_given_for_tables_of_a_catalog_and_can_be_left_out(shared: Any, tmp_path: Path) -> None:
    advice = collect(shared)["advice"]
    assert advice["text"] == str(shared.advise())
    assert "text" not in collect(shared, advice=False)["advice"]
    assert "penstock ingest" in collect(hive_table(tmp_path / "t", ["a"]))["advice"]["said"]


def test_hot_keys_are_told_for_all_files_and_for_the_query(lake: Path) -> None:
    data = collect(penstock.connect(lake).table("web.traffic"), "headers['country'] = 'DE'", advice=False)
    assert [(key["column"], key["key"], key["sidecar"], key["map"]) for key in data["keys"]["hot"]] == [
        ("headers", "country", 2, 0),
        ("headers", "it's", 2, 0),
    ]
    assert data["report"]["keys"] == [{"key": "headers['country']", "sidecar": 1, "both": 0, "map": 0}]


def test_hot_keys_of_a_layout_are_those_that_its_first_file_tells(lake: Path, tmp_path: Path) -> None:
    file = penstock.connect(lake).table("web.traffic").plan().files[0].path.removeprefix("file://")
    (tmp_path / "t" / "dt=1").mkdir(parents=True)
    shutil.copy(file, tmp_path / "t" / "dt=1" / "0.parquet")
    found = collect(penstock.hive(tmp_path / "t", "dt int"))["keys"]["hot"]
    assert found == [{"column": "headers", "key": key, "mode": "move"} for key in ("country", "it's")]


def test_values_that_begin_alike_are_two_partitions(tmp_path: Path) -> None:
    table = hive_table(tmp_path / "t", ["x" * 150, "x" * 151])
    groups = collect(table)["map"]["groups"]
    assert len(groups) == 4
    assert all(len(group["label"]) < 150 for group in groups)


def test_a_hive_layout_is_mapped_whole_though_the_plan_lists_a_part(tmp_path: Path) -> None:
    table = hive_table(tmp_path / "t", ["a", "b", "c"])
    data = collect(table, "dt = '2026-05-17' AND app = 'b'")
    assert data["report"]["list_calls"] == table.plan("dt = '2026-05-17' AND app = 'b'").report.list_calls == 3
    assert [stage["kind"] for stage in data["stages"]] == ["directories", "files"]
    assert (data["table"]["files"], data["table"]["partitions"]) == (12, 6)
    assert {cell["verdict"] for cell in told(data, "dt=2026-05-17, app=b")} == {"whole"}
    (cell, _) = told(data, "dt=2026-05-16, app=b")
    file = data["map"]["files"][cell["file"]]
    assert (file["looked"], data["map"]["reasons"][file["reason"]]) == (False, "partition: dt = DATE '2026-05-17'")
    assert file["path"] in ("dt=2026-05-16/app=b/0.parquet", "dt=2026-05-16/app=b/1.parquet")


def test_a_layout_that_may_not_be_listed_whole_shows_what_the_query_saw(tmp_path: Path) -> None:
    hive_table(tmp_path / "t", ["a", "b", "c"])
    table = penstock.hive(tmp_path / "t", "dt date, app string", max_lists=4)
    data = collect(table, "dt = '2026-05-17' AND app = 'b'")
    assert (data["table"]["files"], len(data["map"]["groups"])) == (2, 1)
    assert any("more directories than may be listed" in note for note in data["notes"])


def test_a_directory_that_cannot_be_typed_is_shown_as_read(tmp_path: Path) -> None:
    hive_table(tmp_path / "t", ["a"])
    (tmp_path / "t" / "dt=2026-05-17").rename(tmp_path / "t" / "dt=tomorrow")
    data = collect(penstock.hive(tmp_path / "t", "dt date, app string"), "dt = '2026-05-16'")
    assert {cell["verdict"] for cell in told(data, f"dt={UNREADABLE}, app=a")} == {"keep"}


def test_files_of_several_specs_are_told_by_their_own_fields(tmp_path: Path) -> None:
    made = write_iceberg(tmp_path, pa.table({"id": [1, 2, 3], "app": ["a", "b", None]}), ["app"])
    repartition(made, ["bucket[2](id)"])
    append_by_hand(made, pa.table({"id": [4], "app": ["a"]}))
    table = penstock.iceberg(made.metadata_location)
    data = collect(table, "app = 'a'")
    labels = {group["label"] for group in data["map"]["groups"]}
    assert {"app=a", "app=b", "app=NULL"} < labels
    assert any(label.startswith("id_bucket2=") for label in labels)
    assert data["map"]["totals"]["skip"]["files"] == 2
    assert data["table"]["kind"] == "Iceberg table"


def test_hours_and_months_are_shown_as_people_write_them(tmp_path: Path) -> None:
    table = penstock.connect(tmp_path).create_table("web.t", "ts timestamp", ["hour(ts)"])
    table.append(pa.table({"ts": pa.array([0, 3_600_000_000], pa.timestamp("us", "UTC"))}))
    labels = [group["label"] for group in collect(table, advice=False)["map"]["groups"]]
    assert sorted(labels) == ["ts_hour=1970-01-01T00", "ts_hour=1970-01-01T01"]


def test_an_empty_table_has_an_empty_map(tmp_path: Path) -> None:
    table = penstock.connect(tmp_path).create_table("web.t", "id bigint")
    data = collect(table, "id > 3")
    assert (data["map"]["groups"], data["sizes"]["files"]["said"]) == ([], "There are no files.")
    assert len(page(data)) > 1_000


def test_refresh_shows_what_came(tmp_path: Path) -> None:
    table = shared_table(tmp_path)
    collector = Collector(penstock.connect(tmp_path).table("web.requests"), advice=False)
    before = collector.look()["report"]["files"]["total"]
    table.append(table.arrow("app = 'big' AND user_id < 10"))
    assert collector.look()["report"]["files"]["total"] == before
    collector.refresh()
    assert collector.look()["report"]["files"]["total"] > before


def test_no_property_of_the_storage_is_in_the_data(tmp_path: Path) -> None:
    hive_table(tmp_path / "t", ["a"])
    secret = {"s3.secret-access-key": "hunter2hunter2", "s3.access-key-id": "AKIAHUNTER"}
    table = penstock.hive(tmp_path / "t", "dt date, app string", storage=secret)
    text = page(collect(table))
    assert "hunter2" not in text
    assert "AKIAHUNTER" not in text


def test_what_is_not_told_one_by_one_is_summed_up_by_the_first_field(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = hive_table(tmp_path / "t", ["a", "b", "c", "d"])
    monkeypatch.setattr(maps, "MOST_GROUPS", 2)
    found = collect(table, "app = 'a' AND dt = '2026-05-17'")["map"]
    assert [group["label"] for group in found["groups"]].count("dt=2026-05-17, app=a") == 1
    assert sorted((group["label"], group["values"][0], group["partitions"]) for group in found["others"]) == [
        ("dt=2026-05-16, 3 partitions more", "2026-05-16", 3),
        ("dt=2026-05-17, 3 partitions more", "2026-05-17", 3),
    ]
    monkeypatch.setattr(maps, "MOST_SUMS", 1)
    others = collect(table, "app = 'a' AND dt = '2026-05-17'")["map"]["others"]
    assert [(group["partitions"], len(group["values"])) for group in others] == [(3, 2), (3, 1)]
    assert sum(cell["files"] for group in others for cell in group["cells"]) == 12


def many_files(count: int, partitions: int) -> tuple[Any, Any]:
    """A plan over files that nobody wrote, one of whose partitions is asked for; it is the smallest of all."""
    values = np.arange(count) % partitions
    app = pa.array([f"app-{i:06d}" for i in range(partitions)]).take(pa.array(values))
    names = pa.array([f"s3://lake/{'deep/' * 20}app={i % partitions}/{i:032d}.parquet" for i in range(count)])
    fact = Exact(Column(("app",), pa.string()), app, name="app")
    sizes = pa.array(np.where(values == 7, 1, 1_000 + np.arange(count)))
    containers = Containers(count, [fact], names, None, sizes)
    predicate = bind_text("app = 'app-000007'", pa.schema([("app", pa.string())]))
    pruner = Pruner(predicate)
    return make_plan(pruner, [pruner.judge(containers)], 0.0), pieces_of_files([containers])


@pytest.mark.parametrize(("count", "partitions"), [(100_000, 20_000), (100_000, 3), (100_000, 10)])
def test_a_hundred_thousand_files_fit_into_a_page(count: int, partitions: int) -> None:
    plan, pieces = many_files(count, partitions)
    found = Map(
        pieces, see(plan, MemoryTable.from_rows(pa.table({"app": []})).describe(), pieces), "s3://lake"
    ).to_dict()
    assert len(json.dumps(found)) < 2_000_000
    assert len(found["groups"]) <= maps.MOST_GROUPS
    assert sum("file" in cell for cell in cells(found)) <= maps.MOST_CELLS
    assert sum(cell["bytes"] for cell in cells(found)) == int(pieces.sizes.sum())
    assert sum(1 if "file" in cell else cell["files"] for cell in cells(found)) == count
    read = {cell["verdict"] for group in found["groups"] for cell in group["cells"]}
    assert ("whole" in read) == (partitions > 7)
    if partitions > 7:
        assert any(group["label"] == "app=app-000007" for group in found["groups"])
