"""Where the rows of a table lie: the fine spec, the coarse one of shared files, and the names of directories.

A table that is partitioned by (day(ts), app) and coalesces app has two specs. The fine one, its default, is for logical
partitions with files of their own. The coarse one, day(ts), is for files that several values of app share; those
lie in the physical partition `app=[#small]`. That name is only part of a path: no column ever holds it.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from typing import Any
from urllib.parse import quote_plus

import pyarrow as pa
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema, sanitize_column_names
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.update import AddPartitionSpecUpdate, TableUpdate
from pyiceberg.transforms import Transform
from pyiceberg.types import IcebergType, NestedField

from penstock.errors import LakeError, PenstockWarning
from penstock.formats.manifest_record import read_sidecar_record
from penstock.lake.layout.coalesce import FIELD_IDS, Coalesce, as_stored, from_properties, to_properties
from penstock.lake.layout.renames import current_properties, field_ids
from penstock.maps.shred_rule import DUPLICATES, LAST_WINS, REJECT
from penstock.maps.shredding import ShreddedMap, check_hot_keys, footer_of, shredded_maps, split_rows
from penstock.maps.sidecar_columns import read_sidecars, visible

SMALL = "[#small]"
_LONGEST = 150
_DAYS = range(-719_162, 2_932_897)  # of the years 1 to 9999
_MICROSECONDS = range(_DAYS.start * 86_400_000_000, _DAYS.stop * 86_400_000_000)
_CALENDAR = {"date": _DAYS, "timestamp": _MICROSECONDS, "timestamptz": _MICROSECONDS}
Tuple = tuple[Any, ...]


@dataclass(frozen=True)
class Layout:
    """The specs that a table is written by; without a rule there is no coarse one.

    `schema` is what people see. Files have the sidecars of `maps` behind those columns.
    """

    schema: Schema
    fine: PartitionSpec
    coarse: PartitionSpec | None = None
    rule: Coalesce | None = None
    maps: tuple[ShreddedMap, ...] = ()
    sidecars: tuple[NestedField, ...] = ()  # the fields of all sidecars that the table has
    last_wins: bool = False

    @property
    def names(self) -> list[str]:
        """The columns that people see."""
        return [field.name for field in self.schema.fields]

    @property
    def coarse_id(self) -> int | None:
        """The spec of shared files; None where there are none."""
        return None if self.coarse is None else self.coarse.spec_id

    @cached_property
    def shared(self) -> list[int]:
        """The places of the logical columns in a fine tuple."""
        return [i for i, field in enumerate(self.fine.fields) if self._is_logical(field)]

    @cached_property
    def kept(self) -> list[int]:
        """The places in a fine tuple that a coarse one has too."""
        return [i for i, field in enumerate(self.fine.fields) if not self._is_logical(field)]

    @cached_property
    def logical_ids(self) -> list[int]:
        """The field ids of the logical columns, in the order of a fine tuple."""
        return [self.fine.fields[i].source_id for i in self.shared]

    @cached_property
    def logical_kinds(self) -> list[IcebergType]:
        """Iceberg's types of the logical columns."""
        return [self.schema.find_field(i).field_type for i in self.logical_ids]

    def coarse_tuple(self, fine: Tuple) -> Tuple:
        """The part of a fine tuple that a shared file's partition has."""
        return tuple(fine[i] for i in self.kept)

    def logical_tuple(self, fine: Tuple) -> Tuple:
        """The part of a fine tuple that is only in a shared file's rows."""
        return tuple(fine[i] for i in self.shared)

    def fine_tuple(self, coarse: Tuple, logical: Tuple) -> Tuple:
        """A fine tuple out of both parts."""
        both = coarse + logical
        return tuple([both[i] for i in self._order])

    @cached_property
    def _order(self) -> list[int]:
        """Where each value of a fine tuple stands among those of the coarse one and the logical ones behind it."""
        places = [*self.kept, *self.shared]
        return [places.index(i) for i in range(len(places))]

    def shares(self, fine: Tuple, size: float) -> bool:
        """Whether a logical partition of so many bytes shares files."""
        if self.rule is None or self.coarse is None:
            return False
        if any(fine[i] is not None and fine[i] not in calendar for i, calendar in self._calendar):
            return False  # a record cannot name a date that Python's calendar does not have
        return self.rule.shares(tuple(fine[i] for i in self._rule_places), size)

    @property
    def record_bytes(self) -> int:
        """How long the record of a shared file's logical partitions may be."""
        assert self.rule is not None
        return max(1, self.rule.record_bytes)

    def directory(self, partition: Tuple, is_shared: bool) -> str:
        """The directory of a partition below the data's, escaped as Hive and Iceberg do."""
        values = iter(partition)
        parts = []
        for field in self.fine.fields:
            if is_shared and self._is_logical(field):
                text = SMALL
            else:
                source = self.schema.find_field(field.source_id).field_type
                text = _text(field.transform, source, next(values))
            parts.append(f"{quote_plus(field.name)}={_short(text)}")
        return "/".join(parts)

    @cached_property
    def written(self) -> Schema:
        """Iceberg's schema of files, with their names for odd columns."""
        by_id = {field.field_id: field for field in self.sidecars}
        used = [by_id[sidecar.id] for each in self.maps for sidecar in each.sidecars]
        return sanitize_column_names(Schema(*self.schema.fields, *used))

    @cached_property
    def files(self) -> pa.Schema:
        """Arrow's schema of the table's files, field ids included."""
        from pyiceberg.io.pyarrow import schema_to_pyarrow

        schema: pa.Schema = schema_to_pyarrow(self.written, include_field_ids=True)
        return schema.with_metadata(footer_of(self.maps, self.written)) if self.maps else schema

    def columns_of(self, table: pa.Table) -> tuple[pa.Table, set[int]]:
        """Rows as files have them: hot keys split off; and the ids of sidecars that are not exact for them."""
        types = self.files.types[len(self.schema.fields) :]
        columns, inexact = split_rows(table, self.maps, types, self.last_wins)
        return pa.table(columns, schema=self.files), inexact

    def check_maps(self, rows: pa.Table) -> None:
        """An error when rows, of some of the columns, have a hot key of a map twice and the last one does not win."""
        if not self.last_wins:
            check_hot_keys(rows, self.maps)

    def is_shredded_as_wanted(self, record: str | None) -> bool:
        """Whether a file with this record has the sidecars that it would be written with now."""
        if not self.sidecars:
            return True
        known = read_sidecar_record(record)
        return known is not None and known.value == {s.id for each in self.maps for s in each.sidecars}

    @cached_property
    def _rule_places(self) -> list[int]:
        """The places in a fine tuple of the rule's columns, in the rule's order."""
        places = dict(zip(self.logical_ids, self.shared, strict=True))
        return [places[i] for i in self._rule_ids]

    @cached_property
    def _rule_ids(self) -> list[int]:
        assert self.rule is not None
        return [_column(self.schema, name).field_id for name in self.rule.columns]

    @cached_property
    def _calendar(self) -> list[tuple[int, range]]:
        """The places of logical dates and times in a fine tuple, and the numbers of those that can be written."""
        kinds = zip(self.shared, self.logical_kinds, strict=True)
        return [(i, _CALENDAR[str(kind)]) for i, kind in kinds if str(kind) in _CALENDAR]

    def _is_logical(self, field: PartitionField) -> bool:
        if self.rule is None:
            return False
        return field.source_id in self._rule_ids and str(field.transform) == "identity"


def _text(transform: Transform[Any, Any], source: IcebergType, value: Any) -> str:
    """A value for people; a date that Python's calendar does not have is its number."""
    try:
        return str(transform.to_human_string(source, value))
    except (OverflowError, ValueError):
        return str(value)


def _short(text: str) -> str:
    """A value as part of a path; file systems take no name of any length, and nobody reads values from paths."""
    quoted = quote_plus(text)
    return quoted if len(quoted) <= _LONGEST else f"{quote_plus(text[:16])}~{sha256(text.encode()).hexdigest()[:16]}"


def layout_of(metadata: TableMetadata) -> Layout:
    """The layout that a table is written by now; `coarse` has no id in the table yet when it was never needed.

    A rule that does not fit the partitioning any more, because another engine changed that, is left out.
    """
    stored, properties = metadata.schema(), current_properties(metadata)
    sidecars = read_sidecars(stored, properties)
    schema, hidden = visible(stored, sidecars), {sidecar.id for sidecar in sidecars}
    layout = Layout(
        schema,
        metadata.spec(),
        maps=shredded_maps(stored, sidecars, properties),
        sidecars=tuple(field for field in stored.fields if field.field_id in hidden),
        last_wins=properties.get(DUPLICATES, REJECT) == LAST_WINS,
    )
    kinds = {field.name: field.field_type for field in schema.fields if field.field_type.is_primitive}
    rule = from_properties(properties, kinds)
    if rule is None:
        return layout
    try:
        return with_rule(layout, metadata.partition_specs, rule)
    except LakeError as error:
        warnings.warn(f"no partitions share files: {error}", PenstockWarning, stacklevel=2)
        return layout


def with_rule(layout: Layout, specs: Sequence[PartitionSpec], rule: Coalesce) -> Layout:
    """A layout under a rule; an error when the table is not partitioned by the rule's columns."""
    _check(layout.schema, layout.fine, rule)
    changed = replace(layout, rule=rule)
    fields = [layout.fine.fields[i] for i in changed.kept]
    new = PartitionSpec(*fields, spec_id=max(spec.spec_id for spec in specs) + 1)
    return replace(changed, coarse=next((spec for spec in specs if _identities(spec) == _identities(new)), new))


def _identities(spec: PartitionSpec) -> list[tuple[int, str, int]]:
    return [(field.source_id, str(field.transform), field.field_id) for field in spec.fields]


def typed_rule(schema: Schema, rule: Coalesce) -> Coalesce:
    """A rule with its columns as the schema spells them and its values as manifests have them."""
    columns = [_column(schema, name) for name in rule.columns]
    try:
        values = [tuple(_typed(v, c.field_type) for v, c in zip(value, columns, strict=True)) for value in rule.values]
    except (ValueError, TypeError) as error:
        message = f"the rule lists a value that its column cannot hold: {error}"
        raise LakeError(message, hint="list values of the column's type") from None
    names = [column.name for column in columns]
    return Coalesce(
        *names, below=rule.below, values=values if rule.below is None else values or None,
        record_bytes=rule.record_bytes,
    )  # fmt: skip


def _typed(value: Any, kind: IcebergType) -> Any:
    """A value that people listed, as a manifest has it; one of another type would never be found."""
    stored = as_stored(value, kind)
    wanted = {"string": str, "boolean": bool, "int": int, "long": int, "date": int, "timestamp": int}.get(str(kind))
    if value is not None and wanted is not None and type(stored) is not wanted:
        raise ValueError(f"{value!r} is no {kind}")
    return stored


def rule_properties(layout: Layout, specs: Sequence[PartitionSpec], rule: Coalesce) -> dict[str, str]:
    """A rule for a table as its properties, with the field ids of its columns; an error when it does not fit."""
    typed = typed_rule(layout.schema, rule)
    with_rule(layout, specs, typed)
    kinds = [_column(layout.schema, name).field_type for name in typed.columns]
    return {**to_properties(typed, kinds), FIELD_IDS: field_ids(layout.schema, typed.columns)}


def missing_spec(metadata: TableMetadata) -> list[TableUpdate]:
    """The update that gives a table the spec of shared files, unless it has it or needs none."""
    coarse = layout_of(metadata).coarse
    return [] if coarse is None or coarse.spec_id in metadata.specs() else [AddPartitionSpecUpdate(spec=coarse)]


def _column(schema: Schema, name: str) -> NestedField:
    for field in schema.fields:
        if field.name.lower() == name.lower():
            return field
    known = ", ".join(field.name for field in schema.fields)
    raise LakeError(f"the rule names {name!r}, which is no column", hint=f"there are: {known}")


def _check(schema: Schema, fine: PartitionSpec, rule: Coalesce) -> None:
    for name in rule.columns:
        column = _column(schema, name)
        transforms = [str(field.transform) for field in fine.fields if field.source_id == column.field_id]
        if "identity" in transforms:
            continue
        names = [schema.find_column_name(f.source_id) for f in fine.fields if str(f.transform) == "identity"]
        known = [name for name in names if name is not None]  # a column of an old spec may be gone
        by = f"partitioned by {transforms[0]} of {name}" if transforms else f"not partitioned by {name}"
        hint = f"name one of: {', '.join(known)}" if known else f"partition the table by {name} itself"
        raise LakeError(f"partitions of {name!r} cannot share files: the table is {by}", hint=hint)
