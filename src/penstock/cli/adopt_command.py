"""`penstock adopt`: a Parquet tree becomes a table where it lies, without Spark."""

from __future__ import annotations

from typing import Any

import click

from penstock.cli import options
from penstock.cli.coalesce_option import coalesce_rule
from penstock.cli.output import echo, echo_json, echo_note, warnings_as_notes
from penstock.cli.table_commands import loading, open_lake
from penstock.progress import progress


@click.command(short_help="Make a table of Parquet files where they lie.")
@click.argument("source", type=options.PATH)
@click.option("--as", "table", required=True, help="The name of the table: web.events.")
@click.option(
    "--partition-by", default="auto", show_default=True, help="Partition columns of the tree: 'dt date, app string'."
)
@click.option("--coalesce", help="Columns whose small partitions share files once they are compacted: app,region.")
@click.option("--below", help="The size below which a partition is small.  [default: 32MB]")
@click.option("--location", help="The folder of a new table's own files.")
@options.timezone
@options.storage
@options.lake
@options.json
def adopt(json: bool, **args: Any) -> None:
    """Make a table of SOURCE, or bring the table up to date with it: its files are named, and none is copied.

    SOURCE is the path or URL of a tree of Parquet files, or the name of a declared layout. The same command again goes
    on where it was interrupted, and adds files that are new.
    """
    rule, lake = coalesce_rule(args["coalesce"], args["below"]), _lake(args)
    with warnings_as_notes(), progress(f"adopting {args['source']}"):
        done = lake.adopt(
            args["source"],
            args["table"],
            args["partition_by"],
            coalesce=rule,
            location=args["location"],
            storage=args["storage"],
            timezone=args["timezone"],
        )
    for note in done.notes:
        echo_note(note)
    if json:
        echo_json(done.to_dict())
    else:
        echo(str(done))


@loading()
def _lake(args: dict[str, Any]) -> Any:
    return open_lake(args, args["timezone"] or "UTC")
