"""`penstock alter`: changes of columns and partition fields, in one commit, in the order in which they are given."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import click

from penstock.cli import options
from penstock.cli.maintenance_commands import writable_table
from penstock.cli.output import echo, echo_json
from penstock.errors import SchemaError

if TYPE_CHECKING:
    from penstock.lake.managed_table import ManagedTable
    from penstock.lake.schema_change import SchemaChange

_CHANGES = "penstock.changes"
_NAME = r"(?:`(?:``|[^`])+`|[^\s`])+"  # with dots; a part in backticks may have spaces
_TYPED = re.compile(rf"\s*({_NAME})\s+(.+?)\s*", re.DOTALL)
_MOVED = re.compile(rf"\s*({_NAME})\s+(?:(first)|after\s+(.+?))\s*", re.IGNORECASE)


class _InOrder(click.Command):
    """A command that knows the order in which its options were given."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """As every command does."""
        *_, order = self.make_parser(ctx).parse_args(list(args))
        left_over = super().parse_args(ctx, args)
        values = {name: iter(given) for name, given in ctx.params.items() if isinstance(given, tuple)}
        names = (parameter.name for parameter in order if parameter.name in values)
        ctx.meta[_CHANGES] = [(name, next(values[name])) for name in names]
        return left_over


def _change(name: str, metavar: str, text: str) -> Callable[[Any], Any]:
    return click.option(f"--{name}", metavar=metavar, multiple=True, expose_value=True, help=text)


@click.command(cls=_InOrder, short_help="Change the columns and partition fields of a table.")
@options.table_name
@_change("add", "'COLUMN TYPE'", "Add a column; of a struct: 'address.zip string'.")
@_change("rename", "COLUMN=NAME", "Rename a column.")
@_change("drop", "COLUMN", "Drop a column.")
@_change("widen", "'COLUMN TYPE'", "Change int to bigint, float to double, a decimal to more digits.")
@_change("move", "'COLUMN first'", "Move a column: 'zip first', 'zip after city'.")
@_change("comment", "COLUMN=TEXT", "Set the comment of a column.")
@_change("add-partition", "FIELD", "Partition new files by one more field: app, 'day(ts)'.")
@_change("drop-partition", "FIELD", "Do not partition new files by a field any more.")
@_change("replace-partition", "FIELD=FIELD", "Partition new files by another field in the place of one.")
@options.lake
@options.json
def alter(json: bool, **place: Any) -> None:
    """Change the columns and partition fields of TABLE, in one commit.

    Changes are made in the order in which they are given. No file is written anew: `penstock compact` brings files to
    a new partitioning.
    """
    changes: list[tuple[str, str]] = click.get_current_context().meta[_CHANGES]
    if not changes:
        raise click.UsageError("nothing to change: give --add, --rename, --drop, --add-partition …")
    steps = [_STEPS[name](text) for name, text in changes]  # what cannot be read is said before the table is opened
    table = writable_table(place)
    before = table.table.metadata_location
    with table.change_schema() as change:
        for step in steps:
            step(change)
    is_changed = table.table.metadata_location != before
    if json:
        echo_json({"table": table.name, "changed": is_changed, **_described(table)})
    else:
        echo(_text(table) if is_changed else f"{table.name} is so already")


Step = Callable[["SchemaChange"], None]


def _add(text: str) -> Step:
    name, kind = _typed("add", text)
    return lambda change: change.add_column(name, kind)


def _widen(text: str) -> Step:
    name, kind = _typed("widen", text)
    return lambda change: change.widen_column(name, kind)


def _rename(text: str) -> Step:
    name, new_name = _pair("rename", text, "app=application")
    return lambda change: change.rename_column(name, new_name)


def _comment(text: str) -> Step:
    name, comment = _pair("comment", text, "'zip=the postcode'")
    return lambda change: change.comment_column(name, comment)


def _move(text: str) -> Step:
    match = _MOVED.fullmatch(text)
    if match is None:
        raise SchemaError(f"--move {text!r} cannot be read", hint="write 'zip first' or 'zip after city'")
    name, first, after = match.groups()
    return lambda change: change.move_column(name, after=after, first=bool(first))


def _drop(text: str) -> Step:
    return lambda change: change.drop_column(text)


def _add_partition(text: str) -> Step:
    return lambda change: change.add_partition_field(text)


def _drop_partition(text: str) -> Step:
    return lambda change: change.drop_partition_field(text)


def _replace_partition(text: str) -> Step:
    field, new_field = _pair("replace-partition", text, "'month(ts)=day(ts)'")
    return lambda change: change.replace_partition_field(field, new_field)


_STEPS: Mapping[str, Callable[[str], Step]] = {
    "add": _add,
    "rename": _rename,
    "drop": _drop,
    "widen": _widen,
    "move": _move,
    "comment": _comment,
    "add_partition": _add_partition,
    "drop_partition": _drop_partition,
    "replace_partition": _replace_partition,
}


def _typed(option: str, text: str) -> tuple[str, str]:
    match = _TYPED.fullmatch(text)
    if match is None:
        raise SchemaError(f"--{option} {text!r} cannot be read", hint="write a column and its type: 'zip string'")
    return match[1], match[2]


def _pair(option: str, text: str, example: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise SchemaError(f"--{option} {text!r} cannot be read", hint=f"write {example}")
    return name.strip(), value.strip()


def _described(table: ManagedTable) -> dict[str, Any]:
    from penstock.expr.types import type_name

    comments = table.comments()
    columns = [
        {"name": f.name, "type": type_name(f.type), "nullable": f.nullable, "comment": comments.get(f.name)}
        for f in table.schema
    ]
    return {"columns": columns, "partitioned_by": table.partitioned_by}


def _text(table: ManagedTable) -> str:
    return "\n".join(_lines(table))


def _lines(table: ManagedTable) -> Iterator[str]:
    described = _described(table)
    columns = ", ".join(f"{column['name']} {column['type']}" for column in described["columns"])
    yield f"columns         {columns}"
    yield f"partitioned by  {', '.join(described['partitioned_by']) or 'nothing'}"
