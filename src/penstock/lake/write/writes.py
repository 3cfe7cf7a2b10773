"""Appends, overwrites and deletes: rows become files, files become a snapshot.

New rows are written once, however often a commit has to be repeated. What is removed is planned again when another
writer changed it in the meantime.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata

from penstock.errors import ConflictError, LakeError
from penstock.expr.bind import bind_text
from penstock.expr.tree import Expr
from penstock.lake.commit.commit import (
    Published,
    change_metadata,
    commit,
    fresh,
    replanned,
    undone_on_failure,
)
from penstock.lake.commit.manifest_writer import check_format_version
from penstock.lake.commit.once import AlreadyCommitted, StreamBatch, once_of
from penstock.lake.commit.snapshot import Change, folder_of
from penstock.lake.layout.live_files import LiveFile, live_files, logical_sizes
from penstock.lake.layout.table_layout import layout_of, missing_spec
from penstock.lake.write.arrangement import write_rows
from penstock.lake.write.assignments import Assignments
from penstock.lake.write.changed_files import change_files
from penstock.lake.write.conform import check_schema, in_order
from penstock.lake.write.data_files import WriteJob, WrittenFile, discard, file_format
from penstock.lake.write.hot_key_choice import choose_for
from penstock.lake.write.new_sidecars import with_sidecars
from penstock.lake.write.position_deletes import write_position_deletes
from penstock.lake.write.removal import ByPartition, ByPredicate
from penstock.lake.write.row_change import FilesRead, Places, RowChange, all_files
from penstock.lake.write.rows import as_arrow, is_spark
from penstock.lake.write.update import Update
from penstock.lake.write.write_modes import is_serializable
from penstock.lake.write.write_result import WriteResult, result_of
from penstock.progress import Count, Counted, progress
from penstock.tables import bridge
from penstock.tables.iceberg.iceberg_table import IcebergTable
from penstock.tables.iceberg.scan.reader import Reader

if TYPE_CHECKING:
    from penstock.lake.merge_builder import MergeBuilder


class Done(NamedTuple):
    """A write that took place: PyIceberg's table afterwards, and what was done."""

    table: Table
    result: WriteResult


def at_most_once(table: IcebergTable, properties: Mapping[str, str], work: Callable[[], Done]) -> Done:
    """What a write did, unless its properties name a run that the table has: then nothing is done."""
    once = once_of(properties)
    if once is None:
        return work()
    try:
        once.check(table.table.metadata)
        done = work()
        if done.result.snapshot_id is None:  # perhaps since another process has done it meanwhile
            once.check(fresh(table.table).metadata)
        return done
    except AlreadyCommitted as known:
        return Done(fresh(table.table), WriteResult(known.snapshot_id, already_committed=True))


def append(table: IcebergTable, data: Any, properties: dict[str, str]) -> Done:
    """Add rows."""
    job, data = prepare_for(table, data)
    return add_files(table, produce(job, data), properties)


def add_files(table: IcebergTable, files: Sequence[WrittenFile], properties: dict[str, str]) -> Done:
    """Commit files that were written."""
    if not files:
        return Done(fresh(table.table), WriteResult())
    return _add(table, Change("append", files, properties=properties))


def add_computed(base: IcebergTable, data: Any) -> Done:
    """Add rows that were computed from a version of the table itself, as those of a merge that only inserts.

    `Overtaken` when others have changed the table since.
    """
    job, data = prepare_for(base, data)
    files = produce(job, data)
    if not files:
        return Done(base.table, WriteResult())
    touches = _reads_other_files(base, job, all_files, "merge")
    return _add(base, Change("append", files, base=base.version.snapshot_id, touches=touches))


def add_batch(table: IcebergTable, files: Sequence[WrittenFile], batch: StreamBatch) -> bool:
    """Commit the files of a micro-batch; False when the table has it already, and then they are removed."""
    try:
        _add(table, Change("append", files, properties=batch.summary))
    except AlreadyCommitted:
        return False
    return True


def _add(table: IcebergTable, change: Change) -> Done:
    with undone_on_failure(lambda: discard(table.sources.io, change.added)):
        return _done(commit(fresh(table.table), table.sources, change), added=_rows(change.added))


def _done(published: Published, *, added: int = 0, updated: int = 0, removed: int = 0, retries: int = 0) -> Done:
    snapshot = published.table.metadata.snapshot_by_id(published.snapshot_id)
    summary = {} if snapshot is None or snapshot.summary is None else snapshot.summary.additional_properties
    rows = {"added": added, "updated": updated, "removed": removed}
    return Done(published.table, result_of(published.snapshot_id, summary, **rows, retries=retries + published.retries))


def _rows(files: Sequence[WrittenFile]) -> int:
    return sum(file.rows for file in files)


def overwrite(
    table: IcebergTable, data: Any, where: str | Expr | None, dynamic: bool, properties: dict[str, str]
) -> Done:
    """Replace rows: all, those that match, or the logical partitions that the new rows have."""
    if where is not None and dynamic:
        raise LakeError("overwrite has both where and dynamic", hint="give one of them")
    predicate = None if dynamic else by_predicate(table, "TRUE" if where is None else where)
    job, data = prepare_for(table, data)
    files = produce(replace(job, check=predicate.check if predicate is not None and where is not None else None), data)
    removal = predicate if predicate is not None else ByPartition.of(job.layout, files)
    return change_rows(table, job, removal, properties, files)


def change_rows(
    table: IcebergTable,
    job: WriteJob,
    change: RowChange,
    properties: dict[str, str],
    files: Sequence[WrittenFile] = (),
    command: str = "overwrite",
) -> Done:
    """Commit a change of rows, together with files of new ones; planned again when other writers changed those rows."""
    plans = count()

    def work(now: IcebergTable) -> Done:
        return change_once(now, job, change, properties, files, command, next(plans))

    with undone_on_failure(lambda: discard(job.io, files)):
        newest = replace(table, table=fresh(table.table))
        return replanned(newest, work, "nothing was changed; try again when they are done")


def change_once(
    now: IcebergTable,
    job: WriteJob,
    change: RowChange,
    properties: Mapping[str, str],
    files: Sequence[WrittenFile] = (),
    command: str = "overwrite",
    retries: int = 0,
) -> Done:
    """Commit a change that is planned on one version; `Overtaken` when others changed those rows meanwhile."""
    _check_columns(now, job)
    change.validate(now)
    planned = change.find(now)
    new = change_files(now, job, change, planned, command)
    if not new.gone and not files and not new.written:
        return Done(now.table, WriteResult())
    added = [*files, *new.written]
    is_delete = command == "delete" or all(file.is_delete for file in added)
    taken = Change(
        "append" if change.is_append else "delete" if is_delete else "overwrite",
        added,
        frozenset(new.gone),
        now.version.snapshot_id,
        frozenset(task.path for task, _ in new.marked),
        touches=_reads_other_files(now, job, change.files_read, command),
        properties=properties,
    )
    published = commit_written(now, taken, new.written)
    rows = {"added": _rows(files) + new.inserted, "updated": new.updated, "removed": new.removed}
    return _done(published, **rows, retries=retries)


def _check_columns(now: IcebergTable, job: WriteJob) -> None:
    """An error when columns changed since a change began: values of new ones would be lost, and keys not be found."""
    if layout_of(now.table.metadata).schema.as_struct() != job.layout.schema.as_struct():
        message = f"the columns of {now.name} were changed while its rows were"
        raise ConflictError(message, hint="nothing was written; try again")


def _reads_other_files(
    base: IcebergTable, job: WriteJob, files_read: Callable[[IcebergTable], FilesRead], command: str
) -> Callable[[Table], bool] | None:
    """Whether the files that a command has read are others in a newer version; None where that is no matter."""
    if not is_serializable(job.properties, command):
        return None
    known = cache(partial(files_read, base))
    return lambda newest: files_read(replace(base, table=newest, snapshot=None)) != known()


def delete(table: IcebergTable, where: str | Expr, properties: dict[str, str]) -> Done:
    """Take away the rows that match."""
    predicate = by_predicate(table, where)
    return change_rows(table, prepare(table), predicate, properties, command="delete")


def update(table: IcebergTable, values: Mapping[str, Any], where: str | Expr, properties: dict[str, str]) -> Done:
    """Give the rows that match new values."""
    predicate = by_predicate(table, where)
    assignments = Assignments.of(values, table.schema, table.schema, table.context)
    return change_rows(table, prepare(table), Update(predicate, assignments), properties, command="update")


def merge(table: IcebergTable, merge: MergeBuilder) -> Done:
    """Do a merge, here or, for the rows of a DataFrame, in Spark."""
    if is_spark(merge.rows):
        done: Done = bridge.merge(table, merge)
        return done
    return change_rows(table, prepare(table), merge._change(), dict(merge.properties), command="merge")


def by_predicate(table: IcebergTable, where: str | Expr) -> ByPredicate:
    """The removal of the rows that match."""
    if not isinstance(where, Expr):
        bind_text(where, table.schema, table.context)  # an error in it is said before anything is written
    return ByPredicate(where, table.schema, table.context)


def prepare_for(table: IcebergTable, data: Any) -> tuple[WriteJob, Any]:
    """All that writing these rows needs; hot keys that are to be found are chosen by them."""
    now, data = choose_for(table, data if is_spark(data) else as_arrow(data))
    return prepare(replace(table, table=now)), data


def prepare(table: IcebergTable, *, files: Sequence[LiveFile] | None = None) -> WriteJob:
    """All that writing needs to know of a table; sidecars and the coarse spec are made when they are not there yet."""
    file_format(table.table.metadata.properties)
    check_format_version(table.table.metadata)
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
    if is_spark(data):
        files: list[WrittenFile] = bridge.write(job, data)
        return files
    names = check_schema(data.schema, job.layout.schema)
    if isinstance(data, pa.Table):
        with progress(f"writing {Counted(data.num_rows, None, 'row')}"):
            return write_rows(job, [in_order(data, names)])
    read = Count(None, "row")
    with progress("reading and writing", read):
        batches = read.each(data, lambda batch: batch.num_rows)
        return write_rows(job, (in_order(pa.table(batch), names) for batch in batches))


def commit_written(table: IcebergTable, change: Change, written: Sequence[WrittenFile]) -> Published:
    """Commit a change that was planned on a version of a table.

    What was written for it is removed, unless it took place or may have.
    """
    with undone_on_failure(lambda: discard(table.sources.io, written)):
        return commit(table.table, table.sources, change)


def replace_files(
    base: IcebergTable,
    job: WriteJob,
    removed: frozenset[str],
    written: Sequence[WrittenFile],
    rows: Mapping[str, int],
    command: str,
    properties: Mapping[str, str],
) -> Done:
    """Put files in the place of others: the end of a statement whose rows Spark computed.

    `Overtaken` when others have changed the table since: the rows were computed without that.
    """
    change = Change(
        "overwrite",
        written,
        removed,
        base.version.snapshot_id,
        touches=_reads_other_files(base, job, all_files, command),
        properties=properties,
    )
    return _done(commit_written(base, change, written), **rows)


def mark_rows(
    base: IcebergTable,
    job: WriteJob,
    marked: Mapping[str, Places],
    files: Sequence[WrittenFile],
    rows: Mapping[str, int],
    command: str,
    properties: Mapping[str, str],
) -> Done:
    """Say that rows of files are gone, and add files: the end of a statement whose rows Spark computed."""
    reader = Reader(base.version, base.sources.io, base.context.timezone)
    tasks = [task for task in base.plan().files if task.path in marked]
    with undone_on_failure(lambda: discard(job.io, files)):
        deletes = write_position_deletes(job, reader, [(task, marked[task.path]) for task in tasks])
    change = Change(
        "overwrite" if files else "delete",
        [*files, *deletes],
        base=base.version.snapshot_id,
        marked=frozenset(marked),
        touches=_reads_other_files(base, job, all_files, command),
        properties=properties,
    )
    return _done(commit_written(base, change, change.added), **rows)


def _bytes_per_row(metadata: TableMetadata) -> float | None:
    """What a row takes in the table's files so far."""
    head = metadata.current_snapshot()
    summary = {} if head is None or head.summary is None else head.summary.additional_properties
    rows, size = int(summary.get("total-records", 0)), int(summary.get("total-files-size", 0))
    return size / rows if rows > 1_000 and size else None
