"""A table that is written: an Iceberg table of a catalog, with appends, overwrites, deletes and maintenance.

It reads like any Iceberg table. The object is the newest version that it has seen: its own writes move it on, and
`refresh()` brings those of others. A DataFrame made from it stays with the version it was made from.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from penstock.errors import LakeError
from penstock.expr.tree import Column, Expr, Lookup
from penstock.lake.advise.advice import Advice
from penstock.lake.advise.advise import advise
from penstock.lake.advise.map_advice import advise_maps
from penstock.lake.commit.commit import change_metadata, property_updates
from penstock.lake.commit.once import Run, with_run
from penstock.lake.evolving_table import EvolvingTable
from penstock.lake.layout.coalesce import Coalesce, as_rule
from penstock.lake.layout.renames import current_properties
from penstock.lake.layout.table_layout import layout_of
from penstock.lake.layout.unrecorded import unrecorded_note
from penstock.lake.maintain.compact import Compaction, compact
from penstock.lake.maintain.expire import Expired, expire
from penstock.lake.maintain.sweep import Swept, sweep
from penstock.lake.managed_description import ManagedDescription
from penstock.lake.merge_builder import MergeBuilder, On, key_columns
from penstock.lake.rule_change import set_coalesce, set_shred
from penstock.lake.versioned_table import VersionedTable
from penstock.lake.write import writes as write
from penstock.lake.write.data_files import file_format
from penstock.lake.write.rows import as_arrow, is_spark
from penstock.lake.write.write_modes import check_modes
from penstock.lake.write.write_result import WriteResult
from penstock.maps.shred_rule import Shred, as_rules, check_is_mapping, from_properties
from penstock.prune.plan import Plan
from penstock.quantities import Age
from penstock.storage.storage import clear_storage_errors
from penstock.tables import bridge
from penstock.tables.description import Description
from penstock.tables.iceberg.metadata.catalogs import clear_errors


@dataclass(frozen=True, repr=False)
class ManagedTable(EvolvingTable, VersionedTable):
    """A table of a lake, for reading and writing, returned by `create_table()` and `table()` of a lake."""

    def append(
        self,
        rows: Any,
        *,
        merge_schema: bool = False,
        properties: Mapping[str, str] | None = None,
        run_id: str | None = None,
    ) -> WriteResult:
        """Add rows: a Spark DataFrame, or, without Spark, Arrow's, pandas', Polars' or any with `__arrow_c_stream__`.

        Nullable columns that the rows do not have are NULL. With `merge_schema`, columns that only the rows have are
        added to the table first, and those that are wider in the rows are widened. `properties` go into the snapshot.
        A write with a `run_id` is committed once, however often and by whomever it is done.
        """

        def work(noted: dict[str, str]) -> write.Done:
            data = rows if is_spark(rows) else as_arrow(rows)
            if merge_schema:
                self._merge_schema(bridge.schema_of(data) if is_spark(data) else data.schema, data)
            return write.append(self, data, noted)

        return self._write(work, properties, run_id)

    def overwrite(
        self,
        rows: Any,
        where: str | Expr | None = None,
        *,
        dynamic: bool = False,
        properties: Mapping[str, str] | None = None,
        run_id: str | None = None,
    ) -> WriteResult:
        """Put rows in the place of others: of all, of those that match `where`, or, with `dynamic`, of all rows in
        the logical partitions that the new rows have."""
        return self._write(lambda noted: write.overwrite(self, rows, where, dynamic, noted), properties, run_id)

    def delete(
        self, where: str | Expr, *, properties: Mapping[str, str] | None = None, run_id: str | None = None
    ) -> WriteResult:
        """Take away the rows that match; files whose rows all match are dropped without being read."""
        return self._write(lambda noted: write.delete(self, where, noted), properties, run_id)

    def update(
        self,
        values: Mapping[str, Any],
        where: str | Expr = "TRUE",
        *,
        properties: Mapping[str, str] | None = None,
        run_id: str | None = None,
    ) -> WriteResult:
        """Give the rows that match new values: `{"price": "price * 2"}`. A text is an expression over the row."""
        return self._write(lambda noted: write.update(self, values, where, noted), properties, run_id)

    def merge(
        self, rows: Any, on: On, *, properties: Mapping[str, str] | None = None, run_id: str | None = None
    ) -> MergeBuilder:
        """Begin a merge: rows that have the same key meet those of the table, and clauses say what becomes of both.

        `on` names the key columns: `"id"`, `["app", "id"]`, or `{"id": "user_id"}` where the rows call it otherwise.
        """
        return MergeBuilder(self, rows, key_columns(on), with_run(properties, run_id))

    def upsert(
        self, rows: Any, on: On, *, properties: Mapping[str, str] | None = None, run_id: str | None = None
    ) -> WriteResult:
        """Add rows, or put them in the place of those that have the same key."""
        merge = self.merge(rows, on, properties=properties, run_id=run_id)
        return merge.when_matched_update().when_not_matched_insert().execute()

    def committed_run(self, run_id: str) -> int | None:
        """The snapshot by which a run was committed, None when it was not: to ask before rows are computed in vain."""
        return Run(run_id).snapshot_in(self._writable().table.metadata)

    def _merge(self, merge: MergeBuilder) -> WriteResult:
        return self._write(lambda _: write.merge(self, merge), merge.properties, None)

    def _write(
        self,
        work: Callable[[dict[str, str]], write.Done],
        properties: Mapping[str, str] | None,
        run_id: str | None,
    ) -> WriteResult:
        """Do one write with the newest version; `work` gets the properties of its snapshot."""
        noted = with_run(properties, run_id)
        with clear_storage_errors(f"{self.name} cannot be written"):
            done = write.at_most_once(self._writable(), noted, lambda: work(noted))
            self._move(done.table)
        return done.result

    def compact(self, where: str | None = None) -> Compaction:
        """Merge small files, and put every row where today's rule wants it; `where` names the files to look at."""
        with clear_storage_errors(f"{self.name} cannot be written"):
            published, done = compact(self._writable(), where)
            self._move(published)
        return done

    @property
    def coalesce(self) -> Coalesce | None:
        """The rule that says which logical partitions share files."""
        return layout_of(self.table.metadata).rule

    def set_coalesce(self, rule: Coalesce | str | Sequence[str] | None) -> None:
        """Change the rule, or take it away; files that exist stay as they are until `compact()`."""
        self._move(set_coalesce(self._writable().table, as_rule(rule)))

    @property
    def shred(self) -> dict[str, Shred]:
        """The rules that say which keys of maps have columns of their own."""
        return from_properties(current_properties(self.table.metadata))

    def set_shred(self, rules: Mapping[str, Shred | str | Sequence[str] | None] | None) -> None:
        """Change the rules of some maps; None takes one away, or, instead of rules, all of them.

        Files that exist stay as they are until `compact()`.
        """
        check_is_mapping(rules)
        new = as_rules({column: rule for column, rule in (rules or {}).items() if rule is not None})
        gone = None if rules is None else {str(column).lower() for column, rule in rules.items() if rule is None}
        self._move(set_shred(self._writable().table, new, gone))

    def set_properties(self, new: Mapping[str, str], removed: Sequence[str] = ()) -> None:
        """Set and remove properties; the rules have methods of their own."""
        file_format({**self.table.metadata.properties, **new})
        check_modes(new)
        if new.get("format-version", str(self.table.metadata.format_version)) != str(
            self.table.metadata.format_version
        ):
            message = f"the format version of {self.name} cannot be changed"
            raise LakeError(message, hint="create a table with it, and insert the rows")
        with clear_errors("the catalog", {}):
            table, failure = self._writable().table, "the properties of {} could not be set"
            self._move(change_metadata(table, lambda metadata: property_updates(metadata, new, removed), failure))

    def planned(
        self, predicate: Expr, limit: int | None = None, keys: Sequence[Lookup] = (), also: Sequence[Column] = ()
    ) -> Plan:
        """With a note that names shared files that could not be pruned."""
        plan = super().planned(predicate, limit, keys, also)
        note = unrecorded_note(self.version, predicate, plan.judgements)
        return plan if note is None else replace(plan, report=replace(plan.report, notes=[*plan.report.notes, note]))

    def describe(self) -> Description:
        """What reports and notebooks show."""
        return ManagedDescription(self)

    def expire(self, older_than: Age = "5 days", *, keep_last: int = 1) -> Expired:
        """Remove snapshots that are older, and the files that only they needed.

        `older_than` is a `timedelta`, a moment, or text such as "7 days". The current snapshot stays, and so do those
        that a tag or a branch points to, and the newest `keep_last` of each branch.
        """
        table, expired = expire(
            self._writable_whole().table, self.sources, self.declarations.roots(), older_than, keep_last
        )
        self._move(table)
        return expired

    def sweep(self, older_than: Age = "3 days", *, dry_run: bool = False, force: bool = False) -> Swept:
        """Remove files in the table's folders that no snapshot has and that are older; `dry_run` only tells them.

        Writers that are running have such files too, young ones: an age below one hour is an error without `force`.
        """
        layouts = self.declarations.roots()
        table, swept = sweep(self._writable_whole().table, self.sources, layouts, older_than, dry_run, force)
        self._move(table)
        return swept

    def advise(self) -> Advice:
        """How skewed the partitions are and what coalescing would change, by metadata alone; and which keys of maps
        are worth a column, by a sample of the rows."""
        return replace(advise(self), maps=advise_maps(self))
