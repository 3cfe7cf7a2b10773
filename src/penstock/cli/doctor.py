"""`penstock doctor`: is everything there that Penstock needs, and if not, what helps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import click

from penstock.cli import options
from penstock.cli.output import echo, echo_json
from penstock.errors import printable
from penstock.progress import counted

if TYPE_CHECKING:
    from penstock.cli.machine_checks import Check


@click.command(short_help="Find what is missing on this machine or at a place.")
@click.argument("table", required=False, type=options.PATH)
@click.option("--spark", is_flag=True, help="Also start Spark and run a small job.")
@click.option("--warehouse", help="Where tables are known by name.  [default for a name: ./warehouse]")
@options.catalog
@options.storage
@options.json
@click.pass_context
def doctor(ctx: click.Context, /, table: str | None, spark: bool, json: bool, **place: str | None) -> None:
    """Check Java, PySpark, the workers' Python, the libraries and, where one is given, the access to TABLE.

    TABLE is a name, or a path or URL. Every problem comes with what helps; the exit code is 1 when there is one.
    """
    checks: list[Check] = []
    for check in _checks(table, place, spark, checks):  # each is shown as soon as it is known
        checks.append(check)
        if not json:
            _show(check)
    problems = sum(not check.ok for check in checks)
    if json:
        echo_json({"ok": not problems, "checks": [check.to_dict() for check in checks]})
    else:
        echo(counted(problems, "problem") if problems else "all is well")
    ctx.exit(1 if problems else 0)


def _checks(table: str | None, place: Mapping[str, str | None], spark: bool, before: list[Check]) -> Iterator[Check]:
    from penstock.cli.machine_checks import MEND, Check, check_machine, check_spark
    from penstock.cli.place_checks import check_place, hide_secrets

    yield from check_machine()
    try:
        yield from map(hide_secrets, check_place(table, **place))
    except ImportError as error:
        yield Check("place", f"cannot be looked at: {error}", MEND)
    if spark:
        yield hide_secrets(check_spark(before))


def _show(check: Check) -> None:
    verdict = click.style("ok     ", fg="green") if check.ok else click.style("problem", fg="red", bold=True)
    click.echo(verdict, nl=False)
    echo(f"  {check.name:<11}{printable(check.message)}")
    if check.fix is not None:
        echo(f"{'fix':>7}  {'':<11}{printable(check.fix)}")
