"""What `penstock doctor` checks of a place: whether its endpoint answers, its catalog opens, and it can be listed.

Each look has a deadline. A place that is written wrongly is bad input and raises; all else that goes wrong is what the
doctor was asked for, and becomes a check. Secrets of the configuration are taken out of everything that is said.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from penstock.cli.machine_checks import Check
from penstock.cli.table_commands import check_warehouse, is_name
from penstock.errors import PenstockError

_CONNECT_SECONDS = 3.0
_SECONDS = 20.0


def check_place(table: str | None, warehouse: str | None, catalog: str | None, storage: str | None) -> Iterator[Check]:
    """The storage of a path or URL; of a name, its catalog, and then where the table lies."""
    if table is not None and not is_name(table):
        folder = table.rpartition("/")[0] if table.endswith(".metadata.json") else table
        yield from _check_storage(folder or ".", storage)
    elif table is not None or catalog is not None or warehouse is not None:
        yield from _check_lake(table, warehouse, catalog)


def hide_secrets(check: Check) -> Check:
    """The check without any secret of the configuration, and without logins in URLs."""
    from penstock.storage.redaction import without_configured_secrets as redacted

    return replace(check, message=redacted(check.message), fix=None if check.fix is None else redacted(check.fix))


def _check_storage(location: str, storage: str | Mapping[str, str] | None) -> Iterator[Check]:
    from penstock.storage.schemes import open_storage

    place = open_storage(location, storage)
    endpoint = place.endpoint()
    if endpoint is not None:
        reached = _check_endpoint("storage", endpoint[1], f"check {endpoint[0]} and the network")
        if not reached.ok:
            yield reached
            return
    hasty = replace(place, properties={**place.impatient, **place.properties})
    yield _attempt("storage", lambda: f"{place.url} can be listed ({len(hasty.entries(hasty.path).names):,} found)")


def _check_lake(table: str | None, warehouse: str | None, catalog: str | None) -> Iterator[Check]:
    from penstock.lake.lake import connect
    from penstock.storage.storage import properties_of

    uri = properties_of(catalog).get("uri", "") if catalog is not None else ""
    if uri.startswith(("http://", "https://")) and not _has_proxy(uri):
        reached = _check_endpoint("catalog", uri, f"check the uri of catalog {catalog!r} and the network")
        if not reached.ok:
            yield reached
            return
    folder = None if catalog is not None and warehouse is None else warehouse or "./warehouse"
    lake = connect(folder, catalog=catalog)
    opened = _attempt("catalog", lambda: _looked_into(lake))
    yield opened
    if table is None or not opened.ok:
        return
    tables: list[Any] = []

    def load() -> str:
        tables.append(lake.table(table))
        return f"{table} is there"

    yield _attempt("table", load)
    for each in tables:
        yield from _check_table(each)


def _looked_into(lake: Any) -> str:
    from penstock.tables.iceberg.metadata.catalogs import clear_errors

    if lake.source is not None:
        with clear_errors("the catalog", {}):
            return f"the catalog can be read (namespaces: {len(lake.catalog.list_namespaces()):,})"
    check_warehouse(lake)
    return f"{lake.warehouse} can be read (tables: {len(lake.tables()):,})"


def _check_table(table: Any) -> Iterator[Check]:
    """Where a table that was opened lies; what its catalog says of the place is no input of the user."""
    own = getattr(table, "storage", None)
    if own is not None:
        location, properties = own.url, own.properties
    else:
        location = table.table.metadata.location
        properties = {str(name): str(value) for name, value in table.table.io.properties.items()}
    try:
        yield from _check_storage(location, properties)
    except PenstockError as error:
        yield _problem("storage", error)


def _check_endpoint(name: str, url: str, fix: str) -> Check:
    """Whether somebody listens at an address."""
    parts = urlsplit(url if "://" in url else f"https://{url}")
    shown = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
    try:
        address = (parts.hostname or "", parts.port or (80 if parts.scheme == "http" else 443))
        socket.create_connection(address, _CONNECT_SECONDS).close()
    except (OSError, ValueError) as error:  # a port that is no number is a ValueError
        message = getattr(error, "strerror", None) or str(error)
        return Check(name, f"{shown} cannot be reached: {message}", fix)
    return Check(name, f"{shown} can be reached")


def _has_proxy(url: str) -> bool:
    parts = urlsplit(url)
    return parts.scheme in getproxies() and not proxy_bypass(parts.hostname or "")


def _attempt(name: str, look: Callable[[], str]) -> Check:
    """What a look finds, or what went wrong; a thread that does not come back is left alone."""
    answer: Future[str] = Future()

    def run() -> None:
        try:
            answer.set_result(look())
        except BaseException as error:
            answer.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    try:
        return Check(name, answer.result(_SECONDS))
    except PenstockError as error:
        return _problem(name, error)
    except TimeoutError:
        return Check(name, f"no answer within {_SECONDS:.0f} s", "check the address, the network and the proxy")


def _problem(name: str, error: PenstockError) -> Check:
    return Check(name, error.message, error.hint or "check the configuration")
