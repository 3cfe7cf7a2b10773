"""Rows as an Iceberg table by PyIceberg's metadata: every transform, several specs, evolved schemas, deletes.

A table goes through phases. Between two of them columns are renamed, promoted and added, the partition spec changes,
and rows are deleted by position or by value.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import parse_transform
from pyiceberg.types import (
    DecimalType,
    DoubleType,
    FloatType,
    LongType,
    NestedField,
    PrimitiveType,
)

import penstock
from tests.fixtures.iceberg_deletes import data_files, delete_by_vectors, delete_equal, delete_positions, upgraded
from tests.fixtures.iceberg_tables import NAMESPACE, catalog_at
from tests.fuzz.iceberg_file import DROPPED, by_tuple, data_file
from tests.fuzz.layout import Layout, ids_of, local
from tests.fuzz.rows import ID, Rows, physical
from tests.fuzz.uuids import as_stored, iceberg_type
from tests.fuzz.values import SCALARS, UUID

TRANSFORMS = (
    "identity",
    "bucket[3]",
    "bucket[16]",
    "truncate[3]",
    "truncate[10]",
    "year",
    "month",
    "day",
    "hour",
    "void",
)
# What a column of each type may have been before it was promoted.
_EXACT = tuple(name for name in SCALARS if name not in ("float", "double"))  # equality deletes leave floats out
_FLOATS = (FloatType, DoubleType)
_NARROWER = {"bigint": pa.int32(), "double": pa.float32(), "decimal(38,10)": pa.decimal128(18, 10)}
_WIDER = {"bigint": LongType(), "double": DoubleType(), "decimal(38,10)": DecimalType(38, 10)}


@dataclass
class _Story:
    """How a table came about, and which rows it still has."""

    table: Table
    types: dict[str, str]
    live: set[int] = field(default_factory=set)
    events: list[str] = field(default_factory=list)


def iceberg_layout(rng: Random, rows: Rows, root: Path, zone: str) -> Layout:
    """A table of one to three phases."""
    root.mkdir(parents=True)
    groups = rows.groups()
    early = groups[: max(1, len(groups) // 2)]
    narrow = {c: _NARROWER[t] for c, t in rows.types.items() if t in _NARROWER and _fits(early, c, _NARROWER[t])}
    narrow = {c: t for c, t in narrow.items() if rng.random() < 0.7}
    absent = [c for c in rows.types if c not in narrow and all(_is_null(g, c) for g in early) and rng.random() < 0.7]
    old_names = {c: f"was {i}" for i, c in enumerate(rows.types) if c not in absent and rng.random() < 0.15}
    story = _Story(_create(root, rows, narrow, absent, old_names), rows.types)
    for number, part in enumerate(_phases(rng, early, rng.choice([1, 2]))):
        _repartition(rng, story, old_names, number)
        _append(rng, story, part, old_names)
    _evolve(story, rows, narrow, absent, old_names)
    if rng.random() < 0.4:
        _delete(rng, story, rows)
    for number, part in enumerate(_phases(rng, groups[len(early) :], rng.choice([1, 1, 2]))):
        _repartition(rng, story, {}, number + 2)
        _append(rng, story, part, {})
    if rng.random() < 0.4:
        _delete(rng, story, rows)
    vectors = "delete-positions" not in story.events and rng.random() < 0.3
    if vectors:
        delete_by_vectors(story.table, _some_positions(rng, story))
        story.events.append("delete-vectors")
    files = {local(file.file_path): ids_of(local(file.file_path)) for file in data_files(story.table)}
    lake = penstock.connect(root, timezone=zone)
    name = f"{NAMESPACE}.t"
    operations = sorted({event.split()[0] for event in story.events})
    description = f"iceberg: {'; '.join(story.events)}"
    live = frozenset(story.live)
    if vectors:  # these need version 3, which PyIceberg's catalog does not write
        name = f"{NAMESPACE}.upgraded"
        catalog_at(root).register_table(name, f"file://{upgraded(story.table)}")
    return Layout("iceberg", lake.table(name), files, live, description, lake, name, operations=operations)


def _phases(rng: Random, groups: list[pa.Table], count: int) -> list[list[pa.Table]]:
    cut = rng.randrange(len(groups) + 1)
    return [part for part in ([groups] if count == 1 else [groups[:cut], groups[cut:]]) if part]


def _fits(groups: list[pa.Table], column: str, t: pa.DataType) -> bool:
    """Whether all values survive the way into the narrower type and back."""
    for group in groups:
        values = group.column(column)
        try:
            again = values.cast(t).cast(values.type)
        except pa.ArrowInvalid:
            return False
        if not again.equals(values) or (pa.types.is_floating(t) and pc.any(pc.is_nan(values)).as_py()):
            return False
    return True


def _is_null(group: pa.Table, column: str) -> bool:
    return bool(group.column(column).null_count == group.num_rows)


def _create(
    root: Path, rows: Rows, narrow: dict[str, pa.DataType], absent: list[str], old_names: dict[str, str]
) -> Table:
    fields = [f for f in rows.table.schema if f.name not in absent]
    named = [pa.field(old_names.get(f.name, f.name), narrow.get(f.name, f.type)) for f in fields]
    schema = pa.schema([*named, pa.field(DROPPED, pa.int32())])
    catalog = catalog_at(root)
    types = {old_names.get(c, c): t for c, t in rows.types.items()}
    table = catalog.create_table(f"{NAMESPACE}.plain", schema)
    typed = [
        NestedField(f.field_id, f.name, iceberg_type(f.field_type, types.get(f.name, "")), required=False)
        for f in table.schema().fields
    ]
    return catalog.create_table(f"{NAMESPACE}.t", Schema(*typed), properties={"format-version": "2"})


def _evolve(
    story: _Story, rows: Rows, narrow: dict[str, pa.DataType], absent: list[str], old_names: dict[str, str]
) -> None:
    with story.table.update_schema() as update:
        for column, old in old_names.items():
            update.rename_column(old, column)
        update.delete_column(DROPPED)
    with story.table.update_schema() as update:
        for column in narrow:
            update.update_column((column,), _WIDER[rows.types[column]])
        if absent:
            update.union_by_name(_schema_of(rows, absent))
    story.events += [f"rename {len(old_names)}"] * bool(old_names) + [f"promote {len(narrow)}"] * bool(narrow)
    story.events += [f"add {len(absent)}"] * bool(absent)
    story.table.refresh()


def _schema_of(rows: Rows, names: list[str]) -> Any:
    from pyiceberg.io.pyarrow import _pyarrow_to_schema_without_ids

    schema = _pyarrow_to_schema_without_ids(pa.schema([rows.table.schema.field(name) for name in names]))
    typed = [
        NestedField(f.field_id, f.name, iceberg_type(f.field_type, rows.types[f.name]), required=False)
        for f in schema.fields
    ]
    return Schema(*typed)


def _repartition(rng: Random, story: _Story, names: dict[str, str], number: int) -> None:
    """Another spec of up to three fields; the name of each says which phase made it."""
    known = {field.name: field for field in story.table.schema().fields}
    choices = {}
    for column in rng.sample(list(story.types), min(len(story.types), rng.choice([0, 1, 1, 2, 3]))):
        source = known.get(names.get(column, column))
        if source is None or "." in source.name or not source.field_type.is_primitive:
            continue  # PyIceberg takes a point for a field of a struct
        present = {str(f.transform) for f in story.table.spec().fields if f.source_id == source.field_id}
        fitting = [t for t in TRANSFORMS if parse_transform(t).can_transform(source.field_type) and t not in present]
        if fitting:
            choices[f"p{number}_{len(choices)}"] = (source.name, rng.choice(fitting))
    with story.table.update_spec() as update:
        for old in story.table.spec().fields:
            if str(old.transform) != "void":
                update.remove_field(old.name)
        for label, (name, transform) in choices.items():
            update.add_field(name, parse_transform(transform), label)
    story.table.refresh()
    story.events.append(f"partition by {', '.join(f'{t}({n})' for n, t in choices.values()) or 'nothing'}")


def _append(rng: Random, story: _Story, groups: list[pa.Table], names: dict[str, str]) -> None:
    table = story.table
    with table.transaction() as transaction, transaction.update_snapshot().fast_append() as update:
        for group in groups:
            for values, part in by_tuple(table, group, names):
                story.live |= set(part.column(ID).to_pylist())
                update.append_data_file(data_file(rng, table, part, values, names))
    table.refresh()
    story.events.append(f"append {len(groups)}")


def _some_positions(rng: Random, story: _Story) -> dict[str, list[int]]:
    """Places of rows in the files; the rows are not live any more."""
    positions = {}
    for file in data_files(story.table):
        ids = pq.ParquetFile(local(file.file_path)).read(columns=[ID]).column(ID).to_pylist()
        chosen = [i for i, each in enumerate(ids) if each in story.live and (rng.random() < 0.2 or not positions)]
        if chosen:
            positions[file.file_path] = chosen
            story.live -= {ids[i] for i in chosen}
    return positions


def _delete(rng: Random, story: _Story, rows: Rows) -> None:
    """Some rows by position, or by their values."""
    if rng.random() < 0.5:
        positions = _some_positions(rng, story)
        delete_positions(story.table, positions)
        story.events.append("delete-positions")
        return
    _delete_equal(rng, story, rows)


def _delete_equal(rng: Random, story: _Story, rows: Rows) -> None:
    """The rows that have the values of some of them in one or two columns, everywhere or in one partition."""
    fields = {field.name: field for field in story.table.schema().fields}
    plain = [c for c, t in rows.types.items() if c in fields and (t == UUID or t in _EXACT)]
    columns = rng.choice([[ID], *(rng.sample(plain, min(len(plain), n)) for n in (1, 1, 2))]) or [ID]
    file = rng.choice(data_files(story.table))
    spec = story.table.specs()[file.spec_id]
    kinds = [_kinds(story.table)[part.source_id] for part in spec.fields]
    is_exact = all(isinstance(kind, PrimitiveType) and not isinstance(kind, _FLOATS) for kind in kinds)
    is_scoped = is_exact and any(str(p.transform) != "void" for p in spec.fields) and rng.random() < 0.4
    reach = set(story.live)
    if is_scoped:
        same = [f for f in data_files(story.table) if (f.spec_id, f.partition) == (file.spec_id, file.partition)]
        reach &= set().union(*(ids_of(local(f.file_path)) for f in same))
    if not reach:
        return
    chosen = rows.table.take(pa.array(rng.sample(sorted(reach), min(len(reach), 4)), pa.int64())).select(columns)
    stored = [_delete_column(chosen.column(c), rows.types.get(c, "")) for c in columns]
    place = {"spec_id": file.spec_id, "partition": file.partition} if is_scoped else {}
    delete_equal(story.table, pa.table(stored, names=columns), [fields[c].field_id for c in columns], **place)
    values = list(zip(*(physical(rows.table.column(c)) for c in columns), strict=True))
    gone = set(zip(*(physical(chosen.column(c)) for c in columns), strict=True))
    story.live -= {i for i in reach if values[i] in gone}
    story.events.append(f"delete-equal by {', '.join(columns)}{' of one partition' * is_scoped}")


def _kinds(table: Table) -> dict[int, Any]:
    """The type of each column."""
    return {field.field_id: field.field_type for field in table.schema().fields}


def _delete_column(values: pa.ChunkedArray, name: str) -> pa.Array:
    whole = values.combine_chunks()
    return as_stored(whole, pa.binary(16)) if name == UUID else whole
