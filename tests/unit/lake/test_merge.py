"""MERGE, upsert and UPDATE without Spark: what becomes of rows, which files are opened and rewritten, and bad input."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import penstock
from penstock.errors import EvaluationError, LakeError, PredicateError, SchemaError
from penstock.expr.kernels.evaluate import filter_mask
from penstock.expr.tree import Or
from penstock.lake.write import merge_keys, rewrite
from penstock.lake.write.rewrite import Rewrite
from penstock.tables.iceberg.scan.reader import Reader
from tests.fixtures.managed_tables import files_below
from tests.fixtures.processes import wait_until

SCHEMA = "id bigint, app string, n int, price double"
KINDS: dict[str, dict[str, Any]] = {
    "plain": {},
    "partitioned": {"partition_by": ["app"]},
    "bucketed": {"partition_by": ["bucket(4, id)"]},
    "coalesced": {"partition_by": ["app"], "coalesce": ["app"]},
}


def rows(*ids: int, app: str = "a", n: int = 0) -> pa.Table:
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "app": [app] * len(ids),
            "n": pa.array([n] * len(ids), pa.int32()),
            "price": [float(i) for i in ids],
        }
    )


def shown(table: Any) -> list[tuple[Any, ...]]:
    return sorted((tuple(row.values()) for row in table.arrow().to_pylist()), key=repr)


@pytest.fixture(params=KINDS)
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    made = penstock.connect(tmp_path / "lake").create_table("web.t", SCHEMA, **KINDS[request.param])
    made.append(rows(1, 2, 3))
    made.append(rows(4, 5, app="b"))
    return made


def paths(table: Any) -> set[str]:
    return set(table.plan().files.paths.to_pylist())


def test_upsert_updates_rows_that_are_there_and_adds_the_others(table: Any) -> None:
    result = table.upsert(pa.concat_tables([rows(2, n=7), rows(9, app="c", n=7)]), on="id")
    assert shown(table) == [
        (1, "a", 0, 1.0),
        (2, "a", 7, 2.0),
        (3, "a", 0, 3.0),
        (4, "b", 0, 4.0),
        (5, "b", 0, 5.0),
        (9, "c", 7, 9.0),
    ]
    assert (result.rows_added, result.rows_updated, result.rows_removed) == (1, 1, 0)
    assert result.snapshot_id == table.version.snapshot_id
    assert str(result).startswith("1 row added, 1 row updated")


def test_upsert_opens_and_rewrites_only_files_that_have_a_match(tmp_path: Path) -> None:
    table = penstock.connect(tmp_path / "lake").create_table("web.t", SCHEMA)
    for start in range(0, 100, 10):
        table.append(rows(*range(start, start + 10)))
    before = paths(table)
    result = table.upsert(rows(33, 37, 58, n=1), on="id")
    assert len(before & paths(table)) == 8
    assert (result.files_removed, result.files_added, result.rows_updated) == (2, 2, 3)


def test_a_file_that_cannot_be_rewritten_leaves_nothing_of_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = penstock.connect(tmp_path / "lake").create_table("web.t", SCHEMA)
    for start in range(0, 100, 10):
        table.append(rows(*range(start, start + 10)))
    first = next(iter(table.plan().files)).path
    files, ended, file = files_below(tmp_path), list[str](), Rewrite.file

    def failing(work: Rewrite, task: Any) -> Any:
        if task.path != first:
            rewritten = file(work, task)
            ended.append(task.path)
            return rewritten
        wait_until(lambda: len(ended) > 2)
        raise LakeError("the disk is full")

    monkeypatch.setattr(Rewrite, "file", failing)
    with pytest.raises(LakeError, match="the disk is full"):
        table.update({"n": 1}, where="true")
    assert files_below(tmp_path) == files


def test_files_are_read_once_when_small_else_the_keys_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = penstock.connect(tmp_path / "lake").create_table("web.t", SCHEMA)
    table.append(rows(1, 2, 3))
    reads, numbered = list[list[str]](), Reader.numbered

    def noted(reader: Reader, task: Any, names: Any) -> Any:
        reads.append(list(names))
        return numbered(reader, task, names)

    monkeypatch.setattr(Reader, "numbered", noted)
    table.upsert(rows(2), on="id")
    monkeypatch.setattr(rewrite, "_GLANCED_BYTES", 0)
    table.upsert(rows(2), on="id")
    table.merge(rows(2), on="id").when_not_matched_insert().execute()
    columns = ["id", "app", "n", "price"]
    assert reads == [columns, ["id"], columns, ["id"]]


def test_rows_move_to_the_partition_of_their_new_values(tmp_path: Path) -> None:
    table = penstock.connect(tmp_path / "lake").create_table("web.t", SCHEMA, ["app"])
    for app in ("a", "b", "c"):
        table.append(rows(*range(10 * ord(app), 10 * ord(app) + 5), app=app))
    result = table.update({"app": "'z'"}, where="id % 5 = 0")
    assert [(row["app"], row["rows"]) for row in table.partitions().select(["app", "rows"]).to_pylist()] == [
        ("a", 4),
        ("b", 4),
        ("c", 4),
        ("z", 3),
    ]
    assert table.count("app = 'z'") == 3
    # three files without the row, and one for all rows that moved
    assert (result.rows_updated, result.files_removed, result.files_added) == (3, 3, 4)


def test_update_of_a_coalesced_table_keeps_its_record(tmp_path: Path) -> None:
    table = penstock.connect(tmp_path / "lake").create_table("web.t", SCHEMA, ["app"], coalesce=["app"])
    table.append(pa.concat_tables([rows(i, app=f"app{i}") for i in range(20)]))
    assert len(paths(table)) == 1
    table.update({"n": "n + 5"}, where="app = 'app3'")
    assert len(paths(table)) == 1
    assert len(table.plan("app = 'none'").files) == 0
    assert (3, "app3", 5, 3.0) in shown(table)
    assert len(table.partitions()) == 20


def test_update_evaluates_expressions_on_old_values(table: Any) -> None:
    result = table.update({"n": "CAST(id AS int) * 2", "price": "n + 0.5", "app": None}, where="id >= 4")
    assert shown(table)[3:] == [(4, None, 8, 0.5), (5, None, 10, 0.5)]
    assert result.rows_updated == 2
    assert table.update({"n": 1}, where="id > 100").snapshot_id is None


def test_clauses_are_tried_in_their_order(table: Any) -> None:
    source = pa.table({"id": [1, 2, 3, 8, 9], "kind": ["drop", "add", "set", "new", "skip"], "v": [10, 20, 30, 80, 90]})
    result = (
        table.merge(source, on="id")
        .when_matched_delete(where="source.kind = 'drop'")
        .when_matched_update({"n": "n + CAST(source.v AS int)"}, where="source.kind = 'add'")
        .when_matched_update({"n": "-1", "price": "target.price * 2"})
        .when_not_matched_insert({"id": "id", "app": "upper(source.kind)"}, where="kind = 'new'")
        .when_not_matched_by_source_update({"app": "'left'"}, where="id = 4")
        .when_not_matched_by_source_delete()
        .execute()
    )
    assert shown(table) == [(2, "a", 20, 2.0), (3, "a", -1, 6.0), (4, "left", 0, 4.0), (8, "NEW", None, None)]
    assert (result.rows_added, result.rows_updated, result.rows_removed) == (1, 3, 2)


def test_several_key_columns_with_other_names_and_null(tmp_path: Path) -> None:
    table = penstock.connect(tmp_path / "lake").create_table("web.t", SCHEMA)
    table.append(pa.concat_tables([rows(1, 2), rows(1, 2, app="b")]))
    table.append(rows(7).set_column(1, "app", pa.array([None], pa.string())))
    source = pa.table({"key": [1, 7], "part": ["b", None], "n": pa.array([5, 6], pa.int32())})
    result = (
        table.merge(source, on={"id": "key", "app": "part"})
        .when_matched_update({"n": "source.n"})
        .when_not_matched_insert({"id": "key", "app": "'new'"})
        .execute()
    )
    assert [row for row in shown(table) if row[2] == 5] == [(1, "b", 5, 1.0)]
    assert (result.rows_added, result.rows_updated) == (1, 1)  # NULL is the key of nothing


def test_a_row_that_two_rows_meet_is_an_error_before_anything_is_written(table: Any) -> None:
    before, snapshot = paths(table), table.version.snapshot_id
    with pytest.raises(LakeError, match=r"a row of web.t is met by several of the rows \(id = 4\)"):
        table.upsert(rows(4, 4, 9), on="id")
    assert (paths(table.refresh()), table.version.snapshot_id) == (before, snapshot)
    assert len(list(Path(table.table.location().removeprefix("file://")).rglob("*.parquet"))) == len(before)
    table.upsert(rows(9, 9), on="id")  # which meet no row
    assert table.count("id = 9") == 2


def test_inserts_alone_read_only_the_keys(table: Any) -> None:
    before = paths(table)
    result = table.merge(rows(4, 6), on="id").when_not_matched_insert().execute()
    assert before < paths(table)
    assert (result.rows_added, result.files_removed) == (1, 0)
    assert table.merge(rows(4, 6), on="id").when_not_matched_insert().execute().snapshot_id is None


@pytest.mark.parametrize("kind", ["float", "double"])
def test_keys_of_floats_meet_as_in_spark(tmp_path: Path, kind: str) -> None:
    table = penstock.connect(tmp_path / "lake").create_table("web.t", f"k {kind}, n int")
    to = pa.float32() if kind == "float" else pa.float64()
    table.append(pa.table({"k": pa.array([0.0, float("nan"), 1.5], to), "n": pa.array([1, 2, 3], pa.int32())}))
    source = pa.table({"k": pa.array([-0.0, float("nan"), None], to), "n": pa.array([10, 20, 30], pa.int32())})
    result = table.upsert(source, on="k")
    assert (result.rows_added, result.rows_updated) == (1, 2)
    assert sorted(table.arrow().column("n").to_pylist()) == [3, 10, 20, 30]


@pytest.mark.parametrize(
    "values",
    [
        pa.array([-(2**63), -7, -6, 5, 90, 91, 92, 2**63 - 1]),
        pa.array([-128, -1, 0, 1, 127, None], pa.int8()),
        pa.array([-1, 0, 19_000], pa.date32()),
        pa.array([0, 1, 2, 10**15], pa.timestamp("us", tz="UTC")),
        pa.array(["a", "b", "z"]),
        pa.array([-1.5, 0.0, float("nan")]),
    ],
    ids=lambda values: str(values.type),
)
def test_many_keys_are_looked_for_by_ranges_without_the_widest_gaps(
    values: pa.Array, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(merge_keys, "_MOST_VALUES", 2)
    for most in (1, 3, 50):
        monkeypatch.setattr(merge_keys, "_MOST_RANGES", most)
        predicate = merge_keys.MergeKeys(pa.table({"k": values})).predicate()
        assert filter_mask(predicate, pa.table({"k": values})).drop_null().to_pylist() == [True] * len(
            values.drop_null()
        )
        ranges = len(predicate.children) if isinstance(predicate, Or) else 1
        assert ranges <= most
        assert ranges > 1 or most == 1 or str(values.type) in ("string", "double")
    if values.type == pa.int64():
        monkeypatch.setattr(merge_keys, "_MOST_RANGES", 4)
        predicate = merge_keys.MergeKeys(pa.table({"k": values})).predicate()
        between = pa.table({"k": [-(2**63) + 1, -8, 0, 40, 93, 2**63 - 2]})
        assert filter_mask(predicate, between).to_pylist() == [False, False, True, False, False, False]


def test_another_writer_in_between_is_merged_too(table: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from penstock.lake.write.merge import Merge

    inserts, others = Merge.inserts, iter([rows(9, app="b")])

    def slow(self: Merge, matched: Any) -> Any:
        for each in others:
            penstock.connect(table.declarations.warehouse).table("web.t").append(each)
        return inserts(self, matched)

    monkeypatch.setattr(Merge, "inserts", slow)
    result = table.upsert(rows(9, n=3), on="id")
    assert [row for row in shown(table) if row[0] == 9] == [(9, "a", 3, 9.0)]
    assert (result.rows_updated, result.rows_added, result.retries) == (1, 0, 1)


def test_bad_input_is_one_clear_line(table: Any) -> None:
    before = table.version.snapshot_id
    cases: list[tuple[type[Exception], str, Any]] = [
        (SchemaError, "no column 'idd' in the table", lambda: table.upsert(rows(1), on="idd")),
        (SchemaError, "no column 'k' in the rows", lambda: table.upsert(rows(1), on={"id": "k"})),
        (LakeError, "needs key columns", lambda: table.upsert(rows(1), on=[])),
        (LakeError, "no clauses", lambda: table.merge(rows(1), on="id").execute()),
        (SchemaError, "no column 'm'", lambda: table.update({"m": "1"})),
        (SchemaError, "is a int, and", lambda: table.update({"n": "app"})),
        (SchemaError, "which 'x' does not fit|does not fit", lambda: table.update({"n": b"x"})),
        (EvaluationError, "no_such", lambda: table.update({"n": "no_such(n)"})),
        (EvaluationError, "divide|zero", lambda: table.update({"n": "1 / (n - n)"})),
        (PredicateError, "nope", lambda: table.update({"n": "nope"})),
        (LakeError, "no columns are assigned", lambda: table.update({})),
        (LakeError, "rows are a Spark DataFrame", lambda: table.upsert(3, on="id")),
        (SchemaError, "no column 'x' in the table", lambda: table.upsert(rows(1).append_column("x", [[1]]), on="id")),
        (SchemaError, "key id is a bigint", lambda: table.upsert(pa.table({"id": ["1"]}), on="id")),
    ]
    for kind, message, call in cases:
        with pytest.raises(kind, match=message) as raised:
            call()
        assert len(str(raised.value).splitlines()) == 1 or kind is PredicateError, message
    assert table.refresh().version.snapshot_id == before


@pytest.fixture(params=["plain", "partitioned", "coalesced"])
def marking(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    modes = {f"write.{command}.mode": "merge-on-read" for command in ("delete", "update", "merge")}
    made = penstock.connect(tmp_path / "lake").create_table("web.t", SCHEMA, properties=modes, **KINDS[request.param])
    made.append(rows(1, 2, 3))
    made.append(rows(4, 5, app="b"))
    return made


def test_merge_on_read_leaves_files_and_marks_rows(marking: Any) -> None:
    before = paths(marking)
    result = marking.delete("id IN (2, 5)")
    assert paths(marking) == before
    assert (result.rows_removed, result.files_removed, result.rows_added) == (2, 0, 0)
    assert [row[0] for row in shown(marking)] == [1, 3, 4]
    result = marking.update({"n": "n + 8", "app": "'moved'"}, where="id > 2")
    assert before < paths(marking)
    assert (result.rows_updated, result.rows_removed, result.files_removed) == (2, 0, 0)
    result = marking.upsert(pa.concat_tables([rows(3, n=1), rows(7, n=1)]), on="id")
    assert (result.rows_updated, result.rows_added, result.files_removed) == (1, 1, 0)
    wanted = [(1, "a", 0, 1.0), (3, "a", 1, 3.0), (4, "moved", 8, 4.0), (7, "a", 1, 7.0)]
    assert shown(marking) == wanted
    marking.delete("app = 'moved'")
    assert shown(marking) == [*wanted[:2], wanted[3]]
    marking.compact()
    assert shown(marking) == [*wanted[:2], wanted[3]]
    assert not any(task.deletes for task in marking.plan().files)
    counted = marking.table.current_snapshot().summary.additional_properties
    assert (counted["total-records"], counted["total-delete-files"]) == ("3", "0")


def test_rows_that_are_marked_are_gone_for_other_readers(marking: Any) -> None:
    marking.delete("id = 2")
    marking.update({"n": 5}, where="id = 4")
    wanted = sorted((row["id"], row["n"]) for row in marking.arrow().to_pylist())
    theirs = marking.table.scan(selected_fields=("id", "n")).to_arrow().to_pylist()
    assert sorted((row["id"], row["n"]) for row in theirs) == wanted


def test_a_marked_file_that_another_writer_rewrites_is_planned_again(
    marking: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from penstock.lake.write import changed_files

    write, others = changed_files.write_position_deletes, iter(["id = 1"])

    def slow(*arguments: Any) -> Any:
        for each in others:
            other = penstock.connect(marking.declarations.warehouse).table("web.t")
            other.set_properties({"write.delete.mode": "copy-on-write"})
            other.delete(each)
        return write(*arguments)

    monkeypatch.setattr(changed_files, "write_position_deletes", slow)
    result = marking.delete("id = 2")
    assert [row[0] for row in shown(marking)] == [3, 4, 5]
    assert (result.rows_removed, result.retries) == (1, 1)


def test_rows_that_are_gone_already_are_not_counted_when_their_file_goes(marking: Any) -> None:
    marking.delete("id = 2")
    result = marking.overwrite(rows(9), where="app = 'a'")
    assert (result.rows_removed, result.rows_added) == (2, 1)
    assert [row[0] for row in shown(marking)] == [4, 5, 9]


def test_files_of_a_year_that_python_does_not_have_are_marked(tmp_path: Path) -> None:
    """Delete files are matched with data files by partitions, whose values need not fit a `datetime.date`."""
    made = penstock.connect(tmp_path).create_table(
        "web.t", "id bigint, d date", ["d"], properties={"write.delete.mode": "merge-on-read"}
    )
    made.append(pa.table({"id": [1, 2, 3], "d": pa.array([4_000_000, 4_000_000, 0], pa.int32()).cast(pa.date32())}))
    assert made.delete("id = 2").files_removed == 0
    assert sorted(made.arrow(columns=["id"])["id"].to_pylist()) == [1, 3]
