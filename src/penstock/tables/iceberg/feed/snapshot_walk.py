"""One walk over the snapshots that a stream has not read: the files that each brings, as many as a step may have."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
from pyiceberg.table.snapshots import Snapshot

from penstock.errors import LakeError
from penstock.expr.kernels.evaluate import unevaluable
from penstock.expr.tree import TRUE
from penstock.prune.facts import Exact
from penstock.prune.file_task import FileTask
from penstock.prune.judge import Pruner
from penstock.prune.plan import Plan
from penstock.stream.feed import Budget, Limit, Look, Work
from penstock.tables.iceberg.feed.snapshot_lineage import (
    Part,
    Standing,
    expired,
    is_next,
    lineage,
    snapshot_of,
    standing_after,
)
from penstock.tables.iceberg.iceberg_table import IcebergTable
from penstock.tables.iceberg.metadata.version import Version
from penstock.tables.iceberg.scan.scan_plan import plan_added, plan_files, removes_rows


class Walk:
    """One walk over snapshots: what it may take, and what it took."""

    def __init__(
        self, table: IcebergTable, pruner: Pruner, on_change: str, until: int | None, limit: Limit, last: Part | None
    ) -> None:
        self._table, self._metadata, self._pruner, self._on_change = table, table.table.metadata, pruner, on_change
        self._until, self._last = until, last
        self._budget = Budget(limit)
        self.work: list[Work] = []
        self.passed = 0
        self.look = Look()

    def go(self, standing: Standing) -> Standing:
        """Read on from where the stream stands, as far as allowed."""
        name, metadata = self._table.name, self._metadata
        if standing.part is not None:
            snapshot = snapshot_of(metadata, standing.part, name)
            until = None if self._last is None or self._last.snapshot != snapshot.snapshot_id else self._last.done
            standing = self._files(standing, snapshot, standing.part, until)
            if standing.part is not None or until is not None:
                return standing
        for snapshot in lineage(metadata, standing, self._until, name):
            if self._budget.is_spent:
                return standing
            after = self._snapshot(standing, snapshot)
            if after is None:
                return standing
            standing = after
            if standing.part is not None:
                return standing
        if self._last is not None:
            snapshot = snapshot_of(metadata, self._last, name)
            self._files(standing, snapshot, replace(self._last, done=""), self._last.done)
        return standing

    def _snapshot(self, standing: Standing, snapshot: Snapshot) -> Standing | None:
        """What one snapshot brings; None when it must wait for the next step."""
        self.passed += 1
        self.look = replace(self.look, snapshots=self.look.snapshots + 1)
        version, sources = self._version(snapshot), self._table.sources
        after = standing_after(snapshot, self._metadata)
        operation = None if snapshot.summary is None else str(snapshot.summary.operation.value)
        if operation == "replace":
            return after
        added = Part(snapshot.snapshot_id, full=False)
        if not removes_rows(version, sources):
            return self._files(standing, snapshot, added)
        changed = self._changed(snapshot, version)
        if changed is not None and not changed[0]:  # what it removes is no matter of this stream
            return self._files(standing, snapshot, added)
        match self._on_change:
            case "error":
                if self.work:
                    return None
                message = f"snapshot {snapshot.snapshot_id} of {self._table.name} ({operation}) changes or removes rows"
                hint = "set on_change to skip to pass over such snapshots, or to changes to get what they change"
                raise LakeError(message, hint=hint)
            case "changes":
                if changed is None:
                    raise expired(self._table.name, snapshot.parent_snapshot_id)
                gone, come = changed
                size = sum(task.size or 0 for task in (*gone, *come))
                if not self._budget.take([size]):
                    return None
                self.work.append(Work(self._checked(come), size, snapshot.snapshot_id, self._checked(gone)))
        return after

    def _changed(self, snapshot: Snapshot, version: Version) -> tuple[list[FileTask], list[FileTask]] | None:
        """The files that a snapshot takes and brings, as far as they may match; None when what was before expired."""
        parent = snapshot.parent_snapshot_id
        before = None if parent is None else self._metadata.snapshot_by_id(parent)
        if before is None and (parent is not None or not is_next(self._metadata, Standing(None), snapshot)):
            return None
        old, new = (plan_files(v, self._table.sources, self._pruner).files for v in (self._version(before), version))
        return _changed_files(old, new)

    def _files(self, standing: Standing, snapshot: Snapshot, part: Part, until: str | None = None) -> Standing:
        """The files of a snapshot after a path, as many as fit, or up to another path."""
        version, sources = self._version(snapshot), self._table.sources
        plan = (plan_files if part.full else plan_added)(version, sources, self._pruner)
        self._looked(plan)
        paths = np.array(plan.files.paths.to_pylist(), object)
        order = np.argsort(paths) if len(paths) else np.array([], np.int64)
        wanted = [paths[i] > part.done and (until is None or paths[i] <= until) for i in order]
        order = order[np.array(wanted, np.bool_)]
        sizes = plan.files.sizes.take(pa.array(order)).to_pylist()
        chosen = order[: self._budget.take(sizes)]
        for i, size in zip(chosen, sizes, strict=False):
            self.work.append(Work(self._checked([plan.files[int(i)]]), size, snapshot.snapshot_id))
        if len(chosen) == len(order):
            return standing_after(snapshot, self._metadata)
        self.look = replace(self.look, pending_files=len(order) - len(chosen))
        done = paths[chosen[-1]] if len(chosen) else part.done
        return replace(standing, part=replace(part, done=done))

    def _checked(self, tasks: Sequence[FileTask]) -> tuple[FileTask, ...]:
        """Files whose residual can be checked on their rows, or else is left to who reads them."""
        return tuple(replace(t, residual=TRUE) if unevaluable(t.residual) is not None else t for t in tasks)

    def _version(self, snapshot: Snapshot | None) -> Version:
        return Version(self._metadata, snapshot, self._metadata.schema())

    def _looked(self, plan: Plan) -> None:
        seen, kept = _partitions(plan)
        files = plan.report.files
        self.look = replace(
            self.look,
            partitions=self.look.partitions + seen,
            partitions_pruned=self.look.partitions_pruned + seen - kept,
            files=self.look.files + files.total,
            files_pruned=self.look.files_pruned + files.total - files.kept,
            manifests=self.look.manifests + plan.report.level("manifests").kept,
        )


def _partitions(plan: Plan) -> tuple[int, int]:
    """How many partitions there are among the files that were looked at, and among those that are kept.

    One that has files in several manifests is one; those of another spec are others.
    """
    seen: dict[pa.Schema, list[pa.Table]] = defaultdict(list)
    kept: dict[pa.Schema, list[pa.Table]] = defaultdict(list)
    for judgement in plan.judgements:
        facts = [f for f in judgement.containers.facts if isinstance(f, Exact) and f.name is not None]
        every = np.arange(judgement.containers.count)
        columns = [f.single_values(every)[0] for f in facts] or [pa.array(np.zeros(len(every), np.bool_))]
        table = pa.table(columns, names=[f"{i} {f.name}" for i, f in enumerate(facts)] or ["none"])
        seen[table.schema].append(_distinct(table))
        kept[table.schema].append(_distinct(table.take(pa.array(judgement.kept))))
    numbers = [sum(_distinct(pa.concat_tables(own)).num_rows for own in tables.values()) for tables in (seen, kept)]
    return numbers[0], numbers[1]


def _distinct(table: pa.Table) -> pa.Table:
    return table.group_by(table.column_names).aggregate([]).select(table.column_names)


def _changed_files(before: Iterable[FileTask], after: Iterable[FileTask]) -> tuple[list[FileTask], list[FileTask]]:
    """The files that only one of two plans has, or that have other deletes."""
    old, new = ({task.path: task for task in tasks} for tasks in (before, after))
    same = {path for path, task in old.items() if path in new and new[path].deletes == task.deletes}
    gone = [task for path, task in old.items() if path not in same]
    return gone, [task for path, task in new.items() if path not in same]
