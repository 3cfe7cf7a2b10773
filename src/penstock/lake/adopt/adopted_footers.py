"""The footers of the files of a tree, several at a time, as compact columns.

    1,000 files  →  one batch: columns, rows, counts and bounds  →  compressed, and kept on disk until all are read

What a run has read before it was killed is found again by the names, sizes and times of the files; a batch whose files
are others now is read anew. So a batch costs memory only while it is read or used.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, NamedTuple

import pyarrow as pa

from penstock.errors import LayoutError
from penstock.formats.parquet_footer import FooterFacts, LeafFacts, footer_facts, leaves_of
from penstock.lake.adopt.adoptable_types import columns_of
from penstock.progress import Count, progress
from penstock.storage.storage import Storage
from penstock.tables.iceberg.manifest.manifest_store import ManifestStore, cache_folder

_BATCH = 1_000
_AT_ONCE = 32
_KEPT_BYTES = 2 << 30
_LEAF = pa.struct([("size", pa.int64()), ("values", pa.int64()), ("nulls", pa.int64()),
                   ("lower", pa.binary()), ("upper", pa.binary())])  # fmt: skip
_COLUMNS = pa.schema([
    ("columns", pa.dictionary(pa.int32(), pa.binary())),
    ("rows", pa.int64()),
    ("offsets", pa.list_(pa.int64())),
    ("leaves", pa.list_(_LEAF)),
])  # fmt: skip


class FoundFile(NamedTuple):
    """A file of a tree: its URL, size, and when it was changed."""

    url: str
    bytes: int
    changed_ms: int


class Footer(NamedTuple):
    """What is known of one file; its columns as they are written, so that equal ones are known by that."""

    file: FoundFile
    columns: bytes
    facts: FooterFacts


@dataclass
class Footers:
    """The footers of some files, in the order of the files."""

    files: Sequence[FoundFile]
    batches: list[pa.Buffer] = field(default_factory=list, repr=False)
    first: dict[bytes, str] = field(default_factory=dict)  # of all columns that files with rows have, the first file

    def __iter__(self) -> Iterator[Footer]:
        for start, batch in zip(range(0, len(self.files), _BATCH), self.batches, strict=True):
            rows = pa.ipc.open_stream(batch).read_all().to_pylist()
            for file, row in zip(self.files[start : start + _BATCH], rows, strict=True):
                leaves = [LeafFacts(**leaf) for leaf in row["leaves"]]
                yield Footer(file, row["columns"], FooterFacts(row["rows"], row["offsets"], leaves))

    def schemas(self) -> list[tuple[pa.Schema, str]]:
        """The different columns that files have, and the first file of each."""
        return [(read_schema(columns), url) for columns, url in self.first.items()]


def read_schema(columns: bytes) -> pa.Schema:
    """The columns of a footer."""
    return pa.ipc.read_schema(pa.py_buffer(columns))


def read_footers(storage: Storage, files: Sequence[FoundFile]) -> Footers:
    """Read the footers of files; the first that cannot be adopted is an error that names it."""
    footers, read = Footers(files), Count(len(files), "file")
    folder = cache_folder()
    store = ManifestStore(None if folder is None else folder / "footers", _KEPT_BYTES)
    with progress("reading footers", read), ThreadPoolExecutor(_AT_ONCE, "penstock-footers") as pool:
        for start in range(0, len(files), _BATCH):
            batch = files[start : start + _BATCH]
            key = sha256(repr([storage.identity, batch]).encode()).digest()
            table = store.load(key)
            if table is None or table.schema != _COLUMNS:
                rows = list(read.each(pool.map(lambda file: _read(storage, file), batch)))
                table = pa.Table.from_pylist(rows, _COLUMNS)
                store.save(key, table)
            else:
                list(read.each(batch))
            _note_schemas(footers, batch, table)
            footers.batches.append(_compressed(table))
    return footers


def forget_footers() -> None:
    """Remove what was kept of footers, once their files are in a table."""
    folder = cache_folder()
    ManifestStore(None if folder is None else folder / "footers", _KEPT_BYTES).clear()


def _note_schemas(footers: Footers, batch: Sequence[FoundFile], table: pa.Table) -> None:
    for file, columns, rows in zip(batch, *(table.column(i).to_pylist() for i in (0, 1)), strict=True):
        if rows:
            footers.first.setdefault(columns, file.url)


def _compressed(table: pa.Table) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_table(table.unify_dictionaries().combine_chunks())
    return sink.getvalue()


def _read(storage: Storage, file: FoundFile) -> dict[str, Any]:
    import pyarrow.parquet as pq

    path = storage.path_of(file.url)
    with storage.open(path) as source:
        try:
            footer = pq.read_metadata(source)
        except pa.ArrowInvalid as error:
            why = str(error).splitlines()[0][:120]
            message = f"{file.url} is not a Parquet file ({why})"
            raise LayoutError(message, hint="only Parquet can be adopted; remove it, or replace it") from None
        except OSError as error:
            raise storage.trouble(path, error) from None
    columns = columns_of(footer, file.url)
    facts = footer_facts(footer, leaves_of(columns))
    leaves = [leaf._asdict() for leaf in facts.leaves]
    text = columns.serialize().to_pybytes()
    return {"columns": text, "rows": facts.rows, "offsets": facts.offsets, "leaves": leaves}
