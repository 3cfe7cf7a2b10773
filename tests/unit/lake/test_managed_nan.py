"""Float columns that hold NaN are written without Parquet's statistics; manifests still say what they hold."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.conversions import from_bytes
from pyiceberg.types import DoubleType, FloatType

import penstock
from penstock.lake.managed_table import ManagedTable
from penstock.lake.write import data_files as writing
from tests.fixtures.managed_tables import entries, local

NAN = float("nan")
COLUMNS = (
    "id bigint, d double, f float, clean double, s struct<x: double, y: int>, l array<double>, m map<string, double>"
)
ROWS: list[dict[str, Any]] = [
    {"id": 1, "d": -1.5, "f": 0.0, "clean": 1.0, "s": {"x": NAN, "y": 1}, "l": [1.0, NAN], "m": {"a": 2.0}},
    {"id": 2, "d": NAN, "f": NAN, "clean": -0.0, "s": None, "l": [], "m": {"a": NAN, "b": 3.0}},
    {"id": 3, "d": None, "f": -0.0, "clean": None, "s": {"x": 4.0, "y": None}, "l": None, "m": None},
]


@pytest.fixture
def table(tmp_path: Path) -> ManagedTable:
    made: ManagedTable = penstock.connect(tmp_path / "lake").create_table("web.numbers", COLUMNS, [])
    return made


def rows(table: ManagedTable, values: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(values, schema=table.schema)


def columns_with_statistics(path: str) -> set[str]:
    """The columns that have statistics or an index of pages in any row group."""
    metadata = pq.ParquetFile(local(path)).metadata
    groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
    found = [group.column(i) for group in groups for i in range(group.num_columns)]
    return {column.path_in_schema for column in found if column.is_stats_set or column.has_column_index}


def statistics(table: ManagedTable, name: str, entry: Any) -> dict[str, Any]:
    """What a manifest says of a column."""
    field = table.table.schema().find_field(name)
    file, i, kind = entry.data_file, field.field_id, field.field_type
    bounds = [from_bytes(kind, each[i]) if i in each else None for each in (file.lower_bounds, file.upper_bounds)]
    counts = [each.get(i) for each in (file.value_counts, file.null_value_counts, file.nan_value_counts)]
    return {"bounds": bounds, "counts": counts}


def test_a_column_with_nan_has_no_parquet_statistics_and_the_others_keep_theirs(table: ManagedTable) -> None:
    table.append(rows(table, ROWS))
    (entry,) = entries(table)
    assert columns_with_statistics(entry.data_file.file_path) == {"id", "clean", "s.y", "m.key_value.key"}


def test_the_manifest_keeps_bounds_and_counts_of_columns_with_nan(table: ManagedTable) -> None:
    table.append(rows(table, ROWS))
    (entry,) = entries(table)
    assert statistics(table, "d", entry) == {"bounds": [-1.5, -1.5], "counts": [3, 1, 1]}
    assert statistics(table, "f", entry) == {"bounds": [0.0, 0.0], "counts": [3, 0, 1]}
    assert statistics(table, "clean", entry) == {"bounds": [0.0, 1.0], "counts": [3, 1, 0]}
    assert statistics(table, "s.x", entry)["counts"] == [3, 1, 1]
    assert statistics(table, "l.element", entry)["counts"] == [4, 2, 1]
    assert statistics(table, "m.value", entry)["counts"] == [4, 1, 1]
    assert [str(statistics(table, "f", entry)["bounds"][i]) for i in (0, 1)] == ["-0.0", "0.0"]


def test_a_column_of_only_nan_has_no_bounds(table: ManagedTable) -> None:
    table.append(rows(table, [{**ROWS[0], "d": NAN}, {**ROWS[0], "d": NAN}]))
    (entry,) = entries(table)
    assert statistics(table, "d", entry) == {"bounds": [None, None], "counts": [2, 0, 2]}


def test_files_are_pruned_by_the_bounds_of_columns_with_nan(table: ManagedTable) -> None:
    table.append(rows(table, ROWS))
    table.append(rows(table, [{**ROWS[0], "id": 4, "d": 1e10}]))
    assert len(table.plan("d < -1.0").files) == 1
    assert len(table.plan("d > 1e9").files) == 2
    assert sorted(table.arrow("d > 1e9")["id"].to_pylist()) == [2, 4]


def test_nan_that_comes_after_a_file_was_begun_begins_another_one(
    table: ManagedTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "_GROUP_ROWS", 1)
    clean = [{**ROWS[2], "id": i, "d": float(i), "s": None} for i in range(4)]
    with_nan = [{**row, "d": NAN} for row in clean]
    writer = _writer(table)
    for row in (clean[0], clean[1], with_nan[2], clean[3]):
        writer.add(rows(table, [row]))
    first, second = writer.close()
    assert [file.rows for file in (first, second)] == [2, 2]
    assert "d" in columns_with_statistics(first.path)
    assert "d" not in columns_with_statistics(second.path)
    d = table.table.schema().find_field("d").field_id
    assert [file.statistics["nan_value_counts"][d] for file in (first, second)] == [0, 1]
    assert from_bytes(DoubleType(), second.statistics["upper_bounds"][d]) == 3.0


def _writer(table: ManagedTable) -> writing.SlotWriter:
    from penstock.lake.layout.slots import Slot
    from penstock.lake.write.writes import prepare

    job = prepare(table)
    return writing.SlotWriter(job, Slot(job.layout.fine.spec_id, (), False))


def test_sidecars_of_maps_follow_the_same_rule(tmp_path: Path) -> None:
    lake = penstock.connect(tmp_path / "lake")
    table = lake.create_table("web.maps", "id bigint, m map<string, float>", [], shred={"m": ["a"]})
    values = [{"id": 1, "m": {"a": 1.0}}, {"id": 2, "m": {"a": NAN, "b": 2.0}}]
    table.append(rows(table, values))
    (entry,) = entries(table)
    stored = table.table.schema()
    (sidecar,) = (field for field in stored.fields if field.name not in ("id", "m"))
    assert sidecar.name not in columns_with_statistics(entry.data_file.file_path)
    assert from_bytes(FloatType(), entry.data_file.upper_bounds[sidecar.field_id]) == 1.0
    assert entry.data_file.nan_value_counts[sidecar.field_id] == 1
