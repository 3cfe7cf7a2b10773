"""Random predicates as Spark-SQL text, by kind.

A predicate is a small tree of texts, `("and", [...])`, `("or", [...])`, `("not", [child])` or `("leaf", [text])`,
so that a failing one can be taken apart; what is tested is always the text, through the real parser.
"""

# ruff: noqa: E501 (the templates read better in long lines)

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from tests.differential.values import POOLS, day_text, moment_text, write, write_text

Node = tuple[str, list[Any]]
OPERATORS = ["=", "<", "<=", ">", ">=", "<>", "<=>", "=="]
_INTEGERS = ("tinyint", "smallint", "int", "bigint")
_DECIMALS = ("decimal(5,2)", "decimal(20,3)")
_FLOATS = ("float", "double")
_NUMBERS = (*_INTEGERS, *_DECIMALS, *_FLOATS)
_TIMES = ("timestamp", "timestamp_ntz")

# The kinds for which pruning must be perfect, and those that are only measured.
REQUIRED = [
    "comparison",
    "IN",
    "NOT IN",
    "BETWEEN",
    "prefix LIKE",
    "NOT LIKE",
    "null test",
    "AND",
    "OR",
    "NOT",
    "nested",
]
MEASURED = ["across types", "general LIKE", "function", "column to column"]


@dataclass(frozen=True)
class Source:
    """A term as the text names it: `name` in SQL, its kind of values, and those of them that occur in rows."""

    name: str
    kind: str
    values: tuple[Any, ...]


def show(node: Node) -> str:
    """The tree as text."""
    word, parts = node
    if word == "leaf":
        return str(parts[0])
    if word == "not":
        return f"NOT ({show(parts[0])})"
    return f" {word.upper()} ".join(f"({show(part)})" for part in parts)


def leaves(node: Node) -> list[str]:
    """The texts of the tests, from left to right."""
    return [str(node[1][0])] if node[0] == "leaf" else [text for part in node[1] for text in leaves(part)]


def pick(rng: Random, source: Source) -> Any:
    """A value to compare with: often one that occurs, else any of the type."""
    found = [v for v in source.values if v is not None]
    return rng.choice(found) if found and rng.random() < 0.6 else rng.choice(POOLS[source.kind][1])


def literal(rng: Random, source: Source) -> str:
    """A literal of the source's own type, written in one of the ways Spark has."""
    value = pick(rng, source)
    if source.kind in ("date", *_TIMES) and rng.random() < 0.3:
        return write_text(day_text(value) if source.kind == "date" else moment_text(value))
    return write(value, source.kind)


def _of(kind: str) -> Any:
    def decorated(function: Any) -> Any:
        KINDS[kind] = function
        return function

    return decorated


KINDS: dict[str, Any] = {}


@_of("comparison")
def _comparison(rng: Random, source: Source) -> str:
    if source.kind == "boolean" and rng.random() < 0.5:
        name = source.name
        return rng.choice(
            [name, f"NOT {name}", f"{name} IS TRUE", f"{name} IS NOT FALSE", f"{name} = TRUE", f"{name} <=> FALSE"]
        )
    op, value = rng.choice(OPERATORS), literal(rng, source)
    if rng.random() < 0.03:
        value = "NULL"
    return f"{value} {op} {source.name}" if rng.random() < 0.3 else f"{source.name} {op} {value}"


def _list(rng: Random, source: Source) -> str:
    options = [literal(rng, source) for _ in range(rng.choice([1, 2, 2, 3, 5, 12]))]
    if rng.random() < 0.25:
        options.insert(rng.randrange(len(options) + 1), "NULL")
    return ", ".join(options)


@_of("IN")
def _in(rng: Random, source: Source) -> str:
    return f"{source.name} IN ({_list(rng, source)})"


@_of("NOT IN")
def _not_in(rng: Random, source: Source) -> str:
    if rng.random() < 0.3:
        return f"NOT {source.name} IN ({_list(rng, source)})"
    return f"{source.name} NOT IN ({_list(rng, source)})"


@_of("BETWEEN")
def _between(rng: Random, source: Source) -> str:
    word = rng.choice(["BETWEEN", "BETWEEN", "NOT BETWEEN"])
    return f"{source.name} {word} {literal(rng, source)} AND {literal(rng, source)}"


def _escaped(text: str, escape: str) -> str:
    return "".join(escape + c if c in ("%", "_", escape) else c for c in text)


def _like_pattern(rng: Random, source: Source, shapes: Sequence[str]) -> str:
    text = pick(rng, source)[: rng.choice([0, 1, 1, 2, 3])]
    escape = rng.choice(["\\", "\\", "!", "a"])
    safe = _escaped(text, escape)
    pattern = rng.choice(shapes).replace("T", safe)
    return write_text(pattern) + ("" if escape == "\\" else f" ESCAPE '{escape}'")


@_of("prefix LIKE")
def _prefix_like(rng: Random, source: Source) -> str:
    if rng.random() < 0.2:
        return f"startswith({source.name}, {write_text(pick(rng, source)[:2])})"
    return f"{source.name} LIKE {_like_pattern(rng, source, ['T%', 'T%', 'T%%', 'T'])}"


@_of("NOT LIKE")
def _not_like(rng: Random, source: Source) -> str:
    return f"{source.name} NOT LIKE {_like_pattern(rng, source, ['T%', 'T%', 'T'])}"


@_of("general LIKE")
def _general_like(rng: Random, source: Source) -> str:
    word = rng.choice(["LIKE", "LIKE", "NOT LIKE"])
    shapes = ["%T", "%T%", "T_", "_T", "T%T", "T_%", "_", "%", "a%c", "T%b%", "__%"]
    return f"{source.name} {word} {_like_pattern(rng, source, shapes)}"


@_of("null test")
def _null_test(rng: Random, source: Source) -> str:
    x = source.name
    return rng.choice(
        [f"{x} IS NULL", f"{x} IS NOT NULL", f"isnull({x})", f"isnotnull({x})", f"{x} <=> NULL", f"NOT {x} IS NULL"]
    )


@_of("across types")
def _across(rng: Random, source: Source) -> str:
    return f"{source.name} {rng.choice(OPERATORS)} {_other_literal(rng, source)}"


def _other_literal(rng: Random, source: Source) -> str:
    if source.kind in _NUMBERS:
        return rng.choice(
            [
                "1.5",
                "1",
                "0.5",
                "-1.5",
                "1e0",
                "1.5D",
                "9007199254740993",
                "9007199254740993.5",
                "-0.0D",
                "1.000",
                "999.995",
                "2147483648",
                "128",
                "-129",
                "CAST('NaN' AS double)",
                "1e30",
                "10.0",
                "99999999999999999.9995",
            ]
        )
    if source.kind == "date":
        return f"TIMESTAMP '{moment_text(rng.choice(POOLS['timestamp'][1]))}Z'"
    if source.kind in _TIMES:
        other = "timestamp_ntz" if source.kind == "timestamp" else "timestamp"
        return rng.choice([write(rng.choice(POOLS[other][1]), other), write(rng.choice(POOLS["date"][1]), "date")])
    if source.kind == "string":
        return rng.choice(["1", "DATE '2026-05-17'", "1.5D"])
    return literal(rng, source)


_TEMPLATES: dict[str, list[str]] = {
    "number": [
        "X + 1 O L", "X * 2 O L", "-X O L", "X - 3 O L", "2 - X O L", "abs(X) O L", "cast(X as bigint) O 1", "cast(X as double) O 1.5D",
        "cast(X as decimal(20,2)) O 1.50", "cast(X as int) O 1", "cast(X as string) = '1'", "coalesce(X, 0) O L", "nvl(X, 1) O L",
        "if(X > 1, X, 0) O L", "case when X > 1 then 1 else 2 end O 1", "case X when 1 then 'a' end = 'a'", "X % 2 = 0", "X / 2 > 1",
        "10 / X > 1", "floor(X) O L", "ceil(X) O 1", "FOO(X) = 1", "FOO(X)", "greatest(X, 1) O L", "least(X, 5) O L", "sign(X) = 1",
        "round(X) O L", "X + 1 IS NULL", "nullif(X, 1) IS NULL",
        "coalesce(X, 1) IS NULL", "isnan(X)", "X = X", "X <=> X", "cast(X as float) O 1", "cast(X as smallint) O 1", "X + X O L",
        "cast(X as boolean)", "X + 1 IN (1, 2, 3)", "X * 2 BETWEEN 1 AND 20", "-X IN (1, -1)", "nanvl(X, 1) O 1", "FOO() = X",
        "coalesce(X + 1, 5) O 5", "if(X IS NULL, true, X > 1)", "cast(X as decimal(5,1)) O 1.5",
    ],
    "string": [
        "substring(X, 1, 2) O L", "left(X, 1) O L", "upper(X) O L", "lower(X) = L", "length(X) O 1", "coalesce(X, 'z') O L",
        "endswith(X, 'b')", "contains(X, 'b')", "X || 'a' O L", "concat(X, 'b') = 'ab'", "FOO(X) = 'a'", "trim(X) = L", "right(X, 1) = L",
        "substring(X, 2, 1) = 'b'", "if(X = 'a', 'b', X) O L", "case when X = 'a' then 1 else 2 end = 1", "X IN ('a', upper(X))",
        "left(X, 2) IN ('a', 'ab', L)", "substr(X, 1, 1) NOT IN ('a')", "reverse(X) = L", "replace(X, 'a', 'b') = L", "cast(X as int) = 1",
        "instr(X, 'b') O 1", "left(X, 1) IS NULL", "left(X, 0) = ''", "substring(X, 0, 2) O L", "substring(X, 1) O L",
        "coalesce(X, 'z') IS NULL", "nullif(X, 'a') IS NULL", "startswith(upper(X), 'A')", "left(X, 1) LIKE 'a%'", "ltrim(X) O L",
        "X = X", "X LIKE X", "upper(X) LIKE 'A%'", "startswith(X, NULL)", "cast(X as boolean)", "cast(X as date) > DATE '2000-01-01'",
    ],
    "date": [
        "year(X) O 2026", "year(X) O 1970", "year(X) = 1969", "month(X) O 5", "day(X) = 1", "date_add(X, 1) O L", "date_sub(X, 31) O L",
        "datediff(X, DATE '1970-01-01') O 0", "datediff(DATE '2026-05-17', X) O 1", "date_trunc('month', X) O '2026-05-01'",
        "trunc(X, 'year') O DATE '2026-01-01'", "cast(X as timestamp) O TIMESTAMP '2026-05-17 00:00:00'", "last_day(X) O L",
        "coalesce(X, DATE '2026-05-17') O L", "FOO(X) = 1", "year(X) IN (1969, 2026)", "year(X) BETWEEN 1969 AND 1970", "unix_date(X) O 0",
        "cast(X as string) LIKE '2026%'", "quarter(X) = 2", "dayofweek(X) = 1", "add_months(X, 1) O L", "X + 1 O L", "year(X) IS NULL",
        "X - 1 O L", "cast(cast(X as timestamp) as date) O L", "weekday(X) = 3", "date_trunc('week', X) O '2026-05-11'",
    ],
    "time": [
        "year(X) O 2026", "year(X) O 1970", "year(X) = 1969", "month(X) O 5", "hour(X) O 0", "cast(X as date) O DATE '2026-05-17'",
        "to_date(X) = '2006-10-28'", "date(X) O DATE '1969-12-31'", "date_trunc('day', X) O '2026-05-17'", "date_trunc('hour', X) O L",
        "date_trunc('month', X) O '2026-05-01'", "date_trunc('year', X) O '1970-01-01'", "date_add(X, 1) O DATE '2026-05-18'",
        "datediff(X, DATE '1970-01-01') O 0", "coalesce(X, TIMESTAMP '2026-05-17 00:00:00Z') O L", "FOO(X) = 1", "year(X) NOT IN (1969)",
        "unix_seconds(X) O 0", "unix_micros(X) O -1", "cast(X as bigint) O 0", "minute(X) = 0", "cast(X as date) IN ('2006-10-29', '2025-11-02')",
        "cast(X as date) BETWEEN '1969-12-31' AND '1970-01-01'", "cast(X as string) > '2026'", "date_trunc('quarter', X) O L",
        "cast(X as timestamp_ntz) O TIMESTAMP_NTZ '2026-05-17 00:00:00'", "cast(X as timestamp) O L", "date_trunc('minute', X) O L",
        "cast(X as date) IS NULL", "date_trunc('week', X) O '2026-05-11'", "year(cast(X as date)) O 2026", "last_day(X) O DATE '2026-05-31'",
    ],
    "boolean": ["coalesce(X, false)", "if(X, false, true)", "NOT coalesce(X, true)", "FOO(X)", "cast(X as int) O 1", "X = X", "nvl(X, true) <> true"],
    "binary": ["length(X) O 1", "coalesce(X, X'61') O L", "FOO(X) = 1", "X || X'00' O L"],
}  # fmt: skip


def _family(kind: str) -> str:
    if kind in _NUMBERS:
        return "number"
    return "time" if kind in _TIMES else kind


@_of("function")
def _function(rng: Random, source: Source) -> str:
    text = rng.choice(_TEMPLATES[_family(source.kind)]).replace("FOO", f"foo{rng.randrange(10**6)}")
    text = text.replace(" O ", f" {rng.choice(OPERATORS[:7])} ")
    if source.kind == "binary":
        text = text.replace("X'", "\1")
    parts = []
    for c in text.replace("X", source.name).replace("\1", "X'").split(" "):
        parts.append(c.replace("L", literal(rng, source)) if c.strip("(),") == "L" else c)
    return " ".join(parts)


def _column_to_column(rng: Random, sources: Sequence[Source]) -> str:
    a, b = rng.choice(sources), rng.choice(sources)
    if _family(a.kind) == "number" == _family(b.kind) and rng.random() < 0.2:
        return f"{a.name} + {b.name} {rng.choice(OPERATORS)} {rng.choice(['0', '1', '3'])}"
    return f"{a.name} {rng.choice(OPERATORS)} {b.name}"


def leaf(rng: Random, sources: Sequence[Source], kinds: Sequence[str]) -> Node:
    """One test of one of the kinds, over whichever source takes it."""
    kind = rng.choice(kinds)
    if kind == "column to column":
        return "leaf", [_column_to_column(rng, sources)]
    fitting = [s for s in sources if s.kind == "string"] if "LIKE" in kind else list(sources)
    if not fitting:
        kind, fitting = "comparison", list(sources)
    return "leaf", [KINDS[kind](rng, rng.choice(fitting))]


def tree(rng: Random, sources: Sequence[Source], kinds: Sequence[str], depth: int) -> Node:
    """A nested predicate over tests of the given kinds."""
    if depth == 0 or rng.random() < 0.15:
        return leaf(rng, sources, kinds)
    word = rng.choice(["and", "and", "or", "or", "not"])
    count = 1 if word == "not" else rng.choice([2, 2, 2, 3])
    return word, [tree(rng, sources, kinds, depth - 1) for _ in range(count)]


BASIC = ["comparison", "IN", "NOT IN", "BETWEEN", "prefix LIKE", "NOT LIKE", "null test"]


def of_kind(rng: Random, sources: Sequence[Source], kind: str) -> Node:
    """A predicate of one of the measured kinds."""
    if kind in ("AND", "OR"):
        return kind.lower(), [leaf(rng, sources, BASIC) for _ in range(rng.choice([2, 2, 3]))]
    if kind == "NOT":
        inner = rng.choice(["and", "or", "leaf"])
        parts = [leaf(rng, sources, BASIC) for _ in range(2)]
        return "not", [parts[0] if inner == "leaf" else (inner, parts)]
    if kind == "nested":
        return tree(rng, sources, BASIC, rng.choice([2, 3]))
    return leaf(rng, sources, [kind])


def anything(rng: Random, sources: Sequence[Source]) -> Node:
    """Any predicate at all, for tests that only ask whether results are right."""
    return tree(
        rng,
        sources,
        [*BASIC, *BASIC, *MEASURED, "function", "function", "across types"],
        rng.choice([0, 1, 1, 2, 3, 4]),
    )


assert set(BASIC) | set(MEASURED) == set(KINDS) | {"column to column"}
