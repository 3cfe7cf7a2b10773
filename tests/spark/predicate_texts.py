"""Random predicates over the columns of `predicate_rows`, as SQL text: what Spark's grammar and coercions allow.

Parentheses are left out as often as they are written: both parsers see the same text, so precedence is tested too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

# Shapes with an open bug, which would hide others; each is also in `predicate_corpus.sql`. On means: not drawn.
OPEN_INTERVAL_AND_DAYS = True  # `dt - INTERVAL 1 DAY + 1` is read as `dt - (INTERVAL 1 DAY + 1)`
OPEN_LISTS_BY_PAIRS = False  # `ntz IN (TIMESTAMP '…', '…')` is compared by pairs and not in one common type

INTEGERS = ["ti", "si", "i", "j", "l", "st.a", "st.in.x", "mi['k']", "mi.k", "element_at(mi, 'a.b')", "`order by`"]
NUMBERS = [*INTEGERS, "f", "d", "p", "q", "r", "st.in.`odd name`"]
STRINGS = ["s", "t", "st.b", "m['k']", "m.k", "m['a.b']", "element_at(m, 'it''s')", "try_element_at(m, 'none')"]
TIMES = ["ts", "ntz", "st.in.t"]
_COMPARE = ["=", "<", "<=", ">", ">=", "<>", "!=", "<=>", "=="]
# fmt: off
_INTEGER_LITERALS = [
    "0", "1", "2", "3", "5", "10", "-1", "-2", "- 5", "127", "128", "-129", "32768", "2147483647", "-2147483648",
    "2147483648", "9223372036854775807", "5L", "1S", "-1Y", "2Y", "-3L", "005",
]
_NUMBER_LITERALS = [
    *_INTEGER_LITERALS, "1.5", "-1.5", "0.0", "1.50", ".5", "1.", "0.1", "5.000", "1.5D", "-0.0D", "0.1D", "1e0",
    "15e-1", "1E3", "1.5F", "0.1F", "2BD", "1.50BD", "0.001BD", "9007199254740993", "9007199254740992D",
    "9007199254740993.0", "999.99", "99999999999999999.999", "0.0000000001", "CAST('NaN' AS double)",
    "CAST('Infinity' AS float)", "-1e-1",
]
_STRING_LITERALS = [
    "''", "'a'", "'A'", "'abc'", "'a%c'", "'a_c'", "'it''s'", r"'it\'s'", r"'\\'", r"r'\'", r"r'a\b'", r"'a\\b'",
    r"'x\ny'", r"'\n'", "'é'", "'日本'", "'🎉'", r"'\u00e9'", '"a"', '"it\'s"', '\'"\'', "'1'", "'5'", "'2024-03-10'",
    "'k'", r"'\x'",
]
_PATTERNS = [
    "'a%'", "'%c'", "'%b%'", "'a_c'", "'_'", "'__'", "'%'", "''", "'abc'", r"'a\%c'", r"'a\\%c'", r"'a\_c'",
    r"r'a\_%'", "'a!%c' ESCAPE '!'", "'%!_%' ESCAPE '!'", "'x%y'", "'x_y'", r"'x\n%'", "'日_'", "'_本'", "'a🎉%'",
    "'_🎉_'", "'%''%'", r"'\\\\%'", r"'%\\\\'", "'%-%-%'", "'1%'", "'%.%'", "'_%_'", "'%%'", "'%é'", '"a%"', "'[a]%'",
    "'/%%' ESCAPE '/'",
]
_DATE_LITERALS = [
    "DATE '2024-03-10'", "DATE '1970-01-01'", "date'2024-3-11'", "DATE '2024-11-03'", "DATE '0001-01-01'",
    "DATE '2024'", "DATE '9999-12-31'", "DATE '1969-12-31'",
]
_DATE_TEXTS = ["'2024-03-10'", "'1970-01-01'", "'2024-11'", "'2024'", "' 2026-05-17 '", "'2024-3-9'", "'9999-12-31'"]
_TIME_LITERALS = [
    "TIMESTAMP '1970-01-01 00:00:00'", "TIMESTAMP '1970-01-01 00:00:00Z'", "TIMESTAMP '2024-03-10 02:30:00'",
    "TIMESTAMP '2024-11-03 01:30:00'", "TIMESTAMP '2024-11-03 01:30:00-05:00'", "TIMESTAMP '2024-03-10'",
    "TIMESTAMP '2024-11-03 01:30:00 America/New_York'", "TIMESTAMP_NTZ '2024-03-10 02:30:00'",
    "TIMESTAMP_LTZ '2024-03-10 07:00:00'", "TIMESTAMP_NTZ '1970-01-01 00:00:00.5'",
    "TIMESTAMP '1969-12-31T23:59:59.999999Z'", "TIMESTAMP '2026-05-17 12:00:00.123456 Asia/Kolkata'",
    "TIMESTAMP_NTZ '2024-11-03 01:30:00'",
]
_TIME_TEXTS = [
    "'1970-01-01'", "'2024-03-10 02:30:00'", "'2024-11-03 01:30:00'", "'2024-11-03T05:30:00Z'", "'2024'",
    "'2024-3-10'", "'2024-11-03 00:00:00+05:30'", "'1970-01-01 00:00:00.5'", "'2024-03-10 07:00:00 UTC'",
    "' 2024-11-03 '",
]
_BINARIES = ["bin", "X''", "X'61'", "x'6162'", "X'FF'", "X'80'", "'a'", "CAST('ab' AS binary)"]
_INTERVALS = [
    "1 DAY", "'1' MONTH", "-1 DAY", "13 MONTHS", "'2' WEEK", "1 YEAR", "30 MINUTES", "'5' HOURS", "90 SECONDS",
]
_CASTS = ["int", "bigint", "double", "decimal(20,3)", "decimal(10,2)", "smallint", "float"]
# fmt: on


class Texts:
    """A source of random texts; each method returns one of a kind, `depth` is how far it may nest."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng

    def pick(self, options: Sequence[str]) -> str:
        return self.rng.choice(options)

    def chance(self, share: float) -> bool:
        return self.rng.random() < share

    def predicate(self) -> str:
        """A whole predicate, up to four connectives deep."""
        return self.logic(self.rng.choice([0, 0, 0, 1, 1, 1, 2, 2, 3, 4]))

    def logic(self, depth: int) -> str:
        if depth == 0 or self.chance(0.15):
            return self.test(2)
        word = self.pick(["AND", "AND", "OR", "OR", "NOT", "!", "choice"])
        if word in ("NOT", "!"):
            return f"{word} ({self.logic(depth - 1)})"
        if word == "choice":
            return self.choice(lambda: self.logic(depth - 1), depth)
        arms = [self.logic(depth - 1) for _ in range(3 if depth == 1 and self.chance(0.3) else 2)]
        return f" {word} ".join(f"({arm})" if self.chance(0.5) else arm for arm in arms)

    def test(self, depth: int) -> str:
        kinds = [
            self.number_test,
            self.string_test,
            self.date_test,
            self.time_test,
            self.number_test,
            self.boolean_test,
        ]
        kinds += [self.null_test, self.across, self.tuple_test, self.binary_test]
        found = self.rng.choice(kinds)(depth)
        return f"NOT {found}" if self.chance(0.1) else found

    # Tests of one kind of value.

    def compared(self, values: Sequence[str], other: Sequence[str]) -> str:
        """A comparison, a list or a range of the first of `values` with `other`s."""
        value, kind = values[0], self.rng.random()
        if kind < 0.45:
            pair = (value, other[0]) if self.chance(0.8) else (other[0], value)
            return f"{pair[0]} {self.pick(_COMPARE)} {pair[1]}"
        if kind < 0.65:
            options = list(other) + ["NULL"] * self.chance(0.2)
            self.rng.shuffle(options)
            return f"{value} {self.pick(['IN', 'IN', 'NOT IN'])} ({', '.join(options)})"
        if kind < 0.8:
            word = self.pick(["BETWEEN", "BETWEEN", "NOT BETWEEN"])
            return f"{value} {word} {other[0]} AND {other[-1]}"
        return f"{value} {self.pick(_COMPARE)} {values[-1]}"

    def number_test(self, depth: int) -> str:
        value = [self.number(depth), self.number(depth)]
        return self.compared(value, [self.pick(_NUMBER_LITERALS) for _ in range(self.rng.choice([1, 2, 3]))])

    def string_test(self, depth: int) -> str:
        if self.chance(0.35):
            return f"{self.string(depth)} {self.pick(['LIKE', 'LIKE', 'NOT LIKE'])} {self.pick(_PATTERNS)}"
        if self.chance(0.1):
            test = self.pick(["startswith", "endswith", "contains"])
            return f"{test}({self.string(depth)}, {self.pick(_STRING_LITERALS)})"
        values = [self.string(depth), self.string(depth)]
        return self.compared(values, [self.pick(_STRING_LITERALS) for _ in range(self.rng.choice([1, 2, 3]))])

    def date_test(self, depth: int) -> str:
        literals = _DATE_LITERALS + _DATE_TEXTS
        values = [self.date(depth), self.date(depth)]
        return self.compared(values, [self.pick(literals) for _ in range(self.rng.choice([1, 2, 3]))])

    def time_test(self, depth: int) -> str:
        literals = _TIME_LITERALS + _TIME_TEXTS + _DATE_LITERALS[:4]
        if OPEN_LISTS_BY_PAIRS:
            typed = [each for each in _TIME_LITERALS if "NTZ" not in each]
            literals = self.rng.choice([typed, _TIME_TEXTS])
        values = [self.time(depth), self.pick(["dt", self.time(depth), self.time(depth)])]
        return self.compared(values, [self.pick(literals) for _ in range(self.rng.choice([1, 2, 3]))])

    def binary_test(self, depth: int) -> str:
        return self.compared(["bin", self.pick(_BINARIES)], [self.pick(_BINARIES[1:]) for _ in range(2)])

    def boolean_test(self, depth: int) -> str:
        value = self.boolean(depth)
        if self.chance(0.4):
            return value
        shapes = ["V = TRUE", "V <> FALSE", "V IS TRUE", "V IS NOT TRUE", "V IS FALSE", "V IS UNKNOWN", "V <=> NULL"]
        shapes += ["V IN (TRUE, NULL)", "V = 'true'", "V < c", "V <=> c", "c != V", "NOT V", "V IS NOT FALSE"]
        return self.pick(shapes).replace("V", value)

    def null_test(self, depth: int) -> str:
        kind = self.pick(["number", "string", "date", "time", "column"])
        value = self.pick(["st", "m", "st.in", "b", "bin"]) if kind == "column" else getattr(self, kind)(depth)
        return self.pick([f"{value} IS NULL", f"{value} IS NOT NULL", f"isnull({value})", f"isnotnull({value})"])

    def across(self, depth: int) -> str:
        """Values of different kinds, where Spark inserts the cast."""
        string, number = self.pick(STRINGS), self.pick(NUMBERS)
        kinds = [
            [f"TRY_CAST({string} AS int)", self.pick(["'5'", "1.5", "2L"])],
            [number, self.pick(["'5'", "' 1 '", "'-1'", "'0'"])],
            [self.pick(["dt", "ts", "ntz"]), self.pick(["dt", "ts", "ntz"])],
            ["b", self.pick(["'true'", "'no'", "' F '"])],
            [string, self.pick(["1", "1.5", "DATE '2024-03-10'", "TRUE", "5L", "0.5D"])],
            ["dt", self.pick(_TIME_LITERALS)],
            [number, self.pick(NUMBERS)],
        ]
        pair = self.rng.choice(kinds)
        if self.chance(0.2):
            return f"{pair[0]} IN ({pair[1]}, {self.pick(['NULL', pair[1]])})"
        return f"{pair[0]} {self.pick(_COMPARE)} {pair[1]}"

    def tuple_test(self, depth: int) -> str:
        """Spark wants the very types here: a bare NULL or a wider number is refused."""
        typed = {
            "i": ["1", "5", "CAST(NULL AS int)", "-1"],
            "s": ["'a'", "'it''s'", "CAST(NULL AS string)"],
            "dt": ["DATE '2024-03-10'", "DATE '1970-01-01'"],
            "l": ["1L", "CAST(NULL AS bigint)", "5L"],
            "b": ["TRUE", "FALSE", "CAST(NULL AS boolean)"],
            "d": ["0.0D", "CAST('NaN' AS double)", "1.5D"],
            "mi['k']": ["1", "5", "CAST(NULL AS int)"],
        }
        names = self.rng.sample(list(typed), self.rng.choice([2, 2, 3]))
        count = self.rng.choice([1, 2, 4])
        options = [f"({', '.join(self.pick(typed[name]) for name in names)})" for _ in range(count)]
        return f"({', '.join(names)}) {self.pick(['IN', 'NOT IN'])} ({', '.join(options)})"

    # Values of one kind.

    def choice(self, draw: Callable[[], str], depth: int) -> str:
        """One of two values by a condition."""
        a, b, c = draw(), draw(), self.test(0)
        shapes = [f"if({c}, {a}, {b})", f"CASE WHEN {c} THEN {a} ELSE {b} END", f"CASE WHEN {c} THEN {a} END"]
        shapes += [f"coalesce({a}, {b})", f"nvl({a}, {b})", f"CASE i WHEN 1 THEN {a} WHEN j THEN {b} END"]
        return self.pick([*shapes, f"nvl2(i, {a}, {b})"])

    def boolean(self, depth: int) -> str:
        if depth <= 0 or self.chance(0.5):
            return self.pick(["b", "c", "map_contains_key(m, 'k')", "map_contains_key(mi, '')", "isnan(d)"])
        if self.chance(0.5):
            return f"({self.test(depth - 1)})"
        return self.choice(lambda: self.boolean(depth - 1), depth - 1)

    def number(self, depth: int) -> str:
        if depth <= 0 or self.chance(0.45):
            return self.pick(NUMBERS)
        inner = self.number(depth - 1)
        kind = self.rng.randrange(8)
        if kind <= 2:
            return self.arithmetic(depth)
        if kind == 3:
            return self.choice(lambda: self.number(depth - 1), depth - 1)
        if kind == 4:
            function = self.pick(
                ["abs(X)", "floor(X)", "ceil(X)", "round(X)", "sign(X)", "greatest(X, 1)", "least(X, 5L)", "-X"]
            )
            return function.replace("X", self.pick(NUMBERS))
        if kind == 5:
            function = self.pick(["year(X)", "month(X)", "day(X)", "quarter(X)", "dayofweek(X)", "weekofyear(X)"])
            return function.replace("X", self.date(depth - 1))
        if kind == 6:
            return self.pick(["length(X)", "instr(X, 'b')", "char_length(X)"]).replace("X", self.string(depth - 1))
        return self.pick([f"{self.pick(['CAST', 'TRY_CAST'])}({inner} AS {self.pick(_CASTS)})", f"nullif({inner}, 5)"])

    def arithmetic(self, depth: int) -> str:
        parts = [
            self.pick(["i", "j", "ti", "l", "st.a", "2", "3", "5L", "p", "d", "1.5"])
            for _ in range(self.rng.choice([2, 2, 3]))
        ]
        found = parts[0] if self.chance(0.8) else f"-{parts[0]}"
        for part in parts[1:]:
            part = f"- {part}" if self.chance(0.1) else part
            found = f"{found} {self.pick(['+', '-', '*', '/', '%', 'div', '+', '-'])} {part}"
            found = f"({found})" if self.chance(0.3) else found
        return found

    def string(self, depth: int) -> str:
        if depth <= 0 or self.chance(0.5):
            return self.pick(STRINGS)
        if self.chance(0.25):
            return self.choice(lambda: self.string(depth - 1), depth - 1)
        shapes = [
            "upper(X)",
            "lower(X)",
            "trim(X)",
            "substring(X, 1, 2)",
            "left(X, 1)",
            "right(X, 2)",
            "X || 'b'",
            "concat(X, t)",
        ]
        shapes += [
            "reverse(X)",
            "replace(X, 'a', 'b')",
            "nullif(X, '')",
            "'a' || X",
            "CAST(i AS string)",
            "substr(X, 2)",
        ]
        return self.pick(shapes).replace("X", self.string(depth - 1))

    def date(self, depth: int) -> str:
        if depth <= 0 or self.chance(0.5):
            return "dt"
        inner, time = self.date(depth - 1), self.pick(TIMES)
        days = "dt" if OPEN_INTERVAL_AND_DAYS and "INTERVAL" in inner else inner
        shapes = [f"CAST({time} AS date)", f"to_date({time})", f"date_add({inner}, 1)", f"date_sub({time}, 31)"]
        shapes += [f"last_day({inner})", f"trunc({inner}, 'month')", f"{days} + 1", f"add_months({inner}, -1)"]
        shapes += [f"coalesce({inner}, DATE '1970-01-01')", f"nullif({inner}, dt)"]
        shapes += [f"{inner} {sign} INTERVAL {self.pick(_INTERVALS[:6])}" for sign in "+-"]
        return self.pick(shapes)

    def time(self, depth: int) -> str:
        if depth <= 0 or self.chance(0.5):
            return self.pick(TIMES)
        inner = self.time(depth - 1)
        kind = self.rng.randrange(5)
        if kind == 0:
            return f"date_trunc('{self.pick(['year', 'month', 'week', 'DAY', 'hour', 'minute'])}', {inner})"
        if kind <= 2:
            return f"{inner} {self.pick('+-')} INTERVAL {self.pick(_INTERVALS)}"
        if kind == 3:
            return f"CAST({inner} AS {self.pick(['timestamp', 'timestamp_ntz'])})"
        return self.choice(lambda: self.time(depth - 1), depth - 1)
