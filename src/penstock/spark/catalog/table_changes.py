"""ALTER TABLE: Spark's list of changes to columns and properties, applied to a table."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from penstock.errors import LakeError
from penstock.maps.shred_rule import from_properties as shred_rules
from penstock.maps.shred_rule import is_property
from penstock.spark.catalog.new_tables import COMPUTED, coalesce_rule, is_rule
from penstock.spark.write.write_job import arrow_schema

if TYPE_CHECKING:
    from penstock.lake.managed_table import ManagedTable
    from penstock.lake.schema_change import SchemaChange

Change = Mapping[str, Any]


def alter_table(table: ManagedTable, changes: Sequence[Change]) -> None:
    """Apply the changes of one statement, all or none."""
    unknown = next((change["name"] for change in changes if change["change"] == "other"), None)
    if unknown is not None:
        raise LakeError(f"ALTER TABLE {table.name}: {unknown} is not supported", hint="see the documentation of ALTER")
    of_properties = [change for change in changes if change["change"] in ("set", "unset")]
    of_columns = [change for change in changes if change["change"] not in ("set", "unset")]
    if of_columns:
        with table.change_schema() as schema:
            for change in of_columns:
                _change_column(schema, change)
    if of_properties:
        _change_properties(table, of_properties)


def _change_column(schema: SchemaChange, change: Change) -> None:
    column = tuple(change["column"])
    match change["change"]:
        case "add":
            if change["default"]:
                message = f"column {'.'.join(column)} has a default value, which tables of format version 2 do not have"
                raise LakeError(message, hint="leave the default out")
            nullable, comment = change["nullable"], change["comment"]
            schema.add_column(column, _arrow_type(change["type"]), nullable=nullable, comment=comment)
            if change["position"] is not None:
                _move(schema, column, change["position"])
        case "rename":
            schema.rename_column(column, change["name"])
        case "drop":
            schema.drop_column(column, missing_ok=bool(change["if_exists"]))
        case "type":
            schema.widen_column(column, _arrow_type(change["type"]))
        case "nullable":
            schema.set_nullable(column, nullable=change["nullable"])
        case "comment":
            schema.comment_column(column, change["comment"])
        case "move":
            _move(schema, column, change["position"])


def _move(schema: SchemaChange, column: tuple[str, ...], behind: str | None) -> None:
    """Move a column behind another one of its level, or, without one, to the first place."""
    schema.move_column(column, after=behind or None, first=not behind)


def _arrow_type(document: str) -> Any:
    from pyspark.sql.types import StructType

    field = {"name": "c", "type": json.loads(document), "nullable": True, "metadata": {}}
    return arrow_schema(StructType.fromJson({"type": "struct", "fields": [field]})).field(0).type


def _change_properties(table: ManagedTable, changes: Sequence[Change]) -> None:
    """Rules of coalescing and shredding are set as `set_coalesce` and `set_shred` do it."""
    new = {change["property"]: change["value"] for change in changes if change["change"] == "set"}
    gone = [change["property"] for change in changes if change["change"] == "unset"]
    computed = [name for name in (*new, *gone) if name.startswith(COMPUTED)]
    if computed:
        raise LakeError(f"{computed[0]} of {table.name} follows from its rules", hint="change the rules")
    if "location" in new:  # what SET LOCATION is to Spark
        raise LakeError(f"{table.name} cannot move to {new['location']}", hint="create another table there by CTAS")
    merged = {**table.table.metadata.properties, **new}
    merged = {name: value for name, value in merged.items() if name not in gone}
    touched = [name for name in (*new, *gone) if is_rule(name)]
    if any(not is_property(name) for name in touched):
        table.set_coalesce(coalesce_rule(merged))
    if any(is_property(name) for name in touched):
        rules = shred_rules(merged)
        table.set_shred({**dict.fromkeys(table.shred), **rules})
    plain = {name: value for name, value in new.items() if not is_rule(name)}
    removed = [name for name in gone if not is_rule(name)]
    if plain or removed:
        table.set_properties(plain, removed)
