"""The partitions of a table and their files: the metastore names the partitions, and only those that match are listed.

What a metastore can check is sent to it; what it gives is judged here once more, by the whole predicate, as columns.
Which tests are sent is decided by what cannot lose a partition:

| partition column | sent | not sent, judged here |
|---|---|---|
| whole numbers, dates | `=`, `<`, `<=`, `>`, `>=`, `IN` | anything else |
| text | `=`, `IN` | ranges: the metastore's database may order text in its own way |
| other types | | everything |

A location is read as Spark reads it: the files that lie in it, not those in directories below; none where there is no
such directory, which is said.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from penstock.errors import LakeError, MissingError
from penstock.expr.kernels.physical import to_arrow
from penstock.expr.sql_text import summarize
from penstock.expr.tree import Column, Compare, Expr, In, Literal, conjuncts
from penstock.expr.types import is_integer
from penstock.progress import counted
from penstock.prune.containers import Containers
from penstock.prune.judge import Pruner
from penstock.prune.plan import count
from penstock.prune.plan_report import Level
from penstock.storage.entries import NOTHING, Entries, Entry
from penstock.storage.lister import Lister
from penstock.tables.hive.walk import Branch, Limits, Walk, judge
from penstock.tables.metastore.metastore import Metastore, StoredPartitions, StoredTable, Test
from penstock.tables.metastore.places import as_url
from penstock.tables.metastore.stored_format import other_format

_MOST_VALUES = 200  # of an IN that is sent
_ORDERED = ("=", "<", "<=", ">", ">=")


class PlaceLister(Lister):
    """Lists locations, of which some may not exist."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.missing: list[str] = []

    def _call(self, path: str) -> Entries:
        try:
            return super()._call(path)
        except MissingError:
            self.missing.append(path)
            return NOTHING


class PartitionWalk(Walk):
    """One plan's way from a metastore to the files of a table."""

    lister: PlaceLister

    def __init__(
        self, table: StoredTable, metastore: Metastore, pruner: Pruner, lister: PlaceLister, limits: Limits
    ) -> None:
        super().__init__(list(table.partition_columns), pruner, lister, limits)
        self.table, self.metastore = table, metastore
        self.tests = tests_of(pruner.predicate, table.partition_columns)
        self._level_counts = Level("partitions")
        self._directories = 0

    def _partitions(self) -> Branch:
        """The locations of the partitions that are kept; that of the table itself, where it has none."""
        if not self.columns:
            return Branch([self.lister.storage.path])
        listed = self.metastore.partitions(self.table, [test for test, _ in self.tests])
        if listed.problem is not None:
            self.remarks.append(f"the metastore lists all partitions: {listed.problem}")
        judgement = judge(self.pruner, Containers(len(listed.locations), self._facts(self.columns, listed.texts)))
        kept = judgement.kept.tolist()
        self._check_formats(listed, kept)
        self.levels.append(judgement)
        self._level_counts = self._counted(listed)
        # By location, so that a plan is the same every time: a metastore may list in any order.
        kept.sort(key=listed.locations.__getitem__)
        texts = [column.take(pa.array(kept, pa.int64())) for column in listed.texts]
        return Branch([as_url(listed.locations[i]) for i in kept], list(self.columns), texts)

    def _counted(self, listed: StoredPartitions) -> Level:
        """What was kept of all partitions, those that only the metastore has seen among them."""
        level = count(self.levels, "partitions")
        unseen = max(0, listed.total - level.total)
        if unseen:
            level.skipped[f"metastore: {' AND '.join(text for _, text in self.tests)}"] = unseen
        return Level(
            "partitions", total=level.total + unseen, kept=level.kept, whole=level.whole, skipped=level.skipped
        )

    def _counts(self) -> Level:
        return self._level_counts

    def _check_formats(self, listed: StoredPartitions, kept: Sequence[int]) -> None:
        """Refuse partitions that are stored in another way than the table."""
        others = {i: other for i, stored in enumerate(listed.stored) if (other := other_format(self.table, stored))}
        first = next((i for i in kept if listed.kinds[i] in others), None) if others else None
        if first is not None:
            values = (text[first].as_py() for text in listed.texts)
            place = "/".join(f"{c.name}={value}" for c, value in zip(self.columns, values, strict=True))
            message = f"partition {place} of {self.table.name} is stored as {others[listed.kinds[first]]}"
            hint = "leave it out by the filter, or write it again in the format of the table"
            raise LakeError(f"{message}, which the table is not", hint=hint)

    def _files(self, branch: Branch) -> Containers:
        files = super()._files(branch)
        if self.lister.missing:
            first = self.lister.storage.shown(min(self.lister.missing))
            number = counted(len(self.lister.missing), "location")
            self.notes.append(f"{self.table.name}: {number} without a directory, and so without rows, such as {first}")
        if self._directories:
            number = counted(self._directories, "directory")
            self.remarks.append(f"{number} inside of locations not read, as in Spark")
        return files

    def _pass_directory(self, entry: Entry, where: str) -> None:
        if not self.columns and "=" in entry.name[1:]:
            super()._pass_directory(entry, where)
        self._directories += 1


def tests_of(predicate: Expr, columns: pa.Schema) -> list[tuple[Test, str]]:
    """The parts of a predicate that a metastore can check, each with what it says."""
    parts = ((_test(part, columns), part) for part in conjuncts(predicate))
    return [(test, summarize(part)) for test, part in parts if test is not None]


def _test(part: Expr, columns: pa.Schema) -> Test | None:
    term = part.left if isinstance(part, Compare) else part.child if isinstance(part, In) else None
    if not isinstance(term, Column) or len(term.path) != 1 or term.path[0] not in columns.names:
        return None
    is_ordered = is_integer(term.type) or term.type == pa.date32()
    if not is_ordered and term.type != pa.string():
        return None
    if isinstance(part, In):
        values, op = list(part.options), "IN"
    else:
        assert isinstance(part, Compare)
        values, op = [part.right], part.op
        if op not in (_ORDERED if is_ordered else ("=",)):
            return None
    if not 0 < len(values) <= _MOST_VALUES:
        return None
    if not all(isinstance(v, Literal) and v.type == term.type and v.value is not None for v in values):
        return None
    return Test(term.path[0], op, to_arrow([v.value for v in values], term.type))
