"""How the columns of rows compare with a table's: by name, without its case, nested fields too.

Columns that rows do not have are NULL, unless the table forbids it. Those that only the rows have, and types that are
wider there, do not fit the table as it is; it can be changed so that they do.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import pyarrow as pa
from pyiceberg.schema import Schema
from pyiceberg.types import IcebergType, ListType, MapType, NestedField, StructType

from penstock.errors import SchemaError
from penstock.expr.types import normalize, type_name
from penstock.tables.iceberg.metadata.schema_columns import Columns

Path = tuple[str, ...]
WIDER = {
    (pa.int8(), pa.int16()), (pa.int8(), pa.int32()), (pa.int8(), pa.int64()),
    (pa.int16(), pa.int32()), (pa.int16(), pa.int64()), (pa.int32(), pa.int64()), (pa.float32(), pa.float64()),
}  # fmt: skip


@dataclass
class RowFit:
    """What was found: for each column of the table its name in the rows, or None, and what is not as in the table."""

    names: list[str | None] = field(default_factory=list)
    new: list[tuple[Path, pa.DataType]] = field(default_factory=list)  # only the rows have these
    wider: list[tuple[Path, pa.DataType]] = field(default_factory=list)  # the rows' types
    missing: list[str] = field(default_factory=list)  # required columns that the rows do not have
    narrower: list[str] = field(default_factory=list)  # what is said of wider types where the table stays as it is
    problems: list[str] = field(default_factory=list)

    def check(self, *, merging: bool = False) -> None:
        """An error for all that is wrong; when the table is changed for the rows, only for what that cannot mend."""
        problems = [*self.problems]
        if self.missing:
            problems.append(f"missing: {', '.join(self.missing)}")
        can_merge = not problems
        if merging:
            problems += self._void()
        else:
            if self.new:
                problems.append(f"not in the table: {', '.join('.'.join(path) for path, _ in self.new)}")
            problems += self.narrower
        if problems:
            hint = "select and cast the columns so that they are the table's; nothing was written"
            if can_merge and not merging:
                hint = f"append with merge_schema=True to change the table, or {hint}"
            raise SchemaError(f"the rows do not fit the table: {'; '.join(problems)}", hint=hint)

    def _void(self) -> list[str]:
        void = [".".join(path) for path, kind in self.new if pa.types.is_null(kind)]
        return [f"new columns without a type, because all of their values are NULL: {', '.join(void)}"] if void else []


def fit_rows(rows: pa.Schema, schema: Schema) -> RowFit:
    """Compare the columns of rows with those of a table."""
    fit = RowFit()
    lower = [name.lower() for name in rows.names]
    fit.problems += [f"column {n!r} is given twice" for i, n in enumerate(rows.names) if lower[i] in lower[:i]]
    columns = _by_name(rows)
    fit.names = [columns[f.name.lower()].name if f.name.lower() in columns else None for f in schema.fields]
    _compare_fields(fit, columns, schema.fields, ())
    return fit


def _by_name(fields: Iterable[pa.Field]) -> Mapping[str, pa.Field]:
    return {f.name.lower(): f for f in fields}


def _compare_fields(fit: RowFit, columns: Mapping[str, pa.Field], fields: Iterable[NestedField], above: Path) -> None:
    known = set[str]()
    for own in fields:
        known.add(own.name.lower())
        theirs, path = columns.get(own.name.lower()), (*above, own.name)
        if theirs is not None:
            _compare(fit, theirs.type, own.field_type, path)
        elif own.required:
            fit.missing.append(f"{'.'.join(path)} {type_name(core_type(own.field_type))}")
    fit.new += [((*above, each.name), normalize(each.type)) for name, each in columns.items() if name not in known]


def _compare(fit: RowFit, theirs: pa.DataType, own: IcebergType, path: Path) -> None:
    if pa.types.is_null(theirs) or (str(own) == "uuid" and _is_uuid(theirs)):
        return
    theirs, core = normalize(theirs), core_type(own)
    if theirs == core or (theirs, core) in WIDER or _has_more_digits(core, theirs):
        return
    difference = f"{'.'.join(path)} is a {type_name(core)} and was given as {type_name(theirs)}"
    if (core, theirs) in WIDER or _has_more_digits(theirs, core):
        fit.wider.append((path, theirs))
        fit.narrower.append(difference)
        return
    inner = dict(_inner(theirs, own))
    if isinstance(own, StructType) and pa.types.is_struct(theirs):
        names = [f.name.lower() for f in theirs]
        if len(set(names)) == len(names):
            _compare_fields(fit, _by_name(theirs), own.fields, path)
            return
        inner = {}
    if not inner:
        fit.problems.append(difference)
    for name, (their_part, own_part) in inner.items():
        _compare(fit, their_part, own_part, (*path, name))


def _inner(theirs: pa.DataType, own: IcebergType) -> Iterator[tuple[str, tuple[pa.DataType, IcebergType]]]:
    """The parts of a list or a map, where both are one."""
    if isinstance(own, ListType) and pa.types.is_list(theirs):
        yield "element", (theirs.value_type, own.element_type)
    if isinstance(own, MapType) and pa.types.is_map(theirs):
        yield "key", (theirs.key_type, own.key_type)
        yield "value", (theirs.item_type, own.value_type)


def _has_more_digits(wide: pa.DataType, narrow: pa.DataType) -> bool:
    if not (pa.types.is_decimal(wide) and pa.types.is_decimal(narrow)):
        return False
    return bool(wide.scale == narrow.scale and wide.precision >= narrow.precision)


def _is_uuid(incoming: pa.DataType) -> bool:
    stored = incoming.storage_type if isinstance(incoming, pa.BaseExtensionType) else incoming
    return bool(stored == pa.binary(16))


def core_type(kind: IcebergType) -> pa.DataType:
    """The type that predicates and people use."""
    return Columns(Schema(NestedField(1, "c", kind, required=False))).arrow.field(0).type
