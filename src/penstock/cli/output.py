"""How commands print text: safe for a terminal, and in the words of the command.

Names, values and paths come from anybody. An escape sequence in one of them could clear the screen, change the title
of the window, or make one name look like another. So what a terminal would obey is shown as its escape.
"""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from penstock.errors import printable
from penstock.progress import counted


def echo(text: str, err: bool = False) -> None:
    """Print a text; line breaks and tabs are the command's own, and stay."""
    click.echo(printable(text, keep="\n\t"), err=err)


def echo_json(value: Any, indent: int | None = 2) -> None:
    """Print plain data for machines."""
    echo(as_json(value, indent))


def as_json(value: Any, indent: int | None = None) -> str:
    """Plain data as machines read it: maps are objects, whatever their keys are.

    >>> as_json({"m": {1: {None: 2.5}}})
    '{"m": {"1": {"None": 2.5}}}'
    """
    return json.dumps(_plain(value), indent=indent, default=str)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value


def write_details(result: Any) -> str:
    """The snapshot that a write has made, and what it cost."""
    moved = f"{counted(result.bytes_added, 'byte')} added, {result.bytes_removed:,} removed"
    retries = f", {counted(result.retries, 'retry')}" if result.retries else ""
    return f"snapshot {result.snapshot_id}: {moved}{retries}"


def with_options(text: str, command: click.Command | None) -> str:
    """What the library says, with the options of a command for its arguments: `--partition-by` for `partition_by=`.

    Only the first line is changed: below it, an error shows a piece of the user's own text.

    >>> command = click.Command("explain", params=[click.Option(["--partition-by"])])
    >>> with_options("declare it: partition_by='dt date'", command)
    "declare it: --partition-by 'dt date'"
    """
    line, *excerpt = text.split("\n")
    for option in command.params if command is not None else ():
        if isinstance(option, click.Option) and option.name is not None:
            value = "=True" if option.is_flag else "="
            shown = option.opts[-1] if option.is_flag else f"{option.opts[-1]} "
            line = re.sub(rf"(?<![\w/'\"`]){option.name}{value}", shown, line)
            if "_" in option.name:  # no word of the language
                line = re.sub(rf"(?<![\w/'\"`]){option.name}\b", option.opts[-1], line)
    return "\n".join([line, *excerpt])


def echo_note(text: str) -> None:
    """Print what is worth knowing, on stderr."""
    context = click.get_current_context(silent=True)
    echo(f"note: {with_options(text, context.command if context is not None else None)}", err=True)


@contextmanager
def warnings_as_notes(quiet: bool = False) -> Iterator[list[str]]:
    """Print warnings as notes, but for those that are in the texts put into the list: they are shown anyway."""
    shown_anyway: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield shown_anyway
    for warning in () if quiet else caught:
        if str(warning.message) not in "; ".join(shown_anyway):
            echo_note(str(warning.message))
