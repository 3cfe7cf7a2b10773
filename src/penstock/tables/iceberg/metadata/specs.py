"""The partition specs of a table: what a partition value of each says about a column of the schema that is read.

A value is never compared with the source column unless the transform is the identity: it is projected. The source is
found by its id. A field whose source was dropped, or whose transform is not known, says nothing of any column; its
value is still shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from pyiceberg.partitioning import PartitionField as IcebergField
from pyiceberg.schema import Schema
from pyiceberg.types import IcebergType

from penstock.errors import LakeError
from penstock.expr.tree import Column
from penstock.prune.facts import Term
from penstock.prune.transform_functions import transform_function
from penstock.prune.transforms import transform_of
from penstock.tables.iceberg.metadata.schema_columns import Columns, arrow_type
from penstock.tables.partitioning import PartitionField

if TYPE_CHECKING:
    from pyiceberg.table.metadata import TableMetadata


@dataclass(frozen=True)
class SpecField:
    """One field of a spec: where its value stands in the tuple, its type, and what it says of which column."""

    position: int
    name: str
    transform: str
    term: Term | None  # what a value is a fact about; None when it says nothing
    type: pa.DataType | None
    kind: IcebergType | None  # Iceberg's type of the values
    source_id: int


@dataclass(frozen=True)
class Spec:
    """One way in which files of the table are partitioned."""

    spec_id: int
    fields: tuple[SpecField, ...]

    def __hash__(self) -> int:
        return self.spec_id

    @property
    def sources(self) -> set[tuple[int, str]]:
        """What partitions files, as (source id, transform); a field removed from a table of version 1 is void."""
        return {(field.source_id, field.transform) for field in self.fields if field.transform != "void"}

    @property
    def identities(self) -> dict[int, SpecField]:
        """The fields that hold a column's own value, by the column's id."""
        return {f.source_id: f for f in self.fields if f.transform == "identity" and f.term is not None}


class Specs(dict[int, Spec]):
    """Specs by id."""

    def __missing__(self, spec_id: int) -> Spec:
        message = f"the table's metadata has no partition spec {spec_id}, which its files refer to"
        raise LakeError(message, hint=f"it has {', '.join(map(str, sorted(self)))}; restore the metadata file")


def read_specs(metadata: TableMetadata, columns: Columns) -> Specs:
    """All specs that files of the table may have, by id, as seen from one schema."""
    specs = Specs()
    for spec in metadata.partition_specs:
        fields = (_field(i, field, metadata, columns) for i, field in enumerate(spec.fields))
        specs[spec.spec_id] = Spec(spec.spec_id, tuple(fields))
    return specs


def _field(position: int, field: IcebergField, metadata: TableMetadata, columns: Columns) -> SpecField:
    transform = transform_of(str(field.transform))
    source = columns.by_id.get(field.source_id)
    origin = _type_of(field.source_id, [columns.schema, *reversed(metadata.schemas)])
    arrow = None if origin is None else transform.result_type(arrow_type(origin, field.name))
    kind = term = None
    if origin is not None and arrow is not None:
        kind, meant = field.transform.result_type(origin), transform.on_type(origin)
        if source is not None and (meant == "identity" or transform_function(meant, source.type) is not None):
            term = PartitionField(field.name, source, meant).term
    return SpecField(position, field.name, transform.text, term, arrow, kind, field.source_id)


def _type_of(source_id: int, schemas: Sequence[Schema]) -> IcebergType | None:
    """The type of a column in the first schema that has it; a dropped one is found in the table's history."""
    for schema in schemas:
        with suppress(ValueError):
            return schema.find_field(source_id).field_type
    return None


def dropped(field: SpecField) -> Column:
    """A name for a source that is no column any more: no predicate can mean it."""
    return Column(("", f"#{field.source_id}"), field.type)
