"""The hidden columns `_spec_id` and `_partition`: how the file of a row is partitioned, under Iceberg's names.

Both are the same for all rows of a file, so they come with files as partition columns of the relation: nothing more is
read, and filters on them leave files out. `_partition` is a struct of the fields of all specs, in the order of their
ids; fields that a file's own spec does not have are NULL. A file that several logical partitions share has the values
of the partition that it lies in.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import IntegerType, StructField, StructType

from penstock.expr.sql_text import quote_name
from penstock.prune.facts import Exact
from penstock.prune.judge import Judgement
from penstock.spark.scan.planner import plain_values
from penstock.tables.iceberg.metadata.version import SpecField, Version

SPEC_ID, _STEM = "_spec_id", "_partition."
# The columns of a DataFrame that has both, behind those of the table.
SPEC_OF_FILE, PARTITION_OF_FILE = "spec of the file", "partition of the file"


@dataclass(frozen=True)
class PartitionColumns:
    """The fields of all specs of a version: their names and types, and what each spec calls them."""

    fields: tuple[tuple[str, pa.DataType], ...]
    by_spec: tuple[tuple[int, tuple[str | None, ...]], ...]

    @classmethod
    def of(cls, version: Version) -> PartitionColumns:
        """Those of a version; of a field with several names, the newest."""
        specs = {spec.spec_id: spec.fields for spec in version.metadata.partition_specs}
        known: dict[int, SpecField] = {}
        for spec_id in sorted(specs, reverse=True):
            for field, own in zip(specs[spec_id], version.specs[spec_id].fields, strict=True):
                is_newer = field.field_id not in known or known[field.field_id].transform == "void"
                if own.type is not None and is_newer:
                    known[field.field_id] = own
        names: dict[str, int] = {}
        for field_id in sorted(known):  # two fields may have had one name
            name = known[field_id].name
            names[name if name not in names else f"{name} ({field_id})"] = field_id
        fields = [(name, known[field_id].type) for name, field_id in names.items()]
        by_spec = []
        for spec_id, of_spec in sorted(specs.items()):
            own_names = {field.field_id: field.name for field in of_spec}
            by_spec.append((spec_id, tuple(own_names.get(field_id) for field_id in names.values())))
        return cls(tuple((name, kind) for name, kind in fields if kind is not None), tuple(by_spec))

    def struct(self) -> pa.Schema:
        """The type of `_partition`."""
        return pa.schema(self.fields)

    @cached_property
    def hidden(self) -> Any:
        """The columns of the relation, as Spark's StructType."""
        kinds = [(f"{_STEM}{name}", from_arrow_type(kind, prefer_timestamp_ntz=True)) for name, kind in self.fields]
        return StructType([StructField(SPEC_ID, IntegerType()), *(StructField(*kind) for kind in kinds)])

    def shown(self) -> list[Column]:
        """The columns of a DataFrame, from those of the relation."""
        parts = [F.col(quote_name(f"{_STEM}{name}")).alias(name) for name, _ in self.fields]
        partition = F.struct(*parts) if parts else F.lit(None)
        return [F.col(SPEC_ID).alias(SPEC_OF_FILE), partition.alias(PARTITION_OF_FILE)]

    def values(self, judgement: Judgement, kept: Any) -> list[list[Any]]:
        """The values of the relation's columns for files of one spec, as Spark takes them."""
        spec_id = judgement.containers.spec_id
        assert spec_id is not None
        facts = {fact.name: fact for fact in judgement.containers.facts if isinstance(fact, Exact)}
        columns: list[list[Any]] = [[spec_id] * len(kept)]
        for name in dict(self.by_spec)[spec_id]:
            fact = None if name is None else facts.get(name)
            columns.append([None] * len(kept) if fact is None else plain_values(fact.single_values(kept)[0]))
        return columns
