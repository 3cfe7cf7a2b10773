"""Appends, overwrites and deletes: rows become files, files become a snapshot.

New rows are written once, however often a commit has to be repeated. What is taken away is planned again when another
writer changed it in the meantime.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from penstock.errors import ConflictError, LakeError, PenstockError
from penstock.expr.bind import bind_text
from penstock.expr.tree import Expr
from penstock.lake.commit.commit import (
    AlreadyCommitted,
    Overtaken,
    UnknownOutcomeError,
    commit,
    commit_metadata,
    fresh,
    has_moved_on,
    update,
)
from penstock.lake.commit.snapshot import Change, StreamBatch, data_folder
from penstock.lake.layout.live_files import LiveFile, live_files, logical_sizes
from penstock.lake.layout.table_layout import Layout, layout_of
from penstock.lake.write.conform import check_schema
from penstock.lake.write.data_files import WriteJob, WrittenFile, check_format, discard, fine_tuples, write_rows
from penstock.lake.write.hot_key_choice import choose_for
from penstock.lake.write.new_sidecars import with_sidecars
from penstock.lake.write.removal import ByPartition, ByPredicate, PlannedRemoval, Removal, Rewrite
from penstock.progress import Count, Counted, progress
from penstock.prune.file_task import FileTask
from penstock.tables import bridge
from penstock.tables.iceberg.iceberg_table import IcebergTable
from penstock.tables.iceberg.scan.reader import Reader

if TYPE_CHECKING:
    from pyiceberg.table import Table
    from pyiceberg.table.metadata import TableMetadata

# Rewriting less than this starts no Spark job.
LOCALLY = 64 << 20
_PLANS = 20


def append(table: IcebergTable, data: Any, properties: dict[str, str]) -> Table:
    """Add rows; PyIceberg's table afterwards."""
    job, data = prepare_for(table, data)
    files = produce(job, data)
    return add_files(table, job, files, properties)


def add_files(table: IcebergTable, job: WriteJob, files: Sequence[WrittenFile], properties: dict[str, str]) -> Table:
    """Commit files that were written."""
    if not files:
        return fresh(table.table)
    with removed_on_failure(job, files):
        return commit(fresh(table.table), table.sources, Change("append", files, properties=properties))


def add_batch(table: IcebergTable, job: WriteJob, files: Sequence[WrittenFile], batch: StreamBatch) -> bool:
    """Commit the files of a micro-batch; False when the table has it already, and then they are removed."""
    change = Change("append", files, properties=batch.summary, batch=batch)
    try:
        with removed_on_failure(job, files):
            commit(fresh(table.table), table.sources, change)
    except AlreadyCommitted:
        return False
    return True


def overwrite(
    table: IcebergTable, data: Any, where: str | Expr | None, dynamic: bool, properties: dict[str, str]
) -> Table:
    """Replace rows: all, those that match, or the logical partitions that the new rows have."""
    if where is not None and dynamic:
        raise LakeError("overwrite has both where and dynamic", hint="give one of them")
    predicate = None if dynamic else by_predicate(table, "TRUE" if where is None else where)
    job, data = prepare_for(table, data)
    files = produce(replace(job, only=None if where is None else predicate), data)
    removal = predicate if predicate is not None else ByPartition(job.layout, fine_tuples(job.layout, files))
    return replace_rows(table, job, files, removal, properties)


def replace_rows(
    table: IcebergTable,
    job: WriteJob,
    files: Sequence[WrittenFile],
    removal: Removal,
    properties: dict[str, str],
) -> Table:
    """Commit files in the place of rows that are taken away."""
    with removed_on_failure(job, files):
        return _take_away(table, job, removal, "overwrite", files, properties)


def delete(table: IcebergTable, where: str | Expr, properties: dict[str, str]) -> Table:
    """Take away the rows that match."""
    predicate = by_predicate(table, where)
    return _take_away(table, prepare(table), predicate, "delete", (), properties)


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
    check_format(table.table.metadata.properties)
    now = with_sidecars(table.table)
    layout = layout_of(now.metadata)
    if layout.coarse is not None and layout.coarse.spec_id not in now.metadata.specs():
        now, layout = _with_coarse(now)
    if files is None and layout.rule is not None and layout.rule.below is not None:
        files = _live(table, layout)
    metadata = now.metadata
    sizes = logical_sizes(files or ())
    per_row = _bytes_per_row(metadata)
    return WriteJob(layout, now.io, data_folder(now), metadata.properties, sizes, bytes_per_row=per_row)


def _live(table: IcebergTable, layout: Layout) -> list[LiveFile]:
    """The files of a table; those of its newest snapshot, when this one expires at the same time."""
    for _ in range(_PLANS):
        try:
            return live_files(table, layout)
        except (PenstockError, OSError):
            newest = fresh(table.table)
            if not has_moved_on(table.table, newest):
                raise
            table = replace(table, table=newest)
    raise ConflictError(f"{table.name} was changed by other writers all the time", hint="try again")


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


def rewrite(tasks: Sequence[FileTask], work: Rewrite) -> Iterator[tuple[FileTask, list[WrittenFile] | None]]:
    """Rewrite files one by one, here or, when there is much to do, in Spark's tasks."""
    if not tasks:
        return
    if sum(task.size or 0 for task in tasks) > LOCALLY:
        yield from zip(tasks, bridge.map_files(tasks, work.file), strict=True)
        return
    done = Count(len(tasks), "file")
    with progress("rewriting", done):
        yield from ((task, work.file(task)) for task in done.each(tasks))


def _take_away(
    table: IcebergTable,
    job: WriteJob,
    removal: Removal,
    operation: str,
    files: Sequence[WrittenFile],
    properties: dict[str, str],
) -> Table:
    for _ in range(_PLANS):
        now = replace(table, table=fresh(table.table))
        try:
            planned = removal.find(now)
            removed, rewritten = _rewritten(now, job, removal, planned)
        except (PenstockError, OSError):
            if not has_moved_on(now.table, fresh(now.table)):
                raise
            continue  # files of a snapshot that expired are gone
        if not removed and not files:
            return now.table
        change = Change(
            operation if files or rewritten else "delete",
            [*files, *rewritten],
            removed,
            now.version.snapshot_id,
            touches=_touches(removal, now, planned),
            properties=properties,
        )
        published = attempt(now, job, rewritten, change)
        if published is not None:
            return published
    message = f"{table.name} was changed by other writers during all of {_PLANS} attempts"
    raise ConflictError(message, hint="nothing was changed; try again when they are done")


def attempt(now: IcebergTable, job: WriteJob, written: Sequence[WrittenFile], change: Change) -> Table | None:
    """Commit a change that was planned on a version of the table; None when another writer overtook it.

    What was written for it is removed, unless it took place or may have.
    """
    try:
        with removed_on_failure(job, written):
            return commit(now.table, now.sources, change)
    except Overtaken:
        return None


def _touches(removal: Removal, now: IcebergTable, planned: PlannedRemoval) -> Callable[[Table], bool]:
    """Whether a newer version of the table has files that the removal is about and did not know."""
    return lambda newest: bool(removal.find(replace(now, table=newest)).paths - planned.paths)


def _rewritten(
    now: IcebergTable, job: WriteJob, removal: Removal, planned: PlannedRemoval
) -> tuple[frozenset[str], list[WrittenFile]]:
    """The files that go, and what takes their place."""
    work = Rewrite(job.again(), removal, Reader(now.version, now.sources.io, now.context.timezone))
    removed, written = set(planned.whole), list[WrittenFile]()
    try:
        for task, files in rewrite(planned.partial, work):
            if files is not None:
                removed.add(task.path)
                written += files
    except BaseException:
        discard(job.io, written)
        raise
    return frozenset(removed), written


def _with_coarse(table: Table) -> tuple[Table, Layout]:
    """The table with the spec of shared files; another writer may make it at the same time."""
    from pyiceberg.table.update import AddPartitionSpecUpdate, AssertDefaultSpecId, AssertTableUUID

    def publish(table: Table) -> tuple[Table, Layout]:
        layout = layout_of(table.metadata)
        if layout.coarse is None or layout.coarse.spec_id in table.metadata.specs():
            return table, layout
        requirements = (
            AssertTableUUID(uuid=table.metadata.table_uuid),
            AssertDefaultSpecId.model_validate({"default-spec-id": table.metadata.default_spec_id}),
        )
        updates = (AddPartitionSpecUpdate(spec=layout.coarse),)
        return update(table, requirements, updates, (ValueError,)), layout

    return commit_metadata(fresh(table), publish, "the spec of shared files could not be added to {}")


def _bytes_per_row(metadata: TableMetadata) -> float | None:
    """What a row takes in the table's files so far."""
    head = metadata.current_snapshot()
    summary = {} if head is None or head.summary is None else head.summary.additional_properties
    rows, size = int(summary.get("total-records", 0)), int(summary.get("total-files-size", 0))
    return size / rows if rows > 1_000 and size else None


@contextmanager
def removed_on_failure(job: WriteJob, files: Iterable[WrittenFile]) -> Iterator[None]:
    """Files that were written for a commit are removed when it is certain that it did not take place."""
    try:
        yield
    except UnknownOutcomeError:
        raise
    except Exception:  # not an interruption: then the commit may have taken place
        discard(job.io, files)
        raise
