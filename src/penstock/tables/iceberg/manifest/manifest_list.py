"""The manifests of a snapshot, and what their summaries say: the range of each partition field over all their files.

A summary without bounds says that all values are NULL or NaN, if it says that there are any such; one that claims to
have neither, or lacks one of its bounds, says nothing. Manifest lists are immutable and kept between plans.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from threading import Lock
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from cachetools import LRUCache, cachedmethod
from pyiceberg.io import FileIO
from pyiceberg.manifest import (
    DEFAULT_READ_VERSION,
    MANIFEST_LIST_FILE_SCHEMAS,
    ManifestContent,
    ManifestFile,
    PartitionFieldSummary,
)

from penstock.errors import LakeError
from penstock.expr.types import is_float
from penstock.formats.avro_container import read_header
from penstock.prune.containers import Containers
from penstock.prune.facts import Bounds, Fact
from penstock.storage.storage import clear_read_errors
from penstock.tables.iceberg.manifest.bounds import decode_bounds
from penstock.tables.iceberg.manifest.entrywise import read_records
from penstock.tables.iceberg.metadata.version import Spec, SpecField

if TYPE_CHECKING:
    from pyiceberg.table.snapshots import Snapshot

_MOST = 64
_SCHEMA = MANIFEST_LIST_FILE_SCHEMAS[DEFAULT_READ_VERSION]
_NUMBERS = (
    *("manifest_length", "partition_spec_id", "sequence_number", "min_sequence_number", "added_snapshot_id"),
    *(f"{what}_{of}_count" for what in ("added", "existing", "deleted") for of in ("files", "rows")),
)


class ManifestLists:
    """Manifest lists by their place; the ones used longest ago go first."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._kept: LRUCache[str, tuple[ManifestFile, ...]] = LRUCache(_MOST)
        self._judged: LRUCache[Any, tuple[Sequence[ManifestFile], Containers]] = LRUCache(_MOST)

    def of(self, snapshot: Snapshot | None, io: FileIO) -> tuple[ManifestFile, ...]:
        """The manifests of a snapshot; none for a table that has no snapshot."""
        return () if snapshot is None else self._read(snapshot.manifest_list, io)

    def containers(self, manifests: Sequence[ManifestFile], spec: Spec) -> Containers:
        """Manifests of one spec with what their summaries say, made once for a list and a spec."""
        return self._judge(manifests, spec)[1]

    @cachedmethod(attrgetter("_kept"), key=lambda _, place, io: place, lock=attrgetter("_lock"))
    def _read(self, place: str, io: FileIO) -> tuple[ManifestFile, ...]:
        hint = "the table's metadata is damaged or was cleaned up; open an older snapshot, or restore the file"
        with clear_read_errors(f"the manifest list {place}", hint):
            with io.new_input(place).open() as file:
                data = file.read()
            types, enums = {-1: ManifestFile, 508: PartitionFieldSummary}, {517: ManifestContent}
            # Not by PyIceberg's compiled decoder, which reads on behind the end of a damaged block.
            _, records = read_records(read_header(data), data, schema=_SCHEMA, types=types, enums=enums)
        manifests: tuple[ManifestFile, ...] = tuple(records)
        for manifest in manifests:
            numbers = {name: getattr(manifest, name) for name in _NUMBERS}
            wrong = next((name for name, n in numbers.items() if n is not None and not -(2**63) <= n < 2**63), None)
            if wrong is not None:
                message = f"the manifest list {place} says of {manifest.manifest_path} a {wrong} of more than 64 bits"
                raise LakeError(message, hint=hint)
        return manifests

    @cachedmethod(
        attrgetter("_judged"), key=lambda _, manifests, spec: (spec, *map(id, manifests)), lock=attrgetter("_lock")
    )
    def _judge(self, manifests: Sequence[ManifestFile], spec: Spec) -> tuple[Sequence[ManifestFile], Containers]:
        """The manifests are kept beside, so that no other object gets their ids."""
        # A list that counts no rows in a manifest with files does not count them: only without files it is empty.
        rows = pa.array([0 if files_in(m) == 0 else rows_in(m) or None for m in manifests], pa.int64())
        facts = summary_facts(manifests, spec)
        return manifests, Containers(len(manifests), facts, rows=rows, spec_id=spec.spec_id)


def files_in(manifest: ManifestFile) -> int | None:
    """The live files of a manifest, where it says them."""
    added, existing = manifest.added_files_count, manifest.existing_files_count
    return None if added is None or existing is None else added + existing


def rows_in(manifest: ManifestFile) -> int | None:
    """The live rows of a manifest, where it says them."""
    added, existing = manifest.added_rows_count, manifest.existing_rows_count
    return None if added is None or existing is None else added + existing


def summary_facts(manifests: Sequence[ManifestFile], spec: Spec) -> list[Fact]:
    """The summaries of manifests of one spec as facts."""
    return [fact for field in spec.fields if (fact := _summary(manifests, field)) is not None]


def _summary(manifests: Sequence[ManifestFile], field: SpecField) -> Bounds | None:
    if field.term is None or field.type is None or field.kind is None:
        return None
    place = slice(field.position, field.position + 1)  # some lists have no summaries, or not of all fields
    summaries = [next(iter((manifest.partitions or [])[place]), None) for manifest in manifests]
    lower = pa.array([None if s is None else s.lower_bound for s in summaries], pa.binary())
    upper = pa.array([None if s is None else s.upper_bound for s in summaries], pa.binary())
    counts = zip(*(_counts(s, is_float(field.type)) for s in summaries), strict=True)
    nulls, nans, values = (pa.array(column, pa.int64()) for column in counts)
    ends = (decode_bounds(lower, field.kind), decode_bounds(upper, field.kind))
    return Bounds(field.term, *ends, nulls, nans, values, label="partitions of the manifest")


def _counts(summary: PartitionFieldSummary | None, has_nan: bool) -> tuple[int | None, int | None, int | None]:
    """Counts of NULL, of NaN and of both, 1 standing for some; both are all there is where there are no bounds."""
    if summary is None or summary.contains_null is None:
        return None, None, None
    nulls, nans = int(summary.contains_null), int(has_nan and summary.contains_nan is not False)
    says_some = summary.contains_null or summary.contains_nan
    only_these = says_some and summary.lower_bound is None and summary.upper_bound is None
    return nulls, nans, nulls + nans if only_these else None
