"""The relations of an Iceberg table: Spark's own Parquet reader over the files of a plan.

    relation (by field id) ─→ rows deleted by position ─→ the table's columns ─→ rows deleted by their values ─┐
    relation …                                                                                                 ├─ Union
    relation …                                                                                                 ┘

There is one relation for each set of identity partition columns among the specs of live files, the largest first,
since dynamic pruning looks at the first one's columns only; a value that is only in metadata is right, because the
value always comes from there. Files with deletes are relations of their own, as are files without field ids where the
table has a name mapping, and files whose sidecars say different things of their maps. A table with one spec, no
deletes and no such differences is one relation, without a Union.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import product
from typing import Any

from pyiceberg.types import NestedField
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructField

from penstock.errors import LakeError
from penstock.formats.file_format import IcebergFormat
from penstock.formats.iceberg_orc import ICEBERG_ORC
from penstock.spark.scan.iceberg_by_name import OldTimes, names_in_files
from penstock.spark.scan.iceberg_columns import Shape
from penstock.spark.scan.iceberg_connect import connect_dataframe
from penstock.spark.scan.iceberg_deletes import EqualityDelete, EqualityFiles, LiveDeletes, key_fields, live_deletes
from penstock.spark.scan.iceberg_files import Branch, Memory, memory_of
from penstock.spark.scan.iceberg_names import ABSENT, DELETED, LISTED, NUMBER, Naming, names_by_id, names_of_mapping
from penstock.spark.scan.iceberg_partition import PartitionColumns
from penstock.spark.scan.iceberg_shredded import map_classes, sidecar_columns
from penstock.spark.scan.iceberg_storage import Places, places_of
from penstock.spark.scan.planner import RelationFiles
from penstock.spark.scan.relation import FIELD_IDS, find_field_ids, relation
from penstock.spark.session.java_classes import call
from penstock.spark.session.session import gateway_of
from penstock.tables.iceberg.iceberg_table import IcebergTable
from penstock.tables.iceberg.manifest.manifest_list import files_in

# What Spark knows of each row's file in all formats: numbers of rows are of Parquet alone.
_METADATA = ("file_path", "file_name", "file_size", "file_block_start", "file_block_length", "file_modification_time")
Namings = list[tuple[Naming, bool | None]]
_SMALL = 64 << 20  # bytes of delete files that are broadcast without asking
_KEY, _GONE = "value of field ", "deleted value of field "


@dataclass(frozen=True)
class IcebergRelations:
    """How Spark reads one version of an Iceberg table."""

    table: IcebergTable

    def rows(self, spark: SparkSession, where: str | None) -> DataFrame:
        """All rows."""
        find_field_ids(spark)
        return Scan(self.table, spark, live_deletes(self.table.version, self.table.sources)).rows()

    def rows_with_partitions(self, spark: SparkSession) -> DataFrame:
        """All rows, and behind them the spec and the partition of the file of each."""
        find_field_ids(spark)
        deletes = live_deletes(self.table.version, self.table.sources)
        return Scan(self.table, spark, deletes, PartitionColumns.of(self.table.version)).rows()

    def planned_rows(self, spark: SparkSession, where: str) -> DataFrame:
        """The rows of the files that a filter needs, read by field id."""
        return connect_dataframe(self.table, spark, where)


@dataclass(frozen=True)
class Scan:
    """One version of a table in one session."""

    table: IcebergTable
    spark: SparkSession
    deletes: LiveDeletes
    partition: PartitionColumns | None = None  # columns that are shown behind those of the table

    @cached_property
    def places(self) -> Places:
        """Where files may lie."""
        return places_of(self.table, self.spark)

    def rows(self) -> DataFrame:
        """All rows of the table."""
        branches = list(self.branches())
        if len(branches) == 1:
            return self.part(branches[0], *self._more)
        parts = [self.part(branch, *self._more, *self._metadata) for branch in branches]
        union = reduce(lambda left, right: left.unionAll(right), parts)
        if not self._metadata:
            return union
        return self._hiding(union)

    def _hiding(self, union: DataFrame) -> DataFrame:
        """The same rows without their last column, which is found by those only who ask for it by name.

        Spark offers `_metadata` above a relation and above a projection, but not above a Union. So each part has it as
        its last column, and a projection on top hides it as Spark hides the keys of a join; nobody else pays for it.
        """
        sql = gateway_of(self.spark).jvm.org.apache.spark.sql
        project = sql.catalyst.plans.logical.Project
        plan = union._jdf.queryExecution().analyzed()
        rows = project(plan.output().init(), plan)
        rows.setTagValue(project.hiddenOutputTag(), plan.output().takeRight(1))
        return DataFrame(sql.classic.Dataset.ofRows(self.spark._jsparkSession, rows), self.spark)

    @cached_property
    def _more(self) -> list[Column]:
        """The columns that are shown behind those of the table."""
        return [] if self.partition is None else self.partition.shown()

    @cached_property
    def _metadata(self) -> tuple[Any, ...]:
        """What Spark knows of each row's file; nothing where the table has a column of that name.

        Under another id than the relation's own, or Spark 4.0 puts it once more into the first part of a Union.
        """
        taken = any(field.name.lower() == "_metadata" for field in self.table.version.columns.schema.fields)
        if taken:
            return ()
        if all(each.spark_row_index for each in self._formats[0]):
            return (F.col("_metadata").alias("_metadata"),)
        return (F.struct(*(F.col(f"_metadata.{name}") for name in _METADATA)).alias("_metadata"),)

    def branches(self) -> Iterator[Branch]:
        """The relations, those with the most partition columns first."""
        version, memory = self.table.version, self._memory
        maps = map_classes(self.table) or (None,)
        states = (False, True) if self.deletes else (None,)
        read, refused = self._formats
        names, times = frozenset(each.name for each in read), self._old_times
        for (values, specs), file_format in product(identity_groups(self.table), read):
            for (naming, has_ids), kind, dirty in product(read[file_format], maps, states):
                fields = tuple(version.columns.schema.fields)
                hidden = [DELETED] if dirty and self.deletes.positions and file_format.spark_row_index else []
                if dirty and self.deletes.equality:
                    hidden.append(LISTED)
                    fields += self._dropped_keys()
                shape = Shape(fields, naming, values, () if kind is None else sidecar_columns(version, kind.states))
                if shape.flagged:
                    hidden.append(ABSENT)
                yield Branch(
                    self.table.context.timezone, shape, specs, file_format, dirty, has_ids, tuple(hidden), kind,
                    self.partition, times, names, refused, self.places, memory,
                )  # fmt: skip

    @cached_property
    def _memory(self) -> Memory:
        return memory_of(self.table, self.deletes)

    @cached_property
    def _formats(self) -> tuple[dict[IcebergFormat, Namings], dict[str, LakeError]]:
        """The formats that are read, each with the ways of naming columns, and why others are not."""
        read, refused = {}, {}
        for file_format in self._memory.formats.formats():
            try:
                read[file_format] = self._namings(file_format)
            except LakeError as error:
                refused[file_format.name] = error
        return read, refused

    @cached_property
    def _old_times(self) -> OldTimes | None:
        return OldTimes.of(self.table.version) if ICEBERG_ORC in self._formats[0] else None

    def _namings(self, file_format: IcebergFormat) -> Namings:
        version, mapping = self.table.version, self._memory.mapping
        if not file_format.by_id:
            return [(names_in_files(version, file_format, (*version.stored.fields, *self._dropped_keys())), None)]
        by_id = names_by_id(version.metadata)
        return [(by_id, None)] if mapping is None else [(by_id, True), (names_of_mapping(mapping), False)]

    def _dropped_keys(self) -> tuple[NestedField, ...]:
        """The columns that equality deletes compare and that the table does not have any more."""
        present = {field.field_id for field in self.table.version.columns.schema.fields}
        ids = sorted({i for delete in self.deletes.equality for i in delete.ids} - present)
        return tuple(key_fields(ids, self.table.version))

    def part(self, branch: Branch, *more: Any) -> DataFrame:
        """The rows of one branch, as the table's columns, with more behind them."""
        more_of_files = () if self.partition is None else self.partition.hidden.fields
        rows = self._relation(self._key(branch), branch, branch.file_format, branch.shape, branch.hidden, more_of_files)
        if DELETED in branch.hidden:
            rows = rows.where(self._alive())
        shown = [self._shown(branch.shape, field) for field in self.table.version.columns.schema.fields]
        if LISTED not in branch.hidden:
            return rows.select(*shown, *more)
        return self._without_listed(rows, branch, [*shown, *more])

    def _key(self, branch: Branch) -> str:
        """What makes two relations the same to Spark."""
        kind = {None: "", False: " clean", True: " with deletes"}[branch.dirty]
        ids = "" if branch.has_ids is not False else " by name"
        maps = "" if branch.maps is None else f" sidecars {' '.join(state.name for state in branch.maps.states)}"
        by = "" if self.partition is None else " by file"
        return f"{self.table.key} specs {','.join(map(str, sorted(branch.specs)))}{kind}{ids}{maps}{by}"

    def _relation(
        self,
        key: str,
        source: RelationFiles,
        file_format: IcebergFormat,
        shape: Shape,
        hidden: tuple[str, ...],
        more: Iterable[StructField] = (),
    ) -> DataFrame:
        partitions = shape.partitions()
        for name in hidden:
            partitions = partitions.add(name, {ABSENT: "long", NUMBER: "integer"}.get(name, "binary"))
        for field in more:
            partitions = partitions.add(field)
        session = self.spark._jsparkSession
        of_files, data = (session.parseDataType(kind.json()) for kind in (partitions, shape.data()))
        options = self.places.options | (FIELD_IDS if shape.naming.by_id else {})
        return relation(self.spark, key, source, file_format, of_files, data, options)

    def _shown(self, shape: Shape, field: NestedField, name: str | None = None) -> Any:
        """A column as the table shows it, without what its name inside the relation says about it.

        One that is so already gets no alias: Spark removes those that say nothing, but not in the first part of a
        Union, and then two equal scans look different and are not reused.
        """
        shown: Any = shape.column(self.spark, field)
        if name is None and field.field_id in shape.values and shape.names(field)[0] == field.name:
            return shown
        return Column(getattr(shown._jc, "as")(name or field.name, self._no_metadata))

    @cached_property
    def _no_metadata(self) -> Any:
        return gateway_of(self.spark).jvm.org.apache.spark.sql.types.Metadata.empty()

    def _contains(self, bitmap: Any, number: Any) -> Any:
        return Column(call(gateway_of(self.spark), "Deleted", "contains", bitmap._jc, number._jc))

    def _alive(self) -> Any:
        return F.col(DELETED).isNull() | ~self._contains(F.col(DELETED), F.col("_metadata.row_index"))

    def _without_listed(self, rows: DataFrame, branch: Branch, shown: list[Any]) -> DataFrame:
        """The rows that no equality delete lists: an anti join for each set of columns that are compared."""
        groups = self.deletes.groups()
        used = sorted({i for ids, _ in groups for i in ids})
        fields = {field.field_id: field for field in branch.shape.fields}
        keys = [self._shown(branch.shape, fields[i], f"{_KEY}{i}") for i in used]
        remaining = rows.select(*shown, *keys, F.col(LISTED))
        for (ids, file_format), deletes in groups.items():
            match = self._contains(F.col(LISTED), F.col(NUMBER))
            for i in ids:
                match = match & F.col(f"{_KEY}{i}").eqNullSafe(F.col(f"{_GONE}{i}"))
            remaining = remaining.join(self._listed(ids, file_format, deletes), match, "left_anti")
        return remaining.drop(*(f"{_KEY}{i}" for i in used), LISTED)

    def _listed(self, ids: tuple[int, ...], file_format: IcebergFormat, deletes: list[EqualityDelete]) -> DataFrame:
        """The deleted keys of one set of columns, with the numbers of their files."""
        fields = key_fields(ids, self.table.version)
        version = self.table.version
        by_id = file_format.by_id
        naming = names_by_id(version.metadata) if by_id else names_in_files(version, file_format, fields)
        if file_format is ICEBERG_ORC and any(str(field.field_type) in ("date", "timestamptz") for field in fields):
            message = f"equality deletes of {version.metadata.location} in ORC list dates or times"
            raise LakeError(f"{message}, which Spark may read wrong", hint="read the table with table.arrow()")
        shape = Shape(tuple(fields), naming, frozenset())
        key = f"{self.table.key} equality deletes on {','.join(map(str, ids))}"
        rows = self._relation(key, EqualityFiles(tuple(deletes), self.places), file_format, shape, (NUMBER,))
        listed = rows.select(
            *(self._shown(shape, field, f"{_GONE}{field.field_id}") for field in fields), F.col(NUMBER)
        )
        return F.broadcast(listed) if sum(delete.size for delete in deletes) <= _SMALL else listed


def identity_groups(table: IcebergTable) -> list[tuple[frozenset[int], frozenset[int]]]:
    """The sets of columns whose values come with files, each with the specs of live files that have just these."""
    version = table.version
    columns = {field.field_id for field in version.columns.schema.fields}
    manifests = table.sources.lists.of(version.snapshot, table.sources.io)
    live = {m.partition_spec_id for m in manifests if int(m.content) == 0 and files_in(m) != 0}  # not known is not none
    by_columns: dict[frozenset[int], set[int]] = {}
    for spec_id in live or {version.metadata.default_spec_id}:
        values = frozenset(version.specs[spec_id].identities) & columns
        by_columns.setdefault(values, set()).add(spec_id)
    ordered = sorted(by_columns.items(), key=lambda group: (-len(group[0]), sorted(group[0])))
    return [(values, frozenset(specs)) for values, specs in ordered]
