"""A door in front of the S3 server that takes directory markers as Amazon does.

Arrow puts an empty object `folder/` whenever it has deleted a file in the folder. rclone makes a file of it, in the
place of the folder and of everything below. Here such an object is answered for and goes no further; everything else
passes unchanged, the signed `Host` included.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.parse import urlsplit

_HOP = {"connection", "transfer-encoding", "keep-alive"}


@contextmanager
def door_to(port: int) -> Iterator[str]:
    """The address of a door to the server at a port, for as long as the block runs."""

    class Door(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def pass_on(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if self.command == "PUT" and urlsplit(self.path).path.endswith("/") and not body:
                self.send_response(200)
                self.send_header("ETag", '"d41d8cd98f00b204e9800998ecf8427e"')
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            server = HTTPConnection("127.0.0.1", port, timeout=60)
            server.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
            for name, value in self.headers.items():
                server.putheader(name, value)
            server.endheaders(body)
            answer = server.getresponse()
            content = answer.read()
            self.send_response(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in _HOP and (name.lower() != "content-length" or self.command == "HEAD"):
                    self.send_header(name, value)
            if self.command != "HEAD":
                self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)
            server.close()

        do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = pass_on

        def log_message(self, *_: object) -> None:
            return

    found = ThreadingHTTPServer(("127.0.0.1", 0), Door)
    found.daemon_threads = True
    Thread(target=found.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{found.server_port}"
    finally:
        found.shutdown()
        found.server_close()
