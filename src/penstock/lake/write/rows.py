"""Rows that people give: Arrow's, or anything that has them as Arrow: pandas, Polars, DuckDB, a stream of batches."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from penstock.errors import LakeError


def is_spark(data: Any) -> bool:
    """Whether these are the rows of a Spark DataFrame, classic or Connect."""
    return hasattr(data, "sparkSession") and hasattr(data, "mapInArrow")


def as_arrow(data: Any) -> pa.Table | pa.RecordBatchReader:
    """Rows as Arrow has them; a stream stays one."""
    if isinstance(data, pa.Table | pa.RecordBatchReader):
        return data
    if isinstance(data, pa.RecordBatch):
        return pa.table(data)
    if type(data).__module__.partition(".")[0] == "pandas":
        return pa.Table.from_pandas(data, preserve_index=False)
    if hasattr(data, "__arrow_c_stream__"):
        return pa.RecordBatchReader.from_stream(data)
    kinds = "a Spark DataFrame, an Arrow table, or anything with __arrow_c_stream__ (pandas, Polars, DuckDB)"
    raise LakeError(f"rows are {kinds}; found {type(data).__name__}")
