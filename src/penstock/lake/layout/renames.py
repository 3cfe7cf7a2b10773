"""Rules follow their columns: the properties of a table with its rules under the names that the columns have now.

Properties name columns, and another engine that renames one does not know them. So a rule's columns are kept with their
field ids too, which never change:

    penstock.coalesce.columns   = app            penstock.coalesce.field-ids      = {"app": 2}
    parquet.map.shredding.columns = headers      penstock.map.shredding.field-ids = {"headers": 4}

A name that has no id, because somebody else set the properties, and that the table does not have any more, is looked up
in its older schemas.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadata

from penstock.errors import LakeError
from penstock.lake.layout.coalesce import COLUMNS, FIELD_IDS
from penstock.maps.name_lists import read_names, read_object, write_names
from penstock.maps.shred_rule import COLUMNS as MAPS
from penstock.maps.shred_rule import FIELD_IDS as MAP_IDS
from penstock.maps.shred_rule import PREFIX

_RULES = ((COLUMNS, FIELD_IDS, None), (MAPS, MAP_IDS, PREFIX))


def current_properties(metadata: TableMetadata) -> dict[str, str]:
    """The properties of a table, rules under today's names of their columns."""
    properties = dict(metadata.properties)
    for columns, ids, prefix in _RULES:
        try:
            names = read_names(properties.get(columns, ""))
        except LakeError:  # whoever reads the rule says what is wrong with it
            continue
        known = read_object(properties.get(ids))
        renamed = {name: _now(name, known.get(name), metadata) for name in names}
        if all(name == now for name, now in renamed.items()):
            continue
        properties[columns] = write_names(list(renamed.values()))
        for name, now in renamed.items() if prefix is not None else ():
            own = f"{prefix}{name}."
            for key in [key for key in properties if key.startswith(own) and name != now]:
                properties.setdefault(f"{prefix}{now}.{key.removeprefix(own)}", properties.pop(key))
    return properties


def field_ids(schema: Schema, columns: Iterable[str]) -> str:
    """The property that keeps the field ids of a rule's columns."""
    return json.dumps({column: schema.find_field(column, case_sensitive=False).field_id for column in columns})


def _now(name: str, field_id: object, metadata: TableMetadata) -> str:
    """The name that a rule's column has now; its old one where the column is no more."""
    if not isinstance(field_id, int):
        schemas = [metadata.schema(), *reversed(metadata.schemas)]
        known = (schema._lazy_name_to_id_lower.get(name.lower()) for schema in schemas)
        field_id = next((i for i in known if i is not None), None)
    current: str | None = None if field_id is None else metadata.schema().find_column_name(field_id)
    return name if current is None or current.lower() == name.lower() else current
