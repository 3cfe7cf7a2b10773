"""What is read of shredded maps in one file: the sidecar, the map, or both, by what is recorded of the file.

| wanted | the file's sidecar of the key | read |
|---|---|---|
| `m['k']` | answers for values | the sidecar |
| | is not to be trusted | the sidecar and the map |
| | is not there, or the key is not hot | the map |
| the whole of `m` | | the map and all sidecars that are not mere copies |
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa

from penstock.predicate.tree import Column, Lookup
from penstock.shred.merge import first_known, lookup, merge
from penstock.shred.nested import field_at, with_field
from penstock.shred.record import State, states_of
from penstock.shred.rule import MIRROR
from penstock.shred.sidecars import Sidecar, path_of
from penstock.tables.iceberg.version import Version


@dataclass(frozen=True)
class ShreddedFile:
    """The sidecars of one file, with what they say there."""

    version: Version
    shredding: str | None

    @cached_property
    def _states(self) -> list[tuple[Sidecar, tuple[str, ...], State]]:
        """The sidecars that are of use in this file, with the paths of their maps."""
        sidecars = self.version.sidecars
        found = zip(sidecars, states_of(self.shredding, sidecars), strict=True)
        paths = [(sidecar, path_of(self.version.stored, sidecar), state) for sidecar, state in found]
        return [(sidecar, path, state) for sidecar, path, state in paths if path is not None and state > State.ABSENT]

    def has(self, term: Lookup) -> bool:
        """Whether a key is of a map that has sidecars."""
        return isinstance(term.container, Column) and term.container.path in self._shredded

    @cached_property
    def _shredded(self) -> set[tuple[str, ...] | None]:
        return {path_of(self.version.stored, sidecar) for sidecar in self.version.sidecars}

    def for_columns(self, names: Iterable[str]) -> list[Sidecar]:
        """The sidecars that whole columns need."""
        wanted = set(names)
        return [s for s, path, _ in self._states if path[0] in wanted and s.mode != MIRROR]

    def for_key(self, term: Lookup) -> tuple[Sidecar | None, bool]:
        """The sidecar that a key of a map needs, and whether it needs the map."""
        path, key = _parts(term)
        own = [(sidecar, state) for sidecar, its, state in self._states if its == path and sidecar.key == key]
        sidecar, state = max(own, key=lambda each: each[1], default=(None, State.ABSENT))
        return sidecar, state < State.VALUE

    def key(self, term: Lookup, table: pa.Table) -> pa.Array:
        """The values of a key out of what was read."""
        sidecar, needs_map = self.for_key(term)
        path, key = _parts(term)
        value = None if sidecar is None else _whole(table, sidecar.name)
        if not needs_map:
            return value
        found = lookup(field_at(_whole(table, path[0]), path[1:]), key)
        return found if value is None else first_known(value, found)

    def column(self, name: str, table: pa.Table) -> pa.Array:
        """A whole column out of what was read, its maps put together again."""
        array = _whole(table, name)
        by_path: dict[tuple[str, ...], list[tuple[Sidecar, State]]] = {}
        for sidecar, path, state in self._states:
            if path[0] == name and sidecar.mode != MIRROR:
                by_path.setdefault(path, []).append((sidecar, state))
        for path, own in by_path.items():
            values = [_whole(table, sidecar.name) for sidecar, _ in own]
            trusted = all(state >= State.VALUE for _, state in own)
            keys = [sidecar.key for sidecar, _ in own]
            array = with_field(array, path[1:], merge(field_at(array, path[1:]), keys, values, trusted=trusted))
        return array


def _parts(term: Lookup) -> tuple[tuple[str, ...], Any]:
    assert isinstance(term.container, Column)
    return term.container.path, getattr(term.key, "value", None)


def _whole(table: pa.Table, name: str) -> pa.Array:
    column = table.column(name)
    array = column.combine_chunks()
    if isinstance(array, pa.ChunkedArray):
        array = array.chunk(0) if array.num_chunks else pa.array([], array.type)
    return array
