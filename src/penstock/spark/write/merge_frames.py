"""A merge of a Spark DataFrame: joined with the table by Spark, so that the rows can be more than fit into memory.

Few rows that are only copied into the table, as an upsert copies them, are merged without a join: as Arrow rows.

Names mean what they mean to a merge of Arrow rows: those of the table, `source.name` and `target.name`; in inserts
those of the rows. Values go into columns by the same rules, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING

import pyarrow as pa
from pyiceberg.types import UUIDType
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from penstock.errors import LakeError, SchemaError
from penstock.expr.sql_text import quote_name
from penstock.expr.types import normalize, type_name
from penstock.lake.commit.commit import fresh, replanned
from penstock.lake.merge_builder import check_key, is_same_or_wider
from penstock.lake.write import writes
from penstock.lake.write.assignments import field_named, is_assignable
from penstock.lake.write.conform import fits
from penstock.lake.write.merge import SOURCE, TARGET
from penstock.lake.write.writes import Done
from penstock.spark.catalog.computed_changes import (
    ADDED,
    FILE,
    NO_FIT,
    OPERATION,
    PLACE,
    REMOVED,
    UPDATED,
    change_computed,
)
from penstock.spark.session.java_classes import call
from penstock.spark.session.session import gateway_of, is_connect
from penstock.spark.write.write_job import arrow_schema, nullable_columns

if TYPE_CHECKING:
    from penstock.lake.merge_builder import ClauseText, MergeBuilder
    from penstock.tables.iceberg.iceberg_table import IcebergTable


def merge_frames(table: IcebergTable, merge: MergeBuilder) -> Done:
    """Do a merge; planned again when other writers were faster."""
    source: DataFrame = merge.rows
    if is_connect(source.sparkSession):
        message = "rows of Spark Connect cannot be merged"
        raise LakeError(message, hint="give them as rows.toArrow(), or use MERGE INTO on the server's catalog")
    kept = source.persist()
    try:
        rows = _few_rows(kept) if all(each.where is None and each.values is None for each in merge.clauses) else None
        if rows is not None:
            return writes.merge(table, replace(merge, rows=rows))
        newest = replace(table, table=fresh(table.table))
        hint = "nothing was changed; try again when they are done"
        return replanned(newest, lambda now: _once(now, kept, merge), hint)
    finally:
        kept.unpersist()


def _few_rows(source: DataFrame) -> pa.Table | None:
    """The rows of a source that is kept; None when they are many."""
    columns = arrow_schema(source.schema)
    for name in source.columns:
        field_named(name, columns, "the rows")  # an error for one that is there twice
    if source.count() > _FEW_ROWS:
        return None
    plan = source._jdf.queryExecution().withCachedData()
    if int(str(plan.stats().sizeInBytes())) > _FEW_BYTES:
        return None
    return source.select(*(column.alias(name) for name, column in nullable_columns(source).items())).toArrow()


def _once(table: IcebergTable, source: DataFrame, merge: MergeBuilder) -> Done:
    by_kind = {kind: [each for each in merge.clauses if each.kind == kind] for kind in _KINDS}
    met, by_source, inserts = by_kind["MATCHED"], by_kind["NOT MATCHED BY SOURCE"], by_kind["NOT MATCHED"]
    rows = table.dataframe(source.sparkSession)
    keys = _keys(table, rows, source, merge.on)
    if not by_source:
        rows = _narrowed(rows, source, keys)
    hidden = [F.col("_metadata.file_path").alias(FILE), F.col("_metadata.row_index").alias(PLACE)]
    own = [_column(name).alias(f"__own_{i}") for i, name in enumerate(keys)]
    beside = [_column(name) for name in rows.columns if name.lower() not in (SOURCE, TARGET)]
    target = rows.select(*beside, _struct(rows.columns, TARGET), *hidden, *own)
    others = [key.alias(f"__key_{i}") for i, key in enumerate(keys.values())]
    other = source.select(_struct(source.columns, SOURCE), *others)
    same = [target[f"__own_{i}"] == other[f"__key_{i}"] for i in range(len(keys))]
    joined = target.join(other, reduce(lambda a, b: a & b, same), "full" if by_source else "right")
    if met:
        _check_once(table, source.select(*others), joined)
    is_met, has_file = F.col(SOURCE).isNotNull(), F.col(FILE).isNotNull()
    cases = [(each, is_met) for each in met] + [(each, ~is_met) for each in by_source]
    key_names, parts = [f"__key_{i}" for i in range(len(keys))], list[DataFrame]()
    alone = joined.where(~has_file)
    with ExitStack() as at_end:
        if cases:
            changed = _changed(table, joined.where(has_file), cases, source.columns, key_names)
            if inserts and not by_source:  # the table is read once for both parts
                at_end.callback(changed.persist().unpersist)
                alone = other.join(changed.select(*key_names), key_names, "left_anti")
            parts.append(changed.where(F.col(OPERATION).isNotNull()).drop(*key_names))
        if inserts:
            names = [name for name in source.columns if name.lower() != SOURCE]
            alone = alone.select(*(F.col(SOURCE).getField(name).alias(name) for name in names), SOURCE)
            alone = alone.withColumns({FILE: F.lit(None).cast("string"), PLACE: F.lit(None).cast("bigint")})
            added = _changed(table, alone, [(each, F.lit(True)) for each in inserts], source.columns)
            parts.append(added.where(F.col(OPERATION).isNotNull()))
        return change_computed(table, reduce(DataFrame.unionByName, parts), "merge", dict(merge.properties))


def _keys(table: IcebergTable, rows: DataFrame, source: DataFrame, on: Mapping[str, str]) -> dict[str, Column]:
    """The table's key columns, and those of the source in their types."""
    columns, keys = arrow_schema(source.schema), dict[str, Column]()
    for name in source.columns:
        field_named(name, columns, "the rows")  # an error for one that is there twice
    for target, own in on.items():
        key, field = field_named(target, table.schema, "the table"), field_named(own, columns, "the rows")
        check_key(key, field.name, key.type if is_same_or_wider(field.type, key.type) else normalize(field.type))
        column = _column(field.name).cast(rows.schema[key.name].dataType)
        is_uuid = isinstance(table.version.columns.schema.find_field(key.name).field_type, UUIDType)
        keys[key.name] = F.lower(column) if is_uuid else column
    return keys


def _struct(names: Sequence[str], side: str) -> Column:
    return F.struct(*map(_column, names)).alias(side)


_FEW_ROWS, _FEW_BYTES = 100_000, 32 << 20
_MOST_KEYS = 100_000
_KINDS = ("MATCHED", "NOT MATCHED", "NOT MATCHED BY SOURCE")
_OPERATIONS = {"UPDATE": UPDATED, "DELETE": REMOVED, "INSERT": ADDED}


def _changed(
    table: IcebergTable,
    rows: DataFrame,
    cases: Sequence[tuple[ClauseText, Column]],
    source: Sequence[str],
    more: Sequence[str] = (),
) -> DataFrame:
    """Rows with the values of the first clause whose condition is true; with no operation where there is none."""
    conditions = [
        is_kind & F.coalesce(F.expr(each.where), F.lit(False)) if each.where is not None else is_kind
        for each, is_kind in cases
    ]
    which = _first(conditions, [F.lit(i) for i in range(len(cases))])
    decided = rows.withColumn("__clause", which)
    chosen = [F.col("__clause") == i for i in range(len(cases))]
    columns = [_first(chosen, [F.lit(_OPERATIONS[each.action]) for each, _ in cases]).alias(OPERATION)]
    values = [_values(table, decided, each, source) for each, _ in cases]
    types = {field.name: field.dataType for field in table.dataframe(rows.sparkSession).schema.fields}
    for name, kind in types.items():
        own = [
            each.get(name, (F.lit(None) if clause.action == "INSERT" else F.col(TARGET).getField(name)).cast(kind))
            for each, (clause, _) in zip(values, cases, strict=True)
        ]
        columns.append(_first(chosen, own).alias(name))
    return decided.select(*columns, FILE, PLACE, *more)


def _first(conditions: Sequence[Column], values: Sequence[Column]) -> Column:
    case = F.when(conditions[0], values[0])
    for condition, value in zip(conditions[1:], values[1:], strict=True):
        case = case.when(condition, value)
    return case


def _values(table: IcebergTable, rows: DataFrame, clause: ClauseText, source: Sequence[str]) -> dict[str, Column]:
    """What a clause assigns, in the types of the table; an error for what does not fit, by value where it may."""
    if clause.action == "DELETE":
        return {}
    if clause.values is None:
        values = {_name(name, table): F.col(SOURCE).getField(name) for name in source}
    else:
        values = {
            _name(str(name), table): F.expr(value) if isinstance(value, str) else F.lit(value)
            for name, value in clause.values.items()
        }
    assigned = arrow_schema(rows.select(*(value.alias(f"value_{i}") for i, value in enumerate(values.values()))).schema)
    types = {field.name: field.dataType for field in table.dataframe(rows.sparkSession).schema.fields}
    for (name, value), field in zip(values.items(), assigned, strict=True):
        kind, to = normalize(field.type), table.schema.field(name).type
        if fits(kind, to):
            values[name] = value.cast(types[name])
        elif clause.values is not None and is_assignable(kind, to):
            cast = value.try_cast(types[name])
            message = F.concat(F.lit(f"{NO_FIT}{name}: "), value.cast("string"))
            values[name] = F.when(value.isNotNull() & cast.isNull(), F.raise_error(message)).otherwise(cast)
        else:
            text = f"column {name!r} is a {type_name(to)} and was given as {type_name(kind)}"
            raise SchemaError(text, hint="cast it; nothing was written")
    return values


def _narrowed(rows: DataFrame, source: DataFrame, keys: Mapping[str, Column]) -> DataFrame:
    """The rows of the table that may meet the source: by its keys, or by their range where they are many.

    Floats are left to the join, which knows that there are two zeros.
    """
    spark = rows.sparkSession
    of_source = source.select(*keys.values())._jdf
    narrowed = call(gateway_of(spark), "Narrowed", "among", rows._jdf, list(keys), of_source, _MOST_KEYS)
    return DataFrame(narrowed, spark)


def _check_once(table: IcebergTable, keys: DataFrame, joined: DataFrame) -> None:
    """An error when a row of the table is met by several rows of the source."""
    if not keys.groupBy(*keys.columns).count().where("count > 1").take(1):
        return
    places = joined.where(F.col(FILE).isNotNull() & F.col(SOURCE).isNotNull()).groupBy(FILE, PLACE).count()
    if places.where("count > 1").take(1):
        message = f"a row of {table.name} is met by several of the rows"
        raise LakeError(message, hint="give one row for each key; nothing was written")


def _name(name: str, table: IcebergTable) -> str:
    return str(field_named(name, table.schema, "the table").name)


def _column(name: str) -> Column:
    return F.col(quote_name(name))
