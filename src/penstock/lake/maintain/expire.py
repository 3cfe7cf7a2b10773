"""Old snapshots are removed, and then the files that only they needed.

A snapshot stays when it is young enough, when a tag or a branch points to it, or when a branch needs it: the newest
`keep_last` of each branch, and those that the branch's own settings ask for. The metadata is committed first. From then
on nobody finds the files any more; what a crash leaves of them is found by `sweep`.

A file outside of the table's own folders was adopted and is not its own: it stays, and so does one that another table
or a declared layout of the lake needs.

A catalog that removes a snapshot removes the tags and branches that point to it as well. Iceberg's requirements for a
commit name refs one by one, and cannot say that there are no others. PyIceberg checks requirements itself for all
catalogs but REST: there, a requirement of our own can. After a commit to a REST catalog it is checked what it removed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta

from pydantic import Field
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.serializers import FromInputFile
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.refs import SnapshotRefType
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.table.update import (
    AssertRefSnapshotId,
    AssertTableUUID,
    RemovePartitionStatisticsUpdate,
    RemoveSnapshotsUpdate,
    TableUpdate,
)

from penstock.errors import CLIENT_ERRORS, LakeError, PenstockError
from penstock.lake.commit.commit import UnknownOutcomeError, commit_metadata, fresh, property_updates, update
from penstock.lake.commit.once import forgotten_runs
from penstock.lake.maintain.unneeded_files import (
    File,
    check_collectable,
    described,
    files_of,
    manifests_of,
    others_of,
    remove_files,
)
from penstock.progress import counted
from penstock.quantities import Age, moment
from penstock.storage.path_names import Names
from penstock.storage.redaction import one_line
from penstock.tables.iceberg.metadata.branch import ancestors
from penstock.tables.iceberg.scan.scan_plan import Sources


@dataclass(frozen=True)
class Expired:
    """What was removed."""

    snapshots: int
    files: int
    bytes: int

    def to_dict(self) -> dict[str, int]:
        """For machines."""
        return asdict(self)

    def __str__(self) -> str:
        gone = f"{counted(self.snapshots, 'snapshot')} and {counted(self.files, 'file')}"
        return f"removed {gone}, {counted(self.bytes, 'byte')}"


def expire(
    table: Table, sources: Sources, layouts: Mapping[str, str], older_than: Age, keep_last: int
) -> tuple[Table, Expired]:
    """Remove old snapshots and their files; PyIceberg's table afterwards, and what was removed.

    `layouts` are the roots of the lake's declared layouts, by name.
    """
    if isinstance(keep_last, bool) or not isinstance(keep_last, int) or keep_last < 1:
        raise LakeError(f"keep_last is {keep_last!r}", hint="give 1 or more: the current snapshot always stays")
    now = datetime.now(UTC)
    before = moment(older_than, now)
    names = Names()
    check_collectable(table)
    if not removable(table.metadata, now, before, keep_last):
        return table, Expired(0, 0, 0)
    others = others_of(table, layouts, names)  # one that cannot be known is an error before anything is removed
    base, published, gone = _commit(table, now, before, keep_last)
    try:
        unneeded = _unneeded(gone, base.metadata, published.metadata, sources, names)
        doomed = others.removable(unneeded, published)
    except PenstockError as error:
        message = f"{len(gone):,} snapshots were removed, but no file was: {error.message}"
        raise LakeError(message, hint="`sweep` removes the files that no snapshot has") from error
    sizes = remove_files(sources.io, doomed)
    return published, Expired(len(gone), len(sizes), sum(sizes))


def _commit(table: Table, now: datetime, before: datetime, keep_last: int) -> tuple[Table, Table, list[Snapshot]]:
    """The table before and after, and the snapshots that went; no ref may have moved since they were chosen."""

    def publish(table: Table) -> tuple[Table, Table, list[Snapshot]]:
        metadata = table.metadata
        check_collectable(table)
        gone = removable(metadata, now, before, keep_last)
        if not gone:
            return table, table, []
        ids = [snapshot.snapshot_id for snapshot in gone]
        refs = {**{ref: r.snapshot_id for ref, r in metadata.refs.items()}, "main": metadata.current_snapshot_id}
        requirements = [AssertNoOtherRefs(uuid=metadata.table_uuid, refs=frozenset(refs))]
        requirements += [AssertRefSnapshotId(ref=ref, snapshot_id=i) for ref, i in refs.items()]  # type: ignore[call-arg,misc]
        updates: list[TableUpdate] = [RemovePartitionStatisticsUpdate.model_validate({"snapshot-id": s.snapshot_id})
                              for s in metadata.partition_statistics if s.snapshot_id in ids]  # fmt: skip
        updates.append(RemoveSnapshotsUpdate(snapshot_ids=ids))  # type: ignore[call-arg]
        updates += property_updates(metadata, {}, forgotten_runs(metadata, gone))
        try:
            published = update(table, requirements, updates, (ValueError,))  # somebody else removed one of them
            _check_refs(table, published, ids)
            return table, published, gone
        except (CommitFailedException, PenstockError):
            raise
        except CLIENT_ERRORS as error:
            message = f"the catalog did not take the commit: {one_line(error)}"
            hint = "no file was deleted; try again, and `sweep` removes what no snapshot has"
            raise UnknownOutcomeError(message, hint=hint) from error

    failure = "snapshots of {} could not be removed: other writers were faster"
    return commit_metadata(fresh(table), publish, failure)


def removable(metadata: TableMetadata, now: datetime, before: datetime, keep_last: int) -> list[Snapshot]:
    """The snapshots that are older and that nothing holds."""
    limit = before.timestamp() * 1000
    held = {metadata.current_snapshot_id, *(ref.snapshot_id for ref in metadata.refs.values())}
    branches = [(ref.snapshot_id, ref.min_snapshots_to_keep or 1, ref.max_snapshot_age_ms)
                for ref in metadata.refs.values() if ref.snapshot_ref_type == SnapshotRefType.BRANCH]  # fmt: skip
    for head, fewest, age in [*branches, (metadata.current_snapshot_id, 1, None)]:
        young = limit if age is None else (now - timedelta(milliseconds=age)).timestamp() * 1000
        for i, snapshot in enumerate(ancestors(metadata, head)):
            if i < max(keep_last, fewest) or snapshot.timestamp_ms >= young:
                held.add(snapshot.snapshot_id)
    return [s for s in metadata.snapshots if s.timestamp_ms < limit and s.snapshot_id not in held]


class AssertNoOtherRefs(AssertTableUUID):
    """The table has no tag or branch but these; to a REST catalog it is the requirement of the table's id."""

    refs: frozenset[str] = Field(exclude=True)

    def validate(self, base_metadata: TableMetadata | None) -> None:  # type: ignore[override]
        super().validate(base_metadata)
        assert base_metadata is not None  # or it has raised
        new = sorted(set(base_metadata.refs) - self.refs)
        if new:
            raise CommitFailedException(f"{new[0]} was created concurrently")


def _check_refs(before: Table, after: Table, removed: Collection[int]) -> None:
    """An error when a commit on top of another one removed tags or branches that it did not know."""
    log = after.metadata.metadata_log
    if not log or log[-1].metadata_file == before.metadata_location:
        return
    path = log[-1].metadata_file
    try:
        known = FromInputFile.table_metadata(after.io.new_input(path)).refs
    except CLIENT_ERRORS as error:
        done = f"{len(removed):,} snapshots were removed, but no file was"
        message = f"{done}: {path} cannot be read, and may have new tags"
        raise LakeError(message, hint="`sweep` removes the files that no snapshot has") from error
    lost = sorted(name for name, ref in known.items() if ref.snapshot_id in removed)
    if lost:
        message = f"{lost[0]} was created while its snapshot was removed; no file was removed"
        raise LakeError(message, hint=f"restore it from the metadata before: {path}")


def _unneeded(
    gone: Sequence[Snapshot], before: TableMetadata, after: TableMetadata, sources: Sources, names: Names
) -> dict[str, File]:
    """Files of removed snapshots that no other needs; manifests that stay are not looked into for them."""
    staying = manifests_of(after.snapshots, sources)
    leaving = [m for path, m in manifests_of(gone, sources).items() if path not in staying]
    files = {**files_of(leaving, sources, names), **described(before, gone, names)}
    needed = {**files_of(staying.values(), sources, names), **described(after, after.snapshots, names)}
    return {name: file for name, file in files.items() if name not in needed}
