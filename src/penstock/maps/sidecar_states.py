"""How far a file's sidecars can be trusted, by what its manifest entry records of them (`formats/manifest_record.py`).

A file without a record was written by somebody else, or its manifest was: then both sidecar and map are looked at.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum

from penstock.formats.manifest_record import SidecarRecord, read_sidecar_record
from penstock.maps.shred_rule import MIRROR
from penstock.maps.sidecar_columns import Sidecar


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
