"""The storage properties, in PyIceberg's words, as S3A's options: what is said once means the same to both readers."""

from __future__ import annotations

import pytest

from penstock.spark.scan.hadoop_client import scan_options
from penstock.storage.schemes import open_storage

HOME = "org.apache.hadoop.fs.s3a"
KEYS = {"s3.access-key-id": "id-1", "s3.secret-access-key": "secret-1"}
ITS_KEYS = {"access.key": "id-1", "secret.key": "secret-1"}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, {}),
        ({"s3.region": "eu-west-1"}, {"endpoint.region": "eu-west-1"}),
        ({"client.region": "eu-west-1"}, {"endpoint.region": "eu-west-1"}),
        (
            {"s3.endpoint": "http://minio:9000"},
            {
                "endpoint": "http://minio:9000",
                "endpoint.region": "us-east-1",
                "connection.ssl.enabled": "false",
                "path.style.access": "true",
            },
        ),
        (
            {"s3.endpoint": "https://minio", "s3.force-virtual-addressing": "True", "s3.region": "r"},
            {
                "endpoint": "https://minio",
                "endpoint.region": "r",
                "connection.ssl.enabled": "true",
                "path.style.access": "false",
            },
        ),
        (KEYS, {**ITS_KEYS, "aws.credentials.provider": f"{HOME}.SimpleAWSCredentialsProvider"}),
        (
            {"client.access-key-id": "id-1", "client.secret-access-key": "secret-1"},
            {**ITS_KEYS, "aws.credentials.provider": f"{HOME}.SimpleAWSCredentialsProvider"},
        ),
        (
            {**KEYS, "s3.session-token": "token-1"},
            {
                **ITS_KEYS,
                "session.token": "token-1",
                "aws.credentials.provider": f"{HOME}.TemporaryAWSCredentialsProvider",
            },
        ),
        ({"s3.access-key-id": "id-1"}, {}),
        (
            {**KEYS, "s3.anonymous": "true"},
            {"aws.credentials.provider": f"{HOME}.AnonymousAWSCredentialsProvider"},
        ),
        (
            {"s3.role-arn": "arn:x", "s3.role-session-name": "me"},
            {
                "assumed.role.arn": "arn:x",
                "assumed.role.session.name": "me",
                "aws.credentials.provider": f"{HOME}.auth.AssumedRoleCredentialProvider",
            },
        ),
        (
            {"s3.connect-timeout": "2.5", "s3.request-timeout": "30"},
            {"connection.establish.timeout": "2500ms", "connection.timeout": "30000ms"},
        ),
        (
            {"s3.proxy-uri": "http://me:p%40ss@proxy:3128"},
            {
                "proxy.host": "proxy",
                "proxy.port": "3128",
                "proxy.username": "me",
                "proxy.password": "p@ss",
                "proxy.ssl.enabled": "false",
            },
        ),
        ({"uri": "sqlite://", "adls.account-key": "no business of S3"}, {}),
    ],
)
def test_properties_become_options_of_the_one_bucket(given: dict[str, str], expected: dict[str, str]) -> None:
    found = scan_options(open_storage("s3://lake/t", given))
    assert found == {f"fs.s3a.bucket.lake.{name}": value for name, value in expected.items()}
