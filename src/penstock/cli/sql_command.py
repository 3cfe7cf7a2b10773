"""`penstock sql`: statements from the command line or a file, or a prompt with history and completion.

A prompt ends each statement with a semicolon. Its history is kept in the user's cache folder; Tab completes keywords
and the names of tables and columns.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import IO, TYPE_CHECKING, Any

import click

from penstock.cli import options
from penstock.cli.output import echo, echo_json
from penstock.cli.table_commands import open_lake, print_rows
from penstock.errors import LakeError, PenstockError
from penstock.progress import progress

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from penstock.lake.lake import Lake

_PROMPT, _MORE = "penstock> ", "       -> "
_KEYWORDS = re.findall(
    r"\w+",
    "ALTER AND AS BETWEEN BY CALL COUNT CREATE DELETE DESCRIBE DISTINCT DROP EXISTS EXPLAIN FROM GROUP HAVING IN "
    "INSERT INTO IS JOIN LEFT LIKE LIMIT NAMESPACES NOT NULL ON OR ORDER OVERWRITE PARTITIONED PARTITIONS REPLACE "
    "SELECT SET SHOW TABLE TABLES TBLPROPERTIES TRUNCATE UNION USE USING VALUES VERSION WHERE WITH",
)
_LONGEST_HISTORY = 10_000


@click.command(short_help="Run SQL statements; without any, at a prompt.")
@click.argument("statements", required=False)
@click.option(
    "--file", "-f", type=click.File(), help="A file of statements, separated by semicolons; - for standard input."
)
@options.lake
@click.option("--limit", type=click.IntRange(0), default=100, show_default=True, help="How many rows to print at most.")
@options.json
def sql(statements: str | None, file: IO[str] | None, limit: int, json: bool, **place: str) -> None:
    """Run STATEMENTS of Spark SQL on the tables of a warehouse; without any, at a prompt."""
    from penstock.spark.session.lake_sql import clear_names
    from penstock.spark.session.session import session

    if statements is not None and file is not None:
        raise LakeError("both statements and --file are given", hint="give one of them")
    text = file.read() if file is not None else statements
    if text is None and not sys.stdin.isatty():
        text = sys.stdin.read()
    parts = None if text is None else split_statements(text)
    lake = open_lake(place)
    with progress("starting Spark"):
        spark = session(lake=lake)
    if parts is None:
        _converse(spark, lake, limit)
        return
    with clear_names(lake):
        answers = [_answer(spark, part, limit, json) for part in parts]
    if json:
        echo_json(answers[0] if len(answers) == 1 else answers)


def split_statements(text: str) -> list[str]:
    """The statements of a text; a semicolon inside quotes or a comment ends none.

    >>> split_statements("SELECT 1; SELECT 'a;b' -- not; here")
    ['SELECT 1', "SELECT 'a;b' -- not; here"]
    """
    from sqlglot.dialects.spark import Spark
    from sqlglot.errors import SqlglotError

    try:
        tokens = Spark().tokenize(text)
    except SqlglotError as error:
        raise LakeError(f"cannot read the statements: {str(error).splitlines()[0]}") from None
    ends = [token.start for token in tokens if token.text == ";" and token.token_type.name == "SEMICOLON"]
    starts = [0, *(end + 1 for end in ends)]
    parts = [text[start:end].strip() for start, end in zip(starts, [*ends, len(text)], strict=True)]
    return [part for part in parts if part and not _is_comment(part)]


def _is_comment(text: str) -> bool:
    return not re.sub(r"--[^\n]*|/\*.*?\*/", "", text, flags=re.DOTALL).strip()


def _answer(spark: SparkSession, statement: str, limit: int, json: bool) -> list[dict[str, Any]]:
    """Run one statement and print its first rows, unless they are wanted for machines."""
    from penstock.spark.session.tasks import progress_of_tasks

    with progress_of_tasks("asking Spark", spark):
        frame = spark.sql(statement)
        first = frame.limit(limit + 1).collect() if frame.columns else []
        rows = [row.asDict(recursive=True) for row in first]
    if not json and frame.columns:
        print_rows(frame.columns, [list(row.values()) for row in rows[:limit]])
        if len(rows) > limit:
            echo(f"… more than {limit:,} rows; see --limit", err=True)
    return rows[:limit]


def _converse(spark: SparkSession, lake: Lake, limit: int) -> None:
    """Read statements at a prompt until its end."""
    from penstock.spark.session.process import one_line

    echo("Statements end with a semicolon; Tab completes names; Ctrl-D ends.", err=True)
    with _line_editing(_names(lake)):
        for statement in _statements(input):
            try:
                _answer(spark, statement, limit, json=False)
            except KeyboardInterrupt:
                spark.sparkContext.cancelAllJobs()
                echo("cancelled", err=True)
            except PenstockError as error:
                echo(f"Error: {error}", err=True)
            except Exception as error:  # whatever Spark says of a statement, the next one can be asked
                echo(f"Error: {one_line(error)}", err=True)


def _statements(ask: Callable[[str], str]) -> Iterator[str]:
    """Statements as they are typed, over several lines if need be."""
    lines: list[str] = []
    while True:
        try:
            line = ask(_MORE if lines else _PROMPT)
        except EOFError:
            return
        except KeyboardInterrupt:  # forget what was typed
            lines = []
            echo("", err=True)
            continue
        if not lines and line.strip().rstrip(";").lower() in ("exit", "quit"):
            return
        lines.append(line)
        text = "\n".join(lines)
        if text.rstrip().endswith(";") or not text.strip():
            lines = []
            with suppress(LakeError):
                yield from split_statements(text)


def _names(lake: Lake) -> list[str]:
    """What may be completed: keywords, tables and their columns."""
    names = set(_KEYWORDS)
    with suppress(PenstockError):
        for table in lake.tables():
            names.update([table, *lake.table(table).schema.names])
    return sorted(names)


@contextmanager
def _line_editing(names: Sequence[str]) -> Iterator[None]:
    """History and completion at the prompt, where Python has readline."""
    try:
        import readline
    except ImportError:
        yield
        return
    readline.set_completer(lambda text, place: _completion(names, text, place))
    readline.set_completer_delims(" \t\n,()=<>;'\"")
    readline.parse_and_bind("tab: complete")
    with suppress(OSError):
        readline.read_history_file(_history())
    try:
        yield
    finally:
        readline.set_history_length(_LONGEST_HISTORY)
        with suppress(OSError):
            readline.write_history_file(_history())


def _history() -> str:
    from penstock.tables.iceberg.manifest.manifest_store import cache_folder

    folder = cache_folder()
    if folder is None:
        raise OSError("no cache folder")
    folder.mkdir(parents=True, exist_ok=True)
    return str(folder / "sql_history")


def _completion(names: Sequence[str], text: str, place: int) -> str | None:
    matching = [name for name in names if name.lower().startswith(text.lower())]
    return matching[place] if place < len(matching) else None
