"""The commands that look at tables: explain, partitions, tables. None of them starts Spark."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import click

from penstock.cli import options
from penstock.cli.group import Predicated
from penstock.cli.output import echo, echo_json, warnings_as_notes
from penstock.errors import LakeError, printable
from penstock.progress import progress

_WIDEST = 10_000
_OURS = {"shared_files", "last_change"}  # of the columns of partitions; all others have the names of the table's


@click.command(cls=Predicated)
@options.table
@options.where
@options.path
@options.version
@options.json
def explain(where: str | None, path: str | None, json: bool, **place: str) -> None:
    """Show which files of TABLE a query needs, and why.

    TABLE is a name, an Iceberg table's metadata file, or the path or URL of a Hive layout.
    """
    with warnings_as_notes(json) as shown_anyway:
        table = open_table(place)
        with progress(f"planning {place['table']}"):
            plan = table.plan(where, path=path)
        shown_anyway += plan.report.notes
    if json:
        echo_json(plan.to_dict())
    else:
        echo(plan.explain())


@click.command(cls=Predicated)
@options.table
@options.where
@options.version
@options.json
def partitions(where: str | None, json: bool, **place: str) -> None:
    """List the partitions of TABLE with their files and bytes."""
    with warnings_as_notes(json):
        table = open_table(place)
        with progress(f"planning {place['table']}"):
            listed = table.partitions(where)
    from penstock.expr.kernels.zones import in_zone

    zone = table.context.timezone
    if json:
        echo_json([{name: in_zone(value, zone) for name, value in row.items()} for row in listed.to_pylist()])
        return
    columns = {name: [in_zone(value, zone) for value in values] for name, values in listed.to_pydict().items()}
    # A layout has partition columns of any name before two numbers.
    shown = _readable(columns, is_iceberg="list" in str(listed.schema[-1].type))
    heads = [name.replace("_", " ") if name in _OURS else name for name in shown]
    print_rows(heads, [list(row) for row in zip(*shown.values(), strict=True)])


def _readable(columns: dict[str, list[Any]], is_iceberg: bool) -> dict[str, list[Any]]:
    """Partitions as people read them: without columns that say nothing, with sizes and times in short."""
    from penstock.prune.plan_report import human_bytes

    shown = {**columns, "bytes": [human_bytes(size) for size in columns["bytes"]]}
    if not is_iceberg:
        return shown
    shown["last_change"] = [when and when.strftime("%Y-%m-%d %H:%M") for when in columns["last_change"]]
    for i, names in enumerate(columns["unknown"]):
        for name in names:
            shown[name][i] = "unknown"
    quiet = {"shared", "unknown", *(name for name in ("shared_files", "deletes") if not any(columns[name]))}
    quiet |= {"spec_id"} if len(set(columns["spec_id"])) < 2 else set()
    return {name: values for name, values in shown.items() if name not in quiet}


@click.command()
@options.lake
@options.json
def tables(json: bool, **place: str) -> None:
    """List the tables of a warehouse or catalog."""
    with loading():
        lake = open_lake(place)
        check_warehouse(lake)
        names = lake.tables()
    if json:
        echo_json(names)
        return
    for name in names:
        echo(name)
    if not names:
        echo(f"no tables in {place['catalog'] or place['warehouse']}", err=True)


def open_lake(place: Mapping[str, str], timezone: str = "UTC") -> Any:
    """The lake that the options name."""
    from penstock.lake.lake import connect

    return connect(place["warehouse"], catalog=place["catalog"], timezone=timezone)


def check_warehouse(lake: Any) -> None:
    """What looks into a warehouse does not take a wrong path for an empty one."""
    if lake.source is None and not lake.warehouse.is_dir():
        raise LakeError(f"there is no warehouse {lake.warehouse}", hint="check --warehouse; the first table makes it")


@contextmanager
def loading() -> Iterator[None]:
    """Modules stay once they are imported: to look for garbage among them, meanwhile and when the process ends, would
    take a third of the time of a short command."""
    gc.disable()
    try:
        yield
    finally:
        if not gc.get_freeze_count():
            gc.freeze()
        gc.enable()


@loading()
def open_table(place: Mapping[str, Any]) -> Any:
    """A table by its name, an Iceberg table by its metadata file, or a Hive layout by its path or URL.

    PyIceberg takes longer to load than a layout to plan, so each kind is imported where it is opened.
    """
    name, snapshot, zone = place["table"], place.get("snapshot"), place.get("timezone") or "UTC"
    if name.endswith(".metadata.json") or is_name(name):
        _check_is_path(place)
    if name.endswith(".metadata.json"):
        from penstock.tables.iceberg.metadata.catalogs import iceberg

        return _at(iceberg(name, storage=place["storage"], timezone=zone), snapshot)
    if is_name(name):
        table = open_lake(place, zone).table(name)
        own = place.get("timezone") is None  # a declared layout has been registered with a zone
        return _at(table if own else replace(table, context=replace(table.context, timezone=zone)), snapshot)
    from penstock.tables.hive.hive_table import hive

    files: Any = {"format": place.get("format"), "options": file_options(place.get("option") or ())}
    return hive(name, place["partition_by"], place.get("schema"), storage=place["storage"], timezone=zone, **files)


def _check_is_path(place: Mapping[str, Any]) -> None:
    """An error for options of a layout's files with a table that knows its own."""
    for option in ("format", "option", "schema"):
        if place.get(option):
            message = f"--{option} is given with the table {place['table']}"
            raise LakeError(message, hint="it is for the path of a Hive layout: leave it out")


def file_options(texts: Sequence[str]) -> dict[str, str]:
    """Options of files, written as `name=value`."""
    options = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not name or not equals:
            raise LakeError(f"invalid --option {text!r}", hint="write name=value: --option header=true")
        options[name] = value
    return options


def is_name(text: str) -> bool:
    """Whether this is `namespace.name`; everything else is a path or a URL."""
    return "/" not in text and "." in text.strip(".") and not text.endswith(".metadata.json")


def _at(table: Any, snapshot: str | None) -> Any:
    """A version of an Iceberg table."""
    return table if snapshot is None else table.at(as_snapshot(snapshot))


def as_snapshot(text: str) -> int | str:
    """A snapshot as an option names it: its id is a number."""
    return int(text) if text.isdigit() else text


def print_rows(names: list[str], rows: list[list[Any]]) -> None:
    """Rows as a table with borders."""
    from rich.console import Console
    from rich.table import Table

    table = Table()
    for i, name in enumerate(names):
        is_number = bool(rows) and all(isinstance(row[i], int | float) for row in rows)
        table.add_column(printable(name), overflow="fold", justify="right" if is_number else "left")
    for row in rows:
        table.add_row(*("NULL" if value is None else printable(str(value)) for value in row))
    console = Console(markup=False, emoji=False, highlight=False)  # a value is not markup, whatever is in it
    if not console.is_terminal:  # what goes to a file or another program is not folded
        console.width = console.measure(table, options=console.options.update(width=_WIDEST)).maximum
    console.print(table)
