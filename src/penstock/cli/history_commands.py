"""The commands about a table's history: history, changes, rollback, tag, branch, fast-forward. None starts Spark."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import click

from penstock.cli import options
from penstock.cli.confirmation import confirm, yes
from penstock.cli.group import Predicated
from penstock.cli.maintenance_commands import show, writable_table
from penstock.cli.output import echo, echo_json
from penstock.cli.table_commands import as_snapshot, print_rows
from penstock.progress import counted, progress

_snapshot = click.option("--snapshot", help="A snapshot's id, a time, a tag or a branch; the current one by default.")


@click.command(short_help="List the snapshots of a table.")
@options.table_name
@options.branch
@options.lake
@options.json
def history(branch: str, json: bool, **place: str) -> None:
    """List the snapshots of TABLE, the newest first, with what each did and which tags and branches point to it."""
    table = writable_table(place).at_branch(branch)
    names = defaultdict(list)
    for ref in table.refs().to_pylist():
        names[ref["snapshot_id"]].append(ref["name"])
    current = {row["snapshot_id"]: row["is_current_ancestor"] for row in table.history().to_pylist()}
    snapshots = [
        {
            "snapshot_id": row["snapshot_id"],
            "parent_id": row["parent_id"],
            "committed_at": row["committed_at"].isoformat(timespec="milliseconds") + "Z",
            "operation": row["operation"],
            "is_current_ancestor": current.get(row["snapshot_id"], False),
            "refs": sorted(names[row["snapshot_id"]]),
            "summary": dict(row["summary"]),
        }
        for row in sorted(table.snapshots().to_pylist(), key=lambda row: row["committed_at"], reverse=True)
    ]
    if json:
        echo_json(snapshots)
    elif snapshots:
        heads = [
            "snapshot",
            "committed (UTC)",
            "operation",
            "rows added",
            "rows removed",
            "rows",
            f"on {branch}",
            "refs",
        ]
        print_rows(heads, [_cells(each) for each in snapshots])
    else:
        echo(f"{place['table']} has no snapshots", err=True)


def _cells(snapshot: dict[str, Any]) -> list[str]:
    summary = snapshot["summary"]
    counts = [summary.get(name) for name in ("added-records", "deleted-records", "total-records")]
    rows = ["" if count is None else f"{int(count):,}" for count in counts]
    when = snapshot["committed_at"][:19].replace("T", " ")
    on_it = "yes" if snapshot["is_current_ancestor"] else ""
    return [str(snapshot["snapshot_id"]), when, snapshot["operation"] or "", *rows, on_it, ", ".join(snapshot["refs"])]


@click.command(cls=Predicated, short_help="Show the rows that were added and removed.")
@options.table_name
@click.argument("from_", metavar="FROM")
@click.argument("to", required=False)
@options.where
@click.option(
    "--limit", type=click.IntRange(0), default=100, show_default=True, help="How many rows are printed at most."
)
@options.lake
@options.json
def changes(from_: str, to: str | None, where: str | None, limit: int, json: bool, **place: str) -> None:
    """Show the rows of TABLE that were added and removed between two snapshots.

    FROM and TO are ids, times, tags or branches; TO is the current snapshot by default.
    """
    table = writable_table(place)
    with progress(f"comparing snapshots of {place['table']}"):
        rows = table.changes(as_snapshot(from_), None if to is None else as_snapshot(to), where)
    types = rows.column("_change_type").to_pylist()
    inserted, deleted = types.count("insert"), types.count("delete")
    shown = rows.slice(0, limit).to_pylist(maps_as_pydicts="lossy")
    if json:
        echo_json({"inserted": inserted, "deleted": deleted, "rows": shown})
        return
    if shown:
        names = [name for name in rows.column_names if name != "_change_type"]
        signs = {"insert": "+", "delete": "-"}
        print_rows(["", *names], [[signs[row["_change_type"]], *(row[name] for name in names)] for row in shown])
    more = f"; {len(shown):,} shown" if len(shown) < rows.num_rows else ""
    echo(f"{counted(inserted, 'row')} added, {counted(deleted, 'row')} removed{more}")


@click.command(short_help="Make an earlier snapshot current again.")
@options.table_name
@click.argument("to")
@options.branch
@yes
@options.lake
@options.json
def rollback(to: str, branch: str, yes: bool, json: bool, **place: str) -> None:
    """Make the snapshot TO of TABLE current again: an id, a time or a tag. Another rollback undoes it."""
    table = writable_table(place).at_branch(branch)
    confirm(f"roll {branch} of {place['table']} back to {to}", yes)
    show(table.rollback(as_snapshot(to)), json)


@click.command(short_help="List tags, create or drop one.")
@options.table_name
@click.argument("name", required=False)
@_snapshot
@click.option("--drop", is_flag=True, help="Drop it.")
@options.lake
@options.json
def tag(name: str | None, snapshot: str | None, drop: bool, json: bool, **place: str) -> None:
    """Create the tag NAME of TABLE, or list the tags. A tag keeps its snapshot from expiring."""
    _check(name, snapshot, drop)
    table = writable_table(place)
    if name is None:
        _list(table, "TAG", json)
    elif drop:
        table.drop_tag(name)
        _told({"dropped": name}, f"dropped tag {name}", json)
    else:
        table.create_tag(name, _optional(snapshot))
        _created(table, "tag", name, json)


@click.command(short_help="List branches, create or drop one.")
@options.table_name
@click.argument("name", required=False)
@_snapshot
@click.option("--drop", is_flag=True, help="Drop it, with the snapshots that only it has.")
@yes
@options.lake
@options.json
def branch(name: str | None, snapshot: str | None, drop: bool, yes: bool, json: bool, **place: str) -> None:
    """Create the branch NAME of TABLE, or list the branches. Writes to a branch leave the table as it is."""
    _check(name, snapshot, drop)
    table = writable_table(place)
    if name is None:
        _list(table, "BRANCH", json)
    elif drop:
        confirm(f"drop the branch {name} of {place['table']}", yes)
        table.drop_branch(name)
        _told({"dropped": name}, f"dropped branch {name}", json)
    else:
        table.create_branch(name, _optional(snapshot))
        _created(table, "branch", name, json)


@click.command(short_help="Move a branch to the head of another.")
@options.table_name
@click.argument("branch")
@click.argument("to")
@options.lake
@options.json
def fast_forward(branch: str, to: str, json: bool, **place: str) -> None:
    """Move BRANCH of TABLE to the head of TO, a branch that goes on from it: `fast-forward web.events main audit`."""
    show(writable_table(place).fast_forward(branch, to), json)


def _check(name: str | None, snapshot: str | None, drop: bool) -> None:
    if name is None and (drop or snapshot is not None):
        raise click.UsageError("Missing argument 'NAME'.")
    if drop and snapshot is not None:
        raise click.UsageError("--snapshot is where a new one points to, and --drop drops one.")


def _optional(snapshot: str | None) -> Any:
    return None if snapshot is None else as_snapshot(snapshot)


def _list(table: Any, kind: str, json: bool) -> None:
    refs = sorted((ref["name"], ref["snapshot_id"]) for ref in table.refs().to_pylist() if ref["type"] == kind)
    if json:
        echo_json([{"name": name, "snapshot_id": snapshot_id} for name, snapshot_id in refs])
    elif refs:
        print_rows([kind.lower(), "snapshot"], [[name, str(snapshot_id)] for name, snapshot_id in refs])
    else:
        echo(f"{table.name} has no {kind.lower()}", err=True)


def _created(table: Any, kind: str, name: str, json: bool) -> None:
    snapshot_id = table.at(name).version.snapshot_id
    _told({"created": name, "snapshot_id": snapshot_id}, f"created {kind} {name} at snapshot {snapshot_id}", json)


def _told(data: dict[str, Any], text: str, json: bool) -> None:
    if json:
        echo_json(data)
    else:
        echo(text)
