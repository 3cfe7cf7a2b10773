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
    from penstock.errors import PenstockError, PenstockWarning
    from penstock.shred.rule import Shred
    from penstock.spark.session import attach, session
    from penstock.spark.stream_report import stream_report
    from penstock.tables.hive.table import hive
    from penstock.tables.iceberg.open import iceberg
    from penstock.tables.lake import connect
    from penstock.tables.managed.coalesce import Coalesce
    from penstock.tables.memory import MemoryTable

__version__ = "0.1.0"

__all__ = [
    "Coalesce",
    "MemoryTable",
    "PenstockError",
    "PenstockWarning",
    "Shred",
    "__version__",
    "attach",
    "connect",
    "hive",
    "iceberg",
    "session",
    "stream_report",
]

# Public name -> the module that has it. A new name goes here, into __all__ and under TYPE_CHECKING.
_HOMES = {
    "Coalesce": "penstock.tables.managed.coalesce",
    "MemoryTable": "penstock.tables.memory",
    "PenstockError": "penstock.errors",
    "PenstockWarning": "penstock.errors",
    "Shred": "penstock.shred.rule",
    "attach": "penstock.spark.session",
    "connect": "penstock.tables.lake",
    "hive": "penstock.tables.hive.table",
    "iceberg": "penstock.tables.iceberg.open",
    "session": "penstock.spark.session",
    "stream_report": "penstock.spark.stream_report",
}


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
