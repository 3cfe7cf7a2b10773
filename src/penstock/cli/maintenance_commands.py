"""The commands that look after managed tables: advise, compact, expire, sweep. Only a large compaction starts Spark."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from penstock.cli import options
from penstock.cli.group import Predicated
from penstock.cli.output import echo, echo_json
from penstock.cli.table_commands import loading, open_lake
from penstock.errors import LakeError
from penstock.progress import progress


@click.command(short_help="Show skew, and what sharing files would change.")
@options.table_name
@options.lake
@options.json
def advise(json: bool, **place: str) -> None:
    """Show how skewed the partitions of TABLE are, and what coalescing would change."""
    with progress(f"reading the partitions of {place['table']}"):
        advice = writable_table(place).advise()
    show(advice, json)


@click.command(cls=Predicated, short_help="Merge small files; put rows where the rule wants them.")
@options.table_name
@click.option("--where", help="Only files that may hold such rows: a predicate in Spark SQL.")
@options.lake
@options.json
def compact(where: str | None, json: bool, **place: str) -> None:
    """Merge small files of TABLE, and put rows where its rule wants them."""
    with progress(f"compacting {place['table']}"):
        compaction = writable_table(place).compact(where=where)
    show(compaction, json)


@click.command(short_help="Remove old snapshots, and files that only they had.")
@options.table_name
@click.option("--older-than", default="5 days", show_default=True, help="An age such as '12 hours', or a moment.")
@click.option("--keep-last", default=1, show_default=True, help="How many snapshots of each branch stay anyway.")
@options.lake
@options.json
def expire(older_than: str, keep_last: int, json: bool, **place: str) -> None:
    """Remove old snapshots of TABLE, and the files that only they needed."""
    with progress(f"removing snapshots of {place['table']}"):
        removed = writable_table(place).expire(older_than, keep_last=keep_last)
    show(removed, json)


@click.command()
@options.table_name
@click.option("--older-than", default="3 days", show_default=True, help="An age of an hour or more, or a moment.")
@click.option("--dry-run", is_flag=True, help="Only tell which files would be removed.")
@options.lake
@options.json
def sweep(older_than: str, dry_run: bool, json: bool, **place: str) -> None:
    """Remove files in the folders of TABLE that no snapshot has."""
    with progress(f"sweeping {place['table']}"):
        try:
            swept = writable_table(place).sweep(older_than, dry_run=dry_run)
        except LakeError as error:
            if error.hint is None or "force=True" not in error.hint:
                raise
            # The command cannot be forced, and does not name the library's way to do it.
            raise LakeError(error.message, hint="give 1 hour or more") from None
    if dry_run and not json:
        for path in swept.paths:
            echo(path)
    show(swept, json)


@loading()
def writable_table(place: Mapping[str, str]) -> Any:
    """A table of a catalog, by its name."""
    name = place["table"]
    if "/" in name or name.endswith(".metadata.json"):
        raise LakeError(f"{name} is a path", hint="give the name of a table in the warehouse or catalog")
    return open_lake(place).writable_table(name)


def show(result: Any, json: bool) -> None:
    """Print what was done."""
    if json:
        echo_json(result.to_dict())
    else:
        echo(str(result))
