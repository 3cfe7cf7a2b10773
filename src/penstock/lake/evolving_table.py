"""A table whose columns and partitioning change while its rows stay.

Each method is one commit of metadata; `change_schema()` makes several changes in one. No file is written anew.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from penstock.lake.layout.table_layout import layout_of
from penstock.lake.partition_change import partition_texts
from penstock.lake.schema_change import SchemaChange
from penstock.lake.writable_table import WritableTable
from penstock.lake.write.conform import check_schema, conform, in_order


@dataclass(frozen=True, repr=False)
class EvolvingTable(WritableTable):
    """Changes of columns and of partition fields."""

    def change_schema(self) -> SchemaChange:
        """Several changes in one commit: `with table.change_schema() as change: change.add_column("zip", "string")`."""
        return SchemaChange(self._writable())

    def add_column(
        self, name: str, type: Any, *, comment: str | None = None, after: str | None = None, first: bool = False
    ) -> None:
        """Add a column, at the end or where `after` or `first` says; rows that exist have NULL in it.

        The type is text such as `"decimal(10,2)"`, or Arrow's, Iceberg's or Spark's. A nested field is named with dots:
        `"address.zip"`.
        """
        with self.change_schema() as change:
            change.add_column(name, type, comment=comment, after=after, first=first)

    def rename_column(self, name: str, new_name: str) -> None:
        """Rename a column; its values and its rules stay. The new name of a nested field is its own, without dots."""
        with self.change_schema() as change:
            change.rename_column(name, new_name)

    def drop_column(self, name: str) -> None:
        """Drop a column; older snapshots keep it. One that the partitioning or a rule needs is refused."""
        with self.change_schema() as change:
            change.drop_column(name)

    def widen_column(self, name: str, type: Any) -> None:
        """Change the type of a column: int to bigint, float to double, decimal to more digits of the same scale."""
        with self.change_schema() as change:
            change.widen_column(name, type)

    def move_column(self, name: str, *, after: str | None = None, first: bool = False) -> None:
        """Move a column behind another one of the same struct, or to the first place of it."""
        with self.change_schema() as change:
            change.move_column(name, after=after, first=first)

    def comment_column(self, name: str, comment: str) -> None:
        """Set the comment of a column."""
        with self.change_schema() as change:
            change.comment_column(name, comment)

    @property
    def partitioned_by(self) -> list[str]:
        """What new files are partitioned by: `["day(ts)", "app"]`."""
        return partition_texts(self.table.metadata)

    def add_partition_field(self, field: str) -> None:
        """Partition new files by one more field: `app`, `day(ts)`, `bucket(16, user_id)`, `truncate(4, name)`.

        Files that exist stay as they are, and are pruned by what they were partitioned by, until `compact()`.
        """
        with self.change_schema() as change:
            change.add_partition_field(field)

    def drop_partition_field(self, field: str) -> None:
        """Do not partition new files by a field any more; it is named as it was added, or by its own name, `ts_day`."""
        with self.change_schema() as change:
            change.drop_partition_field(field)

    def replace_partition_field(self, field: str, new_field: str) -> None:
        """Partition new files by another field in the place of one: `day(ts)` in the place of `month(ts)`."""
        with self.change_schema() as change:
            change.replace_partition_field(field, new_field)

    def _merge_schema(self, columns: pa.Schema, rows: Any) -> None:
        """Change the table so that rows fit; the values of rows that are all here are looked at before."""
        with self.change_schema() as change:
            change.merge_columns(columns)
            if isinstance(rows, pa.Table):
                layout = layout_of(change.metadata)
                conform(in_order(rows, check_schema(columns, layout.schema)), layout)
