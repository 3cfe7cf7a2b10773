"""The data files of a layout: one footer for the schema, and reading without Spark."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace

import pyarrow as pa

from penstock.errors import LayoutError
from penstock.expr.kernels.evaluate import as_type
from penstock.expr.schema import as_schema, check_names
from penstock.expr.tree import Expr, Lookup, column_of
from penstock.expr.types import TIMESTAMP, TIMESTAMP_NTZ, common_type, is_nested, is_numeric, normalize, type_name
from penstock.formats.file_format import DataFile, FileFormat, Reading, UnreadableError
from penstock.formats.format_registry import format_by_name, format_of_bytes, is_data_file, is_hidden
from penstock.maps.shredded_file import by_footer
from penstock.maps.sidecar_footer import Shredded, read_footer
from penstock.progress import counted
from penstock.storage.storage import Storage

Mapping = tuple[Shredded, ...]
_FIRST_BYTES = 16
_NAMELESS = "_col"  # before Hive 2 a column of ORC had its number for a name


def first_file(storage: Storage, columns: Sequence[pa.Field]) -> str | None:
    """The path of some data file: the first in the first branch that has one; None when there is none."""
    return _first_below(storage, storage.path, len(columns))


def no_files(storage: Storage, columns: Sequence[pa.Field]) -> LayoutError:
    """What to say of a layout without data files, where one is needed."""
    hint = "give the schema, or check the root and the declared partition columns"
    deep = counted(len(columns), "directory")
    return LayoutError(f"{storage.url} has no data file {deep} below it", hint=hint)


def format_of_file(storage: Storage, path: str) -> FileFormat | None:
    """The format of a file by its name, or else by its first bytes; None when neither tells it."""
    by_name = format_by_name(path)
    if by_name is not None:
        return by_name
    with storage.open(path) as file:
        return format_of_bytes(file.read(_FIRST_BYTES))


def _first_below(storage: Storage, path: str, depth: int) -> str | None:
    listing = storage.entries(path)
    entries = (listing.entry(i) for i in listing.in_order() if not is_hidden(listing.names[i]))
    if depth == 0:
        files = (e for e in entries if not e.is_directory and is_data_file(e.name))
        return next((f"{path}/{e.name}" for e in files if e.size), None)
    branches = (e for e in entries if e.is_directory and "=" in e.name[1:])
    return next((f for e in branches if (f := _first_below(storage, f"{path}/{e.name}", depth - 1))), None)


@dataclass(frozen=True)
class LayoutFiles:
    """The data files of a layout: where they lie, which format they have, and how they are read."""

    storage: Storage
    file_format: FileFormat
    reading: Reading

    def spark_options(self) -> dict[str, str]:
        """The options of Spark's reader: those of the table, and its zone where files have times as text."""
        zone = {} if self.file_format.has_types else {"timeZone": self.reading.zone}
        return {**zone, **dict(self.reading.options)}

    def schema(self, path: str) -> tuple[pa.Schema, Mapping]:
        """The schema of one file, by its footer, without the sidecars of its maps; and what it says of those."""
        with self._opened(path) as file:
            shredded = self._shredded_maps(file, path)
            hidden = {name for each in shredded for _, name in each.sidecars}
            return as_schema(pa.schema([f for f in file.schema if f.name not in hidden])), shredded

    def mapping(self, url: str) -> Mapping:
        """What a file says of the sidecars of its maps, from its footer alone."""
        path = self.storage.path_of(url)
        with self._opened(path) as file:
            return self._shredded_maps(file, path)

    def read(
        self, url: str, schema: pa.Schema, names: set[str], terms: Sequence[Expr] = ()
    ) -> tuple[pa.Table, dict[Expr, pa.Array]]:
        """All rows of one file: the named columns of a schema and those of terms; keys of maps that have sidecars.

        The map of a key that has none is among the columns. A column the file lacks is null, and a map whose keys
        lie in sidecars is put together again.
        """
        path = self.storage.path_of(url)
        with self._opened(path, schema) as rows:
            shredded = by_footer(self._shredded_maps(rows, path))
            served = [term for term in dict.fromkeys(terms) if isinstance(term, Lookup) and shredded.has(term)]
            needed = names | {column_of(term) for term in terms if term not in served}
            fields = pa.schema([f for f in schema if f.name in needed])
            check_names(rows.schema, url)
            by_name = self._stored_names(rows.schema.names, schema)
            whole = [by_name.get(f.name.lower()) for f in fields]
            wanted = shredded.stored([name for name in whole if name is not None], served)
            table = rows.read([name for name in rows.schema.names if name in wanted])
        key_values: dict[Expr, pa.Array] = {term: as_type(shredded.key(term, table), term.type) for term in served}
        if not len(fields):
            return table.select([]), key_values  # the rows without any column, which still are as many
        columns = [
            pa.nulls(table.num_rows, f.type) if name is None else _column(shredded.column(name, table), name, f, url)
            for name, f in zip(whole, fields, strict=True)
        ]
        return pa.table(columns, schema=fields), key_values

    def _stored_names(self, stored: Sequence[str], schema: pa.Schema) -> dict[str, str]:
        """The names of a file's columns by those of the table, in lower case."""
        if self.file_format.name == "orc" and all(name.startswith(_NAMELESS) for name in stored):
            return {f.name.lower(): name for f, name in zip(schema, stored, strict=False)}  # as Spark does
        return {name.lower(): name for name in stored}

    def _shredded_maps(self, file: DataFile, path: str) -> Mapping:
        if not self.file_format.keeps_metadata:
            return ()
        return read_footer(file.metadata, file.schema.names, self.storage.url_of(path))

    @contextmanager
    def _opened(self, path: str, columns: pa.Schema | None = None) -> Iterator[DataFile]:
        """An open data file; what goes wrong while it is read is an error that names it."""
        reading = replace(self.reading, path=path, columns=columns)
        with self.storage.open(path) as file:
            try:
                yield self.file_format.open(file, reading)
            except UnreadableError as error:
                raise LayoutError(f"{self.storage.url_of(path)}: {error.message}", hint=error.hint) from None
            except pa.ArrowInvalid as error:
                why = str(error).splitlines()[0][:120]
                title = self.file_format.title
                article = "an" if title[0] in "AO" else "a"
                message = f"{self.storage.url_of(path)} is not {article} {title} file ({why})"
                raise LayoutError(message, hint="remove or replace it") from None
            except OSError as error:
                raise self.storage.trouble(path, error) from None


def _column(column: pa.Array, name: str, field: pa.Field, url: str) -> pa.Array:
    file_type = normalize(column.type)
    if is_nested(file_type) or _is_read_as(file_type, field.type):
        with suppress(pa.ArrowException):
            return as_type(column, field.type)
    message = f"{url}: column {name} is {type_name(file_type)}, the table has {type_name(field.type)}"
    raise LayoutError(message, hint="fix the file, or declare the schema")


def _is_read_as(file_type: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether Spark reads a file's type as another: a wider number, bytes as text, moments without a zone as UTC's.

    Arrow would also make 5 of the text '5', and then fail on the next row.
    """
    if file_type == wanted or pa.types.is_null(file_type) or {file_type, wanted} == {pa.string(), pa.binary()}:
        return True
    if is_numeric(file_type) and is_numeric(wanted):
        return bool(common_type(file_type, wanted) == wanted)
    return (file_type, wanted) == (TIMESTAMP_NTZ, TIMESTAMP)
