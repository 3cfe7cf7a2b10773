"""S3 and what speaks its protocol: PyIceberg's properties for Arrow, and the same as options of Hadoop's S3A.

>>> S3Storage.from_url("s3", "//lake/t", {}).bucket
'lake'
>>> properties = {"s3.endpoint": "http://localhost:9000", "s3.region": "eu-west-1"}
>>> for name, value in sorted(hadoop_options(properties).items()):
...     print(name, value)
connection.ssl.enabled false
endpoint http://localhost:9000
endpoint.region eu-west-1
path.style.access true
"""

from __future__ import annotations

import hashlib
from functools import cached_property
from typing import Any, ClassVar, Self
from urllib.parse import unquote, urlsplit

from penstock.errors import StorageError
from penstock.storage.storage import Hadoop, Properties, Storage

_PROVIDERS = "org.apache.hadoop.fs.s3a"


def hadoop_options(properties: Properties) -> dict[str, str]:
    """The properties as S3A's options, without the prefix of all buckets or of one."""
    return {**_place(properties), **_account(properties), **_network(properties)}


def _place(properties: Properties) -> dict[str, str]:
    endpoint = properties.get("s3.endpoint")
    region = properties.get("s3.region") or properties.get("client.region") or (endpoint and "us-east-1")
    virtual = _is_true(properties, "s3.force-virtual-addressing")
    options = {"endpoint.region": region} if region else {}
    if endpoint:
        secure = not endpoint.lower().startswith("http://")
        options |= {"endpoint": endpoint, "connection.ssl.enabled": str(secure).lower()}
    if endpoint or virtual:
        options["path.style.access"] = str(not virtual).lower()
    return options


def _account(properties: Properties) -> dict[str, str]:
    """Who asks: nobody, a role or a key (PyArrow takes only one of them); with none, whoever the session is."""
    key, secret, token = (_either(properties, name) for name in ("access-key-id", "secret-access-key", "session-token"))
    role, name = _either(properties, "role-arn"), _either(properties, "role-session-name")
    if _is_true(properties, "s3.anonymous"):
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


def _either(properties: Properties, name: str) -> str | None:
    return properties.get(f"s3.{name}") or properties.get(f"client.{name}")


def _is_true(properties: Properties, name: str) -> bool:
    """As PyIceberg reads it."""
    return properties.get(name, "").lower() in ("y", "yes", "t", "true", "on", "1")


def _network(properties: Properties) -> dict[str, str]:
    options = {}
    timeouts = (("s3.connect-timeout", "connection.establish.timeout"), ("s3.request-timeout", "connection.timeout"))
    for theirs, name in timeouts:
        if seconds := properties.get(theirs):
            options[name] = f"{round(float(seconds) * 1_000)}ms"
    if proxy := properties.get("s3.proxy-uri"):
        parts = urlsplit(proxy)
        login = {"proxy.username": parts.username, "proxy.password": parts.password}
        options |= {name: unquote(value) for name, value in login.items() if value}
        options |= {"proxy.host": parts.hostname or "", "proxy.ssl.enabled": str(parts.scheme == "https").lower()}
        options |= {"proxy.port": str(parts.port)} if parts.port else {}
    return options


class S3Storage(Storage):
    """A bucket, or a folder in it."""

    schemes = ("s3", "s3a", "s3n")
    read_hint = "check the bucket, s3.endpoint, s3.region and the credentials"
    missing_hint = "check the bucket and the path"
    property_prefix = "s3."
    harmless_properties = frozenset({
        "client.region", "s3.anonymous", "s3.connect-timeout", "s3.endpoint", "s3.force-virtual-addressing",
        "s3.region", "s3.request-timeout", "s3.resolve-region",
    })  # fmt: skip
    impatient: ClassVar[Properties] = {"s3.connect-timeout": "3", "s3.request-timeout": "5"}
    hadoop = Hadoop(
        storage="S3",
        file_system=f"{_PROVIDERS}.S3AFileSystem",
        package="hadoop-aws",
        prefix="fs.s3a",
        bucket_prefix="fs.s3a.bucket.{}",
        account=("endpoint", "access.key", "secret.key", "session.token"),
        options=hadoop_options,
    )

    @classmethod
    def from_url(cls, scheme: str, rest: str, properties: Properties) -> Self:
        """Read `s3://bucket/path`; nothing is unescaped, and credentials are refused."""
        path = rest.removeprefix("//").rstrip("/")
        bucket = path.partition("/")[0]
        if not rest.startswith("//") or not bucket:
            raise StorageError(f"{scheme}: no bucket", hint=f"write {scheme}://bucket/path")
        if "@" in bucket:
            hint = "give s3.access-key-id and s3.secret-access-key as properties"
            raise StorageError(f"credentials in a {scheme}:// URL are not read", hint=hint)
        return cls(scheme, bucket, path, properties)

    @cached_property
    def identity(self) -> str:
        """Endpoint, bucket and account; the account by a digest of its key id."""
        names = [f"{prefix}.{name}" for name in ("access-key-id", "role-arn") for prefix in ("s3", "client")]
        key = "|".join(self.properties.get(name, "") for name in names)
        account = hashlib.sha256(key.encode()).hexdigest()[:16] if key.strip("|") else "default"
        return f"{self.scheme}|{self.properties.get('s3.endpoint', '')}|{self.bucket}|{account}"

    @cached_property
    def filesystem(self) -> Any:
        """pyarrow's file system for it, as PyIceberg makes it."""
        from pyiceberg.io.pyarrow import PyArrowFileIO

        properties = dict(self.properties)
        if properties.get("s3.endpoint") and not (properties.get("s3.region") or properties.get("client.region")):
            # Without a region PyIceberg asks Amazon where the bucket is, whoever's endpoint was given.
            properties["s3.region"] = "us-east-1"
        return PyArrowFileIO(properties).fs_by_scheme("s3", self.bucket)

    def endpoint(self) -> tuple[str, str] | None:
        """Not known where a proxy is asked instead."""
        address = self.properties.get("s3.endpoint")
        return ("s3.endpoint", address) if address and not self.properties.get("s3.proxy-uri") else None
