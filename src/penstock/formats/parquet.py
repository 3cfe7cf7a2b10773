"""Parquet, by Arrow's reader and writer; what manifests say of a file is made of its footer by PyIceberg."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.errors import CLIENT_ERRORS
from penstock.expr.types import TIMESTAMP, TIMESTAMP_NTZ
from penstock.formats.file_format import Reading, WrittenFormat


class ParquetFile:
    """An open Parquet file."""

    def __init__(self, source: Any, reading: Reading) -> None:
        self._file = pq.ParquetFile(source, coerce_int96_timestamp_unit="us")

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns; INT96 is the old form of Spark's own timestamps, which Arrow takes for those without a zone."""
        stored, columns = self._file.schema_arrow, self._file.schema
        if TIMESTAMP_NTZ not in stored.types:
            return stored
        moments = {columns.column(i).path for i in range(len(columns)) if columns.column(i).physical_type == "INT96"}
        return pa.schema([f.with_type(TIMESTAMP) if f.name in moments else f for f in stored])

    @property
    def metadata(self) -> Mapping[bytes, bytes] | None:
        pairs: Mapping[bytes, bytes] | None = self._file.metadata.metadata
        return pairs

    def read(self, columns: Sequence[str]) -> pa.Table:
        return self._file.read(list(columns))


class ParquetTableWriter:
    """Parquet files of one table."""

    def __init__(self, schema: Any, properties: Mapping[str, str]) -> None:
        from pyiceberg.io.pyarrow import compute_statistics_plan, parquet_path_to_id_mapping

        self._properties = dict(properties)
        self.plan: dict[int, Any] = compute_statistics_plan(schema, self._properties)
        self.ids = parquet_path_to_id_mapping(schema)

    @cached_property
    def options(self) -> dict[str, Any]:
        """What Arrow's writer takes, by the table's properties; an index of pages serves queries of one value."""
        from pyiceberg.io.pyarrow import _get_parquet_writer_kwargs

        return {**_get_parquet_writer_kwargs(self._properties), "write_page_index": True}

    def open(self, sink: Any, schema: pa.Schema, bare: frozenset[int]) -> ParquetWriter:
        return ParquetWriter(self, sink, schema, bare)

    def size_of(self, rows: pa.Table) -> int:
        sink = pa.BufferOutputStream()
        with pq.ParquetWriter(sink, rows.schema, **self.options) as writer:
            writer.write_table(rows)
        return int(sink.tell())


class ParquetWriter:
    """Writes one Parquet file."""

    def __init__(self, table: ParquetTableWriter, sink: Any, schema: pa.Schema, bare: frozenset[int]) -> None:
        self._table, self._bare = table, bare
        with_statistics = [path for path, field_id in table.ids.items() if field_id not in bare] if bare else True
        options = {**table.options, "write_statistics": with_statistics}
        self._writer = pq.ParquetWriter(sink, schema, store_schema=False, **options)
        if schema.metadata:  # it is part of Arrow's schema, which is not stored
            self._writer.add_key_value_metadata(schema.metadata)

    def write(self, rows: pa.Table) -> None:
        self._writer.write_table(rows, row_group_size=rows.num_rows)

    def close(self) -> None:
        self._writer.close()

    def abandon(self) -> None:
        try:
            self._writer.close()
        except CLIENT_ERRORS:  # what it could not write is thrown away
            self._writer.is_open = False  # else it tries once more when it is collected

    def statistics(self) -> dict[str, Any]:
        from pyiceberg.io.pyarrow import data_file_statistics_from_parquet_metadata

        plan = _with_mode("NONE", self._table.plan, lambda column: column.field_id in self._bare)
        footer = self._writer.writer.metadata
        try:
            from_footer = data_file_statistics_from_parquet_metadata(footer, plan, self._table.ids)
        except OverflowError:  # a date or a time that Python's calendar does not have: such columns get no bounds
            plan = _with_mode("COUNTS", plan, _is_time)
            from_footer = data_file_statistics_from_parquet_metadata(footer, plan, self._table.ids)
        for aggregate in from_footer.column_aggregates.values():
            try:
                aggregate.max_as_bytes()
            except UnicodeEncodeError:  # the last character that was left has no next one: no bound
                aggregate.current_max = None
        return dict(from_footer.to_serialized_dict())

    def value_count(self, field_id: int) -> int:
        footer = self._writer.writer.metadata
        groups = [footer.row_group(i) for i in range(footer.num_row_groups)]
        columns = [group.column(i) for group in groups for i in range(group.num_columns)]
        return sum(column.num_values for column in columns if self._table.ids[column.path_in_schema] == field_id)


def _with_mode(mode: str, plan: Mapping[int, Any], is_changed: Callable[[Any], bool]) -> dict[int, Any]:
    """A plan for statistics with a mode of PyIceberg for some columns, such as those whose bounds the footer lacks."""
    from pyiceberg.io.pyarrow import MetricModeTypes, MetricsMode

    other = MetricsMode(MetricModeTypes[mode])
    return {i: replace(column, mode=other) if is_changed(column) else column for i, column in plan.items()}


def _is_time(column: Any) -> bool:
    return str(column.iceberg_type) in ("date", "timestamp", "timestamptz")


PARQUET = WrittenFormat(
    name="parquet",
    title="Parquet",
    suffixes=("parquet", "parq"),
    open=ParquetFile,
    spark_reader="NanSafeParquet",
    magic=b"PAR1",
    table_writer=ParquetTableWriter,
    spark_field_id="parquet.field.id",
    spark_field_ids="spark.sql.parquet.fieldId.read.enabled",
    spark_row_index=True,
)
