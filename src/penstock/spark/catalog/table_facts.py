"""What Spark is told of a table: its columns, partitioning and properties, in Spark's own terms."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from penstock.tables.partitioning import parse_field

if TYPE_CHECKING:
    pass

# Spark's names of Iceberg's transforms, as they stand in PARTITIONED BY.
SPARK_TRANSFORMS = {"year": "years", "month": "months", "day": "days", "hour": "hours"}


def facts(
    name: str, key: str, schema: str, partitioned_by: Sequence[str], properties: Mapping[str, str]
) -> dict[str, Any]:
    """The answer that `LakeTable.java` is made from; `key` is equal for equal versions of one table."""
    fields = [_transform(text) for text in partitioned_by]
    return {"name": name, "key": key, "schema": schema, "partitioning": fields, "properties": dict(properties)}


def _transform(text: str) -> dict[str, Any]:
    column, transform = parse_field(text)
    field: dict[str, Any] = {"column": column, "transform": SPARK_TRANSFORMS.get(transform.name, transform.name)}
    return field if not transform.width else {**field, "width": transform.width}


def spark_schema(schema: pa.Schema, comments: Mapping[str, str]) -> str:
    """Spark's schema as JSON."""
    from pyspark.sql.pandas.types import from_arrow_schema

    document = json.loads(from_arrow_schema(schema, prefer_timestamp_ntz=True).json())
    for field in document["fields"]:
        if field["name"] in comments:
            field["metadata"]["comment"] = comments[field["name"]]
    return json.dumps(document)
