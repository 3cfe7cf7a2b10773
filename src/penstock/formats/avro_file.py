"""Avro, by DataFusion's reader, straight into columns.

DataFusion reads files by their path, so the bytes of a file go through a temporary one. A union of several types, and
a type that Spark has no type for, is an error once its column is asked for.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import pyarrow as pa

from penstock.expr.types import normalize
from penstock.formats.avro_blocks import MAGIC, read_blocks
from penstock.formats.file_format import FileFormat, Reading, UnreadableError
from penstock.formats.text_file import check_options

_UUID = re.compile(rb'"logicalType"\s*:\s*"uuid"')
_PLAIN = (pa.bool_(), pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.string(), pa.binary(), pa.date32())

_lost_threads: list[int] = []


def _note_fork() -> None:
    if "datafusion" in sys.modules:
        _lost_threads.append(os.getpid())


os.register_at_fork(after_in_child=_note_fork)


class AvroFile:
    """An open Avro file."""

    metadata: Mapping[bytes, bytes] | None = None

    def __init__(self, source: Any, reading: Reading) -> None:
        check_options(AVRO, reading)
        self._declared = reading.columns
        self._data: bytes = source.read()
        self._blocks = read_blocks(self._data)

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns as Spark has them; a type that it lacks is an error unless the columns are declared."""
        if self._declared is None:
            self._check(self._stored.names, "declare the schema without it")
        return pa.schema([field.with_type(_known_type(field) or field.type) for field in self._stored])

    @cached_property
    def _stored(self) -> pa.Schema:
        with _rows(self._data) as rows:
            schema: pa.Schema = rows.schema()
            return schema

    def read(self, columns: Sequence[str]) -> pa.Table:
        from datafusion import col

        self._check(columns, "leave the column out, or read it by dataframe(spark)")
        if not columns:
            return pa.table({"": pa.nulls(self._blocks.rows)}).select([])
        with _rows(self._data) as rows:
            table: pa.Table = rows.select(*(col(_quoted(name)) for name in columns)).to_arrow_table()
        if table.num_rows != self._blocks.rows:
            raise pa.ArrowInvalid(f"{table.num_rows:,} of its {self._blocks.rows:,} rows can be read")
        return table

    def _check(self, names: Sequence[str], hint: str) -> None:
        for name in names:
            field = self._stored.field(name)
            if _known_type(field) is None or self._may_be_uuid(field):
                raise UnreadableError(
                    f"column {name} is {field.type} to DataFusion, and to Spark something else", hint=hint
                )

    def _may_be_uuid(self, field: pa.Field) -> bool:
        """Whether Spark may have a text where DataFusion has 16 bytes."""
        return field.type == pa.binary(16) and _UUID.search(self._blocks.schema) is not None


@contextmanager
def _rows(data: bytes) -> Iterator[Any]:
    """A DataFrame of DataFusion."""
    from datafusion import SessionConfig, SessionContext

    if os.getpid() in _lost_threads:
        raise UnreadableError("DataFusion does not work in a forked process", hint="start it anew (spawn)")
    handle, path = tempfile.mkstemp(prefix="penstock-", suffix=".avro")
    try:
        with open(handle, "wb") as file:
            file.write(data)
        yield SessionContext(SessionConfig().with_target_partitions(1)).read_avro(path)
    except (UnreadableError, pa.ArrowInvalid):
        raise
    except BaseException as error:  # DataFusion raises Exception, and what panics in Rust is not even that
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        raise pa.ArrowInvalid(str(error)) from None
    finally:
        os.unlink(path)


def _quoted(name: str) -> str:
    """A column by its exact name."""
    return '"' + name.replace('"', '""') + '"'


def _known_type(field: pa.Field) -> pa.DataType | None:
    """A type as Spark has it; None where it has none, or another one than DataFusion."""
    kind = normalize(field.type)
    return kind if _is_known(field.type) else None


def _is_known(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):  # of an enum
        return bool(kind.value_type == pa.string())
    if pa.types.is_struct(kind):
        return all(_is_known(kind.field(i).type) for i in range(kind.num_fields))
    if pa.types.is_map(kind):
        return _is_known(kind.key_type) and _is_known(kind.item_type)
    if pa.types.is_list(kind):
        return _is_known(kind.value_type)
    if pa.types.is_timestamp(kind):
        return kind.unit in ("us", "ms")
    return kind in _PLAIN or pa.types.is_decimal128(kind) or pa.types.is_fixed_size_binary(kind)


AVRO = FileFormat(
    name="avro",
    title="Avro",
    suffixes=("avro",),
    magic=MAGIC,
    keeps_metadata=False,
    open=AvroFile,
    spark_reader="org.apache.spark.sql.avro.AvroFileFormat",
    spark_package="org.apache.spark:spark-avro_2.13",
    spark_options=(
        "avroSchema", "avroSchemaUrl", "datetimeRebaseMode", "positionalFieldMatching", "mode",
        "enableStableIdentifiersForUnionType", "recursiveFieldMaxDepth",
    ),
)  # fmt: skip
