"""Spark's Thrift server inside the driver: JDBC and ODBC clients have sessions of their own, with the lake attached."""

from __future__ import annotations

import socket
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from penstock.errors import PenstockError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LAKE = "spark.sql.defaultCatalog"


@dataclass(frozen=True)
class ThriftServer:
    """A server that is running."""

    port: int
    server: Any

    def serve_forever(self) -> None:
        """Wait for an interrupt, then close it; statements that run end."""
        try:
            threading.Event().wait()
        finally:
            self.stop()

    def stop(self) -> None:
        """Close it; statements that run end."""
        self.server.stop()


def start_thrift_server(spark: SparkSession, host: str = "127.0.0.1", port: int = 0) -> ThriftServer:
    """Start the server; the session's current catalog is the default one of its clients. Port 0 is any free one."""
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]

    chosen = _free_port(host, port)
    jvm = spark._jvm
    assert jvm is not None
    settings = {
        "hive.server2.thrift.bind.host": host,
        "hive.server2.thrift.port": str(chosen),
        "hive.server2.transport.mode": "binary",
        _LAKE: spark.catalog.currentCatalog(),
    }
    application = spark.sparkContext._jsc.sc().conf()
    for name, value in settings.items():
        spark.conf.set(name, value)
        application.set(name, value)
    try:
        servers = jvm.org.apache.spark.sql.hive.thriftserver.HiveThriftServer2
        server = servers.startWithContext(spark._jsparkSession.sqlContext())
    except (Py4JError, TypeError) as error:
        message = f"Spark's Thrift server does not start on {host}:{chosen}: {str(error).splitlines()[0]}"
        raise PenstockError(message, hint="it needs PySpark with its Hive classes, and a free port") from None
    return ThriftServer(chosen, server)


def _free_port(host: str, port: int) -> int:
    try:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host, port))
            return int(probe.getsockname()[1])
    except OSError as error:
        message = f"cannot listen on {host}:{port}: {error.strerror}"
        raise PenstockError(message, hint="choose another --port, or 0 for any free one") from None
