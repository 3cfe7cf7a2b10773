"""Appends, overwrites and deletes: rows become files, files become a snapshot.

New rows are written once, however often a commit has to be repeated. What is removed is planned again when another
writer changed it in the meantime.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import pyarrow as pa
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata

from penstock.errors import ConflictError, LakeError
from penstock.expr.bind import bind_text
from penstock.expr.tree import Expr
from penstock.lake.commit.commit import (
    AlreadyCommitted,
    Overtaken,
    change_metadata,
    commit,
    fresh,
    replanned,
    undone_on_failure,
)
from penstock.lake.commit.snapshot import Change, StreamBatch, folder_of
from penstock.lake.layout.live_files import LiveFile, live_files, logical_sizes
from penstock.lake.layout.table_layout import layout_of, missing_spec
from penstock.lake.write.arrangement import write_rows
from penstock.lake.write.conform import check_schema
from penstock.lake.write.data_files import WriteJob, WrittenFile, discard, file_format
from penstock.lake.write.hot_key_choice import choose_for
from penstock.lake.write.new_sidecars import with_sidecars
from penstock.lake.write.removal import ByPartition, ByPredicate, PlannedRemoval, Removal, Rewrite
from penstock.progress import Count, Counted, progress
from penstock.tables import bridge
from penstock.tables.file_metadata import spark_url
from penstock.tables.iceberg.iceberg_table import IcebergTable
from penstock.tables.iceberg.scan.reader import Reader

# Rewriting less than this starts no Spark job.
LOCALLY = 64 << 20


def append(table: IcebergTable, data: Any, properties: dict[str, str]) -> Table:
    """Add rows; PyIceberg's table afterwards."""
    job, data = prepare_for(table, data)
    return add_files(table, produce(job, data), properties)


def add_files(table: IcebergTable, files: Sequence[WrittenFile], properties: dict[str, str]) -> Table:
    """Commit files that were written."""
    if not files:
        return fresh(table.table)
    return _add(table, Change("append", files, properties=properties))


def add_batch(table: IcebergTable, files: Sequence[WrittenFile], batch: StreamBatch) -> bool:
    """Commit the files of a micro-batch; False when the table has it already, and then they are removed."""
    try:
        _add(table, Change("append", files, properties=batch.summary, batch=batch))
    except AlreadyCommitted:
        return False
    return True


def _add(table: IcebergTable, change: Change) -> Table:
    with undone_on_failure(lambda: discard(table.sources.io, change.added)):
        return commit(fresh(table.table), table.sources, change)


def overwrite(
    table: IcebergTable, data: Any, where: str | Expr | None, dynamic: bool, properties: dict[str, str]
) -> Table:
    """Replace rows: all, those that match, or the logical partitions that the new rows have."""
    if where is not None and dynamic:
        raise LakeError("overwrite has both where and dynamic", hint="give one of them")
    predicate = None if dynamic else by_predicate(table, "TRUE" if where is None else where)
    job, data = prepare_for(table, data)
    files = produce(replace(job, check=predicate.check if predicate is not None and where is not None else None), data)
    removal = predicate if predicate is not None else ByPartition.of(job.layout, files)
    return replace_rows(table, job, files, removal, properties)


def replace_rows(
    table: IcebergTable,
    job: WriteJob,
    files: Sequence[WrittenFile],
    removal: Removal,
    properties: dict[str, str],
    operation: str = "overwrite",
) -> Table:
    """Commit files in the place of rows that are removed; planned again when other writers changed those."""

    def work(now: IcebergTable) -> Table:
        planned = removal.find(now)
        removed, rewritten = _rewritten(now, job, removal, planned)
        if not removed and not files:
            return now.table

        def has_new_files(newest: Table) -> bool:
            return bool(removal.find(replace(now, table=newest)).paths - planned.paths)

        change = Change(
            operation if files or rewritten else "delete",
            [*files, *rewritten],
            removed,
            now.version.snapshot_id,
            touches=has_new_files,
            properties=properties,
        )
        return commit_written(now, change, rewritten)

    with undone_on_failure(lambda: discard(job.io, files)):
        newest = replace(table, table=fresh(table.table))
        return replanned(newest, work, "nothing was changed; try again when they are done")


def delete(table: IcebergTable, where: str | Expr, properties: dict[str, str]) -> Table:
    """Take away the rows that match."""
    predicate = by_predicate(table, where)
    return replace_rows(table, prepare(table), (), predicate, properties, "delete")


def by_predicate(table: IcebergTable, where: str | Expr) -> ByPredicate:
    """The removal of the rows that match."""
    if not isinstance(where, Expr):
        bind_text(where, table.schema, table.context)  # an error in it is said before anything is written
    return ByPredicate(where, table.schema, table.context)


def prepare_for(table: IcebergTable, data: Any) -> tuple[WriteJob, Any]:
    """All that writing these rows needs; hot keys that are to be found are chosen by them."""
    now, data = choose_for(table, data)
    return prepare(replace(table, table=now)), data


def prepare(table: IcebergTable, *, files: Sequence[LiveFile] | None = None) -> WriteJob:
    """All that writing needs to know of a table; sidecars and the coarse spec are made when they are not there yet."""
    file_format(table.table.metadata.properties)
    now = with_sidecars(table.table)
    while missing_spec(now.metadata):
        # Another writer may add it at the same time, or change the rule, which asks for another one then.
        now = change_metadata(now, missing_spec, "the spec of shared files could not be added to {}")
    layout = layout_of(now.metadata)
    if files is None and layout.rule is not None and layout.rule.below is not None:
        files = replanned(table, lambda now: live_files(now, layout))
    metadata = now.metadata
    sizes = logical_sizes(files or ())
    per_row = _bytes_per_row(metadata)
    return WriteJob(layout, now.io, folder_of(now, "data"), metadata.properties, sizes, bytes_per_row=per_row)


def produce(job: WriteJob, data: Any) -> list[WrittenFile]:
    """Rows as files: Arrow's here, Spark's by its tasks."""
    if isinstance(data, pa.RecordBatch):
        data = pa.table(data)
    if isinstance(data, pa.Table):
        names = check_schema(data.schema, job.layout.schema)
        with progress(f"writing {Counted(data.num_rows, None, 'row')}"):
            return write_rows(job, [data.select(names)])
    if isinstance(data, pa.RecordBatchReader):
        names = check_schema(data.schema, job.layout.schema)
        read = Count(None, "row")
        with progress("reading and writing", read):
            batches = read.each(data, lambda batch: batch.num_rows)
            return write_rows(job, (pa.table(batch).select(names) for batch in batches))
    if hasattr(data, "sparkSession") and hasattr(data, "mapInArrow"):
        files: list[WrittenFile] = bridge.write(job, data)
        return files
    raise LakeError(f"rows are a Spark DataFrame or an Arrow table; found {type(data).__name__}")


def commit_written(table: IcebergTable, change: Change, written: Sequence[WrittenFile]) -> Table:
    """Commit a change that was planned on a version of a table; PyIceberg's table afterwards.

    What was written for it is removed, unless it took place or may have.
    """
    with undone_on_failure(lambda: discard(table.sources.io, written)):
        return commit(table.table, table.sources, change)


def replace_files(base: IcebergTable, urls: Collection[str], rows: Any) -> Table:
    """Put rows in the place of files of a version: the end of a DELETE that only Spark can evaluate.

    The URLs are as Spark shows them. When others have added files since, or changed these, nothing is changed: the
    rows were computed without them.
    """
    files = {spark_url(task.path): task.path for task in base.plan().files}
    removed = frozenset(files[url] for url in urls)
    if not removed:
        return base.table
    written = produce(prepare(base), rows)
    known = frozenset(files.values())

    def has_new_files(newest: Table) -> bool:
        return not known.issuperset(replace(base, table=newest, snapshot=None).plan().files.paths.to_pylist())

    change = Change("overwrite", written, removed, base.version.snapshot_id, touches=has_new_files)
    try:
        return commit_written(base, change, written)
    except Overtaken:
        message = f"{base.name} was changed by another writer while the statement ran"
        raise ConflictError(message, hint="nothing was changed; run the statement again") from None


def _rewritten(
    now: IcebergTable, job: WriteJob, removal: Removal, planned: PlannedRemoval
) -> tuple[frozenset[str], list[WrittenFile]]:
    """The files that go, and what takes their place; written here or, when there is much to do, in Spark's tasks."""
    work = Rewrite(job.again(), removal, Reader(now.version, now.sources.io, now.context.timezone))
    tasks, done = planned.partial, Count(len(planned.partial), "file")
    is_small = sum(task.size or 0 for task in tasks) <= LOCALLY
    removed, written = set(planned.whole), list[WrittenFile]()
    try:
        with progress("rewriting", done) if is_small and tasks else nullcontext():
            rewritten = (
                map(work.file, done.each(tasks)) if is_small or not tasks else bridge.map_files(tasks, work.file)
            )
            for task, files in zip(tasks, rewritten, strict=True):
                if files is not None:
                    removed.add(task.path)
                    written += files
    except BaseException:
        discard(job.io, written)
        raise
    return frozenset(removed), written


def _bytes_per_row(metadata: TableMetadata) -> float | None:
    """What a row takes in the table's files so far."""
    head = metadata.current_snapshot()
    summary = {} if head is None or head.summary is None else head.summary.additional_properties
    rows, size = int(summary.get("total-records", 0)), int(summary.get("total-files-size", 0))
    return size / rows if rows > 1_000 and size else None
