"""A server of Hive's metastore on a free port of this machine, with Derby behind it; it ends with the block."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.fixtures.processes import wait_until

_SERVER = "org.apache.hadoop.hive.metastore.HiveMetaStore"
# Without Hive itself there are neither its expressions nor its cleaner of replication dumps.
_WITHOUT_HIVE = {
    "metastore.expression.proxy": "org.apache.hadoop.hive.metastore.DefaultPartitionExpressionProxy",
    "metastore.task.threads.always": "org.apache.hadoop.hive.metastore.events.EventCleanerTask",
}


@contextmanager
def metastore_server(jars: Sequence[Path], root: Path) -> Iterator[str]:
    """The URI of a server that keeps everything in a folder."""
    port = _free_port()
    settings = {
        **_WITHOUT_HIVE,
        "metastore.warehouse.dir": f"{root}/warehouse",
        "metastore.thrift.bind.host": "127.0.0.1",
        "metastore.schema.verification": "false",
        "datanucleus.schema.autoCreateAll": "true",
        "javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={root}/metastore;create=true",
    }
    configured = [part for name, value in settings.items() for part in ("--hiveconf", f"{name}={value}")]
    path = os.pathsep.join(map(str, jars))
    command = ["java", "-Xmx512m", f"-Dderby.system.home={root}", "-cp", path, _SERVER, "-p", str(port), *configured]
    with (root / "server.log").open("wb") as log:
        server = subprocess.Popen(command, cwd=root, stdout=log, stderr=subprocess.STDOUT)
    try:
        wait_until(lambda: server.poll() is not None or _listens(port))
        assert server.poll() is None, (root / "server.log").read_text()[:3000]
        yield f"thrift://127.0.0.1:{port}"
    finally:
        server.terminate()
        try:
            server.wait(30)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait(30)


def _free_port() -> int:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        port: int = bound.getsockname()[1]
        return port


def _listens(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0
