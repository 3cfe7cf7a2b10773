"""Fields inside structs, as columns."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa


def field_at(array: pa.Array, path: Sequence[str]) -> pa.Array:
    """A field inside structs; it is null where a struct is."""
    for name in path:
        array = array.flatten()[array.type.get_field_index(name)]
    return array


def with_field(array: pa.Array, path: Sequence[str], inner: pa.Array) -> pa.Array:
    """Structs with a field inside replaced. What lies below null structs stays: a required field has no null there."""
    if not path:
        return inner
    parts, place = [array.field(i) for i in range(array.type.num_fields)], array.type.get_field_index(path[0])
    parts[place] = with_field(parts[place], path[1:], inner)
    return pa.StructArray.from_arrays(parts, fields=list(array.type), mask=array.is_null())
