"""Shredded maps of an Iceberg table in Spark: which files can be read alike, and what their sidecars mean to a filter.

Files that say different things of their sidecars are relations of their own, so that a query of a hot key reads the map
only in those files that need it. There are few kinds of files in practice: those that were written by today's rule,
those before the last change of it, those of another engine. Where there are more, the rarest are read together, by what
can be said of all of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from pyiceberg.types import NestedField

from penstock.formats.manifest_record import SHREDDING
from penstock.maps.shred_rule import MIRROR
from penstock.maps.shredded_file import State, States, states_of, weaker
from penstock.maps.sidecar_columns import KNOWN, Sidecar, path_of, value_type
from penstock.prune.facts import encode
from penstock.tables.iceberg.iceberg_table import IcebergTable
from penstock.tables.iceberg.metadata.version import Version
from penstock.tables.iceberg.scan.scan_plan import data_batches

_MOST = 4


@dataclass(frozen=True)
class SidecarColumn:
    """A sidecar in a relation: its field, and the map and the key that it belongs to."""

    field: NestedField
    path: tuple[str, ...]
    key: str
    state: State
    mirror: bool
    value_type: Any

    @property
    def state_name(self) -> str:
        """What it says, as the optimizer's rule is told."""
        return f"MIRROR_{self.state.name}" if self.mirror else self.state.name


@dataclass(frozen=True)
class MapClass:
    """Files that are read alike: what their sidecars say, file by file, and what can be said of all."""

    members: frozenset[States]
    states: States

    def chosen(self, texts: Any, sidecars: Sequence[Sidecar]) -> Any:
        """Which of the files with these records belong here."""
        codes, distinct = encode(texts)
        belongs = [states_of(text, sidecars) in self.members for text in (*distinct.to_pylist(), None)]
        return np.array(belongs, np.bool_)[codes]


def map_classes(table: IcebergTable) -> list[MapClass]:
    """The kinds of files of a version; none where it has no sidecars."""
    version = table.version
    if not version.sidecars and KNOWN not in version.metadata.properties:
        return []
    counts: Counter[States] = Counter()
    for batch in data_batches(version, table.sources):
        codes, distinct = encode(batch.column(SHREDDING))
        numbers = np.bincount(codes, minlength=len(distinct) + 1).tolist()
        for text, number in zip((*distinct.to_pylist(), None), numbers, strict=True):
            if number:
                version.shredded(text)  # an error where a sidecar was dropped whose values are needed
                counts[states_of(text, version.sidecars)] += number
    if not version.sidecars:
        return []
    groups: dict[States, list[States]] = {}
    for states, _ in counts.most_common():
        groups.setdefault(tuple(min(state, State.VALUE) for state in states), []).append(states)
    kinds = list(groups.values())
    if len(kinds) > _MOST:
        kinds = [*kinds[: _MOST - 1], [states for kind in kinds[_MOST - 1 :] for states in kind]]
    classes = [
        MapClass(frozenset(kind), reduce(lambda a, b: weaker(a, b, version.sidecars), kind)) for kind in kinds if kind
    ]
    return classes or [MapClass(frozenset(), tuple(State.EXACT for _ in version.sidecars))]


def sidecar_columns(version: Version, states: States) -> tuple[SidecarColumn, ...]:
    """The sidecars that are read of files of a kind."""
    columns = []
    for sidecar, state in zip(version.sidecars, states, strict=True):
        path = path_of(version.stored, sidecar)
        if path is None or state == State.ABSENT:
            continue
        field = version.stored.find_field(sidecar.id)
        kind = value_type(version.stored, sidecar)
        columns.append(SidecarColumn(field, path, sidecar.key, state, sidecar.mode == MIRROR, kind))
    return tuple(columns)
