"""Which logical values files hold: facts made of what their manifest entries record (`formats/manifest_record.py`).

A text that is about a column that is no more says nothing, as one that cannot be read: such a file is kept.

The *members* of a file are the logical partitions in it, as columns: one entry for each file and tuple, with its rows
and bytes. Only files that say all their tuples and the rows of each have them, and only where the table has a spec with
the fields that the file's own spec and the tuples make together: the fine one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID

import numpy as np
import pyarrow as pa
from pyiceberg.conversions import from_json

from penstock.expr.kernels.physical import from_arrow, to_arrow
from penstock.expr.kernels.vector import Mask
from penstock.expr.tree import TRUE
from penstock.formats.manifest_record import LogicalTuples, read_tuples
from penstock.prune.containers import Containers
from penstock.prune.facts import Bounds, Exact, Fact, Tuples
from penstock.prune.judge import Judgement
from penstock.tables.description import Numbers, joined
from penstock.tables.iceberg.metadata.schema_columns import Columns
from penstock.tables.iceberg.metadata.version import Spec, Version

if TYPE_CHECKING:
    from penstock.tables.iceberg.manifest.file_batch import FileBatch

Ids = tuple[int, ...]


class Logical(NamedTuple):
    """What the texts of a batch say of one set of columns: a fact, and the rows of each of its tuples.

    `counted` marks the files that say their rows; the others have 0 for each tuple.
    """

    ids: Ids
    fact: Tuples
    rows: Numbers
    counted: Mask

    @property
    def until(self) -> Numbers:
        """The rows of all tuples before each, and behind them those of all."""
        return np.concatenate([[0], np.cumsum(self.rows)])


def read_logical(texts: pa.Array, columns: Columns) -> list[Logical]:
    """What the texts of a batch of files say: one fact for each set of columns that they are about."""
    if texts.null_count == len(texts):
        return []
    records = [read_tuples(text) for text in texts.to_pylist()]
    sets = dict.fromkeys(record.ids for record in records if record is not None)
    return [_logical(ids, records, columns) for ids in sets if all(i in columns.by_id for i in ids)]


def _logical(ids: Ids, records: Sequence[LogicalTuples | None], columns: Columns) -> Logical:
    terms = tuple(columns.by_id[i] for i in ids)
    kinds = [columns.schema.find_field(i).field_type for i in ids]
    types = [term.type for term in terms]
    own = [record if record is not None and record.ids == ids else None for record in records]
    decoded = [None if record is None else _decoded(record.tuples, kinds, types) for record in own]
    offsets = np.cumsum([0, *(0 if arrays is None else len(arrays[0]) for arrays in decoded)], dtype=np.int64)
    parts = [arrays for arrays in decoded if arrays is not None]
    values = tuple(pa.concat_arrays([pa.array([], t), *(arrays[i] for arrays in parts)]) for i, t in enumerate(types))
    fact = Tuples(terms, values, offsets, np.array([arrays is not None for arrays in decoded], np.bool_))
    known = [None if arrays is None else record for record, arrays in zip(own, decoded, strict=True)]
    rows = [record.rows or [0] * len(record.tuples) for record in known if record is not None]
    counted = [record is not None and record.rows is not None for record in known]
    return Logical(ids, fact, joined(np.array(each, np.int64) for each in rows), np.array(counted, np.bool_))


def _decoded(tuples: list[list[Any]], kinds: Sequence[Any], types: Sequence[Any]) -> list[pa.Array] | None:
    """The tuples of one file as columns; None where a value is none of its type: then nothing is known."""
    try:
        return [
            _array([None if values[i] is None else from_json(kind, values[i]) for values in tuples], t)
            for i, (kind, t) in enumerate(zip(kinds, types, strict=True))
        ]
    except (  # what PyIceberg and Arrow raise for a value that is not of its type; the file is kept then
        ArithmeticError,
        AttributeError,
        LookupError,
        NotImplementedError,
        TypeError,
        ValueError,
        pa.ArrowException,
    ):
        return None


def _array(values: list[Any], to: pa.DataType | None) -> pa.Array:
    """Values as PyIceberg has them: dates and times are numbers or Python's own."""
    plain = [str(value) if isinstance(value, UUID) else value for value in values]
    numbers = all(value is None or isinstance(value, int) for value in plain)
    return to_arrow(plain, to) if numbers else to_arrow(from_arrow(pa.array(plain, to)), to)


@dataclass(frozen=True)
class Members:
    """What lies in some files of a batch; `files` are all of them, also those of whose members none can match."""

    batch: FileBatch
    spec: Spec  # the fine one
    logical: Logical
    files: Numbers
    of_file: Numbers  # the file of each member
    places: Numbers  # where each stands among all tuples of the batch

    @property
    def rows(self) -> Numbers:
        return self.logical.rows[self.places]

    @property
    def bytes(self) -> Numbers:
        """The bytes of each: those of its file, divided by rows."""
        before = self.logical.until[self.places] - self.logical.until[self.logical.fact.offsets[self.of_file]]
        rows, sizes = self.batch.numbers("record_count"), self.batch.numbers("file_size_in_bytes")
        size, total = sizes[self.of_file], rows[self.of_file]
        return _share(size, before + self.rows, total) - _share(size, before, total)

    @property
    def shared(self) -> Numbers:
        """1 where the file holds other members too."""
        return (self.logical.fact.sizes[self.of_file] > 1).astype(np.int64)

    def values(self) -> list[pa.Array | None]:
        """The values of the fine spec's fields, from those of the file's own spec and from the tuples."""
        at = {(field.source_id, field.transform): self.of_file for field in self.batch.spec.fields}
        columns = {(field.source_id, field.transform): self.batch.partition(field) for field in self.batch.spec.fields}
        for field_id, column in zip(self.logical.ids, self.logical.fact.columns, strict=True):
            at[field_id, "identity"], columns[field_id, "identity"] = self.places, column
        shown: list[pa.Array | None] = []
        for field in self.spec.fields:
            key = (field.source_id, field.transform)
            values: Any = columns.get(key)
            is_unknown = values is None or field.type is None
            shown.append(None if is_unknown else values.take(pa.array(at[key])).cast(field.type))
        return shown


def members_of(version: Version, batch: FileBatch, judgement: Judgement) -> Iterator[Members]:
    """The logical partitions in the kept files of a batch, as far as they are known and can match."""
    for logical in batch.logical(version.columns):
        fine = _fine(version, batch.spec, logical.ids)
        if fine is not None:
            yield _matching(_members(fine, batch, judgement, logical), judgement, logical)


def _fine(version: Version, spec: Spec, ids: tuple[int, ...]) -> Spec | None:
    """The spec that has the fields of another and these columns; the newest, the default before all."""
    wanted = spec.sources | {(i, "identity") for i in ids}
    specs = [each for each in version.specs.values() if each.sources == wanted]
    default = version.metadata.default_spec_id
    return max(specs, key=lambda each: (each.spec_id == default, each.spec_id), default=None)


def _members(fine: Spec, batch: FileBatch, judgement: Judgement, logical: Logical) -> Members:
    starts, ends = logical.fact.offsets[:-1], logical.fact.offsets[1:]
    known = logical.counted & (logical.until[ends] - logical.until[starts] == batch.numbers("record_count"))
    files = judgement.kept[known[judgement.kept]]
    sizes = logical.fact.sizes[files]
    places = np.repeat(starts[files] - np.concatenate([[0], np.cumsum(sizes)])[:-1], sizes) + np.arange(sizes.sum())
    return Members(batch, fine, logical, files, np.repeat(files, sizes), places)


def _share(size: Numbers, rows: Numbers, total: Numbers) -> Numbers:
    """The bytes of the first rows of a file, so that those of all its members add up to the file's."""
    total = np.maximum(total, 1)
    return size // total * rows + size % total * rows // total


def _matching(members: Members, judgement: Judgement, logical: Logical) -> Members:
    """Only the members that can match: each is judged by its own values and by what is known of its file."""
    if judgement.pruner.predicate == TRUE:
        return members
    facts = [_of_members(fact, members.of_file) for fact in judgement.containers.facts if not isinstance(fact, Tuples)]
    places = pa.array(members.places)
    facts += [Exact(fact.term, fact.values.take(places)) for fact in logical.fact.exact]
    kept = judgement.pruner.judge(Containers(len(members.of_file), facts)).kept
    return replace(members, of_file=members.of_file[kept], places=members.places[kept])


def _of_members(fact: Exact | Bounds, of_file: Numbers) -> Fact:
    """A fact about files as one about their members: what holds for all rows of a file holds for some of them.

    Counts are only ever asked whether there are none, or nothing else, which holds for a part as well.
    """
    at = pa.array(of_file)
    if isinstance(fact, Exact):
        return replace(fact, values=fact.values.take(at), known=None if fact.known is None else fact.known[of_file])
    columns = {name: getattr(fact, name) for name in ("lower", "upper", "null_count", "nan_count", "value_count")}
    taken: dict[str, Any] = {name: None if column is None else column.take(at) for name, column in columns.items()}
    return replace(fact, **taken, upper_cut=None if fact.upper_cut is None else fact.upper_cut[of_file])
