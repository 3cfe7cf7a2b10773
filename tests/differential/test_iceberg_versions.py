"""Versions of Iceberg tables, and limits, counts and extremes of their rows: right, and with as few files as can be."""

from __future__ import annotations

import datetime as dt
import math
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.table import Table
from pyiceberg.types import StringType

import penstock
from penstock.errors import LakeError, PenstockError
from tests.differential.iceberg_checks import ids, opened
from tests.fixtures.iceberg_tables import append_by_hand, create, repartition, write_iceberg

UTC = dt.UTC


class TestVersions:
    @pytest.fixture
    def table(self, tmp_path: Path) -> Table:
        table = write_iceberg(tmp_path, pa.table({"id": [1, 2], "app": ["a", "b"]}), [])
        table.manage_snapshots().create_tag(table.current_snapshot().snapshot_id, "first").commit()
        repartition(table, ["app"])
        with table.update_schema() as update:
            update.rename_column("app", "name")
        append_by_hand(table, pa.table({"id": [3, 4], "name": ["a", "c"]}))
        table.manage_snapshots().create_branch(table.current_snapshot().snapshot_id, "later").commit()
        with table.update_schema() as update:
            update.add_column("extra", StringType())
        append_by_hand(table, pa.table({"id": [5], "name": ["a"], "extra": ["e"]}))
        return table

    def test_ids_times_tags_and_branches_name_versions(self, table: Table, tmp_path: Path) -> None:
        found = opened(tmp_path)
        first, second, third = (s.snapshot_id for s in table.metadata.snapshots)
        assert [ids(found.at(i).arrow()) for i in (first, second, third)] == [[1, 2], [1, 2, 3, 4], [1, 2, 3, 4, 5]]
        assert ids(found.arrow("app = 'a'", snapshot="first")) == [1], "with the schema of that time"
        assert ids(found.arrow("name = 'a'", snapshot="later")) == [1, 3], "a branch has the table's own schema"
        assert found.at("later").schema.names == ["id", "name", "extra"]
        assert found.at(second).schema.names == ["id", "name"]
        assert found.count("name = 'a'", snapshot=second) == 2
        moments = [s.timestamp_ms for s in table.metadata.snapshots]
        for moment, expected in zip(moments, [2, 4, 5], strict=True):
            at = dt.datetime.fromtimestamp(moment / 1000, UTC)
            last = max(i for i, m in enumerate(moments) if m <= moment)
            assert found.count(snapshot=at) == [2, 4, 5][last] >= expected
        assert found.count(snapshot="2999-01-01") == 5
        assert len(found.plan("app = 'a'", snapshot=first).files) == 1

    @pytest.mark.parametrize("asked", [17, "nosuch", "1999-01-01", dt.datetime(1999, 1, 1), True, 1.5])
    def test_what_is_not_there_is_one_clear_error(self, table: Table, tmp_path: Path, asked: Any) -> None:
        with pytest.raises(LakeError) as caught:
            opened(tmp_path).at(asked).plan()
        assert "\n" not in str(caught.value)
        assert len(str(caught.value)) > 20

    def test_a_table_stays_what_it_was_until_it_is_refreshed(self, table: Table, tmp_path: Path) -> None:
        before = opened(tmp_path)
        append_by_hand(table, pa.table({"id": [6], "name": ["z"], "extra": ["e"]}))
        assert before.count() == 5
        assert before.refresh().count() == 6

    def test_a_table_without_snapshots_has_no_rows(self, tmp_path: Path) -> None:
        create(tmp_path, pa.schema({"id": pa.int64(), "app": pa.string()}), ["app"])
        found = opened(tmp_path)
        assert (len(found.plan("app = 'a'").files), found.arrow().num_rows, found.count()) == (0, 0, 0)
        assert found.partitions().num_rows == 0

    def test_a_metadata_file_opens_without_a_catalog(self, table: Table, tmp_path: Path) -> None:
        for place in (table.metadata_location, table.metadata_location.removeprefix("file://")):
            assert ids(penstock.iceberg(place).arrow("name = 'a'")) == [1, 3, 5]


class TestLimits:
    @pytest.fixture
    def found(self, tmp_path: Path) -> Any:
        table = create(tmp_path, pa.schema({"id": pa.int64(), "app": pa.string()}), ["app"])
        for i in range(6):
            append_by_hand(
                table, pa.table({"id": [10 * i + j for j in range(10)], "app": ["a" if i % 2 else "b"] * 10})
            )
        return opened(tmp_path)

    @pytest.mark.parametrize(("where", "limit", "files"), [
        (None, 1, 1), (None, 10, 1), (None, 11, 2), (None, 60, 6), (None, 61, 6), (None, 0, 0),
        ("app = 'a'", 5, 1), ("app = 'a'", 11, 2), ("app = 'a'", 1000, 3), ("id >= 0", 15, 2), ("id % 2 = 0", 1, 6),
    ])  # fmt: skip
    def test_a_limit_needs_only_as_many_files_as_have_enough_rows(
        self, found: Any, where: str | None, limit: int, files: int
    ) -> None:
        plan = found.plan(where, limit=limit)
        assert len(plan.files) == files
        level = plan.report.files
        assert level.total == 6 == level.kept + sum(level.skipped.values())
        assert found.arrow(where, limit=limit).num_rows == min(limit, found.count(where))

    def test_counts_come_from_metadata_where_files_match_whole(
        self, found: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from penstock.tables.iceberg.scan.reader import Reader

        read: list[str] = []
        original = Reader.file
        monkeypatch.setattr(
            Reader, "file", lambda self, task, *asked: (read.append(task.path), original(self, task, *asked))[1]
        )
        assert (found.count(), found.count("app = 'a'"), found.count("app = 'nosuch'")) == (60, 30, 0)
        assert not read
        assert found.count("id < 15") == 15
        assert len(read) == 1, "one file matches in part"

    def test_extremes_read_only_the_files_that_can_have_them(self, found: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        from penstock.tables.iceberg.scan.reader import Reader

        read: list[str] = []
        original = Reader.file
        monkeypatch.setattr(
            Reader, "file", lambda self, task, *asked: (read.append(task.path), original(self, task, *asked))[1]
        )
        assert (found.minimum("id"), found.maximum("id")) == (0, 59)
        assert len(read) == 2
        assert (found.minimum("id", "app = 'a'"), found.maximum("id", "app = 'b'")) == (10, 49)
        assert len(read) == 4
        assert found.maximum("id", "id % 7 = 0 AND id < 50") == 49
        assert (found.maximum("id", "app = 'nosuch'"), found.maximum("app")) == (None, "b")
        with pytest.raises(PenstockError):
            found.maximum("nosuch")

    def test_nan_is_the_largest_and_nulls_are_none(self, tmp_path: Path) -> None:
        table = create(tmp_path, pa.schema({"id": pa.int64(), "x": pa.float64()}))
        for i, values in enumerate([[1.0, 9.0], [float("nan"), -5.0], [None, None], [3.0, None]]):
            append_by_hand(table, pa.table({"id": [i, i], "x": pa.array(values, pa.float64(), from_pandas=False)}))
        found = opened(tmp_path)
        assert math.isnan(found.maximum("x"))
        assert (found.minimum("x"), found.maximum("x", "id <> 1"), found.minimum("x", "id = 2")) == (-5.0, 9.0, None)
