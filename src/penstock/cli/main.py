"""The command group: which commands there are, and what becomes of an error.

`penstock --help` has to be there at once, so this module imports click and nothing heavier; each command
imports its own module when it runs. Bad input is one clear line on stderr (with the excerpt of the text
where there is one) and exit code 2, the same as click's own usage errors; every other exception is a defect
of Penstock and keeps its traceback.
"""

from typing import Any

import click

from penstock import __version__
from penstock.errors import PenstockError


class _BadInput(click.ClickException):
    exit_code = 2


class _Commands(click.Group):
    """A group whose commands may raise PenstockError."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except PenstockError as error:
            raise _BadInput(str(error)) from error


@click.group(name="penstock", cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="penstock")
def main() -> None:
    """Only the files that a query needs get through."""


@main.command()
@click.option("--json", is_flag=True, help="Print for machines.")
def demo(json: bool) -> None:
    """Show Penstock at work on generated data."""
    from penstock.cli.demo import run

    run(json=json)
