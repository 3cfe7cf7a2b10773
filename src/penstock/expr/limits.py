"""How large a predicate may be: larger ones are refused with an error before they cost minutes or all memory.

Reading a text, binding it and judging by it take time in proportion to its size, and so does the evaluation of each
file's rows. What counts for both is the number of *operations*: tests, functions and casts. An IN list is one
operation however long it is, and equalities of one column that are joined by OR are one IN list.

These limits hold for text. A filter that Spark sends is never refused; what is too large there does not prune.
"""

from __future__ import annotations

from penstock.errors import PredicateError
from penstock.expr.simplify import simplify
from penstock.expr.tree import And, Column, Expr, Literal, Not, Or, walk

MAX_LENGTH = 8_000_000
MAX_WORDS = 300_000
MAX_OPERATIONS = 20_000


def checked_text(text: object) -> str:
    """The text of a predicate; refuses other objects, and text that is too long."""
    if not isinstance(text, str):
        message = f"expected a predicate as text, not {type(text).__name__}"
        raise PredicateError(message, hint="write it as Spark SQL: \"app = 'a'\", or TRUE for all rows")
    if len(text) > MAX_LENGTH:
        raise PredicateError(f"the predicate has {len(text):,} characters; at most {MAX_LENGTH:,} are read")
    return text


def check_words(count: int) -> None:
    if count > MAX_WORDS:
        message = f"the predicate has {count:,} words and symbols; at most {MAX_WORDS:,} are read"
        raise PredicateError(message, hint="keep the values in a table and join it")


def check_operations(predicate: Expr) -> None:
    if _operations(predicate) <= MAX_OPERATIONS:
        return
    count = _operations(simplify(predicate))
    if count > MAX_OPERATIONS:
        message = f"the predicate has {count:,} tests and functions; at most {MAX_OPERATIONS:,} are evaluated"
        raise PredicateError(message, hint="write equalities of one column as IN (…)")


def _operations(predicate: Expr) -> int:
    return sum(not isinstance(node, Column | Literal | And | Or | Not) for node in walk(predicate))
