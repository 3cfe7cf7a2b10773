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
import numpy.typing as npt
import pyarrow as pa

from penstock.expr.kernels.python_values import from_arrow, to_arrow
from penstock.expr.tree import TRUE
from penstock.formats.manifest_record import LogicalTuples, read_tuples
from penstock.prune.containers import Containers
from penstock.prune.facts import Bounds, Exact, Fact, Tuples
from penstock.prune.judge import Judgement
from penstock.tables.description import Numbers, integers
from penstock.tables.iceberg.metadata.schema_columns import Columns
from penstock.tables.iceberg.metadata.specs import Spec

if TYPE_CHECKING:
    from penstock.tables.iceberg.manifest.file_batch import FileBatch
    from penstock.tables.iceberg.metadata.version import Version

Ids = tuple[int, ...]


class Logical(NamedTuple):
    """What the texts of a batch say of one set of columns: a fact, and the rows of each of its tuples.

    `counted` marks the files that say their rows; the others have 0 for each tuple.
    """

    ids: Ids
    fact: Tuples
    rows: npt.NDArray[np.int64]
    counted: npt.NDArray[np.bool_]


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
    joined = tuple(pa.concat_arrays([pa.array([], t), *(arrays[i] for arrays in parts)]) for i, t in enumerate(types))
    fact = Tuples(terms, joined, offsets, np.array([arrays is not None for arrays in decoded], np.bool_))
    known = [record for record, arrays in zip(own, decoded, strict=True) if record is not None and arrays is not None]
    rows = [np.array([0] * len(record.tuples) if record.rows is None else record.rows, np.int64) for record in known]
    counted = [
        record is not None and arrays is not None and record.rows is not None
        for record, arrays in zip(own, decoded, strict=True)
    ]
    return Logical(ids, fact, np.concatenate([np.array([], np.int64), *rows]), np.array(counted, np.bool_))


def _decoded(tuples: list[list[Any]], kinds: Sequence[Any], types: Sequence[Any]) -> list[pa.Array] | None:
    """The tuples of one file as columns; None where a value is none of its type: then nothing is known."""
    from pyiceberg.conversions import from_json

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

    spec: Spec  # the fine one
    files: Numbers
    of_file: Numbers  # the file of each member
    places: Numbers  # where each stands among all tuples of the batch
    rows: Numbers
    bytes: Numbers
    shared: Numbers  # 1 where the file holds other members too
    coarse: Spec
    ids: tuple[int, ...]
    logical: Sequence[pa.Array]

    def values(self, own: Sequence[pa.Array | None]) -> list[pa.Array | None]:
        """The values of the fine spec's fields; `own` are those of the file's spec, one for each member."""
        known: dict[Any, pa.Array | None] = {
            (field.source_id, field.transform): values for field, values in zip(self.coarse.fields, own, strict=True)
        }
        known |= {(i, "identity"): values for i, values in zip(self.ids, self.logical, strict=True)}
        arrays = [known.get((field.source_id, field.transform)) for field in self.spec.fields]
        return [
            None if values is None or field.type is None else values.cast(field.type)
            for field, values in zip(self.spec.fields, arrays, strict=True)
        ]


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
    until = np.concatenate([[0], np.cumsum(logical.rows)])
    total = integers(batch.column("record_count"), batch.count, 0)
    known = logical.counted & (until[ends] - until[starts] == total)
    files = judgement.kept[known[judgement.kept]]
    sizes = (ends - starts)[files]
    of_file = np.repeat(files, sizes)
    of_tuple = np.repeat(starts[files] - np.concatenate([[0], np.cumsum(sizes)])[:-1], sizes) + np.arange(len(of_file))
    rows = logical.rows[of_tuple]
    before = until[of_tuple] - until[starts[of_file]]
    size = integers(batch.column("file_size_in_bytes"), batch.count, 0)[of_file]
    shares = _share(size, before + rows, total[of_file]) - _share(size, before, total[of_file])
    at = pa.array(of_tuple)
    values = [array.take(at) for array in logical.fact.columns]
    shared = np.repeat((sizes > 1).astype(np.int64), sizes)
    return Members(fine, files, of_file, of_tuple, rows, shares, shared, batch.spec, logical.ids, values)


def _share(size: Numbers, rows: Numbers, total: Numbers) -> Numbers:
    """The bytes of the first rows of a file, so that those of all its members add up to the file's."""
    total = np.maximum(total, 1)
    return size // total * rows + size % total * rows // total


def _matching(members: Members, judgement: Judgement, logical: Logical) -> Members:
    """Only the members that can match: each is judged by its own values and by what is known of its file."""
    if judgement.pruner.predicate == TRUE:
        return members
    facts = [_of_members(fact, members.of_file) for fact in judgement.containers.facts if not isinstance(fact, Tuples)]
    facts += [Exact(term, values) for term, values in zip(logical.fact.terms, members.logical, strict=True)]
    kept = judgement.pruner.judge(Containers(len(members.of_file), facts)).kept
    return replace(
        members,
        of_file=members.of_file[kept],
        places=members.places[kept],
        rows=members.rows[kept],
        bytes=members.bytes[kept],
        shared=members.shared[kept],
        logical=[values.take(pa.array(kept)) for values in members.logical],
    )


def _of_members(fact: Exact | Bounds, of_file: Numbers) -> Fact:
    """A fact about files as one about their members: what holds for all rows of a file holds for some of them.

    Counts are only ever asked whether there are none, or nothing else, which holds for a part as well.
    """
    at = pa.array(of_file)
    if isinstance(fact, Exact):
        return replace(fact, values=fact.values.take(at), known=None if fact.known is None else fact.known[of_file])
    ends = [_take(ends, at) for ends in (fact.lower, fact.upper)]
    counts = [_take(count, at) for count in (fact.null_count, fact.nan_count, fact.value_count)]
    cut = None if fact.upper_cut is None else fact.upper_cut[of_file]
    return Bounds(fact.term, ends[0], ends[1], counts[0], counts[1], counts[2], cut, fact.label)


def _take(column: pa.Array | None, at: pa.Array) -> pa.Array | None:
    return None if column is None else column.take(at)
