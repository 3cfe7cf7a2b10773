"""Hot keys of maps on their way into files: which sidecars a table is written with, and rows split by them."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from penstock.errors import PenstockError, PenstockWarning
from penstock.formats.manifest_record import SidecarRecord
from penstock.maps.map_entries import Split, field_at, split, with_field
from penstock.maps.name_lists import read_names
from penstock.maps.shred_rule import MIRROR, PREFIX, Shred, from_properties
from penstock.maps.sidecar_columns import Sidecar, path_of, source_map
from penstock.maps.sidecar_footer import to_footer

if TYPE_CHECKING:
    from pyiceberg.schema import Schema


@dataclass(frozen=True)
class ShreddedMap:
    """A map whose hot keys are split off: its path, and the sidecars of the keys."""

    path: tuple[str, ...]
    sidecars: tuple[Sidecar, ...]

    @property
    def mode(self) -> str:
        """Whether values are moved or copied."""
        return self.sidecars[0].mode


def record_of(maps: Sequence[ShreddedMap], inexact: Set[int]) -> str:
    """How far the sidecars of a file can be trusted; `inexact` ones do not tell whether their key is there."""
    value = frozenset(sidecar.id for each in maps for sidecar in each.sidecars)
    return SidecarRecord(value, value - inexact).text()


def hot_keys(properties: Mapping[str, str]) -> dict[str, tuple[Shred, Sequence[str]]]:
    """The rules of a table with the keys that they mean now: those given, or those that were chosen."""
    return {
        column: (rule, read_names(properties.get(chosen_property(column), "")) if rule.auto else rule.keys)
        for column, rule in from_properties(properties).items()
    }


def chosen_property(column: str) -> str:
    """The property with the keys that were chosen for a map."""
    return f"{PREFIX}{column}.chosen"


def shredded_maps(
    schema: Schema, sidecars: Sequence[Sidecar], properties: Mapping[str, str]
) -> tuple[ShreddedMap, ...]:
    """The maps that are split by the rules of a table, as far as its schema has sidecars for them.

    A rule that fits no column, because another engine changed the table, is left out: maps are written whole then.
    """
    maps = []
    try:
        rules = hot_keys(properties)
    except PenstockError as error:
        warnings.warn(f"no keys of maps are split off: {error}", PenstockWarning, stacklevel=2)
        return ()
    for column, (rule, keys) in rules.items():
        try:
            source = source_map(schema, column).field_id
        except PenstockError as error:
            warnings.warn(f"no keys of {column} are split off: {error}", PenstockWarning, stacklevel=2)
            continue
        by_key = {s.key: s for s in sidecars if (s.source, s.mode) == (source, rule.mode)}
        own = tuple(by_key[key] for key in keys if key in by_key)
        path = path_of(schema, own[0]) if own else None
        if path is not None:
            maps.append(ShreddedMap(path, own))
    return tuple(maps)


def split_rows(
    table: pa.Table, maps: Sequence[ShreddedMap], types: Sequence[pa.DataType], last_wins: bool
) -> tuple[list[pa.ChunkedArray], set[int]]:
    """The columns of a table, with hot keys taken out of its maps, and the sidecars behind them in their `types`.

    Also the ids of sidecars whose key some row has without a value, or some row has no map: these are not exact.
    """
    columns = dict(zip(table.column_names, table.columns, strict=True))
    sidecars: list[pa.ChunkedArray] = []
    inexact = set[int]()
    for each in maps:
        column = columns[each.path[0]]
        done = [_split(chunk, each, last_wins) for chunk in column.chunks]
        columns[each.path[0]] = pa.chunked_array([whole for whole, _ in done], column.type)
        for i, sidecar in enumerate(each.sidecars):
            values = [part.values[i] for _, part in done]
            kind = types[len(sidecars)]
            sidecars.append(pa.chunked_array([v if v.type == kind else v.cast(kind) for v in values], kind))
            if any(part.explicit_nulls[i] or part.null_maps for _, part in done):
                inexact.add(sidecar.id)
    return [*columns.values(), *sidecars], inexact


def check_hot_keys(rows: pa.Table, maps: Sequence[ShreddedMap]) -> None:
    """An error when a map of some columns has a hot key twice."""
    for each in maps:
        if each.path[0] in rows.column_names:
            for chunk in rows.column(each.path[0]).chunks:
                _split(chunk, each, last_wins=False)


def _split(chunk: pa.Array, each: ShreddedMap, last_wins: bool) -> tuple[pa.Array, Split]:
    """One piece of a column without its hot keys, and what was split off."""
    keys = [sidecar.key for sidecar in each.sidecars]
    done = split(field_at(chunk, each.path[1:]), keys, mirror=each.mode == MIRROR, last_wins=last_wins)
    return with_field(chunk, each.path[1:], done.residual), done


def footer_of(maps: Sequence[ShreddedMap], written: Schema) -> dict[str, str]:
    """What the footer of a file says of its sidecars; `written` is the schema with the names that the file has."""
    return to_footer(
        (
            ".".join(path_of(written, each.sidecars[0]) or each.path),
            each.mode,
            {sidecar.key: written.find_field(sidecar.id).name for sidecar in each.sidecars},
        )
        for each in maps
    )
