"""Layouts that are declared under a name: what is kept of them, and what is not."""

from __future__ import annotations

import warnings
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import penstock
from penstock.errors import LakeError, PenstockWarning

SECRETS = {
    "uri": "https://user:hidden@catalog.example.com",
    "header.Authorization": "Bearer hidden",
    "header.X-Anything": "hidden",
    "adls.connection-string": "DefaultEndpointsProtocol=https;AccountName=a;AccountKey=hidden",
    "adls.sas-token": "hidden",
    "s3.proxy-uri": "http://user:hidden@proxy.example.com",
    "s3.access-key-id": "hidden",
    "s3.secret-access-key": "hidden",
    "s3.session-token": "hidden",
    "s3.signer.uri": "https://signer.example.com?sig=hidden",
    "client.profile-name": "hidden",
    "gcs.oauth2.token": "hidden",
    "hf.token": "hidden",
    "anything.else": "hidden",
}
PLAIN = {
    "s3.endpoint": "http://localhost:9000", "s3.region": "eu-west-1", "s3.force-virtual-addressing": "true",
    "s3.connect-timeout": "3",
}  # fmt: skip


def layout(tmp_path: Path, **properties: str) -> penstock.HiveTable:
    (tmp_path / "h" / "app=a").mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"n": [1]}), tmp_path / "h" / "app=a" / "x.parquet")
    return penstock.hive(tmp_path / "h", "app string", storage=properties)


def declared(tmp_path: Path) -> str:
    return (tmp_path / "penstock" / "tables" / "web" / "h.json").read_text()


def test_a_declaration_holds_no_credential_of_any_form(tmp_path: Path) -> None:
    lake = penstock.connect(tmp_path)
    with pytest.warns(PenstockWarning) as told:
        lake.register("web.h", layout(tmp_path, **SECRETS, **PLAIN))
    assert "hidden" not in declared(tmp_path)
    (message,) = [str(warning.message) for warning in told]
    assert "hidden" not in message
    assert all(name in message for name in SECRETS)
    assert ".pyiceberg.yaml" in message
    opened = lake.table("web.h")
    assert {name: opened.storage.properties.get(name) for name in PLAIN} == PLAIN  # type: ignore[union-attr]
    assert opened.arrow().num_rows == 1


@pytest.mark.parametrize(
    "endpoint", ["http://user:hidden@host:9000", "http://host:9000?token=hidden", "http://h/#hidden"]
)
def test_an_address_with_a_user_or_parameters_is_not_kept(tmp_path: Path, endpoint: str) -> None:
    with pytest.warns(PenstockWarning, match=r"does not keep s3\.endpoint"):
        penstock.connect(tmp_path).register("web.h", layout(tmp_path, **{"s3.endpoint": endpoint}))
    assert "hidden" not in declared(tmp_path)


def test_what_is_configured_anyway_is_not_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYICEBERG_CATALOG__DEFAULT__S3__SECRET_ACCESS_KEY", "hidden")
    lake = penstock.connect(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lake.register("web.h", layout(tmp_path, **{"s3.secret-access-key": "hidden"}))
    assert "hidden" not in declared(tmp_path)
    assert lake.table("web.h").storage.properties["s3.secret-access-key"] == "hidden"  # type: ignore[union-attr]


@pytest.mark.parametrize("name", ["h", "web.h.x", "web.h/x", "../web.h", ""])
def test_a_name_that_cannot_be_kept_is_said(tmp_path: Path, name: str) -> None:
    with pytest.raises(LakeError, match="invalid table name"):
        penstock.connect(tmp_path).register(name, layout(tmp_path))
