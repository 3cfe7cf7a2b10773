"""Plans and reports over an in-memory table: what people and machines are told."""

import datetime as dt
import json

import pyarrow as pa
import pytest

from penstock import MemoryTable
from penstock.errors import EvaluationError, PenstockError, SchemaError
from penstock.expr.bind import bind_text
from penstock.expr.kernels.evaluate import filter_table
from penstock.prune.verdict import Verdict


def moment(day: int, hour: int = 0) -> dt.datetime:
    return dt.datetime(2026, 5, day, hour, tzinfo=dt.UTC)


ROWS = pa.table(
    {
        "ts": pa.array([moment(16, 23), moment(17, 8), moment(17, 9), moment(18), None], pa.timestamp("us", "UTC")),
        "app": ["shop", "shop", "blog", "shop", None],
        "user_id": [1, 2, 3, 4, None],
        "score": [0.5, float("nan"), -0.0, None, 2.0],
    }
)


@pytest.fixture(scope="module")
def events() -> MemoryTable:
    return MemoryTable.from_rows(ROWS, partition_by=["day(ts)", "app"])


@pytest.mark.parametrize(
    ("where", "kept", "whole"),
    [
        ("app = 'shop'", 3, 3),
        ("app = 'shop' AND ts >= '2026-05-17' AND ts < '2026-05-18'", 1, 1),
        ("cast(ts AS date) = '2026-05-17'", 2, 2),
        ("year(ts) = 2025", 0, 0),
        ("app IS NULL", 1, 1),
        ("app <> 'shop'", 1, 1),
        ("NOT (app = 'shop')", 1, 1),
        ("coalesce(app, 'none') = 'none'", 1, 1),
        ("user_id > 3 OR app = 'blog'", 2, 2),
        ("score > 1e300", 1, 1),
        ("score = 0", 1, 1),
        ("score >= 0", 4, 4),
        ("score IS NOT NULL", 4, 4),
        ("TRUE", 5, 5),
        ("FALSE", 0, 0),
        ("app IN ('shop', NULL)", 3, 3),
        ("NOT (app IN ('shop', NULL))", 0, 0),
    ],
)
def test_same_rows_as_without_pruning_and_exactly_these_files(
    events: MemoryTable, where: str, kept: int, whole: int
) -> None:
    plan = events.plan(where)
    assert (len(plan.files), plan.report.files.whole) == (kept, whole)
    full = filter_table(bind_text(where, events.schema), events.rows())
    assert str(events.arrow(where).to_pylist()) == str(full.to_pylist())  # as text, in which NaN equals itself


def test_without_a_predicate_everything_is_kept_whole(events: MemoryTable) -> None:
    plan = events.plan()
    assert {file.verdict for file in plan.files} == {Verdict.KEEP_WHOLE}
    assert events.arrow().num_rows == ROWS.num_rows


def test_a_file_task_tells_where_it_lies_and_what_that_implies(events: MemoryTable) -> None:
    (file,) = events.plan("app = 'blog'").files
    day = file.partition["ts_day"]
    assert (day.source, day.transform, day.value) == ("ts", "day", dt.date(2026, 5, 17))
    assert (day.lower, day.upper) == (moment(17), moment(18))
    assert file.partition["app"].value == "blog"
    assert (file.rows, file.path, str(file.residual)) == (1, "memory:2", "TRUE")


def test_files_can_be_sliced_and_indexed_from_the_end(events: MemoryTable) -> None:
    files = events.plan().files
    assert [file.path for file in files[1:3]] == ["memory:1", "memory:2"]
    assert files[-1].path == "memory:4"
    assert files.paths.to_pylist() == [f"memory:{i}" for i in range(5)]
    with pytest.raises(IndexError, match="file 5 of 5"):
        files[5]


def test_the_residual_is_what_the_partition_does_not_prove() -> None:
    rows = pa.table({"app": ["a", "a", "b"], "n": [1, 9, 5]})
    table = MemoryTable.from_rows(rows, ["app"])
    plan = table.plan("app = 'a' AND (app = 'b' OR n > 3)")
    assert [str(file.residual) for file in plan.files] == ["n > 3"]
    assert str(plan.residual) == "n > 3"


def test_the_report_counts_with_denominators_and_is_json(events: MemoryTable) -> None:
    plan = events.plan("app = 'shop' AND user_id = 2 AND checksum(app) = 1")
    found = json.loads(json.dumps(plan.to_dict()))
    assert found["files"]["total"] == 5
    assert found["files"]["kept"] == 1
    assert found["files"]["rows"] == 5
    assert found["files"]["rows_kept"] == 1
    assert sum(found["files"]["skipped_by_reason"].values()) == 4
    assert found["files"]["skipped_by_reason"]["partition: app = 'shop'"] == 2
    assert found["unused"] == [{"predicate": "checksum(app) = 1", "why": "checksum() is not known"}]
    assert found["tasks"][0]["residual"] == "checksum(app) = 1"
    assert found["planning_seconds"] > 0


def test_explain_names_what_was_skipped_by_what_and_what_was_not_used(events: MemoryTable) -> None:
    text = events.plan("app = 'shop' AND user_id = 2 AND checksum(app) = 1").explain()
    assert "files       1 of 5 kept (20 %)" in text
    assert "by partition: app = 'shop'" in text
    assert "by bounds of user_id: user_id = 2" in text
    assert "checksum() is not known; it never skips a file" in text


def test_a_predicate_that_cannot_be_evaluated_plans_but_does_not_filter(events: MemoryTable) -> None:
    assert len(events.plan("checksum(app) = 1").files) == 5
    with pytest.raises(EvaluationError, match=r"checksum\(\) is not known"):
        events.arrow("checksum(app) = 1")


def test_a_value_that_fails_keeps_its_file_and_raises_only_when_read() -> None:
    table = MemoryTable.from_rows(pa.table({"s": ["1", "x", "3"]}), ["s"])
    plan = table.plan("cast(s AS int) = 3")
    assert [file.partition["s"].value for file in plan.files] == ["x", "3"]
    with pytest.raises(EvaluationError, match="s cannot be cast to int where s is 'x'"):
        table.arrow("cast(s AS int) = 3")
    assert table.arrow("try_cast(s AS int) = 3").column("s").to_pylist() == ["3"]


@pytest.mark.parametrize(
    "field", ["nope", "day(app)", "day(ts, 1)", "bucket(0, app)", "bucket(app)", "app = 1", "((", ""]
)
def test_a_bad_partition_field_is_one_clear_error(field: str) -> None:
    with pytest.raises(PenstockError):
        MemoryTable.from_rows(ROWS, [field])


def test_a_bad_schema_is_one_clear_error() -> None:
    from penstock.expr.schema import as_schema

    for ddl in ("", "a", "a nonsense", "a int, A string", "a int b int", "a struct<", 5):
        with pytest.raises(SchemaError):
            as_schema(ddl)


def test_an_empty_table_plans() -> None:
    table = MemoryTable.from_rows(ROWS.slice(0, 0), ["app"])
    assert len(table.plan("app = 'x'").files) == 0
    assert table.arrow("app = 'x'").num_rows == 0
