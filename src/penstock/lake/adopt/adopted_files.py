"""Which files a table has adopted, for good: also those that were compacted, deleted or overwritten since.

Each commit of adopted files writes a list of them beside the table's metadata and names it in a property:

    penstock.adopted.7423904820 = 7423904820@s3://lake/web/events/metadata/adopted-….arrow

Without it, a file that `compact()` has replaced would be taken for a new one when the tree is adopted again, and its
rows would be there twice. A list counts like a run (`lake/commit/once.py`): not when its snapshot was rolled back.
"""

from __future__ import annotations

from collections.abc import Sequence
from uuid import uuid4

import pyarrow as pa
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata

from penstock.lake.commit.once import adoptions
from penstock.lake.commit.snapshot import folder_of
from penstock.storage.path_names import Names
from penstock.storage.storage import clear_read_errors
from penstock.tables.iceberg.iceberg_table import IcebergTable
from penstock.tables.iceberg.scan.scan_plan import data_batches

_LOST = "restore it, or adopt the tree into a new table"
_COLUMNS = pa.schema([("path", pa.string()), ("bytes", pa.int64())])
Sizes = dict[str, int]  # of files, by their normal names


def lists_of(metadata: TableMetadata) -> frozenset[str]:
    """The paths of the lists that count for what is read of a table."""
    return frozenset(adoptions(metadata))


def write_list(table: Table, paths: Sequence[str], sizes: Sequence[int]) -> str:
    """Write the list of a commit to be; its path."""
    path = f"{folder_of(table, 'metadata')}/adopted-{uuid4()}.arrow"
    rows = pa.table([pa.array(paths), pa.array(sizes)], schema=_COLUMNS)
    with table.io.new_output(path).create() as sink:
        options = pa.ipc.IpcWriteOptions(compression="zstd")
        with pa.ipc.new_stream(sink, _COLUMNS, options=options) as writer:
            writer.write_table(rows)
    return path


def listed_files(table: Table, lists: frozenset[str], names: Names) -> Sizes:
    """The files in some lists, as large as they were when they were adopted."""
    sizes = Sizes()
    for path in sorted(lists):
        with clear_read_errors(f"{path}, which lists files that were adopted,", _LOST):
            data = table.io.new_input(path).open().read()
            rows = pa.ipc.open_stream(data).read_all()
            sizes |= _sizes(rows["path"], rows["bytes"], names)
    return sizes


def live_sizes(table: IcebergTable, names: Names) -> Sizes:
    """The data files that a table has now."""
    sizes = Sizes()
    for batch in data_batches(table.version, table.sources):
        sizes |= _sizes(batch.column("file_path"), batch.column("file_size_in_bytes"), names)
    return sizes


def _sizes(paths: pa.Array, sizes: pa.Array, names: Names) -> Sizes:
    return {names.of(path): size for path, size in zip(paths.to_pylist(), sizes.to_pylist(), strict=True)}
