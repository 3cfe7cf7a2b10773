"""Rows of planned files without Spark: PyIceberg resolves the columns, deletes are applied here, then the residual.

PyIceberg's reader finds columns by field id (by name where the table has a name mapping), widens types, fills in
defaults and the partition values that are only in metadata. It is asked for whole files in their order, so that a row's
index is its position, which is what deletes are about.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.errors import LakeError, StorageError
from penstock.predicate.evaluate import as_type, filter_table
from penstock.predicate.tree import Column, Expr, walk
from penstock.prune.plan import DeleteFile, FileTask
from penstock.tables.iceberg.bounds import uuid_text
from penstock.tables.iceberg.columns import Columns
from penstock.tables.iceberg.equality import listed
from penstock.tables.iceberg.positions import Positions
from penstock.tables.iceberg.version import Version

_AT_ONCE = 4
_HINT = "the table's files are damaged or were cleaned up; open another snapshot, or restore the file"


class Reader:
    """Reads the files of one plan."""

    def __init__(self, version: Version, io: Any, zone: str) -> None:
        self._version, self._io, self._zone = version, io, zone
        self._positions = Positions(io)
        self._equality: dict[str, pa.Table] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return Reader, (self._version, self._io, self._zone)

    def rows(self, tasks: Sequence[FileTask], names: Sequence[str]) -> Iterator[pa.Table]:
        """The matching rows of each file, in the files' order."""
        with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="penstock-read") as pool:
            yield from pool.map(lambda task: self.file(task, names), tasks)

    def file(self, task: FileTask, names: Sequence[str]) -> pa.Table:
        """The rows of one file that are not deleted and match its residual."""
        equality = [delete for delete in task.deletes if delete.kind == "equality"]
        keys = {i for delete in equality for i in delete.equality_ids}
        wanted = {*names, *_columns_in(task.residual)}
        schema = self._schema(wanted, keys)
        table = self._read(task.path, task, schema)
        alive = np.ones(table.num_rows, np.bool_)
        gone = self._positions.of(task.path, task.deletes)
        if gone:
            alive[np.frombuffer(gone.to_array(), np.uint64)] = False
        for delete in equality:
            columns = [schema.find_column_name(i) for i in delete.equality_ids]
            alive &= ~listed(table, self._deleted(delete, schema), columns)
        if not alive.all():
            table = table.filter(pa.array(alive))
        typed = _typed(table, self._version.columns, [n for n in self._version.columns.arrow.names if n in wanted])
        return filter_table(task.residual, typed, self._zone).select(list(names))

    def partition(self, task: FileTask) -> list[tuple[Any, Any]]:
        """The partition of a file: each value with Iceberg's type of it."""
        assert task.spec_id is not None
        kinds = [field.kind for field in self._version.specs[task.spec_id].fields]
        return list(zip(_partition_values(task, self._version), kinds, strict=True))

    def _schema(self, names: set[str], ids: set[int]) -> Any:
        """The columns that are read: the wanted ones, and those of equality deletes, dropped ones included."""
        from pyiceberg.schema import Schema

        current = self._version.columns.schema
        fields = [f for f in current.fields if f.name in names or f.field_id in ids]
        missing = ids - {f.field_id for f in fields}
        for schema in reversed(self._version.metadata.schemas):
            found = [f for f in schema.fields if f.field_id in missing]
            fields += [f.model_copy(update={"name": f"{f.name} (dropped {f.field_id})"}) for f in found]
            missing -= {f.field_id for f in found}
        if missing:
            raise LakeError(f"equality deletes on nested columns are not supported (field ids {sorted(missing)})")
        return Schema(*fields)

    def _read(self, path: str, task: FileTask | None, schema: Any) -> pa.Table:
        from pyiceberg.expressions import AlwaysTrue
        from pyiceberg.io.pyarrow import ArrowScan
        from pyiceberg.table import FileScanTask

        scan = ArrowScan(self._version.metadata, self._io, schema, AlwaysTrue())
        try:
            found = scan.to_table([FileScanTask(self._data_file(path, task))])
        except FileNotFoundError:
            raise StorageError(f"{path} does not exist", hint=_HINT) from None
        except Exception as error:
            raise LakeError(f"{path} cannot be read: {' '.join(str(error).split())[:300]}", hint=_HINT) from error
        return found

    def _data_file(self, path: str, task: FileTask | None) -> Any:
        from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
        from pyiceberg.typedef import Record

        values = [] if task is None else _partition_values(task, self._version)
        file = DataFile.from_args(
            content=DataFileContent.DATA, file_path=path, file_format=FileFormat.PARQUET, partition=Record(*values)
        )
        # A delete file is of no spec here: PyIceberg looks the spec up for any file, and must not fill in values.
        file.spec_id = task.spec_id if task is not None and task.spec_id is not None else -1
        return file

    def _deleted(self, delete: DeleteFile, schema: Any) -> pa.Table:
        if delete.path not in self._equality:
            from pyiceberg.schema import Schema

            fields = [schema.find_field(i) for i in delete.equality_ids]
            self._equality[delete.path] = self._read(delete.path, None, Schema(*fields))
        return self._equality[delete.path]


def _columns_in(residual: Expr) -> set[str]:
    return {node.path[0] for node in walk(residual) if isinstance(node, Column)}


def _partition_values(task: FileTask, version: Version) -> list[Any]:
    """The tuple of a file as PyIceberg takes it."""
    assert task.spec_id is not None
    fields = version.specs[task.spec_id].fields
    return [task.partition[f.name].value if f.name in task.partition else None for f in fields]


def _typed(table: pa.Table, columns: Columns, names: Sequence[str]) -> pa.Table:
    """Columns in the types the core uses."""
    fields = [columns.arrow.field(name) for name in names]
    return pa.table([_as(table.column(f.name), f.type) for f in fields], schema=pa.schema(fields))


def _as(column: pa.ChunkedArray, to: pa.DataType) -> pa.Array:
    array = column.combine_chunks()
    stored = array.storage if isinstance(array.type, pa.BaseExtensionType) else array
    if to == pa.string() and pa.types.is_fixed_size_binary(stored.type):
        return uuid_text(stored.cast(pa.binary()))
    return as_type(array, to)
