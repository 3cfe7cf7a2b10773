"""The exact meaning of every node: a bound tree evaluated over Arrow columns to true, false or null for each row.

This is the residual filter on kept files, the oracle of the tests, and the judge of single-valued containers. A row
for which Spark would raise (or for which no exact answer is promised) is *failed*, see `vector`: `filter_mask` raises
for it, planning keeps it. AND and OR look at their arms from left to right as Spark does, so that
`x <> 0 AND 10 / x > 1` does not fail where x is 0.

>>> from penstock.expr.bind import bind_text
>>> table = pa.table({"x": [1, None, 3]})
>>> filter_mask(bind_text("x > 2 OR x IS NULL", table.schema), table).to_pylist()
[False, True, True]
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.errors import EvaluationError, shortened
from penstock.expr import tree
from penstock.expr.functions import function_registry as functions
from penstock.expr.kernels.cast import cast as cast_values
from penstock.expr.kernels.cast import castable, fails_as_spark
from penstock.expr.kernels.compare import compare, is_member
from penstock.expr.kernels.like import match, parts_of
from penstock.expr.kernels.physical import from_arrow, mask_of, to_arrow
from penstock.expr.kernels.vector import Mask, Vector, union
from penstock.expr.text_size import GROWTH, MAX_TEXT_BYTES, text_bytes
from penstock.expr.tree import And, Call, Cast, Compare, Expr, In, IsNull, Like, Literal, Lookup, Not, Or
from penstock.expr.types import normalize

# Terms with their values: a column, a nested field or a map key, each with one value a row.
Rows = Mapping[Expr, pa.Array]
_USE_SPARK = "read with Spark: table.dataframe(spark, where=…)"
Look = Callable[[Expr, tuple[Vector, ...], Vector], None]


def filter_mask(
    predicate: Expr, table: pa.Table | pa.RecordBatch, zone: str = "UTC", known: Rows | None = None
) -> pa.BooleanArray:
    """True, false or null for each row of `table`; raises `EvaluationError` where Spark would raise.

    Terms with `known` values need not be in the table.
    """
    return values_of(predicate, table, zone, known)


def values_of(expr: Expr, table: pa.Table | pa.RecordBatch, zone: str = "UTC", known: Rows | None = None) -> pa.Array:
    """The value of an expression for each row of `table`; raises `EvaluationError` where Spark would raise."""
    rows = read_terms(expr, table, known)
    vector = evaluate(expr, rows, table.num_rows, zone)
    if vector.failed is not None:
        from penstock.expr.kernels.failure import why_failed

        why = unevaluable(expr) or why_failed(expr, rows, int(np.argmax(vector.failed)), zone)
        raise EvaluationError(f"cannot evaluate {short(expr)}: {why}", hint=_hint(expr))
    return vector.values


def _hint(predicate: Expr) -> str | None:
    """Use Spark for what only Spark evaluates; otherwise the suggestion of a call."""
    if unevaluable(predicate) is not None:
        return _USE_SPARK
    return next((node.hint for node in tree.walk(predicate) if isinstance(node, Call) and node.hint), None)


def filter_table(predicate: Expr, table: pa.Table, zone: str = "UTC") -> pa.Table:
    """The rows of `table` for which the predicate is true."""
    return table.filter(filter_mask(predicate, table, zone))


def evaluate(expr: Expr, rows: Rows, count: int, zone: str = "UTC", look: Look | None = None) -> Vector:
    """The values of a bound expression over `count` rows of terms; `look` is called with those of each part."""
    size = _Size(count, max(MAX_TEXT_BYTES, GROWTH * sum(values.nbytes for values in rows.values())))

    def visit(node: Expr, below: tuple[Vector, ...]) -> Vector:
        if node in rows:
            return Vector(rows[node])
        if isinstance(node, Literal):
            return Vector(to_arrow([node.value], node.type))
        if isinstance(node, Compare) and isinstance(node.right, Literal) and node.left.type == node.right.type:
            left = _spread(node.left, below[0], size)
            return Vector(compare(node.op, left.values, below[1].values[0]), left.failed)
        full = tuple(_spread(child, vector, size) for child, vector in zip(node.children, below, strict=True))
        vector = _evaluate_node(node, full, size, zone)
        if look is not None:
            look(node, full, vector)
        return vector

    return _spread(expr, tree.fold(expr, visit), size)


class _Size(NamedTuple):
    """How many rows there are, and how many bytes a column of computed text may have."""

    rows: int
    text_bytes: int


def _spread(node: Expr, vector: Vector, size: _Size) -> Vector:
    """A constant, which is kept as one value, as a column; a text that is too long for that fails."""
    if not isinstance(node, Literal) or len(vector.values) == size.rows:
        return vector
    if vector.values.nbytes * size.rows > size.text_bytes:
        return _all_failed(node, size.rows)
    return Vector(pa.repeat(vector.values[0], size.rows))


def evaluate_constant(expr: Expr, zone: str) -> tuple[Any] | None:
    """The physical value of an expression over constants, in a tuple; None when it fails."""
    vector = evaluate(expr, {}, 1, zone)
    return None if vector.failed is not None else (from_arrow(vector.values)[0],)


def unevaluable(expr: Expr) -> str | None:
    """Why the tree has no exact meaning here (an unknown function, say); None when it has one."""
    for node in tree.walk(expr):
        if isinstance(node, Call) and node.type is None:
            return "; ".join(part for part in (_unknown_call(node), node.hint) if part)
        if isinstance(node, Cast) and (node.child.type is None or not castable(node.child.type, node.type)):
            return f"{short(node)} is not a known cast"
        if isinstance(node, Compare) and node.left.type != node.right.type:
            return f"the types in {short(node)} have no exact common type"
        if isinstance(node, Like) and parts_of(node.pattern, node.escape) is None:
            return f"the pattern of {short(node)} has a misplaced escape character"
        if isinstance(node, Lookup) and not (tree.is_term(node) and pa.types.is_map(node.container.type)):
            return f"{short(node)} is not a constant key of a map"
    return None


def _unknown_call(node: Call) -> str:
    plain = node.name.isidentifier() and node.name not in (tree.UNKNOWN, "div")
    known = " for these arguments" if functions.find(node.name) is not None else ""
    return f"{node.name + '()' if plain else short(node)} is not known{known}"


def read_terms(expr: Expr, table: pa.Table | pa.RecordBatch, known: Rows | None = None) -> Rows:
    """The columns, nested fields and map columns that a tree mentions, as contiguous arrays of normalised types."""
    rows = dict(known or {})
    for term in tree.terms_of(expr):
        column: Any = term.container if isinstance(term, Lookup) else term
        if term not in rows and column not in rows:
            rows[column] = read_column(table, column.path, normalize(column.type))
    return rows


def read_column(table: pa.Table | pa.RecordBatch, path: Sequence[str], to: pa.DataType) -> pa.Array:
    """One column or nested field of a table; a null struct makes its fields null."""
    column = table.column(path[0])
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    for name in path[1:]:
        array = pc.struct_field(array, name)
    return as_type(array, to)


def as_type(array: pa.Array, to: pa.DataType) -> pa.Array:
    """The array with its physical type replaced by the normalised one that stands for the same values."""
    if array.type == to:
        return array
    if pa.types.is_dictionary(array.type):
        return as_type(array.dictionary_decode(), to)
    if pa.types.is_timestamp(array.type) and array.type.unit == "ns":
        whole = pc.floor_temporal(array, unit="microsecond")
        return whole.cast(pa.timestamp("us", array.type.tz), safe=False).cast(to)
    return array.cast(to)


def _evaluate_node(node: Expr, below: tuple[Vector, ...], size: _Size, zone: str) -> Vector:
    match node:
        case And() | Or():
            return _connect(node, below)
        case Not():
            return Vector(pc.invert(below[0].values), below[0].failed)
        case IsNull():
            return Vector(pc.is_null(below[0].values), below[0].failed)
        case Compare() if node.left.type == node.right.type and node.left.type is not None:
            failed = union(below[0].failed, below[1].failed)
            return Vector(compare(node.op, below[0].values, below[1].values), failed)
        case In() if all(option.type == node.child.type for option in node.options):
            options = [option.value for option in node.options if option.value is not None]
            members = to_arrow(options, below[0].values.type)
            has_null = len(options) < len(node.options)
            return Vector(is_member(below[0].values, members, has_null), below[0].failed)
        case Like() if node.child.type == pa.string():
            parts = parts_of(node.pattern, node.escape)
            if parts is not None:
                return Vector(match(below[0].values, parts), below[0].failed)
        case Cast() if node.child.type is not None and castable(node.child.type, node.type):
            return _cast(node, below[0], zone)
        case Call():
            return _call(node, below, size, zone)
        case Lookup() if node.type is not None and pa.types.is_map(node.container.type):
            return _call(Call("element_at", node.children, node.type), below, size, zone)
    return _all_failed(node, size.rows)


def _connect(node: And | Or, below: tuple[Vector, ...]) -> Vector:
    """AND and OR from left to right: an arm after the one that decides is not evaluated, and so cannot fail."""
    connective, decided = (pc.and_kleene, False) if isinstance(node, And) else (pc.or_kleene, True)
    result, failed = below[0].values, below[0].failed
    for arm in below[1:]:
        if arm.failed is not None:
            failed = union(failed, arm.failed & ~mask_of(pc.equal(result, decided)))
        result = connective(result, arm.values)
    return Vector(result, failed)


def _cast(node: Cast, child: Vector, zone: str) -> Vector:
    vector = cast_values(child.values, node.type, zone)
    if node.safe and vector.failed is not None and fails_as_spark(child.values.type, node.type):
        nothing = pa.scalar(None, node.type)
        return Vector(pc.if_else(pa.array(vector.failed), nothing, vector.values), child.failed)
    return Vector(vector.values, union(child.failed, vector.failed))


def _call(node: Call, below: tuple[Vector, ...], size: _Size, zone: str) -> Vector:
    function = functions.find(node.name)
    if function is None or node.type is None:
        return _all_failed(node, size.rows)
    if function.chooses:
        return function.kernel(below, zone)
    if size.rows == 0:
        return Vector(pa.nulls(0, node.type))
    arrays = [b.values for b in below]
    if node.type == pa.string() and text_bytes(node.name, arrays) > size.text_bytes:
        return _all_failed(node, size.rows)
    vector = function.kernel(arrays, zone)
    return Vector(vector.values, union(vector.failed, *(b.failed for b in below)))


def _all_failed(node: Expr, count: int) -> Vector:
    t = node.type if node.type is not None else pa.bool_()
    failed: Mask = np.ones(count, dtype=bool)
    return Vector(pa.nulls(count, t), failed if count else None)


def short(expr: Expr) -> str:
    """The expression as text of an error."""
    return shortened(str(expr), 120)
