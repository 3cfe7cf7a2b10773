"""Rows of planned files without Spark: PyIceberg resolves the columns, deletes are applied here, then the residual.

PyIceberg's reader finds columns by field id (by name where the table has a name mapping), widens types, fills in
defaults and the partition values that are only in metadata. It is asked for whole files in their order, so that a row's
index is its position, which is what deletes are about.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import UUID

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.expressions import AlwaysTrue
from pyiceberg.io import FileIO
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.schema import Schema
from pyiceberg.typedef import Record
from pyiceberg.types import IcebergType

from penstock.errors import CLIENT_ERRORS, LakeError, MissingError
from penstock.expr.kernels.evaluate import as_type
from penstock.expr.kernels.vector import Mask
from penstock.expr.tree import Expr, Lookup, column_of, terms_of
from penstock.formats.file_format import IcebergFormat
from penstock.formats.format_registry import DEFAULT, TITLES, iceberg_format
from penstock.maps.map_entries import build_maps, entries_of
from penstock.maps.shredded_file import ShreddedFile
from penstock.prune.delete_file import DeleteFile
from penstock.prune.file_task import FileTask
from penstock.storage.redaction import one_line
from penstock.tables.iceberg.manifest.bounds import uuid_text
from penstock.tables.iceberg.metadata.version import Version
from penstock.tables.iceberg.scan.delete_files import DAMAGED, Positions, listed
from penstock.tables.iceberg.scan.file_columns import read_columns
from penstock.tables.iceberg.scan.int96 import read_int96_as_microseconds
from penstock.tables.iceberg.scan.null_lists import keep_null_lists
from penstock.tables.source import Keys, matching_rows

_AT_ONCE = 4
# Else it writes a line to stderr for each file with categories, which Arrow stores as dictionaries.
logging.getLogger("pyiceberg.io.pyarrow").addHandler(logging.NullHandler())
# What PyIceberg says of a file without field ids, and how it is mended.
_UNMAPPED = ("name-mapping", "NameMapping", "Could not find field with name")
_MAPPING_HINT = "the file has no field ids: name all its columns in the table property schema.name-mapping.default"


class Reader:
    """Reads the files of one plan."""

    def __init__(self, version: Version, io: FileIO, zone: str) -> None:
        self._version, self._io, self._zone = version, io, zone
        self._positions = Positions(io)
        self._equality: dict[str, pa.Table] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return Reader, (self._version, self._io, self._zone)

    def rows(self, tasks: Sequence[FileTask], names: Sequence[str], keys: Keys | None = None) -> Iterator[pa.Table]:
        """The matching rows of each file, in the files' order."""
        with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="penstock-read") as pool:
            yield from pool.map(lambda task: self.file(task, names, keys), tasks)

    def sample(self, tasks: Iterable[FileTask], names: Sequence[str], rows: int) -> pa.Table:
        """About so many rows of the first files; no more of them is read than that needs."""
        parts: list[pa.Table] = []
        for task in tasks:
            if rows <= 0:
                break
            parts.append(self.file(task, names, first=rows))
            rows -= parts[-1].num_rows
        return pa.concat_tables(parts) if parts else self._version.columns.arrow.empty_table().select(list(names))

    def file(
        self, task: FileTask, names: Sequence[str], keys: Keys | None = None, first: int | None = None
    ) -> pa.Table:
        """The rows of one file that are not deleted and match its residual, or only those among its `first` ones.

        A name is a column's, or that of one of the keys of maps.
        """
        keys = keys or {}
        shredded = self._version.shredded(task.shredding)
        terms = [*terms_of(task.residual), *keys.values()]
        looked_up = [term for term in dict.fromkeys(terms) if isinstance(term, Lookup) and shredded.has(term)]
        columns = {n for n in names if n not in keys} | {column_of(term) for term in terms if term not in looked_up}
        if not columns and not keys:
            columns = set(self._version.columns.arrow.names[:1])  # rows are counted by some column
        table, _ = self._alive(task, shredded.stored(columns, looked_up), first)
        shown = self._shown(table, shredded, columns)
        key_values: dict[Expr, pa.Array] = {term: as_shown(shredded.key(term, table), term.type) for term in looked_up}
        return matching_rows(shown, task.residual, names, keys, self._zone, key_values)

    def numbered(self, task: FileTask, names: Sequence[str]) -> tuple[pa.Table, npt.NDArray[np.int64]]:
        """Some columns of the rows of one file that are not deleted, and the places of these rows in it."""
        shredded, columns = self._version.shredded(task.shredding), set(names)
        table, alive = self._alive(task, shredded.stored(columns, ()), None)
        return self._shown(table, shredded, columns), np.flatnonzero(alive)

    def _shown(self, table: pa.Table, shredded: ShreddedFile, columns: Set[str]) -> pa.Table:
        shown = table.select([])  # as many rows, where no column is wanted too
        for field in self._version.columns.arrow:
            if field.name in columns:
                shown = shown.append_column(field, as_shown(shredded.column(field.name, table), field.type))
        return shown

    def _alive(self, task: FileTask, names: set[str], first: int | None) -> tuple[pa.Table, Mask]:
        """The rows of one file that are not deleted, as they are stored, and which of all rows they are."""
        equality = [delete for delete in task.deletes if delete.kind == "equality"]
        schema = self._schema(names, {i for delete in equality for i in delete.equality_ids}, task)
        table = self._read(task.path, task.format, task, schema, first)
        alive = np.ones(table.num_rows, np.bool_)
        gone = self._positions.of(task.path, task.deletes)
        if gone:
            places = np.frombuffer(gone.to_array(), np.uint64)
            alive[places[places < table.num_rows]] = False
        for delete in equality:
            columns = [schema.find_field(i).name for i in delete.equality_ids]
            alive &= ~listed(table, self._deleted(delete, schema), columns)
        return (table if alive.all() else table.filter(pa.array(alive))), alive

    def partition(self, task: FileTask) -> list[tuple[Any, IcebergType | None]]:
        """The partition of a file: each value with Iceberg's type of it."""
        assert task.spec_id is not None
        fields, values = self._version.specs[task.spec_id].fields, task.partition
        return [(values[field.name].value if field.name in values else None, field.kind) for field in fields]

    def _schema(self, names: set[str], ids: set[int], task: FileTask) -> Schema:
        """The columns that are read: the wanted ones, and those of equality deletes, dropped ones included.

        Files of migrated tables lack the columns that they are partitioned by, required ones too, which PyIceberg
        fills in only where a column may be missing.
        """
        assert task.spec_id is not None
        filled_in = self._version.specs[task.spec_id].identities
        current = self._version.stored
        fields = [f for f in current.fields if f.name in names or f.field_id in ids]
        missing = ids - {f.field_id for f in fields if f.field_type.is_primitive}
        for schema in reversed(self._version.metadata.schemas):
            dropped = [f for f in schema.fields if f.field_id in missing and f.field_type.is_primitive]
            fields += [f.model_copy(update={"name": f"{f.name} (dropped {f.field_id})"}) for f in dropped]
            missing -= {f.field_id for f in dropped}
        if missing:
            raise LakeError(f"equality deletes on nested columns are not supported (field ids {sorted(missing)})")
        return Schema(*(f.model_copy(update={"required": f.required and f.field_id not in filled_in}) for f in fields))

    def _read(
        self, path: str, form: str | None, task: FileTask | None, schema: Schema, first: int | None = None
    ) -> pa.Table:
        keep_null_lists()
        read_int96_as_microseconds()
        file_format = DEFAULT if form is None else iceberg_format(form)
        if file_format is None:
            raise LakeError(f"{path} is a file in {form}, and only {TITLES} are supported")
        file = self._data_file(path, file_format, task)
        try:
            return self._columns(file_format, file, schema, first)
        except FileNotFoundError:
            raise MissingError(f"{path} does not exist", hint=DAMAGED) from None
        except LakeError as error:
            raise LakeError(f"{path} cannot be read: {error.message}", hint=error.hint) from None
        except CLIENT_ERRORS as error:
            message = one_line(error)
            unmapped = any(words in message for words in _UNMAPPED)
            raise LakeError(f"{path} cannot be read: {message}", hint=_MAPPING_HINT if unmapped else DAMAGED) from error

    def _columns(self, file_format: IcebergFormat, file: DataFile, schema: Schema, first: int | None) -> pa.Table:
        from pyiceberg.io.pyarrow import ArrowScan
        from pyiceberg.table import FileScanTask

        metadata = self._version.metadata
        if file_format is not DEFAULT:
            rows = read_columns(file_format, file, schema, metadata, self._io)
            return rows if first is None else rows.slice(0, first)
        return ArrowScan(metadata, self._io, schema, AlwaysTrue(), limit=first).to_table([FileScanTask(file)])

    def _data_file(self, path: str, file_format: IcebergFormat, task: FileTask | None) -> DataFile:
        values = [] if task is None else [_as_stored(value, kind) for value, kind in self.partition(task)]
        file = DataFile.from_args(
            content=DataFileContent.DATA,
            file_path=path,
            file_format=FileFormat[file_format.name.upper()],
            partition=Record(*values),
        )
        # A delete file is of no spec here: PyIceberg looks the spec up for any file, and must not fill in values.
        file.spec_id = task.spec_id if task is not None and task.spec_id is not None else -1
        return file

    def _deleted(self, delete: DeleteFile, schema: Schema) -> pa.Table:
        if delete.path not in self._equality:
            fields = [schema.find_field(i) for i in delete.equality_ids]
            self._equality[delete.path] = self._read(delete.path, delete.format, None, Schema(*fields))
        return self._equality[delete.path]


def _as_stored(value: Any, kind: IcebergType | None) -> Any:
    """A partition value as files have it: a uuid is bytes there and text everywhere else."""
    return UUID(value).bytes if value is not None and str(kind) == "uuid" else value


def as_shown(array: pa.Array, to: pa.DataType) -> pa.Array:
    """A column in the type that the core uses."""
    stored = array.storage if isinstance(array.type, pa.BaseExtensionType) else array
    if to == pa.string() and pa.types.is_fixed_size_binary(stored.type):
        return uuid_text(stored.cast(pa.binary()))
    if not _has_uuid(array.type):
        return as_type(array, to)
    null = array.is_null()
    if pa.types.is_struct(to):
        parts = [as_shown(array.field(i), field.type) for i, field in enumerate(to)]
        return pa.StructArray.from_arrays(parts, fields=list(to), mask=null)
    if pa.types.is_map(to):
        entries = entries_of(array)
        keys, items = as_shown(entries.keys, to.key_type), as_shown(entries.items, to.item_type)
        return build_maps(to, entries.offsets, keys, items, np.asarray(null))
    offsets = pa.array(np.concatenate([[0], np.cumsum(pc.fill_null(pc.list_value_length(array), 0))]), pa.int32())
    return pa.ListArray.from_arrays(offsets, as_shown(array.flatten(), to.value_type), to, mask=null)


def _has_uuid(stored: pa.DataType) -> bool:
    """Whether there is a uuid somewhere in a nested type."""
    if isinstance(stored, pa.BaseExtensionType):
        return True
    return any(_has_uuid(stored.field(i).type) for i in range(stored.num_fields))
