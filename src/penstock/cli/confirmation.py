"""What cannot be taken back is asked for on a terminal; where nobody can be asked, it needs `--yes`."""

import sys

import click

from penstock.cli.output import echo
from penstock.errors import LakeError, printable

yes = click.option("--yes", is_flag=True, help="Do not ask.")


def confirm(action: str, is_confirmed: bool) -> None:
    """Go on when the user agrees; else end the command, with nothing changed."""
    if is_confirmed:
        return
    if not sys.stdin.isatty():
        raise LakeError(f"{action}: not confirmed, and nothing was changed", hint="add --yes")
    if not click.confirm(printable(f"{action}?"), err=True):
        echo("nothing was changed", err=True)
        click.get_current_context().exit(1)
