"""The live page answers this machine only, reads only, and says what is wrong with a predicate."""

from __future__ import annotations

import http.client
import json
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import urlencode, urlsplit

import pytest

import penstock
from penstock.errors import StorageError
from penstock.report.live_page import Server
from penstock.report.page_data import Collector
from tests.fixtures.pages import hive_table, shared_table
from tests.fixtures.processes import PATIENCE, PENSTOCK


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("lake")
    shared_table(root)
    return root


@pytest.fixture(scope="module")
def server(lake: Path) -> Iterator[Server]:
    with Server(Collector(penstock.connect(lake).table("web.requests"), advice=False)) as found:
        thread = Thread(target=found.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield found
        found.shutdown()
        thread.join()


def ask(server: Server, path: str = "/", method: str = "GET", **headers: str) -> tuple[int, dict[str, str], str]:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=PATIENCE)
    connection.request(method, path, headers={name.replace("_", "-"): value for name, value in headers.items()})
    answer = connection.getresponse()
    found = answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read().decode()
    connection.close()
    return found


def plan(server: Server, where: str, **more: str) -> tuple[int, Any]:
    status, _, body = ask(server, f"/plan?{urlencode({'where': where, **more})}")
    return status, json.loads(body)


def test_it_listens_on_loopback_only(server: Server) -> None:
    assert server.server_address[0] == "127.0.0.1"
    assert server.url == f"http://127.0.0.1:{server.server_port}/"


@pytest.mark.parametrize("host", ["127.0.0.1:{}", "localhost:{}", "LocalHost:{}"])
def test_its_own_names_are_answered(server: Server, host: str) -> None:
    assert ask(server, Host=host.format(server.server_port))[0] == 200


@pytest.mark.parametrize(
    "host",
    ["evil.example:{}", "127.0.0.1", "127.0.0.1:1", "localhost.evil.example:{}", "[::1]:{}", "", "127.0.0.1:{}@x"],
)
@pytest.mark.parametrize("path", ["/", "/plan?where="])
def test_other_hosts_are_refused(server: Server, host: str, path: str) -> None:
    status, _, body = ask(server, path, Host=host.format(server.server_port))
    assert status == 403
    assert "web.requests" not in body


def test_a_request_without_a_host_or_with_two_is_refused(server: Server) -> None:
    own = f"Host: 127.0.0.1:{server.server_port}\r\n"
    for heads in ("", own + "Host: evil.example\r\n"):
        with socket.create_connection(("127.0.0.1", server.server_port), timeout=PATIENCE) as connection:
            connection.sendall(f"GET / HTTP/1.1\r\n{heads}\r\n".encode())
            assert connection.recv(64).startswith(b"HTTP/1.1 403")


def test_pages_of_other_sites_may_not_ask(server: Server) -> None:
    assert ask(server, "/plan?where=", Sec_Fetch_Site="cross-site")[0] == 403
    assert ask(server, "/", Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="no-cors")[0] == 403
    assert ask(server, "/", Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="navigate")[0] == 200  # a link to the page
    assert ask(server, "/plan?where=", Sec_Fetch_Site="same-origin")[0] == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "HEAD"])
def test_only_get_is_answered(server: Server, method: str) -> None:
    status, headers, _ = ask(server, "/", method)
    assert (status, headers["allow"]) == (405, "GET")


@pytest.mark.parametrize("path", ["/favicon.ico", "/plan/x", "/../etc/passwd", "//evil.example/", "/%2e%2e/"])
def test_there_is_nothing_else(server: Server, path: str) -> None:
    assert ask(server, path)[0] == 404


def test_the_page_is_live_and_may_ask_its_own_server_only(server: Server) -> None:
    status, headers, body = ask(server, "/?" + urlencode({"where": "app = '</script>'"}))
    assert (status, headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert headers["content-security-policy"].endswith("connect-src 'self'; frame-ancestors 'none'")
    assert (headers["x-content-type-options"], headers["cache-control"]) == ("nosniff", "no-store")
    assert "access-control-allow-origin" not in headers
    assert '"live":{"where":"app = \'\\u003c/script\\u003e\'","error":null}' in body


@pytest.mark.parametrize("where", ["", "app = 'app-07'", "app = 'big' AND user_id < 10"])
def test_a_plan_has_the_counts_of_the_table(server: Server, lake: Path, where: str) -> None:
    status, found = plan(server, where)
    expected = penstock.connect(lake).table("web.requests").plan(where or None).report.to_dict()
    assert status == 200
    assert (found["report"]["files"], found["report"]["manifests"]) == (expected["files"], expected["manifests"])


def test_a_mistake_is_told_with_its_line_and_its_place(server: Server) -> None:
    status, found = plan(server, "ap = 'shop'")
    assert status == 400
    assert found == {"error": {"message": "unknown column 'ap'; did you mean 'app'?", "excerpt": "  ap = 'shop'\n  ^"}}
    status, _, body = ask(server, "/?where=ap")
    assert status == 200
    assert "did you mean" in body


def test_a_predicate_that_is_too_large_is_refused_while_another_is_planned(server: Server) -> None:
    with server._planning:
        status, found = plan(server, "length(app)" + "-1" * 21_000 + " > 5")
        assert status == 400
        assert "21,002 tests and functions; at most 20,000" in found["error"]["message"]
        assert plan(server, "nothing = 1")[0] == 400
    assert plan(server, "app = 'a'")[0] == 200


def test_a_defect_is_an_answer_too_and_its_traceback_stays_here(
    server: Server, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(server.collector, "look", lambda where: {}[where])
    status, _, body = ask(server, "/plan?where=app")
    assert (status, "KeyError" in body) == (500, False)
    assert "KeyError: 'app'" in capfd.readouterr().err


def test_refresh_looks_at_the_table_as_it_is_now(tmp_path: Path) -> None:
    table = hive_table(tmp_path / "t", ["a"])
    server = Server(Collector(table))
    try:
        assert server.look("")["table"]["files"] == 4
        (tmp_path / "t" / "dt=2026-05-16" / "app=a" / "0.parquet").unlink()
        found = server.look("")
        assert (found["table"]["files"], found["report"]["files"]["total"]) == (4, 3)  # the map is of the last look
        assert server.look("", refresh=True)["table"]["files"] == 3
    finally:
        server.server_close()


def test_a_port_that_is_taken_is_one_clear_line(server: Server) -> None:
    with pytest.raises(StorageError, match=f"cannot listen on port {server.server_port}.*leave --port out"):
        Server(server.collector, server.server_port)


def test_the_command_prints_its_address_writes_nothing_and_ends_with_ctrl_c(tmp_path: Path) -> None:
    hive_table(tmp_path / "t", ["a", "b"])
    before = sorted(tmp_path.rglob("*"))
    words = [*PENSTOCK, "serve", str(tmp_path / "t")]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path) as running:
        assert running.stdout is not None
        line = running.stdout.readline()
        url = urlsplit(line.split(" at ")[1].split()[0])
        connection = http.client.HTTPConnection(str(url.hostname), url.port, timeout=PATIENCE)
        connection.request("GET", "/plan?where=app%20%3D%20%27a%27")
        assert json.loads(connection.getresponse().read())["report"]["files"]["kept"] == 4
        connection.close()
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=PATIENCE)
    assert (running.returncode, out) == (0, "")
    way = 'to be sure, declare it: --partition-by "dt date, app string"'
    assert err == f"note: {tmp_path / 't'}: partitioned as one branch shows; {way}\n"
    assert sorted(tmp_path.rglob("*")) == before
