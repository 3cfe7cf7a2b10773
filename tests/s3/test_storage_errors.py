"""Storage that does not answer as it should: one clear error in a short time, never with a credential in it."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path

import pytest

import penstock
from penstock.errors import LayoutError, PenstockError, StorageError
from penstock.tables.hive.hive_table import HiveTable
from tests.fixtures.hive_writer import write_file
from tests.fixtures.processes import wait_until
from tests.s3.server import KEY_ID, SECRET, S3Server, answers

OTHER = "another-Secret-4711"
TOKEN = "a-Session-Token-4711"
Open = Callable[..., HiveTable]


@pytest.fixture(scope="module")
def root(s3: S3Server) -> Path:
    root = s3.new_bucket() / "t"
    for i in range(3):
        write_file(root / f"k={i}" / "a.parquet")
    (root / "k=9").mkdir()
    (root / "k=9" / "a.parquet").write_bytes(b"not Parquet at all")
    return root


@pytest.fixture
def opened(s3: S3Server) -> Open:
    def opened(path: Path, schema: str | None = "n bigint", **properties: str) -> HiveTable:
        named = {name.replace("_", "-").replace("s3-", "s3.", 1): value for name, value in properties.items()}
        return penstock.hive(s3.url(path), "k int", schema, storage={**s3.properties, **named})

    return opened


def shown(error: BaseException) -> str:
    """Everything of an error that may reach a log: its texts and those of all errors behind it."""
    found: list[str] = []
    at: BaseException | None = error
    while at is not None:
        found += [str(at), repr(at), repr(vars(at)), repr(at.args)]
        at = at.__cause__ or at.__context__
    return "\n".join([*found, *traceback.format_exception(error)])


def check_no_secret(text: str) -> None:
    for secret in (SECRET, KEY_ID, OTHER, TOKEN):
        assert secret not in text


def fail(ask: Callable[[], object], kind: type[PenstockError] = StorageError) -> str:
    """The message of the error; it holds no secret, and comes soon."""
    start = time.monotonic()
    with pytest.raises(kind) as caught:
        ask()
    assert time.monotonic() - start < 60
    check_no_secret(shown(caught.value))
    assert len(str(caught.value).splitlines()) == 1
    return str(caught.value)


def test_a_missing_root(root: Path, opened: Open) -> None:
    table = opened(root.parent / "nowhere")
    assert fail(table.plan) == f"{table.root_url} does not exist; check the bucket and the path"
    assert "does not exist" in fail(lambda: opened(root.parent / "nowhere", None))


def test_a_root_that_is_an_object(root: Path, opened: Open) -> None:
    table = opened(root / "k=1" / "a.parquet")
    assert fail(table.plan) == f"{table.root_url} is not a directory; give the root of the table"


def test_a_missing_bucket(s3: S3Server, opened: Open) -> None:
    message = fail(opened(s3.root / "nobucket" / "t").plan)
    assert "cannot read s3://nobucket/t: " in message
    assert "NO_SUCH_BUCKET" in message
    assert message.endswith("check the bucket, s3.endpoint, s3.region and the credentials")


def test_a_wrong_secret(root: Path, opened: Open) -> None:
    message = fail(opened(root, s3_secret_access_key=OTHER).plan)
    assert "SIGNATURE_DOES_NOT_MATCH" in message
    assert message.endswith("and the credentials")


def test_a_wrong_key_id(root: Path, opened: Open) -> None:
    message = fail(opened(root, s3_access_key_id="another-key-id", s3_session_token=TOKEN).plan)
    assert "INVALID_ACCESS_KEY_ID" in message
    assert "another-key-id" not in message


def test_an_endpoint_where_nobody_listens(root: Path, opened: Open) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening: a connection is refused
        message = fail(opened(root, s3_endpoint=f"http://127.0.0.1:{taken.getsockname()[1]}").plan)
    assert "NETWORK_CONNECTION" in message
    assert "check the bucket, s3.endpoint" in message


def test_an_endpoint_that_never_answers_is_given_up_after_the_configured_time(root: Path, opened: Open) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen(16)
        endpoint = f"http://127.0.0.1:{silent.getsockname()[1]}"
        table = opened(root, s3_endpoint=endpoint, s3_request_timeout="0.5", s3_connect_timeout="0.5")
        assert "cannot read" in fail(table.plan)


def test_a_credential_in_what_the_storage_says_is_not_passed_on(root: Path, opened: Open) -> None:
    table = opened(root, s3_session_token=TOKEN)
    error = table.storage.trouble("lake/t", OSError(f"signed by {KEY_ID}:{SECRET}\n with {TOKEN}"))
    assert "signed by ***:*** with ***" in str(error)
    check_no_secret(shown(error))


def test_an_object_that_is_no_parquet(root: Path, opened: Open) -> None:
    table = opened(root)
    assert len(table.plan().files) == 4
    message = fail(table.arrow, LayoutError)
    assert f"{table.root_url}/k=9/a.parquet is not a Parquet file" in message
    assert table.arrow("k < 9").num_rows == 3


def test_an_object_that_disappears_after_it_was_listed(s3: S3Server) -> None:
    root = s3.new_bucket() / "t"
    for i in range(2):
        write_file(root / f"k={i}" / "a.parquet")
    table = penstock.hive(s3.url(root), "k int", "n bigint", storage=s3.properties, cache_seconds=60)
    assert len(table.plan().files) == 2
    with s3.requests() as seen:
        assert table.plan().report.list_calls == 0
    assert seen.pages == []
    s3.delete(root / "k=1" / "a.parquet")
    assert fail(table.arrow) == f"{table.root_url}/k=1/a.parquet has disappeared; plan again"
    assert table.arrow("k = 0").num_rows == 1


def test_a_directory_that_disappears_after_its_parent_was_listed(s3: S3Server) -> None:
    root = s3.new_bucket() / "t"
    for i in range(2):
        write_file(root / f"k={i}" / "a.parquet")
    table = penstock.hive(s3.url(root), "k int", "n bigint", storage=s3.properties, cache_seconds=60)
    table.plan("k = 0")
    s3.delete(root / "k=1" / "a.parquet")
    assert "k=1 does not exist" in fail(table.plan)
    assert table.arrow("k = 0").num_rows == 1


def test_nothing_that_is_shown_of_a_table_or_a_plan_holds_a_credential(root: Path, opened: Open) -> None:
    table = opened(root, None)
    plan = table.plan("k = 1")
    parts = [table, table.storage, table.key, table.storage.identity, table.storage.url, table.root_url, table.schema]
    parts += [plan, plan.report, plan.explain(), json.dumps(plan.to_dict()), list(plan.files), plan.files.paths]
    parts += [table.partitions(), table.arrow("k = 1"), plan.judgements, table.cache]
    for part in parts:
        check_no_secret(repr(part) + str(part))


def test_with_an_endpoint_of_its_own_nobody_asks_amazon_for_the_region(
    s3: S3Server, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import pyiceberg.io.pyarrow

    def asked(bucket: str) -> str:
        raise AssertionError(f"asked Amazon for the region of {bucket}")

    monkeypatch.setattr(pyiceberg.io.pyarrow, "_cached_resolve_s3_region", asked)
    for region in ({}, {"s3.region": ""}, {"client.region": "eu-central-1"}):
        storage = {name: value for name, value in s3.properties.items() if name != "s3.region"} | region
        assert len(penstock.hive(s3.url(root), "k int", "n bigint", storage=storage).plan("k = 1").files) == 1


def test_all_ways_to_write_the_scheme_lead_to_the_same_files(s3: S3Server, root: Path) -> None:
    for scheme in ("s3", "s3a", "s3n"):
        url = s3.url(root).replace("s3://", f"{scheme}://")
        table = penstock.hive(url, "k int", storage=s3.properties)
        assert table.plan("k = 1").files.paths.to_pylist() == [f"{url}/k=1/a.parquet"]
        assert table.arrow("k = 1").num_rows == 1


def test_a_killed_session_leaves_no_server(tmp_path: Path) -> None:
    code = "import sys, time, pathlib; from tests.s3.server import S3Server; "
    code += "print(S3Server(pathlib.Path(sys.argv[1])).port, flush=True); time.sleep(600)"
    with subprocess.Popen([sys.executable, "-c", code, str(tmp_path / "own")], stdout=subprocess.PIPE) as session:
        assert session.stdout is not None
        port = int(session.stdout.readline())
        session.kill()
    wait_until(lambda: not answers(port))
