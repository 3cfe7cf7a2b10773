"""The files of one or more manifests of one spec, as columns, and the facts that the core prunes by.

Many small manifests are judged together. What was made of a manifest is kept and used again by the next plan: columns
are decoded when a predicate first asks about them, and never otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from operator import attrgetter
from threading import Lock
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from cachetools import LRUCache, cachedmethod
from pyiceberg.types import IcebergType

from penstock.expr.tree import Column, Expr
from penstock.formats.format_registry import DEFAULT, iceberg_format
from penstock.formats.manifest_record import LOGICAL, SHREDDING, read_sidecar_record
from penstock.maps.shredded_file import State, state_of
from penstock.maps.sidecar_columns import Sidecar, value_type
from penstock.prune.containers import Containers
from penstock.prune.facts import Bounds, Exact, Fact, encode
from penstock.tables.description import Numbers, integers
from penstock.tables.file_metadata import metadata_facts
from penstock.tables.iceberg.manifest.logical_values import Logical, read_logical
from penstock.tables.iceberg.manifest.manifest_statistics import Counts, Ends, ManifestEntries, count_rows
from penstock.tables.iceberg.metadata.schema_columns import Columns
from penstock.tables.iceberg.metadata.version import Spec, SpecField, dropped

T = TypeVar("T")

# Manifests with fewer files than this are put together.
_ENOUGH = 20_000
# Files whose columns are kept between plans.
_MOST_KEPT = 2_000_000


class HotKey(NamedTuple):
    """A key of a map that a predicate asks about, and its sidecar."""

    term: Expr
    sidecar: Sidecar


@dataclass(frozen=True, eq=False)
class FileBatch:
    """Files that share a spec, with everything their manifests say of them."""

    spec: Spec
    parts: tuple[ManifestEntries, ...]
    _made: dict[Hashable, Any] = field(default_factory=dict, repr=False)

    @cached_property
    def count(self) -> int:
        return sum(part.count for part in self.parts)

    @cached_property
    def formats(self) -> frozenset[str]:
        """The formats of the files, in lower case."""
        return frozenset[str]().union(*(part.formats for part in self.parts))

    @cached_property
    def is_readable(self) -> bool:
        """Whether all files are of a known format."""
        return all(iceberg_format(name) is not None for name in self.formats)

    def column(self, name: str) -> pa.Array:
        return self._once(("column", name), lambda: _joined([part.column(name) for part in self.parts]))

    def numbers(self, name: str) -> Numbers:
        """A column of whole numbers, 0 where one is missing."""
        return integers(self.column(name), self.count, 0)

    def partition(self, spec_field: SpecField) -> pa.Array | None:
        """The values of one partition field; None where its type is not known."""
        position, kind = spec_field.position, spec_field.type
        if kind is None:
            return None
        key = ("partition", position, kind)
        return self._once(key, lambda: _joined([part.partition(position, kind) for part in self.parts]))

    def stored(self, position: int) -> pa.Array:
        """The values of one partition field as the manifests have them."""
        return _joined([part.column("partition").field(position) for part in self.parts])

    def bounds(self, field_id: int, kind: IcebergType) -> Ends:
        """The lower and upper bounds of a column; None where its type has none."""
        lower, upper = zip(*(part.bounds(field_id, kind) for part in self.parts), strict=True)
        return _joined(lower), _joined(upper)

    def _counts(self, field_id: int) -> Counts:
        nulls, nans, values = zip(*(part.counts(field_id) for part in self.parts), strict=True)
        return _joined(nulls), _joined(nans), _joined(values)

    def logical(self, columns: Columns) -> list[Logical]:
        """Which logical values the files hold, as far as their entries say it."""
        key = ("logical", columns.key)
        return self._once(key, lambda: read_logical(self.column(LOGICAL), columns))

    def containers(self, columns: Columns, used: Sequence[Column], keys: Sequence[HotKey] = ()) -> Containers:
        """The files with what is known of the columns, and of the keys of maps, that a predicate uses."""
        paths = tuple(sorted({column.path for column in used}))
        key = ("containers", columns.key, paths, tuple(keys))
        return self._once(key, lambda: self._containers(columns, paths, keys))

    def _containers(self, columns: Columns, paths: Sequence[tuple[str, ...]], keys: Sequence[HotKey]) -> Containers:
        partition = (self._exact(spec_field) for spec_field in self.spec.fields)
        bounds = (self._bounds(columns, path) for path in paths)
        facts: list[Fact] = [fact for fact in (*partition, *bounds) if fact is not None]
        facts += [logical.fact for logical in self.logical(columns)]
        facts += [self._key_bounds(hot, columns) for hot in keys]
        names, sizes = self.column("file_path"), self.column("file_size_in_bytes")
        if any(path[0] == "_metadata" for path in paths):
            facts += metadata_facts(names.to_pylist(), sizes)
        rows = _where(pc.greater_equal(self.column("record_count"), 0), self.column("record_count"))
        shredding = self.column(SHREDDING)
        formats = None if self.formats <= {DEFAULT.name} else self.column("file_format")
        return Containers(self.count, facts, names, rows, sizes, self.spec.spec_id, shredding, formats)

    def _exact(self, spec_field: SpecField) -> Exact | None:
        values = self.partition(spec_field)
        if values is None:
            return None
        term = spec_field.term if spec_field.term is not None else dropped(spec_field)
        key = ("exact", spec_field.position, term)
        return self._once(key, lambda: Exact(term, values, name=spec_field.name))

    def _bounds(self, columns: Columns, path: tuple[str, ...]) -> Bounds | None:
        if path not in columns.ids:
            return None
        field_id, kind = columns.ids[path]
        required = path in columns.required

        def make() -> Bounds:
            nulls, nans, values = self._counts(field_id)
            rows = self.column("record_count")
            nulls, values = count_rows(nulls, values, rows, nested=len(path) > 1, required=required)
            ends, label = self.bounds(field_id, kind), f"bounds of {'.'.join(path)}"
            return Bounds(columns.by_id[field_id], *ends, nulls, nans, values, label=label)

        return self._once(("bounds", field_id, str(kind), path, required), make)

    def _key_bounds(self, hot: HotKey, columns: Columns) -> Bounds:
        """The bounds of a sidecar are those of its key in files of which it is known that the sidecar says all."""
        codes, texts = encode(self.column(SHREDDING))
        records = [*map(read_sidecar_record, texts.to_pylist()), None]
        known = pa.array(np.array([state_of(record, hot.sidecar) >= State.VALUE for record in records])[codes])
        ends = self.bounds(hot.sidecar.id, value_type(columns.schema, hot.sidecar))
        statistics = (*ends, *self._counts(hot.sidecar.id))
        lower, upper, nulls, nans, values = (_where(known, each) for each in statistics)
        return Bounds(hot.term, lower, upper, nulls, nans, values, label=f"bounds of {hot.term}")

    def _once(self, key: Hashable, make: Callable[[], T]) -> T:
        if key not in self._made:
            self._made[key] = make()
        return cast(T, self._made[key])


def _joined(parts: Sequence[pa.Array | None]) -> pa.Array | None:
    """One column out of those of several manifests; None when none of them has it."""
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    return known[0] if len(known) == 1 else pa.concat_arrays(known)


def _where(known: pa.Array, column: pa.Array | None) -> pa.Array | None:
    return None if column is None else pc.if_else(known, column, pa.scalar(None, column.type))


class Batches:
    """Batches between plans: the ones used longest ago go first."""

    def __init__(self, most: int = _MOST_KEPT) -> None:
        self._lock = Lock()
        self._kept: LRUCache[Hashable, FileBatch] = LRUCache(most, lambda batch: min(most, batch.count))

    def of(self, spec: Spec, entries: Sequence[ManifestEntries]) -> list[FileBatch]:
        """Manifests of one spec, small ones together, in their order."""
        groups: list[list[ManifestEntries]] = []
        size = 0
        for part in entries:
            size += part.count
            if groups and size <= _ENOUGH:
                groups[-1].append(part)
            else:
                groups.append([part])
                size = part.count
        return [self._batch(spec, tuple(group)) for group in groups]

    # A batch holds its manifests, so no other object has their ids while it is kept.
    @cachedmethod(attrgetter("_kept"), key=lambda _, spec, parts: (spec, *map(id, parts)), lock=attrgetter("_lock"))
    def _batch(self, spec: Spec, parts: tuple[ManifestEntries, ...]) -> FileBatch:
        return FileBatch(spec, parts)
