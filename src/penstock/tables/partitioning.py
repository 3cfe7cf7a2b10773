"""Partition fields as people write them: `app`, `day(ts)`, `bucket(16, user_id)`, `truncate(4, url)`.

>>> schema = pa.schema({"ts": pa.timestamp("us"), "id": pa.int32()})
>>> [field.transform for field in parse_partition_by(["day(ts)", "bucket(16, id)"], schema)]
['day', 'bucket[16]']
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from penstock.errors import PredicateError, SchemaError
from penstock.expr.bind import bind
from penstock.expr.parse import parse
from penstock.expr.tree import Column, IsNull
from penstock.prune.facts import Derived, Term
from penstock.prune.transform_functions import transform_function
from penstock.prune.transforms import TRANSFORM_NAMES, Transform, transform_of

_FIELD = re.compile(r"\s*(?:(\w+)\s*\((.*)\)|(.+?))\s*")
_HINT = "write app, day(ts), bucket(16, user_id) or truncate(4, name)"


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
        return transform_of(self.transform).result_type(self.source.type)


def parse_partition_by(fields: Sequence[str], schema: pa.Schema) -> tuple[PartitionField, ...]:
    """Read partition fields and check them against a schema."""
    return tuple(_bound_field(text, schema) for text in fields)


def parse_field(text: str) -> tuple[str, Transform]:
    """The column of a partition field, as it is written, and its transform."""
    match = _FIELD.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise SchemaError(f"partition_by {text!r} is no partition field", hint=_HINT)
    word, arguments, column = match.groups()
    if word is None:
        return column, transform_of("identity")
    if word.lower() not in TRANSFORM_NAMES:
        raise SchemaError(f"partition_by {text!r}: there is no transform {word!r}", hint=_HINT)
    name, has_width = TRANSFORM_NAMES[word.lower()]
    parts = [part.strip() for part in arguments.split(",")]
    if not has_width:
        if len(parts) != 1 or not parts[0]:
            raise SchemaError(f"partition_by {text!r}: {name} takes one column", hint=_HINT)
        return parts[0], transform_of(name)
    widths = [int(part) for part in parts if part.isdigit()]
    columns = [part for part in parts if not part.isdigit()]
    if len(widths) != 1 or len(columns) != 1 or widths[0] < 1:
        raise SchemaError(f"partition_by {text!r}: {name} takes a number and a column", hint=_HINT)
    return columns[0], transform_of(f"{name}[{widths[0]}]")


def _bound_field(text: str, schema: pa.Schema) -> PartitionField:
    written, transform = parse_field(text)
    try:
        column = parse(written)
    except PredicateError as error:
        raise SchemaError(f"partition_by {text!r}: {error.message}", hint=_HINT) from None
    if not isinstance(column, Column):
        raise SchemaError(f"partition_by {text!r} is not a transform of a column", hint=_HINT)
    test = bind(IsNull(column), schema)  # a test for NULL is a predicate, and so it can be bound
    assert isinstance(test, IsNull)
    source = test.child
    assert isinstance(source, Column)
    assert source.type is not None
    takes = transform.text == "identity" or transform_function(transform.text, source.type) is not None
    if not takes or transform.result_type(source.type) is None:
        what = f"partition_by {text!r}: {transform.text} does not take {source.name} of type {source.type}"
        raise SchemaError(what, hint="choose another transform or column")
    return PartitionField(transform.field_name(source.name.replace(".", "_")), source, transform.text)
