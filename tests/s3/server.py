"""A real S3 server on loopback for the tests, and what it says it was asked.

`rclone serve s3` serves a directory; its directories are buckets. A table is written to the disk below a bucket that
the server has just made, so that writing costs no request. The log names every request, and `requests()` returns those
of a block of code:

    with server.requests() as seen:
        table.plan("app = 'shop'")
    assert seen.listings == ["t/", "t/app=shop/"]

The server ends with the test session. Should that be killed, the shell around the server notices that its standard
input has ended, and ends the server.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import pytest
from pyarrow.fs import S3FileSystem

from tests.fixtures.processes import PATIENCE, wait_until

KEY_ID, SECRET = "penstock-test-key", "penstock-Test-Secret-0815"
_WATCH = '"$@" & server=$!; trap "kill $server" TERM INT; read -r _; kill $server; wait $server'
_LIST = re.compile(r'bucketname: (\S+) prefix: prefix:"(.*)", delim:"/" page: \{Marker:(.*) HasMarker:(\w+) ')
_UNDELIMITED = re.compile(r"bucketname: (\S+) prefix: (?!prefix:)")
_GET = re.compile(r"serve s3: GET OBJECT Bucket: (\S+) Object: (.*)$")
_LISTENS = re.compile(r"Starting s3 server on \[http://127\.0\.0\.1:(\d+)/\]")
_HEAD = re.compile(r"serve s3: HEAD OBJECT (\S+) (.*)$")


@dataclass
class Requests:
    """What the server was asked during a block; complete when the block has ended."""

    pages: list[tuple[str, str]] = field(default_factory=list)  # prefix and marker of each List request
    gets: list[str] = field(default_factory=list)
    heads: list[str] = field(default_factory=list)

    @property
    def listings(self) -> list[str]:
        """The prefixes that were listed, once for each listing however many pages it took."""
        return [prefix for prefix, marker in self.pages if not marker]

    def read(self, line: str) -> None:
        """Take in one line of the log."""
        assert not _UNDELIMITED.search(line), f"a List without a delimiter: {line}"
        if found := _LIST.search(line):
            self.pages.append((_unquote(found.group(2)), found.group(3)))
        elif found := _GET.search(line):
            self.gets.append(found.group(2))
        elif found := _HEAD.search(line):
            self.heads.append(found.group(2))


class S3Server:
    """A running server."""

    def __init__(self, home: Path) -> None:
        self.root = home / "buckets"
        self.root.mkdir(parents=True)
        self._log = home / "rclone.log"
        self._numbers = count(1)
        command = [_rclone(), "serve", "s3", str(self.root), "--addr", "127.0.0.1:0"]
        command += ["--auth-key", f"{KEY_ID},{SECRET}", "-vv", "--vfs-read-wait", "0"]
        command += ["--config", os.devnull, "--log-file", str(self._log)]
        self._process = subprocess.Popen(
            ["sh", "-c", _WATCH, "sh", *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
        )
        self.port = self._port()
        # The checksums that clients of Amazon add to an upload by default come without a length, which rclone refuses.
        os.environ.setdefault("AWS_REQUEST_CHECKSUM_CALCULATION", "WHEN_REQUIRED")
        self._client = S3FileSystem(
            access_key=KEY_ID, secret_key=SECRET, endpoint_override=self.endpoint, region="us-east-1",
            allow_bucket_creation=True, allow_bucket_deletion=True,
        )  # fmt: skip

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def properties(self) -> dict[str, str]:
        """The configuration of storage for this server."""
        return {
            "s3.endpoint": self.endpoint,
            "s3.access-key-id": KEY_ID,
            "s3.secret-access-key": SECRET,
            "s3.region": "us-east-1",
        }

    def new_bucket(self) -> Path:
        """The directory of a new bucket, to be filled before anything in it is asked for: the server remembers."""
        name = f"bucket{next(self._numbers)}"
        self._client.create_dir(name)
        return self.root / name

    def url(self, path: Path) -> str:
        """A path below a bucket as a URL."""
        return f"s3://{path.relative_to(self.root)}"

    def delete(self, path: Path) -> None:
        """Delete an object through the server, which then knows."""
        self._client.delete_file(str(path.relative_to(self.root)))

    @contextmanager
    def requests(self) -> Iterator[Requests]:
        """The requests that are made in the block; nobody else may ask the server meanwhile."""
        start = self._log.stat().st_size
        seen = Requests()
        yield seen
        # A line is written before the request is answered, so that after the block the log has them all.
        with self._log.open("rb") as log:
            log.seek(start)
            for line in log.read().decode(errors="replace").splitlines():
                seen.read(line)

    def list_requests(self) -> int:
        """How many List requests the server has had, pages counted one by one."""
        return self._log.read_bytes().count(b"LIST BUCKET")

    def stop(self) -> None:
        """End the server, and wait until it has."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(PATIENCE)

    def _port(self) -> int:
        """Where the server listens, which it writes down once it does."""
        wait_until(lambda: self._log.exists() and _LISTENS.search(self._log.read_text()) is not None)
        return int(_LISTENS.findall(self._log.read_text())[0])


def running(config: pytest.Config, home: Path) -> S3Server:
    """The one server of a test session, started when it is first asked for."""
    server = config.stash.get(_SERVER, None)
    if server is None:
        server = config.stash[_SERVER] = S3Server(home)
        config.add_cleanup(server.stop)
    return server


_SERVER = pytest.StashKey[S3Server]()


def answers(port: int) -> bool:
    """Whether somebody on this machine accepts connections there."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _rclone() -> str:
    beside = Path(sys.executable).with_name("rclone")
    found = str(beside) if beside.exists() else shutil.which("rclone")
    assert found, "rclone is missing: pip install -e '.[dev]'"
    return found


def _unquote(go: str) -> str:
    """A string as Go's %q writes it."""
    return go.replace('\\"', '"').replace("\\\\", "\\")
