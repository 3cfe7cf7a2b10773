"""`penstock sql-server`: Spark's own Thrift server in this process, with the lake as the default catalog."""

from __future__ import annotations

import json as jsonlib
from collections.abc import Mapping
from contextlib import suppress

from penstock.cli.output import echo, echo_note
from penstock.cli.sql_command import start_session
from penstock.progress import progress

_LOOPBACK = ("127.0.0.1", "localhost", "::1")


def run(place: Mapping[str, str], host: str, port: int, json: bool) -> None:
    """Serve until interrupted."""
    from penstock.lake.lake import connect
    from penstock.spark.catalog.thrift_server import start_thrift_server

    lake = connect(place["warehouse"], catalog=place["catalog"])
    with progress("starting Spark"):
        server = start_thrift_server(start_session(lake), host, port)
    url = f"jdbc:hive2://{host}:{server.port}/"
    echo(jsonlib.dumps({"url": url}) if json else f"listening at {url}; Ctrl-C ends it")
    if host not in _LOOPBACK:
        echo_note("anybody who reaches this address can read and write the tables: Spark's server asks for no password")
    with suppress(KeyboardInterrupt):
        server.serve_forever()
