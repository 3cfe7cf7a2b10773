"""The columns of a data file that PyIceberg's scan does not open: ORC and Avro, resolved as PyIceberg resolves Parquet.

Files say the ids of their fields (`formats/iceberg_orc.py`, `formats/iceberg_avro.py`). From there on it is PyIceberg's
own projection: by id, or by the table's name mapping; types are widened; what a file lacks is its partition value, the
default, or NULL. ORC is not left to PyIceberg's reader: it fails on uuid, fixed and time, which ORC has no types for.

All rows in their order: a row's index is its position, which deletes are about.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyiceberg.io import FileIO
from pyiceberg.manifest import DataFile
from pyiceberg.schema import Schema, prune_columns
from pyiceberg.table.metadata import TableMetadata

from penstock.formats.file_format import AS_STORED, IcebergFormat

_NO_IDS = "it has no field ids, and the table has no name-mapping"


def read_columns(
    file_format: IcebergFormat, file: DataFile, schema: Schema, metadata: TableMetadata, io: FileIO
) -> pa.Table:
    """The columns of a schema out of one file."""
    from pyiceberg.io.pyarrow import _get_column_projection_values, pyarrow_to_schema, schema_to_pyarrow

    with io.new_input(file.file_path).open() as source:
        opened = file_format.open(source, AS_STORED)
        mapping = metadata.name_mapping()
        if mapping is None and not has_ids(opened.schema, file_format):
            raise ValueError(_NO_IDS)
        stored = pyarrow_to_schema(opened.schema, mapping, format_version=metadata.format_version)
        spec = metadata.specs().get(file.spec_id)
        missing = _get_column_projection_values(file, schema, metadata.schema(), spec, stored.field_ids)
        wanted = prune_columns(stored, _read_ids(schema), select_full_types=False)
        rows = opened.read([field.name for field in wanted.fields])
    projected = [_projected(schema, wanted, batch, missing) for batch in rows.to_batches() if batch.num_rows]
    if not projected:
        return schema_to_pyarrow(schema, include_field_ids=False).empty_table()
    return pa.concat_tables([pa.Table.from_batches([batch]) for batch in projected], promote_options="permissive")


def has_ids(schema: pa.Schema, file_format: IcebergFormat) -> bool:
    """Whether the columns of a file have ids."""
    return all(field.metadata and file_format.field_id in field.metadata for field in schema)


def _read_ids(schema: Schema) -> set[int]:
    """The fields to read: those of lists and maps are found by what is in them."""
    return {i for i in schema.field_ids if schema.find_type(i).is_primitive or schema.find_type(i).is_struct}


def _projected(schema: Schema, stored: Schema, batch: pa.RecordBatch, missing: dict[int, Any]) -> Any:
    from pyiceberg.io.pyarrow import _to_requested_schema

    more: Any = {"projected_missing_fields": missing, "allow_timestamp_tz_mismatch": True}
    return _to_requested_schema(schema, stored, batch, **more)
