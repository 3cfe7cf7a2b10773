"""The commands that look after managed tables: advise, compact, expire, sweep. Only a large compaction starts Spark."""

from __future__ import annotations

import json as jsonlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from penstock.cli.output import echo
from penstock.errors import LakeError
from penstock.progress import progress


def advise(place: Mapping[str, str], json: bool) -> None:
    """What the partitions look like, and what coalescing would change."""
    with progress(f"reading the partitions of {place['table']}"):
        advice = managed_table(place).advise()
    _show(advice, json)


def compact(place: Mapping[str, str], where: str | None, json: bool) -> None:
    """Put rows where the rule wants them."""
    with progress(f"compacting {place['table']}"):
        done = managed_table(place).compact(where=where)
    _show(done, json)


def expire(place: Mapping[str, str], older_than: str, keep_last: int, json: bool) -> None:
    """Remove old snapshots."""
    with progress(f"removing snapshots of {place['table']}"):
        done = managed_table(place).expire(older_than, keep_last=keep_last)
    _show(done, json)


def sweep(place: Mapping[str, str], older_than: str, dry_run: bool, json: bool) -> None:
    """Remove files that no snapshot has."""
    with progress(f"sweeping {place['table']}"), _without_force():
        done = managed_table(place).sweep(older_than, dry_run=dry_run)
    if dry_run and not json:
        for path in done.paths:
            echo(path)
    _show(done, json)


@contextmanager
def _without_force() -> Iterator[None]:
    """The command cannot be forced, and does not name the library's way to do it."""
    try:
        yield
    except LakeError as error:
        if error.hint is None or "force=True" not in error.hint:
            raise
        raise LakeError(error.message, hint="give 1 hour or more") from None


def managed_table(place: Mapping[str, str]) -> Any:
    """A table of a catalog, by its name."""
    from penstock.lake.lake import connect

    name = place["table"]
    if "/" in name or name.endswith(".metadata.json"):
        raise LakeError(f"{name} is a path", hint="give the name of a table in the warehouse or catalog")
    return connect(place["warehouse"], catalog=place["catalog"]).writable_table(name)


def _show(result: Any, json: bool) -> None:
    echo(jsonlib.dumps(result.to_dict(), indent=2, default=str) if json else str(result))
