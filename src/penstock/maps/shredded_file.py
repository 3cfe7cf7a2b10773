"""What is read of shredded maps in one file: the sidecar, the map, or both, by what is known of the file.

| wanted | the file's sidecar of the key | read |
|---|---|---|
| `m['k']` | answers for values | the sidecar |
| | is not to be trusted | the sidecar and the map |
| | is not there, or the key is not hot | the map |
| the whole of `m` | | the map and all sidecars that are not mere copies |
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from penstock.expr.tree import Column, Expr, Lookup
from penstock.maps.merge import first_known, lookup, merge
from penstock.maps.nested_fields import field_at, with_field
from penstock.maps.shred_rule import MIRROR
from penstock.maps.sidecar_footer import Shredded
from penstock.maps.sidecar_states import State

Path = tuple[str, ...]


@dataclass(frozen=True)
class Part:
    """A sidecar of a file: its column, the map and the key that it belongs to, and how far it is to be trusted."""

    name: str
    path: Path
    key: str
    mirror: bool
    state: State


@dataclass(frozen=True)
class ShreddedFile:
    """The sidecars that are of use in one file; `maps` are all maps that may have some."""

    parts: Sequence[Part] = ()
    maps: frozenset[Path] = frozenset()

    def has(self, term: Expr) -> bool:
        """Whether a term is a key of a map that may have sidecars."""
        return isinstance(term, Lookup) and isinstance(term.container, Column) and term.container.path in self.maps

    def for_columns(self, names: Iterable[str]) -> list[str]:
        """The columns of sidecars that whole columns need."""
        wanted = set(names)
        return [part.name for part in self.parts if part.path[0] in wanted and not part.mirror]

    def for_key(self, term: Lookup) -> tuple[Part | None, bool]:
        """The sidecar that a key of a map needs, and whether it needs the map."""
        path, key = _parts(term)
        own = [part for part in self.parts if part.path == path and part.key == key]
        best = max(own, key=lambda part: part.state, default=None)
        return best, best is None or best.state < State.VALUE

    def stored(self, columns: Iterable[str], keys: Iterable[Lookup]) -> set[str]:
        """The columns of the file that are read for whole columns and keys of maps."""
        needed = {*columns, *self.for_columns(columns)}
        for term in keys:
            part, needs_map = self.for_key(term)
            needed |= {part.name} if part is not None else set()
            needed |= {_parts(term)[0][0]} if needs_map else set()
        return needed

    def key(self, term: Lookup, table: pa.Table) -> pa.Array:
        """The values of a key out of what was read."""
        part, needs_map = self.for_key(term)
        path, key = _parts(term)
        value = None if part is None else whole(table, part.name)
        if not needs_map:
            return value
        from_map = lookup(field_at(whole(table, path[0]), path[1:]), key)
        return from_map if value is None else first_known(value, from_map)

    def column(self, name: str, table: pa.Table) -> pa.Array:
        """A whole column out of what was read, its maps put together again."""
        array = whole(table, name)
        by_path: dict[Path, list[Part]] = {}
        for part in self.parts:
            if part.path[0] == name and not part.mirror:
                by_path.setdefault(part.path, []).append(part)
        for path, own in by_path.items():
            values = [whole(table, part.name) for part in own]
            trusted = all(part.state >= State.VALUE for part in own)
            maps = merge(field_at(array, path[1:]), [part.key for part in own], values, trusted=trusted)
            array = with_field(array, path[1:], maps)
        return array


def by_footer(shredded: Sequence[Shredded]) -> ShreddedFile:
    """A file that says itself what its sidecars are."""
    parts = [
        Part(name, tuple(each.column.split(".")), key, each.mode == MIRROR, State.VALUE)
        for each in shredded
        for key, name in each.sidecars
    ]
    return ShreddedFile(tuple(parts), frozenset(part.path for part in parts))


def whole(table: pa.Table, name: str) -> pa.Array:
    """A column in one piece."""
    column = table.column(name)
    if column.num_chunks == 1:
        return column.chunk(0)
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.nulls(0, column.type)  # of uuids inside too


def _parts(term: Lookup) -> tuple[Path, Any]:
    assert isinstance(term.container, Column)
    return term.container.path, getattr(term.key, "value", None)
