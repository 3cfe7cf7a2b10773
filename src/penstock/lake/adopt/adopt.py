"""A Parquet tree becomes an Iceberg table where it lies: manifests name its files, and no file is copied or changed.

    list the tree ─→ files that the table has not adopted yet ─→ their footers ─→ one schema for all
        ─→ the table, made or widened, with the names by which readers find columns in files without ids
        ─→ commits of 10,000 files each

Whatever can be wrong with a file is found before anything is changed. What is killed is run again: footers that were
read are kept (`footers.py`), and files that were committed are in the table's lists (`adopted_files.py`). Two that
adopt one tree at once overtake each other, and each file is added by one of them.

A file is never removed with the table: it lies outside of the table's folders, and `expire`, `sweep` and a purge remove
nothing else (`lake/maintain/unneeded_files.py`). So a table whose folders and the tree lie in each other is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.types import IcebergType

from penstock.errors import LakeError, LayoutError, StorageError
from penstock.lake.adopt.adopted import Adopted
from penstock.lake.adopt.adopted_columns import Columns
from penstock.lake.adopt.adopted_entry import written_file
from penstock.lake.adopt.adopted_files import Sizes, listed_files, lists_of, live_sizes, write_list
from penstock.lake.adopt.adopted_footers import Footer, Footers, forget_footers, read_footers, read_schema
from penstock.lake.adopt.adopted_tree import AdoptedTree
from penstock.lake.adopt.table_to_adopt import TableToAdopt
from penstock.lake.commit.commit import change_metadata, commit, fresh, property_updates, replanned, undone_on_failure
from penstock.lake.commit.once import Adoption
from penstock.lake.commit.snapshot import Change, own_folders
from penstock.lake.layout.table_layout import layout_of
from penstock.lake.write.data_files import WrittenFile, delete_quietly
from penstock.progress import Count, progress
from penstock.storage.path_names import Names, is_below
from penstock.tables.iceberg.iceberg_table import IcebergTable

if TYPE_CHECKING:
    from penstock.lake.managed_table import ManagedTable

_MAPPING, _FROM = "schema.name-mapping.default", "penstock.adopted-from"
_FILES_PER_COMMIT = 10_000


@dataclass
class Adopting:
    """One tree on its way into one table."""

    tree: AdoptedTree
    target: TableToAdopt
    names: Names = field(default_factory=Names)
    lists: frozenset[str] = frozenset()  # that were looked at
    known: Sizes = field(default_factory=Sizes)

    def run(self) -> Adopted:
        """Adopt what the table has not adopted yet."""
        table = self.target.existing()
        if table is not None:
            self.target.check(table, self.tree)
            self._look_at(table)
        normal = [self.names.of(file.url) for file in self.tree.files]
        new = [i for i, name in enumerate(normal) if name not in self.known]
        footers = read_footers(self.tree.layout.storage, [self.tree.files[i] for i in new])
        columns = self._columns(table, footers)
        made = table is None
        if table is None:
            table = self._make(columns)
        elif footers.first:
            self._widen(table, columns)
        vanished, changed = self._differences(table, normal)
        done = self._commit(table, _Entries(table, self.tree, new, footers, columns))
        forget_footers()
        counts = (done.files, done.rows, done.bytes, len(normal) - len(new), len(new) - done.with_rows)
        return Adopted(table.name, made, *counts, vanished, changed)

    def _look_at(self, table: IcebergTable) -> None:
        self.lists = lists_of(table.table.metadata)
        self.known = {**live_sizes(table, self.names), **listed_files(table.table, self.lists, self.names)}

    def _columns(self, table: ManagedTable | None, footers: Footers) -> Columns:
        if table is None:
            columns = Columns.of_partitions(self.tree.names)
        else:
            metadata = table.table.metadata
            schema, mapping = layout_of(metadata).schema, metadata.name_mapping()
            columns = Columns.of_table(schema, mapping, self.tree.names, f"the table {table.name}")
        for schema, url in footers.schemas():
            columns.take(schema, url)
        if not columns.columns and table is None:
            hint = "give a tree with rows, or make the table: lake.create_table(…)"
            raise LayoutError(f"no file in {self.tree.layout.storage.url} has a row and a column", hint=hint)
        return columns

    def _make(self, columns: Columns) -> ManagedTable:
        """A new table, with the partition columns behind the others; or none, where it cannot be adopted into."""
        partitions = [pa.field(column.name, column.type) for column in self.tree.layout.columns]
        table = self.target.create(pa.schema([*columns.schema(), *partitions]), self.tree.names)
        try:
            self._check_place(table)
            self._map(table, columns)
        except BaseException:
            self.target.take_away()
            raise
        return table

    def _check_place(self, table: ManagedTable) -> None:
        """An error when the tree is not apart from the table, or cannot be read with the table's own settings."""
        root = self.names.folder(self.tree.layout.root_url)
        for folder in map(self.names.folder, own_folders(table.table)):
            if folder == root or is_below(folder, root) or is_below(root, folder):
                message = f"the tree {self.tree.layout.storage.url} and the table's folder {folder} lie in each other"
                raise LakeError(message, hint="give the table another place: location=…")
        url = self.tree.files[0].url
        try:
            size = len(table.sources.io.new_input(url))
        except Exception as error:
            message = f"{url} cannot be read with the settings of the catalog: {type(error).__name__}"
            raise StorageError(message, hint="configure the storage for the catalog too") from error
        if size != self.tree.files[0].bytes:
            raise StorageError(f"{url} has another size to the catalog's storage", hint="check its settings")

    def _widen(self, table: ManagedTable, columns: Columns) -> None:
        """Add columns to a table and widen them, so that new files fit."""
        with table.change_schema() as change:
            change.merge_columns(columns.schema())
        self._map(table, columns)

    def _map(self, table: ManagedTable, columns: Columns) -> None:
        mapping = columns.mapping(layout_of(table.table.metadata).schema).model_dump_json()
        new = {_MAPPING: mapping}
        if table.table.metadata.properties.get(_MAPPING) != mapping:
            failure = "the names of columns in files of {} could not be set"
            table._move(change_metadata(table.table, lambda now: property_updates(now, new, ()), failure))

    def _differences(self, table: IcebergTable, normal: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The files of the tree that the table has and that are gone, or were written again, since."""
        if not self.known:
            return (), ()
        root, live = self.names.folder(self.tree.layout.root_url), live_sizes(table, self.names)
        sizes = {name: file.bytes for name, file in zip(normal, self.tree.files, strict=True)}
        own = [name for name in live if is_below(name, root)]
        vanished = sorted(name for name in own if name not in sizes)
        changed = sorted(name for name in own if name in sizes and live[name] != sizes[name])
        return tuple(vanished), tuple(changed)

    def _commit(self, table: ManagedTable, entries: _Entries) -> _Done:
        done, committed = _Done(), Count(len(entries.new), "file")
        with progress(f"committing to {table.name}", committed):
            files = entries.files(done)
            while batch := list(islice(files, _FILES_PER_COMMIT)):
                (batch,) = committed.each([batch], len)
                added = self._add(table, batch)
                done.files += len(added)
                done.rows += sum(file.rows for file in added)
                done.bytes += sum(file.bytes for file in added)
        return done

    def _add(self, table: ManagedTable, batch: Sequence[WrittenFile]) -> Sequence[WrittenFile]:
        """Commit files that nobody has adopted meanwhile; those that were committed."""

        def once(now: IcebergTable) -> tuple[Table, Sequence[WrittenFile]]:
            lists = lists_of(now.table.metadata)
            self.known |= listed_files(now.table, lists - self.lists, self.names)
            self.lists |= lists
            left = [file for file in batch if self.names.of(file.path) not in self.known]
            if not left:
                return now.table, left
            path = write_list(now.table, [file.path for file in left], [file.bytes for file in left])
            properties = {**Adoption(path).summary, _FROM: self.tree.layout.storage.url}
            change = Change("append", left, base=now.version.snapshot_id, properties=properties,
                            touches=lambda newest: lists_of(newest.metadata) != lists)  # fmt: skip
            with undone_on_failure(lambda: delete_quietly(now.sources.io, path)):
                published = commit(now.table, now.sources, change).table
            self.lists |= {path}
            return published, left

        hint = "files that were adopted stay so; adopt the tree again"
        newest = replace(table, table=fresh(table.table))
        published, added = replanned(newest, once, hint)
        table._move(published)
        return added


@dataclass
class _Done:
    """How much was committed."""

    files: int = 0
    rows: int = 0
    bytes: int = 0
    with_rows: int = 0


@dataclass
class _Entries:
    """New files as manifests have them, made one after the other."""

    table: ManagedTable
    tree: AdoptedTree
    new: Sequence[int]
    footers: Footers
    columns: Columns
    _ids: dict[bytes, Sequence[tuple[int, IcebergType] | None]] = field(default_factory=dict)

    def files(self, done: _Done) -> Iterator[WrittenFile]:
        """The files that have rows."""
        spec_id, partitions = self.table.table.metadata.default_spec_id, self._partitions
        for footer, partition in zip(self.footers, partitions, strict=True):
            if footer.facts.rows:
                done.with_rows += 1
                yield written_file(footer, self._ids_of(footer), spec_id, partition)

    @cached_property
    def _schema(self) -> Schema:
        return layout_of(self.table.table.metadata).schema

    @property
    def _partitions(self) -> Sequence[tuple[Any, ...]]:
        spec, schema = self.table.table.metadata.spec(), self._schema
        fields = [schema.find_field(each.source_id) for each in spec.fields]
        types: Mapping[str, pa.DataType] = {f.name.lower(): self.table.schema.field(f.name).type for f in fields}
        by_name = self.tree.partitions(self.new, [types[name.lower()] for name in self.tree.names])
        places = [name.lower() for name in self.tree.names]
        order = [places.index(each.name.lower()) for each in fields]
        return [tuple([values[i] for i in order]) for values in by_name]

    def _ids_of(self, footer: Footer) -> Sequence[tuple[int, IcebergType] | None]:
        if footer.columns not in self._ids:
            self._ids[footer.columns] = self.columns.ids(self._schema, read_schema(footer.columns))
        return self._ids[footer.columns]
