"""The lakes that Spark knows as catalogs, by the names of the catalogs.

penstock.attach(spark, lake, name="lake")          an open lake
spark.sql.catalog.NAME = io.penstock.LakeCatalog   and options, for those who configure Spark by text
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING

from penstock.errors import LakeError
from penstock.lake.lake import Lake, connect

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CATALOG_CLASS = "io.penstock.LakeCatalog"
_OPTIONS = {"warehouse", "catalog", "timezone"}
_FIELD_IDS = "spark.sql.parquet.fieldId.read.enabled"
_lakes: dict[str, Lake] = {}
_lock = threading.Lock()


def attach_lake(spark: SparkSession, lake: Lake, name: str) -> None:
    """Make a lake known to all sessions of a Spark application, those that exist and those to come."""
    setting = f"spark.sql.catalog.{name}"
    if not name.isidentifier():
        raise LakeError(f"invalid catalog name {name!r}", hint="use letters, digits and underscores")
    current = spark.conf.get(setting, None)
    with _lock:
        known = _lakes.get(name)
        if current is not None and (current != CATALOG_CLASS or (known is not None and known != lake)):
            hint = "attach the lake under another name: penstock.attach(spark, lake, name=…)"
            raise LakeError(f"there is another catalog {name!r} in this Spark application", hint=hint)
        _lakes[name] = lake
    application = spark.sparkContext._jsc.sc().conf()  # where new sessions look
    for key, value in ((setting, CATALOG_CLASS), (_FIELD_IDS, "true")):
        application.set(key, value)
        spark.conf.set(key, value)


def catalog_name(spark: SparkSession, lake: Lake) -> str:
    """The name under which a lake is attached to a session; it is attached when it is not."""
    with _lock:
        known = [name for name, other in _lakes.items() if other == lake]
    for name in known:
        if spark.conf.get(f"spark.sql.catalog.{name}", None) == CATALOG_CLASS:
            return name
    name, number = "lake", 1
    while spark.conf.get(f"spark.sql.catalog.{name}", None) is not None:
        number += 1
        name = f"lake_{number}"
    attach_lake(spark, lake, name)
    return name


def open_lake(name: str, options: Mapping[str, str]) -> Lake:
    """The lake of a catalog that Spark loads: the one that was attached, or the one that the options describe."""
    with _lock:
        known = _lakes.get(name)
    if known is not None:
        return known
    unknown = sorted(set(options) - _OPTIONS)
    if unknown:
        expected = ", ".join(sorted(_OPTIONS))
        raise LakeError(f"spark.sql.catalog.{name}.{unknown[0]} is no option", hint=f"the options are {expected}")
    warehouse, catalog = options.get("warehouse"), options.get("catalog")
    if warehouse is None and catalog is None:
        hint = f"set spark.sql.catalog.{name}.warehouse, or attach it: penstock.attach(spark, lake, name={name!r})"
        raise LakeError(f"nothing says where the lake of catalog {name!r} is", hint=hint)
    lake = connect(warehouse, catalog=catalog, timezone=options.get("timezone", "UTC"))
    with _lock:
        return _lakes.setdefault(name, lake)


def attached_lake(name: str) -> Lake:
    """The lake of a catalog that Spark has loaded."""
    with _lock:
        return _lakes[name]
