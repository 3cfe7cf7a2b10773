"""The rows of files of an Iceberg table, and what a snapshot that removes rows changed.

A change is the difference between the rows of the files before and after: a file that only one of the two has, or that
has other deletes. Rows that were only carried over into another file are on both sides, and are no change. What is left
comes with two more columns, called as in Iceberg's change logs.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.errors import MissingError, PenstockWarning
from penstock.prune.file_task import FileTask
from penstock.stream.feed import Work
from penstock.tables.iceberg.scan.reader import Reader
from penstock.tables.source import Keys

CHANGE_COLUMNS = (pa.field("_change_type", pa.string()), pa.field("_commit_snapshot_id", pa.int64()))


def changed_files(before: Iterable[FileTask], after: Iterable[FileTask]) -> tuple[list[FileTask], list[FileTask]]:
    """The files that only one of two plans has, or that have other deletes."""
    old, new = ({task.path: task for task in tasks} for tasks in (before, after))
    same = {path for path, task in old.items() if path in new and new[path].deletes == task.deletes}
    gone = [task for path, task in old.items() if path not in same]
    return gone, [task for path, task in new.items() if path not in same]


@dataclass(frozen=True)
class IcebergRows:
    """Reads files of an Iceberg table."""

    reader: Reader
    names: tuple[str, ...]
    keys: Keys
    on_missing: str
    changes: bool

    def read(self, work: Work) -> Iterator[pa.Table]:
        """The matching rows; with `changes`, each with what became of it."""
        if work.before is None:
            for rows in self._files(work.tasks):
                yield self._with_change(rows, "insert", work.snapshot) if self.changes else rows
            return
        before, after = list(self._files(work.before)), list(self._files(work.tasks))
        old, new = (Counter(key for part in parts for key in _keys(part)) for parts in (before, after))
        yield from self._different(before, old - new, "delete", work.snapshot)
        yield from self._different(after, new - old, "insert", work.snapshot)

    def _files(self, tasks: Sequence[FileTask]) -> Iterator[pa.Table]:
        for task in tasks:
            try:
                yield self.reader.file(task, self.names, self.keys)
            except MissingError:
                if self.on_missing == "error":
                    raise
                warnings.warn(f"{task.path} does not exist, and is skipped", PenstockWarning, stacklevel=2)

    def _different(
        self, parts: Sequence[pa.Table], wanted: Counter[str], what: str, snapshot: int | None
    ) -> Iterator[pa.Table]:
        """The rows that one side has more often than the other."""
        for part in parts:
            chosen = np.zeros(part.num_rows, np.bool_)
            for i, key in enumerate(_keys(part)):
                chosen[i] = wanted[key] > 0
                wanted[key] -= int(chosen[i])
            if chosen.any():
                yield self._with_change(part.filter(pa.array(chosen)), what, snapshot)

    def _with_change(self, rows: pa.Table, what: str, snapshot: int | None) -> pa.Table:
        for column, value in zip(CHANGE_COLUMNS, (what, snapshot), strict=True):
            rows = rows.append_column(column, pa.repeat(pa.scalar(value, column.type), rows.num_rows))
        return rows


def _keys(rows: pa.Table) -> list[str]:
    """Every row as a text that is another one for every other row."""
    columns = [[_in_one_order(value, column.type) for value in column.to_pylist()] for column in rows.columns]
    return [repr([column[i] for column in columns]) for i in range(rows.num_rows)]


def _in_one_order(value: Any, kind: pa.DataType) -> Any:
    """A value with the entries of its maps by key: a key that has a column of its own comes in another place."""
    if value is None or not kind.num_fields:
        return value
    if pa.types.is_map(kind):
        entries = [(_in_one_order(key, kind.key_type), _in_one_order(item, kind.item_type)) for key, item in value]
        return sorted(entries, key=lambda entry: repr(entry[0]))
    if pa.types.is_struct(kind):
        return [_in_one_order(value[field.name], field.type) for field in kind]
    return [_in_one_order(each, kind.value_type) for each in value]
