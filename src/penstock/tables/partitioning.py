"""Partition fields as people write them: `app`, `day(ts)`, `bucket(16, user_id)`, `truncate(4, url)`.

>>> schema = pa.schema({"ts": pa.timestamp("us"), "id": pa.int32()})
>>> [field.transform for field in parse_partition_by(["day(ts)", "bucket(16, id)"], schema)]
['day', 'bucket[16]']
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from penstock.errors import PredicateError, SchemaError
from penstock.expr.bind import bind
from penstock.expr.parse import parse
from penstock.expr.tree import Call, Column, Expr, IsNull, Literal
from penstock.prune.facts import Derived, Term
from penstock.prune.transforms import result_type, transform_function

_PERIODS = {"year", "month", "day", "hour"}
_SIZED = {"bucket", "truncate"}


@dataclass(frozen=True, slots=True)
class PartitionField:
    """One field of a partition spec: a transform of a source column, under a name."""

    name: str
    source: Column
    transform: str

    @property
    def term(self) -> Term:
        """What facts about this field are about."""
        return self.source if self.transform == "identity" else Derived(self.source, self.transform)

    @property
    def type(self) -> pa.DataType:
        """The type of the partition values."""
        assert self.source.type is not None
        return result_type(self.transform, self.source.type)


def parse_partition_by(fields: Sequence[str], schema: pa.Schema) -> tuple[PartitionField, ...]:
    """Read partition fields and check them against a schema."""
    return tuple(_parse_field(text, schema) for text in fields)


def _parse_field(text: str, schema: pa.Schema) -> PartitionField:
    try:
        parsed = parse(text)
    except PredicateError as error:
        raise SchemaError(
            f"partition field {text!r}: {error.message}", hint="write app, day(ts) or bucket(16, id)"
        ) from None
    column, transform = _parts(parsed, text)
    source = _bound(column, schema)
    assert source.type is not None
    if transform != "identity" and transform_function(transform, source.type) is None:
        raise SchemaError(f"partition field {text!r}: {transform} does not take {source.name} of type {source.type}")
    suffix = "" if transform == "identity" else "_" + transform.partition("[")[0].replace("truncate", "trunc")
    return PartitionField(source.name.replace(".", "_") + suffix, source, transform)


def _parts(parsed: Expr, text: str) -> tuple[Column, str]:
    if isinstance(parsed, Column):
        return parsed, "identity"
    if isinstance(parsed, Call):
        name = parsed.name.removesuffix("s") if parsed.name.removesuffix("s") in _PERIODS else parsed.name
        match parsed.args:
            case (Column() as column,) if name in _PERIODS:
                return column, name
            case (Literal(value=int(width)), Column() as column) if name in _SIZED and width > 0:
                return column, f"{name}[{width}]"
    hint = "write a column, year|month|day|hour(column), bucket(n, column) or truncate(width, column)"
    raise SchemaError(f"partition field {text!r} is not a transform of a column", hint=hint)


def _bound(column: Column, schema: pa.Schema) -> Column:
    """The column as the schema spells it (a null test makes it a predicate that can be bound)."""
    test = bind(IsNull(column), schema)
    assert isinstance(test, IsNull)
    assert isinstance(test.child, Column)
    return test.child
