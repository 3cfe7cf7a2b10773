"""NULL lists and maps whose entries are structs stay NULL when PyIceberg reads them.

PyIceberg puts such columns together again from their offsets and entries, and a NULL list comes out as an empty one. A
compaction would even write it so. `keep_null_lists()` mends the class that does it, once in a process.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc


@cache
def keep_null_lists() -> None:
    """Let PyIceberg read lists and maps with their nulls."""
    from pyiceberg.io import pyarrow as files

    class Projection(files.ArrowProjectionVisitor):
        """PyIceberg's, with the nulls."""

        def list(self, list_type: Any, list_array: Any, value_array: Any) -> Any:
            """The list in the requested type."""
            return _with_nulls_of(list_array, super().list(list_type, list_array, value_array))

        def map(self, map_type: Any, map_array: Any, key_result: Any, value_result: Any) -> Any:
            """The map in the requested type."""
            return _with_nulls_of(map_array, super().map(map_type, map_array, key_result, value_result))

    files.ArrowProjectionVisitor = Projection  # type: ignore[misc]


def _with_nulls_of(array: Any, projected: Any) -> Any:
    if projected is None or array.null_count == projected.null_count:
        return projected
    return pc.if_else(array.is_valid(), projected, pa.nulls(len(projected), projected.type))
