"""Rules that are changed: only properties of the table, in one commit of metadata. Files stay as they are."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence, Set

from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.update import TableUpdate

from penstock.lake.commit.commit import change_metadata, property_updates
from penstock.lake.layout import coalesce
from penstock.lake.layout.coalesce import Coalesce
from penstock.lake.layout.renames import current_properties, field_ids
from penstock.lake.layout.table_layout import layout_of, rule_properties
from penstock.lake.write.new_sidecars import with_sidecars
from penstock.maps.shred_rule import DUPLICATES, FIELD_IDS, Shred, from_properties, is_property, to_properties
from penstock.maps.shredding import chosen_property
from penstock.maps.sidecar_columns import check_names, read_sidecars, source_map, visible


def set_coalesce(table: Table, rule: Coalesce | None) -> Table:
    """Set or remove the rule for shared files; PyIceberg's table afterwards."""

    def needed(metadata: TableMetadata) -> list[TableUpdate]:
        specs = metadata.partition_specs
        wanted = {} if rule is None else rule_properties(layout_of(metadata), specs, rule)
        return property_updates(metadata, wanted, coalesce.PROPERTIES)

    return change_metadata(table, needed, "the rule of {} could not be set")


def set_shred(table: Table, new: Mapping[str, Shred], without: Set[str] | None) -> Table:
    """Set the rules of some maps, take those of others away; PyIceberg's table afterwards.

    With None, all rules that there are go, those that cannot be read among them.
    """
    changed = {column.lower() for column in new} | (without or set())

    def needed(metadata: TableMetadata) -> list[TableUpdate]:
        schema, properties = metadata.schema(), metadata.properties
        present = {} if without is None else from_properties(current_properties(metadata))
        shown = visible(schema, read_sidecars(schema, properties))
        check_names(field.name for field in shown.fields)
        for column in new:
            source_map(shown, column)
        rules = {column: rule for column, rule in present.items() if column.lower() not in changed} | dict(new)
        wanted = to_properties(rules) | ({FIELD_IDS: field_ids(shown, rules)} if rules else {})
        kept = {DUPLICATES, *(chosen_property(column) for column, rule in rules.items() if rule.auto)}
        return property_updates(
            metadata, wanted, [name for name in properties if is_property(name) and name not in kept]
        )

    return with_sidecars(change_metadata(table, needed, "the rules of {} could not be set"))


def set_chosen(table: Table, chosen: Mapping[str, Sequence[str]]) -> Table:
    """Keep the keys that were chosen for maps; PyIceberg's table afterwards."""
    wanted = {chosen_property(column): json.dumps(list(keys), ensure_ascii=False) for column, keys in chosen.items()}

    def needed(metadata: TableMetadata) -> list[TableUpdate]:
        new = {name: text for name, text in wanted.items() if metadata.properties.get(name) != text}
        return property_updates(metadata, new, ())

    return with_sidecars(change_metadata(table, needed, "the keys of {} could not be kept"))
