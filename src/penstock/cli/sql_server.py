"""`penstock sql-server`: Spark's own Thrift server in this process, with the lake as the default catalog."""

from __future__ import annotations

from contextlib import suppress

import click

from penstock.cli import options
from penstock.cli.output import as_json, echo, echo_note
from penstock.cli.table_commands import open_lake
from penstock.progress import progress

_LOOPBACK = ("127.0.0.1", "localhost", "::1")


@click.command(short_help="Answer JDBC and ODBC clients.")
@options.lake
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), default=10000, show_default=True, help="The port; 0 for any.")
@options.json
def sql_server(host: str, port: int, json: bool, **place: str) -> None:
    """Start Spark's Thrift server with the tables of a warehouse, for JDBC and ODBC clients such as beeline."""
    from penstock.spark.catalog.thrift_server import start_thrift_server
    from penstock.spark.session.session import session

    lake = open_lake(place)
    with progress("starting Spark"):
        server = start_thrift_server(session(lake=lake), host, port)
    url = f"jdbc:hive2://{host}:{server.port}/"
    echo(as_json({"url": url}) if json else f"listening at {url}; Ctrl-C ends it")
    if host not in _LOOPBACK:
        echo_note("anybody who reaches this address can read and write the tables: Spark's server asks for no password")
    with suppress(KeyboardInterrupt):
        server.serve_forever()
