"""Other engines judge managed tables: Iceberg's Spark runtime, PyIceberg and DuckDB read them and agree on every row.

After each step of a table's life they are asked the same questions: after appends, changes of the rule, compactions,
deletes and overwrites by Penstock, and after appends, deletes, updates and maintenance by Iceberg's Spark runtime,
which commits to the same embedded catalog through JDBC. The rows must be those of a model of plain rows, and the files
that Penstock plans never more than those of the others. What an engine says instead of an answer is listed in `KNOWN`;
a line there that no longer holds fails.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pytest
import sqlglot
from pyiceberg.io.pyarrow import ArrowScan

import penstock
from tests.interop.iceberg_judge import IcebergJudge
from tests.interop.managed_written import (
    COMMON,
    FEW,
    OF_KINDS,
    OF_TUPLES,
    PAST,
    SPARK,
    Written,
    insert,
    run,
    runtime_on,
    some_rows,
)
from tests.interop.test_iceberg_judges import Rows, as_rows, by_spark, connect_duckdb

pytestmark = [pytest.mark.interop, pytest.mark.spark]

ALL = [*COMMON, *SPARK]
DAY_AND_APP = ["day(ts)", "app"]
BELOW = 600  # bytes: more than each app of a day has but for the largest


class Known(NamedTuple):
    """What an engine says of some predicates instead of an answer."""

    engine: str
    says: str
    where: str


# Iceberg's Spark runtime ends in an error on a prefix and the null partition value of a file that its filter cannot
# leave out. It is asked in other words, which Iceberg is not given.
UNPUSHED = {"NOT (app LIKE 'a%' AND n < 30)": "NOT (substring(app, 1, 1) = 'a' AND n < 30)"}
KNOWN = [
    # A comparison, in a disjunction, with the null partition value of a transform.
    Known("PyIceberg", "not supported between instances of 'NoneType' and 'int'", r"^ts IS NULL OR ts <"),
]


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A folder for decoded manifests that nobody else has."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PENSTOCK_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> penstock.Lake:
    return penstock.connect(tmp_path_factory.mktemp("managed"))


@pytest.fixture(scope="module")
def judge(lake: penstock.Lake) -> Iterator[IcebergJudge]:
    with runtime_on(lake) as process:
        yield process


class Court:
    """All engines on one table."""

    def __init__(self, judge: IcebergJudge) -> None:
        self.judge, self.duck = judge, connect_duckdb()

    def agree(self, written: Written, wheres: Sequence[str] = ALL) -> dict[str, int]:
        """Whether the rows of all engines are those of the model, now; the files that Penstock plans, by predicate."""
        written.table.refresh()
        names = written.table.schema.names
        theirs = written.lake.catalog.load_table(f"web.{written.name}")
        spark = by_spark(self.judge, f"penstock.web.{written.name}", in_spark(wheres), names)
        found = {}
        for where, (spark_rows, spark_files) in zip(wheres, spark, strict=True):
            case = (written.name, where)
            expected = as_rows(written.model.matching(where), names)
            found[where] = written.files(where)
            assert as_rows(written.table.arrow(where), names) == expected, case
            assert where not in FEW or written.table.count(where) == expected.total(), case
            assert spark_rows == expected, case
            assert found[where] <= spark_files, case
            if (answer := self._answer("PyIceberg", written, where, self._pyiceberg, theirs)) is not None:
                assert answer[0] == expected, case
                assert found[where] <= answer[1], case
            if (rows := self._answer("DuckDB", written, where, self._duckdb, written.path)) is not None:
                assert rows == expected, (case, rows - expected, expected - rows)
        return found

    def agree_on_the_past(self, written: Written, wheres: Sequence[str] = PAST) -> None:
        """The same for snapshots from the first to the last, each by its own record."""
        names = written.table.schema.names
        now = written.model.rows
        try:
            past = list(written.history.items())
            for snapshot_id, rows in past[:: max(1, (len(past) - 1) // 3)]:
                written.model.rows = rows
                old = f"penstock.web.{written.name} VERSION AS OF {snapshot_id}"
                table = written.table.at(snapshot_id)
                answers = by_spark(self.judge, old, in_spark(wheres), names)
                for where, (spark_rows, files) in zip(wheres, answers, strict=True):
                    expected = as_rows(written.model.matching(where), names)
                    assert as_rows(table.arrow(where), names) == expected == spark_rows, (snapshot_id, where)
                    assert len(table.plan(where).files) <= files, (snapshot_id, where)
        finally:
            written.model.rows = now

    def _answer(
        self, engine: str, written: Written, where: str, ask: Callable[[Any, str, Sequence[str]], Any], table: Any
    ) -> Any:
        """An answer, or None; where the engine is known to say something else, it must say that."""
        names = written.table.schema.names
        said = "|".join(known.says for known in KNOWN if known.engine == engine and re.search(known.where, where))
        if not said:
            return ask(table, where, names)
        with pytest.raises(Exception, match=said):
            ask(table, where, names)
        return None

    def _pyiceberg(self, table: Any, where: str, names: Sequence[str]) -> tuple[Rows, int] | None:
        if where in SPARK:  # its language has no word for it
            return None
        scan = table.scan(row_filter=where)
        tasks = list(scan.plan_files())
        rows = ArrowScan(table.metadata, table.io, scan.projection(), scan.row_filter).to_table(tasks)
        return as_rows(rows, names), len({task.file.file_path for task in tasks})

    def _duckdb(self, metadata: str, where: str, names: Sequence[str]) -> Rows:
        text = sqlglot.parse_one(where, read="spark").sql(dialect="duckdb")
        query = f"SELECT * FROM iceberg_scan('{metadata}') WHERE {text}"
        return as_rows(self.duck.execute(query).to_arrow_table(), names)


def in_spark(wheres: Sequence[str]) -> list[str]:
    """The predicates as Iceberg's Spark runtime can be asked."""
    return [UNPUSHED.get(where, where) for where in wheres]


@pytest.fixture(scope="module")
def court(judge: IcebergJudge) -> Court:
    return Court(judge)


def by_day_and_app(lake: penstock.Lake, name: str, turns: Sequence[int] = (1, 2)) -> Written:
    """Some appends; the largest app has files of its own, all others share."""
    written = Written(lake, name, DAY_AND_APP, penstock.Coalesce("app", below=BELOW))
    written.append(*turns)
    assert {task.logical is None for task in written.table.plan().files} == {True, False}
    return written


def files_of(written: Written) -> set[str]:
    """The paths of all data files."""
    return {task.path for task in written.table.plan().files}


def days_of(written: Written, app: str) -> int:
    """The partitions that an app has: so many files are planned where each lies in one, of its own or shared."""
    rows = written.model.matching(f"app = '{app}'").column("ts").to_pylist()
    return len({None if ts is None else ts.date() for ts in rows})


def told_files(written: Written) -> tuple[int, int]:
    """The data files and the delete files that the newest snapshot's summary tells."""
    told = written.table.table.metadata.current_snapshot().summary.additional_properties
    return int(told["total-data-files"]), int(told["total-delete-files"])


def live_files(written: Written) -> tuple[int, int]:
    """The data files and the delete files that the newest snapshot has."""
    now = written.table.table
    found = [0, 0]
    for manifest in now.metadata.current_snapshot().manifests(now.io):
        found[int(manifest.content)] += len(manifest.fetch_manifest_entry(now.io, discard_deleted=True))
    return found[0], found[1]


def runtime(court: Court, written: Written, text: str) -> list[tuple[Any, ...]]:
    """Have Iceberg's Spark runtime run a statement on a table, which is written `{t}`; what it answers."""
    answer = court.judge.ask(run, text.format(t=f"penstock.web.{written.name}"))
    written.remember()
    return answer


APPENDED = {
    "one_column": (DAY_AND_APP, penstock.Coalesce("app"), ALL),
    # Target sizes so small that a day's shared rows are cut into several files, each with a range of apps.
    "many_files": (DAY_AND_APP, penstock.Coalesce("app"), FEW),
    "short_records": (DAY_AND_APP, penstock.Coalesce("app", record_bytes=100), FEW),
    "two_columns": (
        ["app", "day(ts)", "region"],
        penstock.Coalesce("region", "app", below=300, values=[("eu", "shop"), (None, None), ("[#small]", "[#small]")]),
        [*COMMON[1:8], *OF_TUPLES],
    ),
    "other_kinds": (["k", "d", "p", "ok"], penstock.Coalesce("ok", "p", "k", "d"), OF_KINDS),
    "transforms": (["bucket(3, id)", "truncate(1, app)", "app", "month(d)"], ["app"], [*COMMON[1:9], "id = 1007"]),
}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if name != "one_column" else []) for name in APPENDED]
)
def test_appended_rows_are_read_alike_by_all_engines(lake: penstock.Lake, court: Court, name: str) -> None:
    partition_by, rule, wheres = APPENDED[name]
    said = {"write__target-file-size-bytes": "1000"} if name == "many_files" else {}
    written = Written(lake, name, partition_by, rule, **said)
    written.append(1, 2)
    assert set(written.recorded()) == {True}
    complete = {task.logical is not None for task in written.table.plan().files if task.spec_id != 0}
    assert complete == {True}
    planned = court.agree(written, wheres)
    assert len(set(planned.values())) > 1, "which would be no pruning"


def test_records_of_logical_partitions_tell_files_apart_that_bounds_do_not(lake: penstock.Lake, court: Court) -> None:
    written = by_day_and_app(lake, "apart")
    names = written.table.schema.names
    wheres = ["app = 'a3'", "app = '[#small]'", "app IN ('a0', 'a4', 'nosuch')"]
    answers = by_spark(court.judge, "penstock.web.apart", wheres, names)
    for where, (_, files) in zip(wheres, answers, strict=True):
        assert 0 < written.files(where) < files, where


@pytest.mark.slow
def test_changed_rules_are_read_alike_by_all_engines(lake: penstock.Lake, court: Court) -> None:
    written = Written(lake, "rules", ["day(ts)", "app", "region"], penstock.Coalesce("app", below=BELOW))
    written.append(1, 2, count=24)
    rules = [
        penstock.Coalesce("app", values=["a3", "[#small]", None]),
        None,
        penstock.Coalesce("region", below=BELOW),
        penstock.Coalesce("region", "app", values=[("[#small]", "a3"), ("eu", "[#small]"), (None, "shop")]),
        penstock.Coalesce("region", "app", below="1MB"),
    ]
    specs = set()
    for turn, rule in enumerate(rules, 3):
        written.table.set_coalesce(rule)
        written.append(turn, count=24)
        court.agree(written, COMMON if rule is None else [*FEW, *OF_TUPLES[:2]])
        specs |= {task.spec_id for task in written.table.plan().files}
    assert len(specs) == 4, "the fine spec and three of shared files"
    court.agree_on_the_past(written)
    written.compact()
    assert {task.spec_id for task in written.table.plan().files} < specs
    court.agree(written, [*COMMON, *OF_TUPLES])


@pytest.mark.slow
def test_compacted_tables_are_read_alike_by_all_engines(lake: penstock.Lake, court: Court) -> None:
    written = by_day_and_app(lake, "compacted", (1, 2, 3, 4))
    before = court.agree(written, FEW)
    done = written.compact()
    assert done.rewritten > done.written > 0
    after = court.agree(written)
    assert after["TRUE"] < before["TRUE"]
    assert after["app = '[#small]'"] == days_of(written, "[#small]") < before["app = '[#small]'"]
    written.table.set_coalesce(None)
    done = written.compact()
    assert done.written > 3 * done.rewritten
    assert written.recorded() == []
    court.agree(written, FEW)
    with pytest.raises(RuntimeError, match=r'Cannot invoke "String.startsWith\(String\)"'):
        by_spark(court.judge, "penstock.web.compacted", list(UNPUSHED), written.table.schema.names)
    written.table.set_coalesce("app")
    assert written.compact().folded > 5
    assert court.agree(written)["TRUE"] < after["TRUE"]
    court.agree_on_the_past(written)


@pytest.mark.slow
def test_changes_of_one_logical_partition_are_read_alike_by_all_engines(lake: penstock.Lake, court: Court) -> None:
    written = by_day_and_app(lake, "changed")
    written.delete("app = 'a3'")
    assert court.agree(written, [*FEW, "app IS NULL"])["app = 'a3'"] == 1  # its rows are marked, on read
    written.delete("app = '[#small]' AND ts < '1970-01-01T00:00:00+00:00'")
    court.agree(written, FEW)
    rows = some_rows(4, 30)
    written.overwrite(rows.filter(pc.equal(rows["app"], "a4")), "app = 'a4'")
    court.agree(written, FEW)
    written.overwrite(some_rows(6, 9), None)
    court.agree(written)
    written.delete("app IS NULL OR n < 20")
    court.agree(written, FEW)
    court.agree_on_the_past(written)


@pytest.mark.slow
def test_table_that_icebergs_runtime_appended_to_is_read_alike(lake: penstock.Lake, court: Court) -> None:
    written = by_day_and_app(lake, "joined")
    ours = files_of(written)
    for turn, recorded in ((3, False), (4, True)):
        # Iceberg's writers put the manifests of each spec but the new files' own into one, and so drop the record.
        court.judge.ask(insert, written.name, some_rows(turn))
        written.model.append(some_rows(turn))
        written.remember()
        assert ours < files_of(written)
        assert set(written.recorded()) == {recorded}
        court.agree(written, FEW if recorded else ALL)
        written.compact()  # where a spec has one manifest already, it stays
        ours = files_of(written)
    runtime(court, written, "UPDATE {t} SET n = 17, app = '[#small]' WHERE app = 'a5'")  # copy on write
    moved = written.model.matching("app = 'a5'")
    written.model.delete("app = 'a5'")
    moved = moved.set_column(2, "app", [["[#small]"] * len(moved)]).set_column(8, "n", [[17] * len(moved)])
    written.model.append(moved.cast(written.model.rows.schema))
    written.remember()
    assert len(moved) > 3
    court.agree(written, [*FEW, "app = 'a5' OR n = 17"])
    written.append(5)
    written.delete("app = 'a4'")
    court.agree(written)
    court.agree_on_the_past(written)


def test_files_of_icebergs_runtime_survive_maintenance_by_penstock(lake: penstock.Lake, court: Court) -> None:
    written = by_day_and_app(lake, "swept")
    court.judge.ask(insert, written.name, some_rows(3))
    written.model.append(some_rows(3))
    written.delete("app = 'a5'")
    orphan = Path(written.path).parents[1] / "data" / "orphan.parquet"
    orphan.write_bytes(b"left behind")
    live = files_of(written)
    assert written.table.expire("0 seconds").snapshots == 3
    assert written.table.sweep("0 seconds", force=True).files >= 1
    assert files_of(written) == live
    assert not orphan.exists()
    court.agree(written, FEW)
    written.compact()
    written.table.expire("0 seconds")
    court.agree(written, FEW)


@pytest.mark.slow
@pytest.mark.parametrize("granularity", ["file", "partition"])
def test_table_with_position_deletes_of_icebergs_runtime_is_read_alike(
    lake: penstock.Lake, court: Court, granularity: str
) -> None:
    written = by_day_and_app(lake, f"deleted_by_{granularity}")
    runtime(court, written, f"ALTER TABLE {{t}} SET TBLPROPERTIES ('write.delete.granularity' = '{granularity}')")
    where = "app IN ('a3', '[#small]', 'shop') AND n < 50"
    written.compact()
    ours = files_of(written)
    runtime(court, written, f"DELETE FROM {{t}} WHERE {where}")
    written.model.delete(where)
    written.remember()
    assert files_of(written) == ours
    assert {task.logical is None for task in written.table.plan().files if task.deletes} == {True, False}
    court.agree(written)
    written.append(3)
    written.delete("app = 'a5' OR n = 60")
    assert any(task.deletes for task in written.table.plan().files)
    court.agree(written, FEW)
    assert told_files(written) == live_files(written)
    written.compact()
    assert not any(task.deletes for task in written.table.plan().files)
    assert told_files(written) == live_files(written)
    court.agree(written, FEW)
    written.overwrite(some_rows(5), "TRUE")
    assert told_files(written) == live_files(written)
    assert live_files(written)[1] == 0, "no delete file outlives the data that it is about"


def test_rows_that_penstock_marks_are_read_alike_by_all_engines(lake: penstock.Lake, court: Court) -> None:
    written = by_day_and_app(lake, "marked")
    on_read = {f"write.{command}.mode": "merge-on-read" for command in ("delete", "update", "merge")}
    written.table.set_properties(on_read)
    ours = files_of(written)
    written.delete("app IN ('a3', '[#small]', 'shop') AND n < 50")
    assert files_of(written) <= ours, "one has no row left, and goes whole"
    ours = files_of(written)
    assert {task.logical is None for task in written.table.plan().files if task.deletes} == {True, False}
    court.agree(written, FEW)
    where = "app IN ('shop', 'a5') AND n > 20"
    changed = written.model.matching(where)
    written.table.update({"n": 17, "app": "'[#small]'"}, where=where)
    written.model.delete(where)
    values = {"n": pa.array([17] * len(changed)), "app": pa.array(["[#small]"] * len(changed))}
    for name, column in values.items():
        changed = changed.set_column(changed.schema.get_field_index(name), name, column)
    written.model.append(changed.cast(written.model.rows.schema))
    new = pa.concat_tables([some_rows(1, 12), some_rows(9, 3)])
    result = written.table.upsert(new, on="id")
    assert (result.rows_added + result.rows_updated, result.files_removed) == (15, 0)
    written.model.delete("id IN (" + ", ".join(map(str, new["id"].to_pylist())) + ")")
    written.model.append(new)
    written.remember()
    assert ours <= files_of(written)
    court.agree(written)
    where = "app IN ('a4', '[#small]') AND n < 60"
    runtime(court, written, f"DELETE FROM {{t}} WHERE {where}")  # which writes delete files too
    written.model.delete(where)
    written.remember()
    court.agree(written, FEW)
    assert told_files(written) == live_files(written)
    done = written.compact()
    assert done.delete_files_removed > 3
    assert live_files(written)[1] == 0
    assert told_files(written) == live_files(written)
    court.agree(written, FEW)
    court.agree_on_the_past(written)


@pytest.mark.slow
def test_rewritten_manifests_make_plans_coarser_until_the_next_compaction(lake: penstock.Lake, court: Court) -> None:
    written = by_day_and_app(lake, "forgotten")
    assert all(written.recorded())
    before = court.agree(written)
    (spec_id,) = {task.spec_id for task in written.table.plan().files if task.logical is not None}
    call = "CALL penstock.system.rewrite_manifests(table => 'web.forgotten', use_caching => false, spec_id => {})"
    assert runtime(court, written, call.format(spec_id)) == [(2, 1)]
    assert not any(written.recorded())
    after = court.agree(written)
    asked = ["app = 'a3'", "app = '[#small]'", "app IN ('a1', 'a6', '[#small]', 'nosuch')", "app = 'a5' OR n = 17"]
    assert all(before[where] < after[where] for where in asked)
    assert all(before[where] <= after[where] for where in ALL)
    written.append(3, 4)
    assert {True, False} == set(written.recorded())
    court.agree(written, FEW)
    written.delete("app = 'a7' OR app IS NULL")
    grown = court.agree(written, [*FEW, *asked])
    written.compact()
    assert all(written.recorded())
    shrunk = court.agree(written)
    assert all(shrunk[where] < grown[where] for where in asked[:3])
    assert shrunk[asked[3]] <= grown[asked[3]]
    assert [shrunk[where] for where in asked[:2]] == [days_of(written, app) for app in ("a3", "[#small]")]
    written.delete("app = 'a1'")
    assert all(written.recorded())
    court.agree(written, FEW)
    court.agree_on_the_past(written)


@pytest.mark.slow
def test_table_that_icebergs_runtime_maintained_is_read_alike(lake: penstock.Lake, court: Court) -> None:
    written = by_day_and_app(lake, "maintained", (1, 2, 3))
    where = "app IN ('a3', '[#small]') AND n < 50"
    runtime(court, written, f"DELETE FROM {{t}} WHERE {where}")
    written.model.delete(where)
    ours = files_of(written)
    options = "map('rewrite-all', 'true', 'remove-dangling-deletes', 'true')"
    runtime(court, written, f"CALL penstock.system.rewrite_data_files(table => '{{t}}', options => {options})")
    assert ours.isdisjoint(files_of(written))
    court.agree(written)
    written.append(4)
    written.delete("app = 'a4'")
    call = "CALL penstock.system.expire_snapshots(table => '{t}', older_than => TIMESTAMP'2100-01-01')"
    runtime(court, written, call)
    assert len(written.table.table.metadata.snapshots) == 1
    assert not any(Path(path.removeprefix("file://")).exists() for path in ours)
    court.agree(written, FEW)
    written.table.set_coalesce("app")  # each file of one logical partition is larger than the rule before wanted
    assert written.compact().folded > 5
    assert all(written.recorded())
    court.agree(written)
