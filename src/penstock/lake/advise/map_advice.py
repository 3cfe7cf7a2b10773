"""The keys of a table's maps, by a sample of its rows: how many rows have each, and what a column for it would save."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from penstock.lake.layout.renames import current_properties
from penstock.lake.write.hot_key_choice import sample_of
from penstock.maps.key_scores import choose, key_uses
from penstock.maps.map_entries import field_at
from penstock.maps.shredding import hot_keys
from penstock.maps.sidecar_columns import shreddable_maps
from penstock.progress import counted
from penstock.tables.iceberg.iceberg_table import IcebergTable

_SHOWN, _MOST = 10, 16


@dataclass(frozen=True)
class KeyShare:
    """A key: the share of rows that have it, its share of the map's bytes, and whether it has a column already."""

    key: str
    rows: float
    bytes: float
    hot: bool


@dataclass(frozen=True)
class MapAdvice:
    """The keys of one map, the most costly first, and those that are worth a column of their own."""

    column: str
    sampled: int
    distinct: int
    keys: tuple[KeyShare, ...]
    suggested: tuple[str, ...]

    def lines(self) -> Iterator[str]:
        """The same for people."""
        yield f"{self.column}: {counted(self.distinct, 'key')} in {counted(self.sampled, 'row')}"
        width = max((len(key.key) for key in self.keys), default=0)
        for key in self.keys:
            kept = "has a column" if key.hot else "in the map"
            yield f"  {key.key:<{width}}  {100 * key.rows:3.0f} % of rows  {100 * key.bytes:3.0f} % of bytes  {kept}"
        known = {key.key for key in self.keys if key.hot}
        if set(self.suggested) - known:
            own = sum(key.bytes for key in self.keys if key.key in self.suggested) / max(1, len(self.suggested))
            yield f"  a query of one of these would read about {max(1, round(100 * own))} % of the map:"
            yield f"  table.set_shred({{{self.column!r}: {list(self.suggested)!r}}}) and then table.compact()"
        elif known:
            yield "  the hot keys are good as they are"
        else:
            yield "  no key is in enough rows to be worth a column"


def advise_maps(table: IcebergTable) -> tuple[MapAdvice, ...]:
    """What is to be said of the maps of a table."""
    columns = [path for path, _ in shreddable_maps(table.version.columns.schema)]
    if not columns:
        return ()
    names = sorted({path[0] for path in columns})
    sample = sample_of(table, names)
    if not sample.num_rows:
        return ()
    rules = hot_keys(current_properties(table.table.metadata))
    advice = []
    for path in columns:
        column = ".".join(path)
        before = rules[column][1] if column in rules else ()
        uses = key_uses(field_at(sample.column(path[0]).combine_chunks(), path[1:]))
        total = max(1, sum(use.bytes for use in uses))
        suggested = choose(uses, sample.num_rows, _MOST, before)
        shown = [use for i, use in enumerate(uses) if i < _SHOWN or use.key in suggested]
        keys = [KeyShare(use.key, use.rows / sample.num_rows, use.bytes / total, use.key in before) for use in shown]
        advice.append(MapAdvice(column, sample.num_rows, len(uses), tuple(keys), tuple(suggested)))
    return tuple(advice)
