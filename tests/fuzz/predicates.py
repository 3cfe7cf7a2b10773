"""Random predicates: one for each cell that is asked for, and trees of all operators over columns, fields and keys.

Constants are taken from the rows' own values, from their neighbours and from the edges of the type, and go through the
same function as the column (`year(ts) < year(TIMESTAMP '…')`), so that the answer changes between files.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tests.fuzz.cells import INTERVALS, Call, Cell, Constant, calls
from tests.fuzz.literals import literal, loose_literal, quoted
from tests.fuzz.rows import ID, Rows, arrow_type, physical
from tests.fuzz.values import KEYS, SCALARS, draw, neighbour

COMPARISONS = ("=", "<>", "!=", "==", "<", "<=", ">", ">=", "<=>")
_ORDERED = ("=", "<", "<=", ">", ">=", "BETWEEN")
_PATTERNS = ("a%", "%", "_", "%b", "a_b", "a!%%", "A%", "%long%", "", "a%b", "\U0010ffff%", "5%")
# Functions that Penstock does not know, and must leave to Spark.
_OPAQUE = ("hash({}) % 2 = 0", "md5(CAST({} AS string)) > '8'", "bin({}) RLIKE '1$'", "rand(7) < 2")
_OF_CLOCK = ("CAST({} AS timestamp_ntz)", "CAST({} AS date)", "date_trunc('HOUR', {})", "({} + INTERVAL '1' DAY)")
_OF_CLOCK += ("({} + INTERVAL '1' MONTH)", "({} - INTERVAL '11' MONTH)")
_UNITS = ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND", "MM", "nonsense")


@dataclass(frozen=True)
class Predicate:
    """A predicate's text, the cells that it covers, its operators, and whether DuckDB means the same by it."""

    text: str
    cells: frozenset[Cell] = frozenset()
    forms: frozenset[str] = frozenset()
    plain: bool = False


@dataclass
class Generator:
    """Predicates over some rows."""

    rng: Random
    rows: Rows
    _values: dict[str, list[Any]] = field(default_factory=dict)

    def of_cell(self, cell: Cell) -> Predicate:
        """A test of one function or cast."""
        column = self.rng.choice(self.rows.of_type(cell.type))
        t = arrow_type(cell.type)
        constant = literal(self.value(column), t) if cell.type in SCALARS else None
        if cell.position is None:
            to = SCALARS[cell.function]
            how = self.rng.choice(["CAST", "CAST", "TRY_CAST"])
            term, mirror = (f"{how}({x} AS {cell.function})" for x in (self._name(column), constant))
            return self._test(term, to, mirror, cell)
        call = self._varied(self._call(cell))
        mirror = None if constant is None else call.text(constant)
        return self._test(call.text(self._name(column)), call.result, mirror, cell)

    def of_law(self, cell: Cell, call: Call) -> Predicate:
        """A comparison that bounds can decide, with the same call of a value of the column."""
        column = self.rng.choice(self.rows.of_type(cell.type))
        call = call if self.rng.random() < 0.5 else self._varied(call)
        constants = [call.text(literal(self.value(column), arrow_type(cell.type))) for _ in range(2)]
        form = self.rng.choice(_ORDERED)
        text = self._text(form, call.text(self._name(column)), [*constants, constants[0]])
        return Predicate(text, frozenset([cell]), frozenset([form]))

    def of_clock(self, column: str) -> Predicate:
        """A function of a timestamp that loses its order where the clock or the calendar does, at one of its values."""
        function = self.rng.choice(_OF_CLOCK)
        known = self.known(column)
        value = self.rng.choice(known) if known else draw(self.rng, arrow_type(self.rows.types[column]))
        constant = function.format(literal(value, arrow_type(self.rows.types[column])))
        form = self.rng.choice(_ORDERED[:-1])
        text = f"{function.format(self._name(column))} {form} {constant}"
        return Predicate(text, forms=frozenset([form]))

    def of_column(self, column: str) -> Predicate:
        """A plain comparison of a column with values that it has."""
        t = arrow_type(self.rows.types[column])
        if pa.types.is_nested(t):
            return self._column_test()
        constants = [literal(self.value(column), t) for _ in range(3)]
        form = self.rng.choice((*_ORDERED, "IN", "NOT IN"))
        return Predicate(self._text(form, self._name(column), constants), forms=frozenset([form]))

    def nested(self) -> Predicate:
        """A test of a function of another function of a column."""
        cells = [cell for name in self.rng.sample(_names(), 12) for cell in calls(name) if self._is_plain(cell)]
        inner = self.rng.choice(cells) if cells else None
        if inner is None:
            return self._column_test()
        column = self.rng.choice(self.rows.of_type(inner.type))
        first = self._varied(self._call(inner))
        kind = next((name for name, t in SCALARS.items() if t == first.result), "")
        outer = [cell for name in self.rng.sample(_names(), 20) for cell in calls(name) if cell.type == kind]
        if not outer:
            return self.of_cell(inner)
        second = self._varied(self._call(self.rng.choice(outer)))
        constant = literal(self.value(column), arrow_type(inner.type))
        term, mirror = (second.text(first.text(x)) for x in (quote(column), constant))
        return self._test(term, second.result, mirror, inner)

    def _is_plain(self, cell: Cell) -> bool:
        return cell.type in SCALARS and bool(self.rows.of_type(cell.type))

    def tree(self, depth: int = 2) -> Predicate:
        """Any predicate: tests joined by AND, OR and NOT."""
        if depth == 0 or self.rng.random() < 0.25:
            return self._leaf()
        kind = self.rng.choice(["AND", "AND", "OR", "OR", "NOT", "CASE"])
        parts = [self.tree(depth - 1) for _ in range(1 if kind == "NOT" else 2)]
        texts = [f"({part.text})" for part in parts]
        text = {
            "NOT": f"NOT {texts[0]}",
            "CASE": f"CASE WHEN {texts[0]} THEN {texts[-1]} ELSE {self.rng.choice(['NULL', 'FALSE', texts[0]])} END",
        }.get(kind, f" {kind} ".join(texts))
        cells = frozenset().union(*(part.cells for part in parts))
        forms = frozenset([kind]).union(*(part.forms for part in parts))
        return Predicate(text, cells, forms, kind != "CASE" and all(part.plain for part in parts))

    def value(self, column: str) -> Any:
        """A value of a column, one close to it, or any other."""
        t = self.rows.table.schema.field(column).type
        known = self.known(column)
        if not known or self.rng.random() < 0.15:
            return draw(self.rng, t)
        value = self.rng.choice(known)
        return value if self.rng.random() < 0.6 else neighbour(self.rng, t, value)

    def known(self, column: str) -> list[Any]:
        """The values that a column has."""
        if column not in self._values:
            self._values[column] = [v for v in physical(self.rows.table.column(column)) if v is not None]
        return self._values[column]

    def _name(self, column: str) -> str:
        """A column's name, in any case."""
        return quote(column.swapcase() if column.isascii() and self.rng.random() < 0.08 else column)

    def _leaf(self) -> Predicate:
        if self.rng.random() < 0.15:
            return self.nested()
        if self.rng.random() < 0.25:
            cells = [c for name in self.rng.sample(_names(), 8) for c in calls(name) if self.rows.of_type(c.type)]
            if cells:
                return self.of_cell(self.rng.choice(cells))
        return self._column_test()

    def _column_test(self) -> Predicate:
        """A test of a column, or of something in it."""
        if self.rng.random() < 0.08:
            return Predicate(self.rng.choice(_OPAQUE).format(self._name(ID)), forms=frozenset(["opaque"]))
        term, t, column = self._term()
        if pa.types.is_list(t) and self.rng.random() < 0.7:  # Penstock does not know this function
            known = [v for each in self.rows.table.column(column).to_pylist() for v in each or () if v is not None]
            wanted = literal(self.rng.choice(known) if known else draw(self.rng, t.value_type), t.value_type)
            return Predicate(f"array_contains({term}, {wanted})", forms=frozenset(["array_contains"]))
        if pa.types.is_nested(t):
            form = self.rng.choice(["IS NULL", "IS NOT NULL"])
            return Predicate(f"{term} {form}", forms=frozenset([form]))
        inside = self._inside(column, term)
        if inside is not None:
            return self._test(term, t, literal(self.rng.choice(inside), t) if inside else None)
        plain = not (pa.types.is_floating(t) or pa.types.is_timestamp(t))
        return self._test(term, t, None, None, column, plain)

    def _term(self) -> tuple[str, pa.DataType, str]:
        """A column, a field of a struct, a key of a map, or the id, and the column that it is in."""
        column = self.rng.choice([ID, *self.rows.types])
        t = pa.int64() if column == ID else arrow_type(self.rows.types[column])
        if pa.types.is_struct(t) and self.rng.random() < 0.9:
            child = self.rng.choice(list(t))
            return f"{self._name(column)}.{child.name}", child.type, column
        if pa.types.is_map(t) and self.rng.random() < 0.9:
            key = self.rng.choice([*KEYS, "missing"])
            return f"{self._name(column)}[{quoted(key)}]", t.item_type, column
        return self._name(column), t, column

    def _inside(self, column: str, term: str) -> list[Any] | None:
        """The values of a field or a key that a term names; None when it names the column itself."""
        values = self.rows.table.column(column)
        if pa.types.is_struct(values.type):
            return [v for v in physical(pc.struct_field(values, term.rpartition(".")[2])) if v is not None]
        if pa.types.is_map(values.type):
            key = term.rpartition("[")[2].strip("'[]")
            entries = (pair for each in values.to_pylist() for pair in each or ())
            return [value for k, value in entries if k == key and value is not None]
        return None

    def _test(
        self,
        term: str,
        t: pa.DataType,
        mirror: str | None,
        cell: Cell | None = None,
        column: str | None = None,
        plain: bool = False,
    ) -> Predicate:
        """A test of a term; `mirror` is the same term of a constant."""
        forms = ["=", *COMPARISONS, "IN", "NOT IN", "BETWEEN", "IS NULL", "IS NOT NULL"]
        forms += ["LIKE", "NOT LIKE"] * bool(pa.types.is_string(t)) + ["itself"] * 6 * bool(pa.types.is_boolean(t))
        if pa.types.is_nested(t) or pa.types.is_null(t):
            forms = ["IS NULL", "IS NOT NULL"]
        form = self.rng.choice(forms)
        text = self._text(form, term, [self._constant(t, mirror, column, plain) for _ in range(3)])
        covered = frozenset([cell] if cell is not None else [])
        return Predicate(text, covered, frozenset([form]), plain and form not in ("LIKE", "NOT LIKE"))

    def _text(self, form: str, term: str, constants: list[str]) -> str:
        if form == "itself":
            return self.rng.choice([term, f"NOT {term}"])
        if form.startswith("IS"):
            return f"{term} {form}"
        if form.endswith("IN"):
            return f"{term} {form} ({', '.join(constants[: self.rng.randrange(1, 4)])})"
        if form == "BETWEEN":
            return f"{term} BETWEEN {constants[0]} AND {constants[1]}"
        if form.endswith("LIKE"):
            pattern = self.rng.choice(_PATTERNS)
            return f"{term} {form} {quoted(pattern)}{' ESCAPE ' + quoted('!') if '!' in pattern else ''}"
        if self.rng.random() < 0.1:
            return f"{constants[0]} {form} {term}"
        return f"{term} {form} {constants[0]}"

    def _constant(self, t: pa.DataType, mirror: str | None, column: str | None, exact: bool) -> str:
        if self.rng.random() < 0.06:
            return "NULL"
        if mirror is not None and self.rng.random() < 0.6:
            return mirror
        if pa.types.is_nested(t) or pa.types.is_null(t):
            return "NULL"
        value = self.value(column) if column is not None else draw(self.rng, t)
        return literal(value, t) if exact else loose_literal(self.rng, value, t)

    def _call(self, cell: Cell) -> Call:
        """A call of the cell's function; seldom one with NULL, which Spark refuses at some places."""
        possible = calls(cell.function)[cell]
        known = [call for call in possible if all(c is None or c.text != "NULL" for c in call.constants)]
        return self.rng.choice(known if known and self.rng.random() < 0.95 else possible)

    def _varied(self, call: Call) -> Call:
        """The same call with other constants of the same types."""
        return Call(call.function, call.position, tuple(map(self._vary, call.constants)), call.result)

    def _vary(self, constant: Constant | None) -> Constant | None:
        if constant is None or self.rng.random() < 0.4 or pa.types.is_null(constant.type):
            return constant
        if constant in INTERVALS:
            return constant
        if constant.text == "'MONTH'":
            known = self.rng.choice(_UNITS)
            return Constant(f"'{known}'", constant.type, known)
        if pa.types.is_integer(constant.type):
            value: Any = self.rng.choice([0, 1, -1, 2, 3, 5, 12, 31, -12, 100])
        else:
            value = draw(self.rng, constant.type)
        return Constant(literal(value, constant.type), constant.type, value)


def _names() -> list[str]:
    from penstock.expr.functions.function_registry import FUNCTIONS

    return list(FUNCTIONS)


def quote(name: str) -> str:
    """A column's name as SQL."""
    return name if name.isidentifier() and name.isascii() else f"`{name}`"
