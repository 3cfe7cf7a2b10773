"""Whether a change that was planned on one snapshot still holds on a newer one.

| others have, since then, | it holds |
|---|---|
| removed a file that the change removes too, or of which it marks rows | no |
| deleted rows of such a file by delete files | no |
| rolled the table back, or expired the snapshot | no |
| added, removed or changed files that the change has read | not with serializable isolation |
| done anything else | yes |

Files are compared together with the delete files that apply to them. So two changes that mark rows of one file overtake
each other, even if the rows differ: which rows the other one marked is not looked up.
"""

from __future__ import annotations

from collections.abc import Set

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Snapshot

from penstock.expr.kernels.physical import mask_of
from penstock.lake.commit.snapshot import Change
from penstock.tables.iceberg.metadata.branch import ancestors
from penstock.tables.iceberg.metadata.version import Version
from penstock.tables.iceberg.scan.delete_files import Deletes
from penstock.tables.iceberg.scan.scan_plan import Sources, data_batches, delete_batches

FileState = tuple[str, frozenset[tuple[str, int | None]]]


def is_overtaken(table: Table, sources: Sources, change: Change) -> bool:
    """Whether a change has to be planned again for this version of the table."""
    metadata, written = table.metadata, change.removed | change.marked
    head = metadata.current_snapshot()
    head_id = None if head is None else head.snapshot_id
    if head_id == change.base or not (written or change.dangling or change.touches is not None):
        return False
    base = next((each for each in ancestors(metadata, head_id) if each.snapshot_id == change.base), None)
    if base is None and change.base is not None:
        return True
    if written and _states(metadata, base, sources, written) != _states(metadata, head, sources, written):
        return True
    return change.touches is not None and change.touches(table)


def _states(metadata: TableMetadata, snapshot: Snapshot | None, sources: Sources, paths: Set[str]) -> set[FileState]:
    """Those of some files that a snapshot has, each with the delete files that apply to it."""
    version = Version(metadata, snapshot, metadata.schema())
    wanted, deletes = pa.array(sorted(paths), pa.string()), Deletes(delete_batches(version, sources))
    states = set[FileState]()
    for batch in data_batches(version, sources):
        names = batch.column("file_path")
        places = np.flatnonzero(mask_of(pc.is_in(names, value_set=wanted))).tolist()
        applied = deletes.of(batch, places)
        states |= {(names[i].as_py(), frozenset((d.path, d.offset) for d in applied.get(i, ()))) for i in places}
    return states
