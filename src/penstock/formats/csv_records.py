"""The records of a CSV text that all libraries read alike (`csv_dialect.py`): as columns of text, by position.

Arrow's reader takes rows of one length. Where they differ, Python's reads them one by one: what a short row lacks is
NULL, and what a long one has too many of is dropped. Nothing between two separators is NULL, two quotes are the empty
text.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv

from penstock.formats.csv_dialect import Dialect, stand_in
from penstock.formats.file_format import UnreadableError

_BLOCK = 1 << 24
_CONTENT = re.compile(rb"[^\r\n]")


@dataclass(frozen=True)
class Records:
    """The records of a text."""

    data: bytes
    dialect: Dialect

    @cached_property
    def _start(self) -> int | None:
        """Where the first record begins; None where there is none."""
        match = _CONTENT.search(self.data)
        return None if match is None else match.start()

    @cached_property
    def _first(self) -> bytes:
        """The first record, which may have several lines."""
        match = re.compile(self.dialect.record).match(self.data, self._start or 0)
        assert match is not None  # a value may be nothing at all
        return match[0]

    def first(self) -> list[str | None] | None:
        """The values of the first record; None where there is none."""
        if self._start is None:
            return None
        return next(iter(_rows(self._first, self.dialect)))

    def rest(self) -> Records:
        """Those after the first."""
        end = len(self.data) if self._start is None else self._start + len(self._first)
        return Records(self.data[end:], self.dialect)

    def columns(self, places: Sequence[int]) -> pa.Table:
        """The values at some places of each record."""
        if self._start is None:
            return pa.table([pa.array([], pa.string())] * len(places), [str(i) for i in places])
        try:
            return _by_arrow(self.data, self.dialect, places)
        except pa.ArrowInvalid:  # rows of different lengths, or one that is longer than a block
            rows = list(_rows(self.data, self.dialect))
        values = ([row[i] if i < len(row) else None for row in rows] for i in places)
        return pa.table([pa.array(each, pa.string()) for each in values], [str(i) for i in places])


def _by_arrow(data: bytes, dialect: Dialect, places: Sequence[int]) -> pa.Table:
    separator, data = _one_byte(data, dialect.separator)
    names = [f"f{i}" for i in places]
    table = pacsv.read_csv(
        pa.BufferReader(data),
        pacsv.ReadOptions(use_threads=False, block_size=_BLOCK, autogenerate_column_names=True),
        pacsv.ParseOptions(
            delimiter=separator.decode(),
            quote_char=dialect.quote.decode() or False,
            newlines_in_values=dialect.multi_line,
        ),
        pacsv.ConvertOptions(
            check_utf8=False,
            column_types=dict.fromkeys(names, pa.string()),
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
            include_columns=list(dict.fromkeys(names)),
            include_missing_columns=True,
        ),
    )
    return pa.table([_restored(table[name], separator, dialect) for name in names], [str(i) for i in places])


def _one_byte(data: bytes, separator: bytes) -> tuple[bytes, bytes]:
    """A separator of one byte, and the text with it."""
    if len(separator) == 1:
        return separator, data
    other = stand_in(data)
    return other, data.replace(separator, other)


def _restored(texts: pa.ChunkedArray, separator: bytes, dialect: Dialect) -> pa.ChunkedArray:
    if separator == dialect.separator:
        return texts
    return pc.replace_substring(texts, separator.decode(), dialect.separator.decode())


def _rows(data: bytes, dialect: Dialect) -> list[list[str | None]]:
    """Rows of any length, one by one."""
    separator, data = _one_byte(data, dialect.separator)
    empty = stand_in(data).decode()
    if dialect.quote:
        begin = rb"(?:\A|(?<=[\r\n])|(?<=%s))" % re.escape(separator)
        none = dialect.quote * 2
        marked = dialect.quote + empty.encode() + dialect.quote
        data = re.sub(begin + dialect.quoted, lambda match: marked if match[0] == none else match[0], data)
    reader = csv.reader(
        io.StringIO(data.decode(), newline=""),
        delimiter=separator.decode(),
        quotechar=dialect.quote.decode() or None,
        quoting=csv.QUOTE_MINIMAL if dialect.quote else csv.QUOTE_NONE,
    )
    written = dialect.separator.decode()
    try:
        return [
            [None if not v else "" if v == empty else v.replace(separator.decode(), written) for v in row]
            for row in reader
            if row
        ]
    except csv.Error as error:
        raise UnreadableError(f"it cannot be read ({error})", hint="read it by dataframe(spark)") from None
