"""Lines of text: one column, `value`, unless another name is declared for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from penstock.errors import SchemaError
from penstock.formats.file_format import FileFormat, Reading
from penstock.formats.text_file import check_options, lines_of, text_bytes

_VALUE = pa.schema([pa.field("value", pa.string())])


class TextFile:
    """An open file of text."""

    metadata: Mapping[bytes, bytes] | None = None

    def __init__(self, source: Any, reading: Reading) -> None:
        check_options(TEXT, reading)
        self._source, self._reading = source, reading
        self.schema = _VALUE if reading.columns is None else reading.columns
        check_text_columns(self.schema)

    def read(self, columns: Sequence[str]) -> pa.Table:
        lines = pa.array(lines_of(text_bytes(self._source, self._reading)), pa.binary()).view(pa.string())
        return pa.table({self.schema.names[0]: lines}).select(list(columns))


def check_text_columns(columns: pa.Schema) -> None:
    """Text has one column."""
    if len(columns) != 1 or columns.types[0] != pa.string():
        raise SchemaError("a file of text has one column, of type string", hint="declare 'value string', or nothing")


TEXT = FileFormat(
    name="text",
    title="Text",
    suffixes=("txt", "text"),
    open=TextFile,
    spark_reader="org.apache.spark.sql.execution.datasources.text.TextFileFormat",
    has_types=False,
    keeps_metadata=False,
    is_by_position=True,
    check_columns=check_text_columns,
    spark_options=("wholetext", "lineSep"),
)
