"""The commands that change rows: delete and update. Only large changes start Spark."""

from __future__ import annotations

from typing import Any

import click

from penstock.cli import options
from penstock.cli.group import Predicated
from penstock.cli.maintenance_commands import writable_table
from penstock.cli.output import echo, echo_json, warnings_as_notes, write_details
from penstock.errors import LakeError
from penstock.progress import progress


@click.command(cls=Predicated, short_help="Remove rows.")
@options.table_name
@click.option("--where", required=True, help="Which rows: a predicate in Spark SQL; TRUE is all of them.")
@options.run_id
@options.branch
@options.lake
@options.json
def delete(where: str, run_id: str | None, branch: str, json: bool, **place: str) -> None:
    """Remove the rows of TABLE that match. Older snapshots have them until they expire."""
    with warnings_as_notes(json):
        table = writable_table(place).at_branch(branch)
        with progress(f"deleting from {place['table']}"):
            result = table.delete(where, run_id=run_id)
    _show(result, json)


@click.command(cls=Predicated, short_help="Change values in rows.")
@options.table_name
@click.option("--set", "values", metavar="COLUMN=VALUE", multiple=True, required=True,
              help="A new value, as an SQL expression over the row: 'price = price * 2'.")  # fmt: skip
@click.option("--where", required=True, help="Which rows: a predicate in Spark SQL; TRUE is all of them.")
@options.run_id
@options.branch
@options.lake
@options.json
def update(values: tuple[str, ...], where: str, run_id: str | None, branch: str, json: bool, **place: str) -> None:
    """Give the rows of TABLE that match new values."""
    assignments = dict(map(_assignment, values))
    if len(assignments) < len(values):
        raise LakeError("--set names a column twice", hint="name each once")
    with warnings_as_notes(json):
        table = writable_table(place).at_branch(branch)
        with progress(f"updating {place['table']}"):
            result = table.update(assignments, where, run_id=run_id)
    _show(result, json)


def _assignment(text: str) -> tuple[str, str]:
    column, equals, value = text.partition("=")
    if not equals or not column.strip() or not value.strip():
        raise LakeError(f"--set {text!r} cannot be read", hint="write 'price = price * 2'")
    return column.strip(), value.strip()


def _show(result: Any, json: bool) -> None:
    if json:
        echo_json(result.to_dict())
        return
    echo(str(result))
    if result.snapshot_id is not None and not result.already_committed:
        echo(write_details(result))
