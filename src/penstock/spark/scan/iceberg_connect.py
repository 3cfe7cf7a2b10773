"""An Iceberg table on Spark Connect: the files of a plan made now, read by field id on the server.

There is no JVM here to plan in, so the filter must be given, and nothing can come with a file. What needs that
(deletes, partition values that are only in metadata, defaults that Spark cannot fill in, files without field ids) is an
error that says so, never a row too many or too few.
"""

from __future__ import annotations

from functools import partial

from pyspark.sql import DataFrame, SparkSession

from penstock.errors import LakeError
from penstock.formats.format_registry import DEFAULT
from penstock.maps.shredded_file import states_of
from penstock.prune.plan import Plan
from penstock.spark.scan.connect_files import guarded, load
from penstock.spark.scan.footers import Footers
from penstock.spark.scan.hadoop_client import options_for_connect
from penstock.spark.scan.iceberg_columns import Shape
from penstock.spark.scan.iceberg_footers import Footer, read_footer
from penstock.spark.scan.iceberg_names import names_by_id
from penstock.spark.scan.iceberg_shredded import sidecar_columns
from penstock.spark.scan.iceberg_storage import spark_path
from penstock.spark.scan.relation import FIELD_IDS, find_field_ids
from penstock.storage.schemes import bucket_url, open_storage
from penstock.tables.iceberg.iceberg_table import IcebergTable
from penstock.tables.iceberg.metadata.schema_columns import arrow_type

_footers: Footers[str, Footer] = Footers(100_000)


def connect_dataframe(table: IcebergTable, spark: SparkSession, where: str) -> DataFrame:
    """The rows of the files that a filter needs."""
    plan = table.plan(where)
    fields = table.version.columns.schema.fields
    sidecars = sidecar_columns(table.version, states_of(None, table.version.sidecars))  # right for all files
    shape = Shape(tuple(fields), names_by_id(table.version.metadata), frozenset(), sidecars)
    paths = plan.files.paths.to_pylist()
    _check(table, plan, shape, paths)
    find_field_ids(spark)
    rows = load(spark, DEFAULT, shape.data(), _options(table, spark) | FIELD_IDS, list(map(spark_path, paths)))
    kinds = [arrow_type(field.field_type, field.name) for field in fields]
    shown = [guarded(shape.column(spark, f), kind).alias(f.name) for f, kind in zip(fields, kinds, strict=True)]
    return rows.select(*shown).where(where)


def _check(table: IcebergTable, plan: Plan, shape: Shape, paths: list[str]) -> None:
    if any(judgement.containers.formats is not None for judgement in plan.judgements):  # else nobody looks at files
        other = next((task for task in plan.files if (task.format or DEFAULT.name).lower() != DEFAULT.name), None)
        if other is not None:
            raise _needs_classic(f"{other.path} is a file in {other.format}")
    if any(judgement.containers.deletes for judgement in plan.judgements):
        raise _needs_classic("the table has deleted rows")
    if shape.flagged:
        raise _needs_classic("a default of a binary or nested column has to be filled in")
    version = table.version
    values = {i for spec in version.specs.values() for i in spec.identities}
    mapped = version.metadata.name_mapping() is not None
    if not values and not mapped:
        return
    for path, footer in zip(paths, _footers.of(paths, partial(read_footer, io=table.sources.io)), strict=True):
        if not footer.has_ids:
            raise _needs_classic(f"{path} has no field ids")
        missing = values - footer.ids
        if missing:
            raise _needs_classic(f"partition values are not in {path} but in metadata (field ids {sorted(missing)})")


def _needs_classic(why: str) -> LakeError:
    hint = "use a classic Spark session, or table.arrow()"
    return LakeError(f"{why}, which Spark Connect cannot be given", hint=hint)


def _options(table: IcebergTable, spark: SparkSession) -> dict[str, str]:
    location = table.version.metadata.location
    if not bucket_url(location):
        return {}
    return options_for_connect(open_storage(location, dict(table.table.io.properties)), spark)
