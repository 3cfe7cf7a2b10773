"""JSON as Spark reads it: fields by their exact names, malformed lines and values as NULL.

Each line is a value; with `multiLine` the whole file is one.
Arrow's reader takes lines in which every value has the type of its column. Any other file is read line by line with
Python's (`json_lines.py`), whose values `json_values.py` converts by Spark's rules.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.json as pajson

from penstock.expr.types import TIMESTAMP, TIMESTAMP_NTZ, is_float
from penstock.formats.file_format import FileFormat, Reading, UnreadableError
from penstock.formats.json_lines import roots, structs
from penstock.formats.json_schema import inferred
from penstock.formats.json_values import JsonValues
from penstock.formats.text_file import check_options, is_set, lines_of, text_bytes
from penstock.formats.text_values import TextValues

_CORRUPT = "_corrupt_record"
_BLOCK = 1 << 24
_ARROWS = (pa.string(), pa.bool_(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64())
_AS_TEXT = (pa.date32(), TIMESTAMP, TIMESTAMP_NTZ)
# A line that is no object, on which Arrow may end the process; a second value in a line, which Spark does not read;
# numbers in letters, and -0, which Spark reads as 0.
_ODD = re.compile(rb"(?m:^[ \t]*[^{ \t\n])|\}[ \t]*[^ \t\n,}\]]|Inf|NaN|-0(?![.0-9eE])")
_BLANKS = b" \t\r\n"


class JsonFile:
    """An open file of JSON."""

    metadata: Mapping[bytes, bytes] | None = None

    def __init__(self, source: Any, reading: Reading) -> None:
        check_options(JSON, reading)
        self._is_one_value = is_set(reading, "multiLine")
        self._source, self._reading = source, reading

    @cached_property
    def schema(self) -> pa.Schema:
        """The declared columns, or else those that Spark infers from all lines of the file."""
        return inferred(roots(self._lines)) if self._reading.columns is None else self._reading.columns

    @cached_property
    def _text(self) -> bytes:
        return text_bytes(self._source, self._reading)

    @property
    def _lines(self) -> list[bytes]:
        lines = [self._text] if self._is_one_value else lines_of(self._text)
        return [line for line in lines if line.strip(_BLANKS)]

    def read(self, columns: Sequence[str]) -> pa.Table:
        if any(name.lower() == _CORRUPT for name in self.schema.names):
            hint = "declare the schema without it, or read by dataframe(spark)"
            raise UnreadableError(f"only Spark fills the column {_CORRUPT}", hint=hint)
        wanted = pa.schema([self.schema.field(name) for name in columns])
        values = TextValues(self._reading.zone, "NaN", "+INF", "-INF")
        fast = self._by_arrow(wanted)
        if fast is not None:
            return pa.table([values.read(fast[f.name].combine_chunks(), f.type) if f.type in _AS_TEXT else fast[f.name]
                             for f in wanted], schema=wanted)  # fmt: skip
        rows = list(structs(roots(self._lines)))
        if not columns:
            return pa.table({"": pa.nulls(len(rows))}).select([])
        converted = JsonValues(values)
        return pa.table([converted.column(rows, field) for field in wanted], schema=wanted)

    def _by_arrow(self, wanted: pa.Schema) -> pa.Table | None:
        """The columns by Arrow's reader; None where a line or a value is not as it takes them."""
        if self._is_one_value or not len(wanted) or not all(_is_plain(field.type) for field in wanted):
            return None
        text = self._text.replace(b"\r\n", b"\n")
        if b"\r" in text or _ODD.search(text):
            return None
        fields = [f.with_type(pa.string()) if f.type in _AS_TEXT else f for f in wanted]
        parsed = pajson.ParseOptions(explicit_schema=pa.schema(fields), unexpected_field_behavior="ignore")
        try:
            table = pajson.read_json(
                pa.BufferReader(text), pajson.ReadOptions(use_threads=False, block_size=_BLOCK), parsed
            )
        except pa.ArrowInvalid:
            return None
        return table if table.num_rows == len(self._lines) else None


def _is_plain(t: pa.DataType) -> bool:
    """Whether Arrow has Spark's value for every text that it takes for one of a type."""
    if pa.types.is_struct(t):
        return all(_is_plain(t.field(i).type) and t.field(i).type not in _AS_TEXT for i in range(t.num_fields))
    if pa.types.is_list(t):
        return _is_plain(t.value_type) and t.value_type not in _AS_TEXT
    return t in _ARROWS or t in _AS_TEXT or is_float(t)


JSON = FileFormat(
    name="json",
    title="JSON",
    suffixes=("json", "jsonl", "ndjson"),
    open=JsonFile,
    spark_reader="org.apache.spark.sql.execution.datasources.json.JsonFileFormat",
    has_types=False,
    keeps_metadata=False,
    is_guessed=True,
    options=("mode", "encoding", "charset", "multiLine"),
    spark_options=(
        "dateFormat", "timestampFormat", "timestampNTZFormat", "enableDateTimeParsingFallback", "locale", "lineSep",
        "primitivesAsString", "prefersDecimal", "allowComments", "allowUnquotedFieldNames", "allowSingleQuotes",
        "allowNumericLeadingZeros", "allowBackslashEscapingAnyCharacter", "allowUnquotedControlChars",
        "allowNonNumericNumbers", "dropFieldIfAllNull",
    ),
)  # fmt: skip
