"""Where rows of managed tables are put, and what manifests say of them."""

from __future__ import annotations

import datetime as dt
import math
import pickle
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.conversions import from_bytes
from pyiceberg.schema import Schema
from pyiceberg.types import (
    BinaryType,
    DoubleType,
    FixedType,
    FloatType,
    LongType,
    NestedField,
    StringType,
    UUIDType,
)

import penstock
from penstock.errors import SchemaError
from penstock.lake.managed_table import ManagedTable
from penstock.lake.write.removal import ByPartition
from tests.fixtures.managed_tables import (
    bag,
    entries,
    local,
    managed_table,
)
from tests.fixtures.managed_values import (
    EVENTS,
    FIELDS,
    NAN,
    REWRITTEN,
    VALUES,
    events,
    events_table,
    internal,
    keyed,
    keyed_table,
    shown,
)


@pytest.fixture
def table(tmp_path: Path) -> ManagedTable:
    return events_table(tmp_path)


FIRST_KIND = dict(reversed(REWRITTEN))
EACH_TRANSFORM_ONCE = [
    pytest.param(transform, kind, marks=[] if FIRST_KIND[transform] == kind else [pytest.mark.slow])
    for transform, kind in REWRITTEN
]
IN_EVERY_RUN = ("int", "double", "wide decimal", "timestamptz", "string", "uuid")
SHARED = [pytest.param("shared", kind, marks=[] if kind in IN_EVERY_RUN else [pytest.mark.slow]) for kind in VALUES]


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

    @pytest.mark.parametrize(("transform", "kind"), [*EACH_TRANSFORM_ONCE, *SHARED])
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
