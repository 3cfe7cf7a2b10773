"""Predicates of any size: answered in one pass over them, or refused by one line before they cost time or memory."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import penstock
from penstock.errors import EvaluationError, PredicateError, SchemaError
from penstock.expr import limits
from penstock.expr.bind import bind_text
from penstock.expr.kernels import evaluate
from penstock.expr.kernels.evaluate import filter_mask
from penstock.expr.parse import parse
from penstock.expr.tree import In
from penstock.tables.hive.hive_table import HiveTable
from tests.fixtures.hive_writer import write_hive
from tests.fixtures.managed_tables import managed_table

SCHEMA = "i bigint, j bigint, s string"


@pytest.fixture
def table(tmp_path: Path) -> HiveTable:
    """Ten files of ten rows: `k` is the tens of `i`."""
    rows = pa.table(
        {"i": range(100), "j": [n % 7 for n in range(100)], "s": ["sa"] * 100, "k": [n // 10 for n in range(100)]}
    )
    return penstock.hive(write_hive(tmp_path, rows, ["k"]), "k int")


class TestAnswered:
    @pytest.mark.parametrize("count", [20_000, pytest.param(100_000, marks=pytest.mark.slow)])
    def test_a_long_list_of_values(self, table: HiveTable, count: int) -> None:
        where = f"k IN ({', '.join(str(3 * n) for n in range(count))})"
        assert len(table.plan(where).files) == 4

    @pytest.mark.parametrize("count", [10_000, pytest.param(50_000, marks=pytest.mark.slow)])
    def test_an_or_of_many_equalities_is_one_list(self, table: HiveTable, count: int) -> None:
        where = " OR ".join(f"k = {3 * n}" for n in range(count))
        plan = table.plan(where)
        assert isinstance(plan.predicate, In)
        assert len(plan.predicate.options) == count
        assert len(plan.files) == 4

    def test_2_000_ors_joined_by_and(self, table: HiveTable) -> None:
        where = " AND ".join(f"(k = 3 OR j > {n - 3000})" for n in range(2_000))
        assert table.arrow(where).num_rows == 100

    def test_a_sum_of_2_000_terms(self, table: HiveTable) -> None:
        assert table.arrow("k" + " + 1" * 2_000 + " >= 2005").num_rows == 50

    def test_a_long_text_beside_many_rows_is_not_repeated_for_each(self) -> None:
        rows = pa.table({"s": pa.array(["x"] * 200_000)})
        mask = filter_mask(bind_text(f"s = '{'x' * 100_000}' OR s < '{'y' * 100_000}'", rows.schema), rows)
        assert mask.true_count == 200_000


class TestRefused:
    @pytest.mark.parametrize("limit", [2_000, pytest.param(limits.MAX_OPERATIONS, marks=pytest.mark.slow)])
    def test_more_tests_and_functions_than_are_evaluated(
        self, table: HiveTable, limit: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(limits, "MAX_OPERATIONS", limit)
        half = limit * 11 // 20
        for where in (" OR ".join(f"i > {n} AND j > {n}" for n in range(half)), "i" + " + 1" * 2 * half + " > 5"):
            message = rf"{2 * half // 1000},[02]0\d tests and functions; at most {limit:,} are evaluated"
            with pytest.raises(PredicateError, match=message):
                table.plan(where)

    def test_a_text_of_too_many_words_or_characters(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(limits, "MAX_WORDS", 5)
        assert str(parse("i = 1 OR TRUE")) == "i = 1 OR TRUE"
        with pytest.raises(PredicateError, match="has 6 words and symbols; at most 5 are read"):
            parse("i = 1 OR NOT TRUE")
        monkeypatch.setattr(limits, "MAX_LENGTH", 10)
        with pytest.raises(PredicateError, match="has 11 characters; at most 10 are read"):
            parse("i = 1234567")

    def test_a_text_that_functions_make_longer_than_memory(self, table: HiveTable) -> None:
        nested = "s"
        for _ in range(30):
            nested = f"replace({nested}, 's', 'ssssssssss')"
        with pytest.raises(EvaluationError, match=r"would be a text of more than 64 MiB where s is 'sa'"):
            table.arrow(f"{nested} = 'x'")
        assert len(table.plan(f"{nested} = 'x'").files) == 10

    def test_many_texts_that_are_too_much_together(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(evaluate, "MAX_TEXT_BYTES", 1_000)
        rows = pa.table({"s": pa.array(["x"] * 1_000)})
        with pytest.raises(EvaluationError, match="its text would take more than"):
            filter_mask(bind_text(f"concat(s, '{'y' * 900}') = 'x'", rows.schema), rows)
        assert filter_mask(bind_text("concat(s, 'y') = 'xy'", rows.schema), rows).true_count == 1_000

    @pytest.mark.parametrize(
        ("where", "message"),
        [
            ("i > " + "9" * 5_000, r"the number 9{47}\.\.\. has 5,000 digits; Spark has 38"),
            ("i > " + "9" * 5_000 + "L", "has 5,000 digits; Spark has 38"),
            ("i > 1." + "9" * 5_000, "has 5,001 digits; Spark has 38"),
            ("i > 1e400", "the number 1e400 is beyond the range of double"),
            ("CAST(i AS decimal(" + "9" * 5_000 + ", 2)) = 1", "unknown type DECIMAL"),
            ("count(*) > 1", r"the aggregate COUNT\(\*\) cannot be part of a predicate over one row"),
            ("* > 1", r"^\* cannot be part of a predicate over one row"),
            ("i = :p", "a parameter cannot be part of a predicate over one row"),
        ],
    )
    def test_what_no_predicate_can_have(self, where: str, message: str) -> None:
        with pytest.raises(PredicateError, match=message):
            bind_text(where, SCHEMA)

    def test_a_number_with_many_leading_zeros_is_a_number(self) -> None:
        assert str(bind_text("i > " + "0" * 5_000 + "7", SCHEMA)) == "i > 7"


class TestNotText:
    def test_a_predicate_that_is_no_text(self, tmp_path: Path) -> None:
        table = managed_table(tmp_path, "i bigint")
        table.append(pa.table({"i": [1]}))
        with pytest.raises(PredicateError, match="expected a predicate as text, not NoneType; write it as Spark SQL"):
            table.delete(None)  # type: ignore[arg-type]
        with pytest.raises(PredicateError, match="expected a predicate as text, not int"):
            table.plan(5)  # type: ignore[arg-type]
        assert table.count() == 1

    def test_columns_that_are_one_text(self, tmp_path: Path, table: HiveTable) -> None:
        managed = managed_table(tmp_path / "lake", "i bigint")
        for each in (table, managed):
            with pytest.raises(SchemaError, match=r"columns takes a list of names, found the text 'i'; write \['i'\]"):
                each.arrow(columns="i")


class TestWhyARowFails:
    @pytest.mark.parametrize(
        ("where", "message"),
        [
            ("upper(s) = 'A'", r"upper\(s\) cannot be computed for text that is not ASCII where s is 'é'"),
            ("CAST(s AS int) = 1", r"s cannot be cast to int where s is 'é'"),
            ("10 div i = 1", r"10L DIV i overflows, divides by zero or is out of range where i is 0"),
            ("i + 9223372036854775806 + j > 1", r"i \+ 9223372036854775806L \+ j overflows.*where i is 0 and j is 5"),
        ],
    )
    def test_the_part_that_failed_and_its_values_are_named(self, where: str, message: str) -> None:
        rows = pa.table({"s": ["1", "é"], "i": [1, 0], "j": [-1, 5]})
        with pytest.raises(EvaluationError, match=message):
            filter_mask(bind_text(where, rows.schema), rows)
