"""Input that is meant to hurt: very deep, very long, very strange. It ends in a result or a PenstockError, never in a
crash.

Every run goes three times as deep as Python's own calls may; `make test-slow` goes to what is said in the names.
"""

import pyarrow as pa
import pytest

from penstock.errors import PenstockError
from penstock.expr.bind import bind_text
from penstock.expr.kernels.evaluate import filter_mask
from penstock.expr.tree import Column
from penstock.prune.containers import Containers
from penstock.prune.facts import Bounds, Exact
from penstock.prune.judge import Pruner
from penstock.prune.verdict import Verdict

DDL = "a int, b int, c int, s string"
A, S = Column(("a",), pa.int32()), Column(("s",), pa.string())
SCHEMA = pa.schema({"a": pa.int32(), "b": pa.int32(), "c": pa.int32(), "s": pa.string()})
TABLE = pa.table({"a": [1, 7, None], "b": [1, 2, 3], "c": [1, None, 3], "s": ["x", "y", None]}, schema=SCHEMA)
slow = pytest.mark.slow
deep = pytest.mark.parametrize("depth", [1_500, pytest.param(10_000, marks=slow)])


def containers():
    bounds = Bounds(A, pa.array([0, 5], pa.int32()), pa.array([4, 9], pa.int32()), null_count=pa.array([0, 0]))
    return Containers(2, [bounds, Exact(S, pa.array(["x", "y"]))])


def plan(text):
    """Everything that is done with a text: read, bound, printed, read again, simplified, asked; the verdicts."""
    bound = bind_text(text, DDL)
    assert bind_text(str(bound), DDL) is not None
    filter_mask(bound, TABLE)
    judged = Pruner(bound).judge(containers())
    assert str(judged.residual(1))
    return [judged.verdict(i) for i in range(2)]


def plan_or_refuse(text):
    try:
        return plan(text)
    except PenstockError as error:
        return None if str(error) else []


@deep
def test_up_to_ten_thousand_ands_in_a_row_prune(depth):
    assert plan(" AND ".join(f"a <> {i + 100}" for i in range(depth)) + " AND a = 7") == [Verdict.SKIP, Verdict.KEEP]


@deep
def test_up_to_ten_thousand_ors_in_a_row_prune(depth):
    assert plan(" OR ".join(f"a = {i + 5}" for i in range(depth))) == [Verdict.SKIP, Verdict.KEEP_WHOLE]


@deep
def test_up_to_ten_thousand_ands_nested_in_parentheses_prune(depth):
    text = "(" * depth + "a = 7" + "".join(f" AND a <> {i + 100})" for i in range(depth))
    assert plan(text) == [Verdict.SKIP, Verdict.KEEP]


@deep
def test_up_to_ten_thousand_alternating_ands_and_ors_over_several_columns_end(depth):
    text = "a = 7"
    for i in range(depth):
        column, word = "abc"[i % 3], ("AND", "OR")[i % 2]
        text += f" {word} {column} <> {i})"
    assert plan("(" * depth + text) is not None


@deep
def test_up_to_ten_thousand_alternating_to_the_right_end(depth):
    parts = [f"{'abc'[i % 3]} <> {i} {('AND', 'OR')[i % 2]} (" for i in range(depth)]
    assert plan_or_refuse("".join(parts) + "a = 7" + ")" * depth) != []


def test_ten_thousand_nots_cancel_out():
    assert plan("NOT " * 10_000 + "a = 7") == [Verdict.SKIP, Verdict.KEEP]


def test_ten_thousand_nots_with_parentheses_cancel_out():
    assert plan("NOT (" * 10_000 + "a = 7" + ")" * 10_000) == [Verdict.SKIP, Verdict.KEEP]


@pytest.mark.parametrize("count", [30_000, pytest.param(150_000, marks=slow)])
def test_a_list_of_up_to_a_million_bytes_of_integers_prunes(count):
    text = f"a IN ({', '.join(str(i) for i in range(5, count))})"
    assert plan(text) == [Verdict.SKIP, Verdict.KEEP_WHOLE]


@pytest.mark.parametrize("count", [10_000, pytest.param(65_000, marks=slow)])
def test_a_list_of_up_to_a_million_bytes_of_strings_prunes(count):
    text = f"s IN ({', '.join(repr(f'value {i:06}') for i in range(count))}, 'y')"
    assert plan(text) == [Verdict.SKIP, Verdict.KEEP_WHOLE]


def test_one_string_of_a_million_bytes_prunes():
    assert plan(f"s = '{'x' * 1_000_000}'") == [Verdict.SKIP, Verdict.SKIP]


@pytest.mark.parametrize("count", [8_000, pytest.param(100_000, marks=slow)])
@pytest.mark.parametrize(
    ("opening", "closing"), [("(", ")"), ("(", ""), ("", ")"), ("-", ""), ("abs(", ")"), ("a[", "]")]
)
def test_up_to_a_hundred_thousand_brackets_end(opening, closing, count):
    assert plan_or_refuse(opening * count + "1 = a" + closing * count) != []


@pytest.mark.parametrize("depth", [100, 1_000])
def test_deep_functions_and_arithmetic_end(depth):
    plan_or_refuse("abs(" * depth + "a" + ")" * depth + " = 1")
    plan_or_refuse("a" + " + 1" * depth + " = 1")
    plan_or_refuse("CASE WHEN a = 1 THEN " * depth + "a" + " END" * depth + " = 1")


STRANGE = [
    "'", "''", '"', "\\", "\\\\", "\\'", "\0", "\0001", "\x00101", "\x1a", "\n", "\r\n", "\t", "\u2028", "😀",
    "\u202eabc", "\u200f", "\ufeff",
    "%", "_", "--", "/*", "*/", ";", "; DROP TABLE t", "${x}", "$1", "?", ":x", "@x", "{{ x }}", "`",
    "\U0010ffff", "e\u0301", "'; --",
    "\\0", "\\u0041", "\\%", "\\_", "a\\", "\\n", "\\101", "0\x001", "\x85", "\xa0",
]  # fmt: skip


@pytest.mark.parametrize("value", STRANGE, ids=ascii)
def test_a_strange_string_is_found_and_printed_as_it_is(value):
    text = "s = '" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
    bound = bind_text(text, DDL)
    again = bind_text(str(bound), DDL)
    assert bound.right.value == value
    assert again == bound
    table = pa.table({"s": [value, value + "x", None]})
    assert filter_mask(again, table).to_pylist() == [True, False, None]
    judged = Pruner(again).judge(Containers(2, [Exact(S, pa.array([value, value + "x"]))]))
    assert [judged.verdict(i) for i in range(2)] == [Verdict.KEEP_WHOLE, Verdict.SKIP]


@pytest.mark.parametrize("value", STRANGE, ids=ascii)
def test_a_strange_text_is_a_predicate_or_refused(value):
    for text in (
        value,
        f"a = {value}",
        f"s = '{value}'",
        f"{value} = a",
        f"a{value}",
        f"`{value}` = 1",
        f"s LIKE '{value}%'",
    ):
        plan_or_refuse(text)


@pytest.mark.parametrize(
    "text", ["s = '\ud800'", "s = '\udfff x'", "\ud800", "`\udc00` = 1", "s LIKE '\ud83d%'"], ids=ascii
)
def test_half_of_a_surrogate_pair_is_refused(text):
    with pytest.raises(PenstockError):
        plan(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "a",
        "a =",
        "= a",
        "a = b = c",
        "a = 1 AND",
        "a IN ()",
        "a BETWEEN 1",
        "NOT",
        "(",
        ")",
        "a = 1)",
        "(a = 1",
        "a = 'x",
        "1",
        "'a'",
        "a = 1; b = 2",
        "SELECT 1",
        "a = (SELECT 1)",
        "EXISTS (SELECT 1)",
        "a = 99999999999999999999999999999999999999999",
        "nope = 1",
        "s.x = 1",
        "a.b.c = 1",
        "a['k'] = 1",
        "a = X'0G'",
        "a = DATE 'x'",
        "a = DATE '2026-13-01'",
        "s LIKE 'a' ESCAPE 'ab'",
        "a = *",
        "*",
    ],
)
def test_a_text_that_is_no_predicate_is_an_error_of_ours(text):
    with pytest.raises(PenstockError):
        plan(text)


@pytest.mark.parametrize(
    "text", ["a = 1e400", "a = -1e400", "a = 1e-400", "a = " + "9" * 38, "a = 0." + "0" * 37 + "1", "a = 1e999999999"]
)
def test_an_extreme_number_is_compared_or_refused(text):
    plan_or_refuse(text)
