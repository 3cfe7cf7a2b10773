"""`penstock doctor`: is everything there that Penstock needs, and if not, what helps."""

from __future__ import annotations

import json as jsonlib
from collections.abc import Iterator, Mapping

import click

from penstock.cli.machine_checks import MEND, Check, check_machine, check_spark
from penstock.cli.output import echo
from penstock.cli.place_checks import check_place, hide_secrets
from penstock.errors import printable


def doctor(table: str | None, place: Mapping[str, str | None], spark: bool, json: bool) -> bool:
    """Check and tell, each as soon as it is known; whether all is well."""
    done: list[Check] = []
    for check in _checks(table, place, spark, done):
        done.append(check)
        if not json:
            _show(check)
    problems = sum(not check.ok for check in done)
    if json:
        echo(jsonlib.dumps({"ok": not problems, "checks": [check.to_dict() for check in done]}, indent=2))
    else:
        echo(f"{problems} {'problem' if problems == 1 else 'problems'}" if problems else "all is well")
    return not problems


def _checks(table: str | None, place: Mapping[str, str | None], spark: bool, before: list[Check]) -> Iterator[Check]:
    yield from check_machine()
    try:
        yield from check_place(table, place)
    except ImportError as error:
        yield Check("place", f"cannot be looked at: {error}", MEND)
    if spark:
        yield hide_secrets(check_spark(before))


def _show(check: Check) -> None:
    verdict = click.style("ok     ", fg="green") if check.ok else click.style("problem", fg="red", bold=True)
    click.echo(verdict, nl=False)
    echo(f"  {check.name:<11}{printable(check.found)}")
    if check.fix is not None:
        echo(f"{'fix':>7}  {'':<11}{printable(check.fix)}")
