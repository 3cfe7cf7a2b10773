"""`penstock report` and `penstock serve`: a page about one table, in a file or live. Neither starts Spark."""

from __future__ import annotations

import os
from contextlib import suppress

import click

from penstock.cli import options
from penstock.cli.group import Predicated
from penstock.cli.output import as_json, echo, echo_json, echo_note, warnings_as_notes
from penstock.cli.table_commands import open_table
from penstock.errors import StorageError
from penstock.progress import Counted, progress


@click.command(cls=Predicated, short_help="Write an HTML page about a table and a query.")
@options.table
@options.where
@options.path
@click.option("-o", "--output", default="report.html", show_default=True, help="The file that is written.")
@options.no_advice
@options.version
@options.json
def report(where: str | None, path: str | None, output: str, no_advice: bool, json: bool, **place: str) -> None:
    """Write a page about TABLE: a map of it, what a query reads, and why.

    TABLE is a name, an Iceberg table's metadata file, or the path or URL of a Hive layout. All of it is listed once.
    """
    from penstock.prune.plan_report import human_bytes
    from penstock.report.page import page
    from penstock.report.page_data import Collector

    if not json:
        _check_writable(output)
    with progress(f"looking at {place['table']}"):
        with warnings_as_notes():
            table = open_table(place)
        data = Collector(table, advice=not no_advice).look(where, path)
    if json:
        echo_json(data)
        return
    content = page(data).encode()
    try:
        with open(output, "wb") as file:
            file.write(content)
    except OSError as error:
        raise _cannot_write(output, error.strerror or str(error)) from None
    for note in data["notes"]:
        echo_note(note)
    kept, total = data["report"]["files"]["kept"], data["table"]["files"]
    message = f"{Counted(kept, total, 'file')} {'is' if kept == 1 else 'are'} read"
    echo(f"{output}: {human_bytes(len(content))}; {message}")


@click.command(short_help="Show that page live, with a field for the query.")
@options.table
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="The port.  [default: a free one]")
@click.option("--open", "show", is_flag=True, help="Open the page in the browser.")
@options.no_advice
@options.version
@options.json
def serve(port: int, show: bool, no_advice: bool, json: bool, **place: str) -> None:
    """Show the page of `penstock report` live, on this machine only, with a field for predicates. It writes nothing."""
    from penstock.report.live_page import Server
    from penstock.report.page_data import Collector

    with warnings_as_notes():
        table = open_table(place)
    with Server(Collector(table, not no_advice), port) as server, suppress(KeyboardInterrupt):
        message = f"{place['table']} is shown at {server.url} on this machine only; Ctrl-C ends it"
        echo(as_json({"table": place["table"], "url": server.url}) if json else message)
        if show:
            import webbrowser

            webbrowser.open(server.url)
        server.serve_forever()


def _check_writable(output: str) -> None:
    """Found out before a large table is looked at."""
    folder = os.path.dirname(os.path.abspath(output))
    if os.path.isdir(output):
        raise _cannot_write(output, "it is a directory")
    if not os.path.isdir(folder):
        raise _cannot_write(output, f"there is no directory {folder}")


def _cannot_write(output: str, why: str) -> StorageError:
    return StorageError(f"the page cannot be written to {output}: {why}", hint="name a file with -o")
