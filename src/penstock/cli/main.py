"""The command group: which commands there are.

`penstock --help` has to be there at once, so this module imports click and nothing heavier; each command
imports its own module when it runs.
"""

from collections.abc import Callable
from functools import reduce
from typing import IO, Any

import click

from penstock import __version__
from penstock.cli.group import Commands, Predicated

_EXAMPLES = """\b
Examples:
  penstock demo
  penstock explain ./events --where "dt = '2026-05-17' AND app = 'shop'"
  penstock ingest ./events web.events --partition-by "dt, app" --coalesce app
  penstock report web.events --where "app = 'shop'" -o report.html
"""


@click.group(
    name="penstock",
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120},
    epilog=_EXAMPLES,
)
@click.version_option(__version__, prog_name="penstock")
def main() -> None:
    """Only the files that a query needs get through."""


def _together(*options: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Several options as one decorator; `--help` shows them in this order."""
    return lambda command: reduce(lambda decorated, option: option(decorated), reversed(options), command)


_PATH = click.Path(readable=False)  # a name is fine too; shells complete it as a path
_table = click.argument("table", type=_PATH)
_where = click.option("--where", help="A predicate in Spark SQL.")
_path = click.option("--path", help="A LIKE pattern that a file's URL must match.")
_no_advice = click.option("--no-advice", is_flag=True, help="Leave the advice out, which reads a sample of maps.")
_json = click.option("--json", is_flag=True, help="Print for machines.")
_partition_by = click.option(
    "--partition-by", default="auto", show_default=True, help="Partition columns of a path: 'dt date, app string'."
)
_warehouse = click.option("--warehouse", default="./warehouse", show_default=True, envvar="PENSTOCK_WAREHOUSE",
                          show_envvar=True, help="Where tables are known by name.")  # fmt: skip
_catalog = click.option("--catalog", help="A catalog of PyIceberg's configuration instead of the warehouse's own.")
_snapshot = click.option("--snapshot", help="A snapshot's id, a time, a tag or a branch of an Iceberg table.")
_storage = click.option("--storage", help="A catalog of PyIceberg's configuration whose storage settings are used.")
_timezone = click.option("--timezone", help="The zone of times without one.  [default: UTC, or as it was registered]")
_lake = _together(_warehouse, _catalog)
_place = _together(_partition_by, _storage, _timezone, _lake)
_version = _together(_place, _snapshot)


@main.command(cls=Predicated)
@_table
@_where
@_path
@_version
@_json
def explain(where: str | None, path: str | None, json: bool, **place: str) -> None:
    """Show which files of TABLE a query needs, and why.

    TABLE is a name, an Iceberg table's metadata file, or the path or URL of a Hive layout.
    """
    from penstock.cli.table_commands import explain as run

    run(place, where, path, json)


@main.command(cls=Predicated)
@_table
@_where
@_version
@_json
def partitions(where: str | None, json: bool, **place: str) -> None:
    """List the partitions of TABLE with their files and bytes."""
    from penstock.cli.table_commands import partitions as run

    run(place, where, json)


@main.command()
@_lake
@_json
def tables(warehouse: str, catalog: str | None, json: bool) -> None:
    """List the tables of a warehouse or catalog."""
    from penstock.cli.table_commands import tables as run

    run(warehouse, catalog, json)


@main.command(short_help="Run SQL statements; without any, at a prompt.")
@click.argument("statements", required=False)
@click.option(
    "--file", "-f", type=click.File(), help="A file of statements, separated by semicolons; - for standard input."
)
@_lake
@click.option("--limit", type=click.IntRange(0), default=100, show_default=True, help="How many rows to print at most.")
@_json
def sql(statements: str | None, file: IO[str] | None, limit: int, json: bool, **place: str) -> None:
    """Run STATEMENTS of Spark SQL on the tables of a warehouse; without any, at a prompt."""
    from penstock.cli.sql_command import run

    run(place, statements, file, limit, json)


@main.command(short_help="Answer JDBC and ODBC clients.")
@_lake
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), default=10000, show_default=True, help="The port; 0 for any.")
@_json
def sql_server(host: str, port: int, json: bool, **place: str) -> None:
    """Start Spark's Thrift server with the tables of a warehouse, for JDBC and ODBC clients such as beeline."""
    from penstock.cli.sql_server import run

    run(place, host, port, json)


@main.command(short_help="Show skew, and what sharing files would change.")
@click.argument("table")
@_lake
@_json
def advise(json: bool, **place: str) -> None:
    """Show how skewed the partitions of TABLE are, and what coalescing would change."""
    from penstock.cli.maintenance_commands import advise as run

    run(place, json)


@main.command(cls=Predicated, short_help="Merge small files; put rows where the rule wants them.")
@click.argument("table")
@click.option("--where", help="Only files that may hold such rows: a predicate in Spark SQL.")
@_lake
@_json
def compact(where: str | None, json: bool, **place: str) -> None:
    """Merge small files of TABLE, and put rows where its rule wants them."""
    from penstock.cli.maintenance_commands import compact as run

    run(place, where, json)


@main.command(short_help="Remove old snapshots, and files that only they had.")
@click.argument("table")
@click.option("--older-than", default="5 days", show_default=True, help="An age such as '12 hours', or a moment.")
@click.option("--keep-last", default=1, show_default=True, help="How many snapshots of each branch stay anyway.")
@_lake
@_json
def expire(older_than: str, keep_last: int, json: bool, **place: str) -> None:
    """Remove old snapshots of TABLE, and the files that only they needed."""
    from penstock.cli.maintenance_commands import expire as run

    run(place, older_than, keep_last, json)


@main.command()
@click.argument("table")
@click.option("--older-than", default="3 days", show_default=True, help="An age of an hour or more, or a moment.")
@click.option("--dry-run", is_flag=True, help="Only tell which files would be removed.")
@_lake
@_json
def sweep(older_than: str, dry_run: bool, json: bool, **place: str) -> None:
    """Remove files in the folders of TABLE that no snapshot has."""
    from penstock.cli.maintenance_commands import sweep as run

    run(place, older_than, dry_run, json)


@main.command(short_help="Write files to a table, which is made if need be.")
@click.argument("source", type=_PATH)
@click.argument("table")
@click.option("--partition-by", help="How a new table is partitioned: 'day(ts), app'.")
@click.option("--coalesce", help="Columns whose small partitions share files: app,region.")
@click.option(
    "--shred", multiple=True, help="Keys of a map that get columns of their own: headers=a,b or headers=auto."
)
@click.option("--below", help="The size below which a partition is small.  [default: 32MB]")
@click.option("--mode", type=click.Choice(["append", "overwrite"]), default="append", show_default=True,
              help="Add the rows, or put them in the place of all others.")  # fmt: skip
@click.option("--source-partition-by", default="auto", show_default=True,
              help="Partition columns of the source's directories: 'dt date, app string'.")  # fmt: skip
@_storage
@_lake
@_json
def ingest(json: bool, **place: str) -> None:
    """Write the rows of SOURCE to TABLE with Spark; the table is made when there is none.

    SOURCE is a Parquet, CSV (with a header) or JSON file, a folder of them, or a Hive layout of Parquet files.
    """
    from penstock.cli.ingest import ingest as run

    run(place, json)


@main.command(cls=Predicated, short_help="Print rows that match, and those that come.")
@_table
@_where
@click.option("--columns", help="What is read: 'id, headers['content-type']'.")
@click.option("--starting", default="earliest", show_default=True,
              help="earliest, latest, a time, a partition (dt=2026-05-17), or a snapshot or tag.")  # fmt: skip
@click.option("--order", help="Of files in directories: create-time, partition-name or partition-time.")
@click.option("--marker", help="The file that completes a partition, such as _SUCCESS.")
@click.option("--on-change", help="Rows that were changed or removed: error, skip or changes.")
@click.option("--count", is_flag=True, help="Print counts instead of rows.")
@click.option("--limit", type=click.IntRange(1), help="Stop after so many rows.")
@click.option("--once", is_flag=True, help="Read what is there now, and stop.")
@click.option("--interval", type=click.FloatRange(0.1), default=2.0, show_default=True,
              help="Seconds between two looks when nothing is new.")  # fmt: skip
@click.option("--allow-filter-change", is_flag=True, help="Go on from a position that was made with another filter.")
@click.option("--position", help="A file that keeps where the stream stands; it goes on from there.")
@_place
@_json
def stream(count: bool, limit: int | None, once: bool, interval: float, position: str | None, **place: Any) -> None:
    """Print the rows of TABLE that match, and those that come, until it is stopped.

    TABLE is a name, or the path or URL of a Hive layout. No Spark is needed.
    """
    from penstock.cli.stream_command import STREAM_OPTIONS, Printing
    from penstock.cli.stream_command import stream as run

    json = place.pop("json")
    options = {name: place.pop(name) for name in STREAM_OPTIONS}
    run(place, options, Printing(count, json, limit, once, interval, position))


@main.command(cls=Predicated, short_help="Write an HTML page about a table and a query.")
@_table
@_where
@_path
@click.option("-o", "--output", default="report.html", show_default=True, help="The file that is written.")
@_no_advice
@_version
@_json
def report(where: str | None, path: str | None, output: str, no_advice: bool, json: bool, **place: str) -> None:
    """Write a page about TABLE: a map of it, what a query reads, and why.

    TABLE is a name, an Iceberg table's metadata file, or the path or URL of a Hive layout. All of it is listed once.
    """
    from penstock.cli.report_commands import report as run

    run(place, where, path, output, not no_advice, json)


@main.command(short_help="Show that page live, with a field for the query.")
@_table
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="The port.  [default: a free one]")
@click.option("--open", "show", is_flag=True, help="Open the page in the browser.")
@_no_advice
@_version
@_json
def serve(port: int, show: bool, no_advice: bool, json: bool, **place: str) -> None:
    """Show the page of `penstock report` live, on this machine only, with a field for predicates. It writes nothing."""
    from penstock.cli.report_commands import serve as run

    run(place, port, not no_advice, show, json)


@main.command(short_help="Find what is missing on this machine or at a place.")
@click.argument("table", required=False, type=_PATH)
@click.option("--spark", is_flag=True, help="Also start Spark and run a small job.")
@click.option("--warehouse", help="Where tables are known by name.  [default for a name: ./warehouse]")
@_catalog
@_storage
@_json
@click.pass_context
def doctor(ctx: click.Context, /, table: str | None, spark: bool, json: bool, **place: str | None) -> None:
    """Check Java, PySpark, the workers' Python, the libraries and, where one is given, the access to TABLE.

    TABLE is a name, or a path or URL. Every problem comes with what helps; the exit code is 1 when there is one.
    """
    from penstock.cli.doctor import doctor as run

    ctx.exit(0 if run(table, place, spark, json) else 1)


@main.command(short_help="Print the completion script of a shell.")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@_json
def completion(shell: str, json: bool) -> None:
    """Print the script that makes SHELL complete commands, options and paths: eval "$(penstock completion bash)"."""
    from penstock.cli.completion import completion as run

    run(main, shell, json)


@main.command(short_help="Show Penstock at work on generated data.")
@click.option("--rows", default=500_000, show_default=True, help="How many events are generated.")
@click.option("--folder", help="Where everything is kept; a new temporary folder without it.")
@_json
def demo(rows: int, folder: str | None, json: bool) -> None:
    """Show Penstock at work on generated data: written three ways, queried, streamed, compacted."""
    from penstock.cli.demo import run

    run(json=json, rows=rows, folder=folder)
