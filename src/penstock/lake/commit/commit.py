"""Commits: one snapshot, published through the catalog or not at all, and again when another writer was faster.

What was written is kept over all attempts. A change that takes files away says on which snapshot it was planned. When
others have committed since, it is still good if the files are still there and nobody added what it would have had to
look at; else `Overtaken` is raised, and the operation plans again.

A micro-batch of a stream is committed once, whoever runs its query and however often: every attempt looks first whether
the table has it, because the writer that was faster may have been another run of the same query.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain, repeat
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from penstock.errors import CLIENT_ERRORS, ConflictError, LakeError, PenstockError
from penstock.lake.commit.snapshot import Change, Draft
from penstock.storage.redaction import one_line
from penstock.tables.iceberg.scan.scan_plan import Sources

if TYPE_CHECKING:
    from pyiceberg.table import Table
    from pyiceberg.table.update import TableRequirement, TableUpdate

T = TypeVar("T")
_ATTEMPTS, _LONGEST_WAIT = 60, 2.0
_DATA, _DELETES = 0, 1


class Overtaken(Exception):
    """Another writer changed what this change was planned on."""


class AlreadyCommitted(Exception):
    """The table has the micro-batch, or a later one of its query, by another commit."""


def commit(table: Table, sources: Sources, change: Change) -> Table:
    """Publish a change; the table as PyIceberg has it afterwards."""
    from pyiceberg.exceptions import CommitFailedException

    if any(file.spec_id not in change.applied(table.metadata).specs() for file in change.added):
        table = fresh(table)  # the spec of shared files was added after this version
    draft = Draft(table, sources, change)

    def publish(table: Table) -> Table:
        try:
            if change.looks_back:
                _check(table, draft, change)
            return _publish(table, draft, change)
        except UnknownOutcomeError:
            raise
        except (PenstockError, OSError) as error:
            if has_moved_on(table, fresh(table)):  # the snapshot has expired, and its files are gone
                raise CommitFailedException(str(error)) from error
            raise

    failure = f"{_ATTEMPTS} attempts to commit to {{}} were overtaken by other writers"
    hint = "nothing was changed; write larger commits less often, or try again"
    try:
        published = commit_metadata(table, publish, failure, hint)
    except UnknownOutcomeError:
        raise
    except Exception:  # not an interruption: then it may have taken place
        draft.clean(published=False)
        raise
    draft.clean(published=True)
    return published


def commit_metadata(table: Table, publish: Callable[[Table], T], failure: str, hint: str = "try again") -> T:
    """What `publish` gives for the table, and for its newest version again while other writers are faster.

    The waits between the attempts grow, and no two writers wait alike. `{}` in the failure is the name of the table.
    """
    from pyiceberg.exceptions import CommitFailedException
    from tenacity import RetryError, Retrying, retry_if_exception_type, stop_after_attempt, wait_random_exponential

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


class UnknownOutcomeError(LakeError):
    """The catalog did not say whether it took a commit: nothing that was written may be removed."""


def update(
    table: Table,
    requirements: Sequence[TableRequirement],
    updates: Sequence[TableUpdate],
    overtaken: tuple[type[Exception], ...] = (),
) -> Table:
    """Send updates to the catalog; the table afterwards. A catalog that is only busy counts as overtaken."""
    from pyiceberg.exceptions import CommitFailedException
    from pyiceberg.table import Table

    try:
        response = table.catalog.commit_table(table, tuple(requirements), tuple(updates))
    except CLIENT_ERRORS as error:
        is_busy = type(error).__name__ == "OperationalError" and "locked" in str(error)
        if is_busy or isinstance(error, overtaken):
            raise CommitFailedException(str(error)) from error
        raise
    return Table(table.name(), response.metadata, response.metadata_location, table.io, table.catalog)


def fresh(table: Table) -> Table:
    """The table as the catalog has it now."""
    return table.catalog.load_table(table.name())


def has_moved_on(table: Table, newest: Table) -> bool:
    """Whether a table has another snapshot now: files of the one before may be gone."""
    return bool(newest.metadata.current_snapshot_id != table.metadata.current_snapshot_id)


def _publish(table: Table, draft: Draft, change: Change) -> Table:
    from pyiceberg.exceptions import CommitFailedException
    from pyiceberg.table.refs import MAIN_BRANCH, SnapshotRefType
    from pyiceberg.table.update import (
        AddSnapshotUpdate,
        AssertRefSnapshotId,
        AssertTableUUID,
        SetPropertiesUpdate,
        SetSnapshotRefUpdate,
    )

    batch = change.batch
    if batch is not None and batch.is_in(table.metadata):
        if table.metadata.snapshot_by_id(draft.snapshot_id) is None:
            raise AlreadyCommitted
        return table  # a commit that was said to have failed took place
    head = table.metadata.current_snapshot()
    snapshot = draft.write(change.applied(table.metadata))
    ref = {"snapshot_id": snapshot.snapshot_id, "ref_name": MAIN_BRANCH, "type": SnapshotRefType.BRANCH}
    kept = () if batch is None else (SetPropertiesUpdate(updates=batch.properties),)
    updates = (
        *change.updates,
        AddSnapshotUpdate(snapshot=snapshot),
        SetSnapshotRefUpdate.model_validate(ref),
        *kept,
    )
    requirements = (
        AssertTableUUID(uuid=table.metadata.table_uuid),
        AssertRefSnapshotId(ref=MAIN_BRANCH, snapshot_id=None if head is None else head.snapshot_id),  # type: ignore[call-arg]
    )
    try:
        return update(table, requirements, updates)
    except CommitFailedException:
        raise
    except CLIENT_ERRORS as error:
        return _ask(table, snapshot.snapshot_id, error)


def _ask(table: Table, snapshot_id: int, error: Exception) -> Table:
    """The table, if the catalog has the snapshot although its answer was an error."""
    try:
        now = fresh(table)
        if now.metadata.snapshot_by_id(snapshot_id) is not None:
            return now
    except CLIENT_ERRORS:  # then it is not known
        now = None
    message = f"the catalog did not take the commit: {one_line(error)}"
    hint = "look whether the rows are there before you write them again; `sweep` removes files that no snapshot has"
    raise UnknownOutcomeError(message, hint=hint) from error


def _check(table: Table, draft: Draft, change: Change) -> None:
    """Whether a removal still holds, though others may have committed since it was planned."""
    metadata = table.metadata
    head = metadata.current_snapshot()
    if (None if head is None else head.snapshot_id) == change.base:
        return
    base = None if change.base is None else metadata.snapshot_by_id(change.base)
    if base is None and change.base is not None:
        raise Overtaken  # it has expired
    known = {m.manifest_path for m in draft.of(base)}
    now = draft.of(head)
    if any(int(m.content) == _DELETES and m.manifest_path not in known for m in now):
        raise Overtaken  # rows that were rewritten may have been deleted meanwhile
    live = pa.concat_arrays([pa.array([], pa.string()), *(draft.paths(m) for m in now if int(m.content) == _DATA)])
    removed = pa.array(sorted(change.removed), pa.string())
    if len(removed) and not pc.all(pc.is_in(removed, value_set=live)).as_py():
        raise Overtaken
    if change.touches is not None and change.touches(table):
        raise Overtaken
