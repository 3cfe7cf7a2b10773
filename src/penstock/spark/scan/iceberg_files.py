"""The files of one relation over an Iceberg table: Spark's filters, the table's plan, and the files that are its share.

A version of a table never changes, so plans are kept: the relations of one scan (one for each set of partition columns,
one for files with deletes) ask the same question, and it is answered once. Files travel as columns; no object is made
for one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from operator import attrgetter
from threading import Lock
from typing import Any

import numpy as np
import pyarrow as pa
from cachetools import LRUCache, cached, cachedmethod

from penstock.errors import LakeError, PenstockError
from penstock.formats.file_format import IcebergFormat
from penstock.formats.iceberg_orc import ICEBERG_ORC
from penstock.prune.facts import Exact
from penstock.prune.judge import Judgement
from penstock.prune.plan import Plan
from penstock.spark.scan.footers import Footers
from penstock.spark.scan.iceberg_by_name import OldTimes
from penstock.spark.scan.iceberg_columns import Shape
from penstock.spark.scan.iceberg_deletes import LiveDeletes, deleted_positions, deletes_listed
from penstock.spark.scan.iceberg_footers import Footer, ids_in, read_footer
from penstock.spark.scan.iceberg_formats import KnownFormats, in_format
from penstock.spark.scan.iceberg_names import ABSENT, DELETED, LISTED
from penstock.spark.scan.iceberg_nan import columns_without_nan
from penstock.spark.scan.iceberg_partition import PartitionColumns
from penstock.spark.scan.iceberg_shredded import MapClass
from penstock.spark.scan.iceberg_storage import Places, spark_path
from penstock.spark.scan.planner import as_answer, by_partition, plain_values, summary_of
from penstock.spark.scan.translate import translate
from penstock.tables.file_metadata import with_metadata
from penstock.tables.iceberg.iceberg_table import IcebergTable
from penstock.tables.iceberg.scan.delete_files import Positions

_PLANS, _TABLES, _BITMAPS, _FOOTERS = 8, 32, 100_000, 1_000_000


def _as_a_set(memory: Memory, filters: Sequence[dict[str, Any]], also: OldTimes | None) -> tuple[str, bool]:
    return json.dumps(sorted(json.dumps(node, sort_keys=True) for node in filters)), also is None


class Memory:
    """What is kept of one version of a table between questions."""

    def __init__(self, table: IcebergTable, deletes: LiveDeletes) -> None:
        self.table = table
        self.mapping = table.version.metadata.name_mapping()
        self.numbers = {delete.path: delete.number for delete in deletes.equality}
        self.formats = KnownFormats(table)
        self.footers: Footers[str, Footer] = Footers(_FOOTERS)
        self._positions = Positions(table.sources.io)
        self._lock = Lock()
        self._plans: LRUCache[tuple[str, bool], Plan] = LRUCache(_PLANS)
        self._bitmaps: LRUCache[str, str | None] = LRUCache(_BITMAPS)

    @cachedmethod(attrgetter("_plans"), key=_as_a_set, lock=attrgetter("_lock"))
    def plan(self, filters: Sequence[dict[str, Any]], times: OldTimes | None) -> Plan:
        """The plan for filters on the table's columns, with the bounds of `times`."""
        table = self.table
        predicate = translate(filters, with_metadata(table.schema), table.context)
        also = () if times is None else tuple(column for column, _ in times.columns)
        return table.planned(predicate, also=also)

    @cachedmethod(attrgetter("_bitmaps"), key=lambda _, path, deletes: path, lock=attrgetter("_lock"))
    def deleted(self, path: str, deletes: Sequence[Any]) -> str | None:
        """The positions of a file that are gone."""
        return deleted_positions(self._positions.of(path, deletes), path)


def _version(table: IcebergTable, deletes: LiveDeletes) -> tuple[Any, ...]:
    return table.key, table.context.timezone, tuple(sorted(table.table.io.properties.items()))


@cached(LRUCache(_TABLES), key=_version, lock=Lock())
def memory_of(table: IcebergTable, deletes: LiveDeletes) -> Memory:
    """The memory of a version of a table, shared by all DataFrames over it that read with the same properties."""
    return Memory(table, deletes)


@dataclass(frozen=True)
class Branch:
    """The files that one relation reads: those of some specs, clean or with deletes, with field ids or without."""

    zone: str
    shape: Shape
    specs: frozenset[int]
    file_format: IcebergFormat
    dirty: bool | None  # None: the version has no deletes
    has_ids: bool | None  # None: it has no name mapping, so all files must
    hidden: tuple[str, ...]
    maps: MapClass | None  # None: the table has no sidecars
    partition: PartitionColumns | None  # None: nobody asks how files are partitioned
    times: OldTimes | None  # None: no files in ORC are read
    formats: frozenset[str]  # those that any branch reads
    refused: Mapping[str, LakeError] = field(compare=False)  # why others are not read
    places: Places = field(repr=False)
    memory: Memory = field(repr=False, compare=False)

    def roots(self) -> tuple[str, ...]:
        """Where the table's files lie."""
        return self.places.locations

    def answer(self, question: Mapping[str, Any]) -> dict[str, Any]:
        """The kept files by their partition values, the hidden ones included."""
        if self.shape.naming.by_id and not question["fieldIds"]:
            setting = self.file_format.spark_field_ids
            message = f"{setting} was turned off, and columns of Iceberg tables are read by field id"
            raise PenstockError(message, hint=f"spark.conf.set({setting!r}, 'true')")
        filters = self.shape.meanings.restore([*question["partition"], *question["data"]])
        _check_times(filters)
        plan = self.memory.plan(filters, self.times)
        self.memory.formats.check(plan.judgements, self.formats, self.refused)
        own = [judgement for judgement in plan.judgements if judgement.containers.spec_id in self.specs]
        keys: list[tuple[Any, ...]] = []
        files: list[tuple[Any, ...]] = []
        for judgement in own:
            self._add(judgement, keys, files)
        self.places.check(path for path, _, _ in files)
        summary = summary_of(plan.report, len(files))
        return as_answer(summary, by_partition(keys, files), columns_without_nan(self.shape, own))

    def _add(self, judgement: Judgement, keys: list[tuple[Any, ...]], files: list[tuple[Any, ...]]) -> None:
        kept = self._share(judgement)
        if not self.file_format.spark_row_index:
            _check_positions(judgement, kept, self.file_format)
        if self.times is not None and self.file_format is ICEBERG_ORC:
            self.times.check(judgement, kept)
        names, sizes = judgement.containers.names, judgement.containers.sizes
        assert names is not None
        assert sizes is not None
        paths = names.take(pa.array(kept)).to_pylist()
        footers = self._footers(paths)
        if footers is not None and self.has_ids is not None:
            chosen = [i for i, footer in enumerate(footers) if footer.has_ids == self.has_ids]
            kept, paths, footers = kept[chosen], [paths[i] for i in chosen], [footers[i] for i in chosen]
        if not paths:
            return
        values = [*self._values(judgement, kept), *self._hidden(judgement, kept, paths, footers)]
        if self.partition is not None:
            values += self.partition.values(judgement, kept)
        keys += zip(*values, strict=True) if values else [()] * len(paths)
        files += [(spark_path(p), n, 0) for p, n in zip(paths, sizes.take(pa.array(kept)).to_pylist(), strict=True)]

    def _share(self, judgement: Judgement) -> Any:
        """The kept files of its format that have deletes, or those that have none, of one kind of shredded maps."""
        kept = in_format(self.file_format, judgement, judgement.kept)
        if self.maps is not None:
            texts = judgement.containers.shredding
            assert texts is not None
            kept = kept[self.maps.chosen(texts.take(pa.array(kept)), self.memory.table.version.sidecars)]
        if self.dirty is None:
            return kept
        deletes = judgement.containers.deletes
        marked = np.isin(kept, np.fromiter(deletes, np.int64, len(deletes)))
        return kept[marked if self.dirty else ~marked]

    def _footers(self, paths: Sequence[str]) -> list[Footer] | None:
        if self.has_ids is None and ABSENT not in self.hidden:
            return None
        return self.memory.footers.of(paths, partial(read_footer, io=self.memory.table.sources.io))

    def _values(self, judgement: Judgement, kept: Any) -> list[list[Any]]:
        """The partition columns' values of each file."""
        facts = {fact.name: fact for fact in judgement.containers.facts if isinstance(fact, Exact)}
        assert judgement.containers.spec_id is not None
        spec = self.memory.table.version.specs[judgement.containers.spec_id]
        values = []
        for column in self.shape.fields:
            if column.field_id in self.shape.values:
                fact = facts.get(spec.identities[column.field_id].name)
                if fact is None:
                    raise LakeError(f"the partition values of {column.name} in spec {spec.spec_id} cannot be read")
                values.append(plain_values(fact.single_values(kept)[0]))
        return values

    def _hidden(
        self, judgement: Judgement, kept: Any, paths: Sequence[str], footers: Sequence[Footer] | None
    ) -> list[list[Any]]:
        deletes = [judgement.containers.deletes.get(i, ()) for i in kept.tolist()] if self.dirty else []
        columns: list[list[Any]] = []
        for name in self.hidden:
            if name == DELETED:
                columns.append([self.memory.deleted(p, d) for p, d in zip(paths, deletes, strict=True)])
            elif name == LISTED:
                columns.append([deletes_listed(d, self.memory.numbers) for d in deletes])
            else:
                columns.append([self._flags(footer) for footer in footers or ()])
        return columns

    def _flags(self, footer: Footer) -> int:
        """The fields with a default that a file does not have, a bit for each."""
        present = ids_in(footer, self.memory.mapping)
        return sum(1 << i for i, field_id in enumerate(self.shape.flagged) if field_id not in present)


def _check_positions(judgement: Judgement, kept: Any, file_format: IcebergFormat) -> None:
    for i in kept.tolist():
        if any(delete.kind != "equality" for delete in judgement.containers.deletes.get(i, ())):
            assert judgement.containers.names is not None
            path = judgement.containers.names[i]
            hint = "read the table with table.arrow(), or compact the table"
            message = f"{path} has rows deleted by position"
            raise LakeError(f"{message}, and Spark does not number the rows of {file_format.title}", hint=hint)


def _check_times(filters: Sequence[dict[str, Any]]) -> None:
    if '"file_modification_time"' in json.dumps(filters):
        message = (
            "Iceberg does not know when a file was changed, so _metadata.file_modification_time cannot be filtered"
        )
        raise LakeError(message, hint="filter by a column, or open the table at another snapshot")
