"""A file to be read: what is known of it, and what is left to check on its rows.

Tasks are made on access from the columns of a judgement: a plan over a million files that keeps ten costs ten objects.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, overload

import numpy as np
import pyarrow as pa

from penstock.expr.kernels.physical import from_arrow, to_arrow
from penstock.expr.kernels.zones import in_zone
from penstock.expr.tree import Expr
from penstock.prune.delete_file import DeleteFile
from penstock.prune.facts import Derived, Exact, Tuples, source_term
from penstock.prune.judge import Judgement
from penstock.prune.ordered_keys import value_of
from penstock.prune.plan_report import human_bytes
from penstock.prune.transforms import transform_of
from penstock.prune.verdict import Reason, Verdict


@dataclass(frozen=True, slots=True)
class PartitionValue:
    """One partition field of a file: its value, and the source values it implies, from `lower` up to but not `upper`.

    Moments have the clock of the table's zone; a day or an hour is one of UTC, as Iceberg has them. Both ends are None
    where the transform implies no range (bucket) and where the value is null, `upper` alone where there is no end.
    """

    name: str
    source: str
    transform: str
    value: Any
    lower: Any = None
    upper: Any = None


@dataclass(frozen=True, slots=True)
class LogicalPartitionValues:
    """The combinations of logical values in a file; with `complete` false there may be others."""

    complete: bool
    columns: tuple[str, ...]
    tuples: tuple[tuple[Any, ...], ...]


@dataclass(frozen=True, slots=True)
class FileTask:
    """A file to be read: where it is, what is known of it, and why it is kept.

    `partition` has the value of each partition field by its name, `logical` the combinations of logical values in a
    shared file, `residual` what is still to be checked on the rows, `deletes` the delete files that apply.
    """

    path: str
    size: int | None
    rows: int | None
    spec_id: int | None
    partition: Mapping[str, PartitionValue]
    logical: LogicalPartitionValues | None
    verdict: Verdict
    reason: Reason
    residual: Expr
    deletes: tuple[DeleteFile, ...] = ()
    shredding: str | None = None  # what is recorded of its sidecars
    format: str | None = None  # as its manifest names it; None for the default


class FileTasks(Sequence[FileTask]):
    """The kept files in order, as a sequence of `FileTask` that are made on demand."""

    def __init__(self, judgements: Sequence[Judgement]) -> None:
        self._judgements = judgements
        self._ends = np.cumsum([len(j.kept) for j in judgements], dtype=np.int64)

    def __len__(self) -> int:
        return int(self._ends[-1]) if len(self._ends) else 0

    @overload
    def __getitem__(self, index: int) -> FileTask: ...
    @overload
    def __getitem__(self, index: slice) -> list[FileTask]: ...
    def __getitem__(self, index: int | slice) -> FileTask | list[FileTask]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        position = index + len(self) if index < 0 else index
        if not 0 <= position < len(self):
            raise IndexError(f"file {index} of {len(self)}")
        batch = int(np.searchsorted(self._ends, position, side="right"))
        judgement = self._judgements[batch]
        start = int(self._ends[batch - 1]) if batch else 0
        return _task(judgement, int(judgement.kept[position - start]))

    @cached_property
    def paths(self) -> pa.Array:
        """The names of the kept files, as one column."""
        return self._column("names", pa.string())

    @cached_property
    def sizes(self) -> pa.Array:
        """The sizes of the kept files in bytes, as one column."""
        return self._column("sizes", pa.int64())

    def _column(self, name: str, t: pa.DataType) -> pa.Array:
        columns = [(judgement, getattr(judgement.containers, name)) for judgement in self._judgements]
        parts = [column.take(pa.array(judgement.kept)) for judgement, column in columns if column is not None]
        return pa.concat_arrays(parts) if parts else pa.array([], t)


def _task(judgement: Judgement, i: int) -> FileTask:
    containers = judgement.containers
    return FileTask(
        path=_entry(containers.names, i) or "",
        size=_entry(containers.sizes, i),
        rows=_entry(containers.rows, i),
        spec_id=containers.spec_id,
        partition=_partition(judgement, i),
        logical=_logical(judgement, i),
        verdict=judgement.verdict(i),
        reason=judgement.reason(i),
        residual=judgement.residual(i),
        deletes=containers.deletes.get(i, ()),
        shredding=_entry(containers.shredding, i),
        format=_entry(containers.formats, i),
    )


def _entry(column: pa.Array | None, i: int) -> Any:
    return None if column is None else column[i].as_py()


def _partition(judgement: Judgement, i: int) -> dict[str, PartitionValue]:
    fields: dict[str, PartitionValue] = {}
    for fact in judgement.containers.facts:
        if not isinstance(fact, Exact) or fact.name is None or (fact.known is not None and not fact.known[i]):
            continue
        source = source_term(fact.term)
        transform = transform_of(fact.term.transform if isinstance(fact.term, Derived) else "identity")
        physical = from_arrow(fact.single_values(np.array([i]))[0])[0]
        span = transform.source_range(source.type, physical) or (None, None)
        zone = judgement.pruner.zone
        ends = (None if key is None else _natural(value_of(key, source.type), source.type) for key in span)
        lower, upper = (in_zone(end, zone) for end in ends)
        value = in_zone(_natural(physical, fact.encoded[1].type), zone)
        fields[fact.name] = PartitionValue(fact.name, str(source), transform.shown, value, lower, upper)
    return fields


def _natural(physical: Any, t: pa.DataType) -> Any:
    """A value as the Python object people know; outside of Python's calendar the physical value."""
    try:
        return to_arrow([physical], t)[0].as_py()
    except (ValueError, OverflowError):
        return physical


def _logical(judgement: Judgement, i: int) -> LogicalPartitionValues | None:
    fact = next((fact for fact in judgement.containers.facts if isinstance(fact, Tuples)), None)
    if fact is None or (not fact.sizes[i] and not fact.complete[i]):
        return None
    start, zone = int(fact.offsets[i]), judgement.pruner.zone
    columns = [column.slice(start, int(fact.sizes[i])).to_pylist() for column in fact.columns]
    tuples = tuple(tuple(in_zone(value, zone) for value in values) for values in zip(*columns, strict=True))
    return LogicalPartitionValues(bool(fact.complete[i]), tuple(map(str, fact.terms)), tuples)


def task_dict(task: FileTask) -> dict[str, Any]:
    """A task as plain values, for JSON."""
    return {
        "path": task.path,
        "size": task.size,
        "rows": task.rows,
        "spec_id": task.spec_id,
        "partition": {
            name: {part: _plain(getattr(field, part)) for part in ("value", "source", "transform", "lower", "upper")}
            for name, field in task.partition.items()
        },
        "logical": None if task.logical is None else _plain(asdict(task.logical)),
        "verdict": task.verdict.name,
        "reason": str(task.reason),
        "residual": str(task.residual),
        "deletes": [delete.path for delete in task.deletes],
    }


def task_cells(task: FileTask) -> list[str]:
    """A task as a row of a table, for a notebook."""
    partition = ", ".join(f"{name}={field.value}" for name, field in task.partition.items())
    numbers = ["" if task.size is None else human_bytes(task.size), "" if task.rows is None else f"{task.rows:,}"]
    return [task.path, *numbers, partition, task.verdict.name, str(task.residual)]


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(part) for name, part in value.items()}
    if isinstance(value, tuple):
        return [_plain(part) for part in value]
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
