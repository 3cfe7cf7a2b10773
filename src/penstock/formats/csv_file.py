"""CSV as Spark reads it: by the position of columns, malformed values as NULL (`mode=PERMISSIVE`).

Arrow's reader splits rows of one length into columns of text, Python's those of a file whose rows differ: a short row
ends with NULLs, a long one is cut. `text_values.py` makes values of the columns that are asked for.

| value in a file | is |
|---|---|
| nothing between two separators | NULL |
| two quotes | `emptyValue` |
| what `nullValue` says, in quotes or not | NULL |

As `nullValue` and `emptyValue` are empty unless they are set, an empty text is NULL.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.errors import SchemaError
from penstock.expr.types import is_nested, type_name
from penstock.formats.csv_dialect import dialect_of
from penstock.formats.csv_records import Records
from penstock.formats.file_format import FileFormat, Reading, UnreadableError
from penstock.formats.text_file import check_options, is_set, text_bytes
from penstock.formats.text_values import TextValues

_CORRUPT = "_corrupt_record"
_WORDS = {"nanValue": "NaN", "positiveInf": "Inf", "negativeInf": "-Inf"}


class CsvFile:
    """An open CSV file."""

    metadata: Mapping[bytes, bytes] | None = None

    def __init__(self, source: Any, reading: Reading) -> None:
        check_options(CSV, reading)
        self._source, self._reading = source, reading

    @cached_property
    def schema(self) -> pa.Schema:
        """The declared columns, or else those of the header, which are all text."""
        if self._reading.columns is not None:
            return self._reading.columns
        first = self._records.first()
        if first is None:
            raise UnreadableError("it has no line to tell the columns", hint="declare the schema")
        header = is_set(self._reading, "header")
        return pa.schema([pa.field(name, pa.string()) for name in _names(first if header else [None] * len(first))])

    @cached_property
    def _records(self) -> Records:
        dialect = dialect_of(self._reading)
        return Records(dialect.plain(text_bytes(self._source, self._reading)), dialect.of_plain_text)

    def read(self, columns: Sequence[str]) -> pa.Table:
        if any(name.lower() == _CORRUPT for name in self.schema.names):
            hint = "declare the schema without it, or read by dataframe(spark)"
            raise UnreadableError(f"only Spark fills the column {_CORRUPT}", hint=hint)
        records = self._records.rest() if is_set(self._reading, "header") else self._records
        places = [self.schema.get_field_index(name) for name in columns]
        texts = records.columns(places or [0])
        if not columns:
            return pa.table({"": pa.nulls(texts.num_rows)}).select([])
        values = zip(places, texts.columns, strict=True)
        return pa.table([self._values(text, self.schema.field(i).type) for i, text in values], list(columns))

    def _values(self, texts: pa.ChunkedArray, to: pa.DataType) -> pa.Array:
        """Values of a type; NULL stands for nothing at all, and the empty text for two quotes."""
        null, empty = (self._reading.option(name, "") for name in ("nullValue", "emptyValue"))
        words = (self._reading.option(name, word) for name, word in _WORDS.items())
        known = texts.combine_chunks()
        if empty:
            known = pc.if_else(pc.equal(known, ""), empty, known)
        known = pc.if_else(pc.equal(known, null), pa.scalar(None, pa.string()), known)
        return TextValues(self._reading.zone, *words).read(known, to)


def _names(header: Sequence[str | None]) -> list[str]:
    """The names of columns as Spark makes them of a header: each once, whatever the case."""
    lower = [name and name.lower() for name in header]
    return [
        f"_c{i}" if not name else name if lower.count(lower[i]) == 1 else f"{name}{i}" for i, name in enumerate(header)
    ]


def check_csv_columns(columns: pa.Schema) -> None:
    """Values are single ones."""
    nested = next((field for field in columns if is_nested(field.type)), None)
    if nested is not None:
        message = f"column {nested.name} is {type_name(nested.type)}, and CSV has single values"
        raise SchemaError(message, hint="declare it as string")


CSV = FileFormat(
    name="csv",
    title="CSV",
    suffixes=("csv",),
    open=CsvFile,
    spark_reader="org.apache.spark.sql.execution.datasources.csv.CSVFileFormat",
    has_types=False,
    keeps_metadata=False,
    is_by_position=True,
    check_columns=check_csv_columns,
    options=(
        "sep", "delimiter", "header", "quote", "escape", "comment", "nullValue", "emptyValue", "nanValue",
        "positiveInf", "negativeInf", "ignoreLeadingWhiteSpace", "ignoreTrailingWhiteSpace", "multiLine", "mode",
        "encoding", "charset",
    ),
    spark_options=(
        "dateFormat", "timestampFormat", "timestampNTZFormat", "enableDateTimeParsingFallback", "locale", "lineSep",
        "enforceSchema", "maxColumns", "maxCharsPerColumn", "unescapedQuoteHandling", "charToEscapeQuoteEscaping",
    ),
)  # fmt: skip
