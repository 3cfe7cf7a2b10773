"""Sidecars that are added to a table: when it is made, when its rules change, when a map's values became wider.

A sidecar is never taken away and never means another key: files that have it stay readable. Rules are properties of the
table, and anybody may set them; the columns that they need are added by the next write.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING

from penstock.lake.commit.commit import commit_metadata, fresh
from penstock.lake.layout.renames import current_properties, field_ids
from penstock.maps.shred_rule import DUPLICATES, FIELD_IDS, Shred, from_properties, is_property, to_properties
from penstock.maps.shredding import chosen_property, hot_keys
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
    visible,
)

if TYPE_CHECKING:
    from pyiceberg.schema import Schema
    from pyiceberg.table import Table
    from pyiceberg.table.metadata import TableMetadata


def schema_with_sidecars(schema: Schema, rules: Mapping[str, Shred], last_id: int = 0) -> tuple[Schema, dict[str, str]]:
    """A new table's schema with the sidecars that rules want, and the properties that keep the rules.

    The ids are those that the catalog will give: it numbers a new table's fields afresh, in the same way. The fields of
    a table that is replaced are numbered behind the last one that it ever had.
    """
    from pyiceberg.schema import Schema, assign_fresh_schema_ids
    from pyiceberg.types import NestedField

    check_names(field.name for field in schema.fields)
    for column in rules:
        source_map(schema, column)
    wanted = missing(schema, (), rules, {column: rule.keys for column, rule in rules.items()})
    kinds = [value_type(schema, sidecar) for sidecar in wanted]
    behind = [
        NestedField(schema.highest_field_id + 1 + i, sidecar.name, kind, required=False)
        for i, (sidecar, kind) in enumerate(zip(wanted, kinds, strict=True))
    ]
    numbered = assign_fresh_schema_ids(
        Schema(*schema.fields, *behind, identifier_field_ids=schema.identifier_field_ids), count(last_id + 1).__next__
    )
    paths = [path_of(schema, sidecar) for sidecar in wanted]
    sources = [numbered.find_field(".".join(path or ())).field_id for path in paths]
    own = [numbered.find_field(sidecar.name).field_id for sidecar in wanted]
    final = [replace(s, id=i, source=source) for s, i, source in zip(wanted, own, sources, strict=True)]
    docs = {sidecar.id: sidecar.doc for sidecar in final}
    fields = [
        field.model_copy(update={"doc": docs[field.field_id]}) if field.field_id in docs else field
        for field in numbered.fields
    ]
    properties = to_properties(rules) | (known_property(final) if final else {})
    properties |= {FIELD_IDS: field_ids(numbered, rules)} if rules else {}
    return Schema(*fields, identifier_field_ids=numbered.identifier_field_ids), properties


def set_rules(table: Table, new: Mapping[str, Shred], without: Set[str] | None) -> Table:
    """Set the rules of some maps, take those of others away; PyIceberg's table afterwards. Files stay as they are.

    With None, all rules that there are go, those that cannot be read among them.
    """
    changed = {column.lower() for column in new} | (without or set())

    def publish(table: Table) -> Table:
        schema, properties = table.metadata.schema(), table.metadata.properties
        present = {} if without is None else from_properties(current_properties(table.metadata))
        shown = visible(schema, read_sidecars(schema, properties))
        check_names(field.name for field in shown.fields)
        for column in new:
            source_map(shown, column)
        rules = {column: rule for column, rule in present.items() if column.lower() not in changed} | dict(new)
        wanted = to_properties(rules) | ({FIELD_IDS: field_ids(shown, rules)} if rules else {})
        kept = {chosen_property(column) for column, rule in rules.items() if rule.auto}
        gone = [name for name in properties if is_property(name) and name not in {*wanted, *kept, DUPLICATES}]
        return _commit(table, (), (), wanted, gone)

    return with_sidecars(commit_metadata(fresh(table), publish, "the rules of {} could not be set"))


def set_chosen(table: Table, chosen: Mapping[str, Sequence[str]]) -> Table:
    """Keep the keys that were chosen for maps; PyIceberg's table afterwards."""
    wanted = {chosen_property(column): json.dumps(list(keys), ensure_ascii=False) for column, keys in chosen.items()}

    def publish(table: Table) -> Table:
        if all(table.metadata.properties.get(name) == text for name, text in wanted.items()):
            return table
        return _commit(table, (), (), wanted, ())

    return with_sidecars(commit_metadata(fresh(table), publish, "the keys of {} could not be kept"))


def with_sidecars(table: Table) -> Table:
    """The table with the sidecars that its rules want; another writer may add them at the same time."""

    def publish(table: Table) -> Table:
        new, wider = _needed(table.metadata)
        if not new and not wider:
            return table
        return _commit(table, new, wider, {}, ())

    return commit_metadata(table, publish, "sidecars could not be added to {}")


def _needed(metadata: TableMetadata) -> tuple[list[Sidecar], list[Sidecar]]:
    """The sidecars that are missing, and those that are narrower than the values of their map are now."""
    schema, properties = metadata.schema(), metadata.properties
    sidecars = read_sidecars(schema, properties)
    rules, keys = {}, {}
    for column, (rule, own) in hot_keys(current_properties(metadata)).items():
        if map_path(schema, column) is not None:
            rules[column], keys[column] = rule, own
    new = missing(schema, sidecars, rules, keys) if rules else []
    living = [sidecar for sidecar in sidecars if path_of(schema, sidecar) is not None]
    wider = [s for s in living if schema.find_field(s.id).field_type != value_type(schema, s)]
    return new, wider


def _commit(
    table: Table, new: Sequence[Sidecar], wider: Sequence[Sidecar], properties: Mapping[str, str], gone: Sequence[str]
) -> Table:
    """The table afterwards."""
    schema = table.metadata.schema()
    with table.transaction() as change:
        if new or wider:
            with change.update_schema() as update:
                for sidecar in new:
                    update.add_column((sidecar.name,), value_type(schema, sidecar), sidecar.doc)
                for sidecar in wider:
                    update.update_column((sidecar.name,), value_type(schema, sidecar))
            known = read_sidecars(change.table_metadata.schema(), change.table_metadata.properties)
            change.set_properties(known_property(known))
        if properties:
            change.set_properties(dict(properties))
        if gone:
            change.remove_properties(*gone)
    return fresh(table)
