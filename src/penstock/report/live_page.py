"""The live page: on this machine's loopback only, and for reading only.

| asked | answer |
|---|---|
| `GET /`, `GET /?where=…` | the page |
| `GET /plan?where=…` | the data of a plan as JSON; with `refresh=1` of the table as it is now |
| any other path, any other method | 404, 405 |
| a `Host` that is not this address | 403: a name of somebody else's that leads here is an attack (DNS rebinding) |
| a request that another site's page makes | 403 |

A predicate with a mistake is answered with 400 and what is wrong: one line, and the excerpt with its caret.
"""

from __future__ import annotations

import json
import sys
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock
from typing import Any
from urllib.parse import parse_qs, urlsplit

from penstock.errors import PenstockError, StorageError
from penstock.report.page import page, policy
from penstock.report.page_data import Collector
from penstock.report.page_text import plain
from penstock.tables.source import bind

ADDRESS = "127.0.0.1"
_SECONDS = 30
_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class Server(ThreadingHTTPServer):
    """One table, looked at by whoever is on this machine."""

    daemon_threads = True

    def __init__(self, collector: Collector, port: int = 0) -> None:
        self.collector = collector
        self._planning = Lock()  # warnings are collected while planning, and that is one for the whole process
        try:
            super().__init__((ADDRESS, port), _Handler)
        except (OSError, OverflowError) as error:
            raise StorageError(
                f"cannot listen on port {port}: {error}", hint="leave --port out, or give another"
            ) from None

    @property
    def url(self) -> str:
        """Where the page is."""
        return f"http://{ADDRESS}:{self.server_port}/"

    def look(self, where: str, refresh: bool = False) -> dict[str, Any]:
        """The data of a plan, or what is wrong with the predicate; one that is refused keeps nobody waiting."""
        if where:
            bind(self.collector.table, where)
        with self._planning:
            if refresh:
                self.collector.refresh()
            return self.collector.look(where or None)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that does not wait for an answer is no error."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)

    def allows(self, host: str) -> bool:
        """Whether a `Host` is this server by one of its two names."""
        port = self.server_port
        known = {f"{name}:{port}" for name in (ADDRESS, "localhost")} | (
            {ADDRESS, "localhost"} if port == 80 else set()
        )
        return host.lower() in known


class _Handler(BaseHTTPRequestHandler):
    server: Server
    server_version, sys_version = "penstock", ""
    protocol_version = "HTTP/1.1"
    timeout = _SECONDS

    def do_GET(self) -> None:
        if self._is_refused():
            return
        place = urlsplit(self.path)
        options = parse_qs(place.query, max_num_fields=8)
        where = options.get("where", [""])[-1].strip()
        try:
            if place.path == "/":
                self._send_page(where)
            elif place.path == "/plan":
                self._send_plan(where, refresh=options.get("refresh") == ["1"])
            else:
                self._send_error(HTTPStatus.NOT_FOUND, "there is nothing here; see /")
        except ConnectionError:
            raise
        except Exception:  # the server goes on, and its log has the traceback
            self.server.handle_error(self.request, self.client_address)
            self._send_error(HTTPStatus.INTERNAL_SERVER_ERROR, "an error in Penstock; see where penstock serve runs")

    def _refuse_method(self) -> None:
        if not self._is_refused():
            self.close_connection = True  # what was sent with it is not read
            self._send_error(HTTPStatus.METHOD_NOT_ALLOWED, "only GET is answered", Allow="GET")

    do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = do_TRACE = do_CONNECT = _refuse_method

    def _is_refused(self) -> bool:
        hosts = self.headers.get_all("Host", [])
        foreign = self.headers.get("Sec-Fetch-Site", "none") not in ("none", "same-origin")
        opened = self.headers.get("Sec-Fetch-Mode") == "navigate" and urlsplit(self.path).path == "/"
        if len(hosts) == 1 and self.server.allows(hosts[0]) and (opened or not foreign):
            return False
        self.close_connection = True
        self._send_error(HTTPStatus.FORBIDDEN, f"this page is for {self.server.url} only")
        return True

    def _send_page(self, where: str) -> None:
        problem = None
        try:
            data = self.server.look(where)
        except PenstockError as error:
            problem = error_for_page(error)
            data = self.server.look("")
        body = page({**data, "live": {"where": where, "error": problem}})
        allowed = f"{policy(live=True)}; frame-ancestors 'none'"
        self._send(HTTPStatus.OK, "text/html", body, {"Content-Security-Policy": allowed})

    def _send_plan(self, where: str, refresh: bool) -> None:
        try:
            self._send(HTTPStatus.OK, "application/json", json.dumps(self.server.look(where, refresh), allow_nan=False))
        except PenstockError as error:
            self._send(HTTPStatus.BAD_REQUEST, "application/json", json.dumps({"error": error_for_page(error)}))

    def _send_error(self, status: HTTPStatus, message: str, **headers: str) -> None:
        self._send(status, "application/json", json.dumps({"error": {"message": message}}), headers)

    def _send(self, status: HTTPStatus, kind: str, body: str, headers: dict[str, str] | None = None) -> None:
        content = body.encode()
        self.send_response(status)
        closing = {"Connection": "close"} if self.close_connection else {}
        for name, value in {**_HEADERS, **closing, **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        """Requests are not logged: predicates hold what people look for."""


def error_for_page(error: PenstockError) -> dict[str, str | None]:
    """An error for a page: its line, and the excerpt of the text where there is one."""
    line, _, excerpt = str(error).partition("\n")
    return {"message": plain(line), "excerpt": excerpt or None}
