"""The table that a tree is adopted into: a new one, or one that is partitioned by the columns of the tree."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from penstock.errors import LakeError, TableExistsError
from penstock.expr.sql_text import quote_name
from penstock.expr.types import normalize, type_name
from penstock.lake.adopt.adoptable_types import wide_type
from penstock.lake.layout.coalesce import Coalesce
from penstock.lake.layout.table_layout import layout_of, typed_rule
from penstock.lake.unwritten_table import take_away
from penstock.maps.shred_rule import Shred

if TYPE_CHECKING:
    from penstock.lake.adopt.adopted_tree import AdoptedTree
    from penstock.lake.lake import Lake
    from penstock.lake.managed_table import ManagedTable


@dataclass(frozen=True)
class TableToAdopt:
    """A table by its name, and what is said about it."""

    lake: Lake
    name: str
    coalesce: Coalesce | None = None
    shred: Mapping[str, Shred] = field(default_factory=dict)
    properties: Mapping[str, str] = field(default_factory=dict)
    location: str | None = None

    def existing(self) -> ManagedTable | None:
        """The table, when there is one; an error when another kind of table has its name."""
        if self.lake.declarations.has(self.name):
            raise TableExistsError(f"{self.name} is a declared layout", hint="adopt it under another name")
        return self.lake.writable_table(self.name) if self.lake.has_table(self.name) else None

    def create(self, schema: pa.Schema, partition_by: list[str]) -> ManagedTable:
        """The table, which is new."""
        rules: Any = {"coalesce": self.coalesce, "shred": self.shred or None}
        rules |= {"properties": self.properties, "location": self.location}
        return self.lake.create_table(self.name, schema, [quote_name(name) for name in partition_by], **rules)

    def take_away(self) -> None:
        """Drop a table that could not be adopted into."""
        take_away(self.lake, self.name)

    def check(self, table: ManagedTable, tree: AdoptedTree) -> None:
        """An error for a table that is partitioned in another way than the tree, or has another rule than is given."""
        layout = layout_of(table.table.metadata)
        sources = [layout.schema.find_field(each.source_id) for each in layout.fine.fields]
        identities = {str(each.transform) for each in layout.fine.fields} <= {"identity"}
        own = sorted(source.name.lower() for source in sources)
        if not identities or own != sorted(name.lower() for name in tree.names):
            fields = ", ".join(table.partitioned_by) or "nothing"
            message = f"{self.name} is partitioned by {fields}, and the tree by {', '.join(tree.names) or 'nothing'}"
            raise LakeError(message, hint="adopt the tree into a table of its own")
        for column in tree.layout.columns:
            known = next(field for field in table.schema if field.name.lower() == column.name.lower())
            if wide_type(normalize(column.type)) != known.type:
                declared = f"{column.name} as {type_name(column.type)}, and the table has {type_name(known.type)}"
                raise LakeError(
                    f"the tree is declared with {declared}",
                    hint=f"declare it so: partition_by={partition_ddl(table)!r}",
                )
        if self.coalesce is not None and typed_rule(layout.schema, self.coalesce) != table.coalesce:
            message = f"{self.name} has the rule {table.coalesce}, not {self.coalesce}"
            raise LakeError(message, hint="leave coalesce out; set_coalesce() changes the rule")
        if self.shred and dict(self.shred) != table.shred:
            raise LakeError(f"{self.name} has other hot keys", hint="leave shred out; set_shred() changes them")


def partition_ddl(table: ManagedTable) -> str:
    """The partition columns of a table as they are declared for a tree."""
    schema = layout_of(table.table.metadata).schema
    names = [schema.find_field(each.source_id).name for each in table.table.metadata.spec().fields]
    return ", ".join(f"{quote_name(name)} {type_name(table.schema.field(name).type)}" for name in names)
