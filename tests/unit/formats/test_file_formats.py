"""The registry of file formats, and what a Parquet file says when it is opened through it."""

from __future__ import annotations

import io
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.expr.types import TIMESTAMP
from penstock.formats.file_format import AS_STORED, FileFormat
from penstock.formats.format_registry import DEFAULT, FORMATS, format_named, format_of, format_of_bytes, is_data_file


@pytest.mark.parametrize("each", FORMATS, ids=lambda each: each.name)
def test_every_format_is_found_by_its_names_suffix_and_magic(each: FileFormat) -> None:
    assert {format_named(each.name), format_named(each.name.upper())} == {each}
    assert all(format_of(f"dt=1/part-0.c000.{suffix}") is each for suffix in each.suffixes)
    assert not each.magic or format_of_bytes(each.magic + b"\0" * 12) is each


def test_other_names_are_of_no_format_and_nameless_files_of_the_default() -> None:
    assert format_named("lance") is None
    assert format_of_bytes(b"LANC") is None
    assert format_of("dt=1/000000_0") is DEFAULT


def test_hidden_files_and_copies_in_progress_are_no_data_files() -> None:
    names = ["part-0.parquet", "000000_0", "_SUCCESS", ".part-0.crc", "part-0.parquet._COPYING_"]
    assert [name for name in names if is_data_file(name)] == ["part-0.parquet", "000000_0"]


def test_a_parquet_file_shows_moments_with_a_zone_and_keeps_the_ids_of_fields(tmp_path: Path) -> None:
    fields = [
        pa.field(name, pa.timestamp("us"), metadata={"PARQUET:field_id": i}) for name, i in (("a", "1"), ("b", "2"))
    ]
    rows = pa.table({"a": [0], "b": [0]}, schema=pa.schema(fields, metadata={"note": "x"}))
    path = tmp_path / "f.parquet"
    with pq.ParquetWriter(path, rows.schema, use_deprecated_int96_timestamps=True, store_schema=False) as writer:
        writer.write_table(rows)
        writer.add_key_value_metadata({"note": "x"})
    file = format_of(str(path)).open(io.BytesIO(path.read_bytes()), AS_STORED)
    assert file.schema.types == [TIMESTAMP, TIMESTAMP]
    assert [f.metadata[DEFAULT.field_id] for f in file.schema] == [b"1", b"2"]
    assert (file.metadata or {})[b"note"] == b"x"
    assert file.read(["b"]).num_columns == 1
