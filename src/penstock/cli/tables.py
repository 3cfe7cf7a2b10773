"""What the commands on tables print. No command but `sql` starts Spark."""

from __future__ import annotations

import json as jsonlib
import warnings
from collections.abc import Mapping
from typing import Any

import click

from penstock.errors import LakeError

_WIDEST = 10_000


def explain(place: Mapping[str, str], where: str | None, path: str | None, json: bool) -> None:
    """The plan of a query over one table."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        plan = open_table(place).plan(where, path=path)
    if json:
        click.echo(jsonlib.dumps(plan.to_dict(), indent=2, default=str))
        return
    tell(told, plan.report.notes)
    click.echo(plan.explain())


def partitions(place: Mapping[str, str], where: str | None, json: bool) -> None:
    """The partitions of one table."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        found = open_table(place).partitions(where)
    if json:
        click.echo(jsonlib.dumps(found.to_pylist(), indent=2, default=str))
        return
    tell(told, ())
    _print_rows(found.column_names, [list(row.values()) for row in found.to_pylist()])


def sql(query: str, warehouse: str, catalog: str | None, limit: int, json: bool) -> None:
    """The first rows of a query's answer."""
    from penstock.tables.lake import connect

    frame = connect(warehouse, catalog=catalog).sql(query)
    rows = [row.asDict(recursive=True) for row in frame.limit(limit + 1).collect()]
    if json:
        click.echo(jsonlib.dumps(rows[:limit], indent=2, default=str))
        return
    _print_rows(frame.columns, [list(row.values()) for row in rows[:limit]])
    if len(rows) > limit:
        click.echo(f"… more than {limit:,} rows; see --limit", err=True)


def open_table(place: Mapping[str, str]) -> Any:
    """A table by its name, an Iceberg table by its metadata file, or a Hive layout by its path or URL."""
    from penstock.tables.hive.table import hive
    from penstock.tables.iceberg.open import iceberg
    from penstock.tables.lake import connect

    name, snapshot = place["table"], place.get("snapshot")
    if name.endswith(".metadata.json"):
        return _at(iceberg(name, storage=place["storage"], timezone=place["timezone"]), snapshot)
    if "/" not in name and "." in name.strip("."):
        return _at(connect(place["warehouse"], catalog=place["catalog"]).table(name), snapshot)
    return hive(name, place["partition_by"], storage=place["storage"], timezone=place["timezone"])


def _at(table: Any, snapshot: str | None) -> Any:
    """A version of an Iceberg table; the snapshot's id is a number."""
    if snapshot is None:
        return table
    if not hasattr(table, "at"):
        raise LakeError("a Hive layout has no snapshots", hint="leave --snapshot out")
    return table.at(int(snapshot) if snapshot.isdigit() else snapshot)


def tell(told: list[warnings.WarningMessage], known: Any) -> None:
    """Warnings as lines of their own, but for those the report shows anyway."""
    for warning in told:
        if str(warning.message) not in "; ".join(known):
            click.echo(f"note: {warning.message}", err=True)


def _print_rows(names: list[str], rows: list[list[Any]]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table()
    for name in names:
        table.add_column(name, overflow="fold")
    for row in rows:
        table.add_row(*("NULL" if value is None else str(value) for value in row))
    console = Console()
    if not console.is_terminal:  # what goes to a file or another program is not folded
        console.width = console.measure(table, options=console.options.update(width=_WIDEST)).maximum
    console.print(table)
