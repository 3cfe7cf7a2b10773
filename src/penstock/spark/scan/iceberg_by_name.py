"""What Spark may read of ORC and Avro files of Iceberg tables: it finds columns by name, and reads some types wrong.

| in the files | what Spark's reader makes of it | here |
|---|---|---|
| a name that meant another column once | the other column | an error |
| timestamp without a zone, in ORC | another time, without a word | an error |
| timestamp without a zone, or a map whose keys are not text, in Avro | an error | an error that names the column |
| a date before 15 October 1582 or a moment before 1900, in ORC | another one | an error, unless bounds exclude it |

A moment before 1900 is wrong in zones whose clocks changed to standard time then. Lists and maps have no bounds, so
dates and moments in them are an error in ORC. All other types were compared with Iceberg's own reader.
"""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.schema import make_compatible_name
from pyiceberg.types import IcebergType, NestedField

from penstock.errors import LakeError
from penstock.expr.tree import Column
from penstock.formats.file_format import IcebergFormat
from penstock.prune.facts import Bounds
from penstock.prune.judge import Judgement
from penstock.spark.scan.iceberg_names import ByName, all_fields, names_by_id, names_of_mapping
from penstock.tables.iceberg.metadata.version import Version

_HINT = "read the table with table.arrow(), or rewrite its data files as Parquet"
_ORC, _AVRO = "orc", "avro"
_SAFE_FROM = {"date": dt.date(1582, 10, 15), "timestamptz": dt.datetime(1900, 1, 2, tzinfo=dt.UTC)}


def names_in_files(version: Version, file_format: IcebergFormat, columns: Sequence[NestedField]) -> ByName:
    """The names of columns in files of a format that Spark reads by name; an error where it would read them wrong."""
    history, mapping = names_by_id(version.metadata), version.metadata.name_mapping()
    mapped = {} if mapping is None else names_of_mapping(mapping).names
    about = f"{version.metadata.location} has files in {file_format.title}, which Spark reads by name"
    if not history.complete:
        raise LakeError(f"{about}, and older schemas of the table are missing", hint=_HINT)
    names: dict[int, tuple[str, ...]] = {}
    ids = _ids_by_name(history.names)
    for parent, field in _with_inner(columns):
        own = {*history.names[parent][field.field_id], *mapped.get(field.field_id, ())}
        if len(own) > 1:
            raise LakeError(f"{about}, and a column was called {' and '.join(map(repr, sorted(own)))}", hint=_HINT)
        if ids[parent, field.name.lower()] != {field.field_id}:
            raise LakeError(f"{about}, and the name {field.name!r} was that of another column", hint=_HINT)
        if field.field_id in history.replaced:
            raise LakeError(f"{about}, and all fields of {field.name!r} were replaced", hint=_HINT)
        name = make_compatible_name(field.name) if file_format.name == _AVRO else field.name
        names[field.field_id] = (name,)
    for field in columns:
        _check_type(field.field_type, field.name, file_format, False)
    return ByName(names)


def _ids_by_name(names: Any) -> defaultdict[tuple[int | None, str], set[int]]:
    """The fields that a name has meant, by parent; as Spark compares names."""
    ids: defaultdict[tuple[int | None, str], set[int]] = defaultdict(set)
    for parent, fields in names.items():
        for field_id, own in fields.items():
            for name in own:
                ids[parent, name.lower()].add(field_id)
                ids[parent, make_compatible_name(name).lower()].add(field_id)
    return ids


def _with_inner(columns: Sequence[NestedField]) -> Iterator[tuple[int | None, NestedField]]:
    for column in columns:
        yield None, column
        yield from all_fields(column.field_type, column.field_id)


def _check_type(kind: IcebergType, path: str, file_format: IcebergFormat, repeated: bool) -> None:
    """An error for a type that Spark does not read, or reads wrong."""
    is_text_map = not hasattr(kind, "key_type") or str(kind.key_type) == "string"
    wrong = str(kind) == "timestamp"
    wrong |= repeated and file_format.name == _ORC and str(kind) in _SAFE_FROM
    wrong |= file_format.name == _AVRO and not is_text_map
    if wrong:
        message = f"column {path} is a {kind} in files in {file_format.title}"
        raise LakeError(f"{message}, which Spark does not read as Iceberg does", hint=_HINT)
    inside = repeated or hasattr(kind, "element_type") or hasattr(kind, "key_type")
    for _, field in all_fields(kind, None):
        if not field.field_type.is_primitive or str(field.field_type) in ("timestamp", *_SAFE_FROM):
            _check_type(field.field_type, f"{path}.{field.name}", file_format, inside)


@dataclass(frozen=True)
class OldTimes:
    """The dates and moments of a table that Spark reads wrong from ORC where they are old."""

    columns: tuple[tuple[Column, Any], ...]  # with the first value that is right

    @staticmethod
    def of(version: Version) -> OldTimes:
        """Those outside of lists and maps."""
        kinds = version.columns.ids.values()
        safe = ((version.columns.by_id[i], _SAFE_FROM.get(str(kind))) for i, kind in kinds)
        return OldTimes(tuple((column, first) for column, first in safe if first is not None))

    def check(self, judgement: Judgement, kept: Any) -> None:
        """An error where one of some files in ORC may hold such a value, by its bounds."""
        for column, first in self.columns if len(kept) else ():
            facts = (f for f in judgement.containers.facts if isinstance(f, Bounds) and f.term == column)
            may_be_old = _may_be_less(next(facts, Bounds(column)), first, pa.array(kept))
            if may_be_old.any():
                assert judgement.containers.names is not None
                path = judgement.containers.names[int(kept[np.flatnonzero(may_be_old)[0]])]
                message = f"{path} may hold values of {column} before {first:%Y-%m-%d}"
                raise LakeError(f"{message}, which Spark reads wrong from ORC", hint=_HINT)


def _may_be_less(bounds: Bounds, first: Any, kept: pa.Array) -> Any:
    if bounds.lower is None:
        safe = pa.array(np.zeros(len(kept), np.bool_))
    else:
        lower = bounds.lower.take(kept)
        safe = pc.fill_null(pc.greater_equal(lower, pa.scalar(first, lower.type)), False)
    if bounds.null_count is not None and bounds.value_count is not None:
        all_null = pc.equal(bounds.null_count.take(kept), bounds.value_count.take(kept))
        safe = pc.or_(safe, pc.fill_null(all_null, False))
    return ~np.asarray(safe)
