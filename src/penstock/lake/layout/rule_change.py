"""A rule that is changed: only properties of the table, in one commit of metadata."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.lake.commit.commit import commit_metadata, fresh, update
from penstock.lake.layout.coalesce import BELOW, COLUMNS, FIELD_IDS, RECORD, VALUES, Coalesce
from penstock.lake.layout.table_layout import layout_of, rule_properties, typed_rule, with_rule

if TYPE_CHECKING:
    from pyiceberg.table import Table


def set_rule(table: Table, rule: Coalesce | None) -> Table:
    """Set or remove the rule; PyIceberg's table afterwards."""
    from pyiceberg.table.update import AssertTableUUID, RemovePropertiesUpdate, SetPropertiesUpdate, TableUpdate

    def publish(table: Table) -> Table:
        metadata = table.metadata
        wanted: dict[str, str] = {}
        if rule is not None:
            layout = layout_of(metadata)
            typed = typed_rule(layout.schema, rule)
            with_rule(layout, metadata.partition_specs, typed)
            wanted = rule_properties(layout.schema, typed)
        gone = [
            name
            for name in (COLUMNS, FIELD_IDS, BELOW, VALUES, RECORD)
            if name in metadata.properties and name not in wanted
        ]
        updates: list[TableUpdate] = [SetPropertiesUpdate(updates=wanted)] if wanted else []
        updates += [RemovePropertiesUpdate(removals=gone)] if gone else []
        return update(table, [AssertTableUUID(uuid=metadata.table_uuid)], updates) if updates else table

    return commit_metadata(fresh(table), publish, "the rule of {} could not be set")
