"""The suite that every kind of table passes: the same rows as without pruning, from exactly so many files.

A kind inherits `TableContract` and provides `make`, which writes rows, partitioned, and opens them. The members of
`Source` that are not about pruning are tested in `source_contract.py`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from penstock.errors import EvaluationError, PenstockError
from penstock.expr.bind import bind_text
from penstock.expr.kernels.evaluate import filter_table
from penstock.expr.kernels.physical import from_arrow
from penstock.expr.types import type_name
from tests.contract.corpus import BAD, KINDS, MIXED
from tests.contract.source_contract import SourceContract, same
from tests.differential.predicates import BASIC, Source, show, tree
from tests.fixtures.variants import variants

Make = Callable[[pa.Table, list[str]], Any]
CORPUS = [(kind, where, kept) for kind, about in KINDS.items() for where, kept in about.predicates.items()]
LEVELS = {"app": KINDS["string"].values, "level": KINDS["int"].values[:4], "day": KINDS["date"].values[:3]}


def two_levels() -> pa.Table:
    """Partitions of two columns, of which not all combinations occur, and one more column that is none."""
    pairs = [(a, b) for i, a in enumerate(LEVELS["app"]) for j, b in enumerate(LEVELS["level"]) if (i + j) % 3]
    ids = range(len(pairs))
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "day": pa.array([LEVELS["day"][i % 3] for i in ids], pa.date32()),
            "app": pa.array([a for a, _ in pairs], pa.string()),
            "level": pa.array([b for _, b in pairs], pa.int32()),
        }
    )


def partitions_of(rows: pa.Table, *columns: str) -> set[str]:
    """The partitions that rows are in; NaN is one value."""
    return {str([row[column] for column in columns]) for row in rows.to_pylist()}


class TableContract(SourceContract):
    """What holds of any table."""

    prunes_by_bounds = False

    @classmethod
    def rows(cls, kind: str) -> pa.Table:
        """The rows of a kind of the corpus; a layout that lacks the type has them in a wider one."""
        return KINDS[kind].rows()

    @pytest.fixture(scope="class")
    @classmethod
    def make(cls) -> Make:
        """Writes rows as a table of the layout and opens it; each layout overrides this."""
        raise NotImplementedError

    @pytest.fixture(scope="class")
    @classmethod
    def table_of(cls, make: Make) -> Callable[[str], Any]:
        """The table of a kind of the corpus, made once."""
        made: dict[str, Any] = {}

        def find(kind: str) -> Any:
            if kind not in made:
                made[kind] = make(cls.rows(kind), ["k"])
            return made[kind]

        return find

    @pytest.fixture(scope="class")
    @classmethod
    def deep(cls, make: Make) -> Any:
        return make(two_levels(), ["app", "level"])

    @pytest.mark.parametrize(("kind", "where", "kept"), CORPUS)
    def test_a_predicate_on_the_partition_column_reads_exactly_its_partitions(
        self, table_of: Callable[[str], Any], kind: str, where: str, kept: int
    ) -> None:
        table, rows = table_of(kind), self.rows(kind)
        expected = filter_table(bind_text(where, rows.schema), rows)
        plan = table.plan(where)
        assert (len(plan.files), plan.report.files.kept) == (kept, kept)
        assert plan.report.files.whole == kept, "the value of the partition decides, nothing is left for the rows"
        assert len(partitions_of(expected, "k")) == kept
        assert same(table.arrow(where), expected)

    @pytest.mark.parametrize(("where", "kept"), MIXED.items())
    def test_a_predicate_on_other_columns_too_reads_what_the_partitions_leave(
        self, table_of: Callable[[str], Any], where: str, kept: int
    ) -> None:
        table, rows = table_of("string"), self.rows("string")
        expected = filter_table(bind_text(where, rows.schema), rows)
        found = len(table.plan(where).files)
        assert found <= kept if self.prunes_by_bounds else found == kept
        assert len(partitions_of(expected, "k")) <= found
        assert same(table.arrow(where), expected)

    @pytest.mark.parametrize("kind", KINDS)
    def test_without_a_predicate_all_rows_come_back(self, table_of: Callable[[str], Any], kind: str) -> None:
        rows = self.rows(kind)
        assert same(table_of(kind).arrow(), rows)
        assert len(table_of(kind).plan().files) == len(KINDS[kind].values)

    @pytest.mark.parametrize("kind", KINDS)
    def test_a_file_tells_the_value_of_its_partition(self, table_of: Callable[[str], Any], kind: str) -> None:
        found = [file.partition["k"].value for file in table_of(kind).plan().files]
        assert sorted(map(str, found)) == sorted(map(str, KINDS[kind].values))

    @pytest.mark.parametrize(
        ("where", "kept"),
        [
            ("app = 'shop' AND level = 1", 1),
            ("app = 'shop' AND level = -1", 0),
            ("app = 'shop'", 2),
            ("level = 1", 10),
            ("app = 'shop' OR level = 1", 11),
            ("(app, level) IN (('shop', 0), ('blog', -1), ('blog', 1))", 2),
            ("app IS NULL AND level > 0", 2),
            ("NOT (app = 'shop' AND level = 0) AND app LIKE 's%'", 4),
            ("concat(app, cast(level AS string)) = 'shop0'", 1),
            ("length(app) = level", 3),
        ],
    )
    def test_predicates_over_two_levels_read_only_matching_branches(self, deep: Any, where: str, kept: int) -> None:
        rows = two_levels()
        expected = filter_table(bind_text(where, rows.schema), rows)
        assert len(deep.plan(where).files) == kept
        assert len(partitions_of(expected, "app", "level")) == kept
        assert same(deep.arrow(where), expected)

    @pytest.mark.parametrize("count", variants([6, 60], every_run=1))
    def test_a_random_predicate_its_negation_and_its_null_test_divide_the_rows(self, deep: Any, count: int) -> None:
        rows = two_levels()
        kinds = {"app": "string", "level": "int", "day": "date"}
        sources = [Source(name, kind, tuple(from_arrow(rows[name].combine_chunks()))) for name, kind in kinds.items()]
        matched = 0
        for seed in range(count):
            rng = Random(seed)
            where = show(tree(rng, sources, BASIC, rng.choice([0, 1, 2, 3])))
            parts = [deep.arrow(text) for text in (where, f"NOT ({where})", f"({where}) IS NULL")]
            ids = sorted(value for part in parts for value in part["id"].to_pylist())
            assert ids == rows["id"].to_pylist(), where
            assert same(parts[0], filter_table(bind_text(where, rows.schema), rows)), where
            matched += parts[0].num_rows
        assert 0.1 < matched / (rows.num_rows * count) < 0.9, "the predicates are too easy"

    @pytest.mark.parametrize("where", ["k = 'shop'", "k LIKE 's%' AND n = 1", "TRUE", "FALSE", "n = 3", "k IS NULL"])
    def test_the_counts_of_a_report_add_up(self, table_of: Callable[[str], Any], where: str) -> None:
        plan = table_of("string").plan(where)
        for level in plan.report.levels:
            assert level.total == level.kept + sum(level.skipped.values())
            assert 0 <= level.whole <= level.kept
        assert plan.report.files.kept == len(plan.files) == len(list(plan.files)) == len(plan.files.paths)
        assert plan.report.files.bytes_kept == sum(file.size for file in plan.files)
        found = json.loads(json.dumps(plan.to_dict()))
        assert len(found["tasks"]) == found["files"]["kept"]
        assert str(plan.report.files.kept) in plan.explain()

    def test_the_partitions_sum_up_to_the_whole(self, deep: Any) -> None:
        files = deep.plan().report.files
        partitions = deep.partitions()
        assert partitions.num_rows == len(partitions_of(two_levels(), "app", "level"))
        assert sum(partitions["files"].to_pylist()) == files.total == files.kept
        assert sum(partitions["bytes"].to_pylist()) == files.bytes
        parts = [deep.partitions(where) for where in ("level = 1", "NOT (level = 1)", "level IS NULL")]
        assert sum(part.num_rows for part in parts) == partitions.num_rows
        found = {str([row["app"], row["level"]]) for row in partitions.to_pylist()}
        assert found == partitions_of(two_levels(), "app", "level")

    def test_columns_selects_in_the_order_asked_for(self, table_of: Callable[[str], Any]) -> None:
        found = table_of("string").arrow("k = 'shop'", columns=["k", "id"])
        assert found.column_names == ["k", "id"]
        assert found.to_pylist() == [{"k": "shop", "id": 0}, {"k": "shop", "id": 1}]
        assert table_of("string").arrow("n = 1 AND k = 'shop'", columns=["s"]).to_pylist() == [{"s": "text 1"}]
        assert table_of("string").arrow("FALSE", columns=["s", "k"]).column_names == ["s", "k"]

    def test_the_schema_has_the_types_of_the_rows(self, table_of: Callable[[str], Any]) -> None:
        for kind in KINDS:
            found = {field.name: type_name(field.type) for field in table_of(kind).schema}
            assert found == {field.name: type_name(field.type) for field in self.rows(kind).schema}
            assert table_of(kind).arrow("FALSE").schema.types == table_of(kind).schema.types

    @pytest.mark.parametrize("where", BAD)
    def test_a_bad_predicate_is_one_clear_error(self, table_of: Callable[[str], Any], where: str) -> None:
        for ask in (table_of("string").plan, table_of("string").arrow):
            with pytest.raises(PenstockError) as caught:
                ask(where)
            assert str(caught.value)
            assert len(str(caught.value).splitlines()) <= 3

    def test_an_unknown_function_keeps_every_file_and_is_an_error_when_read(
        self, table_of: Callable[[str], Any]
    ) -> None:
        plan = table_of("string").plan("checksum(k) = 1")
        assert len(plan.files) == 15
        assert list(plan.report.unused) == [("checksum(k) = 1", "checksum() is not known")]
        with pytest.raises(EvaluationError, match=r"checksum\(\) is not known"):
            table_of("string").arrow("checksum(k) = 1")
        assert len(table_of("string").plan("k = 'shop' AND checksum(k) = 1").files) == 1
