"""Faults in what changes the rows of managed tables, and in their history."""

from __future__ import annotations

import dataclasses
import json
from functools import partial
from typing import Any

import numpy as np

from penstock.lake import history
from penstock.lake.maintain import compact
from penstock.lake.write import by_place, changed_files, merge, rewrite
from penstock.tables.iceberg.metadata.branch import ancestors
from tests.fuzz.fault import Fault

_Fault = partial(Fault, kinds=("managed",), writes=True)


def _any_row(chosen: Any) -> Any:
    return lambda clause, rows, zone: np.ones(rows.num_rows, np.bool_)


def _none_leaves(leaves: Any) -> Any:
    return lambda self, old, new: np.zeros(new.num_rows, np.bool_)


def _one_off(write: Any) -> Any:
    def wrong(job: Any, reader: Any, marked: Any) -> Any:
        return write(job, reader, [(task, places + 1) for task, places in marked])

    return wrong


def _tuple_left_out(write: Any) -> Any:
    """A shared file that is written again has the record of its rows but for one value."""

    def wrong(job: Any, runs: Any) -> Any:
        return [dataclasses.replace(file, record=_without_last(file.record)) for file in write(job, runs)]

    return wrong


def _without_last(record: Any) -> Any:
    if record.logical_partition_values is None:
        return record
    members = json.loads(record.logical_partition_values)
    if len(members["tuples"]) < 2:
        return record
    members |= {"tuples": members["tuples"][:-1], "rows": members["rows"][:-1]}
    return record._replace(logical_partition_values=json.dumps(members))


def _one_before(move: Any) -> Any:
    """The snapshot before the one that is meant, where there is one."""

    def wrong(table: Any, branch: str, target: Any) -> Any:
        def parent(metadata: Any) -> Any:
            lineage = [snapshot.snapshot_id for snapshot in ancestors(metadata, target(metadata))]
            return lineage[:2][-1]

        return move(table, branch, parent)

    return wrong


def _without_deletes(unfiltered: Any) -> Any:
    return lambda task: dataclasses.replace(unfiltered(task), deletes=())


def _as_if_none_was_gone(effect: Any) -> Any:
    """The place of a row in its file is taken for its number among the rows that are left."""

    def wrong(self: Any, rows: Any, file: Any) -> Any:
        updates = (right := effect(self, rows, file)).updates
        if updates is None:
            return right
        return dataclasses.replace(right, updates=updates._replace(rows=np.sort(self.files[file.path].updated)))

    return wrong


ROW_FAULTS = (
    _Fault("the condition of a clause is dropped", merge, "_chosen", _any_row),
    _Fault("an updated row stays in its old partition", rewrite.Rewrite, "_leaves", _none_leaves),
    _Fault("position deletes are one off", changed_files, "write_position_deletes", _one_off),
    _Fault("a changed file has the record of other rows", rewrite, "write_slots", _tuple_left_out),
    _Fault("a rollback goes to the snapshot before", history, "_move", _one_before),
    _Fault("compaction ignores delete files", compact, "unfiltered", _without_deletes),
    _Fault("places in files count as rows", by_place.ByPlace, "effect", _as_if_none_was_gone),
)
