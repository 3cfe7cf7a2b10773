"""An Iceberg table on Spark Connect: the files of a plan made now, read by field id on the server.

There is no JVM here to plan in, so the filter must be given, and nothing can come with a file. What needs that
(deletes, partition values that are only in metadata, defaults that Spark cannot fill in, files without field ids) is an
error that says so, never a row too many or too few.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.errors import LakeError
from penstock.expr.sql_text import quote_text
from penstock.formats.format_registry import DEFAULT
from penstock.maps.shredded_file import states_of
from penstock.spark.scan.hadoop_client import options_for_connect
from penstock.spark.scan.iceberg_columns import Shape, quoted, read_type
from penstock.spark.scan.iceberg_files import FIELD_IDS
from penstock.spark.scan.iceberg_footers import Footers
from penstock.spark.scan.iceberg_names import names_by_id
from penstock.spark.scan.iceberg_shredded import merged, sidecar_columns
from penstock.spark.scan.iceberg_storage import spark_path
from penstock.spark.scan.nan_guard import guarded
from penstock.storage.schemes import bucket_url, open_storage
from penstock.tables.iceberg.metadata.schema_columns import arrow_type

if TYPE_CHECKING:
    from pyiceberg.types import NestedField
    from pyspark.sql import DataFrame, SparkSession

    from penstock.prune.plan import Plan
    from penstock.tables.iceberg.iceberg_table import IcebergTable

_footers = Footers()


def connect_dataframe(table: IcebergTable, spark: SparkSession, where: str) -> DataFrame:
    """The rows of the files that a filter needs."""
    plan = table.plan(where)
    fields = table.version.columns.schema.fields
    sidecars = sidecar_columns(table.version, states_of(None, table.version.sidecars))  # right for all files
    shape = Shape(tuple(fields), names_by_id(table.version.metadata), frozenset(), sidecars)
    paths = plan.files.paths.to_pylist()
    _check(table, plan, shape, paths)
    schema = shape.data()
    spark.conf.set(FIELD_IDS, "true")
    reader = spark.read.schema(schema).options(**_options(table, spark), **{FIELD_IDS: "true"})
    rows = (
        reader.format(DEFAULT.name).load(list(map(spark_path, paths))) if paths else spark.createDataFrame([], schema)
    )
    shown = [f"{_shown(shape, f)} AS {quoted(f.name)}" for f in fields]
    return rows.selectExpr(*shown).where(where)


def _shown(shape: Shape, field: NestedField) -> str:
    """A column of the table as Spark SQL over what is read."""
    whole = _with_maps(shape, field, shape.shown(field), (field.name,))
    return guarded(whole, arrow_type(field.field_type, field.name))


def _with_maps(shape: Shape, field: Any, text: str, path: tuple[str, ...]) -> str:
    """A column whose shredded maps are whole, as Spark SQL: the server has no rule of ours."""
    own = [(sidecar.key, shape.value(sidecar)) for sidecar in shape.sidecars if sidecar.path == path]
    if own:
        return merged(text, own, read_type(field.field_type))
    if not any(sidecar.path[: len(path)] == path for sidecar in shape.sidecars):
        return text
    parts = [
        f"{quote_text(f.name)}, {_with_maps(shape, f, f'{text}.{quoted(f.name)}', (*path, f.name))}"
        for f in field.field_type.fields
    ]
    return f"if({text} IS NULL, NULL, named_struct({', '.join(parts)}))"


def _check(table: IcebergTable, plan: Plan, shape: Shape, paths: list[str]) -> None:
    if any(judgement.containers.deletes for judgement in plan.judgements):
        raise _needs_classic("the table has deleted rows")
    if shape.flagged:
        raise _needs_classic("a default of a binary or nested column has to be filled in")
    version = table.version
    values = {i for spec in version.specs.values() for i in spec.identities}
    mapped = version.metadata.name_mapping() is not None
    if not values and not mapped:
        return
    for path, footer in zip(paths, _footers.of(paths, table.sources.io), strict=True):
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
