"""What the commands on tables print. No command but `sql` starts Spark."""

from __future__ import annotations

import json as jsonlib
import warnings
from collections.abc import Mapping
from typing import Any

import click


def explain(place: Mapping[str, str], where: str | None, path: str | None, json: bool) -> None:
    """The plan of a query over one table."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        plan = _table(place).plan(where, path=path)
    if json:
        click.echo(jsonlib.dumps(plan.to_dict(), indent=2, default=str))
        return
    _tell(told, plan.report.notes)
    click.echo(plan.explain())


def partitions(place: Mapping[str, str], where: str | None, json: bool) -> None:
    """The partitions of one table."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        found = _table(place).partitions(where)
    if json:
        click.echo(jsonlib.dumps(found.to_pylist(), indent=2, default=str))
        return
    _tell(told, ())
    _print_rows(found.column_names, [list(row.values()) for row in found.to_pylist()])


def sql(query: str, warehouse: str, limit: int, json: bool) -> None:
    """The first rows of a query's answer."""
    from penstock.tables.lake import connect

    frame = connect(warehouse).sql(query)
    rows = [row.asDict(recursive=True) for row in frame.limit(limit + 1).collect()]
    if json:
        click.echo(jsonlib.dumps(rows[:limit], indent=2, default=str))
        return
    _print_rows(frame.columns, [list(row.values()) for row in rows[:limit]])
    if len(rows) > limit:
        click.echo(f"… more than {limit:,} rows; see --limit", err=True)


def _table(place: Mapping[str, str]) -> Any:
    """A table by its name in the warehouse, or a Hive layout by its path or URL."""
    from penstock.tables.hive.table import hive
    from penstock.tables.lake import connect

    name = place["table"]
    if "/" not in name and name.count(".") == 1 and not name.startswith("."):
        return connect(place["warehouse"]).table(name)
    return hive(name, place["partition_by"], storage=place["storage"], timezone=place["timezone"])


def _tell(told: list[warnings.WarningMessage], known: Any) -> None:
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
    Console().print(table)
