"""Rows as a table of Spark's session catalog, each of whose partitions has a location of its own."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa

from penstock.expr.types import type_name
from tests.fixtures.hive_writer import NULL
from tests.fuzz.file_kinds import FileKind
from tests.fuzz.literals import quoted
from tests.fuzz.predicates import quote
from tests.fuzz.session import Sessions

_numbers = itertools.count()


def table_in_metastore(
    sessions: Sessions,
    kind: FileKind,
    schema: pa.Schema,
    keys: Sequence[str],
    locations: Mapping[tuple[str, ...], Path],
) -> str:
    """The name of a table whose partitions are known by the names of directories, and lie elsewhere."""
    name = f"default.fuzzed_{next(_numbers)}"
    columns = ", ".join(f"{quote(f.name)} {type_name(f.type)}" for f in schema)
    by = ", ".join(map(quote, keys))
    options = ", ".join(f"{option} {quoted(str(value))}" for option, value in kind.options.items())
    own = next(iter(locations.values())).parent / "nothing lies here"
    statements = [
        f"CREATE TABLE spark_catalog.{name} ({columns}) USING {kind.format}"
        f"{f' OPTIONS ({options})' if options else ''} PARTITIONED BY ({by}) LOCATION {quoted(str(own))}"
    ]
    added = [
        f"PARTITION ({', '.join(f'{quote(k)} = {_value(v)}' for k, v in zip(keys, levels, strict=True))})"
        f" LOCATION {quoted(str(place))}"
        for levels, place in locations.items()
    ]
    statements.append(f"ALTER TABLE spark_catalog.{name} ADD {' '.join(added)}")
    for statement in statements:
        sessions.judged.sql(statement)
    return name


def _value(level: str) -> str:
    text = level.partition("=")[2]
    return "NULL" if text == NULL else quoted(unquote(text))
