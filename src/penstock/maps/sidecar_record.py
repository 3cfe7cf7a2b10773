"""How far a file's sidecars can be trusted: the text that its manifest entry carries.

    {"value": [11, 12], "exact": [12]}

Numbers are field ids of sidecars. `value`: wherever the key has a value, the sidecar has it, so the map need not be
read for it. `exact`: moreover no row has the key without a value, and none has no map: then a null sidecar says that
the key is not there. A sidecar that a text does not name is not in the file; its key is in the map alone.

A file without such a text, or with one that cannot be read, was written by somebody else, or its manifest was: then
both are looked at.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

from penstock.maps.shred_rule import MIRROR
from penstock.maps.sidecar_columns import Sidecar


class State(IntEnum):
    """What a sidecar says of its key in a file, from nothing to all."""

    ABSENT = 0  # it is not there, or not to be trusted: the map alone answers
    MAYBE = 1  # the sidecar, or else the map
    VALUE = 2  # the sidecar alone answers for values
    EXACT = 3  # and for whether the key is there


@dataclass(frozen=True)
class Record:
    """The sidecars of one file, by their field ids."""

    value: frozenset[int]
    exact: frozenset[int]

    def text(self) -> str:
        """What the manifest entry carries."""
        return json.dumps({"value": sorted(self.value), "exact": sorted(self.exact)})


def read_record(text: str | None) -> Record | None:
    """What a manifest entry says; None where it says nothing that can be read."""
    try:
        told = json.loads(text) if text else None
        if not isinstance(told, dict):
            return None
        value, exact = told["value"], told["exact"]
        if not all(type(i) is int for i in (*value, *exact)):
            return None
        return Record(frozenset(value), frozenset(exact) & frozenset(value))
    except (ValueError, KeyError, TypeError):
        return None


def state_of(record: Record | None, sidecar: Sidecar) -> State:
    """What a sidecar says in a file. A mirrored one is a copy, which nobody else keeps up to date."""
    if record is None:
        return State.ABSENT if sidecar.mode == MIRROR else State.MAYBE
    if sidecar.id in record.exact:
        return State.EXACT
    return State.VALUE if sidecar.id in record.value else State.ABSENT


States = tuple[State, ...]


def states_of(text: str | None, sidecars: Sequence[Sidecar]) -> States:
    """What each sidecar says in the file of a text."""
    record = read_record(text)
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
