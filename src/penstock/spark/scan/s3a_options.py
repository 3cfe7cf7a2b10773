"""How Spark reads S3 for one table: the user's storage properties, said once in PyIceberg's words, as S3A's options.

The options belong to the scan: Spark merges the options of a relation into the Hadoop configuration that its readers
get, so the session's own configuration is neither needed nor changed, and no plan, page or log shows them. They are
S3A's options *of one bucket*, which win over whatever the session says about S3 in general or about this bucket.

A file keeps the URL that the user wrote. Hadoop has no file system for `s3://`; unless the session maps one, the scan
maps it to S3A itself. So `_metadata.file_path` is the same to Penstock, which prunes by it, and to Spark.

Hadoop keeps one client for each scheme and bucket as long as the JVM lives, made with the first configuration it met.
A table whose account or endpoint is another one would silently be read with those of the first: that is an error here.
(A client for each file would be right too; it leaves thirteen threads behind for each of them.) The client is made when
a plan has succeeded, and so with credentials that are good: a mistyped secret can be corrected in the same session.

    >>> from penstock.storage.storage import open_storage
    >>> table = open_storage("s3://lake/t", {"s3.endpoint": "http://localhost:9000", "s3.region": "eu-west-1"})
    >>> for name, value in sorted(scan_options(table).items()):
    ...     print(name, value)
    fs.s3a.bucket.lake.connection.ssl.enabled false
    fs.s3a.bucket.lake.endpoint http://localhost:9000
    fs.s3a.bucket.lake.endpoint.region eu-west-1
    fs.s3a.bucket.lake.path.style.access true
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote, urlsplit

from penstock.errors import PenstockWarning, StorageError
from penstock.storage.storage import Properties, Storage, is_secret

S3A = "org.apache.hadoop.fs.s3a.S3AFileSystem"
_PROVIDERS = "org.apache.hadoop.fs.s3a"
_WHOSE = ("endpoint", "access.key", "secret.key", "session.token")
_MISSING = ("ClassNotFoundException", "NoClassDefFoundError")


@dataclass(frozen=True)
class Bucket:
    """What Spark reads one table with: the options of its scan, and what Hadoop makes of them."""

    storage: Storage
    options: dict[str, str] = field(repr=False)
    configuration: Any = field(repr=False)
    jvm: Any = field(repr=False)

    def check_client(self) -> None:
        """Raise where Spark would read with another account or at another endpoint, or cannot read at all."""
        client = self._client()
        if client.getClass().getName() != S3A:
            return
        has, place = client.getConf(), self.storage
        differ = [name for name in _WHOSE if _plain(has.get(f"fs.s3a.{name}")) != self._wanted(name)]
        if differ:
            other = "s3a" if place.scheme == "s3" else "s3"
            said = f"{place.scheme}://{place.bucket} is open in this Spark with another {' and '.join(differ)}"
            hint = f"Hadoop keeps one client for a bucket: open the table as {other}://…, or in a Spark of its own"
            raise StorageError(said, hint=hint)

    def _wanted(self, name: str) -> str:
        own = self.configuration.get(f"fs.s3a.bucket.{self.storage.bucket}.{name}")
        return _plain(own if own is not None else self.configuration.get(f"fs.s3a.{name}"))

    def _client(self) -> Any:
        """Hadoop's file system, as the driver has it."""
        url = f"{self.storage.scheme}://{self.storage.bucket}/"
        with self.clear_errors():
            return self.jvm.org.apache.hadoop.fs.Path(url).getFileSystem(self.configuration)

    @contextmanager
    def clear_errors(self) -> Iterator[None]:
        """What Java says, in one line."""
        from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
        from pyspark.errors import PySparkException

        try:
            yield
        except (Py4JJavaError, PySparkException) as error:
            said = str(error)
            if any(name in said for name in _MISSING):
                raise _without_s3a(self.storage, self.jvm) from None
            raise _trouble(self.storage, said) from None


def open_for_spark(storage: Storage, spark: Any) -> Bucket | None:
    """What a scan of this storage needs, None for local files; an error when this Spark cannot read S3."""
    if storage.scheme == "file":
        return None
    options, kind = scan_options(storage), f"fs.{storage.scheme}.impl"
    configuration = spark._jsparkSession.sessionState().newHadoopConf()
    if configuration.get(kind) is None:
        options[kind] = S3A
    for name, value in options.items():
        configuration.set(name, value)
    bucket = Bucket(storage, options, configuration, spark._jvm)
    with bucket.clear_errors():
        configuration.getClassByName(configuration.get(kind))
    return bucket


def options_for_connect(storage: Storage, spark: Any) -> dict[str, str]:
    """The options that may travel in a query of Spark Connect, whose server shows them: no credentials."""
    if storage.scheme == "file":
        return {}
    options = scan_options(storage)
    secrets = {name for name in options if is_secret(name)}
    if secrets:
        said = "on Spark Connect the server reads S3 with its own credentials, not with those of the table"
        warnings.warn(said, PenstockWarning, stacklevel=6)
    if spark.conf.get(f"spark.hadoop.fs.{storage.scheme}.impl", None) is None:
        options[f"fs.{storage.scheme}.impl"] = S3A
    return {name: value for name, value in options.items() if name not in secrets}


def scan_options(storage: Storage) -> dict[str, str]:
    """The properties of a storage as S3A's options for its bucket."""
    return {f"fs.s3a.bucket.{storage.bucket}.{name}": value for name, value in _options(storage.properties).items()}


def general_options(given: Properties) -> dict[str, str]:
    """The properties as S3A's options for buckets that nobody has named."""
    return {f"fs.s3a.{name}": value for name, value in _options(given).items()}


def _options(given: Properties) -> dict[str, str]:
    return {**_place(given), **_account(given), **_network(given)}


def _place(given: Properties) -> dict[str, str]:
    endpoint = given.get("s3.endpoint")
    region = given.get("s3.region") or given.get("client.region") or (endpoint and "us-east-1")
    virtual = _is_true(given, "s3.force-virtual-addressing")
    found = {"endpoint.region": region} if region else {}
    if endpoint:
        secure = not endpoint.lower().startswith("http://")
        found |= {"endpoint": endpoint, "connection.ssl.enabled": str(secure).lower()}
    if endpoint or virtual:
        found["path.style.access"] = str(not virtual).lower()
    return found


def _account(given: Properties) -> dict[str, str]:
    """Who asks: nobody, a role or a key (PyArrow takes only one of them); with none, whoever the session is."""
    key, secret, token = (_either(given, name) for name in ("access-key-id", "secret-access-key", "session-token"))
    role, name = _either(given, "role-arn"), _either(given, "role-session-name")
    if _is_true(given, "s3.anonymous"):
        return _provider("AnonymousAWSCredentialsProvider")
    if role:
        named = {"assumed.role.session.name": name} if name else {}
        return _provider("auth.AssumedRoleCredentialProvider") | {"assumed.role.arn": role} | named
    if not key or not secret:
        return {}
    keys = {"access.key": key, "secret.key": secret}
    if token:
        return _provider("TemporaryAWSCredentialsProvider") | keys | {"session.token": token}
    return _provider("SimpleAWSCredentialsProvider") | keys


def _provider(name: str) -> dict[str, str]:
    return {"aws.credentials.provider": f"{_PROVIDERS}.{name}"}


def _either(given: Properties, name: str) -> str | None:
    return given.get(f"s3.{name}") or given.get(f"client.{name}")


def _is_true(given: Properties, name: str) -> bool:
    """As PyIceberg reads it."""
    return given.get(name, "").lower() in ("y", "yes", "t", "true", "on", "1")


def _network(given: Properties) -> dict[str, str]:
    found = {}
    timeouts = (("s3.connect-timeout", "connection.establish.timeout"), ("s3.request-timeout", "connection.timeout"))
    for theirs, name in timeouts:
        if seconds := given.get(theirs):
            found[name] = f"{round(float(seconds) * 1_000)}ms"
    if proxy := given.get("s3.proxy-uri"):
        parts = urlsplit(proxy)
        login = {"proxy.username": parts.username, "proxy.password": parts.password}
        found |= {name: unquote(value) for name, value in login.items() if value}
        found |= {"proxy.host": parts.hostname or "", "proxy.ssl.enabled": str(parts.scheme == "https").lower()}
        found |= {"proxy.port": str(parts.port)} if parts.port else {}
    return found


def _without_s3a(storage: Storage, jvm: Any) -> StorageError:
    """hadoop-aws must be of just the Hadoop that Spark has, and on the class path when the JVM starts."""
    package = f"org.apache.hadoop:hadoop-aws:{jvm.org.apache.hadoop.util.VersionInfo.getVersion()}"
    hint = f"in a new process, start Spark with the configuration spark.jars.packages={package}"
    return StorageError(f"Spark cannot read {storage.url}: hadoop-aws is not on its class path", hint=hint)


def _trouble(storage: Storage, said: str) -> StorageError:
    """What Java said first, without a credential in it."""
    lines = [line for line in said.splitlines() if re.match(r"(: )?[\w.$]+(Exception|Error)\b", line)]
    text = (lines or said.splitlines() or [""])[0].removeprefix(": ")
    for name, value in storage.properties.items():
        if value and is_secret(name):
            text = text.replace(value, "***")
    return StorageError(f"Spark cannot open {storage.url}: {text[:300]}", hint="check the storage properties")


def _plain(value: str | None) -> str:
    """Without what makes no difference in an endpoint."""
    return (value or "").removeprefix("https://").rstrip("/")
