"""Where the files of an Iceberg table lie, for Spark: any bucket, read with the properties that PyIceberg reads with.

The files need not lie where the metadata does, and nobody knows where they lie before a plan is made. So the scan's
options hold the table's properties for the buckets that the metadata names, and for its kinds of storage in general;
before files are read, each bucket is checked to be open with them (see `hadoop_client.py` for why it might not be).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from pyspark.sql import SparkSession

from penstock.spark.scan.hadoop_client import Bucket, general_options, open_for_spark
from penstock.storage.schemes import KINDS, bucket_url, open_storage
from penstock.tables.iceberg.iceberg_table import IcebergTable

_PLACES = ("write.data.path", "write.object-storage.path", "write.folder-storage.path")


def spark_path(path: str) -> str:
    """A path as Spark takes it: without a scheme it is local, whatever the session's default file system is.

    >>> spark_path("/data/x.parquet"), spark_path("s3://lake/x.parquet")
    ('file:///data/x.parquet', 's3://lake/x.parquet')
    """
    return f"file://{path}" if path.startswith("/") else path


@dataclass(frozen=True)
class Places:
    """The buckets of one table."""

    locations: tuple[str, ...]
    properties: Mapping[str, str] = field(repr=False)
    spark: SparkSession = field(repr=False, compare=False)
    _buckets: dict[str, Bucket | None] = field(default_factory=dict, repr=False, compare=False)

    @cached_property
    def options(self) -> dict[str, str]:
        """The options of a scan."""
        buckets = [self._bucket(url) for url in sorted({bucket_url(path) for path in self.locations} - {""})]
        options: dict[str, str] = {}
        for kind in KINDS:
            is_used = any(bucket is not None and isinstance(bucket.storage, kind) for bucket in buckets)
            if is_used or any(name.startswith(kind.property_prefix) for name in self.properties):
                options |= general_options(kind, self.properties, self.spark)
        for bucket in buckets:
            options |= {} if bucket is None else bucket.options
        return options

    def check(self, paths: Iterable[str]) -> None:
        """Raise where Spark would read files with another account or at another endpoint, or cannot read them."""
        for place in sorted({bucket_url(path) for path in paths} - {""}):
            bucket = self._bucket(place)
            if bucket is not None:
                bucket.check_client()

    def _bucket(self, place: str) -> Bucket | None:
        if place not in self._buckets:
            self._buckets[place] = open_for_spark(open_storage(place, self.properties), self.spark)
        return self._buckets[place]


def places_of(table: IcebergTable, spark: SparkSession) -> Places:
    """The places that the metadata of a table names."""
    metadata = table.version.metadata
    named = [metadata.properties[name] for name in _PLACES if name in metadata.properties]
    return Places((metadata.location, *named), dict(table.table.io.properties), spark)
