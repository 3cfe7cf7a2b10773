"""The commands that change which tables there are: drop, rename, unregister, namespace. None of them starts Spark."""

from __future__ import annotations

from typing import Any

import click

from penstock.cli import options
from penstock.cli.confirmation import confirm, yes
from penstock.cli.output import echo, echo_json
from penstock.cli.table_commands import check_warehouse, loading, open_lake
from penstock.errors import LakeError, TableNotFoundError


@click.command(short_help="Remove a table.")
@options.table_name
@click.option("--purge", is_flag=True, help="Delete its files too, which cannot be undone.")
@yes
@options.lake
@options.json
def drop(purge: bool, yes: bool, json: bool, **place: str) -> None:
    """Remove TABLE from the lake. Its files stay, unless --purge is given."""
    lake, name = _opened(place), place["table"]
    lake.table(name)  # or an error that names the tables that there are
    confirm(f"drop {name} and delete its files" if purge else f"drop {name}", yes)
    lake.drop_table(name, purge=purge)
    _told({"dropped": name, "purged": purge}, f"dropped {name}{' and its files' if purge else ''}", json)


@click.command(short_help="Give a table another name.")
@options.table_name
@click.argument("new_name")
@options.lake
@options.json
def rename(new_name: str, json: bool, **place: str) -> None:
    """Give TABLE the name NEW_NAME, which may be in another namespace. Its files stay where they are."""
    _opened(place).rename_table(place["table"], new_name)
    _told({"renamed": place["table"], "to": new_name}, f"{place['table']} is {new_name} now", json)


@click.command(short_help="Forget the declaration of a layout.")
@options.table_name
@options.lake
@options.json
def unregister(json: bool, **place: str) -> None:
    """Remove the declaration of the Hive layout TABLE; its files stay, and it can be registered again."""
    lake, name = _opened(place), place["table"]
    try:
        lake.unregister(name)
    except TableNotFoundError as error:
        raise LakeError(error.message, hint="penstock tables lists what there is") from None
    _told({"unregistered": name}, f"{name} is not registered any more", json)


@click.command(short_help="List namespaces, create or drop one.")
@click.argument("name", required=False)
@click.option("--drop", is_flag=True, help="Drop it.")
@click.option("--cascade", is_flag=True, help="Drop its tables and namespaces too; files stay.")
@yes
@options.lake
@options.json
def namespace(name: str | None, drop: bool, cascade: bool, yes: bool, json: bool, **place: str) -> None:
    """Create the namespace NAME, or list the namespaces."""
    if (drop and name is None) or (cascade and not drop):
        raise click.UsageError("Missing argument 'NAME'." if name is None else "--cascade is for --drop.")
    with loading():
        lake = open_lake(place)
    if name is None:
        check_warehouse(lake)
        _list(lake, json)
    elif drop:
        check_warehouse(lake)
        lake.namespaces.check(name)
        if cascade:
            confirm(f"drop the namespace {name} and all of its tables", yes)
        lake.namespaces.drop(name, cascade=cascade)
        _told({"dropped": name}, f"dropped namespace {name}", json)
    else:
        lake.create_namespace(name)
        _told({"created": name}, f"created namespace {name}", json)


def _list(lake: Any, json: bool) -> None:
    names, waiting = list[str](), lake.namespaces.names()
    while waiting:
        names.append(waiting.pop(0))
        waiting = [*lake.namespaces.names(names[-1]), *waiting]
    if json:
        echo_json(names)
        return
    for name in names:
        echo(name)
    if not names:
        echo("no namespaces", err=True)


@loading()
def _opened(place: dict[str, str]) -> Any:
    lake = open_lake(place)
    check_warehouse(lake)
    return lake


def _told(data: dict[str, Any], text: str, json: bool) -> None:
    if json:
        echo_json(data)
    else:
        echo(text)
