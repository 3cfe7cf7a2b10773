"""The gate between a data lake and Spark: only the files that a query needs get through.

This module is the public surface and nothing else. Its names are loaded when they are first used, so that
`import penstock` and `penstock --help` do not wait for Arrow, PyIceberg or Spark:

    >>> import penstock
    >>> penstock.PenstockError.__module__
    'penstock.errors'
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.errors import PenstockError as PenstockError
    from penstock.errors import PenstockWarning as PenstockWarning
    from penstock.lake.lake import connect as connect
    from penstock.lake.layout.coalesce import Coalesce as Coalesce
    from penstock.maps.shred_rule import Shred as Shred
    from penstock.spark.catalog.session_catalog import spark_table as spark_table
    from penstock.spark.catalog.session_lake import spark_catalog as spark_catalog
    from penstock.spark.session.session import attach as attach
    from penstock.spark.session.session import session as session
    from penstock.spark.stream.stream_report import stream_report as stream_report
    from penstock.tables.hive.hive_table import hive as hive
    from penstock.tables.iceberg.metadata.catalogs import iceberg as iceberg
    from penstock.tables.memory import MemoryTable as MemoryTable

__version__ = "0.1.0"

# Public name -> the module that has it. A new name goes here and under TYPE_CHECKING.
_HOMES = {
    "Coalesce": "penstock.lake.layout.coalesce",
    "MemoryTable": "penstock.tables.memory",
    "PenstockError": "penstock.errors",
    "PenstockWarning": "penstock.errors",
    "Shred": "penstock.maps.shred_rule",
    "attach": "penstock.spark.session.session",
    "connect": "penstock.lake.lake",
    "hive": "penstock.tables.hive.hive_table",
    "iceberg": "penstock.tables.iceberg.metadata.catalogs",
    "session": "penstock.spark.session.session",
    "spark_catalog": "penstock.spark.catalog.session_lake",
    "spark_table": "penstock.spark.catalog.session_catalog",
    "stream_report": "penstock.spark.stream.stream_report",
}
__all__ = ["__version__", *_HOMES]


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
