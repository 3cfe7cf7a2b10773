"""Spark-SQL text to a predicate tree.

sqlglot reads the text, and `convert` turns its tree into ours. Two things are set differently from sqlglot's Spark
dialect. Functions keep the name the user wrote (sqlglot would rewrite `year(ts)` for other dialects), so that their
meaning is looked up in one place, `functions`. And a doubled quote is an escaped quote, as it is since Spark 4.0.

What is not a predicate over one row (subqueries, aggregates with `*`, placeholders) is refused here, with its
position. An unknown function is *not* refused: it may be a user's own; it parses to an opaque `Call`.
"""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ClassVar, cast

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ParseError, SqlglotError, TokenError
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokens import TokenType  # type: ignore[attr-defined]

from penstock.errors import PredicateError
from penstock.expr.limits import check_words, checked_text
from penstock.expr.sqlglot_tree import convert
from penstock.expr.tree import Expr

# sqlglot descends by recursion, about 17 frames a parenthesis: deeper text is parsed on a thread with a larger stack.
_DEPTH_ON_THIS_STACK = 25
MAX_DEPTH = 20_000
_EXAMPLE = "a condition such as app = 'a'"
_STATEMENT = frozenset(["SELECT", "FROM", "WHERE"])
# Closed quotes and comments, or any other character; a single mark that is left over opens one that is not closed.
_CLOSED = re.compile(
    r"""--[^\n]* | /\*.*?\*/ | \b[rR](?:'[^']*+'|"[^"]*+") | `(?:``|[^`])*+`
    | '(?:\\.|''|[^'\\])*+' | "(?:\\.|""|[^"\\])*+" | /\* | .""",
    re.DOTALL | re.VERBOSE,
)
_OPENING = {"'": "quote", '"': "quote", "`": "quote", "/*": "comment"}


def parse(text: str) -> Expr:
    """Read one boolean expression of Spark SQL.

    >>> str(parse("NOT app <> 'a' AND year(ts) between 2025 and 2026"))
    "NOT app <> 'a' AND (year(ts) >= 2025 AND year(ts) <= 2026)"
    """
    text = checked_text(text)
    try:
        text.encode()
    except UnicodeEncodeError as error:
        message = "the text has an unpaired surrogate, which is not a character"
        raise PredicateError(message, text, error.start) from None
    try:
        return _on_large_stack(lambda: _parse(text)) if _nesting(text) > _DEPTH_ON_THIS_STACK else _parse(text)
    except RecursionError:
        raise PredicateError(f"nested too deep; about {MAX_DEPTH:,} levels are read", text) from None


class _Dialect(Spark):
    class Tokenizer(Spark.Tokenizer):
        STRING_ESCAPES = ["\\", "'", '"']  # noqa: RUF012 (declared so by sqlglot)

    class Parser(SparkParser):
        FUNCTIONS: ClassVar[dict[str, Callable[..., Any]]] = {}
        # `+2` is a function of 2 to Spark, and has other digits beside a decimal; sqlglot would leave the sign out.
        UNARY_PARSERS: ClassVar[dict[Any, Callable[..., Any]]] = {
            **SparkParser.UNARY_PARSERS,
            TokenType.PLUS: lambda self: exp.Anonymous(this="positive", expressions=[self._parse_unary()]),
        }


def _parse(text: str) -> Expr:
    try:
        dialect = _Dialect()
        tokens = dialect.tokenize(text)
        check_words(len(tokens))
        conditions = dialect.parser().parse_into(exp.Condition, tokens, text)
    except ParseError as error:
        raise _syntax_error(error, text) from None
    except TokenError as error:
        message = f"cannot be read: {_first_line(error.__cause__ or error)}"
        raise _unclosed(text) or PredicateError(message, text, len(text)) from None
    except SqlglotError as error:
        raise PredicateError(f"cannot be read: {_first_line(error)}", text) from None
    if len(conditions) != 1 or conditions[0] is None:
        raise PredicateError("empty", text, 0, expected=_EXAMPLE)
    return convert(cast(exp.Expression, conditions[0]), text)


def _nesting(text: str) -> int:
    """An upper bound of how deep the parser descends: open brackets plus words that start a level."""
    depth = deepest = 0
    for c in text:
        if c in "([":
            depth += 1
            deepest = max(deepest, depth)
        elif c in ")]":
            depth -= 1
    words = text.upper()
    return deepest + words.count("NOT ") + words.count("CASE") + text.count("--") + text.count("- ") + text.count("!")


def _on_large_stack(work: Callable[[], Expr]) -> Expr:
    with _stack_lock:
        limit, size = sys.getrecursionlimit(), threading.stack_size(_STACK_BYTES)
        sys.setrecursionlimit(max(limit, 40 * MAX_DEPTH))
        try:
            with ThreadPoolExecutor(1, "penstock-parse") as pool:
                return pool.submit(work).result()
        finally:
            sys.setrecursionlimit(limit)
            threading.stack_size(size)


_stack_lock = threading.Lock()
_STACK_BYTES = 512 * 1024 * 1024


def _first_line(error: BaseException) -> str:
    return str(error).splitlines()[0][:200] if str(error) else type(error).__name__


def _unclosed(text: str) -> PredicateError | None:
    """The error at the first quote or comment that is not closed; None when all are."""
    opening = next((match for match in _CLOSED.finditer(text) if match[0] in _OPENING), None)
    if opening is None:
        return None
    return PredicateError(f"the {_OPENING[opening[0]]} that opens here is not closed", text, opening.start())


def _syntax_error(error: ParseError, text: str) -> PredicateError:
    if not error.errors:
        return PredicateError(f"cannot be read: {_first_line(error)}", text)
    first = error.errors[0]
    lines = text.splitlines(keepends=True)
    start = sum(len(line) for line in lines[: first["line"] - 1])
    highlight = first["highlight"] or ""
    position = max(0, min(len(text), start + first["col"] - len(highlight)))
    description = str(first["description"]).split(" for <class")[0].rstrip(".").replace("Invalid expression / ", "")
    if "Required keyword" in description:
        return PredicateError(f"something is missing after {highlight!r}", text, position)
    expected = _EXAMPLE if highlight.upper() in _STATEMENT or not text[:position].strip() else None
    message = f"{description[0].lower()}{description[1:]} at {highlight!r}"
    return PredicateError(message, text, position, expected=expected)
