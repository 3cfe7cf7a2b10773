"""What a step in the life of a managed table is drawn from, and what a step is.

A step changes the table, by Python or by a statement of Spark SQL, and knows the rows that it must have afterwards. New
rows are rows and variants that the table does not have: by Arrow, or in SQL from a view of all of them, a copy without
statistics. Which rows match a condition is the judge's answer. A table has one row of each key at the most.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame

from penstock.expr.types import type_name
from penstock.lake.write import changed_files
from penstock.spark.catalog import computed_changes
from penstock.spark.write import merge_frames
from tests.fuzz.literals import literal
from tests.fuzz.partitioning import partition_keys
from tests.fuzz.predicates import quote
from tests.fuzz.rows import ID, KEY, VARIANTS, Rows, physical

VIEW = "all_rows"
_MODE = "spark.sql.sources.partitionOverwriteMode"


@dataclass(frozen=True)
class Statements:
    """What statements about one table need: a session that has a view of all rows, and the table's names there."""

    spark: Any
    catalog: str
    name: str

    def run(self, text: str, mode: str = "static") -> DataFrame:
        """Execute a statement; `mode` says what INSERT OVERWRITE replaces."""
        self.spark.conf.set(_MODE, mode)
        rows: DataFrame = self.spark.sql(text)
        return rows

    @property
    def table(self) -> str:
        return f"{self.catalog}.{self.name}"


def view_of(spark: Any, rows: pa.Table, path: Path) -> None:
    """A temporary view of rows, which lie in one file that says nothing about them."""
    pq.write_table(rows, path, write_statistics=False, use_dictionary=False)
    ddl = ", ".join(f"{quote(f.name)} {type_name(f.type)}" for f in rows.schema)
    spark.read.schema(ddl).parquet(str(path)).createOrReplaceTempView(VIEW)


@dataclass(frozen=True)
class Step:
    """A change, the rows that the table has after it, and how it reads in the description of a life.

    `forgets`: rows of snapshots before it are other rows by the schema after it. `is_odd`: the snapshot that it leaves
    has another schema than the table.
    """

    text: str
    expected: set[int]
    change: Callable[[], Any]
    forgets: bool = False
    is_odd: bool = False


@dataclass(frozen=True)
class Situation:
    """The rows, those that live, the table, a condition with its matching rows, and earlier snapshots."""

    rng: Random
    rows: Rows
    live: frozenset[int]
    table: Any
    sql: Statements
    judge: Any
    where: str
    matching: frozenset[int]
    snapshots: Mapping[int, frozenset[int]]  # what those had that a rollback can go back to

    @property
    def by(self) -> list[str]:
        """What new files are partitioned by."""
        return list(self.table.partitioned_by)

    @cached_property
    def keys(self) -> list[Any]:
        """The partition of each row."""
        return partition_keys(self.rows, self.by, self.table.table.schema())

    @property
    def all_rows(self) -> range:
        return range(self.rows.table.num_rows)

    def one_per_key(self, ids: Iterable[int], staying: Iterable[int] = ()) -> list[int]:
        """Rows of which no two have the same key, nor the key of a row that stays; in random order."""
        known, chosen = {self.rows.key(i) for i in staying}, []
        ordered = sorted(ids)
        for i in self.rng.sample(ordered, len(ordered)):
            if self.rows.key(i) not in known:
                known.add(self.rows.key(i))
                chosen.append(i)
        return chosen

    def some(self, ids: Iterable[int], share: float = 0.5, staying: Iterable[int] = ()) -> list[int]:
        """A share of some rows."""
        known = self.one_per_key(ids, staying)
        return known[: round(len(known) * share)]

    def source(self) -> list[int]:
        """Rows that an upsert brings: some of them have keys that the table has."""
        most = self.rng.choice([1, 3, 10, self.rows.keys])
        wanted = self.one_per_key(i for i in self.all_rows if i not in self.live or self.rng.random() < 0.2)
        return wanted[:most]

    def select(self, ids: Iterable[int], columns: Sequence[str] | None = None) -> str:
        """A query of rows of the view; without columns, those of the table in its order."""
        names = ", ".join(map(quote, columns or self.table.schema.names))
        return f"SELECT {names} FROM {VIEW} WHERE {among(ids)}"

    def assigned(self, variant: int) -> dict[str, str]:
        """What makes a row a variant of it, as SQL."""
        row = self.rows.table.slice(variant * self.rows.keys, 1)
        values = {name: literal(physical(row.column(name))[0], row.column(name).type) for name in self.rows.changing}
        return {ID: f"{KEY} + {variant * self.rows.keys}"} | values

    def a_variant(self) -> int:
        return self.rng.randrange(1, VARIANTS + 1)

    def statement(self, text: str, expected: Iterable[int], mode: str = "static") -> Step:
        """A step that is one statement of Spark SQL."""
        how = self.in_tasks()
        return Step(text + how, set(expected), self.doing(how, lambda: self.sql.run(text, mode)))

    def in_tasks(self) -> str:
        """Whether a change is made as one of many rows is: by Spark's tasks, and not on the driver."""
        return " (in tasks)" if self.rng.random() < 0.15 else ""

    def doing(self, how: str, change: Callable[[], Any]) -> Callable[[], Any]:
        """The change, made in that way."""

        def changed() -> Any:
            with _in_tasks():
                return change()

        return changed if how else change


def among(ids: Iterable[int], column: str = ID) -> str:
    """The condition of being one of some rows."""
    texts = ", ".join(map(str, ids))
    return f"{column} IN ({texts})" if texts else "FALSE"


@contextmanager
def _in_tasks() -> Iterator[None]:
    with (
        patch.object(computed_changes, "_COLLECTED_ROWS", 0),
        patch.object(merge_frames, "_FEW_ROWS", -1),
        patch.object(changed_files, "LOCALLY", -1),
    ):
        yield
