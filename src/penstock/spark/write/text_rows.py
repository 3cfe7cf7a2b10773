"""CSV and JSON as rows of known types, and the lines that do not fit them.

Each column has the type that is declared for it, else that of the table's column of its name, else the one that Spark
infers from all rows. Columns go by their names: those of a CSV file are in its header, those of JSON in each line.

    text = read_text(spark, TextSource("csv", "rows.csv"), declared=pa.schema([("id", pa.int64())]))
    text.bad                       how many rows do not fit
    text.rows                      the others

A row does not fit when Spark cannot read it as its types say (a text where a number should be, a value too many) or
when a column that may not be NULL is. What was read is kept until `close()`: the rows that were counted are those that
are written, whatever becomes of the files, and the text is parsed once.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

import pyarrow as pa
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import DataType, StringType, StructType

from penstock.errors import SchemaError, StorageError, name_hint, shortened
from penstock.expr.sql_text import quote_name
from penstock.progress import counted
from penstock.spark.session.process import one_line
from penstock.spark.session.tasks import progress_of_tasks

_BAD, _FILE = "__penstock_bad", "__penstock_file"
_LOOKED_AT = 100  # lines of JSON that say in which order the columns are
_SHOWN = 120
_PROBLEMS = {
    "csv": "another number of values, or one of another type",
    "json": "not one JSON object, or a value of another type",
}
_OTHER_HEADER = re.compile(r"Header: (.*?)\s*Schema: (.*?)\s*Expected: .*?CSV file: (\S+)", re.DOTALL)


@dataclass
class TextRows:
    """The rows of a source."""

    source: str
    total: int
    bad: int
    types: StructType
    inferred: list[str]  # the columns whose types Spark has inferred
    unread: list[str]  # columns of the source that were not declared
    empty: list[str]  # declared columns that are NULL in all rows
    _all: DataFrame = field(repr=False)

    @property
    def rows(self) -> DataFrame:
        """Those that fit."""
        return self._all.where(F.col(_BAD).isNull()).select(*map(_column, self.types.names))

    def bad_rows(self) -> Iterator[dict[str, str]]:
        """Those that do not fit: the file of each, its text, and what is wrong."""
        rows = self._all.where(F.col(_BAD).isNotNull()).select(F.col(_FILE).alias("file"), f"{_BAD}.*")
        for row in rows.toLocalIterator():
            yield row.asDict()

    def refuse(self) -> None:
        """An error that shows the first row that does not fit."""
        first = next(self.bad_rows())
        example = f"{shortened(first['row'], _SHOWN)!r} in {first['file']} ({first['problem']})"
        message = f"{self.bad:,} of {counted(self.total, 'row')} of {self.source} do not fit, such as {example}"
        raise SchemaError(message, hint="correct them, or keep them aside with --bad-rows FILE; nothing was written")

    def keep_bad_rows(self, path: str) -> None:
        """Write the rows that do not fit as lines of JSON; the file is replaced when all of them are there."""
        folder = os.path.dirname(os.path.abspath(path))
        try:
            with tempfile.NamedTemporaryFile("w", dir=folder, suffix=".tmp", delete=False) as file:
                try:
                    for row in self.bad_rows():
                        file.write(json.dumps(row, ensure_ascii=False) + "\n")
                except BaseException:
                    with suppress(OSError):
                        os.unlink(file.name)
                    raise
            os.replace(file.name, path)
        except OSError as error:
            raise StorageError(
                f"the bad rows cannot be kept in {path}: {error.strerror}", hint="give another file"
            ) from None

    def close(self) -> None:
        """Forget what was read."""
        self._all.unpersist()


@dataclass(frozen=True)
class TextSource:
    """Files of CSV or JSON, and how they are read."""

    kind: str
    location: str
    options: Mapping[str, str] = field(default_factory=dict)
    timezone: str = "UTC"
    partitions: pa.Schema | None = None  # the columns of directories; None: Spark looks for them


def read_text(
    spark: SparkSession, source: TextSource, declared: pa.Schema | None = None, table: pa.Schema | None = None
) -> TextRows:
    """The rows of a CSV or JSON source."""
    with _clear_errors(source.location):
        return _read(spark, source, declared, table)


def _read(spark: SparkSession, text: TextSource, declared: pa.Schema | None, table: pa.Schema | None) -> TextRows:
    kind, source = text.kind, text.location
    options = {"columnNameOfCorruptRecord": _BAD, "timeZone": text.timezone, "mode": "PERMISSIVE"}
    known = {**_types(declared if declared is not None else table), **_types(text.partitions)}
    with progress_of_tasks(f"looking at {source}", spark):
        if kind == "csv":
            options |= {"header": "true", "enforceSchema": "false", **text.options}
            types, inferred = _csv_types(spark, source, options, known, declared)
        elif declared is not None:
            options |= text.options
            types, inferred = dict(known.values()), []
        else:
            options |= text.options
            types, inferred = _json_types(spark, source, options, known)
    schema = StructType()
    for name, own in types.items():
        schema = schema.add(name, own)
    wanted = StructType([each for each in schema.fields if declared is None or each.name.lower() in known])
    lines = spark.read.options(**options).schema(schema.add(_BAD, StringType())).format(kind).load(source)
    required = {each.name.lower() for each in (declared if declared is not None else table or ()) if not each.nullable}
    problems = _problems(kind, wanted.names, [name for name in wanted.names if name.lower() in required])
    # All columns are kept: Spark counts the values of a line only when it has to read them all.
    everything = [_column(name) for name in types]
    kept = lines.select(*everything, problems.alias(_BAD), F.col("_metadata.file_path").alias(_FILE)).persist()
    may_lack = wanted.names if kind == "json" and declared is not None else []
    try:
        with progress_of_tasks(f"reading {source}", spark):
            counts = [F.count(F.lit(1)), F.count(_BAD), *(F.count(_column(name)) for name in may_lack)]
            total, bad, *values = kept.agg(*counts).collect()[0]
    except BaseException:
        kept.unpersist()
        raise
    unread = [name for name in types if name not in wanted.names]
    empty = [name for name, count in zip(may_lack, values, strict=True) if not count and total > bad]
    return TextRows(source, total, bad, wanted, inferred, unread, empty, kept)


def _problems(kind: str, names: Sequence[str], required: Sequence[str]) -> Column:
    """What is wrong with a row, and its text; NULL when nothing is."""
    unreadable = F.struct(F.col(_BAD).alias("row"), F.lit(_PROBLEMS[kind]).alias("problem"))
    problem = F.when(F.col(_BAD).isNotNull(), unreadable)
    text = F.to_json(F.struct(*map(_column, names)))
    for name in required:
        is_null = F.struct(text.alias("row"), F.lit(f"{name} is NULL").alias("problem"))
        problem = problem.when(_column(name).isNull(), is_null)
    return problem


@contextmanager
def _clear_errors(source: str) -> Iterator[None]:
    """What Spark says of a source, as one line that names it."""
    try:
        yield
    except (PySparkException, Py4JError) as error:
        cause = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
        while cause is not None and cause.getCause() is not None:
            cause = cause.getCause()
        text = one_line(error) if cause is None or cause.getMessage() is None else str(cause.getMessage())
        header = _OTHER_HEADER.search(text)
        if header is not None:
            message = f"the header of {header[3]} is {header[1]}, and not {header[2]}"
            raise SchemaError(
                message, hint="files of one source have the same columns, each once, in one order"
            ) from None
        raise SchemaError(
            f"{source} cannot be read: {one_line(text)}", hint="correct it, or declare it: --schema"
        ) from None


def _column(name: str) -> Column:
    return F.col(quote_name(name))


def _types(schema: pa.Schema | None) -> Mapping[str, tuple[str, DataType]]:
    """The columns that are known, by their names in lower case; each may be NULL until it is checked."""
    if schema is None:
        return {}
    fields = from_arrow_schema(schema, prefer_timestamp_ntz=True).fields
    return {each.name.lower(): (each.name, each.dataType) for each in fields}


def _csv_types(
    spark: SparkSession,
    source: str,
    options: Mapping[str, str],
    known: Mapping[str, tuple[str, DataType]],
    declared: pa.Schema | None,
) -> tuple[dict[str, DataType], list[str]]:
    """The types of the columns in the header, in its order, and those that were inferred."""
    header = spark.read.options(**options).csv(source).columns
    lower = [name.lower() for name in header]
    if not header:
        raise SchemaError(f"{source} has no header", hint="the first line of a CSV file names its columns")
    if declared is not None:
        for name, _ in known.values():
            if name.lower() not in lower:
                raise SchemaError(f"{source} has no column {name!r}", hint=name_hint(name, header))
        return {name: known[name.lower()][1] if name.lower() in known else StringType() for name in header}, []
    inferred = [name for name in header if name.lower() not in known]
    types: Mapping[str, DataType] = {}
    if inferred:
        guesses = spark.read.options(**options).csv(source, inferSchema=True).schema
        types = {each.name: each.dataType for each in guesses.fields}
    return {name: known[name.lower()][1] if name.lower() in known else types[name] for name in header}, inferred


def _json_types(
    spark: SparkSession, source: str, options: Mapping[str, str], known: Mapping[str, tuple[str, DataType]]
) -> tuple[dict[str, DataType], list[str]]:
    """The types of all columns that lines have, in the order in which they come, and those that were inferred."""
    fields = {
        each.name: each.dataType for each in spark.read.options(**options).json(source).schema if each.name != _BAD
    }
    if not fields:
        raise SchemaError(f"no line of {source} is a JSON object", hint="write one object a line")
    order = list(dict.fromkeys([*_first_seen(spark, source), *fields]))
    types = {name: known.get(name.lower(), (name, fields[name]))[1] for name in order if name in fields}
    return types, [name for name in types if name.lower() not in known]


def _first_seen(spark: SparkSession, source: str) -> Iterator[str]:
    """The columns of the first lines, as they are written."""
    for row in spark.read.text(source).limit(_LOOKED_AT).collect():
        with suppress(ValueError):
            line = json.loads(row.value)
            yield from line if isinstance(line, dict) else ()
