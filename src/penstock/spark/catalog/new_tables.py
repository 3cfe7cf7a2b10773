"""Tables that SQL creates: `CREATE TABLE … USING penstock PARTITIONED BY (days(ts), app) TBLPROPERTIES (…)`.

A table of files at a LOCATION, `USING parquet`, `csv`, `orc` …, is a Hive layout that is declared; nothing is written
there.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from penstock.errors import LakeError, TableExistsError
from penstock.formats.format_registry import DEFAULT, FORMATS
from penstock.lake.layout.coalesce import BELOW, COLUMNS, FIELD_IDS, RECORD, VALUES, Coalesce
from penstock.maps.name_lists import read_names
from penstock.maps.shred_rule import Shred, is_property
from penstock.maps.shred_rule import from_properties as shred_rules
from penstock.spark.catalog.layouts import check_place, layout
from penstock.spark.write.write_job import arrow_schema

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType

    from penstock.lake.lake import Lake

_PROVIDERS = ("penstock", "iceberg")
_LAYOUTS = (*(each.name for each in FORMATS), "hive")
_STORED_AS = ("parquet", "orc", "avro")  # formats of Hive's that have types of their own
# What Spark puts among the properties of a table and does not belong there.
_SPARKS = (
    "provider",
    "owner",
    "external",
    "is_managed_location",
    "location",
    "table_type",
    "collation",
    "current-snapshot-id",
)
_OF_FILES = ("hive.stored-as", "hive.serde", "hive.input-format", "hive.output-format")  # STORED AS and ROW FORMAT
_DEFAULTS = "CURRENT_DEFAULT"
_COALESCE = "penstock.coalesce."
COMPUTED = ("penstock.map.shredding.", FIELD_IDS)  # what Penstock keeps about the rules


@dataclass(frozen=True)
class NewTable:
    """What a CREATE or REPLACE statement says of a table."""

    name: str
    schema: pa.Schema
    partition_by: tuple[str, ...]
    coalesce: Coalesce | None
    shred: Mapping[str, Shred]
    properties: Mapping[str, str]
    location: str | None
    layout_format: str | None  # of a tree of files that exists; without a place, Parquet is only Spark's default


def as_new_table(name: str, request: Mapping[str, Any]) -> NewTable:
    """Read a statement; an error for what a table cannot be."""
    requested = request["properties"]
    provider = _provider(name, requested)
    options = {key for key in requested if key.startswith("option.")}
    properties = {key: value for key, value in requested.items() if key not in _SPARKS and key not in options}
    properties = {key: value for key, value in properties.items() if not key.startswith((*COMPUTED, *_OF_FILES))}
    is_layout = provider in _LAYOUTS and "location" in requested
    if provider in _LAYOUTS and not is_layout and _format_of(provider, requested) != DEFAULT.name:
        hint = "add LOCATION to declare files that there are, or leave it out: tables of the lake are Parquet"
        raise LakeError(f"CREATE TABLE {name}: there is no LOCATION with {provider} files", hint=hint)
    if not is_layout:
        properties = {key: value for key, value in properties.items() if f"option.{key}" not in options}
    return NewTable(
        name,
        _schema(name, request["schema"]),
        tuple(request["by"]),
        coalesce_rule(properties),
        shred_rules(properties),
        {key: value for key, value in properties.items() if not is_rule(key)},
        requested.get("location"),
        _format_of(provider, requested) if is_layout else None,
    )


def _format_of(provider: str, requested: Mapping[str, str]) -> str:
    """The format of a layout's files, by USING or STORED AS."""
    return provider if provider != "hive" else str(requested.get("hive.stored-as", DEFAULT.name)).lower()


def _provider(name: str, requested: Mapping[str, str]) -> str:
    """Whose table it is: by USING, or STORED AS; one that is EXTERNAL without them is a layout."""
    stored = requested.get("hive.stored-as", "")
    if stored.lower() not in _STORED_AS and any(key in _OF_FILES or key.endswith(".delim") for key in requested):
        hint = "STORED AS PARQUET with a LOCATION declares a Hive layout, and so does USING csv; "
        hint += "leave it out for a table of the lake"
        written = f"STORED AS {stored}" if stored else "ROW FORMAT"
        raise LakeError(f"CREATE TABLE {name}: there are no tables that are {written}", hint=hint)
    default = stored.lower() or (DEFAULT.name if requested.get("external") == "true" else "penstock")
    provider = str(requested.get("provider", default)).lower()
    if provider not in (*_PROVIDERS, *_LAYOUTS):
        hint = "leave USING out, or write USING penstock; USING parquet with a LOCATION declares a Hive layout"
        raise LakeError(f"CREATE TABLE {name}: there are no tables of {provider!r}", hint=hint)
    return provider


def create_table(lake: Lake, new: NewTable) -> None:
    """Create a table, or declare a layout."""
    if new.layout_format is None:
        if new.location is not None:
            check_place(lake, new.name, new.location)
        lake.create_table(
            new.name,
            new.schema,
            new.partition_by,
            coalesce=new.coalesce,
            shred=new.shred or None,
            properties=new.properties,
            location=new.location,
        )
        return
    if lake.has_table(new.name):
        raise TableExistsError(f"there is a table {new.name} already", hint="choose another name")
    declared = layout(new.name, new.location or "", new.layout_format, new.schema, new.partition_by, new.properties)
    lake.register(new.name, declared)


def is_rule(name: str) -> bool:
    """Whether a property belongs to the rules of coalescing and shredding."""
    return name.startswith(_COALESCE) or is_property(name)


def coalesce_rule(properties: Mapping[str, str]) -> Coalesce | None:
    """The rule that properties describe; sizes may be written as `8MB`."""
    known = (COLUMNS, BELOW, VALUES, RECORD)
    unknown = [name for name in properties if name.startswith(_COALESCE) and name not in (*known, FIELD_IDS)]
    if unknown:
        raise LakeError(f"there is no property {unknown[0]}", hint=f"there are {', '.join(known)}")
    if COLUMNS not in properties:
        return None
    values = None
    if VALUES in properties:
        try:
            values = [tuple(v) if isinstance(v, list) else v for v in json.loads(properties[VALUES])]
        except ValueError:
            hint = 'write a JSON array, such as ["beta", "test"]'
            raise LakeError(f"{VALUES} is {properties[VALUES]!r}", hint=hint) from None
    sizes: dict[str, Any] = {"record_bytes": properties[RECORD]} if RECORD in properties else {}
    return Coalesce(*read_names(properties[COLUMNS]), below=properties.get(BELOW), values=values, **sizes)


def _schema(name: str, document: str) -> pa.Schema:
    from pyspark.sql.types import StructType

    schema = StructType.fromJson(json.loads(document))
    default = next((field.name for field in schema.fields if _DEFAULTS in (field.metadata or {})), None)
    if default is not None:
        hint = "leave the default out; tables of format version 2 have none"
        raise LakeError(f"column {default} of {name} has a default value", hint=hint)
    _check_types(name, schema)
    comments = {field.name: field.metadata["comment"] for field in schema.fields if "comment" in (field.metadata or {})}
    arrow = arrow_schema(schema)
    return pa.schema([f.with_metadata({"doc": comments[f.name]}) if f.name in comments else f for f in arrow])


def _check_types(name: str, schema: StructType) -> None:
    """Refuse what Arrow would take for another type, and Iceberg does not have."""
    for field in schema.fields:
        for kind in _leaves(field.dataType):
            text = kind.simpleString()
            if text.startswith(("interval", "variant", "time(")) or " collate " in text:
                hint = "tables have Iceberg's types of format version 2"
                raise LakeError(f"column {field.name} of {name} cannot be of type {text}", hint=hint)


def _leaves(kind: DataType) -> Iterator[DataType]:
    from pyspark.sql.types import ArrayType, MapType, StructType

    if isinstance(kind, StructType):
        for field in kind.fields:
            yield from _leaves(field.dataType)
    elif isinstance(kind, ArrayType):
        yield from _leaves(kind.elementType)
    elif isinstance(kind, MapType):
        yield from _leaves(kind.keyType)
        yield from _leaves(kind.valueType)
    else:
        yield kind
