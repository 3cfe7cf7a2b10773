"""Writing managed tables: rows that fit and rows that are refused, versions, rules and odd places."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import (
    LongType,
    NestedField,
    StructType,
    UUIDType,
)

import penstock
from penstock import Coalesce
from penstock.errors import LakeError, SchemaError
from penstock.lake.managed_table import ManagedTable
from tests.fixtures.managed_tables import (
    bag,
    files_below,
    head_id,
    local,
    managed_table,
    reopened,
    snapshot_ids,
)
from tests.fixtures.managed_values import EVENTS, VALUES, events, events_table, keyed, keyed_table, replaced


@pytest.fixture
def table(tmp_path: Path) -> ManagedTable:
    return events_table(tmp_path)


class TestRowsThatDoNotFit:
    @pytest.mark.parametrize(
        ("rows", "said"),
        [
            (events().drop_columns(["id", "x"]), "missing: id bigint;"),
            (events().append_column("extra", pa.array([1, 2, 3, 4])), "not in the table: extra"),
            (replaced("n", pa.array(["1", "2", "3", "4"])), "n is a int and was given as string"),
            (replaced("n", pa.array([1, 2, 3, 4], pa.int64())), "n is a int and was given as bigint"),
            (replaced("app", pa.array([1, 2, 3, 4])), "app is a string and was given as bigint"),
            (replaced("p", pa.array([Decimal("1.255")] * 4, pa.decimal128(9, 3))), "p is a decimal"),
            (replaced("p", pa.array([Decimal("1.25")] * 4, pa.decimal128(12, 2))), "p is a decimal"),
            (replaced("x", pa.array([Decimal("1.25")] * 4, pa.decimal128(9, 2))), "x is a double"),
            (replaced("tags", pa.array([[1]] * 4)), r"tags.element is a string and was given as bigint"),
            (replaced("tags", pa.array(["t"] * 4)), r"tags is a array<string>"),
            (replaced("id", pa.array([1, None, None, 2], pa.int64())), "'id' is required and 2 of the rows have null"),
            (events().append_column("APP", pa.array(list("abcd"))), "column 'APP' is given twice"),
            ([{"id": 1}], "found list"),
        ],
    )
    def test_they_are_refused_with_a_clear_error_and_nothing_is_written(
        self, table: ManagedTable, tmp_path: Path, rows: Any, said: str
    ) -> None:
        before, head = files_below(tmp_path), head_id(table)
        for write in (
            lambda: table.append(rows),
            lambda: table.overwrite(rows),
            lambda: table.overwrite(rows, "app = 'a'"),
            lambda: table.overwrite(rows, dynamic=True),
        ):
            with pytest.raises((SchemaError, LakeError), match=said) as caught:
                write()
            assert len(str(caught.value).splitlines()) == 1
        assert files_below(tmp_path) == before
        assert head_id(table.refresh()) == head
        assert bag(table.arrow()) == bag(events())

    def test_null_in_a_required_field_of_a_struct_is_refused(self, tmp_path: Path) -> None:
        inner = StructType(NestedField(3, "a", LongType(), required=True))
        schema = Schema(
            NestedField(1, "id", LongType(), required=False), NestedField(2, "s", inner, required=False)
        )  # fmt: skip
        table = managed_table(tmp_path, schema)
        before = files_below(tmp_path)
        kind = pa.struct([pa.field("a", pa.int64())])
        fine = pa.table({"id": [1, 2], "s": pa.array([{"a": 1}, None], kind)})
        with pytest.raises(SchemaError, match="required"):
            table.append(pa.table({"id": [1, 2], "s": pa.array([{"a": 1}, {"a": None}], kind)}))
        assert files_below(tmp_path) == before
        table.append(fine)
        assert table.arrow().to_pylist() == fine.to_pylist()

    @pytest.mark.parametrize("where", ["nope = 1", "app =", "n", ""])
    def test_a_bad_predicate_is_said_before_anything_is_written(
        self, table: ManagedTable, tmp_path: Path, where: str
    ) -> None:
        before = files_below(tmp_path)
        for write in (lambda: table.overwrite(events(), where), lambda: table.delete(where)):
            with pytest.raises(penstock.PenstockError):
                write()
        assert files_below(tmp_path) == before

    def test_a_predicate_that_fails_on_a_row_leaves_the_table_and_the_folder_as_they_were(
        self, table: ManagedTable, tmp_path: Path
    ) -> None:
        before = files_below(tmp_path)
        for write in (
            lambda: table.overwrite(events(10), "CAST(app AS int) = 1"),
            lambda: table.delete("CAST(app AS int) = 1"),
        ):
            with pytest.raises(penstock.PenstockError):
                write()
        assert files_below(tmp_path) == before
        assert bag(table.refresh().arrow()) == bag(events())

    @pytest.mark.parametrize("form", [lambda t: t, lambda t: t.to_batches()[0], lambda t: t.to_reader(max_chunksize=1)])
    @pytest.mark.parametrize("where", ["app = 'a'", "app = 'a' OR id <= 2", "id > 100", "FALSE", "id / 0 = 1"])
    def test_rows_that_do_not_match_what_they_replace_are_refused(
        self, table: ManagedTable, tmp_path: Path, form: Any, where: str
    ) -> None:
        before, head = files_below(tmp_path), head_id(table)
        with pytest.raises(penstock.PenstockError) as caught:
            table.overwrite(form(events(1, "aabc")), where)
        assert len(str(caught.value).splitlines()) == 1
        assert files_below(tmp_path) == before
        assert head_id(table.refresh()) == head
        assert bag(table.arrow()) == bag(events())

    def test_rows_that_match_in_other_types_and_names_are_taken(self, tmp_path: Path) -> None:
        table = managed_table(tmp_path, Schema(NestedField(1, "u", UUIDType()), NestedField(2, "n", LongType())))
        one = UUID(int=7)
        where = f"u = '{one}' AND n < 5"
        table.overwrite(pa.table({"U": [str(one)], "N": pa.array([1], pa.int8())}), where)
        table.overwrite(pa.table({"n": [2], "u": pa.array([one.bytes], pa.uuid())}), where)
        assert table.arrow().to_pylist() == [{"u": str(one), "n": 2}]
        with pytest.raises(LakeError, match=r"1 of the rows do not match .* which says what they replace"):
            table.overwrite(pa.table({"u": [str(one)], "n": [5]}), where)

    def test_where_and_dynamic_exclude_each_other(self, table: ManagedTable, tmp_path: Path) -> None:
        before = files_below(tmp_path)
        with pytest.raises(LakeError, match="both where and dynamic"):
            table.overwrite(events(), "app = 'a'", dynamic=True)
        assert files_below(tmp_path) == before


class TestRowsThatFitInOtherForms:
    @pytest.mark.parametrize(
        "rows",
        [
            events().rename_columns(["ID", "App", "N", "x", "P", "Tags"]),
            events().select(["tags", "p", "x", "n", "app", "id"]),
            replaced("id", pa.array(range(4), pa.int32())),
            replaced("id", pa.array(range(4), pa.int8())),
            replaced("n", pa.array([0, 1, 2, 0], pa.uint8())),
            replaced("x", pa.array([0.0, 0.5, 1.0, 1.5], pa.float32())),
            replaced("p", pa.array([Decimal("1.25")] * 4, pa.decimal128(5, 2))),
            replaced("app", pa.array(list("abca")).dictionary_encode()),
            replaced("app", pa.array(list("abca"), pa.large_string())),
            replaced("app", pa.array(list("abca"), pa.string_view())),
            replaced("tags", pa.array([["t"]] * 4, pa.large_list(pa.large_string()))),
            pa.concat_tables([events().slice(0, 1), events().slice(1, 2), events().slice(3)]),
            events().to_batches()[0],
            pa.RecordBatchReader.from_batches(events().schema, events().to_batches(max_chunksize=1)),
        ],
    )
    def test_they_are_written_in_the_types_of_the_table(self, tmp_path: Path, rows: Any) -> None:
        table = managed_table(tmp_path, EVENTS, ["app"], coalesce=["app"])
        table.append(rows)
        assert bag(table.arrow()) == bag(events())
        assert bag(table.table.scan().to_arrow()) == bag(events())

    @pytest.mark.parametrize("name", ["app", "n", "x", "p", "tags"])
    def test_a_column_of_nothing_but_null_may_have_no_type(self, tmp_path: Path, name: str) -> None:
        table = managed_table(tmp_path, EVENTS, ["app"], coalesce=["app"])
        table.append(replaced(name, pa.nulls(4)))
        assert table.arrow()[name].null_count == 4

    def test_a_part_of_a_larger_table_is_written_as_that_part(self, tmp_path: Path) -> None:
        table = managed_table(
            tmp_path, "id bigint, m map<string,bigint>, l array<array<int>>, s struct<a:int,b:string>"
        )
        rows = pa.table(
            {
                "id": list(range(6)),
                "m": pa.array([[("a", i)] if i % 2 else None for i in range(6)], pa.map_(pa.string(), pa.int64())),
                "l": pa.array([[[i], None, []] for i in range(6)], pa.list_(pa.list_(pa.int8()))),
                "s": pa.array([None if i == 3 else {"a": i, "b": str(i)} for i in range(6)]).cast(
                    pa.struct([("a", pa.int16()), ("b", pa.string())])
                ),
            }
        )
        table.append(rows.slice(2, 3))
        assert table.arrow().sort_by("id").to_pylist() == rows.slice(2, 3).to_pylist()

    def test_no_rows_make_no_snapshot(self, table: ManagedTable) -> None:
        before = snapshot_ids(table)
        table.append(events().slice(0, 0))
        table.overwrite(events().slice(0, 0), dynamic=True)
        table.delete("app = 'nosuch'")
        assert snapshot_ids(table.refresh()) == before
        table.overwrite(events().slice(0, 0))
        assert table.count() == 0


class TestVersions:
    def test_a_table_of_version_one_is_written_and_read(self, tmp_path: Path) -> None:
        table = managed_table(tmp_path, EVENTS, ["app"], coalesce=["app"], properties={"format-version": "1"})
        assert table.table.metadata.format_version == 1
        table.append(events())
        table.append(events(10))
        table.delete("app = 'a' AND id < 10")
        table.overwrite(events(20, "b"), dynamic=True)
        table.compact()
        assert sorted(table.arrow()["id"].to_pylist()) == [2, 10, 12, 13, 20]
        assert sorted(table.table.scan().to_arrow()["id"].to_pylist()) == [2, 10, 12, 13, 20]
        assert sorted(table.arrow("app = 'c'")["id"].to_pylist()) == [2, 12]

    def test_a_table_of_version_three_is_refused_and_stays_as_it_was(self, tmp_path: Path) -> None:
        table = managed_table(tmp_path, EVENTS, ["app"])
        path = Path(local(table.table.metadata_location))
        path.write_text(json.dumps({**json.loads(path.read_text()), "format-version": 3, "next-row-id": 0}))
        before = files_below(tmp_path)
        with pytest.raises(LakeError, match="format version 3"):
            table.append(events())
        with pytest.raises(LakeError, match="format version 3"):
            table.overwrite(events())
        assert files_below(tmp_path) == before
        assert table.count() == 0

    def test_the_past_cannot_be_written(self, table: ManagedTable, tmp_path: Path) -> None:
        first = head_id(table)
        table.append(events(10))
        before = files_below(tmp_path)
        old = table.at(first)
        assert isinstance(old, ManagedTable)
        for write in (
            lambda: old.append(events()),
            lambda: old.overwrite(events()),
            lambda: old.delete("TRUE"),
            lambda: old.set_coalesce(None),
            lambda: old.compact(),
            lambda: old.expire(),
            lambda: old.sweep(),
        ):
            with pytest.raises(LakeError, match="cannot be written"):
                write()
        assert files_below(tmp_path) == before
        assert old.count() == 4
        assert table.count() == 8


class TestRules:
    @pytest.mark.parametrize(
        ("rule", "said"),
        [
            (["nope"], "names 'nope', which is no column"),
            (["n"], "not partitioned by n"),
            (["id"], "partitioned by bucket"),
            (Coalesce("d", values=["no date"]), "cannot hold"),
            (Coalesce("app", values=[7]), "7 is no string"),
        ],
    )
    def test_a_rule_that_does_not_fit_the_partitioning_is_refused(self, tmp_path: Path, rule: Any, said: str) -> None:
        schema, by = "id bigint, app string, n int, d date", ["app", "d", "bucket(4, id)"]
        with pytest.raises(LakeError, match=said):
            managed_table(tmp_path, schema, by, coalesce=rule)
        table = managed_table(tmp_path, schema, by)
        before = files_below(tmp_path)
        with pytest.raises(LakeError, match=said):
            table.set_coalesce(rule)
        assert files_below(tmp_path) == before
        assert table.coalesce is None

    def test_a_rule_that_no_longer_fits_the_partitioning_is_left_out_with_a_warning(self, tmp_path: Path) -> None:
        table = managed_table(tmp_path, "id bigint, app string", ["app"], coalesce=["app"])
        table.append(pa.table({"id": [1, 2], "app": ["a", "b"]}))
        with table.table.update_spec() as spec:
            spec.remove_field("app")
        with pytest.warns(penstock.PenstockWarning, match="not partitioned by app"):
            table.append(pa.table({"id": [3], "app": ["c"]}))
        assert bag(table.arrow()) == bag([{"id": i, "app": app} for i, app in ((1, "a"), (2, "b"), (3, "c"))])
        table.set_coalesce(None)
        table.compact()
        assert table.count() == 3

    @pytest.mark.parametrize("kind", [kind for kind in VALUES if kind not in ("float", "double")])
    def test_a_rule_lists_values_of_any_type(self, tmp_path: Path, kind: str) -> None:
        listed = VALUES[kind][1][:1]
        table = keyed_table(tmp_path, kind, "identity", coalesce=Coalesce("k", values=listed))
        table.append(keyed(kind))
        shared = [task for task in table.plan().files if task.logical is not None]
        assert len(shared) == 1
        assert reopened(tmp_path).coalesce == table.coalesce
        assert pq.read_table(local(shared[0].path))["id"].to_pylist() == [0]


class TestOddPlaces:
    def test_a_value_longer_than_any_file_name_has_a_short_directory(self, tmp_path: Path) -> None:
        table = managed_table(tmp_path, "id bigint, app string", ["app"])
        names = ["x" * 5_000, "x" * 5_001, "ü" * 300]
        table.append(pa.table({"id": [1, 2, 3], "app": names}))
        assert [len(table.plan(f"app = '{name}'").files) for name in names] == [1, 1, 1]
        assert sorted(table.arrow()["app"].to_pylist()) == sorted(names)

    @pytest.mark.parametrize("rule", [None, ["d"]])
    def test_dates_outside_of_pythons_calendar_are_partitions(self, tmp_path: Path, rule: Any) -> None:
        table = managed_table(tmp_path, "id bigint, d date", ["d"], coalesce=rule)
        days = pa.array([5_000_000, -1_000_000, 0], pa.int32()).cast(pa.date32())
        table.append(pa.table({"id": [1, 2, 3], "d": days}))
        assert table.arrow("d > DATE '9999-12-31'")["id"].to_pylist() == [1]
        assert table.arrow("d = DATE '1970-01-01'")["id"].to_pylist() == [3]
        assert sorted(table.arrow()["d"].combine_chunks().cast(pa.int32()).to_pylist()) == [-1_000_000, 0, 5_000_000]

    @pytest.mark.parametrize("name", ["a#b", "a?b", "a%20b"])
    def test_a_warehouse_that_is_no_plain_path_of_a_url_is_refused(self, tmp_path: Path, name: str) -> None:
        with pytest.raises(LakeError, match="choose a directory without it"):
            penstock.connect(tmp_path / name)
        assert not files_below(tmp_path)

    def test_a_table_of_format_version_three_is_not_made(self, tmp_path: Path) -> None:
        with pytest.raises(LakeError, match="make it one of version 2"):
            managed_table(tmp_path, "id bigint", properties={"format-version": "3"})

    def test_a_table_whose_files_are_to_be_orc_is_neither_made_nor_written(self, tmp_path: Path) -> None:
        said = r"write\.format\.default is 'orc', and only Parquet is written"
        with pytest.raises(LakeError, match=said):
            managed_table(tmp_path, "id bigint", properties={"write.format.default": "orc"})
        table = managed_table(tmp_path, "id bigint", properties={"write.format.default": "PARQUET"})
        table.append(pa.table({"id": [1, 2]}))
        with table.table.transaction() as change:
            change.set_properties({"write.format.default": "orc"})
        before = files_below(tmp_path)
        for write in (
            lambda: table.append(pa.table({"id": [1]})),
            lambda: table.overwrite(pa.table({"id": [1]})),
            lambda: table.delete("id = 1"),
            lambda: table.compact(),
        ):
            with pytest.raises(LakeError, match=said):
                write()
        assert files_below(tmp_path) == before

    def test_uuids_are_taken_as_text_as_octets_and_as_arrows_own(self, tmp_path: Path) -> None:
        table = managed_table(tmp_path, Schema(NestedField(1, "u", UUIDType())), ["u"])
        one = UUID(int=7)
        table.append(pa.table({"u": [str(one)]}))
        table.append(pa.table({"u": pa.array([one.bytes], pa.binary(16))}))
        table.append(pa.table({"u": pa.array([one.bytes], pa.uuid())}))
        assert table.arrow()["u"].to_pylist() == [str(one)] * 3
        assert len(table.plan(f"u = '{one}'").files) == 3
