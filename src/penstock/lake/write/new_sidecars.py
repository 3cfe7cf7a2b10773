"""Sidecars that are added to a table: when it is made, when its rules change, when a map's values became wider.

A sidecar is never removed and never means another key: files that have it stay readable. Rules are properties of the
table, and anybody may set them; the columns that they need are added by the next write.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import count

from pyiceberg.schema import Schema, assign_fresh_schema_ids
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.types import NestedField

from penstock.lake.commit.commit import commit_metadata, fresh
from penstock.lake.layout.renames import current_properties, field_ids
from penstock.maps.shred_rule import FIELD_IDS, Shred, to_properties
from penstock.maps.shredding import hot_keys
from penstock.maps.sidecar_columns import (
    Sidecar,
    check_names,
    known_property,
    map_path,
    missing,
    path_of,
    read_sidecars,
    source_map,
    value_type,
)


def schema_with_sidecars(schema: Schema, rules: Mapping[str, Shred], last_id: int = 0) -> tuple[Schema, dict[str, str]]:
    """A new table's schema with the sidecars that rules want, and the properties that keep the rules.

    The ids are those that the catalog will give: it numbers a new table's fields afresh, in the same way. The fields of
    a table that is replaced are numbered behind the last one that it ever had.
    """
    check_names(field.name for field in schema.fields)
    for column in rules:
        source_map(schema, column)
    hot = {column: (rule, rule.keys) for column, rule in rules.items()}
    behind = [
        NestedField(schema.highest_field_id + 1 + i, sidecar.name, value_type(schema, sidecar), required=False)
        for i, sidecar in enumerate(missing(schema, (), hot))
    ]
    numbered = assign_fresh_schema_ids(
        Schema(*schema.fields, *behind, identifier_field_ids=schema.identifier_field_ids), count(last_id + 1).__next__
    )
    shown, hidden = numbered.fields[: len(schema.fields)], numbered.fields[len(schema.fields) :]
    unnumbered = missing(Schema(*shown), (), hot)
    final = [replace(sidecar, id=field.field_id) for sidecar, field in zip(unnumbered, hidden, strict=True)]
    described = [f.model_copy(update={"doc": sidecar.doc}) for f, sidecar in zip(hidden, final, strict=True)]
    properties = to_properties(rules) | (known_property(final) if final else {})
    properties |= {FIELD_IDS: field_ids(numbered, rules)} if rules else {}
    return Schema(*shown, *described, identifier_field_ids=numbered.identifier_field_ids), properties


def with_sidecars(table: Table) -> Table:
    """The table with the sidecars that its rules want; another writer may add them at the same time."""

    def publish(table: Table) -> Table:
        new, wider = _needed(table.metadata)
        if not new and not wider:
            return table
        schema = table.metadata.schema()
        with table.transaction() as change:
            with change.update_schema() as update:
                for sidecar in new:
                    update.add_column((sidecar.name,), value_type(schema, sidecar), sidecar.doc)
                for sidecar in wider:
                    update.update_column((sidecar.name,), value_type(schema, sidecar))
            known = read_sidecars(change.table_metadata.schema(), change.table_metadata.properties)
            change.set_properties(known_property(known))
        return fresh(table)

    return commit_metadata(table, publish, "sidecars could not be added to {}")


def _needed(metadata: TableMetadata) -> tuple[list[Sidecar], list[Sidecar]]:
    """The sidecars that are missing, and those that are narrower than the values of their map are now."""
    schema, properties = metadata.schema(), metadata.properties
    sidecars = read_sidecars(schema, properties)
    rules = hot_keys(current_properties(metadata)).items()
    new = missing(schema, sidecars, {column: hot for column, hot in rules if map_path(schema, column) is not None})
    living = [sidecar for sidecar in sidecars if path_of(schema, sidecar) is not None]
    wider = [s for s in living if schema.find_field(s.id).field_type != value_type(schema, s)]
    return new, wider
