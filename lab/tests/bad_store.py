# SPDX-License-Identifier: GPL-2.0-or-later
"""An S3 server that answers as badly as asked: slowly, in part, with wrong bytes, with errors, or as if it had nothing.

    python -m lab.tests.bad_store 127.0.0.1 FOLDER

serves one bucket with moto behind a proxy, writes its address into FOLDER/address, and obeys FOLDER/behaviour at each request;
FOLDER/spoilt grows by a byte for each answer that was not the server's own.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPResponse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread
from typing import Literal, get_args
from urllib.parse import urlsplit

Behaviour = Literal["well", "slow", "partial", "wrong", "refuses", "lacks"]
BADLY: tuple[Behaviour, ...] = ("slow", "partial", "wrong", "refuses", "lacks")
SLOW_S = 3.0
# Of a request or answer, what belongs to one connection alone.
_OWN_HEADERS = {"connection", "transfer-encoding", "content-length", "server", "date", "expect"}
_ERROR = "<?xml version='1.0'?><Error><Code>{code}</Code><Message>told to</Message></Error>"


class BadStore(ThreadingHTTPServer):
    """A proxy in front of an S3 server. slow_s: how long a slow answer waits."""

    daemon_threads = True
    slow_s = SLOW_S

    def __init__(self, listen: str, behind: str, folder: Path) -> None:
        super().__init__((listen, 0), _Request)
        self.behind = urlsplit(behind).netloc
        self.folder = folder
        self.behave("well")

    @property
    def address(self) -> str:
        """Return its URL."""
        host, port = self.server_address[:2]
        return f"http://{host!s}:{port}"

    def behave(self, how: Behaviour) -> None:
        """Answer so from now on."""
        behave(self.folder, how)

    def spoil(self) -> None:
        """Note an answer that was not the server's own."""
        with (self.folder / "spoilt").open("ab") as file:
            file.write(b".")


def behave(folder: Path, how: Behaviour) -> None:
    """Have the server of a folder answer so from now on."""
    assert how in get_args(Behaviour)
    draft = folder / ".behaviour"
    draft.write_text(how)
    draft.replace(folder / "behaviour")


def spoilt(folder: Path) -> int:
    """Return how many answers of the server of a folder were not its own."""
    path = folder / "spoilt"
    return path.stat().st_size if path.exists() else 0


class _Request(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: BadStore

    def handle_one_request(self) -> None:
        try:
            super().handle_one_request()
        except (ConnectionError, TimeoutError):
            self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  the library's name
        """Say nothing."""

    def _serve(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        how = (self.server.folder / "behaviour").read_text()
        if how in ("refuses", "lacks"):
            self.server.spoil()
            self._refuse(503, "SlowDown") if how == "refuses" else self._refuse(404, "NoSuchKey")
            return
        if how == "slow":
            self.server.spoil()
            time.sleep(self.server.slow_s)
        with self._forwarded(body) as answer:
            content = answer.read()
            is_object = (
                self.command == "GET"
                and answer.status in (200, 206)
                and "xml" not in (answer.getheader("Content-Type") or "")
            )
            if is_object and content and how == "wrong":
                self.server.spoil()
                middle = len(content) // 2
                content = content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]
            self._answer(answer, content, part=is_object and how == "partial")

    do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = _serve

    @contextmanager
    def _forwarded(self, body: bytes) -> Iterator[HTTPResponse]:
        connection = HTTPConnection(self.server.behind, timeout=60)
        try:
            headers = {
                name: value for name, value in self.headers.items() if name.lower() not in _OWN_HEADERS
            }
            connection.request(self.command, self.path, body or None, headers)
            yield connection.getresponse()
        finally:
            connection.close()

    def _answer(self, answer: HTTPResponse, content: bytes, *, part: bool) -> None:
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in _OWN_HEADERS:
                self.send_header(name, value)
        length = answer.getheader("Content-Length") if self.command == "HEAD" else str(len(content))
        self.send_header("Content-Length", length or "0")
        self.end_headers()
        if part:
            self.server.spoil()
            content = content[: len(content) // 2]
            self.close_connection = True
        self.wfile.write(content)

    def _refuse(self, status: int, code: str) -> None:
        content = b"" if self.command == "HEAD" else _ERROR.format(code=code).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/xml")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


@contextmanager
def bad_store(listen: str, behind: str, folder: Path) -> Iterator[BadStore]:
    """Such a proxy for a block, in front of an S3 server."""
    with BadStore(listen, behind, folder) as server:
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def main(listen: str, folder: Path) -> None:
    """Serve until a signal comes."""
    import boto3
    from moto.server import ThreadedMotoServer

    from lab.tests.stores import BUCKET, KEYS

    moto = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    moto.start()
    host, port = moto.get_host_and_port()
    behind = f"http://{host}:{port}"
    client = boto3.client(
        "s3",
        endpoint_url=behind,
        region_name="us-east-1",
        aws_access_key_id=KEYS["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=KEYS["AWS_SECRET_ACCESS_KEY"],
    )
    client.create_bucket(Bucket=BUCKET)
    with bad_store(listen, behind, folder) as server:
        draft = folder / ".address"
        draft.write_text(server.address)
        draft.replace(folder / "address")
        Event().wait()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
