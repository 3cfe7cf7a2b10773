"""Hot keys that are found, not configured: a sample of the rows shows which keys of a map are worth a column.

The choice is made when the first rows are written, kept in the table's properties, and made again by `compact()`, which
brings old files to it. A sample is a bounded number of rows and of bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from penstock.expr.types import normalize
from penstock.lake.layout.renames import current_properties
from penstock.lake.write.new_sidecars import set_chosen
from penstock.maps.key_scores import SAMPLE, choose, key_uses
from penstock.maps.nested_fields import field_at
from penstock.maps.shredding import hot_keys
from penstock.maps.sidecar_columns import map_path
from penstock.tables import bridge
from penstock.tables.iceberg.iceberg_table import IcebergTable
from penstock.tables.iceberg.scan.reader import Reader

if TYPE_CHECKING:
    from pyiceberg.table import Table

_BYTES = 256 << 20


def choose_for(table: IcebergTable, data: Any) -> tuple[Table, Any]:
    """PyIceberg's table with keys chosen for maps whose rule says so and that have none yet, and the data itself.

    Rows that can be read only once are put back in front of the rest.
    """
    waiting = [auto for auto in _auto(table) if not auto.keys]
    if not waiting:
        return table.table, data
    names = sorted({auto.path[0] for auto in waiting})
    if not _has(data, names):
        return table.table, data  # whoever writes it says what is wrong with it
    sample, data = _sampled(data, names)
    chosen = _chosen(sample, waiting)
    return (set_chosen(table.table, chosen) if any(chosen.values()) else table.table), data


def choose_again(table: IcebergTable) -> Table:
    """PyIceberg's table with the keys that its own rows show to be worth a column."""
    auto = _auto(table)
    if not auto:
        return table.table
    chosen = _chosen(sample_of(table, sorted({each.path[0] for each in auto})), auto)
    before = {each.column: list(each.keys) for each in auto}
    changed = {column: keys for column, keys in chosen.items() if keys and before[column] != keys}
    return set_chosen(table.table, changed) if changed else table.table


def sample_of(table: IcebergTable, names: Sequence[str]) -> pa.Table:
    """Some rows of a table."""
    reader = Reader(table.version, table.sources.io, table.context.timezone)
    return reader.sample(table.plan(limit=SAMPLE).files, names, SAMPLE)


@dataclass(frozen=True)
class _Auto:
    """A map whose keys are found: as its rule names it, its path, how many keys it may have, and those so far."""

    column: str
    path: tuple[str, ...]
    most: int
    keys: Sequence[str]


def _auto(table: IcebergTable) -> list[_Auto]:
    """The maps whose keys are found; a rule that fits no column is left out."""
    metadata = table.table.metadata
    rules = hot_keys(current_properties(metadata)).items()
    candidates = [
        (column, map_path(metadata.schema(), column), rule, keys) for column, (rule, keys) in rules if rule.auto
    ]
    return [_Auto(column, path, rule.most, keys) for column, path, rule, keys in candidates if path is not None]


def _chosen(sample: pa.Table, maps: Sequence[_Auto]) -> dict[str, list[str]]:
    chosen = {}
    for each in maps:
        uses = key_uses(_maps(sample, each.path))
        chosen[each.column] = choose(uses, sample.num_rows, each.most, each.keys)
    return chosen


def _maps(sample: pa.Table, path: Sequence[str]) -> pa.Array:
    """The maps at a path, whose names rows may spell otherwise; none where rows have something else there."""
    column = sample.column(_spelled(sample.schema, path[:1])[0])
    array = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    for name in path[1:]:
        fields = [field.name for field in array.type] if pa.types.is_struct(array.type) else []
        spelled = next((field for field in fields if field.lower() == name.lower()), None)
        array = pa.nulls(0) if spelled is None else field_at(array, [spelled])
    is_map = pa.types.is_map(array.type) and normalize(array.type.key_type) == pa.string()
    return array if is_map else pa.array([], pa.map_(pa.string(), pa.string()))


def _has(data: Any, names: Sequence[str]) -> bool:
    """Whether the rows have these columns, as maps or as something that holds them."""
    schema = getattr(data, "schema", None)
    if isinstance(schema, pa.Schema):
        return len(_spelled(schema, names)) == len(names)
    columns = {str(name).lower() for name in getattr(data, "columns", ())}
    return hasattr(data, "mapInArrow") and all(name.lower() in columns for name in names)


def _sampled(data: Any, names: Sequence[str]) -> tuple[pa.Table, Any]:
    """Some of the rows, of these columns, and all of them as they were."""
    if isinstance(data, pa.RecordBatch):
        data = pa.table(data)
    if isinstance(data, pa.Table):
        return _some(data.select(_spelled(data.schema, names))), data
    if isinstance(data, pa.RecordBatchReader):
        first: list[pa.RecordBatch] = []
        rows = size = 0
        for batch in data:
            first.append(batch)
            rows, size = rows + batch.num_rows, size + batch.nbytes
            if rows >= SAMPLE or size >= _BYTES:
                break
        sample = pa.Table.from_batches(first, data.schema).select(_spelled(data.schema, names))
        return _some(sample), pa.RecordBatchReader.from_batches(data.schema, chain(first, data))
    return bridge.sample(data, names, SAMPLE), data


def _spelled(schema: pa.Schema, names: Sequence[str]) -> list[str]:
    wanted = {name.lower() for name in names}
    return [name for name in schema.names if name.lower() in wanted]


def _some(table: pa.Table) -> pa.Table:
    """Rows from all over a table, in their order."""
    step = -(-table.num_rows // SAMPLE)
    return table if step <= 1 else table.take(pa.array(range(0, table.num_rows, step)))
