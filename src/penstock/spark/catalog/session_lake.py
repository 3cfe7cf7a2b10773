"""The session catalog as a catalog of Penstock's, for SQL: each name is the same table, read by Penstock's plan.

    penstock.attach(spark, penstock.spark_catalog(spark), name="pruned")
    spark.sql("SELECT … FROM pruned.dw.events")

It is a lake that is only read. Tables are written under their own names, where Spark keeps the metastore up to date.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NoReturn

from penstock.errors import LakeError
from penstock.lake.lake import Lake
from penstock.lake.managed_table import ManagedTable
from penstock.lake.namespaces import Namespaces
from penstock.spark.catalog.session_catalog import SessionCatalog, spark_table
from penstock.storage.storage import Properties
from penstock.tables.metastore.metastore_table import MetastoreTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class SessionLake(Lake):
    """The tables of a session catalog, returned by `penstock.spark_catalog`."""

    metastore: SessionCatalog = field(kw_only=True)
    storage: Properties | str | None = field(default=None, kw_only=True, repr=False)

    def table(self, name: str) -> MetastoreTable:
        """Open a table by its name."""
        opened = spark_table(self.metastore.spark, name, storage=self.storage)
        return replace(opened, context=replace(opened.context, timezone=self.timezone))

    def has_table(self, name: str) -> bool:
        """Whether the catalog has a table or a view of this name."""
        database, _, table = name.rpartition(".")
        return table.lower() in (each.lower() for each in self.metastore.tables(database)) if database else False

    def tables(self) -> list[str]:
        """The names of all tables and views."""
        names = (f"{each}.{name}" for each in self.metastore.databases() for name in self.metastore.tables(each))
        return sorted(names)

    def has_catalog(self) -> bool:
        """Whether there is a catalog of PyIceberg's: there is none."""
        return False

    @property
    def namespaces(self) -> Namespaces:
        """The databases."""
        return _Databases(self)

    def writable_table(self, name: str) -> ManagedTable:
        """An error: Spark writes the tables of its catalog."""
        raise LakeError(
            f"{name} is a table of a metastore, which Penstock reads", hint=f"write to spark_catalog.{name}"
        )

    def create_table(self, name: str, *_: Any, **__: Any) -> ManagedTable:
        """An error: Spark makes the tables of its catalog."""
        self._only_read(name)

    def register(self, name: str, table: Any) -> Any:
        """An error: Spark makes the tables of its catalog."""
        self._only_read(name)

    def drop_table(self, name: str, *, purge: bool = False) -> None:
        """An error: Spark drops the tables of its catalog."""
        self._only_read(name)

    def unregister(self, name: str) -> None:
        """An error: Spark drops the tables of its catalog."""
        self._only_read(name)

    def rename_table(self, name: str, new_name: str) -> None:
        """An error: Spark renames the tables of its catalog."""
        self._only_read(name)

    def _only_read(self, name: str) -> NoReturn:
        hint = "do it in the session catalog: spark_catalog.database.table"
        raise LakeError(f"{name}: Penstock does not change tables of a metastore", hint=hint)


class _Databases(Namespaces):
    """The databases of a session catalog."""

    lake: SessionLake

    def names(self, parent: str = "") -> list[str]:
        return [] if parent else sorted(self.lake.metastore.databases())

    def exists(self, name: str) -> bool:
        return name in self.lake.metastore.databases()

    def properties(self, name: str) -> dict[str, str]:
        self.check(name)
        return {}

    def create(self, name: str, properties: Mapping[str, str]) -> None:
        self.lake._only_read(name)

    def create_if_missing(self, name: str) -> None:
        self.lake._only_read(name)

    def change(self, name: str, new: Mapping[str, str], removed: Sequence[str]) -> None:
        self.lake._only_read(name)

    def drop(self, name: str, *, cascade: bool = False) -> None:
        self.lake._only_read(name)


def spark_catalog(spark: SparkSession, *, storage: Properties | str | None = None) -> SessionLake:
    """The tables of Spark's session catalog, to be attached under a name of their own for SQL.

    `storage` is the account for Python's reads, as in `penstock.spark_table`.
    """
    metastore = SessionCatalog.of(spark)
    zone = str(spark.conf.get("spark.sql.session.timeZone"))
    return SessionLake(None, None, zone, metastore=metastore, storage=storage)
