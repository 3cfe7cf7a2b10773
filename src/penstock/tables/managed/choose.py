"""Hot keys that are found, not configured: a sample of the rows shows which keys of a map are worth a column.

The choice is made when the first rows are written, kept in the table's properties, and made again by `compact()`, which
brings old files to it. A sample is a bounded number of rows and of bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

import pyarrow as pa

from penstock.shred.choose import SAMPLE, choose, key_uses
from penstock.shred.nested import field_at
from penstock.shred.rule import Shred
from penstock.tables import bridge
from penstock.tables.iceberg.read import Reader
from penstock.tables.iceberg.table import IcebergTable
from penstock.tables.managed.shredding import hot_keys
from penstock.tables.managed.sidecars import set_chosen

_BYTES = 256 << 20


def choose_for(table: IcebergTable, data: Any) -> tuple[Any, Any]:
    """PyIceberg's table with keys chosen for maps whose rule says so and that have none yet, and the data itself.

    Rows that can be read only once are put back in front of the rest.
    """
    waiting = {column: rule for column, rule, keys in _auto(table) if not keys}
    if not waiting:
        return table.table, data
    names = sorted({column.partition(".")[0] for column in waiting})
    if not _has(data, names):
        return table.table, data  # whoever writes it says what is wrong with it
    sample, data = _sampled(data, names)
    chosen = _chosen(sample, waiting, {})
    return (set_chosen(table.table, chosen) if any(chosen.values()) else table.table), data


def choose_again(table: IcebergTable) -> Any:
    """PyIceberg's table with the keys that its own rows show to be worth a column."""
    auto = _auto(table)
    if not auto:
        return table.table
    names = sorted({column.partition(".")[0] for column, _, _ in auto})
    rules = {column: rule for column, rule, _ in auto}
    before = {column: keys for column, _, keys in auto}
    chosen = _chosen(sample_of(table, names), rules, before)
    changed = {column: keys for column, keys in chosen.items() if keys and list(before[column]) != keys}
    return set_chosen(table.table, changed) if changed else table.table


def sample_of(table: IcebergTable, names: Sequence[str]) -> pa.Table:
    """Some rows of a table."""
    reader = Reader(table.version, table.sources.io, table.context.timezone)
    return reader.sample(table.plan(limit=SAMPLE).files, names, SAMPLE)


def _auto(table: IcebergTable) -> list[tuple[str, Shred, Sequence[str]]]:
    """The maps whose keys are found, with their keys so far."""
    rules = hot_keys(table.table.metadata.properties)
    return [(column, rule, keys) for column, (rule, keys) in rules.items() if rule.auto]


def _chosen(sample: pa.Table, rules: Mapping[str, Shred], before: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    found = {}
    for column, rule in rules.items():
        first, *rest = column.split(".")
        maps = field_at(_whole(sample, first), rest)
        found[column] = choose(key_uses(maps), sample.num_rows, rule.most, before.get(column, ()))
    return found


def _whole(sample: pa.Table, name: str) -> pa.Array:
    given = next(column for column in sample.column_names if column.lower() == name.lower())
    column = sample.column(given)
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)


def _has(data: Any, names: Sequence[str]) -> bool:
    """Whether the rows have these columns, as maps or as something that holds them."""
    schema = getattr(data, "schema", None)
    if isinstance(schema, pa.Schema):
        return len(_given(schema, names)) == len(names)
    given = {str(name).lower() for name in getattr(data, "columns", ())}
    return hasattr(data, "mapInArrow") and all(name.lower() in given for name in names)


def _sampled(data: Any, names: Sequence[str]) -> tuple[pa.Table, Any]:
    """Some of the rows, of these columns, and all of them as they were."""
    if isinstance(data, pa.RecordBatch):
        data = pa.table(data)
    if isinstance(data, pa.Table):
        return _some(data.select(_given(data.schema, names))), data
    if isinstance(data, pa.RecordBatchReader):
        first: list[pa.RecordBatch] = []
        rows = size = 0
        for batch in data:
            first.append(batch)
            rows, size = rows + batch.num_rows, size + batch.nbytes
            if rows >= SAMPLE or size >= _BYTES:
                break
        sample = pa.Table.from_batches(first, data.schema).select(_given(data.schema, names))
        return _some(sample), pa.RecordBatchReader.from_batches(data.schema, chain(first, data))
    found: pa.Table = bridge.sample(data, names, SAMPLE)
    return found, data


def _given(schema: pa.Schema, names: Sequence[str]) -> list[str]:
    wanted = {name.lower() for name in names}
    return [name for name in schema.names if name.lower() in wanted]


def _some(table: pa.Table) -> pa.Table:
    """Rows from all over a table, in their order."""
    step = -(-table.num_rows // SAMPLE)
    return table if step <= 1 else table.take(pa.array(range(0, table.num_rows, step)))
