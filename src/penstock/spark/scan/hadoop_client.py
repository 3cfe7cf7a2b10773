"""How Spark reads a remote storage for one table: the user's properties, in PyIceberg's words, as options of Hadoop.

The options belong to the scan: Spark merges the options of a relation into the Hadoop configuration that its readers
get, so the session's own configuration is neither needed nor changed, and no plan, page or log shows them. On S3
they are S3A's options *of one bucket*, which win over whatever the session says about S3 or about this bucket.

A file keeps the URL that the user wrote. Hadoop has no file system for `s3://`; unless the session maps one, the scan
maps it to S3A itself. So `_metadata.file_path` is the same to Penstock, which prunes by it, and to Spark.

Hadoop keeps one client for each scheme and bucket as long as the JVM lives, made with the first configuration it met.
A table whose account or endpoint is another one would silently be read with those of the first: that is an error here.
(A client for each file would be right too; it leaves thirteen threads behind for each of them.) The client is made when
a plan has succeeded, and so with credentials that are good: a mistyped secret can be corrected in the same session.

    >>> from penstock.storage.schemes import open_storage
    >>> print(scan_options(open_storage("s3://lake/t", {"s3.region": "eu-west-1"})))
    {'fs.s3a.bucket.lake.endpoint.region': 'eu-west-1'}
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from penstock.errors import PenstockWarning, StorageError
from penstock.storage.redaction import is_secret, one_line
from penstock.storage.storage import Hadoop, Properties, Storage

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MISSING = ("ClassNotFoundException", "NoClassDefFoundError")


@dataclass(frozen=True)
class Bucket:
    """What Spark reads one table with: the options of its scan, and what Hadoop makes of them."""

    storage: Storage
    hadoop: Hadoop
    options: dict[str, str] = field(repr=False)
    configuration: Any = field(repr=False)
    jvm: Any = field(repr=False)

    def check_client(self) -> None:
        """Raise where Spark would read with another account or at another endpoint, or cannot read at all."""
        client, place, hadoop = self._client(), self.storage, self.hadoop
        if client.getClass().getName() != hadoop.file_system:
            return
        has = client.getConf()
        differ = [n for n in hadoop.account if _plain(has.get(f"{hadoop.prefix}.{n}")) != self._wanted(n)]
        if differ:
            others = [f"as {scheme}://…, or " for scheme in place.schemes if scheme != place.scheme]
            message = f"{place.scheme}://{place.bucket} is open in this Spark with another {' and '.join(differ)}"
            hint = f"Hadoop keeps one client for a bucket: open the table {''.join(others[:1])}in a Spark of its own"
            raise StorageError(message, hint=hint)

    def _wanted(self, name: str) -> str:
        own = self.configuration.get(f"{self.hadoop.bucket_prefix.format(self.storage.bucket)}.{name}")
        return _plain(own if own is not None else self.configuration.get(f"{self.hadoop.prefix}.{name}"))

    def _client(self) -> Any:
        """Hadoop's file system, as the driver has it."""
        url = f"{self.storage.scheme}://{self.storage.bucket}/"
        with self.clear_errors():
            return self.jvm.org.apache.hadoop.fs.Path(url).getFileSystem(self.configuration)

    def _without_package(self) -> StorageError:
        """The package must be of just the Hadoop that Spark has, and on the class path when the JVM starts."""
        package = self.hadoop.package
        versioned = f"org.apache.hadoop:{package}:{self.jvm.org.apache.hadoop.util.VersionInfo.getVersion()}"
        hint = f"in a new process, start Spark with the configuration spark.jars.packages={versioned}"
        return StorageError(f"Spark cannot read {self.storage.url}: {package} is not on its class path", hint=hint)

    @contextmanager
    def clear_errors(self) -> Iterator[None]:
        """What Java says, in one line."""
        from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
        from pyspark.errors import PySparkException

        try:
            yield
        except (Py4JJavaError, PySparkException) as error:
            message = str(error)
            if any(name in message for name in _MISSING):
                raise self._without_package() from None
            raise _trouble(self.storage, message) from None


def open_for_spark(storage: Storage, spark: SparkSession) -> Bucket | None:
    """What a scan of this storage needs, None for local files; an error when this Spark cannot read it."""
    if storage.hadoop is None:
        return None
    options, kind = scan_options(storage), f"fs.{storage.scheme}.impl"
    configuration = spark._jsparkSession.sessionState().newHadoopConf()
    if configuration.get(kind) is None:
        options[kind] = storage.hadoop.file_system
    for name, value in options.items():
        configuration.set(name, value)
    bucket = Bucket(storage, storage.hadoop, options, configuration, spark._jvm)
    with bucket.clear_errors():
        configuration.getClassByName(configuration.get(kind))
    return bucket


def options_for_connect(storage: Storage, spark: SparkSession) -> dict[str, str]:
    """The options that may travel in a query of Spark Connect, whose server shows them: no credentials."""
    if storage.hadoop is None:
        return {}
    options = scan_options(storage)
    secrets = {name for name in options if is_secret(name)}
    if secrets:
        what = storage.hadoop.storage
        message = f"on Spark Connect the server reads {what} with its own credentials, not with those of the table"
        warnings.warn(message, PenstockWarning, stacklevel=6)
    if spark.conf.get(f"spark.hadoop.fs.{storage.scheme}.impl", None) is None:
        options[f"fs.{storage.scheme}.impl"] = storage.hadoop.file_system
    return {name: value for name, value in options.items() if name not in secrets}


def scan_options(storage: Storage) -> dict[str, str]:
    """The properties of a storage as Hadoop's options for its bucket."""
    if storage.hadoop is None:
        return {}
    prefix, options = storage.hadoop.bucket_prefix.format(storage.bucket), storage.hadoop.options(storage.properties)
    return {f"{prefix}.{name}": value for name, value in options.items()}


def general_options(kind: type[Storage], properties: Properties, spark: SparkSession) -> dict[str, str]:
    """The properties as Hadoop's options for buckets that nobody has named."""
    if kind.hadoop is None:
        return {}
    session = spark._jsparkSession.sessionState().newHadoopConf()
    schemes = [f"fs.{scheme}.impl" for scheme in kind.schemes]
    options = {name: kind.hadoop.file_system for name in schemes if session.get(name) is None}
    return options | {f"{kind.hadoop.prefix}.{name}": value for name, value in kind.hadoop.options(properties).items()}


def _trouble(storage: Storage, message: str) -> StorageError:
    """What Java said first, without a credential in it."""
    lines = [line for line in message.splitlines() if re.match(r"(: )?[\w.$]+(Exception|Error)\b", line)]
    text = (lines or message.splitlines() or [""])[0].removeprefix(": ")
    message = one_line(text, storage.properties)
    return StorageError(f"Spark cannot open {storage.url}: {message}", hint="check the storage properties")


def _plain(value: str | None) -> str:
    """Without what makes no difference in an endpoint."""
    return (value or "").removeprefix("https://").rstrip("/")
