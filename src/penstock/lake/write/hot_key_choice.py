"""Hot keys that are found, not configured: a sample of the rows shows which keys of a map are worth a column.

The choice is made when the first rows are written, kept in the table's properties, and made again by `compact()`, which
brings old files to it. A sample is a bounded number of rows and of bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any, NamedTuple

import pyarrow as pa
from pyiceberg.table import Table

from penstock.expr.types import normalize
from penstock.lake.layout.renames import current_properties
from penstock.lake.rule_change import set_chosen
from penstock.lake.write.rows import is_spark
from penstock.maps.key_scores import SAMPLE, choose, key_uses
from penstock.maps.map_entries import field_at
from penstock.maps.shredded_file import whole
from penstock.maps.shredding import hot_keys
from penstock.maps.sidecar_columns import map_path
from penstock.tables import bridge
from penstock.tables.iceberg.iceberg_table import IcebergTable
from penstock.tables.iceberg.scan.reader import Reader

_BYTES = 256 << 20


def choose_for(table: IcebergTable, data: Any) -> tuple[Table, Any]:
    """PyIceberg's table with keys chosen for maps whose rule says so and that have none yet, and the data itself.

    Rows that can be read only once are put back in front of the rest.
    """
    names = {str(name).lower() for name in (data.columns if is_spark(data) else data.schema.names)}
    waiting = [auto for auto in _auto(table) if not auto.keys and auto.path[0].lower() in names]
    sample, data = _sampled(data, sorted({auto.path[0] for auto in waiting})) if waiting else (None, data)
    return (table.table if sample is None else _with_chosen(table, sample, waiting)), data


def choose_again(table: IcebergTable) -> Table:
    """PyIceberg's table with the keys that its own rows show to be worth a column."""
    auto = _auto(table)
    return _with_chosen(table, sample_of(table, sorted({each.path[0] for each in auto})), auto) if auto else table.table


def sample_of(table: IcebergTable, names: Sequence[str]) -> pa.Table:
    """Some rows of a table."""
    reader = Reader(table.version, table.sources.io, table.context.timezone)
    return reader.sample(table.plan(limit=SAMPLE).files, names, SAMPLE)


class _Auto(NamedTuple):
    """A map whose keys are found: as its rule names it, its path, how many keys it may have, and those so far."""

    column: str
    path: tuple[str, ...]
    most: int
    keys: Sequence[str]


def _auto(table: IcebergTable) -> list[_Auto]:
    """The maps whose keys are found; a rule that fits no column is left out."""
    metadata = table.table.metadata
    rules = hot_keys(current_properties(metadata)).items()
    paths = ((column, map_path(metadata.schema(), column), rule, keys) for column, (rule, keys) in rules if rule.auto)
    return [_Auto(column, path, rule.most, keys) for column, path, rule, keys in paths if path is not None]


def _with_chosen(table: IcebergTable, sample: pa.Table, maps: Sequence[_Auto]) -> Table:
    """PyIceberg's table with the keys of maps that a sample shows to be worth a column."""
    chosen = {}
    for each in maps:
        keys = choose(key_uses(_maps(sample, each.path)), sample.num_rows, each.most, each.keys)
        if keys and keys != list(each.keys):
            chosen[each.column] = keys
    return set_chosen(table.table, chosen) if chosen else table.table


def _maps(sample: pa.Table, path: Sequence[str]) -> pa.Array:
    """The maps at a path, whose names rows may spell otherwise; none where rows have something else there."""
    array = whole(sample, _spelled(sample.schema, path[:1])[0])
    for name in path[1:]:
        fields = [field.name for field in array.type] if pa.types.is_struct(array.type) else []
        spelled = next((field for field in fields if field.lower() == name.lower()), None)
        array = pa.nulls(0) if spelled is None else field_at(array, [spelled])
    is_map = pa.types.is_map(array.type) and normalize(array.type.key_type) == pa.string()
    return array if is_map else pa.array([], pa.map_(pa.string(), pa.string()))


def _sampled(data: Any, names: Sequence[str]) -> tuple[pa.Table | None, Any]:
    """Some of the rows, of these columns, and all of them as they were.

    There is no sample of rows without these columns: whoever writes them says what is wrong.
    """
    if not isinstance(data, pa.Table | pa.RecordBatchReader):
        columns = {str(name).lower() for name in getattr(data, "columns", ())}
        has_all = hasattr(data, "mapInArrow") and all(name.lower() in columns for name in names)
        return (bridge.sample(data, names, SAMPLE) if has_all else None), data
    spelled = _spelled(data.schema, names)
    if len(spelled) != len(names):
        return None, data
    if isinstance(data, pa.Table):
        return _some(data.select(spelled)), data
    first: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in data:
        first.append(batch)
        rows, size = rows + batch.num_rows, size + batch.nbytes
        if rows >= SAMPLE or size >= _BYTES:
            break
    sample = pa.Table.from_batches(first, data.schema).select(spelled)
    return _some(sample), pa.RecordBatchReader.from_batches(data.schema, chain(first, data))


def _spelled(schema: pa.Schema, names: Sequence[str]) -> list[str]:
    wanted = {name.lower() for name in names}
    return [name for name in schema.names if name.lower() in wanted]


def _some(table: pa.Table) -> pa.Table:
    """Rows from all over a table, in their order."""
    step = -(-table.num_rows // SAMPLE)
    return table if step <= 1 else table.take(pa.array(range(0, table.num_rows, step)))
