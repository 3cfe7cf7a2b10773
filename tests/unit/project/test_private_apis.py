"""Private names of other libraries: each is listed in docs/private-apis.md, and is still what the code takes it for."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path

import pyiceberg.io.pyarrow as iceberg_files
import pytest
from pyiceberg import manifest
from pyiceberg.manifest import DATA_FILE_TYPE, DataFile, ManifestWriter
from pyiceberg.schema import Schema
from pyiceberg.typedef import Record
from pyiceberg.types import LongType, NestedField, StructType
from sqlglot.parser import Parser

ROOT = Path(__file__).parents[3]
LISTED = set(re.findall(r"\b_\w+", (ROOT / "docs" / "private-apis.md").read_text("utf-8")))
SIGNATURES = {
    iceberg_files._get_parquet_writer_kwargs: ["table_properties"],
    iceberg_files._get_file_format: ["file_format", "kwargs"],
    iceberg_files._pyarrow_to_schema_without_ids: ["schema", "downcast_ns_timestamp_to_us", "format_version"],
    iceberg_files._get_column_projection_values: [
        "file",
        "projected_schema",
        "table_schema",
        "partition_spec",
        "file_project_field_ids",
    ],
    iceberg_files._to_requested_schema: [
        "requested_schema",
        "file_schema",
        "batch",
        "downcast_ns_timestamp_to_us",
        "include_field_ids",
        "projected_missing_fields",
        "allow_timestamp_tz_mismatch",
        "format_model",
    ],
    manifest._inherit_from_manifest: ["entry", "manifest"],
    ManifestWriter._with_partition: ["self", "format_version"],
    Parser._parse_unary: ["self"],
}


def test_the_list_has_every_private_name_that_the_code_uses() -> None:
    """A private attribute that no module of Penstock defines belongs to another library."""
    sources = [ast.parse(path.read_text("utf-8")) for path in (ROOT / "src").rglob("*.py")]
    nodes = [node for tree in sources for node in ast.walk(tree)]
    own = {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    own |= {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    own |= {node.attr for node in nodes if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)}
    used = {node.attr for node in nodes if isinstance(node, ast.Attribute)} - own
    used |= {
        alias.name
        for node in nodes
        if isinstance(node, ast.ImportFrom) and not (node.module or "").startswith("penstock")
        for alias in node.names
    }
    private = {name for name in used if re.match(r"_[a-z]", name)} - {"_asdict", "_fields", "_replace"}  # NamedTuple's
    assert private
    assert private <= LISTED


@pytest.mark.parametrize("function", SIGNATURES, ids=lambda function: function.__name__)
def test_a_private_function_takes_the_same_arguments(function: object) -> None:
    assert list(inspect.signature(function).parameters) == SIGNATURES[function]  # type: ignore[arg-type, index]


def test_records_keep_their_values_in_order() -> None:
    assert list(Record(1, None, "x")._data) == [1, None, "x"]
    bound = DataFile._bind(DATA_FILE_TYPE[2], file_path="f")
    assert bound.file_path == "f"
    assert len(bound._data) == len(DATA_FILE_TYPE[2].fields)


def test_a_schema_finds_fields_by_id_and_by_name_in_lower_case() -> None:
    field = NestedField(7, "Id", LongType())
    schema = Schema(field)
    assert schema._lazy_id_to_field == {7: field}
    assert schema._lazy_name_to_id_lower == {"id": 7}
    nested = Schema(NestedField(1, "s", StructType(NestedField(2, "x", LongType()))), NestedField(3, "y", LongType()))
    assert nested._lazy_id_to_parent == {2: 1}


def test_a_manifest_writer_writes_through_its_inner_writer() -> None:
    source = inspect.getsource(ManifestWriter)
    assert "self._writer.write_block(" in source
    assert "self._writer = " in inspect.getsource(ManifestWriter.__enter__)
