"""`Source`: what every kind of table provides. Reports, commands, streams and Spark know tables by nothing else.

A kind of table is one folder with a class that inherits `Source`, and passes `tests/contract/test_tables.py`:

| member | for |
|---|---|
| `schema`, `plan`, `arrow`, `partitions` | planning and reading without Spark |
| `relations` | Spark, which reads the planned files itself |
| `feed` | streams |
| `describe` | reports and notebooks |
| `at`, `refresh` | tables that have snapshots |

What follows the class serves every kind: predicates over its columns, and what a reader gives back, which is columns by
their names and keys of maps as SQL writes them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol, Self

import pyarrow as pa

from penstock.errors import LakeError, PenstockError, SchemaError, UnknownColumnError, name_hint
from penstock.expr.bind import Context, bind_text
from penstock.expr.kernels.evaluate import Rows, evaluate, filter_mask, read_terms
from penstock.expr.sql_text import quote_text
from penstock.expr.tree import TRUE, And, Expr, IsNull, Lookup, is_term
from penstock.prune.facts import Exact
from penstock.prune.notebook import as_grid
from penstock.prune.notebook import columns as columns_html
from penstock.prune.notebook import facts as facts_html
from penstock.prune.plan import Plan
from penstock.stream.feed import Feed
from penstock.stream.stream_options import StreamOptions
from penstock.tables import bridge
from penstock.tables.description import Description
from penstock.tables.file_metadata import with_metadata

Keys = dict[str, Lookup]


class Relations(Protocol):
    """How Spark reads one kind of table; `penstock.spark.scan` has one for each kind."""

    def rows(self, spark: Any, where: str | None) -> Any:
        """All rows as a lazy DataFrame; `where` only tells which files will be asked for."""

    def rows_with_partitions(self, spark: Any) -> Any:
        """All rows, and behind them the spec and the partition of the file of each."""

    def planned_rows(self, spark: Any, where: str) -> Any:
        """The matching rows on Spark Connect, from the files of a plan made now."""


@dataclass(frozen=True, kw_only=True, repr=False)
class Source(ABC):
    """What every kind of table has; Hive layouts and tables in memory have no snapshots."""

    context: Context = field(repr=False)

    @property
    @abstractmethod
    def schema(self) -> pa.Schema:
        """The columns with their normalized types."""

    @abstractmethod
    def plan(self, where: str | Expr | None = None, *, path: str | None = None) -> Plan:
        """Which files hold rows that may match; `path` is a LIKE pattern that the file's URL must match."""

    @abstractmethod
    def arrow(self, where: str | None = None, columns: Sequence[str] | None = None) -> pa.Table:
        """The matching rows, read from the planned files only, each filtered by its own residual.

        A column may be a key of a map: `headers['content-type']`.
        """

    @abstractmethod
    def partitions(self, where: str | None = None) -> pa.Table:
        """The partitions with the number and size of their files."""

    @abstractmethod
    def relations(self) -> Relations:
        """How Spark reads the table."""

    @abstractmethod
    def feed(self, options: StreamOptions) -> Feed:
        """What is new in the table, step by step; the options are checked here."""

    @abstractmethod
    def describe(self) -> Description:
        """What reports and notebooks show: name, kind, location, partition fields, snapshot and all files."""

    @property
    def key(self) -> str:
        """What makes two tables the same to Spark: the same rows under the same columns."""
        return f"{type(self).__name__} {id(self)}"

    def partition_fields(self) -> list[str]:
        """What the table is partitioned by, as `PARTITIONED BY` has it: `day(ts)`, `app`."""
        return self.describe().partitioned_by

    def partition_schema(self) -> pa.Schema:
        """The names and types of partition values, as `partitions()` lists them."""
        return pa.schema([])

    def comments(self) -> Mapping[str, str]:
        """The comments of columns, by name."""
        return {}

    def properties(self) -> Mapping[str, str]:
        """The properties that people may see."""
        return {}

    def at(self, snapshot: int | str | datetime | None) -> Self:
        """The table as it was: by a snapshot's id, a time, a tag or a branch."""
        description = self.describe()
        raise LakeError(f"{description.kind} {description.name} has no snapshots", hint="leave the snapshot out")

    def refresh(self) -> Self:
        """Move on to the table as it is now, and return it; DataFrames made before stay with their version."""
        return self

    def dataframe(self, spark: Any, where: str | None = None) -> Any:
        """A lazy DataFrame over Spark's own reader; filters put on it later prune too."""
        return bridge.dataframe(self, spark, where)

    def stream(
        self,
        spark: Any,
        where: str | None = None,
        *,
        columns: Sequence[str] | None = None,
        starting: str | int | datetime = "earliest",
        max_files_per_trigger: int | None = None,
        max_bytes_per_trigger: int | str | None = None,
        **options: Any,
    ) -> Any:
        """A streaming DataFrame of new rows, pruned when they are found; for all options see `stream_options`."""
        options |= {"where": where, "columns": columns, "starting": starting}
        options |= {"max_files_per_trigger": max_files_per_trigger, "max_bytes_per_trigger": max_bytes_per_trigger}
        return bridge.stream(self, spark, options)

    def __repr__(self) -> str:
        description = self.describe()
        return f"{type(self).__name__}({description.name!r}, partition_by={', '.join(description.partitioned_by)!r})"

    def _repr_html_(self) -> str:
        """What it is and which columns it has, for a notebook."""
        return facts_html(self.describe().facts) + columns_html(self.schema)


def bind(table: Source, where: str | Expr | None, path: str | None = None) -> Expr:
    """A predicate, and a LIKE pattern that the file's URL must match, as one; both may be missing."""
    if isinstance(where, Expr):
        return where
    texts = [where, None if path is None else f"_metadata.file_path LIKE {quote_text(path)}"]
    schema = with_metadata(table.schema)
    try:
        parts = [bind_text(text, schema, table.context) for text in texts if text is not None]
    except UnknownColumnError as error:
        raise _of_partition_field(error, table) from None
    return TRUE if not parts else parts[0] if len(parts) == 1 else And(tuple(parts))


def _of_partition_field(error: UnknownColumnError, table: Source) -> UnknownColumnError:
    """The error of an unknown name, with a better hint where it is that of a partition field, such as `ts_day`."""
    fields = dict(zip(table.partition_schema().names, table.partition_fields(), strict=False))
    if error.name in fields:
        error.hint = f"it is the partition field {fields[error.name]}: filter by its column, which prunes by it"
    return error


def outputs(columns: Sequence[str] | None, table: Source) -> tuple[list[str], Keys]:
    """Columns as the schema spells them, all without any; and those that are keys of maps, `headers['a']`."""
    if isinstance(columns, str):
        raise SchemaError(f"columns takes a list of names, found the text {columns!r}", hint=f"write [{columns!r}]")
    names, keys = [], Keys()
    for column in table.schema.names if columns is None else columns:
        try:
            names.append(column_name(column, table.schema))
        except SchemaError:
            term = _key(column, table)
            if term is None:
                raise
            keys[column] = term
            names.append(column)
    return names, keys


def column_name(column: str, schema: pa.Schema) -> str:
    """A column as the schema spells it; an error with a hint when there is none."""
    name: str | None = next((name for name in schema.names if name.lower() == column.lower()), None)
    if name is None:
        raise SchemaError(f"no column {column!r}", hint=name_hint(column, schema.names))
    return name


def empty(names: Sequence[str], keys: Keys, schema: pa.Schema) -> pa.Table:
    """No rows of these columns."""
    fields = [pa.field(name, keys[name].type) if name in keys else schema.field(name) for name in names]
    return pa.schema(fields).empty_table()


def matching_rows(
    rows: pa.Table, residual: Expr, names: Sequence[str], keys: Keys, zone: str, terms: Rows | None = None
) -> pa.Table:
    """The rows that match, with the columns asked for; `terms` that are known need not be in the rows."""
    for name, term in keys.items():
        values = evaluate(term, read_terms(term, rows, terms), rows.num_rows, zone).values
        rows = rows.append_column(pa.field(name, term.type), values)
    return rows.filter(filter_mask(residual, rows, zone, terms)).select(list(names))


def _key(text: str, table: Source) -> Lookup | None:
    try:
        test = bind(table, f"({text}) IS NULL")
    except PenstockError:
        return None
    term = test.child if isinstance(test, IsNull) else None
    of_map = isinstance(term, Lookup) and is_term(term) and pa.types.is_map(term.container.type)
    return term if of_map and isinstance(term, Lookup) else None


def count_partitions(plan: Plan, names: Sequence[str], zone: str) -> pa.Table:
    """Files and bytes of a plan by partition values; a field that is itself called `files` keeps its name."""
    (judgement,) = plan.judgements
    facts = {fact.name: fact for fact in judgement.containers.facts if isinstance(fact, Exact)}
    places = [f"key {i}" for i in range(len(names))]
    assert judgement.containers.sizes is not None
    sizes = judgement.containers.sizes.take(pa.array(judgement.kept))
    table = pa.table(
        [*(facts[name].single_values(judgement.kept)[0] for name in names), sizes], names=[*places, "size"]
    )
    counted = table.group_by(places, use_threads=False).aggregate([("size", "count"), ("size", "sum")])
    shown = counted.select([*places, "size_count", "size_sum"]).rename_columns([*names, "files", "bytes"])
    return as_grid(shown, zone)
