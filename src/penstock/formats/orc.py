"""ORC, by Arrow's reader. Spark's reader prunes stripes by their statistics; Arrow's gives none of them away."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import pyarrow as pa

from penstock.formats.file_format import FileFormat, Reading


class OrcFile:
    """An open ORC file."""

    def __init__(self, source: Any, reading: Reading) -> None:
        from pyarrow.orc import ORCFile

        self._file = ORCFile(source)

    @cached_property
    def schema(self) -> pa.Schema:
        schema: pa.Schema = self._file.schema
        return schema

    @property
    def metadata(self) -> Mapping[bytes, bytes] | None:
        pairs: Mapping[bytes, bytes] | None = self._file.schema.metadata
        return pairs

    def read(self, columns: Sequence[str]) -> pa.Table:
        if not columns:
            return pa.table({"": pa.nulls(self._file.nrows)}).select([])
        return self._file.read(list(columns))


ORC = FileFormat(name="orc", title="ORC", suffixes=("orc",), magic=b"ORC", open=OrcFile, spark_reader="NanSafeOrc")
