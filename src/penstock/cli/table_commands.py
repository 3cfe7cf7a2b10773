"""What the commands on tables print. None of them starts Spark."""

from __future__ import annotations

import json as jsonlib
import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from penstock.cli.output import as_json, echo, echo_note
from penstock.errors import printable
from penstock.expr.kernels.zones import in_zone
from penstock.progress import progress

_WIDEST = 10_000
_OURS = {"shared_files", "last_change"}  # of the columns of partitions; all others have the names of the table's


def explain(place: Mapping[str, str], where: str | None, path: str | None, json: bool) -> None:
    """The plan of a query over one table."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        table = open_table(place)
        with progress(f"planning {place['table']}"):
            plan = table.plan(where, path=path)
    if json:
        echo(jsonlib.dumps(plan.to_dict(), indent=2, default=str))
        return
    tell(caught, plan.report.notes)
    echo(plan.explain())


def partitions(place: Mapping[str, str], where: str | None, json: bool) -> None:
    """The partitions of one table."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        table = open_table(place)
        with progress(f"planning {place['table']}"):
            listed = table.partitions(where)
    zone = table.context.timezone
    if json:
        rows_of = [{name: in_zone(value, zone) for name, value in row.items()} for row in listed.to_pylist()]
        echo(as_json(rows_of, indent=2))
        return
    tell(caught, ())
    names, rows = _readable(listed, zone)
    print_rows(names, rows)


def _readable(partitions: Any, zone: str) -> tuple[list[str], list[list[Any]]]:
    """Partitions as people read them: without columns that say nothing, with sizes and times in short."""
    from penstock.prune.plan_report import human_bytes

    columns = {name: [in_zone(value, zone) for value in values] for name, values in partitions.to_pydict().items()}
    # A layout has partition columns of any name before two numbers.
    is_iceberg = "list" in str(partitions.schema[-1].type)
    quiet = {"spec_id": len(set(columns["spec_id"])) < 2, "shared": True, "unknown": True} if is_iceberg else {}
    quiet |= {name: not any(columns[name]) for name in ("shared_files", "deletes") if is_iceberg}
    shown = {name: values for name, values in columns.items() if not quiet.get(name)}
    shown["bytes"] = [human_bytes(size) for size in columns["bytes"]]
    if is_iceberg:
        shown["last_change"] = [when and when.strftime("%Y-%m-%d %H:%M") for when in columns["last_change"]]
    for i, names in enumerate(columns["unknown"] if is_iceberg else ()):
        for name in names:
            shown[name][i] = "unknown"
    heads = [name.replace("_", " ") if name in _OURS else name for name in shown]
    return heads, [list(row) for row in zip(*shown.values(), strict=True)]


def tables(warehouse: str, catalog: str | None, json: bool) -> None:
    """The names of all tables, one a line."""
    from penstock.lake.lake import connect

    names = connect(warehouse, catalog=catalog).tables()
    if json:
        echo(jsonlib.dumps(names, indent=2))
        return
    for name in names:
        echo(name)
    if not names:
        echo(f"no tables in {catalog or warehouse}", err=True)


def open_table(place: Mapping[str, str]) -> Any:
    """A table by its name, an Iceberg table by its metadata file, or a Hive layout by its path or URL."""
    from penstock.lake.lake import connect
    from penstock.tables.hive.hive_table import hive
    from penstock.tables.iceberg.metadata.catalogs import iceberg

    name, snapshot, zone = place["table"], place.get("snapshot"), place.get("timezone") or "UTC"
    if name.endswith(".metadata.json"):
        return _at(iceberg(name, storage=place["storage"], timezone=zone), snapshot)
    if is_name(name):
        table = connect(place["warehouse"], catalog=place["catalog"], timezone=zone).table(name)
        own = place.get("timezone") is None  # a declared layout has been registered with a zone
        return _at(table if own else replace(table, context=replace(table.context, timezone=zone)), snapshot)
    return hive(name, place["partition_by"], storage=place["storage"], timezone=zone)


def is_name(text: str) -> bool:
    """Whether this is `namespace.name`; everything else is a path or a URL."""
    return "/" not in text and "." in text.strip(".") and not text.endswith(".metadata.json")


def _at(table: Any, snapshot: str | None) -> Any:
    """A version of an Iceberg table; the snapshot's id is a number."""
    return table if snapshot is None else table.at(int(snapshot) if snapshot.isdigit() else snapshot)


def tell(caught: list[warnings.WarningMessage], known: Any) -> None:
    """Warnings as lines of their own, but for those the report shows anyway."""
    for warning in caught:
        if str(warning.message) not in "; ".join(known):
            echo_note(str(warning.message))


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
