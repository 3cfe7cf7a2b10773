"""`penstock report` and `penstock serve`: a page about one table, in a file or live. Neither starts Spark."""

from __future__ import annotations

import json as jsonlib
import os
import warnings
import webbrowser
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from penstock.cli.output import echo, echo_note
from penstock.cli.table_commands import open_table, tell
from penstock.errors import StorageError


def report(
    place: Mapping[str, str], where: str | None, path: str | None, output: str, advice: bool, json: bool
) -> None:
    """Collect what there is to tell, and write the page; for machines, print it."""
    from penstock.progress import Counted, progress
    from penstock.prune.plan_report import human_bytes
    from penstock.report.page import page
    from penstock.report.page_data import collect

    if not json:
        _check_writable(output)
    with progress(f"looking at {place['table']}"):
        data = collect(_opened(place), where, path=path, advice=advice)
    if json:
        echo(jsonlib.dumps(data, indent=2))
        return
    content = page(data).encode()
    try:
        with open(output, "wb") as file:
            file.write(content)
    except OSError as error:
        raise _cannot_write(output, error.strerror or str(error)) from None
    for note in data["notes"]:
        echo_note(note)
    kept, total = data["report"]["files"]["kept"], data["table"]["files"]
    message = f"{Counted(kept, total, 'file')} {'is' if kept == 1 else 'are'} read"
    echo(f"{output}: {human_bytes(len(content))}; {message}")


def serve(place: Mapping[str, str], port: int, advice: bool, show: bool, json: bool = False) -> None:
    """Answer until somebody stops it."""
    from penstock.report.live_page import Server
    from penstock.report.page_data import Collector

    with Server(Collector(_opened(place), advice), port) as server, suppress(KeyboardInterrupt):
        message = f"{place['table']} is shown at {server.url} on this machine only; Ctrl-C ends it"
        echo(jsonlib.dumps({"table": place["table"], "url": server.url}) if json else message)
        if show:
            webbrowser.open(server.url)
        server.serve_forever()


def _opened(place: Mapping[str, str]) -> Any:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        table = open_table(place)
    tell(caught, ())
    return table


def _check_writable(output: str) -> None:
    """Found out before a large table is looked at."""
    folder = os.path.dirname(os.path.abspath(output))
    if os.path.isdir(output):
        raise _cannot_write(output, "it is a directory")
    if not os.path.isdir(folder):
        raise _cannot_write(output, f"there is no directory {folder}")


def _cannot_write(output: str, why: str) -> StorageError:
    return StorageError(f"the page cannot be written to {output}: {why}", hint="name a file with -o")
