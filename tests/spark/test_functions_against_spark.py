"""Every function that Penstock evaluates, over hard values of every type it takes, against Spark itself.

Checked for each combination of argument types that a signature accepts: that Spark accepts it too, that
Spark's result has the promised type, that no value differs, and that not more rows than `OPEN` says are given
up where Spark answers.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from penstock.expr.functions.function import Constants
from penstock.expr.functions.function_registry import FUNCTIONS
from penstock.expr.kernels.cast import cast
from penstock.expr.kernels.vector import Vector, union
from penstock.expr.types import TIMESTAMP, TIMESTAMP_NTZ, is_decimal, is_float, is_integer
from tests.fixtures.variants import variants
from tests.spark.hard_values import HARD, ZONES
from tests.spark.judge import Answers, Question, ask, ask_all, disagreements, given_up

pytestmark = pytest.mark.spark

WORDS = [
    "",
    " ",
    "a",
    "ab",
    "abc",
    "ABC",
    "  spaced  ",
    "\ttab\t",
    "naïve",
    "ÉCOLE",
    "日本語",
    "🎉🎈",
    "straße",
    "aaaa",
    "b",
    None,
]
DATES = HARD[pa.date32()]
_LEAST = {
    pa.string(): pa.array(WORDS),
    pa.float64(): pa.array([0.0, -0.0, 1.5, -2.5, 1e300, 2.0**63, float("nan"), float("inf"), float("-inf"), None]),
    pa.float32(): pa.array([0.0, 1.5, -2.5, 3e38, float("nan"), float("-inf"), None], pa.float32()),
    pa.int64(): pa.array([0, 1, -1, 7, -7, 2**62 + 1, 2**63 - 1, -(2**63), 3_037_000_500, None], pa.int64()),
    pa.int32(): pa.array([0, 1, -1, 7, -7, 46_341, 2**31 - 1, -(2**31), None], pa.int32()),
    TIMESTAMP: HARD[TIMESTAMP][::9],
    TIMESTAMP_NTZ: HARD[TIMESTAMP_NTZ][::9],
}
# A few values of each type, for functions of several arguments.
FEW = {
    t: _LEAST.get(t, values if len(values) < 18 else values.take(list(range(0, len(values), 2))))
    for t, values in HARD.items()
}

# The share of Spark's answers that may stay open; everything else: 7 % for the ends of the ranges.
OPEN = dict.fromkeys(("lower", "lcase", "upper", "ucase"), 0.6)  # not ASCII
OPEN |= {"floor": 0.4, "ceil": 0.4, "ceiling": 0.4}  # what is no bigint
# A time without a date is one of today.
OPEN |= dict.fromkeys(("hour", "minute", "second", "date_trunc", "to_timestamp"), 0.15)
# Decimals of more than 34 digits; bad dates beside a unit that makes null.
OPEN |= {"add_months": 0.12, "abs": 0.3, "negative": 0.4, "trunc": 0.25}
# Days beyond the range, where Spark wraps around.
OPEN |= dict.fromkeys(("date_add", "dateadd", "date_sub", "datediff", "date_diff", "+", "-"), 0.35)
# Texts of dates beyond the year 9999; infinities and what is too large, which Spark cuts.
OPEN |= dict.fromkeys(("length", "len", "char_length", "character_length"), 0.25)
OPEN |= dict.fromkeys(("unhex", "trim", "ltrim", "rtrim", "reverse", "concat"), 0.25) | {"timestamp_seconds": 0.3}
# A text that is no number beside NULL, and remainders of quotients of more than 38 digits.
OPEN |= dict.fromkeys(("*", "/", "div", "%", "mod", "pmod"), 0.3)

TIME_TYPES = (pa.date32(), TIMESTAMP, TIMESTAMP_NTZ, pa.string())
UNITS = (
    "year",
    "YYYY",
    "yy",
    "quarter",
    "month",
    "mon",
    "MM",
    "week",
    "day",
    "dd",
    "hour",
    "minute",
    "second",
)
UNITS += ("millisecond", "microsecond", "decade", "")


def columns_of(arrays: Sequence[pa.Array]) -> list[pa.Array]:
    """All combinations of the values of several arrays."""
    places = np.indices([len(values) for values in arrays]).reshape(len(arrays), -1)
    return [values.take(pa.array(place)) for values, place in zip(arrays, places, strict=True)]


def ours(name: str, arrays: Sequence[pa.Array], constants: Constants, zone: str) -> Vector | None:
    """What Penstock answers: the arguments cast as the signature says, then the kernel."""
    signature = FUNCTIONS[name].signature([values.type for values in arrays], constants)
    if signature is None:
        return None
    given = [cast(values, t, zone) for values, t in zip(arrays, signature.arguments, strict=True)]
    if FUNCTIONS[name].chooses:
        found = FUNCTIONS[name].kernel(given, zone)
    else:
        plain = FUNCTIONS[name].kernel([each.values for each in given], zone)
        found = Vector(plain.values, union(plain.failed, *(each.failed for each in given)))
    assert found.values.type == signature.result
    return found


class Court:
    """Questions, put to Spark together when the block ends."""

    def __init__(self, spark: SparkSession, zone: str = "UTC") -> None:
        self.spark, self.zone = spark, zone
        self.cases: list[tuple[str, Vector, Sequence[pa.Array], Question]] = []

    def takes(self, name: str, sql: str, arrays: Sequence[pa.Array], given: Any = None) -> bool:
        """Note a question over columns a, b, c, of which `given` are constants. False when the types are not taken."""
        constants: list[tuple[object] | None] = [None] * len(arrays)
        for place, value in (given or {}).items():
            constants[place] = (value,)
        mine = ours(name, arrays, constants, self.zone)
        if mine is not None:
            self.cases.append((name, mine, arrays, Question(dict(zip("abcdef", arrays, strict=False)), sql)))
        return mine is not None

    def __enter__(self) -> Court:
        return self

    def __exit__(self, raised: type[BaseException] | None, *_: object) -> None:
        if raised is not None:
            return
        answers = ask_all(self.spark, [question for *_, question in self.cases], self.zone)
        for (name, mine, arrays, question), theirs in zip(self.cases, answers, strict=True):
            case = (question.expression, [str(values.type) for values in arrays])
            assert theirs.values.type == mine.values.type, (case, theirs.values.type, mine.values.type)
            assert [(describe(arrays, i), a, b) for i, a, b in disagreements(mine, theirs)] == [], case
            check_open(name, mine, theirs, arrays)


def check_open(name: str, mine: Vector, theirs: Answers, arrays: Sequence[pa.Array]) -> None:
    left = given_up(mine, theirs)
    answered = theirs.raised.count(False)
    assert len(left) <= OPEN.get(name, 0.07) * answered + 0.5, [describe(arrays, i) for i in left]


def describe(arrays: Sequence[pa.Array], row: int) -> list[Any]:
    plain = [values.cast(pa.int64()) if pa.types.is_timestamp(values.type) else values for values in arrays]
    return [values[row] if pa.types.is_date(values.type) else values[row].as_py() for values in plain]


UNARY = [name for name, each in FUNCTIONS.items() if name.isidentifier() and not each.chooses]
OPERATORS = ("+", "-", "*", "/", "%", "div", "mod", "pmod", "&", "|", "^", "try_add", "try_multiply", "try_divide")
NUMERALS = pa.array(["1", "-7", " 3 ", "1.5", "1e3", "x", "", "9223372036854775807", "0", None])


@pytest.mark.parametrize("name", UNARY)
def test_function_of_one_argument(spark: SparkSession, name: str) -> None:
    with Court(spark) as court:
        taken = [t for t, values in HARD.items() if court.takes(name, f"{name}(a)", [values])]
        texts = FUNCTIONS[name].signature([pa.string()], [None])
        if texts is not None and texts.arguments == (pa.string(),):
            assert court.takes(name, f"{name}(a)", [FEW[pa.string()]])
    assert taken or FUNCTIONS[name].signature([pa.int32()], [None]) is None


@pytest.mark.parametrize("zone", variants(ZONES[1:], every_run=3))
def test_function_of_a_time_follows_the_session_zone(spark: SparkSession, zone: str) -> None:
    with Court(spark, zone) as court:
        for name in (
            "year",
            "dayofyear",
            "weekofyear",
            "hour",
            "minute",
            "second",
            "last_day",
            "to_date",
            "to_timestamp",
        ):
            for t in TIME_TYPES:
                assert court.takes(name, f"{name}(a)", [HARD[t]])
        assert court.takes("unix_seconds", "unix_seconds(a)", [HARD[TIMESTAMP]])


def sql_of(name: str) -> str:
    return f"{name}(a, b)" if name.isidentifier() and name != "div" else f"a {name} b"


@pytest.mark.parametrize("name", OPERATORS)
def test_operator(spark: SparkSession, name: str) -> None:
    types = [t for t in FEW if is_integer(t) or is_float(t) or is_decimal(t) or t == pa.date32()]
    pairs = list(itertools.product(types, types))
    with Court(spark) as court:
        taken = [p for p in pairs if court.takes(name, sql_of(name), columns_of([FEW[t] for t in p]))]
    assert len(taken) >= 16


@pytest.mark.parametrize("name", ["+", "-", "*", "/", "%", "div", "pmod"])
def test_text_beside_a_number_is_read_as_one(spark: SparkSession, name: str) -> None:
    types = [t for t in FEW if is_integer(t) or is_float(t) or is_decimal(t)]
    with Court(spark) as court:
        for t in types:
            taken = [
                court.takes(name, sql_of(name), columns_of(pair)) for pair in ((NUMERALS, FEW[t]), (FEW[t], NUMERALS))
            ]
            assert all(taken) or (name == "div" and not is_integer(t))
        for sign in ("-a", "+a", "abs(a)"):
            assert court.takes({"-": "negative", "+": "positive", "a": "abs"}[sign[0]], sign, [NUMERALS])


@pytest.mark.parametrize("name", ["+", "-", "*", "/", "%", "pmod", "try_divide"])
def test_decimals_wider_than_38_digits_are_cut_as_spark_cuts(spark: SparkSession, name: str) -> None:
    digits = [0, 1, -1, 5, 15, 25, -25, 10**17 + 5, 123456789012345678, 10**18 - 1, -(10**18) + 1]
    wide = [*digits, 10**37 + 5, 10**38 - 1, -(10**38) + 1, 12345678901234567890123456789012345678]
    with Court(spark) as court:
        wider = [((38, 10), (38, 10)), ((38, 37), (38, 1)), ((20, 5), (19, 18)), ((18, 9), (18, 0))]
        for types in (*wider, ((9, 2), (1, 0)), ((38, 38), (38, 38)), ((38, 0), (5, 5))):
            arrays = []
            for precision, scale in types:
                texts = [f"{x}e-{scale}" for x in wide if abs(x) < 10**precision]
                arrays.append(cast(pa.array(texts), pa.decimal128(precision, scale), "UTC").values)
            assert court.takes(name, sql_of(name), columns_of(arrays))


@pytest.mark.parametrize("name", ["date_add", "dateadd", "date_sub", "datediff", "date_diff", "add_months"])
def test_date_arithmetic(spark: SparkSession, name: str) -> None:
    second = [pa.int8(), pa.int16(), pa.int32(), pa.date32(), TIMESTAMP, pa.string()]
    with Court(spark) as court:
        sql = f"{name}(a, b)"
        taken = [t for t in second if court.takes(name, sql, columns_of([DATES, FEW[t]]))]
        assert taken
        firsts = [t for t in TIME_TYPES if court.takes(name, sql, columns_of([HARD[t], FEW[taken[0]][:4]]))]
    assert firsts == list(TIME_TYPES)


@pytest.mark.parametrize("zone", variants(ZONES, every_run=4))
def test_date_trunc(spark: SparkSession, zone: str) -> None:
    with Court(spark, zone) as court:
        for unit in UNITS:
            # Spark does not even read the text beside a unit that makes null; here it is cast first and fails.
            for t in TIME_TYPES if unit in UNITS[:-2] else TIME_TYPES[:3]:
                values = HARD[t] if t != pa.string() else HARD[t][90:]
                units = pa.array([unit] * len(values))
                assert court.takes("date_trunc", f"date_trunc('{unit}', b)", [units, values], {0: unit})
                assert court.takes("trunc", f"trunc(a, '{unit}')", [values, units], {1: unit})


@pytest.mark.parametrize("name", ["round", "bround", "ceil", "floor"])
def test_rounding_to_places(spark: SparkSession, name: str) -> None:
    with Court(spark) as court:
        for places in (-39, -38, -19, -3, -2, -1, 0, 1, 2, 17, 38):
            for t, values in HARD.items():
                if is_integer(t) or is_decimal(t):
                    second = pa.array([places] * len(values), pa.int32())
                    taken = court.takes(name, f"{name}(a, {places})", [values, second], {1: places})
                    assert taken is (abs(places) <= 38)


def test_make_date(spark: SparkSession) -> None:
    years = pa.array(
        [0, 1, -1, 1970, 2000, 1900, 2024, 9999, 10_000, 5_881_580, 5_881_581, 2**31 - 1, None], pa.int32()
    )
    months = pa.array([0, 1, 2, 12, 13, -1, None], pa.int32())
    days = pa.array([0, 1, 28, 29, 30, 31, 32, None], pa.int32())
    with Court(spark) as court:
        assert court.takes("make_date", "make_date(a, b, c)", columns_of([years, months, days]))


@pytest.mark.parametrize("zone", variants(ZONES, every_run=4))
def test_make_timestamp(spark: SparkSession, zone: str) -> None:
    years = pa.array([0, 1970, 1919, 2011, 2018, 2024, 9999, 300_000, None], pa.int32())
    months, days = pa.array([3, 11, 13], pa.int32()), pa.array([4, 10, 31], pa.int32())
    hours, minutes = pa.array([0, 2, 24], pa.int32()), pa.array([0, 30], pa.int32())
    seconds = pa.array([Decimal(x) for x in ("0", "59.999999", "60", "60.000001", "-1", "1.5")], pa.decimal128(16, 6))
    fields = columns_of([years, months, days, hours, minutes, seconds])
    with Court(spark, zone) as court:
        assert court.takes("make_timestamp", "make_timestamp(a, b, c, d, e, f)", fields)
        whole = [*(values[:200] for values in fields[:5]), pa.array([7, 61] * 100, pa.int32())]
        assert court.takes("make_timestamp", "make_timestamp(a, b, c, d, e, f)", whole)


def test_next_day(spark: SparkSession) -> None:
    names = pa.array(["MON", "tu", "Wednesday", "th", "FRI", "sat", "SUNDAY", " mon ", "x", "", None])
    with Court(spark) as court:
        assert court.takes("next_day", "next_day(a, b)", columns_of([DATES, names]))


def test_padding_parts_and_trimmed_characters(spark: SparkSession) -> None:
    words = FEW[pa.string()]
    few = pa.array(["", "a", "ab", "本", " a", None])
    with Court(spark) as court:
        for name, size in itertools.product(("lpad", "rpad"), (0, 1, 3, -1, 9)):
            text, pad = columns_of([words, few])
            sizes = pa.array([size] * len(text), pa.int32())
            assert court.takes(name, f"{name}(a, {size})", [text, sizes], {1: size})
            assert court.takes(name, f"{name}(a, {size}, c)", [text, sizes, pad], {1: size})
        for name, side in (("trim", "BOTH"), ("ltrim", "LEADING"), ("rtrim", "TRAILING")):
            assert court.takes(name, f"trim({side} b FROM a)", columns_of([words, few]))
        for part in (1, 2, -1, -2, 5, -5):
            columns = columns_of([words, few])
            parts = pa.array([part] * len(columns[0]), pa.int32())
            assert court.takes("split_part", f"split_part(a, b, {part})", [*columns, parts], {2: part})
            assert court.takes("locate", f"locate(a, b, {part})", [*columns[::-1], parts], {2: part})
    assert FUNCTIONS["split_part"].signature([pa.string(), pa.string(), pa.int32()], [None, None, (0,)]) is None


def test_shifts_and_checksums(spark: SparkSession) -> None:
    distances = pa.array([0, 1, -1, 31, 32, 33, 63, 64, None], pa.int32())
    with Court(spark) as court:
        for name in ("shiftleft", "shiftright"):
            for t in (pa.int8(), pa.int16(), pa.int32(), pa.int64()):
                assert court.takes(name, f"{name}(a, b)", columns_of([FEW[t], distances]))
        for t in (pa.string(), pa.binary()):
            sizes = pa.array([0, 224, 256, 384, 512, 1, None], pa.int32())
            assert court.takes("sha2", "sha2(a, b)", columns_of([FEW[t], sizes]))


def test_slices_of_text(spark: SparkSession) -> None:
    places = pa.array([0, 1, 2, -1, -2, -3, -9, 5, 2**31 - 1, -(2**31), None], pa.int32())
    words = FEW[pa.string()]
    with Court(spark) as court:
        for name in ("substring", "substr"):
            assert court.takes(name, f"{name}(a, b)", columns_of([words, places]))
            assert court.takes(name, f"{name}(a, b, c)", columns_of([words, places, places]))
        for name in ("left", "right"):
            assert court.takes(name, f"{name}(a, b)", columns_of([words, places]))
        for start, length in ((1, 2), (2, 1), (1, 0), (1, 2**31 - 1), (2**31 - 1, 2**31 - 1)):
            fixed = [words, *(pa.array([n] * len(words), pa.int32()) for n in (start, length))]
            assert court.takes("substring", "substring(a, b, c)", fixed)


@pytest.mark.parametrize("name", ["concat", "||", "startswith", "endswith", "contains", "instr", "locate", "replace"])
def test_functions_of_two_texts(spark: SparkSession, name: str) -> None:
    words = FEW[pa.string()]
    with Court(spark) as court:
        assert court.takes(name, sql_of(name), columns_of([words, words]))
        for word in ("", "a", "🎉", "本"):
            assert court.takes(name, sql_of(name), [words, pa.array([word] * len(words))])


def test_replace_and_position(spark: SparkSession) -> None:
    words = pa.array(["", "a", "aa", "aaa", "aba", "日本", None])
    with Court(spark) as court:
        assert court.takes("replace", "replace(a, b, c)", columns_of([words, words, words]))
        assert court.takes("position", "position(a, b)", columns_of([words, words]))
        assert court.takes("concat", "concat(a, b, c)", columns_of([words, words, words]))


@pytest.mark.parametrize("name", ["greatest", "least", "nanvl", "coalesce"])
def test_functions_of_two_of_any_type(spark: SparkSession, name: str) -> None:
    pairs = list(itertools.product(FEW, FEW))
    with Court(spark) as court:
        taken = [p for p in pairs if court.takes(name, f"{name}(a, b)", columns_of([FEW[t] for t in p]))]
    assert len(taken) >= 3


def test_choice_takes_over_only_the_failures_it_looks_at(spark: SparkSession) -> None:
    flags = pa.array([True, False, None])
    numbers = pa.array([0, 1, 2, None], pa.int32())
    texts = pa.array(["x", "1", None])
    arrays = columns_of([flags, numbers, texts])
    read = cast(arrays[2], pa.int32(), "UTC")
    cases = {
        "if": ("if(a, b, CAST(c AS int))", [Vector(arrays[0]), Vector(arrays[1]), read]),
        "coalesce": ("coalesce(b, CAST(c AS int))", [Vector(arrays[1]), read]),
        "case": (
            "CASE WHEN a THEN b WHEN b = 1 THEN CAST(c AS int) END",
            [Vector(arrays[0]), Vector(arrays[1]), Vector(pa.compute.equal(arrays[1], 1)), read],
        ),
    }
    answers = ask(spark, dict(zip("abc", arrays, strict=True)), [sql for sql, _ in cases.values()])
    for (name, (_, given)), theirs in zip(cases.items(), answers, strict=True):
        mine = FUNCTIONS[name].kernel([Vector(g.values[: len(arrays[0])], g.failed) for g in given], "UTC")
        assert disagreements(mine, theirs) == [], name
        assert given_up(mine, theirs) == [], name


def test_maps(spark: SparkSession) -> None:
    t = pa.map_(pa.string(), pa.int32())
    maps = pa.array([[("a", 1), ("b", 2)], [], None, [("b", None)], [("", 7), ("ä", 8)]], t)
    with Court(spark) as court:
        for key in ("a", "b", "", "ä", "x"):
            keys = pa.array([key] * 5)
            assert court.takes("map_contains_key", "map_contains_key(a, b)", [maps, keys])
            for name in ("element_at", "try_element_at"):
                assert court.takes(name, f"{name}(a, '{key}')", [maps, keys], {1: key})
        for name in ("size", "cardinality"):
            assert court.takes(name, f"{name}(a)", [maps])
            assert court.takes(name, f"{name}(a)", [pa.array([[1], [], None, [1, None]], pa.list_(pa.int32()))])
