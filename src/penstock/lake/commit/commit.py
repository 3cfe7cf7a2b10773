"""Commits: one snapshot, published through the catalog or not at all, and again when another writer was faster.

What was written is kept over all attempts. A change that takes files away says on which snapshot it was planned. When
others have committed since in a way that matters to it (`conflicts.py`), `Overtaken` is raised, and the operation plans
again (`replanned`).

A micro-batch of a stream, or a run of a job, is committed once, whoever does it and however often: every attempt looks
first whether the table has it (`once.py`), because the writer that was faster may have done the same.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain, count, repeat
from random import uniform
from typing import NamedTuple, TypeVar

from pyiceberg.exceptions import BadRequestError, CommitFailedException
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.table.update import (
    AddSnapshotUpdate,
    AssertTableUUID,
    RemovePropertiesUpdate,
    SetPropertiesUpdate,
    TableRequirement,
    TableUpdate,
)
from tenacity import RetryError, Retrying, retry_if_exception_type, stop_after_attempt, wait_random_exponential

from penstock.errors import CLIENT_ERRORS, ConflictError, LakeError, PenstockError
from penstock.lake.commit.column_requirements import columns_unchanged, same_columns
from penstock.lake.commit.conflicts import is_overtaken
from penstock.lake.commit.once import once_of
from penstock.lake.commit.ref_updates import move_ref, unmoved
from penstock.lake.commit.snapshot import Change, Draft
from penstock.storage.redaction import one_line
from penstock.tables.iceberg.iceberg_table import IcebergTable
from penstock.tables.iceberg.metadata.branch import branch_of, on_branch
from penstock.tables.iceberg.scan.scan_plan import Sources

T = TypeVar("T")
_ATTEMPTS, _LONGEST_WAIT = 60, 2.0
_PLANS = 60


class Overtaken(Exception):
    """Another writer changed what this change was planned on."""


class UnknownOutcomeError(LakeError):
    """The catalog did not say whether it took a commit: nothing that was written may be removed."""


class Published(NamedTuple):
    """A change that was committed: the table as PyIceberg has it afterwards, its snapshot, and how often it waited."""

    table: Table
    snapshot_id: int
    retries: int


def commit(table: Table, sources: Sources, change: Change) -> Published:
    """Publish a change."""
    base = table.metadata
    if any(file.spec_id not in change.applied(table.metadata).specs() for file in change.added):
        table = fresh(table)  # the spec of shared files was added after this version
        if any(file.spec_id not in change.applied(table.metadata).specs() for file in change.added):
            message = f"the partitioning of {'.'.join(table.name())} changed while rows were written"
            raise ConflictError(message, hint="nothing was written; write them again")
    draft, attempts, once = Draft(table, sources, change), count(), once_of(change.properties)

    def publish(table: Table) -> Table:
        next(attempts)
        if table.metadata.snapshot_by_id(draft.snapshot_id) is not None:
            return table  # a commit that was said to have failed took place
        if once is not None:
            once.check(table.metadata)  # before the rows are looked at: they are as this very commit has left them
        if change.updates and not same_columns(table.metadata, base):
            raise Overtaken
        try:
            if is_overtaken(table, sources, change):
                raise Overtaken
            return _publish(table, draft, change)
        except UnknownOutcomeError:
            raise
        except (PenstockError, OSError) as error:
            if has_moved_on(table, fresh(table)):  # the snapshot has expired, and its files are gone
                raise CommitFailedException(str(error)) from error
            raise

    failure = f"{_ATTEMPTS} attempts to commit to {{}} were overtaken by other writers"
    hint = "nothing was changed; write larger commits less often, or try again"
    with undone_on_failure(lambda: draft.clean(published=False)):
        published = commit_metadata(table, publish, failure, hint)
    draft.clean(published=True)
    return Published(published, draft.snapshot_id, next(attempts) - 1)


@contextmanager
def undone_on_failure(undo: Callable[[], None]) -> Iterator[None]:
    """What was done for a commit is undone when it is certain that it did not take place."""
    try:
        yield
    except UnknownOutcomeError:
        raise
    except Exception:  # not an interruption: then the commit may have taken place
        undo()
        raise


def commit_metadata(table: Table, publish: Callable[[Table], T], failure: str, hint: str = "try again") -> T:
    """What `publish` gives for the table, and for its newest version again while other writers are faster.

    The waits between the attempts grow, and no two writers wait alike. `{}` in the failure is the name of the table.
    """
    versions = chain([table], (fresh(table) for _ in repeat(None)))
    attempts = Retrying(
        retry=retry_if_exception_type(CommitFailedException),
        stop=stop_after_attempt(_ATTEMPTS),
        wait=wait_random_exponential(multiplier=0.02, max=_LONGEST_WAIT),
    )
    try:
        return attempts(lambda: publish(next(versions)))
    except RetryError:
        raise ConflictError(failure.format(".".join(table.name())), hint=hint) from None


def change_metadata(table: Table, needed: Callable[[TableMetadata], Sequence[TableUpdate]], failure: str) -> Table:
    """The newest version of a table with the updates that it needs, if any."""

    def publish(table: Table) -> Table:
        metadata, updates = table.metadata, needed(table.metadata)
        return update(table, columns_unchanged(metadata), updates) if updates else table

    return commit_metadata(fresh(table), publish, failure)


def property_updates(metadata: TableMetadata, new: Mapping[str, str], gone: Sequence[str]) -> list[TableUpdate]:
    """The updates that set some properties and remove others, as far as the table has them."""
    removals = [name for name in gone if name in metadata.properties and name not in new]
    updates: list[TableUpdate] = [RemovePropertiesUpdate(removals=removals)] if removals else []
    return [*updates, SetPropertiesUpdate(updates=dict(new))] if new else updates


def replanned(table: IcebergTable, work: Callable[[IcebergTable], T], hint: str = "try again") -> T:
    """What `work` gives for a version of a table, and for the newest one again when other writers overtook it."""
    for attempt in count():
        wait_for_others(table.name, attempt, hint)
        if attempt > 1:
            table = replace(table, table=fresh(table.table))
        try:
            return work(table)
        except Overtaken:
            newest = fresh(table.table)
        except (UnknownOutcomeError, ConflictError):
            raise
        except (PenstockError, OSError):
            newest = fresh(table.table)
            if not has_moved_on(table.table, newest):  # else files of a snapshot that expired are gone
                raise
        table = replace(table, table=newest)
    raise AssertionError  # attempts are counted by `wait_for_others`


def wait_for_others(name: str, attempt: int, hint: str) -> None:
    """Wait before an attempt to plan again: no two writers wait alike, so that one is done before the next begins."""
    if attempt >= _PLANS:
        raise ConflictError(f"{name} was changed by other writers during all of {_PLANS} attempts", hint=hint)
    if attempt > 1:
        time.sleep(uniform(0, min(_LONGEST_WAIT, 0.02 * 2**attempt)))


def update(
    table: Table,
    requirements: Sequence[TableRequirement],
    updates: Sequence[TableUpdate],
    overtaken: tuple[type[Exception], ...] = (),
) -> Table:
    """Send updates to the catalog; the table afterwards. A catalog that is only busy counts as overtaken."""
    try:
        response = table.catalog.commit_table(table, tuple(requirements), tuple(updates))
    except CLIENT_ERRORS as error:
        is_busy = type(error).__name__ == "OperationalError" and "locked" in str(error)
        if is_busy or isinstance(error, overtaken):
            raise CommitFailedException(str(error)) from error
        raise
    published = Table(table.name(), response.metadata, response.metadata_location, table.io, table.catalog)
    return on_branch(published, branch_of(table))


def fresh(table: Table) -> Table:
    """The table as the catalog has it now, on the same branch."""
    return on_branch(table.catalog.load_table(table.name()), branch_of(table))


def has_moved_on(table: Table, newest: Table) -> bool:
    """Whether a table has another snapshot now: files of the one before may be gone."""
    return bool(newest.metadata.current_snapshot_id != table.metadata.current_snapshot_id)


def _publish(table: Table, draft: Draft, change: Change) -> Table:
    once, branch = once_of(change.properties), branch_of(table)
    snapshot = draft.write(change.applied(table.metadata))
    updates = [
        *change.updates,
        AddSnapshotUpdate(snapshot=snapshot),
        move_ref(table.metadata, branch, snapshot.snapshot_id),
        *([] if once is None else property_updates(table.metadata, *once.properties(table.metadata, snapshot))),
    ]
    same = columns_unchanged(table.metadata) if change.updates else (AssertTableUUID(uuid=table.metadata.table_uuid),)
    try:
        return update(table, (*same, unmoved(table.metadata, branch)), updates)
    except CommitFailedException:
        raise
    except CLIENT_ERRORS as error:
        return _ask(table, snapshot, error)


def _ask(table: Table, snapshot: Snapshot, error: Exception) -> Table:
    """The table, if the catalog has the snapshot although its answer was an error."""
    try:
        now = fresh(table)
        if now.metadata.snapshot_by_id(snapshot.snapshot_id) is not None:
            return now
        if isinstance(error, ValueError | BadRequestError) and _is_stale(snapshot, now.metadata):
            raise CommitFailedException(str(error)) from error
    except CommitFailedException:
        raise
    except CLIENT_ERRORS:  # then it is not known
        now = None
    message = f"the catalog did not take the commit: {one_line(error)}"
    hint = "look whether the rows are there before you write them again; `sweep` removes files that no snapshot has"
    raise UnknownOutcomeError(message, hint=hint) from error


def _is_stale(snapshot: Snapshot, metadata: TableMetadata) -> bool:
    """Whether the catalog refused a snapshot since another branch was faster: numbers of snapshots only grow."""
    number = snapshot.sequence_number
    return number is not None and number <= getattr(metadata, "last_sequence_number", -1)  # version 1 does not count
