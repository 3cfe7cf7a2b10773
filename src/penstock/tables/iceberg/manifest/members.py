"""The logical partitions in shared files, as columns: one entry for each file and tuple, with its rows and bytes.

Only files that say all their tuples and the rows of each are told this way, and only where the table has a spec with
the fields that the file's own spec and the tuples make together: the fine one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from penstock.expr.tree import TRUE
from penstock.prune.containers import Containers
from penstock.prune.facts import Bounds, Exact, Fact, Tuples
from penstock.prune.judge import Judgement
from penstock.tables.iceberg.manifest.file_batch import FileBatch
from penstock.tables.iceberg.manifest.logical_values import Logical
from penstock.tables.iceberg.metadata.specs import Spec
from penstock.tables.iceberg.metadata.version import Version

Numbers = npt.NDArray[np.int64]


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
    total = _integers(batch.column("record_count"))
    known = logical.counted & (until[ends] - until[starts] == total)
    files = judgement.kept[known[judgement.kept]]
    sizes = (ends - starts)[files]
    of_file = np.repeat(files, sizes)
    of_tuple = np.repeat(starts[files] - np.concatenate([[0], np.cumsum(sizes)])[:-1], sizes) + np.arange(len(of_file))
    rows = logical.rows[of_tuple]
    before = until[of_tuple] - until[starts[of_file]]
    size = _integers(batch.column("file_size_in_bytes"))[of_file]
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


def _integers(array: pa.Array) -> Numbers:
    numbers: Numbers = array.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    return numbers
