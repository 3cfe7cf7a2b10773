"""Writing managed tables: what is refused, where rows are put, what manifests say of them, and failures on the way."""

from __future__ import annotations

import datetime as dt
import errno
import json
import math
import pickle
import threading
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.conversions import from_bytes
from pyiceberg.io.pyarrow import PyArrowFile
from pyiceberg.schema import Schema
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IcebergType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

import penstock
from penstock import Coalesce
from penstock.errors import LakeError, SchemaError, StorageError
from penstock.tables.managed.commit import UnknownOutcomeError
from penstock.tables.managed.removal import ByPartition
from penstock.tables.managed.table import ManagedTable
from tests.fixtures.managed_tables import (
    bag,
    entries,
    files_below,
    head_id,
    local,
    managed_table,
    reachable,
    reopened,
    snapshot_ids,
)

NAN, INF = float("nan"), float("inf")
EVENTS = "id bigint NOT NULL, app string, n int, x double, p decimal(9,2), tags array<string>"


def events(first: int = 0, apps: str = "abca") -> pa.Table:
    count = len(apps)
    return pa.table(
        {
            "id": pa.array(range(first, first + count), pa.int64()),
            "app": list(apps),
            "n": pa.array([i % 3 for i in range(count)], pa.int32()),
            "x": [0.5 * i for i in range(count)],
            "p": pa.array([Decimal("1.25")] * count, pa.decimal128(9, 2)),
            "tags": pa.array([["t"]] * count, pa.list_(pa.string())),
        }
    )


def replaced(name: str, values: pa.Array) -> pa.Table:
    rows = events()
    return rows.set_column(rows.column_names.index(name), name, values)


@pytest.fixture
def table(tmp_path: Path) -> ManagedTable:
    found = managed_table(tmp_path, EVENTS, ["app"], coalesce=["app"])
    found.append(events())
    return found


class TestRowsThatDoNotFit:
    @pytest.mark.parametrize(
        ("rows", "said"),
        [
            (events().drop_columns(["x"]), "missing: x double"),
            (events().drop_columns(["x", "tags"]), r"missing: x double, tags array<string>"),
            (events().append_column("extra", pa.array([1, 2, 3, 4])), "not in the table: extra"),
            (replaced("n", pa.array(["1", "2", "3", "4"])), "n is a int and was given as string"),
            (replaced("n", pa.array([1, 2, 3, 4], pa.int64())), "n is a int and was given as bigint"),
            (replaced("app", pa.array([1, 2, 3, 4])), "app is a string and was given as bigint"),
            (replaced("p", pa.array([Decimal("1.255")] * 4, pa.decimal128(9, 3))), "p is a decimal"),
            (replaced("p", pa.array([Decimal("1.25")] * 4, pa.decimal128(12, 2))), "p is a decimal"),
            (replaced("x", pa.array([Decimal("1.25")] * 4, pa.decimal128(9, 2))), "x is a double"),
            (replaced("tags", pa.array([[1]] * 4)), r"tags is a array<string>"),
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


VALUES: dict[str, tuple[IcebergType, list[Any]]] = {
    "boolean": (BooleanType(), [True, False, None]),
    "int": (IntegerType(), [-(2**31), -11, -1, 0, 1, 34, 2**31 - 1, None]),
    "long": (LongType(), [-(2**63), -11, -1, 0, 34, 2**63 - 1, None]),
    "float": (FloatType(), [-1.5, 0.0, NAN, INF, -INF, None]),
    "double": (DoubleType(), [-1.5, 0.0, NAN, INF, -INF, None]),
    "decimal": (DecimalType(9, 2), [Decimal(t) for t in ("14.20", "-0.01", "0.00", "-10.55")] + [None]),
    "wide decimal": (DecimalType(38, 4), [Decimal("-0.0001"), Decimal("12345678901234567890.1234"), None]),
    "date": (DateType(), [dt.date(*d) for d in ((1969, 12, 31), (1960, 2, 29), (1970, 1, 1), (2017, 11, 16), (1, 1, 1),
                                                (9999, 12, 31))] + [None]),
    "time": (TimeType(), [dt.time(0), dt.time(22, 31, 8), dt.time(23, 59, 59, 999999), None]),
    "timestamp": (TimestampType(), [dt.datetime(1969, 12, 31, 23, 59, 59, 999999), dt.datetime(1960, 1, 1),
                                    dt.datetime(1970, 1, 1), dt.datetime(2017, 11, 16, 22, 31, 8), None]),
    "timestamptz": (TimestamptzType(), [dt.datetime(1969, 12, 31, 23, 59, 59, 999999, dt.UTC),
                                        dt.datetime(1960, 1, 1, 1, tzinfo=dt.UTC),
                                        dt.datetime(2017, 11, 16, 22, 31, 8, 1, dt.UTC), None]),
    "string": (StringType(), ["", "iceberg", "[#small]", "a/b=c%", "é" * 30, "\U0010ffff" * 20, " ", "null", None]),
    "uuid": (UUIDType(), ["f79c3e09-677c-4bbd-a479-3f349cb785e7", str(UUID(int=0)), str(UUID(int=2**128 - 1)), None]),
    "binary": (BinaryType(), [b"", b"\x00\x01\x02\x03", b"\xff" * 30, None]),
    "fixed": (FixedType(4), [b"\x00\x01\x02\x03", b"\xff" * 4, None]),
}  # fmt: skip
ARROW = {
    "boolean": pa.bool_(), "int": pa.int32(), "long": pa.int64(), "float": pa.float32(), "double": pa.float64(),
    "decimal": pa.decimal128(9, 2), "wide decimal": pa.decimal128(38, 4), "date": pa.date32(), "time": pa.time64("us"),
    "timestamp": pa.timestamp("us"), "timestamptz": pa.timestamp("us", "UTC"), "string": pa.string(),
    "uuid": pa.string(), "binary": pa.binary(), "fixed": pa.binary(4),
}  # fmt: skip
TRANSFORMS = {
    "identity": list(VALUES),
    "bucket(16, k)": [name for name in VALUES if name not in ("boolean", "float", "double")],
    "truncate(3, k)": ["int", "long", "decimal", "wide decimal", "string", "binary"],
    "year(k)": ["date", "timestamp", "timestamptz"],
    "month(k)": ["date", "timestamp", "timestamptz"],
    "day(k)": ["date", "timestamp", "timestamptz"],
    "hour(k)": ["timestamp", "timestamptz"],
    "void(k)": ["int", "string", "uuid"],
}
FIELDS = [(transform, kind) for transform, kinds in TRANSFORMS.items() for kind in kinds]

# Those whose values must be found again in manifests: a bucket is a number whatever is in it.
REWRITTEN = [(transform, kind) for transform, kind in FIELDS if not transform.startswith("bucket") or kind == "uuid"]


def keyed(kind: str, first: int = 0, values: list[Any] | None = None) -> pa.Table:
    values = VALUES[kind][1] if values is None else values
    ids = pa.array(range(first, first + len(values)), pa.int64())
    return pa.table({"id": ids, "k": pa.array(values, ARROW[kind], from_pandas=False)})


def keyed_table(root: Path, kind: str, transform: str, **options: Any) -> ManagedTable:
    schema = Schema(
        NestedField(1, "id", LongType(), required=False), NestedField(2, "k", VALUES[kind][0], required=False)
    )  # fmt: skip
    return managed_table(root, schema, ["k" if transform == "identity" else transform], **options)


def internal(value: Any) -> Any:
    """A value as Iceberg's transforms take it."""
    match value:
        case dt.datetime():
            moment = value if value.tzinfo else value.replace(tzinfo=dt.UTC)
            return (moment - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)) // dt.timedelta(microseconds=1)
        case dt.date():
            return (value - dt.date(1970, 1, 1)).days
        case dt.time():
            return ((value.hour * 60 + value.minute) * 60 + value.second) * 1_000_000 + value.microsecond
        case _:
            return value


def shown(kind: str, value: Any) -> str:
    if isinstance(value, UUID):
        return str(value.bytes)
    if kind == "uuid" and isinstance(value, str):
        return str(UUID(value).bytes)
    return str(value)


class TestTransforms:
    @pytest.mark.parametrize(("transform", "kind"), FIELDS)
    def test_the_partition_of_each_row_is_what_the_transform_of_pyiceberg_says(
        self, tmp_path: Path, transform: str, kind: str
    ) -> None:
        table = keyed_table(tmp_path, kind, transform)
        iceberg, values = VALUES[kind]
        table.append(keyed(kind))
        applied = table.table.spec().fields[0].transform.transform(iceberg)
        found: dict[int, str] = {}
        for entry in entries(table):
            for i in pq.read_table(local(entry.data_file.file_path), columns=["id"])["id"].to_pylist():
                found[i] = shown(kind, entry.data_file.partition[0])
        expected = {}
        for i, value in enumerate(values):
            plain = UUID(value) if kind == "uuid" and value is not None else internal(value)
            made = applied(plain)
            if kind == "int" and transform.startswith("truncate") and made is not None:
                made = (made + 2**31) % 2**32 - 2**31  # as Java's integers do
            if kind == "long" and transform.startswith("truncate") and made is not None:
                made = (made + 2**63) % 2**64 - 2**63
            expected[i] = shown(kind, made)
        assert found == expected

    @pytest.mark.parametrize(("transform", "kind"), [*REWRITTEN, *(("shared", kind) for kind in VALUES)])
    def test_every_kind_of_write_finds_its_partitions_again(self, tmp_path: Path, transform: str, kind: str) -> None:
        shared = transform == "shared"
        table = keyed_table(tmp_path, kind, "identity" if shared else transform, coalesce=["k"] if shared else None)
        rows = keyed(kind)
        count = rows.num_rows
        table.append(rows)
        assert bag(table.arrow()) == bag(rows)
        assert sorted(table.table.scan().to_arrow()["id"].to_pylist()) == list(range(count))
        table.append(keyed(kind, 100))
        table.delete("id = 0")
        assert sorted(table.arrow()["id"].to_pylist()) == [*range(1, count), *range(100, 100 + count)]
        table.overwrite(keyed(kind, 200), dynamic=True)
        assert bag(table.arrow()) == bag(keyed(kind, 200))
        table.table.transaction().set_properties({"commit.manifest.min-count-to-merge": "2"}).commit_transaction()
        table.append(keyed(kind, 300))
        table.compact()
        table.delete("k IS NULL")
        assert table.count() == 2 * (count - 1)
        table.overwrite(keyed(kind, 400, [None]), "id >= 300")
        ids = [i for i in range(200, 200 + count) if VALUES[kind][1][i - 200] is not None]
        assert sorted(table.arrow()["id"].to_pylist()) == [*ids, 400]
        assert sorted(table.table.scan().to_arrow()["id"].to_pylist()) == [*ids, 400]

    @pytest.mark.parametrize("kind", ["float", "double"])
    def test_nan_is_one_partition_and_both_zeros_are_one(self, tmp_path: Path, kind: str) -> None:
        for coalesce in (None, ["k"]):
            table = keyed_table(tmp_path / str(coalesce), kind, "identity", coalesce=coalesce)
            table.append(keyed(kind, 0, [NAN, 0.0, -0.0, 1.5]))
            table.append(keyed(kind, 10, [NAN, -0.0, 1.5]))
            table.overwrite(keyed(kind, 20, [NAN, 0.0]), dynamic=True)
            assert sorted(table.arrow()["id"].to_pylist()) == [3, 12, 20, 21]
            assert table.arrow("k = 0")["id"].to_pylist() == [21]
            assert table.arrow("isnan(k)")["id"].to_pylist() == [20]

    def test_partitions_travel_to_other_machines(self, table: ManagedTable) -> None:
        sent = pickle.loads(pickle.dumps(ByPartition(None, {(float("nan"), 1)})))  # type: ignore[arg-type]
        assert sent.tuples == ByPartition(None, {(float("nan"), 1)}).tuples  # type: ignore[arg-type]

    def test_a_field_of_a_struct_and_odd_names_are_partitioned_by(self, tmp_path: Path) -> None:
        inner = pa.struct([("app", pa.string()), ("ts", pa.timestamp("us", "UTC")), (".dot", pa.string())])
        moment = dt.datetime(1969, 12, 31, 23, tzinfo=dt.UTC)
        rows = pa.table(
            {
                "id": list(range(4)),
                "s": pa.array(
                    [{"app": "a", "ts": moment, ".dot": "x"}, None, {"app": None, "ts": None, ".dot": None},
                     {"app": "b", "ts": moment, ".dot": "x"}], inner),
                "Näme with space": ["u", "v", None, "u"],
                "a.b": ["1", "2", "1", None],
                "1st-column": pa.array([1, 2, 1, 2], pa.int32()),
            }
        )  # fmt: skip
        by = ["s.app", "day(s.ts)", "Näme with space", "a.b", "bucket(4, 1st-column)"]
        table = managed_table(tmp_path, rows.schema, by, coalesce=["Näme with space", "a.b"])
        table.append(rows)
        assert bag(table.arrow()) == bag(rows)
        found = {tuple(entry.data_file.partition._data)[:2] for entry in entries(table)}
        assert found == {("a", -1), (None, None), ("b", -1)}
        assert sorted(table.arrow("`a.b` = '1'")["id"].to_pylist()) == [0, 2]
        table.delete("`Näme with space` = 'u' AND `1st-column` = 1")
        assert sorted(table.arrow()["id"].to_pylist()) == [1, 2, 3]
        table.overwrite(rows.slice(1, 1), dynamic=True)
        assert sorted(table.arrow()["id"].to_pylist()) == [1, 2, 3]
        assert sorted(table.table.scan().to_arrow()["id"].to_pylist()) == [1, 2, 3]

    @pytest.mark.parametrize(
        ("by", "said"),
        [
            ("nope", "no column 'nope'"),
            ("bucket(4, x)", "x is a double, which has no bucket"),
            ("day(app)", "app is a string, which has no day"),
            ("bucket(0, id)", "takes a number and a column"),
            ("week(id)", "no transform 'week'"),
            ("tags", "which has no identity"),
        ],
    )
    def test_a_partition_field_that_cannot_be_is_a_clear_error(self, tmp_path: Path, by: str, said: str) -> None:
        with pytest.raises(SchemaError, match=said):
            managed_table(tmp_path, EVENTS, [by])
        assert penstock.connect(tmp_path).tables() == []


class TestStatistics:
    """What manifests say of a file is what is in it."""

    def check(self, table: ManagedTable) -> None:
        schema = table.table.schema()
        for entry in entries(table):
            file = entry.data_file
            read = pq.read_table(local(file.file_path))
            assert file.record_count == read.num_rows
            assert file.file_size_in_bytes == Path(local(file.file_path)).stat().st_size
            for field in schema.fields:
                values = [internal(value) for value in read[field.name].to_pylist()]
                self.check_column(file, field, values)

    def check_column(self, file: Any, field: Any, values: list[Any]) -> None:
        there = [value for value in values if value is not None]
        nans = [value for value in there if isinstance(value, float) and math.isnan(value)]
        numbers = [value for value in there if value not in nans]
        i = field.field_id
        assert file.value_counts[i] == len(values)
        assert file.null_value_counts[i] == len(values) - len(there)
        if isinstance(field.field_type, FloatType | DoubleType):
            assert file.nan_value_counts[i] == len(nans)
        else:
            assert i not in file.nan_value_counts
        lower, upper = (file.lower_bounds or {}).get(i), (file.upper_bounds or {}).get(i)
        if not numbers:
            assert lower is None
            assert upper is None
            return
        if isinstance(numbers[0], UUID):
            numbers = [value.bytes for value in numbers]
        low = None if lower is None else internal(from_bytes(field.field_type, lower))
        high = None if upper is None else internal(from_bytes(field.field_type, upper))
        assert low is None or (low.bytes if isinstance(low, UUID) else low) <= min(numbers)
        assert high is None or (high.bytes if isinstance(high, UUID) else high) >= max(numbers)
        if isinstance(field.field_type, StringType | BinaryType):
            assert low is not None
            assert min(numbers).startswith(low)
            if len(max(numbers)) <= 16:
                assert high == max(numbers)
        elif not isinstance(field.field_type, FixedType | UUIDType):
            assert (low, high) == (min(numbers), max(numbers)), field

    @pytest.mark.parametrize("kind", VALUES)
    @pytest.mark.parametrize("shared", [False, True])
    def test_bounds_and_counts_hold_for_values_of_every_type(self, tmp_path: Path, kind: str, shared: bool) -> None:
        schema = Schema(
            NestedField(1, "id", LongType(), required=False),
            NestedField(2, "k", VALUES[kind][0], required=False),
            NestedField(3, "app", StringType(), required=False),
        )
        table = managed_table(tmp_path, schema, ["app"], coalesce=["app"] if shared else None)
        values = VALUES[kind][1]
        table.append(keyed(kind).append_column("app", pa.array(["a"] * len(values))))
        alone = [keyed(kind, i, [v, v]).append_column("app", pa.array([f"b{i}"] * 2)) for i, v in enumerate(values)]
        table.append(pa.concat_tables(alone))
        self.check(table)
        table.compact()
        self.check(table)
        table.delete("id = 0")
        self.check(table)
        assert table.table.scan().to_arrow().num_rows == table.count() == 3 * len(values) - 2

    @pytest.mark.parametrize(
        "values",
        [
            ["a" * 16, "a" * 17, "a" * 40],
            ["a" * 15 + "\U0010ffff" * 3],
            ["\U0010ffff" * 16],
            ["\U0010ffff" * 17],
            ["\ud7ff" * 17],
            ["b", "\U0010ffff" * 20, "a" * 40],
            ["", "\0", "\0" * 20],
        ],
    )
    def test_a_long_string_is_found_though_its_bounds_are_cut(self, tmp_path: Path, values: list[str]) -> None:
        table = managed_table(tmp_path, "id bigint, k string")
        table.append(keyed("string", 0, values))
        self.check(table)
        for i, value in enumerate(values):
            text = value.replace("\0", "\\0")
            assert table.arrow(f"k >= '{text}' AND k <= '{text}'")["id"].to_pylist() == [i]

    @pytest.mark.parametrize("values", [[b"\xff" * 16], [b"\xff" * 17], [b"a" * 15 + b"\xff\xff"], [b"\x00" * 17, b""]])
    def test_a_long_binary_is_found_though_its_bounds_are_cut(self, tmp_path: Path, values: list[bytes]) -> None:
        table = managed_table(tmp_path, "id bigint, k binary")
        table.append(keyed("binary", 0, values))
        self.check(table)
        for i, value in enumerate(values):
            text = f"X'{value.hex()}'"
            assert table.arrow(f"k >= {text} AND k <= {text}")["id"].to_pylist() == [i]

    @pytest.mark.parametrize("values", [[-0.0], [0.0], [0.0, -0.0], [NAN], [NAN, None], [NAN, 1.0], [None]])
    def test_zeros_and_nan_are_found_by_their_bounds_and_counts(
        self, tmp_path: Path, values: list[float | None]
    ) -> None:
        table = managed_table(tmp_path, "id bigint, k double")
        table.append(keyed("double", 0, values))
        self.check(table)
        found = {
            where: table.count(where) for where in ("k = 0", "k = -0.0D", "isnan(k)", "k > 5", "k IS NULL", "k < 5")
        }
        zeros = sum(value == 0 for value in values)
        nans = sum(value is not None and math.isnan(value) for value in values)
        nulls = values.count(None)
        small = len(values) - nans - nulls
        assert found == {
            "k = 0": zeros, "k = -0.0D": zeros, "isnan(k)": nans, "k > 5": nans, "k IS NULL": nulls, "k < 5": small,
        }  # fmt: skip

    def test_the_summary_of_a_snapshot_counts_what_there_is(self, table: ManagedTable) -> None:
        table.append(events(10))
        table.delete("app = 'a'")
        table.compact()
        told = table.table.metadata.current_snapshot().summary.additional_properties
        assert int(told["total-records"]) == table.count() == 4
        assert int(told["total-data-files"]) == len(list(entries(table)))
        assert int(told["total-files-size"]) == sum(e.data_file.file_size_in_bytes for e in entries(table))


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
        assert table.arrow("app = 'c'")["id"].to_pylist() == [2, 12]

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

    def test_uuids_are_taken_as_text_as_octets_and_as_arrows_own(self, tmp_path: Path) -> None:
        table = managed_table(tmp_path, Schema(NestedField(1, "u", UUIDType())), ["u"])
        one = UUID(int=7)
        table.append(pa.table({"u": [str(one)]}))
        table.append(pa.table({"u": pa.array([one.bytes], pa.binary(16))}))
        table.append(pa.table({"u": pa.array([one.bytes], pa.uuid())}))
        assert table.arrow()["u"].to_pylist() == [str(one)] * 3
        assert len(table.plan(f"u = '{one}'").files) == 3


class Full:
    """A disk that takes so many octets and no more."""

    def __init__(self, room: int) -> None:
        self.room = room
        self._lock = threading.Lock()

    def take(self, octets: int) -> None:
        with self._lock:
            if octets > self.room:
                self.room = 0
                raise OSError(errno.ENOSPC, "No space left on device")
            self.room -= octets


class OnAFullDisk:
    """A stream to a file of that disk."""

    closed = False

    def __init__(self, inner: Any, disk: Full) -> None:
        self._inner, self._disk = inner, disk

    def write(self, data: Any) -> int:
        self._disk.take(len(memoryview(data)))
        return int(self._inner.write(data) or len(memoryview(data)))

    def flush(self) -> None:
        self._inner.flush()

    def tell(self) -> int:
        return int(self._inner.tell())

    def close(self) -> None:
        self.closed = True
        self._inner.close()

    def readable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return False

    def writable(self) -> bool:
        return True

    def __enter__(self) -> OnAFullDisk:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Full]:
    found = Full(1 << 40)
    create = PyArrowFile.create

    def full(self: PyArrowFile, overwrite: bool = False) -> Any:
        made = OnAFullDisk(create(self, overwrite), found)
        return pa.PythonFile(made, mode="w") if self.location.endswith(".parquet") else made

    monkeypatch.setattr(PyArrowFile, "create", full)
    yield found
    monkeypatch.undo()


WRITES: dict[str, Callable[[ManagedTable], Any]] = {
    "append": lambda table: table.append(events(10, "abcdefgh")),
    "overwrite where": lambda table: table.overwrite(events(10), "id = 1"),
    "overwrite dynamic": lambda table: table.overwrite(events(10, "b"), dynamic=True),
    "delete": lambda table: table.delete("id = 1"),
    "compact": lambda table: table.compact(),
}


class TestFailures:
    @pytest.mark.parametrize("write", WRITES)
    def test_a_full_disk_leaves_the_table_and_the_folder_as_they_were(
        self, tmp_path: Path, disk: Full, write: str
    ) -> None:
        table = managed_table(tmp_path, EVENTS, ["app"], coalesce=Coalesce("app", values=["a", "b"]))
        table.append(events())
        table.append(events(4))
        rows, before = bag(table.arrow()), files_below(tmp_path)
        failed = room = 0
        while True:
            disk.room = room
            try:
                WRITES[write](table)
                break
            except UnknownOutcomeError:  # the catalog itself could not write: it may not be known what it did
                assert any(path.endswith(".metadata.json") for path in files_below(tmp_path) - before)
                before = files_below(tmp_path)
            except (OSError, penstock.PenstockError):
                assert files_below(tmp_path) == before, room
            failed += 1
            disk.room = 1 << 40
            assert bag(reopened(tmp_path).arrow()) == rows, room
            room += 1_301
        assert failed > 5, "the disk was never full"
        disk.room = 1 << 40
        table.refresh()
        table.sweep(older_than=dt.timedelta(0), force=True)
        assert files_below(tmp_path) == reachable(table)

    def test_a_writer_that_is_behind_appends_without_loss(self, table: ManagedTable, tmp_path: Path) -> None:
        behind = [reopened(tmp_path) for _ in range(4)]
        table.append(events(10))
        behind[0].append(events(20))
        behind[1].delete("app = 'a'")
        behind[2].overwrite(events(30, "b"), dynamic=True)
        behind[3].set_coalesce(None)
        table.append(events(40, "a"))
        assert sorted(table.arrow()["id"].to_pylist()) == [2, 12, 22, 30, 40]
        assert table.coalesce is None

    @pytest.mark.parametrize("write", WRITES)
    def test_a_commit_whose_answer_gets_lost_is_recognised(
        self, table: ManagedTable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write: str
    ) -> None:
        table.append(events(4))
        twin = managed_table(tmp_path / "twin", EVENTS, ["app"], coalesce=["app"])
        twin.append(events())
        twin.append(events(4))
        WRITES[write](twin)
        commit = SqlCatalog.commit_table

        def lost(self: SqlCatalog, *args: Any) -> Any:
            commit(self, *args)
            raise ConnectionResetError("the connection was reset")

        monkeypatch.setattr(SqlCatalog, "commit_table", lost)
        WRITES[write](table)
        monkeypatch.undo()
        assert bag(reopened(tmp_path).arrow()) == bag(twin.arrow()) == bag(table.arrow())
        assert len(snapshot_ids(table)) == 3
        assert files_below(tmp_path) - files_below(tmp_path / "twin") == reachable(table)

    @pytest.mark.parametrize("write", WRITES)
    def test_a_catalog_that_is_gone_is_a_clear_error_and_no_file_of_the_table_is_lost(
        self, table: ManagedTable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write: str
    ) -> None:
        table.append(events(4))
        rows = bag(table.arrow())

        def gone(self: SqlCatalog, *args: Any) -> Any:
            raise ConnectionResetError("the connection was reset")

        monkeypatch.setattr(SqlCatalog, "commit_table", gone)
        with pytest.raises(LakeError, match="the connection was reset"):
            WRITES[write](table)
        monkeypatch.undo()
        assert bag(reopened(tmp_path).arrow()) == rows
        assert reachable(table) <= files_below(tmp_path)

    def test_a_data_file_that_is_gone_is_a_clear_error_and_nothing_changes(
        self, table: ManagedTable, tmp_path: Path
    ) -> None:
        table.append(events(10))
        (path,) = [local(task.path) for task in table.plan("id = 10").files]
        Path(path).unlink()
        before = files_below(tmp_path)
        for write in (lambda: table.delete("id = 10"), lambda: table.overwrite(events(20), "id = 10")):
            with pytest.raises(StorageError, match="does not exist"):
                write()
        assert files_below(tmp_path) == before
        table.delete("id >= 10")  # needs no row of it
        assert bag(table.arrow()) == bag(events())
