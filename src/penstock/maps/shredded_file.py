"""What is read of shredded maps in one file: the sidecar, the map, or both, by what is known of the file.

| wanted | the file's sidecar of the key | read |
|---|---|---|
| `m['k']` | answers for values | the sidecar |
| | is not to be trusted | the sidecar and the map |
| | is not there, or the key is not hot | the map |
| the whole of `m` | | the map and all sidecars that are not mere copies |

How far a sidecar can be trusted is recorded in the file's manifest entry (`formats/manifest_record.py`). A file without
a record was written by somebody else, or its manifest was: then both sidecar and map are looked at.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import pyarrow as pa

from penstock.expr.tree import Column, Expr, Lookup
from penstock.formats.manifest_record import SidecarRecord, read_sidecar_record
from penstock.maps.map_entries import field_at, first_known, lookup, merge, with_field
from penstock.maps.shred_rule import MIRROR
from penstock.maps.sidecar_columns import Sidecar
from penstock.maps.sidecar_footer import Shredded

Path = tuple[str, ...]


class State(IntEnum):
    """What a sidecar says of its key in a file, from nothing to all."""

    ABSENT = 0  # it is not there, or not to be trusted: the map alone answers
    MAYBE = 1  # the sidecar, or else the map
    VALUE = 2  # the sidecar alone answers for values
    EXACT = 3  # and for whether the key is there


def state_of(record: SidecarRecord | None, sidecar: Sidecar) -> State:
    """What a sidecar says in a file. A mirrored one is a copy, which nobody else keeps up to date."""
    if record is None:
        return State.ABSENT if sidecar.mode == MIRROR else State.MAYBE
    if sidecar.id in record.exact:
        return State.EXACT
    return State.VALUE if sidecar.id in record.value else State.ABSENT


States = tuple[State, ...]


def states_of(text: str | None, sidecars: Sequence[Sidecar]) -> States:
    """What each sidecar says in the file of a text."""
    record = read_sidecar_record(text)
    return tuple(state_of(record, sidecar) for sidecar in sidecars)


def weaker(one: States, other: States, sidecars: Sequence[Sidecar]) -> States:
    """What can be said of files of either kind."""
    return tuple(_weaker(a, b, sidecar) for a, b, sidecar in zip(one, other, sidecars, strict=True))


def _weaker(a: State, b: State, sidecar: Sidecar) -> State:
    if a == b:
        return a
    if min(a, b) >= State.VALUE:
        return State.VALUE
    return State.ABSENT if sidecar.mode == MIRROR else State.MAYBE


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

    def for_key(self, term: Lookup) -> tuple[Part | None, bool]:
        """The sidecar that a key of a map needs, and whether it needs the map."""
        path, key = _parts(term)
        own = [part for part in self.parts if part.path == path and part.key == key]
        best = max(own, key=lambda part: part.state, default=None)
        return best, best is None or best.state < State.VALUE

    def stored(self, columns: Iterable[str], keys: Iterable[Lookup]) -> set[str]:
        """The columns of the file that are read for whole columns and keys of maps."""
        needed = set(columns)
        needed |= {part.name for part in self.parts if part.path[0] in needed and not part.mirror}
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
