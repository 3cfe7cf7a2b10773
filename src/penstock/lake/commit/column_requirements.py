"""What updates of columns and of the partitioning need: that the table still has those that they were made for.

A catalog checks the requirements of a commit together with it. Without them, a column that another writer added while a
table was replaced got the id of another schema, and files were read by the wrong one.
"""

from __future__ import annotations

from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.update import (
    AssertCurrentSchemaId,
    AssertDefaultSpecId,
    AssertLastAssignedFieldId,
    AssertTableUUID,
    TableRequirement,
)


class SameIds(AssertDefaultSpecId):
    """The table is partitioned as it was. Where PyIceberg applies updates, no schema and no spec was added either.

    PyIceberg gives a second one the same id, and then the wrong one may be found by it; metadata with one spec twice
    cannot be read by Iceberg's Java library. Servers of catalogs get the default spec's id, and number the rest.
    """

    _ids: frozenset[tuple[str, int]] = frozenset()

    @classmethod
    def of(cls, metadata: TableMetadata) -> SameIds:
        """The requirement of a change that was planned on this metadata."""
        same = cls.model_validate({"default-spec-id": metadata.default_spec_id})
        same._ids = _ids(metadata)
        return same

    def validate(self, base_metadata: TableMetadata | None) -> None:  # type: ignore[override]  # so in PyIceberg too
        """An error that counts as overtaken."""
        super().validate(base_metadata)
        if base_metadata is not None and self._ids != _ids(base_metadata):
            raise CommitFailedException("Requirement failed: schemas or partition specs were added meanwhile")


def _ids(metadata: TableMetadata) -> frozenset[tuple[str, int]]:
    schemas = {("schema", schema.schema_id) for schema in metadata.schemas}
    return frozenset(schemas | {("spec", spec.spec_id) for spec in metadata.partition_specs})


def same_columns(metadata: TableMetadata, base: TableMetadata) -> bool:
    """Whether a table has the columns and the partitioning that updates were made for."""
    current = ("current_schema_id", "last_column_id", "default_spec_id")
    return all(getattr(metadata, each) == getattr(base, each) for each in current) and _ids(metadata) == _ids(base)


def columns_unchanged(metadata: TableMetadata) -> tuple[TableRequirement, ...]:
    """The requirements that it still has them when the updates are applied."""
    return (
        AssertTableUUID(uuid=metadata.table_uuid),
        AssertCurrentSchemaId.model_validate({"current-schema-id": metadata.current_schema_id}),
        AssertLastAssignedFieldId.model_validate({"last-assigned-field-id": metadata.last_column_id}),
        SameIds.of(metadata),
    )
