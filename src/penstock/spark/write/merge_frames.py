"""A merge of a Spark DataFrame: joined with the table by Spark, so that the rows can be more than fit into memory.

Names mean what they mean to a merge of Arrow rows: those of the table, `source.name` and `target.name`; in inserts
those of the rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from penstock.errors import LakeError
from penstock.expr.sql_text import quote_name, to_sql
from penstock.lake.commit.commit import fresh, replanned
from penstock.lake.write.assignments import field_named
from penstock.lake.write.merge_keys import keys_of
from penstock.lake.write.writes import Done
from penstock.spark.catalog.computed_changes import ADDED, FILE, OPERATION, PLACE, REMOVED, UPDATED, change_computed

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from penstock.lake.merge_builder import ClauseText, MergeBuilder
    from penstock.tables.iceberg.iceberg_table import IcebergTable

_MOST_KEYS = 10_000


def merge_frames(table: IcebergTable, merge: MergeBuilder) -> Done:
    """Do a merge; planned again when other writers were faster."""
    source: DataFrame = merge.rows
    kept = source.persist()
    try:
        newest = replace(table, table=fresh(table.table))
        hint = "nothing was changed; try again when they are done"
        return replanned(newest, lambda now: _once(now, kept, merge), hint)
    finally:
        kept.unpersist()


def _once(table: IcebergTable, source: DataFrame, merge: MergeBuilder) -> Done:
    by_kind = {kind: [each for each in merge.clauses if each.kind == kind] for kind in _KINDS}
    met, by_source, inserts = by_kind["MATCHED"], by_kind["NOT MATCHED BY SOURCE"], by_kind["NOT MATCHED"]
    on = {_name(name, table.schema.names): own for name, own in merge.on.items()}
    hidden = [F.col("_metadata.file_path").alias(FILE), F.col("_metadata.row_index").alias(PLACE)]
    rows = table.dataframe(source.sparkSession)
    if not by_source:
        rows = _narrowed(rows, source, on)
    target = rows.select("*", F.struct(*map(_column, rows.columns)).alias("target"), *hidden)
    sides = [F.struct(*map(_column, source.columns)).alias("source")]
    other = source.select(*sides, *(_column(own).alias(f"__key_{i}") for i, own in enumerate(on.values())))
    same = [target[quote_name(name)] == other[f"__key_{i}"] for i, name in enumerate(on)]
    joined = target.join(other, reduce(lambda a, b: a & b, same), "full" if by_source else "right")
    if met:
        _check_once(table, source, joined, list(on.values()))
    is_met = F.col("source").isNotNull()
    there = joined.where(F.col(FILE).isNotNull())
    cases = [(each, is_met) for each in met] + [(each, ~is_met) for each in by_source]
    parts = [_changed(there, cases, rows.schema, source.columns)] if cases else []
    if inserts:
        alone = joined.where(F.col(FILE).isNull()).select("source.*", "source")
        cases = [(each, F.lit(True)) for each in inserts]
        alone = alone.withColumns({FILE: F.lit(None).cast("string"), PLACE: F.lit(None).cast("bigint")})
        parts.append(_changed(alone, cases, rows.schema, source.columns))
    return change_computed(table, reduce(DataFrame.unionByName, parts), "merge", dict(merge.properties))


_KINDS = ("MATCHED", "NOT MATCHED", "NOT MATCHED BY SOURCE")
_OPERATIONS = {"UPDATE": UPDATED, "DELETE": REMOVED, "INSERT": ADDED}


def _changed(
    rows: DataFrame, cases: Sequence[tuple[ClauseText, Column]], schema: StructType, source: Sequence[str]
) -> DataFrame:
    """The rows that a clause is about, with its values; the first clause whose condition is true decides."""
    conditions = [
        is_kind & F.coalesce(F.expr(each.where), F.lit(False)) if each.where is not None else is_kind
        for each, is_kind in cases
    ]
    which = _first(conditions, [F.lit(i) for i in range(len(cases))])
    decided = rows.withColumn("__clause", which).where(F.col("__clause").isNotNull())
    chosen = [F.col("__clause") == i for i in range(len(cases))]
    columns = [_first(chosen, [F.lit(_OPERATIONS[each.action]) for each, _ in cases]).alias(OPERATION)]
    values = [_values(each, schema.names, source) for each, _ in cases]
    for field in schema.fields:
        own = [
            each.get(field.name, F.lit(None) if clause.action == "INSERT" else _column(field.name)).cast(field.dataType)
            for each, (clause, _) in zip(values, cases, strict=True)
        ]
        columns.append(_first(chosen, own).alias(field.name))
    return decided.select(*columns, FILE, PLACE)


def _first(conditions: Sequence[Column], values: Sequence[Column]) -> Column:
    case = F.when(conditions[0], values[0])
    for condition, value in zip(conditions[1:], values[1:], strict=True):
        case = case.when(condition, value)
    return case


def _values(clause: ClauseText, names: Sequence[str], source: Sequence[str]) -> Mapping[str, Column]:
    if clause.action == "DELETE":
        return {}
    if clause.values is None:
        return {_name(name, names): F.col("source").getField(name) for name in source}
    return {
        _name(str(name), names): F.expr(value) if isinstance(value, str) else F.lit(value)
        for name, value in clause.values.items()
    }


def _narrowed(rows: DataFrame, source: DataFrame, on: Mapping[str, str]) -> DataFrame:
    """The rows of the table that may meet the source: by its keys where they are few, else by their range."""
    columns = [_column(own).alias(name) for name, own in on.items()]
    keys = source.select(*columns).distinct().limit(_MOST_KEYS + 1).toArrow()
    if keys.num_rows <= _MOST_KEYS:
        return rows.where(to_sql(keys_of(keys, [(name, name) for name in on]).predicate()))
    ends = [end(_column(own)) for own in on.values() for end in (F.min, F.max)]
    values = source.agg(*ends).collect()[0]
    for i, name in enumerate(on):
        rows = rows.where(_column(name).between(F.lit(values[2 * i]), F.lit(values[2 * i + 1])))
    return rows


def _check_once(table: IcebergTable, source: DataFrame, joined: DataFrame, keys: Sequence[str]) -> None:
    """An error when a row of the table is met by several rows of the source."""
    several = source.groupBy(*map(_column, keys)).count().where("count > 1").limit(1)
    if not several.take(1):
        return
    places = joined.where(F.col(FILE).isNotNull() & F.col("source").isNotNull()).groupBy(FILE, PLACE).count()
    if places.where("count > 1").take(1):
        message = f"a row of {table.name} is met by several of the rows"
        raise LakeError(message, hint="give one row for each key; nothing was written")


def _name(name: str, names: Sequence[str]) -> str:
    return str(field_named(name, pa.schema([(each, pa.null()) for each in names]), "the table").name)


def _column(name: str) -> Column:
    return F.col(quote_name(name))
